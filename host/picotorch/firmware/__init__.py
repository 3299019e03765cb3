"""Firmware with the kernels that models need: selective, native modules, MicroPython's own ports."""
