"""Set up files after a reset, before boot.py and the prompt."""

import _files

_files.mount()
del _files
