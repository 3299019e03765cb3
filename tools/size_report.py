"""Report the parts of the firmware of a board: bytes of flash by part, by kernel family, by operator.

    python tools/size_report.py                      # tables for all boards, and build/size.json
    python tools/size_report.py --board mps2-an386 --operators

The program reads the linker's map, so it counts the linked parts: text and constants (there is no
initialised data). `core` is kernels/core without the registry's table. This table has an entry and a
name for each operator, and is counted with the kernels. For an operator, `own` counts the bytes that no
other operator needs, and `alone` all bytes that it needs, shared ones included (see
host/picotorch/measure/flash.py).
"""

import collections
import json
import re
from pathlib import Path

import click
from picotorch.boards import boards
from picotorch.host.operators import supported_operators
from picotorch.measure.firmware_map import sections
from picotorch.measure.flash import flash_of_operators
from picotorch.run import emulator
from picotorch.run.listing import full_boards
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent

# An object belongs to the part of the first pattern that matches its path.
PARTS = [
    ("kernels", r"kernels/(portable|arch|quantized|cortex_m|extra)/"),
    ("core", r"kernels/core/"),
    ("module _picotorch", r"port/module/"),
    ("frozen Python", r"frozen_content\.o"),
    ("MicroPython", r"/(py|shared|extmod|lib)/"),
    ("libgcc", r"libgcc\.a"),
    ("firmware port", r"\.o$"),
]
REGISTRY = "registry of operators"


def part_of(section, path):
    """Return the part of the firmware that an input section belongs to."""
    if path.endswith("kernels/core/registry/registry.o") and section.startswith(".rodata"):
        return REGISTRY
    return next((name for name, pattern in PARTS if re.search(pattern, path)), "other")


def report(board):
    """Return the sizes of a board's firmware in bytes.

    {"board", "parts": {part: bytes}, "kernels": {family: bytes}, "operators": {name: {"own", "alone"}},
    "total"}.
    """
    parts, families = collections.Counter(), collections.Counter()
    for section, size, path in sections(emulator.firmware_path(board).with_suffix(".map")):
        part = part_of(section, path)
        parts[part] += size
        if part == "kernels":
            families[re.search(r"kernels/(.+)\.o$", path)[1]] += size
    return {"board": board.name, "parts": dict(parts), "kernels": dict(families),
            "operators": {name: kernel.to_json() for name, kernel in flash_of_operators(
                board, list(supported_operators())).operators.items()},
            "total": sum(parts.values())}


def table(title, heading, rows, total):
    drawn = Table(title=title)
    drawn.add_column(heading)
    drawn.add_column("bytes", justify="right")
    for name, size in sorted(rows.items(), key=lambda row: -row[1]):
        drawn.add_row(name, f"{size:,}")
    drawn.add_row("total", f"{total:,}", style="bold")
    return drawn


def operator_table(one):
    drawn = Table(title=f"{one['board']}: operators")
    drawn.add_column("operator")
    drawn.add_column("own", justify="right")
    drawn.add_column("alone", justify="right")
    for name, size in sorted(one["operators"].items(), key=lambda row: -row[1]["alone"]):
        drawn.add_row(name, f"{size['own']:,}", f"{size['alone']:,}")
    return drawn


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, type=click.Choice(boards.full_board_names()),
              help="default: all boards with all kernels")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/size.json")
@click.option("--operators", is_flag=True, help="show a table of all operators, too")
def main(names, output, operators):
    console, found = Console(width=100), []
    for name in names or full_boards():
        one = report(boards.load_board(name))
        found.append(one)
        console.print(table(f"{name}: flash", "part", one["parts"], one["total"]))
        console.print(table(f"{name}: kernels", "family", one["kernels"],
                            sum(one["kernels"].values())))
        if operators:
            console.print(operator_table(one))
    output.write_text(json.dumps(found, indent=1) + "\n")
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
