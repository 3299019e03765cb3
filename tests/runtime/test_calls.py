"""Count the instructions of Python around a model on an emulated board."""

import re

from support import budgets, fixture_store
from support.targets import run_script

BOARD = "mps2-an386"


def test_memory_of_a_call():
    """The model has one addition, so that nearly all of the cost is the call."""
    lines = run_script("calls.py", {"model": fixture_store.load("add_1").pte}, BOARD).lines
    found = re.fullmatch(r"set_input (\d+) execute (\d+) get_output (\d+) heap (\d+)", lines[-1])
    set_input, execute, get_output, heap = map(int, found.groups())
    budgets.check("calls.set_input_and_get_output", set_input + get_output)
    budgets.check("calls.execute", execute)
    budgets.check("calls.heap_bytes_of_a_method", heap)
