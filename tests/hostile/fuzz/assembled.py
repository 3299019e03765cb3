"""Fuzz programs of calls with any arguments. tests/support/hostile_programs.py derives them from the
bytes of an input."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))

from support import hostile_programs  # noqa: E402
from support.hostile_calls import random_data  # noqa: E402

MAX_LENGTH = hostile_programs.LENGTH
SECONDS = hostile_programs.SECONDS
SEEDS = 100


def one_input(data):
    """Return the name of the first Error, or "ok"."""
    return hostile_programs.outcome(data)


def seeds():
    return (random_data(seed, MAX_LENGTH) for seed in range(SEEDS))
