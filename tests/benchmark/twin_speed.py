"""Measure the time of an inference on the host twin, by each kind of vectors of this computer, and of a
large model by the number of threads.

    python tests/benchmark/twin_speed.py [MODEL ...]

By vectors the time is CPU time, the minimum of many executions. The kinds take turns in one process,
and a ratio refers to the plain C loops. By threads the time is elapsed time, and a ratio refers to one
thread; leave the computer idle. The program also writes build/twin_speed.json.
"""

import json
import os
import sys
import time
from pathlib import Path

import click
from _picotorch_c import lib
from picotorch.host import show, twin
from picotorch.module import load_with_exact_memories

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support import benchmark_store, fixture_store  # noqa: E402
from support.resnet18 import resnet18  # noqa: E402
from support.vectors import KINDS  # noqa: E402

OUTPUT = ROOT / "build/twin_speed.json"
BOARD = "mps2-an386"  # its core selects the programs
FLOAT_MODELS = ("ds_cnn", "resnet8", "mobilenet_v1_025")
SECONDS = 2  # for each model
THREADS = (1, 2, 4, 8)


def loaded(name):
    """Return the method of a model with its inputs set."""
    if name in benchmark_store.NAMES:
        model = benchmark_store.load(name)
        pte, inputs = model.pte(BOARD), model.inputs
    else:
        model = fixture_store.load(name)
        pte, inputs = model.pte, model.runs[0].inputs
    program = twin.open_program(pte)
    method = load_with_exact_memories(program, "forward", False, None)
    twin.set_inputs(method, program.method_meta("forward"), inputs)
    return method


def measure(name):
    """Return milliseconds by kind, for the kinds that the processor supports."""
    method, found = loaded(name), {}
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or not found:
        for kind, vectors in KINDS.items():
            if lib.pt_use_vectors(vectors) == vectors:
                begin = time.process_time_ns()
                method.execute()
                took = (time.process_time_ns() - begin) / 1e6
                found[kind] = min(took, found.get(kind, took))
    lib.pt_use_vectors(max(KINDS.values()))
    return found


def measure_threads():
    """Return milliseconds of ResNet-18's convolutions by number of threads, up to the number of
    cores."""
    method = load_with_exact_memories(twin.open_program(resnet18()), "forward", False, None)
    found, until = {}, time.monotonic() + SECONDS
    while time.monotonic() < until or not found:
        for threads in THREADS:
            if threads <= (os.cpu_count() or 1):
                method.library.threads = threads
                begin = time.perf_counter_ns()
                method.execute()
                took = (time.perf_counter_ns() - begin) / 1e6
                found[threads] = min(took, found.get(threads, took))
    return found


def processor():
    """Return the processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


@click.command(help=__doc__)
@click.argument("models", nargs=-1)
def main(models):
    names = models or (*benchmark_store.NAMES, *FLOAT_MODELS)
    entries = [{"model": name, "ms": measure(name)} for name in names]
    for entry in entries:
        ms = entry["ms"]
        entry["ratio"] = {kind: ms["plain"] / took for kind, took in ms.items()}
    kinds = list(entries[0]["ms"])
    show.table(
        ["model", *(f"{kind}, ms>" for kind in kinds), *(f"{kind}, times>" for kind in kinds[1:])],
        [[entry["model"], *(f"{entry['ms'][kind]:.3f}" for kind in kinds),
          *(f"{entry['ratio'][kind]:.1f}" for kind in kinds[1:])] for entry in entries])
    threads = [{"threads": count, "ms": took} for count, took in measure_threads().items()]
    for entry in threads:
        entry["ratio"] = threads[0]["ms"] / entry["ms"]
    click.echo("\nThe convolutions of a ResNet-18 of 224 x 224:")
    show.table(["threads", "ms>", "times>"],
               [[entry["threads"], f"{entry['ms']:.1f}", f"{entry['ratio']:.2f}"] for entry in threads])
    OUTPUT.write_text(json.dumps({"processor": processor(), "entries": entries, "threads": threads},
                                 indent=1) + "\n")


if __name__ == "__main__":
    main()
