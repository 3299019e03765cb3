"""Define the command line: a thin file a command."""
