"""picotorch: ExecuTorch programs under MicroPython and CPython, without a heap after set-up."""
