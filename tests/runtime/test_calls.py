"""Count the instructions of Python around a model on an emulated board."""

import re

from support import fixture_store
from support.targets import run_script

BOARD = "mps2-an386"
MOST_CALLS = 3300  # instructions of set_input and get_output together
MOST_EXECUTE = 1300
MOST_HEAP = 1024  # bytes that a Method takes


def test_what_a_call_takes():
    """A model of one addition, so that nearly all of the cost is the call."""
    lines = run_script("calls.py", {"model": fixture_store.load("add_1").pte}, BOARD).lines
    found = re.fullmatch(r"set_input (\d+) execute (\d+) get_output (\d+) heap (\d+)", lines[-1])
    set_input, execute, get_output, heap = map(int, found.groups())
    assert set_input + get_output <= MOST_CALLS
    assert execute <= MOST_EXECUTE
    assert heap <= MOST_HEAP
