"""Count the instructions of models on the emulated boards, and compare them with ExecuTorch's runtime.

    python tests/benchmark/bench.py                      # table, and build/bench.json
    python tests/benchmark/bench.py --board mps2-an386 --model int8_ds_cnn --model resnet8

Counts are exact: the same firmware and model give the same figures on every machine. The reference is
ExecuTorch's C++ runtime on the same boards (bench_anchor.json). It runs the int8 models (in this
folder, one program for each kind of core) with CMSIS-NN, and the other models (tests/fixtures) with its
portable kernels. The instructions to load include Program.load, which verifies the file, and
Method.load. Flash is the core and the kernels of the model. x is the ratio to the reference, if the
model has one.
"""

import dataclasses
import json
import sys
from pathlib import Path

import click
import numpy as np
from picotorch.boards import boards
from picotorch.errors import MEMORY_ALLOCATION_FAILED
from picotorch.host.instructions import read_instructions
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.host.values import Values
from picotorch.measure.flash import flash_of_models
from picotorch.run import emulated, emulator
from picotorch.run.listing import full_boards
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support import benchmark_store, fixture_store  # noqa: E402

ANCHOR = json.loads((ROOT / "tests/benchmark/bench_anchor.json").read_text())["models"]
MODELS = [*benchmark_store.NAMES, "ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder", "mlp",
          "conv1d_network", "channels_last_network", "add_1", "add2_5", "add_5", "softmax_2x2",
          "linear_5", "simple_conv"]
# Suffix of a model's name: with data of which linear layers skip nothing, see without_zeros
DENSE = ", dense"
# Models that are also measured in C, without MicroPython, because the call is a large part of the
# count.
SMALL = ["add_1", "softmax_2x2", "linear_5"]
# The place of weights: in the program alone, or packed in the pool in addition.
WEIGHTS = ("none", "pool")
# Figures that are compared with the anchor's.
COMPARED = ["load", "execute", "pool", "planned", "stack_execute", "core_and_kernels"]


def request(name, board, weights):
    name, is_dense, _ = name.partition(DENSE)
    if name in benchmark_store.NAMES:
        model = benchmark_store.load(name)
        one = Request(model.pte(board.name), name, model.inputs)
    else:
        fixture = fixture_store.load(name)
        run = fixture.runs[0]
        one = Request(fixture.pte, name, run.inputs, run.method, data=fixture.data)
    one.pack_weights = weights == "pool"
    one.pool_size, one.temp_size = board.arenas["pool"].size, board.arenas["temp"].size
    return without_zeros(one) if is_dense else one


def without_zeros(one):
    """Return the request with inputs and biases that saturate the int8 linear layers of its program.
    Each value that these layers read is the maximum, and none is the zero point."""
    program = bytearray(one.model)
    meta = open_program(one.model).method_meta(one.method)
    values = Values(meta.program, meta.plan)
    for instruction in read_instructions(meta, values):
        if instruction.call == "cortex_m::quantized_linear.out":
            bias = instruction.arguments[2]
            (_, at), size = values.location(bias), values.tensor(bias).nbytes()
            program[at : at + size] = np.full(size // 4, 1 << 24, "<i4").tobytes()
    inputs = [np.full_like(array, array.max()) for array in one.inputs]
    return dataclasses.replace(one, model=bytes(program), inputs=inputs)


def measure(one, board):
    """Return the figures of one model on one board, or None if the board has too little memory for it.

    Raise RuntimeError if the run fails for another reason.
    """
    try:
        result = emulated.run(one, board)
    except emulator.JobTooLarge:
        return None
    if result.code == MEMORY_ALLOCATION_FAILED:
        return None
    if result.code:
        raise RuntimeError(f"{one.name} on {board.name}: {result.message}")
    return {
        "verify": result.instructions["verify"],
        "load": result.instructions["load"],
        "execute": result.instructions["execute"],
        "pool": result.method_pool.used,
        "packed": result.packed,
        "planned": sum(memory.used for memory in result.planned),
        "temp": result.temp.used,
        "stack_load": result.stack["load"],
        "stack_execute": result.stack["execute"],
        "core_and_kernels": flash_of_models(board, [one.model]).core_and_kernels,
        "heap": result.heap_bytes_allocated,
    }


def execute_in_c(one, board):
    """Return the instructions of pt_execute() on the board without MicroPython."""
    one.bare = True
    result = emulated.run(one, board)
    if result.code:
        raise RuntimeError(f"{one.name} on {board.name}, bare: {result.message}")
    return result.instructions["execute"]


def row(name, board, weights):
    """Return one entry of the JSON: our figures, the anchor's, and their ratios."""
    entry = {"model": name, "board": board.name, "core": board.core, "weights": weights}
    figures = measure(request(name, board, weights), board)
    if figures is None:
        return {**entry, "fits": False}
    entry |= {"fits": True, **figures}
    if name in SMALL:
        entry["execute_in_c"] = execute_in_c(request(name, board, weights), board)
    macs = macs_of(name)
    if macs:
        entry["macs_per_instruction"] = round(macs / figures["execute"], 3)
    anchor = ANCHOR.get(name, {}).get(board.name)
    if anchor:
        entry["anchor"] = {key: anchor[key] for key in COMPARED}
        entry["ratio"] = {key: round(figures[key] / anchor[key], 4)
                          for key in COMPARED if anchor[key]}
    return entry


def macs_of(name):
    anchors = ANCHOR.get(name.removesuffix(DENSE), {})
    return next((anchor["macs"] for anchor in anchors.values()), None)


def rows(name, board, modes):
    """Return the entries of all modes. If a model packs nothing, all modes have the figures of the
    first one."""
    entries = []
    for weights in modes:
        entry = row(name, board, weights)
        if weights == WEIGHTS[0] or len(modes) == 1 or entry.get("packed"):
            entries.append(entry)
    return entries


def table(entries):
    drawn = Table(title="Instructions of one inference, and bytes; x: ratio to ExecuTorch's runtime")
    for heading in ("model", "board", "core", "weights"):
        drawn.add_column(heading, no_wrap=True)
    for heading in ("to load", "instructions", "x", "MAC/instr", "pool", "x", "planned", "temp",
                    "stack", "x", "flash", "x"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for e in entries:
        drawn.add_row(*cells(e))
    return drawn


def cells(e):
    """Return the cells of an entry's row, as text."""
    first = [e["model"], e["board"], e["core"], e["weights"]]
    if not e["fits"]:
        return [*first, "does not fit"]
    ratio = e.get("ratio", {})
    return [*first, f"{e['verify'] + e['load']:,}", f"{e['execute']:,}", shown(ratio.get("execute")),
            shown(e.get("macs_per_instruction")), f"{e['pool']:,}", shown(ratio.get("pool")),
            f"{e['planned']:,}", f"{e['temp']:,}", f"{e['stack_execute']:,}",
            shown(ratio.get("stack_execute")), f"{e['core_and_kernels']:,}",
            shown(ratio.get("core_and_kernels"))]


def shown(value):
    return "-" if value is None else f"{value:.3f}"


def keep(found, output):
    """Write figures as JSON, and print the path."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=1) + "\n")
    click.echo(f"written to {output}")


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, type=click.Choice(boards.full_board_names()),
              help="default: all boards with all kernels")
@click.option("--model", "models", multiple=True, help="default: the benchmark's",
              type=click.Choice([*benchmark_store.NAMES, *(f.name for f in fixture_store.load_all())]),
              metavar="NAME")
@click.option("--weights", "modes", multiple=True, type=click.Choice(WEIGHTS), default=WEIGHTS,
              help="default: all")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench.json")
def main(names, models, modes, output):
    entries = []
    names = names or full_boards()
    todo = [(model, board) for model in models or MODELS for board in names]
    for model, board in track(todo, "Measuring", transient=True):
        entries += rows(model, boards.load_board(board), modes)
    Console(width=210).print(table(entries))
    keep(entries, output)


if __name__ == "__main__":
    main()
