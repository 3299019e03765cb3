"""picotorch advise: what costs most in a program, and what to change."""
