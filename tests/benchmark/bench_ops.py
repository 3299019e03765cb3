"""Count the instructions of single int8 operators on the emulated boards, compared with CMSIS-NN.

    python tests/benchmark/bench_ops.py             # all classes and boards, and build/bench_ops.json
    python tests/benchmark/bench_ops.py --board mps2-an386 --class "convolution 3x3" --class linear

The rows are the unique instructions of five int8 models (bench_anchor_operators.json), with random data
of a fixed seed. A count covers one call through the executor. Counts are exact, and the same on every
machine. The limit is the share of the MACs per instruction that the instruction set allows.
"""

import json
import math
import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import WEIGHTS, keep  # noqa: E402
from support.board_call import BOARDS, Case, call_on_board  # noqa: E402
from support.kernel_call import Tensor  # noqa: E402

OPERATORS = json.loads((ROOT / "tests/benchmark/bench_anchor_operators.json").read_text())["operators"]
PROGRAMS = {"mps2-an385-m0plus": "m3", "mps2-an385": "m3", "mps3-an547": "m55"}  # m4 for all others
# MACs per instruction, with MULS and ADDS; MLA; SMLAD; VMLADAVA.
LIMITS = {"mps2-an385-m0plus": 0.5, "mps2-an385": 1, "mps2-an386": 2, "mps2-an500": 2,
          "mps2-an505": 2, "mps3-an547": 16}


def tensor(entry, values):
    array = np.ascontiguousarray(values.astype(entry["dtype"]).reshape(entry["sizes"]))
    return Tensor(array, tuple(entry["order"]), constant=entry["constant"],
                  scratch=entry["dtype"] == "uint8")


def random_values(entry, role, generator):
    """Return random values: of an int32 tensor by its role, of others by their dtype."""
    n = math.prod(entry["sizes"])
    if entry["dtype"] == "int32":
        low, high = {"multiplier": (1 << 30, (1 << 31) - 1), "shift": (-11, -6)}.get(role, (-999, 999))
        return generator.integers(low, high, n)
    if entry["dtype"] == "float32":
        return generator.uniform(-1, 1, n)
    if entry["dtype"] == "uint8":
        return np.zeros(n)
    values = generator.integers(-127, 128, n)
    if entry["constant"]:  # weights as of a quantizer: in every second channel one value is -128
        values[generator.choice(n, max(entry["sizes"]) // 2)] = -128
    return values


def case(operator, board, pack_weights):
    """Return the operator with the arguments of the program for the board's core."""
    generator = np.random.default_rng(1)
    programs = operator["arguments"]
    arguments = programs.get(PROGRAMS.get(board, "m4"), programs["m4"])
    int32s = [i for i, a in enumerate(arguments) if isinstance(a, dict) and a["dtype"] == "int32"]
    roles = dict(zip(int32s[-2:], ("multiplier", "shift"), strict=True)) if len(int32s) > 1 else {}
    return Case(operator["operator"], *[
        tensor(a, random_values(a, roles.get(i), generator)) if isinstance(a, dict) else a
        for i, a in enumerate(arguments)], pack_weights=pack_weights)


def measure(operators, board, pack_weights):
    """Return an entry of the JSON for each operator."""
    cases = [case(operator, board, pack_weights) for operator in operators]
    for operator, one, result in zip(operators, cases, call_on_board(board, cases), strict=True):
        difference = result.error or result.difference(one.on_twin(board))
        if difference:
            raise RuntimeError(f"{operator['class']} {operator['shape']} on {board}: {difference}")
        anchor = operator["anchor"].get(board)
        entry = {"board": board, "class": operator["class"], "shape": operator["shape"],
                 "calls": sum(operator["models"].values()), "macs": operator["macs"],
                 "elements": math.prod(operator["arguments"]["m4"][-1]["sizes"]),
                 "instructions": result.instructions, "anchor": anchor, "stack": result.stack,
                 "scratch": result.scratch, "packed": result.packed}
        yield entry | derived(entry, board)


def derived(entry, board):
    instructions, anchor = entry["instructions"], entry["anchor"]
    rate = entry["macs"] / instructions
    return {"ratio": anchor and round(instructions / anchor, 4),
            "macs_per_instruction": round(rate, 3) if entry["macs"] else None,
            "instructions_per_element": round(instructions / entry["elements"], 2),
            "limit": round(rate / LIMITS[board], 3) if entry["macs"] else None}


def class_totals(entries):
    """Return the sum of each class and board over the calls of the five models."""
    sums = {}
    for e in entries:
        one = sums.setdefault((e["board"], e["class"]),
                              {"board": e["board"], "class": e["class"], "shape": "all, in five models",
                               "calls": 0, "macs": 0, "elements": 0, "instructions": 0, "anchor": 0})
        one["calls"] += e["calls"]
        for key in ("macs", "elements", "instructions", "anchor"):
            one[key] += (e[key] or 0) * e["calls"]
    return [one | derived(one, one["board"]) for one in sums.values()]


def table(title, entries):
    drawn = Table(title=title)
    for heading in ("class", "shape"):
        drawn.add_column(heading, no_wrap=True)
    for heading in ("calls", "MACs", "instructions", "CMSIS-NN", "ratio", "MAC/instr", "limit",
                    "instr/output", "stack", "scratch", "packed"):
        drawn.add_column(heading, justify="right")
    for e in entries:
        drawn.add_row(
            e["class"], e["shape"], str(e["calls"]), shown(e["macs"] or None, ","),
            f"{e['instructions']:,}", shown(e["anchor"] or None, ","), shown(e["ratio"] or None, ".3f"),
            shown(e["macs_per_instruction"], ".3f"), shown(e["limit"], ".0%"),
            f"{e['instructions_per_element']:.1f}", shown(e.get("stack"), ","),
            shown(e.get("scratch"), ","), shown(e.get("packed"), ","))
    return drawn


def shown(value, form):
    return "-" if value is None else format(value, form)


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, type=click.Choice(BOARDS), help="default: all")
@click.option("--class", "classes", multiple=True, help="default: all; the begin of its name is enough")
@click.option("--totals", is_flag=True, help="only the sums of the classes")
@click.option("--weights", type=click.Choice(WEIGHTS), default=WEIGHTS[0], show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench_ops.json")
def main(names, classes, totals, weights, output):
    operators = [o for o in OPERATORS if not classes or o["class"].startswith(classes)]
    if not operators:
        known = sorted({o["class"] for o in OPERATORS})
        raise click.BadParameter(f"the classes are {', '.join(known)}", param_hint="--class")
    console, everything = Console(width=190), []
    for board in names or BOARDS:
        entries = list(measure(operators, board, weights == "pool"))
        everything += entries + class_totals(entries)
        if not totals:
            console.print(table(board, entries))
        console.print(table(f"{board}: by class", class_totals(entries)))
    keep(everything, output)


if __name__ == "__main__":
    main()
