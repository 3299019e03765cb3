"""Measure each instruction of a method, on the twin or a board: picotorch profile."""

import itertools
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import click

from ..boards.boards import load_board
from ..host import show
from ..host.instructions import Instruction, read_instructions
from ..host.request import HOST_MEMORY, Request, Result
from ..host.twin import open_program
from ..host.values import TENSOR, Values
from ..run import running
from ..run.report import connected_entry, connected_of, model_place
from . import cycles
from .etdump import Execution
from .macs import factors, macs_of

EXECUTIONS = 10  # of the twin, whose times differ from one to the next
_LOOKED_INTO = 16  # items of a list: many instructions may name one long list
SORTED = ("order", "share")


def profile(request: Request, board: str,
            temp: int | None = None) -> tuple[dict[str, Any], list[Execution]]:
    """Return the profile as plain data, and the executions it comes from.

    The method gets all the pool and scratch that the board has, or `temp` bytes of scratch. "share" is
    of cycles where they are estimated, else of ticks: "share_of" names it.

    Raises the Error of a run that failed.
    """
    request.executions = EXECUTIONS if board == running.HOST else 1
    request.pool_size = request.temp_size = HOST_MEMORY if board == running.HOST else None
    if temp is not None:
        request.temp_size = temp
    result = running.run(request, board)
    running.check_result(result)
    meta = open_program(request.model).method_meta(request.method)
    values = Values(meta.program, meta.plan)
    instructions = read_instructions(meta, values)
    ticks = _medians([[event.ticks for event in events] for events in result.events])
    calls = [event.calls for event in result.events[0]]
    rows = [_row(instruction, values, ticks[1 + i], calls[1 + i])
            for i, instruction in enumerate(instructions)]
    entry = {"model": request.name, "method": request.method, "board": board,
             "pack_weights": request.pack_weights, "dynamic": _is_dynamic(values), "unit": unit(result),
             "executions": len(result.events),
             "total": sum(ticks), "end_of_loop": ticks[0], "macs": sum(row["macs"] for row in rows),
             "instructions": rows, "operators": _operators(rows), **connected_entry(result)}
    _add_cycles(entry, result, request)
    entry["share_of"] = entry["unit"] if entry["cycles"] is None else "cycles"
    for row in [entry, *rows, *entry["operators"]]:
        _derive(row, entry)
    entry["operators"].sort(key=cost, reverse=True)
    return entry, [Execution(instructions, events) for events in result.events]


def cost(one: dict[str, Any]) -> int:
    """Return the cycles of a profile, a row or an operator; its ticks without an estimate."""
    key = "cycles" if one["cycles"] is not None else "ticks" if "ticks" in one else "total"
    count: int = one[key]
    return count


def _is_dynamic(values: Values) -> bool:
    return any(values.kind(i) == TENSOR and values.tensor(i).is_dynamic() for i in range(len(values)))


def _add_cycles(entry: dict[str, Any], result: Result, request: Request) -> None:
    """Estimate "cycles" on the core of an emulated board, of all and by row; None elsewhere."""
    rows = entry["instructions"]
    if result.connected is not None or result.board == running.HOST:
        for one in [entry, *rows, *entry["operators"]]:
            one["cycles"] = None
        return
    core = load_board(result.board).core
    run = cycles.conditions_of(request, result, core)
    for row in rows:
        row["cycles"] = cycles.estimate(core, None, row["ticks"], {row["estimated_as"]: 1},
                                        run)["cycles"]
    for one in entry["operators"]:
        one["cycles"] = sum(row["cycles"] for row in rows if row["call"] == one["call"])
    entry["cycles"] = cycles.estimate(core, None, entry["total"], shares(entry), run)["cycles"]


def shares(entry: dict[str, Any]) -> dict[str, int]:
    """Return the ticks of a profile by operator, for cycles.estimate."""
    found: Counter[str] = Counter()
    for row in entry["instructions"]:
        found[row["estimated_as"]] += row["ticks"]
    return dict(found)


def unit(result: Result) -> str:
    """Return the unit of a tick."""
    if result.connected is not None:
        return result.connected.ticks
    return "ns" if result.board == running.HOST else "instructions"


def _medians(executions: list[list[int]]) -> list[int]:
    return [round(statistics.median(ticks)) for ticks in zip(*executions, strict=True)]


def _row(instruction: Instruction, values: Values, ticks: int, calls: int) -> dict[str, Any]:
    return {"index": instruction.index, "call": instruction.call,
            "estimated_as": cycles.operator_of(instruction, values),
            "shapes": _shapes(instruction, values), "calls": calls, "ticks": ticks,
            "macs": macs_of(instruction, values) * calls}


def _shapes(instruction: Instruction, values: Values) -> str:
    """Return the sizes of the first tensor, of the weights behind it, and of what comes out."""
    inputs = (factors(instruction) if macs_of(instruction, values)
              else _first_tensor(instruction.arguments, values))
    texts = [" * ".join(_sizes(values, i) for i in inputs),
             "".join(_sizes(values, i) for i in _first_tensor(instruction.outputs, values))]
    return " -> ".join(filter(None, texts))


def _first_tensor(named: Iterable[int], values: Values) -> list[int]:
    """Return [the first tensor of some values, or of the lists at their start], [] without one."""
    found = (i for value in named for i in values.tensors(value, _LOOKED_INTO))
    return list(itertools.islice(found, 1))


def _sizes(values: Values, index: int) -> str:
    return "x".join(map(str, values.tensor(index).sizes())) or "1"


def _operators(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sums by what is called."""
    sums: dict[str, dict[str, int]] = defaultdict(
        lambda: {"instructions": 0, "calls": 0, "ticks": 0, "macs": 0})
    for row in rows:
        one = sums[row["call"]]
        one["instructions"] += 1
        for key in ("calls", "ticks", "macs"):
            one[key] += row[key]
    return [{"call": call, **one} for call, one in sums.items()]


def _derive(row: dict[str, Any], entry: dict[str, Any]) -> None:
    ticks, whole = row.get("ticks", entry["total"]), cost(entry)
    row["share"] = round(cost(row) / whole, 4) if whole else 0
    row["macs_per_tick"] = round(row["macs"] / ticks, 3) if row["macs"] and ticks else None


# ---- for people


def show_text(entry: dict[str, Any], order: str) -> None:
    rows = entry["instructions"]
    if order == "share":
        rows = sorted(rows, key=cost, reverse=True)
    name = entry["unit"]
    short = "instr." if name == "instructions" else name
    has_cycles = entry["cycles"] is not None
    head = [name + ">", *["cycles>"] * has_cycles, f"share of {entry['share_of']}>", "MACs>",
            f"MACs/{short}>"]
    show.heading(f"{entry['model']}, method {entry['method']} on {entry['board']}"
                 + (", packed weights" if entry["pack_weights"] else ""))
    show.table(["", "operator", "input * weights -> output", "calls>", *head],
               [[row["index"], row["call"], row["shapes"], row["calls"], *_figures(row)]
                for row in rows])
    show.heading("By operator")
    sums = [[one["call"], one["instructions"], one["calls"], *_figures(one)]
            for one in entry["operators"]]
    show.table(["operator", "instr.>", "calls>", *head],
               [*sums,
                ["end of the loop", "", "", f"{entry['end_of_loop']:,}", *[""] * (len(head) - 1)],
                ["execute", len(rows), sum(row["calls"] for row in rows),
                 *_figures(entry | {"ticks": entry["total"]})]])
    if has_cycles:
        click.echo(f"\nAbout {entry['cycles']:,} cycles, an estimate, as are those of each row.")
    if entry["dynamic"]:
        click.echo("\nShapes and MACs are for the largest sizes that the program takes.")
    connected = connected_of(entry)
    if connected is not None:
        click.echo()
        show.line(f"On the board {model_place(connected)}.")
    if entry["executions"] > 1:
        click.echo()
        show.line(f"Medians of {entry['executions']} executions on this computer.")


def _figures(row: dict[str, Any]) -> list[str]:
    rate = row["macs_per_tick"]
    cycles = [] if row["cycles"] is None else [f"{row['cycles']:,}"]
    return [f"{row['ticks']:,}", *cycles, f"{100 * row['share']:.1f} %",
            f"{row['macs']:,}" if row["macs"] else "", "" if rate is None else f"{rate:.2f}"]
