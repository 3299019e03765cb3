"""Run on a connected board: its serial port, MicroPython's raw REPL, the files of a run."""
