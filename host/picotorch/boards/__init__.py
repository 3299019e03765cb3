"""Describe the boards: their files, and the list of them."""
