"""Check if a chip or a board has room for images: as files that a runner takes, or in a C project."""

from collections.abc import Sequence
from typing import Any

from picotorch import Program
from picotorch.module import load_with_exact_memories

from ..boards.boards import Board
from ..boards.chips import Chip
from ..host.operators import needed_features, needed_operators
from ..host.twin import open_program
from ..measure import fitting, sizing
from ..measure.flash import flash_of_operators, flash_of_project
from ..measure.stack import bound_on
from ..package.c_method import only_calls
from ..run.emulator import FirmwareMissing
from .report import Memories


def library_of(images: Sequence[bytes], core: str) -> dict[str, Any] | None:
    """Return "flash" and "stack", bytes of library and kernels in a C project of images for a core,
    from the objects of a board's firmware, main.c and start-up not included; and "firmware", bytes of
    flash of picotorch's small firmware with MicroPython and these kernels. None without any objects."""
    board = fitting.reference_board(core)
    if board is None:
        return None
    programs = {str(i): open_program(image) for i, image in enumerate(images)}
    operators, features = needed_operators(programs), needed_features(programs)
    is_static = all(_is_static(program, name)
                    for program in programs.values() for name in program.method_names)
    try:
        kernels = flash_of_operators(board, operators, features=features)["core_and_kernels"]
        rest = fitting.firmware_of(board).flash
        return {"flash": flash_of_project(board, operators, features, is_static),
                "firmware": rest and kernels + rest,
                "stack": bound_on(board, operators)}
    except FirmwareMissing:
        return None


def _is_static(program: Program, name: str) -> bool:
    report = load_with_exact_memories(program, name).memory_report()
    return report["method_pool"]["used"] == 0 and only_calls(program.method_meta(name))


def max_bytes(target: Board | Chip | None, in_c: bool, library: dict[str, Any] | None) -> int | None:
    """Return the bytes of flash that images can have, the most if those of the library are unknown;
    None if nothing is known."""
    if target is None:
        return None
    if isinstance(target, Board) and not (in_c or target.job_follows_code):
        return target.job.size
    flash = _chip(target).flash
    return flash if flash is None or library is None else flash - library["flash"]


def has_room(target: Board | Chip, in_c: bool, needs: Sequence[Memories]) -> bool:
    """Return whether the RAM of a target has room for methods: all at a time in a C project or on a
    chip, each by itself in the temp memory of a board's firmware."""
    if isinstance(target, Board) and not in_c:
        return all(need.temp <= target.arenas["temp"].size for need in needs)
    ram = fitting.parts_of_ram(_memories(needs), "c", None)
    return not fitting.fit(_chip(target), ram, {})["lacks"]


def _memories(needs: Sequence[Memories]) -> dict[str, int]:
    of_which = [f" of method {i}" if len(needs) > 1 else "" for i in range(len(needs))]
    return {name + which: size for need, which in zip(needs, of_which, strict=True)
            for name, size in fitting.memories_of(need.to_json()).items()}


def fit(target: Board | Chip, in_c: bool, library: dict[str, Any] | None, sizes: Sequence[int],
        needs: Sequence[Memories]) -> dict[str, Any]:
    """{"fits": None if an unknown part decides it, "lacks": the reason if it does not}. sizes: bytes of
    the images; needs: of each method."""
    if isinstance(target, Board) and not in_c:
        lacks = _lacking(target, library, sizes[0], needs)
        return {"fits": False if lacks else _is_certain(target, library, sizes[0]) or None,
                "lacks": lacks}
    stack = None if library is None else library["stack"]
    found = fitting.fit(_chip(target), fitting.parts_of_ram(_memories(needs), "c", None, stack),
                        {"images": sum(sizes), "library": library and library["flash"]})
    return {"fits": found["fits"], "lacks": found["lacks"]}


def _chip(target: Board | Chip) -> Chip:
    """The chip that a C project for a board sees: code and job lie in one flash where they touch."""
    if isinstance(target, Chip):
        return target
    code = target.flash_of_project()
    return Chip(target.name, target.title, target.core, target.clock_hz, code.size,
                {target.data.name: target.data.size})


def _is_certain(board: Board, library: dict[str, Any] | None, size: int) -> bool:
    """Return whether an image fits beside the largest firmware of a board that it needs. What it lacks
    is found with the smallest: the library alone."""
    if not board.job_follows_code:
        return True
    firmware: int | None = library["firmware"] if library else None
    return firmware is not None and firmware + size <= board.flash_of_project().size


def _lacking(board: Board, library: dict[str, Any] | None, size: int,
             needs: Sequence[Memories]) -> str:
    """Say which memories of a board's firmware are too small for an image; "" if none is."""
    room = max_bytes(board, False, library)
    memories = [{"pool": (need.method_pool, board.arenas["pool"].size),
                 **sizing.planned_arenas(board, need.planned, [need.unplanned]),
                 "temp": (need.temp, board.arenas["temp"].size), "model": (size, room)}
                for need in needs]
    lacks = {name: f"{name} needs {needed:,} B of {there:,}" for one in memories
             for name, (needed, there) in one.items() if there is not None and needed > there}
    return "; ".join(lacks.values())
