"""Estimate the time of a program from a run on the emulated board of a core."""

from dataclasses import dataclass, field

from picotorch import Error, Program
from picotorch.module import load_with_exact_memories

from ..host.inputs import random_inputs
from ..host.report import OPTIONAL, Report
from ..host.request import Estimate, Request
from ..host.twin import open_program, preferred_temp
from ..run import running
from . import by_size, cycles, fitting

_CLOCK_HZ = 100_000_000  # that milliseconds are stated for


@dataclass(frozen=True)
class Timing(Report):
    """The estimated time of a run on a core.

    It assumes the temp memory that kernels use, as the RAM of a report does. message: the reason if
    no board can run the program; then the figures are None. counted: False if no board of the core is
    built, see by_size.estimate.
    """

    core: str
    clock_hz: int
    instructions: int | None = None
    cycles: int | None = None
    ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    message: str = ""
    counted: bool | None = field(default=None, metadata=OPTIONAL)


def estimated(program: bytes, core: str) -> Timing:
    """Return the estimated time of a run on a chip."""
    try:
        found, _ = _estimate(program, core)
    except Error as error:
        return Timing(core, _CLOCK_HZ, message=error.message)
    if found is None:
        return Timing(core, _CLOCK_HZ, message=fitting.how_to_measure(core))
    return Timing(core, _CLOCK_HZ, **vars(found))


def estimate(program: bytes, core: str) -> tuple[Estimate | None, list[int]]:
    """Return the estimate of a run on a chip, and the instructions that a board counted.

    They are by instruction of the method; an empty list if no board counted. None for unknown.
    """
    try:
        return _estimate(program, core)
    except Error:
        return None, []


def _estimate(program: bytes, core: str) -> tuple[Estimate | None, list[int]]:
    """Return the result of estimate(). Raises Error if the board of the core cannot run the program."""
    board = fitting.reference_board(core)
    opened = open_program(program)
    if board is None:
        return _by_size(opened, core), []
    used = load_with_exact_memories(opened, "forward").memory_report()["temp"]["used"]
    request = Request(program, "program", random_inputs(opened.method_meta("forward")),
                      pool_size=board.arenas["pool"].size, temp_size=used)
    result = running.run(request, board.name)
    running.check_result(result)
    counts = cycles.measured_counts(request, board.name)
    return cycles.estimate(core, _CLOCK_HZ, (result.instructions or {})["execute"],
                           cycles.by_operator(request, counts),
                           cycles.conditions_of(request, result, core)), counts


def _by_size(program: Program, core: str) -> Estimate | None:
    method = load_with_exact_memories(program, "forward")
    used = method.memory_report()["temp"]["used"]
    has_less = cycles.has_less_temp(used, used, preferred_temp(method, core))
    return by_size.estimate(program.method_meta("forward"), core, _CLOCK_HZ,
                            cycles.PLAIN._replace(has_less_temp=has_less))
