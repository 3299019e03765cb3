"""Talk to a board at a port through MicroPython's raw REPL: run, deploy, flash, selftest."""
