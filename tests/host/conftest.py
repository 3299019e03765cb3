"""Tests import their helpers by name: those of this folder, and tests/fixture_store.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
