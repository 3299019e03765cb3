"""Estimate the time of a program from a run on the emulated board of a core."""

from picotorch import Error
from picotorch.module import load_with_exact_memories

from ..inputs import random_inputs
from ..run import running
from ..run.request import Request
from ..size import cycles, fitting
from ..twin import open_program

_CLOCK_HZ = 100_000_000  # that milliseconds are stated for


def estimated(program: bytes, core: str) -> dict:
    """Return {"core", "clock_hz", "instructions", "cycles", "ms", "least_ms", "most_ms", "message"},
    with the temp memory that kernels use, as the RAM of the report has it. If no board of the core is
    built or it cannot run the program, "message" tells why, and the figures are None."""
    board = fitting.reference_board(core)
    entry = {"core": core, "clock_hz": _CLOCK_HZ, **dict.fromkeys(
        ("instructions", "cycles", "ms", "least_ms", "most_ms")), "message": ""}
    if board is None:
        return entry | {"message": fitting.how_to_measure(core)}
    try:
        opened = open_program(program)
        used = load_with_exact_memories(opened, "forward").memory_report()["temp"]["used"]
        request = Request(program, "program", random_inputs(opened.method_meta("forward")),
                          pool_size=board.arenas["pool"].size, temp_size=used)
        result = running.run(request, board.name)
        running.check_result(result)
        operators = cycles.measured_operators(request, board.name)
    except Error as error:
        return entry | {"message": error.message}
    return entry | cycles.estimate(core, _CLOCK_HZ, result.instructions["execute"], operators,
                                   cycles.conditions_of(request, result, core))
