"""What each instruction of a method takes."""
