"""Choose whose weights an image has in the form that the core's kernels take: where that pays.

Prepared weights take two to four times the bytes of plain ones, and some layers gain nothing by them.
An emulated board counts the instructions of each call with and without; the estimate of their cycles
decides.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picotorch import Error, Program
from picotorch.errors import NOT_FOUND, fail
from picotorch.module import load_with_exact_memories

from ..host.inputs import random_inputs
from ..host.request import Request
from ..host.twin import open_program
from ..measure import fitting, profiling
from .ptm_writer import Image, compile_ptm
from .report import Cost, PackedWeights

Rows = dict[tuple[str, int], dict[str, Any]]  # of a profile, by method and instruction

MIN_GAIN = 0.03  # of the cycles of a call, and of a whole run


def choose(program: bytes, data: Sequence[bytes], name: str, core: str,
           room: Callable[[Image], int | None], min_temp: bool,
           min_gain: float = MIN_GAIN) -> tuple[Image, PackedWeights]:
    """Return the image of a program whose calls have prepared weights if these save more than
    min_gain of their cycles, and together that much of a run; and which it is.

    min_temp: measure with the default temp memory, not with all that the board has.
    room: most bytes that there are for an image, given one without prepared weights; None if that is
    not known. If no board can measure, all calls have them that may.
    """
    full, plain = compile_ptm(program, data, core), compile_ptm(program, data)
    maximum = room(plain)
    try:
        rows = [measured(image, name, core, min_temp) for image in (full, plain)]
    except Error as error:
        image = plain if maximum is not None and len(full.data) > maximum else full
        return image, _report(image, full, plain, ({}, {}), str(error))
    cycles = [{key: row["cycles"] for key, row in each.items()} for each in rows]
    gains = {key: cycles[1][key] - cycles[0][key] for key in cycles[0] if key in _places(full)}
    gainful = {key for key, gain in gains.items() if gain > min_gain * cycles[1][key]}
    # The last of these to leave out is that with the most gain for its bytes.
    kept = sorted(gainful, key=lambda key: (gains[key] / _places(full)[key], key))
    image = plain
    while kept and sum(gains[key] for key in kept) >= min_gain * sum(cycles[1].values()):
        image = compile_ptm(program, data, core, {
            method: {i for one, i in kept if one == method} for method in full.methods})
        if maximum is None or len(image.data) <= maximum:
            break
        kept, image = kept[1:], plain
    return image, _report(image, full, plain, rows, "")


def _places(image: Image) -> dict[tuple[str, int], int]:
    """{(method, instruction): bytes of prepared weights}"""
    return {(method, i): size for method, chunks in image.can_prepare.items()
            for i, size in chunks.items()}


def measured(image: Image, name: str, core: str, min_temp: bool) -> Rows:
    """{(method, instruction): its row of a profile on a board with the core}, of methods with any.
    Raises Error."""
    board = fitting.reference_board(core)
    if board is None:
        raise fail(NOT_FOUND, "not measured: no firmware is built", remedy=fitting.how_to_measure(core))
    program = open_program(image.data)
    found: Rows = {}
    for method in image.methods:
        meta = program.method_meta(method)
        if meta.num_instructions():
            request = Request(image.data, name, random_inputs(meta), method)
            temp = _least_temp(program, method) if min_temp else None
            found |= {(method, row["index"]): row
                      for row in profiling.profile(request, board.name, temp)[0]["instructions"]}
    return found


def _least_temp(program: Program, method: str) -> int:
    used: int = load_with_exact_memories(program, method).memory_report()["temp"]["used"]
    return used


def _report(taken: Image, full: Image, plain: Image, rows: Sequence[Rows],
            message: str) -> PackedWeights:
    kinds = {full.calls_prepared: "all", plain.calls_prepared: "none"}
    all_calls, no_call = (Cost(len(image.data), _sum(each, "ticks"), _sum(each, "cycles"))
                          for image, each in zip((full, plain), rows, strict=True))
    return PackedWeights(kinds.get(taken.calls_prepared, "some"), taken.calls_prepared,
                         full.calls_prepared, all_calls, no_call, message)


def _sum(rows: Rows, key: str) -> int | None:
    return sum(row[key] for row in rows.values()) if rows else None
