"""Print the result of a run, as JSON and for people."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from _picotorch import CORES

from ..boards.boards import board_names, load_board
from ..host import show
from ..host.request import Connected, Result, Usage


def result_entry(result: Result) -> dict[str, Any]:
    """Return the fields of `run --json`."""
    return {
        "model": result.model,
        "method": result.method,
        "board": result.board,
        "status": result.status,
        "error": show.error(result.code, result.status, result.message) if result.code else None,
        "instructions": result.instructions,
        "cycles": result.cycles,
        "method_pool": _usage(result.method_pool),
        "packed": result.packed,
        "planned": [_usage(usage) for usage in result.planned],
        "temp": _usage(result.temp),
        "stack": result.stack,
        "heap_bytes_allocated": result.heap_bytes_allocated,
        "outputs": [{"dtype": output.dtype.name, "sizes": list(output.shape),
                     "values": output.tolist()} for output in result.outputs],
        **connected_entry(result),
    }


def connected_entry(result: Result) -> dict[str, Any]:
    """Return "connected" with the facts of a connected board; nothing of other runs."""
    return {} if result.connected is None else {"connected": dataclasses.asdict(result.connected)}


def connected_of(entry: dict[str, Any]) -> Connected | None:
    """Return the facts that connected_entry() gave an entry; None for an entry of another run."""
    return Connected(**entry["connected"]) if "connected" in entry else None


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    return None if usage is None else dataclasses.asdict(usage)


def show_result(result: Result) -> None:
    """Return the log, then what the run needed."""
    for line in result.log:
        show.line(line)
    rows = [*_memories(result), *_counts(result)]
    if rows:
        show.heading(f"{result.method} on {result.board}: {result.status}")
        show.table(["", "used>", "of>", "%>"], rows)
    temp = result.temp
    if temp is not None and temp.used > temp.size:
        show.line(f"Kernels would use {temp.used:,} B of temp memory: with less it takes longer.")
    if result.packed and result.board in board_names():
        show_unused_packing(result.packed, {load_board(result.board).core})
    if result.connected is not None:
        show.line(_where(result.connected))


def show_unused_packing(packed: int, cores: set[str]) -> None:
    """Print a line if kernels of some cores do not use the bytes of packed weights in the pool."""
    names = sorted(cores - CORES.keys())
    if packed and names:
        show.line(f"The kernels of {', '.join(names)} gain nothing by the {packed:,} B that "
                  "--pack-weights takes.")


def _where(connected: Connected) -> str:
    """Write one line on the memory that a connected board used."""
    parts = [connected.machine, model_place(connected)]
    if connected.beside is not None:
        parts.append(f"instructions are those of {connected.beside}, and estimates are made of them")
    return "; ".join(parts)


def model_place(connected: Connected) -> str:
    """Write where the model of a run was: in the firmware, in a file, or sent."""
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
    rows = [[name, show.size(usage.taken), show.size(usage.size), _percent(usage)]
            for name, usage in named]
    if result.packed:
        rows.insert(1, ["  packed in it", show.size(result.packed), "", ""])
    return rows


def _percent(usage: Usage) -> str:
    return f"{100 * usage.taken // usage.size} %" if usage.size else ""


def _estimate(connected: Connected, label: str) -> list[list[str]]:
    """Return the row below a measured time or count of cycles."""
    found = connected.estimated or {}
    if label == "time" and found.get("ms") is not None:
        text = f"{found['ms']:,} ms ({found['min_ms']:,} to {found['max_ms']:,})"
    elif label == "cycles" and found:
        text = f"{found['cycles']:,}"
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
