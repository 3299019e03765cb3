"""Count the instructions of models that no kernel was tuned for, compared with ExecuTorch's runtime.

    python tests/benchmark/bench_untuned.py                  # all, and build/bench_untuned.json
    python tests/benchmark/bench_untuned.py --program lenet.cortex-m55 --program op_pad.cortex-m4

The programs in untuned/ are models and single operators (op_*) of the int8 dialect. For each, the
program counts an inference in C, on the board without MicroPython, and each instruction by a profile
with it. The reference is ExecuTorch's C++ runtime with CMSIS-NN on the same boards
(untuned/executorch.json). x is the ratio to the reference. The inputs are random, of a fixed seed.
"""

import dataclasses
import json
import math
import sys
from pathlib import Path

import click
from picotorch.boards.boards import load_board
from picotorch.measure.profiling import profile
from picotorch.run import emulated
from picotorch.run.run_request import RunRequest
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import WEIGHTS, keep, shown  # noqa: E402

FOLDER = ROOT / "tests/benchmark/untuned"
ANCHOR = json.loads((FOLDER / "executorch.json").read_text())["programs"]
BOARDS = {"cortex-m4": "mps2-an386", "cortex-m55": "mps3-an547"}
SLOW = 1.0  # the table of instructions lists ratios above


def board_of(name):
    return BOARDS[name.rpartition(".")[2]]


def request(name, weights):
    """Return a request for a program of the folder, with random inputs."""
    one = RunRequest(model=FOLDER / f"{name}.pte").with_inputs()
    one.pack_weights = weights == "pool"
    return one


def execute_in_c(name, weights):
    """Return the instructions of pt_execute() on the board without MicroPython."""
    one = dataclasses.replace(request(name, weights), bare=True)
    board = load_board(board_of(name))
    one.pool_size, one.temp_size = board.arenas["pool"].size, board.arenas["temp"].size
    result = emulated.run(one, board)
    if result.code:
        raise RuntimeError(f"{name}: {result.message}")
    return result.instructions["execute"]


def ratio(ours, theirs):
    return round(ours / theirs, 3) if theirs else None


def measure(name):
    """Return the figures of a program. instructions: without packed weights."""
    anchor = ANCHOR[name]
    found, _ = profile(request(name, WEIGHTS[0]), board_of(name))
    counts = {weights: execute_in_c(name, weights) for weights in WEIGHTS}
    return {
        "program": name, "execute": counts, "anchor": anchor["execute"],
        "ratio": {weights: ratio(count, anchor["execute"]) for weights, count in counts.items()},
        "macs": found.macs,
        "instructions": [
            {"call": row.call, "shapes": row.shapes, "macs": row.macs, "count": row.ticks,
             "anchor": theirs, "ratio": ratio(row.ticks, theirs)}
            for row, theirs in zip(found.instructions, anchor["instructions"], strict=True)]}


def table(entries):
    drawn = Table(title="Instructions of one inference in C; x: ratio to ExecuTorch's runtime")
    for heading in ("program", "instructions", "x", "packed", "x", "ExecuTorch"):
        drawn.add_column(heading, justify="left" if heading == "program" else "right")
    for e in entries:
        cells = [cell for weights in WEIGHTS
                 for cell in (f"{e['execute'][weights]:,}", shown(e["ratio"][weights]))]
        drawn.add_row(e["program"], *cells, f"{e['anchor']:,}" if e["anchor"] else "-")
    return drawn


def slow_instructions(entries):
    """Return (program, instruction) of all that take more than the reference, the slowest first."""
    found = [(e["program"], row) for e in entries for row in e["instructions"]
             if (row["ratio"] or 0) > SLOW]
    return sorted(found, key=lambda one: -one[1]["ratio"])


def table_of_slow(entries):
    drawn = Table(title=f"Instructions above {SLOW:g} times ExecuTorch's")
    for heading in ("program", "call", "shapes"):
        drawn.add_column(heading)
    for heading in ("instructions", "ExecuTorch", "x"):
        drawn.add_column(heading, justify="right")
    for name, row in slow_instructions(entries):
        drawn.add_row(name, row["call"], row["shapes"], f"{row['count']:,}", f"{row['anchor']:,}",
                      shown(row["ratio"]))
    return drawn


def mean_ratio(entries, core):
    """Return the geometric mean of the models' ratios on a core."""
    found = [e["ratio"]["none"] for e in entries if e["program"].endswith(core) and e["ratio"]["none"]
             and not e["program"].startswith("op_")]
    return math.exp(sum(map(math.log, found)) / len(found)) if found else None


@click.command(help=__doc__)
@click.option("--program", "names", multiple=True, type=click.Choice(list(ANCHOR)), metavar="NAME",
              help="default: all")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench_untuned.json")
def main(names, output):
    entries = [measure(name) for name in track(names or list(ANCHOR), "Measuring", transient=True)]
    console = Console(width=130)
    console.print(table(entries))
    console.print(table_of_slow(entries))
    for core in BOARDS:
        console.print(f"{core}: geometric mean of the models {shown(mean_ratio(entries, core))}")
    keep(entries, output)


if __name__ == "__main__":
    main()
