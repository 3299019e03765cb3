"""picotorch boards: what boards there are."""

import click

from .. import show
from ..run import emulator
from ..run.running import DEFAULT_BOARD
from .boards import Board, board_names, full_board_names, load_board


def boards() -> list[dict]:
    """The boards as plain data."""
    return [_entry(load_board(name)) for name in board_names()]


def full_boards() -> list[str]:
    """The names of the boards that have a firmware with all kernels; says which are left out."""
    full = full_board_names()
    for name in board_names():
        if name not in full:
            click.echo(f"{name}: left out, it has no firmware with all kernels", err=True)
    return full


def _entry(board: Board) -> dict:
    return {
        "board": board.name,
        "title": board.title,
        "core": board.core,
        "default": board.name == DEFAULT_BOARD,
        "arenas": {arena.name: arena.size for arena in board.arenas.values()},
        "places": {arena.name: arena.memory for arena in board.arenas.values()},
        "code": board.code.size,
        "model": board.job.size,
        "stack": board.stack_size,
        "heap": board.heap_size,
        "built": is_built(board),
        "build": board.build_command(),
    }


def is_built(board: Board) -> bool:
    """True when the board's firmware is there."""
    try:
        emulator.firmware_path(board)
    except emulator.FirmwareMissing:
        return False
    return True


def show_text(entries: list[dict]) -> None:
    planned = sorted({name for entry in entries for name in entry["arenas"]
                      if name.startswith("planned")})
    names = ["pool", *planned, "temp"]
    show.table(["board", "core", *[name + ">" for name in names], "stack>", "model>", "firmware", ""], [
        [entry["board"], entry["core"], *[_arena(entry, name) for name in names],
         _kib(entry["stack"]), _kib(entry["model"]),
         "built" if entry["built"] else entry["build"],
         "default" if entry["default"] else ""] for entry in entries])
    click.echo("\nhost: the twin, which runs the same loader and kernels; it has what you give it.")


def _arena(entry, name):
    """Size and memory of an arena."""
    if name not in entry["arenas"]:
        return "-"
    return f"{_kib(entry['arenas'][name])} {entry['places'][name]}"


def _kib(count):
    return f"{count / 1024:g} KiB"
