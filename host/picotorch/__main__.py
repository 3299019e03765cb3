"""python -m picotorch: the command line, which is installed on the host only."""

from _picotorch_start import main

main()
