"""List the boards: picotorch boards."""

from dataclasses import dataclass

import click

from ..boards.boards import Board, board_names, full_board_names, load_board
from ..host import show
from ..host.report import Report
from . import emulator
from .running import DEFAULT_BOARD


@dataclass(frozen=True)
class ListedBoard(Report):
    """An emulated board. Sizes in bytes.

    arenas, memories: by arena, its size and its memory. flash, ram: of a C project. model: of a file of
    the runner. build: the command that builds its firmware.
    """

    board: str
    title: str
    core: str
    default: bool
    arenas: dict[str, int]
    memories: dict[str, str]
    flash: int
    ram: int
    code: int
    model: int
    stack: int
    heap: int
    built: bool
    build: str


@dataclass(frozen=True)
class Boards(Report):
    """All emulated boards."""

    boards: list[ListedBoard]


def boards() -> Boards:
    """Return the boards."""
    return Boards([_listed(load_board(name)) for name in board_names()])


def full_boards() -> list[str]:
    """Return the names of the boards that have a firmware with all kernels; print the others."""
    full = full_board_names()
    for name in board_names():
        if name not in full:
            show.line(f"{name}: left out, it has no firmware with all kernels", err=True)
    return full


def _listed(board: Board) -> ListedBoard:
    return ListedBoard(
        board=board.name, title=board.title, core=board.core, default=board.name == DEFAULT_BOARD,
        arenas={arena.name: arena.size for arena in board.arenas.values()},
        memories={arena.name: arena.memory for arena in board.arenas.values()},
        flash=board.flash_of_project().size, ram=board.data.size, code=board.code.size,
        model=board.job.size, stack=board.stack_size, heap=board.heap_size, built=is_built(board),
        build=board.build_command())


def is_built(board: Board) -> bool:
    """Return True if the board's firmware is built."""
    try:
        emulator.firmware_path(board)
    except emulator.FirmwareMissing:
        return False
    return True


def show_text(found: Boards) -> None:
    show.table(["board", "core", "flash KiB>", "RAM KiB>", "firmware", ""], [
        [one.board, one.core, _kib(one.flash), _kib(one.ram), "built" if one.built else "not built",
         "default" if one.default else ""] for one in found.boards])
    show.heading("Memories in KiB")
    show.table(["board", "pool>", "temp>", "stack>", "model>", "planned buffers"], [
        [one.board, _kib(one.arenas["pool"]), _kib(one.arenas["temp"]), _kib(one.stack),
         _kib(one.model), _planned(one)] for one in found.boards])
    click.echo("\nhost: the twin, with the same loader and kernels; you choose its memory sizes.")
    commands = sorted({_with_name(one) for one in found.boards if not one.built})
    if commands:
        click.echo("\nTo build a firmware, in picotorch's repository:")
        for command in commands:
            show.line(f"  {command}")


def _planned(one: ListedBoard) -> str:
    """Return the sizes and memories of the arenas for planned buffers."""
    return ", ".join(f"{_kib(size)} {one.memories[name]}"
                     for name, size in sorted(one.arenas.items()) if name.startswith("planned"))


def _with_name(one: ListedBoard) -> str:
    """Return the command that builds the firmware of a board, shared by boards with all kernels."""
    return one.build.replace(f"BOARD={one.board}", "BOARD=NAME")


def _kib(count: float) -> str:
    return f"{count / 1024:g}"
