"""Run programs on the host twin: CPython with the same loader and kernels."""
