"""Run a request with estimated cycles, and on a connected board beside an emulated one."""

from picotorch import Error

from ..boards import boards
from ..host.request import Estimate, Request, Result
from ..run import running
from . import cycles


def run_beside(request: Request, board: str, beside: str | None) -> Result:
    """Return the result of a run with estimated cycles.

    The run of a connected board gets the instructions of the emulated board `beside` and the estimate
    for them.
    """
    result = running.run(request, board)
    if result.connected is not None and beside is not None and beside != running.HOST:
        result.connected.beside = beside
        emulated = running.run(request, beside)
        result.instructions = emulated.instructions
        result.connected.estimated = _estimate(request, emulated, beside, result.connected.clock_hz)
    elif result.connected is None and board != running.HOST:
        estimated = _estimate(request, result, board)
        result.cycles = estimated.cycles if estimated else None
    return result


def _estimate(request: Request, result: Result, board: str,
              clock_hz: int | None = None) -> Estimate | None:
    """Return cycles.estimate of a run on an emulated board; None of one that failed."""
    if result.code or result.instructions is None:
        return None
    core = boards.load_board(board).core
    try:
        operators = cycles.measured_operators(request, board)
        conditions = cycles.conditions_of(request, result, core)
    except Error:  # the run itself went well
        return None
    return cycles.estimate(core, clock_hz, result.instructions["execute"], operators, conditions)
