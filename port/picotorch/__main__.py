"""python -m picotorch: the command line, which is installed on the host only."""

from importlib.metadata import entry_points

entry_points(group="console_scripts", name="picotorch")["picotorch"].load()()
