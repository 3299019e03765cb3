"""Counts the instructions of models on the emulated boards, beside those of ExecuTorch's own runtime.

    python tools/bench.py                      # table, and build/bench.json
    python tools/bench.py --board mps2-an386 --model ds_cnn --model resnet8

Counts are exact: the same firmware and model give the same figures on every machine. The reference is
tools/bench_anchor.json: ExecuTorch's C++ runtime with its portable kernels on the same boards.
"""

import json
import sys
from pathlib import Path

import click
from picotorch.errors import MEMORY_ALLOCATION_FAILED
from picotorch.host import boards, emulated, emulator
from picotorch.host.run import Request
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import fixture_store  # noqa: E402

ANCHOR = json.loads((ROOT / "tools/bench_anchor.json").read_text())["models"]
MODELS = ["add_1", "add2_5", "add_5", "softmax_2x2", "linear_5", "simple_conv", "ds_cnn", "resnet8",
          "mobilenet_v1_025", "deep_autoencoder", "mlp", "conv1d_network", "channels_last_network"]
# Figures that are compared: those of the anchor.
COMPARED = ["load", "execute", "pool", "planned", "stack_execute"]


def measure(name, board):
    """The figures of one model on one board; None where the board has no room for it.

    Raises RuntimeError when it does not run for another reason.
    """
    fixture = fixture_store.load(name)
    run = fixture.runs[0]
    try:
        result = emulated.run(Request(fixture.pte, name, run.inputs, run.method), board)
    except emulator.JobTooLarge:
        return None
    if result.code == MEMORY_ALLOCATION_FAILED:
        return None
    if result.code:
        raise RuntimeError(f"{name} on {board.name}: {result.message}")
    return {
        "load": result.instructions["load"],
        "execute": result.instructions["execute"],
        "pool": result.method_pool.used,
        "planned": sum(memory.used for memory in result.planned),
        "temp": result.temp.used,
        "stack_load": result.stack["load"],
        "stack_execute": result.stack["execute"],
        "heap": result.heap_bytes_allocated,
    }


def row(name, board):
    """One entry of the JSON: our figures, the anchor's, and their ratios."""
    figures = measure(name, board)
    if figures is None:
        return {"model": name, "board": board.name, "fits": False}
    anchor = ANCHOR.get(name, {}).get(board.name)
    entry = {"model": name, "board": board.name, "fits": True, **figures}
    if anchor:
        entry["anchor"] = {key: anchor[key] for key in COMPARED}
        entry["ratio"] = {key: round(figures[key] / anchor[key], 4)
                          for key in COMPARED if anchor[key]}
        if anchor["macs"]:
            entry["macs_per_instruction"] = round(anchor["macs"] / figures["execute"], 3)
    return entry


def table(entries):
    drawn = Table(title="Instructions and bytes; x: ratio to ExecuTorch's runtime")
    for heading in ("model", "board"):
        drawn.add_column(heading)
    for heading in ("load", "x", "execute", "x", "MAC/instr", "pool", "x", "planned", "stack", "x"):
        drawn.add_column(heading, justify="right")
    for e in entries:
        if not e["fits"]:
            drawn.add_row(e["model"], e["board"], "does not fit")
            continue
        ratio = e.get("ratio", {})
        drawn.add_row(
            e["model"], e["board"], f"{e['load']:,}", shown(ratio.get("load")),
            f"{e['execute']:,}", shown(ratio.get("execute")), shown(e.get("macs_per_instruction")),
            f"{e['pool']:,}", shown(ratio.get("pool")), f"{e['planned']:,}",
            f"{e['stack_execute']:,}", shown(ratio.get("stack_execute")))
    return drawn


def shown(value):
    return "-" if value is None else f"{value:.3f}"


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, help="default: all boards")
@click.option("--model", "models", multiple=True, help="a fixture; default: the benchmark's")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench.json")
def main(names, models, output):
    entries = []
    todo = [(model, board) for board in names or boards.board_names() for model in models or MODELS]
    for model, board in track(todo, "Measuring", transient=True):
        entries.append(row(model, boards.load_board(board)))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(entries, indent=1) + "\n")
    Console(width=132).print(table(entries))
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
