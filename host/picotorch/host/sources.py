"""Folder of boards/, examples/, kernels/, port/, tests/fixtures/ and build/: a checkout, or sources/ in
an installed package, which has the files that its commands need."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "sources"

ROOT = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parents[1]
