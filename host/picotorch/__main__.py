"""Run the command line as python -m picotorch; on the host only."""

from _picotorch_start import main

main()
