"""Fixtures of the tests on boards."""

import pytest
from picotorch.run.device import link


@pytest.fixture(autouse=True)
def long_patience(monkeypatch):
    """Emulated boards are slow on busy cores: the checksum of a module of 228 KB took more than the
    default of 10 s."""
    monkeypatch.setattr(link, "PATIENCE", 60.0)
