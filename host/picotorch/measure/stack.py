"""Return the stack bound of a method on a board, as the build of the firmware found it.

tools/stack_bounds.py computes the figures, from all paths through the kernels. There are none for
loading, which is mostly Python: its stack is the same in every run of a program, so a run measures it.
"""

import json
from pathlib import Path
from typing import Any

from ..boards.boards import Board
from ..run import emulator

FREE = 2304  # bytes that load, execute, step and unload have to find: PT_STACK_BYTES of port/module


def read_bounds(firmware: Path) -> dict[str, Any]:
    """Read the figures beside a firmware. Raises FileNotFoundError if another make built it."""
    bounds: dict[str, Any] = json.loads((firmware.parent / "stack.json").read_text())
    return bounds


def execute_bound(bounds: dict[str, Any], operators: list[str]) -> int:
    """Return the stack bound of executing a method, without its delegates."""
    kernels = [max(bounds["kernels"][name].values()) for name in operators]
    maximum: int = bounds["execute"] + max([bounds["called_back"], *kernels])
    return maximum


def bound_on(board: Board, operators: list[str]) -> int | None:
    """Return execute_bound of the board's firmware, None if it is not built or lacks these kernels."""
    try:
        return execute_bound(read_bounds(emulator.firmware_path(board)), operators)
    except (emulator.FirmwareMissing, FileNotFoundError, KeyError):
        return None
