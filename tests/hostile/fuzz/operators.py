"""Fuzz calls of single operators with arguments of any values. tests/support/hostile_calls.py derives
them from the bytes of an input."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))

from support.hostile_calls import LENGTH, SECONDS, Draw, HostileCall, random_data  # noqa: E402, F401

MAX_LENGTH = LENGTH
SEEDS = 300


def one_input(data):
    """Return the name of the error that rejected the call, or "ok"."""
    return HostileCall(Draw(data)).run()


def seeds():
    return map(random_data, range(SEEDS))
