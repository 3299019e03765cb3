"""Whether a method fits a chip: all that its RAM and its flash have to hold, in each of two ways.

"c": the library alone, in a firmware of one's own. "micropython": picotorch's small firmware with
MicroPython, the library and the kernels of this method.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

from ..boards.boards import Board, board_names, load_board
from ..boards.chips import Chip
from ..boards.listing import is_built
from ..operators import known_operators
from ..run import emulator
from .elf import flash_bytes, section_bytes
from .flash import flash_of_operators
from .stack import FREE

WAYS = {"c": "in C", "micropython": "with MicroPython"}
LIBRARY_OBJECTS = 676  # pt_program, pt_plan, pt_method, pt_error, and the pt_memories and pt_options

# Cores whose kernels are nearly the same: one firmware tells of all three.
_DSP = ("cortex-m4", "cortex-m33", "cortex-m7")


class Firmware(NamedTuple):
    """Bytes that the firmware of a board with MicroPython takes besides core and kernels; flash: None
    where that is not known here."""

    board: str
    flash: int | None
    variables: int


def reference_board(core: str) -> Board | None:
    """The emulated board that stands for chips of a core, None where no firmware of one is built."""
    cores = (core, *(one for one in _DSP if one != core)) if core in _DSP else (core,)
    boards = [load_board(name) for name in board_names()]
    for one in cores:
        built = [board for board in boards if board.core == one and board.full_firmware
                 and is_built(board)]
        if built:
            return max(built, key=lambda board: board.job.size)
    return None


def how_to_measure(core: str) -> str:
    """What builds a firmware that stands for chips of a core."""
    boards = [load_board(name) for name in board_names()]
    board = max((board for board in boards if board.core == core and board.full_firmware),
                key=lambda board: board.job.size)
    return f"{board.build_command()} makes what time and kernels are measured with"


def firmware_of(board: Board) -> Firmware:
    """Measure a built firmware with all kernels."""
    return _measured(board.name, emulator.firmware_path(board))


@functools.cache
def _measured(name, path):
    board = load_board(name)
    try:
        kernels = flash_of_operators(board, list(known_operators()), images=True)["core_and_kernels"]
        flash = flash_bytes(path) - kernels
    except emulator.FirmwareMissing:
        flash = None  # the objects are elsewhere
    return Firmware(board.name, flash, section_bytes(path, [".data", ".bss"]) - board.heap_size)


def parts_of_ram(memories: dict[str, int], way: str, firmware: Firmware | None) -> dict:
    """Bytes by what takes them: the memories of the method, then what runs it. None: not known."""
    if way == "c":
        return {**memories, "program and method": LIBRARY_OBJECTS, "stack": FREE}
    boards = [load_board(name) for name in board_names()]
    return {**memories, "variables": firmware and firmware.variables,
            "MicroPython's heap": min(board.heap_size for board in boards),
            "stack": min(board.stack_size for board in boards)}


def parts_of_flash(files: dict[str, int], way: str, kernels: int | None,
                   firmware: Firmware | None) -> dict:
    """The same of flash. files: the program and its data files."""
    parts = {**files, "core and kernels": kernels}
    if way == "micropython":
        parts["MicroPython, runtime"] = firmware and firmware.flash
    return parts


def fit(chip: Chip, ram: dict, flash: dict) -> dict:
    """{"fits", "lacks": why it does not, "ram", "flash"}, of these {"parts", "all": of the known ones,
    "of"}."""
    entry = {"ram": _sum(ram, None if chip.ram is None else sum(chip.ram.values())),
             "flash": _sum(flash, chip.flash)}
    lacks = [f"{name} lacks {one['all'] - one['of']:,} B"
             for name, one in (("RAM", entry["ram"]), ("flash", entry["flash"]))
             if one["of"] is not None and one["all"] > one["of"]]
    if not lacks and chip.ram is not None:
        part = _without_place(ram, list(chip.ram.values()))
        lacks += [f"no region of RAM has {ram[part]:,} B for {part}"] if part else []
    return {"fits": not lacks, "lacks": "; ".join(lacks), **entry}


def _sum(parts, available):
    return {"parts": parts, "all": sum(filter(None, parts.values())), "of": available}


def _without_place(parts: dict, regions: Sequence[int]) -> str | None:
    """The first part that has no place when the largest are placed first, each in the smallest region
    that has room; None where all have."""
    free = list(regions)
    for name, size in sorted(parts.items(), key=lambda part: -(part[1] or 0)):
        rooms = [i for i, room in enumerate(free) if room >= (size or 0)]
        if not rooms:
            return name
        free[min(rooms, key=free.__getitem__)] -= size or 0
    return None
