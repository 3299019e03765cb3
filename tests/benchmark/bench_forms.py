"""Measures what forms of int8 convolutions cost and gain: firmwares of a Cortex-M4F without each.

    python tests/benchmark/bench_forms.py               # table, and build/bench_forms.json

saved: bytes of flash; cycles: of an inference, estimated, with the temp memory that kernels wish for.
"""

import json
import sys
import tempfile
from pathlib import Path

import click
from picotorch.host import operators
from picotorch.host.boards import boards
from picotorch.host.firmware import selective
from picotorch.host.twin import open_program
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark import cycles  # noqa: E402
from benchmark.bench import request  # noqa: E402
from support import benchmark_store  # noqa: E402

BOARD = "mps2-an386"


def build(one, without, folder):
    """(bytes of flash, estimated cycles of an inference) of a firmware without those forms."""
    output = folder / "firmware.elf"
    entry = selective.build(BOARD, {one.name: open_program(one.model)}, output, without=without)
    one.firmware = output
    return entry["flash"], cycles.trace(boards.load_board(BOARD), one, is_logged=False)


def usual(sums):
    return round(sum(parts[2] for parts in sums.values()))


def measure(name, folder):
    """The entries of a model: without each form that it gains by, and without all of them."""
    one = request(name, boards.load_board(BOARD), "none")
    forms = sorted(operators.wide_forms(open_program(one.model)))
    entries = []
    for without in [(), *((form,) for form in forms), *([tuple(forms)] if len(forms) > 1 else [])]:
        flash, (sums, instructions, _) = build(one, without, folder)
        entries.append({"model": name, "without": without, "flash": flash,
                        "saved": entries[0]["flash"] - flash if entries else 0,
                        "instructions": instructions, "cycles": usual(sums)})
    return entries


def table(entries):
    drawn = Table(title=f"Forms of int8 convolutions, {BOARD}")
    for heading in ("model", "without", "bytes saved", "instructions", "cycles"):
        drawn.add_column(heading, justify="left" if heading in ("model", "without") else "right")
    for e in entries:
        drawn.add_row(e["model"], ", ".join(e["without"]),
                      *(f"{e[key]:,}" for key in ("saved", "instructions", "cycles")))
    return drawn


@click.command(help=__doc__)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench_forms.json")
def main(output):
    with tempfile.TemporaryDirectory(prefix="picotorch-") as folder:
        found = [entry for name in benchmark_store.NAMES for entry in measure(name, Path(folder))]
    found = [e for e in found if any(o["without"] for o in found if o["model"] == e["model"])]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=1) + "\n")
    Console().print(table(found))
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
