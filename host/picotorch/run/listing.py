"""List the boards: picotorch boards."""

from typing import Any

import click

from ..boards.boards import Board, board_names, full_board_names, load_board
from ..host import show
from . import emulator
from .running import DEFAULT_BOARD


def boards() -> list[dict[str, Any]]:
    """Return the boards as plain data."""
    return [_entry(load_board(name)) for name in board_names()]


def full_boards() -> list[str]:
    """Return the names of the boards that have a firmware with all kernels; print the others."""
    full = full_board_names()
    for name in board_names():
        if name not in full:
            show.line(f"{name}: left out, it has no firmware with all kernels", err=True)
    return full


def _entry(board: Board) -> dict[str, Any]:
    return {
        "board": board.name,
        "title": board.title,
        "core": board.core,
        "default": board.name == DEFAULT_BOARD,
        "arenas": {arena.name: arena.size for arena in board.arenas.values()},
        "memories": {arena.name: arena.memory for arena in board.arenas.values()},
        "flash": board.flash_of_project().size,
        "ram": board.data.size,
        "code": board.code.size,
        "model": board.job.size,
        "stack": board.stack_size,
        "heap": board.heap_size,
        "built": is_built(board),
        "build": board.build_command(),
    }


def is_built(board: Board) -> bool:
    """Return True if the board's firmware is built."""
    try:
        emulator.firmware_path(board)
    except emulator.FirmwareMissing:
        return False
    return True


def show_text(found: dict[str, Any]) -> None:
    entries = found["boards"]
    show.table(["board", "core", "flash KiB>", "RAM KiB>", "firmware", ""], [
        [entry["board"], entry["core"], _kib(entry["flash"]), _kib(entry["ram"]),
         "built" if entry["built"] else "not built", "default" if entry["default"] else ""]
        for entry in entries])
    show.heading("Memories in KiB")
    show.table(["board", "pool>", "temp>", "stack>", "model>", "planned buffers"], [
        [entry["board"], _kib(entry["arenas"]["pool"]), _kib(entry["arenas"]["temp"]),
         _kib(entry["stack"]), _kib(entry["model"]), _planned(entry)] for entry in entries])
    click.echo("\nhost: the twin, which runs the same loader and kernels; it has what you give it.")
    commands = sorted({_with_name(entry) for entry in entries if not entry["built"]})
    if commands:
        click.echo("\nTo build a firmware, in picotorch's repository:")
        for command in commands:
            show.line(f"  {command}")


def _planned(entry: dict[str, Any]) -> str:
    """Return the sizes and memories of the arenas for planned buffers."""
    return ", ".join(f"{_kib(size)} {entry['memories'][name]}"
                     for name, size in sorted(entry["arenas"].items()) if name.startswith("planned"))


def _with_name(entry: dict[str, Any]) -> str:
    """Return the command that builds the firmware of a board, shared by boards with all kernels."""
    build: str = entry["build"]
    return build.replace(f"BOARD={entry['board']}", "BOARD=NAME")


def _kib(count: float) -> str:
    return f"{count / 1024:g}"
