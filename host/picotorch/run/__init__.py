"""Run a program: on the twin, on an emulated board, and both compared."""
