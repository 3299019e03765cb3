"""Measure the flash of the C project of int8 ds_cnn on a Cortex-M4F, with its stored input.

    python tests/benchmark/bench_c_project.py               # table, and build/bench_c_project.json

builds: the figures with the switches of the project's Makefile, with and without packed weights.
switches: the bytes that each switch in the project's config.h saves.
"""

import shutil
import sys
from pathlib import Path

import click
from picotorch.boards import boards
from picotorch.compile import ptm_writer
from picotorch.package import c_project
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import keep  # noqa: E402
from benchmark.bench_ptm import make, sizes  # noqa: E402
from support import benchmark_store  # noqa: E402

BUILDS = {"as it is": [], "SMALL=1": ["SMALL=1"], "LTO=1": ["LTO=1"],
          "SMALL=1 LTO=1": ["SMALL=1", "LTO=1"]}
SWITCHES = ["PT_NO_CHECKS", "PT_NO_TEXTS", "PT_NO_DYNAMIC"]


def write(folder, board, model, core):
    ptm = ptm_writer.compile_ptm(model.pte(board.name), (), core)
    c_project.write([c_project.Model("model", ptm.data, {"forward": model.inputs})], folder)


def flash(folder, board, *switches):
    return sizes(make(folder, board, *switches))[0]


def without_switch(folder, board, switch):
    """Return the flash of a build whose config.h does not define `switch`."""
    path = folder / "picotorch/include/picotorch/config.h"
    source = path.read_text()
    if f"#define {switch}\n" not in source:
        raise RuntimeError(f"{path.name} does not define {switch}")
    path.write_text(source.replace(f"#define {switch}\n", ""))
    try:
        return flash(folder, board)
    finally:
        path.write_text(source)


def measure(folder):
    board, model = boards.load_board("mps2-an386"), benchmark_store.load("int8_ds_cnn")
    write(folder / "packed", board, model, board.core)
    write(folder / "plain", board, model, None)
    builds = {name: {kind: flash(folder / kind, board, *switches) for kind in ("packed", "plain")}
              for name, switches in BUILDS.items()}
    grown = {switch: without_switch(folder / "packed", board, switch) for switch in SWITCHES}
    return {"builds": builds, "switches": {switch: size - builds["as it is"]["packed"]
                                           for switch, size in grown.items()}}


def table(found):
    drawn = Table(title="The C project of int8 ds_cnn: bytes of flash")
    for heading in ("build", "with packed weights", "without"):
        drawn.add_column(heading, justify="left" if heading == "build" else "right")
    for name, sizes_of in found["builds"].items():
        drawn.add_row(name, *(f"{size:,}" for size in sizes_of.values()))
    for switch, size in found["switches"].items():
        drawn.add_row(f"without {switch}", f"+{size:,}", "")
    return drawn


@click.command(help=__doc__)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench_c_project.json")
def main(output):
    folder = ROOT / "build" / "bench_c_project"
    shutil.rmtree(folder, ignore_errors=True)  # an earlier version may have left it
    found = measure(folder)
    Console().print(table(found))
    keep(found, output)


if __name__ == "__main__":
    main()
