"""Parameters of tests for which make test builds the firmware of some boards only."""

from collections.abc import Iterable

import pytest
from picotorch.run.running import DEFAULT_BOARD


def with_prompt(boards: Iterable[str]) -> list:
    """Return the boards as parameters. make test builds one board's prompt."""
    return [name if name == DEFAULT_BOARD else pytest.param(name, marks=pytest.mark.thorough)
            for name in boards]
