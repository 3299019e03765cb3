"""Summarize a .ptm file: flash and RAM by part, the time of a run, and the slowest instructions."""

import dataclasses
from typing import Any

from picotorch import Error, MethodMeta

from ..boards.boards import Board
from ..host import show
from ..host.inputs import random_inputs
from ..host.request import Estimate, Request
from ..host.twin import open_program
from ..measure import by_size, cycles, fitting, profiling
from .ptm_writer import Ptm
from .report import (
    Compiled,
    CompiledMethod,
    CompiledModel,
    Fit,
    Library,
    Memories,
    OtherTemp,
    PackedWeights,
    SlowInstruction,
)

_SLOWEST = 5


def measured(model: CompiledModel, ptm: Ptm, core: str, clock_hz: int | None) -> CompiledModel:
    """Add the time and the slowest instructions of each method, counted by an emulated board.

    Without a board of the core the time is estimated from the sizes of the tensors, with the same temp
    memory, and there are no slowest instructions.
    """
    board = fitting.reference_board(core)
    message = "" if board else f"not measured: no firmware is built; {fitting.how_to_measure(core)}"
    program, methods = open_program(ptm.data), []
    for method in model.methods:
        meta = program.method_meta(method.method)
        if method.constant:
            methods.append(method)
            continue
        if board is not None:
            try:
                methods.append(_measured(meta, method, ptm, board, core, clock_hz))
                continue
            except Error as error:
                message = str(error)
        methods.append(_by_size(meta, method, ptm, core, clock_hz))
    return dataclasses.replace(model, methods=methods, clock_hz=clock_hz,
                               measured_on=board.name if board else None, message=message)


def _conditions(method: CompiledMethod, ptm: Ptm, core: str, temp: int) -> cycles.RunConditions:
    return cycles.conditions(ptm.data, core, 0, cycles.has_less_temp(
        temp, method.min_temp, method.temp_fastest))


def _other_temp(method: CompiledMethod) -> int | None:
    """Return the other size of temp memory, or None without a choice."""
    minimum, fastest = method.min_temp, method.temp_fastest
    return None if minimum == fastest else fastest if method.after.temp == minimum else minimum


def _by_size(meta: MethodMeta, method: CompiledMethod, ptm: Ptm, core: str,
             clock_hz: int | None) -> CompiledMethod:
    """Estimate the figures of measured() from the sizes of the tensors."""
    def time(temp: int) -> Estimate | None:
        return by_size.estimate(meta, core, clock_hz, _conditions(method, ptm, core, temp))

    found, other = time(method.after.temp), _other_temp(method)
    other_time = None if other is None else time(other)
    other_temp = None
    if found is not None and other is not None and other_time is not None:
        other_temp = OtherTemp(other, other_time.instructions, other_time.cycles)
    return dataclasses.replace(method, time=found, other_temp=other_temp)


def _measured(meta: MethodMeta, method: CompiledMethod, ptm: Ptm, board: Board, core: str,
              clock_hz: int | None) -> CompiledMethod:
    request = Request(ptm.data, meta.name(), random_inputs(meta), meta.name())
    temp = method.after.temp
    profile, _ = profiling.profile(request, board.name, temp)
    rows = sorted(profile.instructions, key=lambda row: row.cost, reverse=True)[:_SLOWEST]
    time = cycles.estimate(core, clock_hz, profile.total, profile.ticks_by_operator(),
                           _conditions(method, ptm, core, temp))
    return dataclasses.replace(method, time=time, other_temp=_with_other_temp(request, board, method),
                               slowest=[SlowInstruction(row.index, row.call, row.shapes, row.ticks,
                                                        row.cycles, row.share) for row in rows])


def _with_other_temp(request: Request, board: Board, method: CompiledMethod) -> OtherTemp | None:
    """Measure a run with the other size of temp memory. Return None without a choice."""
    other = _other_temp(method)
    if other is None:
        return None
    profile, _ = profiling.profile(request, board.name, other)
    return OtherTemp(other, profile.total, profile.execute().cost)


# ---- for people


def show_text(found: Compiled) -> None:
    """Print the summary of each .ptm file, and the files of a C project that were kept."""
    several = len(found.models) > 1
    for i, entry in enumerate(found.models):
        if i:
            show.line("")
        _show(entry, found.library, f" of {entry.model}" if several else "")
    if found.library is not None:
        show.line("Library and kernels are an estimate for a C project (--c); main.c and start-up code "
                  "come on top.")
    if found.target is not None and found.fit is not None:
        _show_fit(found.target, found.fit)
    for path in found.kept or ():
        path = f"{found.output}/{path}"
        show.line(f"{path} has your changes and was kept: merge {path}.new, which fits "
                  f"{'these models' if several else 'this model'}, into it, and remove {path}.new.")


def _show_fit(target: str, fit: Fit) -> None:
    words = {True: "fits", False: "DOES NOT FIT", None: "not known whether it fits"}
    show.line(f"{target}: {words[fit.fits]}{': ' if fit.lacks else ''}{fit.lacks}")


def _show(entry: CompiledModel, library: Library | None, of_model: str) -> None:
    show.line(f"{entry.model}: {show.size(entry.model_bytes)}; {entry.output}: "
              f"{show.size(entry.bytes)}, for {entry.core}")
    show.heading(f"Flash{of_model}")
    rows: list[list[Any]] = [[name, size] for name, size in entry.flash.items() if size]
    padding = entry.bytes - sum(entry.flash.values())
    rows += [["alignment", padding]] if padding else []
    code = library.flash if library else 0
    if library:
        rows += [[".ptm file", entry.bytes], ["library, kernels", code]]
    _table("part", ["bytes"], rows, entry.bytes + code)
    if entry.packed_weights:
        _show_packed(entry.packed_weights)
    methods = [method for method in entry.methods if not method.constant]
    for method in methods:
        of_method = of_model if len(methods) == 1 else f" of method {method.method}{of_model}"
        _show_ram(method, library.stack if library else None, of_method)
        if method.time:
            _show_time(method, of_method, entry)
    for note in filter(None, [*entry.notes, entry.message]):
        show.line(note)


def _table(name: str, columns: list[str], rows: list[list[Any]], *sums: int | None) -> None:
    show.table([name, *[column + ">" for column in columns]], [
        [row[0], *["-" if cell is None else f"{cell:,}" for cell in row[1:]]]
        for row in [*rows, ["all", *sums]]])


def _show_packed(packed: PackedWeights) -> None:
    show.heading("Packed weights")
    selected = {"all": f"packed weights of all {packed.can} calls",
                "some": f"packed weights of {packed.calls} of {packed.can} calls",
                "none": "no packed weights"}
    show.table(["of", ".ptm file>", "instructions>", "cycles>"], [
        [words, *["-" if count is None else f"{count:,}" for count in
                  (cost.bytes, cost.instructions, cost.cycles)]]
        for cost, words in ((packed.all, f"all {packed.can} calls (--optimize speed)"),
                            (packed.none, "no call (--optimize size)"))])
    measured = packed.all.cycles is not None
    reason = "" if measured else "; nothing was measured"
    show.line(f"Selected: {selected[packed.selected]}{reason}.")


def _show_ram(method: CompiledMethod, stack: int | None, of_method: str) -> None:
    show.heading(f"RAM{of_method}")
    before, after = ({} if need is None else _parts(need, stack)
                     for need in (method.before, method.after))
    rows = [[name, before.get(name), size] for name, size in after.items()]
    _table("part", ["loaded from the program", ".ptm file"], rows,
           sum(before.values()) if before else None, sum(after.values()))


def _parts(need: Memories, stack: int | None) -> dict[str, int]:
    return fitting.parts_of_ram(fitting.memories_of(need), "c", None, stack)


def _show_time(method: CompiledMethod, of_method: str, entry: CompiledModel) -> None:
    time = method.time
    assert time is not None
    show.heading(f"Time{of_method}")
    cost = f"{time.instructions:,} instructions, about {time.cycles:,} cycles"
    if time.ms is not None and entry.clock_hz is not None:
        cost += (f": {time.ms:.3g} ms at {entry.clock_hz / 1e6:g} MHz ({time.min_ms:.3g} to "
                 f"{time.max_ms:.3g})")
    show.line(cost)
    if time.counted:
        show.line(f"Counted on {entry.measured_on}; cycles and milliseconds are estimates.")
    else:
        show.line("All are estimates, from the sizes of the tensors.")
    other = method.other_temp
    if other:
        show.line(f"RAM and time assume {method.after.temp:,} B of temp memory; with "
                  f"{other.temp:,} B a run takes about {other.cycles:,} cycles.")
    if not method.slowest:
        return
    show.table(["slowest", "operator", "instructions>", "cycles>", "of cycles>"], [
        [row.index, row.call, f"{row.ticks:,}", f"{row.cycles:,}", f"{100 * row.share:.1f} %"]
        for row in method.slowest])
