"""Measure each instruction of a method."""
