"""Select parameters of tests, if make test builds the firmware of some boards only, or if there are
many."""

import os
from collections.abc import Iterable

import pytest
from picotorch.run.running import DEFAULT_BOARD
from support.targets import FAULT_BOARDS, SCRIPT_BOARDS, on_boards

# make reliability and make ptms run all parameters; make test and make test-rest run a part.
SWEEP = os.environ.get("PICOTORCH_SWEEP") == "all"
SWEPT_BOARDS = SCRIPT_BOARDS if SWEEP else FAULT_BOARDS

# Features that depend on the board, besides the loops of int8 kernels: floating point in software,
# products of floats, sizes that change, data outside of the program, state, several methods, delegates
OF_EACH_KIND = (
    "add_5", "bmm", "cond_on_a_size", "conv2d_channels_last", "conv2d_depthwise_3x3",
    "conv2d_remainders", "delegate_demo", "double_tensors", "ds_cnn", "dynamic_batch",
    "external_state", "gru_stateful", "half_convolutions", "inline_constants", "kv_cache",
    "linear_remainders", "missing_operators", "number_outputs", "quantize_special_values",
    "two_methods", "unplanned_io")


def is_of_each_kind(name: str) -> bool:
    """Return True for a fixture that make test runs on every board: all of int8 kernels, some of each
    other kind."""
    return name.startswith("int8_") or name in OF_EACH_KIND


def with_prompt(boards: Iterable[str]) -> list:
    """Return the boards as parameters. make test builds one board's prompt."""
    return [name if name == DEFAULT_BOARD else pytest.param(name, marks=pytest.mark.thorough)
            for name in boards]


def mostly_thorough(names: Iterable[str]) -> list:
    """Return the fixtures as parameters. make test runs some of each kind."""
    return [name if is_of_each_kind(name) else pytest.param(name, marks=pytest.mark.thorough)
            for name in names]


def fixtures_on_boards(names: Iterable[str]) -> list:
    """Return (fixture, board) as parameters. All fixtures run on the default board, and in make
    test-rest on one board of each instruction set. Fixtures of int8 kernels, and some of each kind, run
    on every board."""
    found = []
    for name, board in on_boards(names):
        if board == DEFAULT_BOARD or is_of_each_kind(name):
            found.append((name, board))
        elif SWEEP or board in FAULT_BOARDS:
            found.append(pytest.param(name, board, marks=pytest.mark.thorough))
    return found
