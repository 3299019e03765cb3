"""Define the command line: a thin file for each command."""
