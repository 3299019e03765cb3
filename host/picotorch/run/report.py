"""Define the report of picotorch run, and print the result of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from _picotorch import CORES

from ..boards.boards import board_names, load_board
from ..host import show
from ..host.report import MERGED, Report
from ..host.request import Connected, Result, Usage


@dataclass(frozen=True)
class Run(Report):
    """A run. seed: of random inputs, None for inputs of a file."""

    result: Result = field(metadata=MERGED)
    seed: int | None


def show_result(result: Result) -> None:
    """Print the log, then the needs of the run."""
    for line in result.log:
        show.line(line)
    rows = [*_memories(result), *_counts(result)]
    if rows:
        show.heading(f"{result.method} on {result.board}: {result.status}")
        show.table(["", "used>", "size>", "%>"], rows)
    temp = result.temp
    if temp is not None and temp.used > temp.size:
        show.line(f"The kernels would use {temp.used:,} B of temp memory; with less, a run is slower.")
    if result.packed and result.board in board_names():
        show_unused_packing(result.packed, {load_board(result.board).core})
    if result.connected is not None:
        show.line(_where(result.connected))


def show_unused_packing(packed: int, cores: set[str]) -> None:
    """Print a line if kernels of some cores do not use the packed weights in the pool."""
    names = sorted(cores - CORES.keys())
    if packed and names:
        show.line(f"The kernels of {', '.join(names)} do not use the {packed:,} B of weights that "
                  "--pack-weights packs.")


def _where(connected: Connected) -> str:
    """Return one line on a connected board: its name, the model, the source of the instructions."""
    parts = [connected.machine, model_place(connected)]
    if connected.beside is not None:
        parts.append(f"instructions were counted on {connected.beside}, and estimates derive from them")
    return "; ".join(parts)


def model_place(connected: Connected) -> str:
    """Describe where the model of a run was: in the firmware, in a file, or sent."""
    if connected.model_at is None:
        text = "the model was sent into the heap"
    else:
        text = (f"the model is {connected.model_at}, "
                + ("used in place" if connected.in_place else "read into the heap"))
    return text + (f" ({connected.frozen_not_used})" if connected.frozen_not_used else "")


def _memories(result: Result) -> list[list[str]]:
    if result.method_pool is None or result.temp is None:
        return []
    named = [("method pool", result.method_pool)]
    named += [(f"planned buffer {i}", usage) for i, usage in enumerate(result.planned)]
    named.append(("temp memory", result.temp))
    rows = [[name, show.size(usage.available), show.size(usage.size), _percent(usage)]
            for name, usage in named]
    if result.packed:
        rows.insert(1, ["  packed in it", show.size(result.packed), "", ""])
    return rows


def _percent(usage: Usage) -> str:
    return f"{100 * usage.available // usage.size} %" if usage.size else ""


def _estimate(connected: Connected, label: str) -> list[list[str]]:
    """Return the row below a measured time or count of cycles."""
    found = connected.estimated
    if found is None:
        return []
    if label == "time" and found.ms is not None:
        text = f"{found.ms:,} ms ({found.min_ms:,} to {found.max_ms:,})"
    elif label == "cycles":
        text = f"{found.cycles:,}"
    else:
        return []
    return [["  estimated", text, "", ""]]


def _counts(result: Result) -> list[list[str]]:
    connected = result.connected or Connected("")
    rows: list[list[str]] = []
    measured: list[tuple[str, Mapping[str, float | None] | None, str]] = [
        ("time", connected.milliseconds, " ms"), ("cycles", connected.cycles, ""),
        ("instructions", result.instructions, ""), ("stack", result.stack, " B")]
    for label, counts, unit in measured:
        for phase, count in (counts or {}).items():
            if count is not None:
                rows.append([f"{label} to {phase.replace('_', ' ')}", f"{count:,}{unit}", "", ""])
                if phase == "execute":
                    rows += _estimate(connected, label)
                    if label == "instructions" and result.cycles is not None:
                        rows.append(["  about cycles", f"{result.cycles:,}", "", ""])
    for when, count in connected.heap_free.items():
        if count is not None:
            rows.append([f"heap free {when}", show.size(count), "", ""])
    if result.heap_bytes_allocated is not None:
        rows.append(["heap allocated", show.size(result.heap_bytes_allocated), "", ""])
    return rows
