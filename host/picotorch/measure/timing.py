"""Estimate the time of a program from a run on the emulated board of a core."""

from typing import Any

from picotorch import Error, Program
from picotorch.module import load_with_exact_memories

from ..host.inputs import random_inputs
from ..host.request import Estimate, Request
from ..host.twin import open_program, preferred_temp
from ..run import running
from . import by_size, cycles, fitting

_CLOCK_HZ = 100_000_000  # that milliseconds are stated for


def estimated(program: bytes, core: str) -> dict[str, Any]:
    """Return the estimated time of a run on a chip.

    It is {"core", "clock_hz", "instructions", "cycles", "ms", "min_ms", "max_ms", "message"}, with the
    temp memory that kernels use, as the RAM of the report has it. "counted" is False if no board of the
    core is built: then see by_size.estimate. If a board cannot run the program, "message" states why,
    and the figures are None.
    """
    return estimated_with_counts(program, core)[0]


def estimated_with_counts(program: bytes, core: str) -> tuple[dict[str, Any], list[int]]:
    """Return the result of estimated, and the instructions that a board counted.

    They are by instruction of the method; an empty list if no board counted.
    """
    board = fitting.reference_board(core)
    entry = {"core": core, "clock_hz": _CLOCK_HZ, **dict.fromkeys(
        ("instructions", "cycles", "ms", "min_ms", "max_ms")), "message": ""}
    try:
        opened = open_program(program)
        if board is None:
            found = _by_size(opened, core)
            return entry | (found.to_json() if found else
                            {"message": fitting.how_to_measure(core)}), []
        used = load_with_exact_memories(opened, "forward").memory_report()["temp"]["used"]
        request = Request(program, "program", random_inputs(opened.method_meta("forward")),
                          pool_size=board.arenas["pool"].size, temp_size=used)
        result = running.run(request, board.name)
        running.check_result(result)
        counts = cycles.measured_counts(request, board.name)
    except Error as error:
        return entry | {"message": error.message}, []
    estimate = cycles.estimate(core, _CLOCK_HZ, (result.instructions or {})["execute"],
                               cycles.by_operator(request, counts),
                               cycles.conditions_of(request, result, core))
    return entry | estimate.to_json(), counts


def _by_size(program: Program, core: str) -> Estimate | None:
    method = load_with_exact_memories(program, "forward")
    used = method.memory_report()["temp"]["used"]
    has_less = cycles.has_less_temp(used, used, preferred_temp(method, core))
    return by_size.estimate(program.method_meta("forward"), core, _CLOCK_HZ,
                            cycles.PLAIN._replace(has_less_temp=has_less))
