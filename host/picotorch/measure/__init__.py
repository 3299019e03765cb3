"""Compute the RAM and flash that a method needs, and the boards and chips that it fits."""
