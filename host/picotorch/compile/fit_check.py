"""Check that a chip or a board has room for .ptm files, as files of a runner or in a C project."""

from collections.abc import Sequence

from picotorch import MethodMeta
from picotorch.module import load_with_exact_memories

from ..boards.boards import Board
from ..boards.chips import Chip
from ..host.operators import methods_of, needed_features, needed_operators
from ..host.twin import open_program
from ..measure import fitting, sizing
from ..measure.flash import flash_of_operators, flash_of_project
from ..measure.stack import bound_on
from ..package.c_method import only_calls
from ..run.emulator import FirmwareMissing
from .report import Fit, Library, Memories


def library_of(ptms: Sequence[bytes], core: str) -> Library | None:
    """Return the size of the library for a core, from the objects of a board's firmware.

    Return None without any objects.
    """
    board = fitting.reference_board(core)
    if board is None:
        return None
    programs = {str(i): open_program(ptm) for i, ptm in enumerate(ptms)}
    operators, features = needed_operators(programs), needed_features(programs)
    is_static = all(_is_static(meta) for program in programs.values() for meta in methods_of(program))
    try:
        kernels = flash_of_operators(board, operators, features=features).core_and_kernels
        rest = fitting.firmware_of(board).flash
        return Library(flash_of_project(board, operators, features, is_static),
                       rest and kernels + rest, bound_on(board, operators))
    except FirmwareMissing:
        return None


def _is_static(meta: MethodMeta) -> bool:
    if not only_calls(meta):
        return False
    report = load_with_exact_memories(meta.program, meta.name()).memory_report()
    return bool(report["method_pool"]["used"] == 0)


def max_bytes(target: Board | Chip | None, in_c: bool, library: Library | None) -> int | None:
    """Return the maximum size of the .ptm files in bytes, or None if the flash is unknown.

    The result is an upper bound if the size of the library is unknown.
    """
    if target is None:
        return None
    if isinstance(target, Board) and not (in_c or target.job_follows_code):
        return target.job.size
    flash = _chip(target).flash
    return flash if flash is None or library is None else flash - library.flash


def has_room(target: Board | Chip, in_c: bool, needs: Sequence[Memories]) -> bool:
    """Return True if the RAM of a target has room for methods.

    A C project or a chip needs all methods at a time. A board's firmware runs each method by itself, in
    its temp memory.
    """
    if isinstance(target, Board) and not in_c:
        return all(need.temp <= target.arenas["temp"].size for need in needs)
    ram = fitting.parts_of_ram(_memories(needs), "c", None)
    return not fitting.fit(_chip(target), ram, {}).lacks


def _memories(needs: Sequence[Memories]) -> dict[str, int]:
    of_which = [f" of method {i}" if len(needs) > 1 else "" for i in range(len(needs))]
    return {name + which: size for need, which in zip(needs, of_which, strict=True)
            for name, size in fitting.memories_of(need).items()}


def fit(target: Board | Chip, in_c: bool, library: Library | None, sizes: Sequence[int],
        needs: Sequence[Memories]) -> Fit:
    """Return whether .ptm files fit.

    sizes: bytes of the .ptm files. needs: of each method.
    """
    if isinstance(target, Board) and not in_c:
        lacks = _lacking(target, library, sizes[0], needs)
        return Fit(False if lacks else _is_certain(target, library, sizes[0]) or None, lacks)
    stack = None if library is None else library.stack
    found = fitting.fit(_chip(target), fitting.parts_of_ram(_memories(needs), "c", None, stack),
                        {"images": sum(sizes), "library": library and library.flash})
    return Fit(found.fits, found.lacks)


def _chip(target: Board | Chip) -> Chip:
    """Return the chip that a C project for a board uses. Adjacent code and job share one flash."""
    if isinstance(target, Chip):
        return target
    code = target.flash_of_project()
    return Chip(target.name, target.title, target.core, target.clock_hz, code.size,
                {target.data.name: target.data.size})


def _is_certain(board: Board, library: Library | None, size: int) -> bool:
    """Return True if a .ptm file fits beside the largest firmware that it may need on a board.

    _lacking() names the missing memory for the smallest firmware, the library alone.
    """
    if not board.job_follows_code:
        return True
    firmware: int | None = library.firmware if library else None
    return firmware is not None and firmware + size <= board.flash_of_project().size


def _lacking(board: Board, library: Library | None, size: int,
             needs: Sequence[Memories]) -> str:
    """Name the memories of a board's firmware that are too small for a .ptm file, or return ""."""
    available = max_bytes(board, False, library)
    memories = [{"pool": (need.method_pool, board.arenas["pool"].size),
                 **sizing.planned_arenas(board, need.planned, [need.unplanned]),
                 "temp": (need.temp, board.arenas["temp"].size), "model": (size, available)}
                for need in needs]
    lacks = {name: f"{name} needs {needed:,} B of {there:,}" for one in memories
             for name, (needed, there) in one.items() if there is not None and needed > there}
    return "; ".join(lacks.values())
