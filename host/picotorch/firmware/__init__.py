"""Build firmware with the kernels that models need: selective, native modules, upstream ports."""
