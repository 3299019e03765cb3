"""Choose the calls whose weights a .ptm file stores packed for the core's kernels.

Packed weights need two to four times the bytes of plain ones, and do not speed up every layer. An
emulated board counts the instructions of each call with and without packed weights, and the estimate of
their cycles decides.
"""

from collections.abc import Callable, Iterable, Sequence

from picotorch import Error, Program
from picotorch.errors import NOT_FOUND, fail
from picotorch.module import load_with_exact_memories

from ..host.inputs import random_inputs
from ..host.request import Request
from ..host.twin import open_program
from ..measure import fitting, profiling
from ..measure.profiling import ProfiledInstruction
from .ptm_writer import Ptm, compile_ptm
from .report import Cost, PackedWeights

Rows = dict[tuple[str, int], ProfiledInstruction]  # rows of a profile, by method and instruction

MIN_GAIN = 0.03  # share of the cycles of a call, and of a whole run


def choose(program: bytes, data: Sequence[bytes], name: str, core: str,
           max_size: Callable[[Ptm], int | None], min_temp: bool,
           min_gain: float = MIN_GAIN) -> tuple[Ptm, PackedWeights]:
    """Choose which calls of a program have packed weights; return the .ptm file and the choice.

    A call has packed weights if these save more than the share min_gain of its cycles. Together they
    have to save this share of the cycles of a run.

    min_temp: measure with the default temp memory, not with all temp memory of the board. max_size: a
    function of the file without packed weights that returns the maximum bytes of the file, or None if
    unknown. If no board can measure, all eligible calls have packed weights.
    """
    full, plain = compile_ptm(program, data, core), compile_ptm(program, data)
    maximum = max_size(plain)
    try:
        rows = [measured(ptm, name, core, min_temp) for ptm in (full, plain)]
    except Error as error:
        ptm = plain if maximum is not None and len(full.data) > maximum else full
        return ptm, _report(ptm, full, plain, ({}, {}), str(error))
    cycles = [{key: row.cost for key, row in each.items()} for each in rows]
    gains = {key: cycles[1][key] - cycles[0][key] for key in cycles[0] if key in _packed_sizes(full)}
    gainful = {key for key, gain in gains.items() if gain > min_gain * cycles[1][key]}
    # The last call to lose its packed weights is the one with the most gain for its bytes.
    kept = sorted(gainful, key=lambda key: (gains[key] / _packed_sizes(full)[key], key))
    ptm = plain
    while kept and sum(gains[key] for key in kept) >= min_gain * sum(cycles[1].values()):
        ptm = compile_ptm(program, data, core, {
            method: {i for one, i in kept if one == method} for method in full.methods})
        if maximum is None or len(ptm.data) <= maximum:
            break
        kept, ptm = kept[1:], plain
    return ptm, _report(ptm, full, plain, rows, "")


def _packed_sizes(ptm: Ptm) -> dict[tuple[str, int], int]:
    """Return {(method, instruction): bytes of packed weights}."""
    return {(method, i): size for method, chunks in ptm.can_pack.items()
            for i, size in chunks.items()}


def measured(ptm: Ptm, name: str, core: str, min_temp: bool) -> Rows:
    """Return {(method, instruction): row of a profile} of methods with packed weights.

    A board with the core measures them. Raises Error.
    """
    board = fitting.reference_board(core)
    if board is None:
        raise fail(NOT_FOUND, "not measured: no firmware is built", remedy=fitting.how_to_measure(core))
    program = open_program(ptm.data)
    found: Rows = {}
    for method in ptm.methods:
        meta = program.method_meta(method)
        if meta.num_instructions():
            request = Request(ptm.data, name, random_inputs(meta), method)
            temp = _min_temp(program, method) if min_temp else None
            profile, _ = profiling.profile(request, board.name, temp)
            found |= {(method, row.index): row for row in profile.instructions}
    return found


def _min_temp(program: Program, method: str) -> int:
    used: int = load_with_exact_memories(program, method).memory_report()["temp"]["used"]
    return used


def _report(selected: Ptm, full: Ptm, plain: Ptm, rows: Sequence[Rows],
            message: str) -> PackedWeights:
    kinds = {full.calls_packed: "all", plain.calls_packed: "none"}
    all_calls, no_call = (Cost(len(ptm.data), _sum(row.ticks for row in each.values()),
                               _sum(row.cost for row in each.values()))
                          for ptm, each in zip((full, plain), rows, strict=True))
    return PackedWeights(kinds.get(selected.calls_packed, "some"), selected.calls_packed,
                         full.calls_packed, all_calls, no_call, message)


def _sum(counts: Iterable[int]) -> int | None:
    """Return the sum of counts, or None without counts."""
    counts = list(counts)
    return sum(counts) if counts else None
