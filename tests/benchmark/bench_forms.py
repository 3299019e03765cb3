"""Measure the cost and the gain of each variant of int8 convolutions, on a Cortex-M4F.

    python tests/benchmark/bench_forms.py               # table, and build/bench_forms.json

For each variant it builds a firmware without that variant. flash: bytes of the whole firmware. cycles:
the estimate for an inference with all scratch memory of the board.
"""

import sys
import tempfile
from pathlib import Path

import click
from picotorch.boards import boards
from picotorch.firmware import selective
from picotorch.host import operators
from picotorch.host.optimize import Optimize
from picotorch.host.twin import open_program
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark import cycles  # noqa: E402
from benchmark.bench import keep, request  # noqa: E402
from support import benchmark_store  # noqa: E402

BOARD = "mps2-an386"


def entry(name, without, folder):
    """Return the JSON entry of a model in a firmware without these variants."""
    board = boards.load_board(BOARD)
    one = request(name, board, "none")
    one.firmware = folder / "firmware.elf"
    built = selective.build(BOARD, {name: open_program(one.model)}, one.firmware,
                            optimize=Optimize(variants=frozenset(operators.CONV_VARIANTS) - {*without}))
    sums, instructions, _ = cycles.trace(board, one, is_logged=False)
    return {"model": name, "without": without, "flash": built.flash, "instructions": instructions,
            "cycles": round(sum(usual for _, _, usual, _ in sums.values()))}


def selections(name):
    """List the variants to leave out: none, each one that speeds the model up, and all of these."""
    program = open_program(benchmark_store.load(name).pte(BOARD))
    forms = sorted(operators.conv_variants(program))
    return [(), *((form,) for form in forms), tuple(forms)] if forms else []


def table(entries):
    drawn = Table(title=f"Forms of int8 convolutions, {BOARD}")
    for heading in ("model", "without", "flash", "instructions", "cycles"):
        drawn.add_column(heading, justify="left" if heading in ("model", "without") else "right")
    for e in entries:
        drawn.add_row(e["model"], ", ".join(e["without"]),
                      *(f"{e[key]:,}" for key in ("flash", "instructions", "cycles")))
    return drawn


@click.command(help=__doc__)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench_forms.json")
def main(output):
    with tempfile.TemporaryDirectory(prefix="picotorch-") as folder:
        found = [entry(name, without, Path(folder)) for name in benchmark_store.NAMES
                 for without in selections(name)]
    Console().print(table(found))
    keep(found, output)


if __name__ == "__main__":
    main()
