"""Locate the folder of boards/, examples/, kernels/, port/, tests/fixtures/ and build/.

It is a checkout, or sources/ in an installed package, which has the files for its commands.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "sources"

ROOT = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parents[1]
