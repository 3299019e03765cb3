"""Compile programs to .ptm files, which run from flash, and to C projects."""
