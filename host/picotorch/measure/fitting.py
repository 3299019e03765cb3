"""Add up the RAM and the flash of a chip that a method needs, in each of two deployments.

"c": the library alone, in a firmware of one's own. "micropython": picotorch's small firmware with
MicroPython, the library and the kernels of this method.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..boards.boards import Board, board_names, load_board
from ..boards.chips import Chip
from ..host.elf import flash_bytes, section_bytes
from ..host.operators import FEATURES, supported_operators
from ..run import emulator
from ..run.listing import is_built
from .flash import flash_of_operators
from .report import Fit, Total
from .stack import FREE

DEPLOYMENTS = {"c": "in C", "micropython": "with MicroPython"}
# pt_program, pt_method_meta, pt_method, pt_error, pt_memories and pt_options
LIBRARY_OBJECTS = 692

# Cores whose kernels are nearly the same: one firmware represents all three.
_DSP = ("cortex-m4", "cortex-m33", "cortex-m7")


class Firmware(NamedTuple):
    """Bytes of a board's firmware besides core and kernels; flash: None if unknown."""

    flash: int | None
    variables: int


def reference_board(core: str) -> Board | None:
    """Return the emulated board that stands for chips of a core, None if no firmware is built."""
    cores = (core, *(one for one in _DSP if one != core)) if core in _DSP else (core,)
    boards = [load_board(name) for name in board_names()]
    for one in cores:
        built = [board for board in boards if board.core == one and board.full_firmware
                 and is_built(board)]
        if built:
            return max(built, key=lambda board: board.job.size)
    return None


def board_with(core: str) -> Board:
    """Return the emulated board that stands for chips of a core, built or not."""
    boards = [load_board(name) for name in board_names()]
    return max((board for board in boards if board.core == core and board.full_firmware),
               key=lambda board: board.job.size)


def how_to_measure(core: str) -> str:
    """Return the advice that names the command for a firmware of a core."""
    return f"to measure, run {board_with(core).build_command()} in picotorch's repository"


def firmware_of(board: Board) -> Firmware:
    """Measure the built firmware with all kernels of a board."""
    return _measured(board.name, emulator.firmware_path(board))


@functools.cache
def _measured(name: str, path: Path) -> Firmware:
    board = load_board(name)
    try:
        kernels = flash_of_operators(board, list(supported_operators()),
                                     features=FEATURES).core_and_kernels
        flash = flash_bytes(path) - kernels
    except emulator.FirmwareMissing:
        flash = None  # the objects are elsewhere
    return Firmware(flash, section_bytes(path, [".data", ".bss"]) - board.heap_size)


class MemoryNeeds(Protocol):
    """Bytes that a method needs. unplanned: of inputs and outputs outside the other memories."""

    @property
    def method_pool(self) -> int: ...  # noqa: D102
    @property
    def planned(self) -> list[int]: ...  # noqa: D102
    @property
    def temp(self) -> int: ...  # noqa: D102
    @property
    def unplanned(self) -> int: ...  # noqa: D102


def memories_of(need: MemoryNeeds) -> dict[str, int]:
    """Return bytes by memory of a method."""
    memories = {"method pool": need.method_pool,
                **{f"planned buffer {i}": size for i, size in enumerate(need.planned)},
                "temp memory": need.temp}
    return memories | ({"inputs, outputs": need.unplanned} if need.unplanned else {})


def parts_of_ram(memories: Mapping[str, int | None], deployment: str, firmware: Firmware | None,
                 stack: int | None = None) -> dict[str, Any]:
    """Return bytes by part: the memories of the method, then those of the software around it.

    None for an unknown part. stack: in C the bound of the kernels, if it is known.
    """
    if deployment == "c":
        return {**memories, "program and method": LIBRARY_OBJECTS, "stack": stack or FREE}
    boards = [load_board(name) for name in board_names()]
    return {**memories, "variables": firmware and firmware.variables,
            "MicroPython's heap": min(board.heap_size for board in boards),
            "stack": min(board.stack_size for board in boards)}


def parts_of_flash(files: dict[str, int], deployment: str, kernels: int | None,
                   firmware: Firmware | None) -> dict[str, Any]:
    """Return bytes of flash by part. files: bytes of the program and its data files."""
    parts = {**files, "core and kernels": kernels}
    if deployment == "micropython":
        parts["MicroPython, runtime"] = firmware and firmware.flash
    return parts


def fit(chip: Chip, ram: dict[str, Any], flash: dict[str, Any]) -> Fit:
    """Return whether a method fits a chip, from its bytes of RAM and flash by part."""
    in_ram = _total(ram, None if chip.ram is None else sum(chip.ram.values()))
    in_flash = _total(flash, chip.flash)
    lacks = [f"{name} lacks {one.all - one.of:,} B"
             for name, one in (("RAM", in_ram), ("flash", in_flash))
             if one.of is not None and one.all > one.of]
    if not lacks and chip.ram is not None:
        part = _unplaced(ram, list(chip.ram.values()))
        lacks += [f"no region of RAM has {ram[part]:,} B for {part}"] if part else []
    is_complete = not any(one.of is not None and None in one.parts.values()
                          for one in (in_ram, in_flash))
    fits = False if lacks else True if is_complete else None
    return Fit(fits, "; ".join(lacks), in_ram, in_flash)


def _total(parts: dict[str, Any], available: int | None) -> Total:
    return Total(parts, sum(filter(None, parts.values())), available)


def _unplaced(parts: dict[str, Any], regions: Sequence[int]) -> str | None:
    """Place the parts, the largest first; return the first part that does not fit, or None.

    Each goes into the smallest region with enough room.
    """
    free = list(regions)
    for name, size in sorted(parts.items(), key=lambda part: -(part[1] or 0)):
        candidates = [i for i, left in enumerate(free) if left >= (size or 0)]
        if not candidates:
            return name
        free[min(candidates, key=free.__getitem__)] -= size or 0
    return None
