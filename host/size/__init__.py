"""What a method needs of RAM and flash, and where it fits."""
