"""Tests import their helpers by name: those of this folder, and tests/fixture_store.py."""

import sys
from pathlib import Path

import pytest
from picotorch.host import cli

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@pytest.fixture
def call(capsys):
    """The command line: call(arguments) -> (exit status, stdout, stderr)"""
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return run


def pytest_collection_modifyitems(items):
    """Tests that call kernels outside of programs are marked so: tests/run.py gives them sanitizers."""
    for item in items:
        helpers = {getattr(value, "__module__", None) for value in vars(item.module).values()}
        on_board = "board" in item.name or "board" in getattr(item, "fixturenames", ())
        if not on_board and helpers & {"kernel_call", "board_call"}:
            item.add_marker("kernels")
