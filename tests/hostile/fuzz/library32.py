"""Fuzz library.py's target at 32 bits."""

from library import CORPUS, MAX_LENGTH, SECONDS, seeds

BITS = 32
__all__ = ["BITS", "CORPUS", "MAX_LENGTH", "SECONDS", "seeds"]
