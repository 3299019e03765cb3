"""The host twin: CPython on the same loader and kernels."""
