"""Measure the int8 models as compiled methods, in C projects on the boards.

    python tests/benchmark/bench_ptm.py                   # table, and build/bench_ptm.json
    python tests/benchmark/bench_ptm.py --board mps2-an386 --model int8_ds_cnn

The project of `picotorch compile --c` is built for each board.

- Start: instructions from reset to model_open.
- Open: instructions of model_open in three levels. `trusted` checks only the header, `walk` checks all
  of the file, and `strict` also runs the kernels' own checks.
- Execute: instructions with the preferred scratch memory. The calls that benefit have packed weights,
  in flash. The firmware without MicroPython counts the instructions and measures the stack.
- Flash and RAM: the whole program except the inputs in its main.c, with the minimum of scratch memory
  (--optimize size).
- besides: RAM other than planned memory, scratch memory and stack.
- x: ratio to ExecuTorch (bench_anchor.json). Its flash includes the program. Its RAM is method pool,
  planned memory and stack.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
from picotorch.boards import boards
from picotorch.compile import compiling, packing, ptm_writer
from picotorch.host.request import Request
from picotorch.package import c_project
from picotorch.run import emulated, emulator
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import ANCHOR, keep, shown  # noqa: E402
from support import benchmark_store  # noqa: E402

BOARDS = [name for name in boards.full_board_names() if name.startswith("mps")]
# The level of verification when the compiled method is opened, and the switches of make.
OPENED = {"trusted": ("MINIMAL", []), "walk": ("RECORDS", ["CHECKS=1"]),
          "strict": ("STRICT", ["CHECKS=1"])}
COMPARED = ("load", "execute", "flash", "besides", "ram")  # with the anchor; load: walk
_TRACE = re.compile(r"Trace .*\] ?(\w*)$")


def instructions_of(function, firmware, board):
    """Return the instructions from reset to the first call of a function, and from there to its end.
    The emulator logs each instruction."""
    command = emulator.emulator_command(board, firmware)
    command += ["-singlestep", "-d", "exec,nochain", "-D", "/dev/stdout"]
    count, start, caller, before = 0, 0, None, None
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace") as log:
        for line in log.stdout:
            found = _TRACE.match(line)
            if not found:
                continue
            if found[1] == function and caller is None:
                start, caller = count, before
            elif caller and found[1] == caller:
                log.kill()
                return start, count - start
            count, before = count + 1, found[1]
    raise RuntimeError(f"{function} of {firmware} did not return")


def make(folder, board, *switches):
    """Build a project, and return the path of its program."""
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    environment = {key: value for key, value in os.environ.items() if key not in inherited}
    build = "-".join(switches).replace("=1", "") or "plain"
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "-C", folder, f"BOARD={board.name}",
                           f"BUILD=build/{build}", *switches],
                          env=environment, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return folder / "build" / build / "model"


def sizes(program):
    """Return the bytes of flash and of RAM."""
    listed = subprocess.check_output(["arm-none-eabi-size", program], text=True)
    text, data, bss = map(int, listed.splitlines()[1].split()[:3])
    return text + data, data + bss


def instructions_to_open(folder, board):
    """Count the instructions of each level of verification, and of the start-up code before.

    Restore the project's model.c afterwards.
    """
    path = folder / "model/model.c"
    source, found = path.read_text(), {}
    for name, (verification, switches) in OPENED.items():
        path.write_text(source.replace("PT_VERIFY_STRICT", f"PT_VERIFY_{verification}"))
        start, found[name] = instructions_of("model_open", make(folder, board, *switches), board)
    path.write_text(source)
    return {"open": found, "start": start}


def run(ptm, model, board, temp):
    """Return the instructions of an execution with `temp` bytes of scratch memory, and the bytes of the
    stack."""
    result = emulated.run(Request(ptm, model.name, model.inputs, pool_size=0, temp_size=temp,
                                  bare=True), board)
    if result.code:
        raise RuntimeError(f"{model.name} on {board.name}: {result.message}")
    return result.instructions["execute"], max(result.stack.values())


def measure(name, board, folder):
    """Return the figures of one model on one board."""
    model = benchmark_store.load(name)
    program = model.pte(board.name)
    ptm, _ = packing.choose(program, (), name, board.core, lambda _: None, False, 0)
    project = [c_project.Model("model", ptm.data, {"forward": model.inputs})]
    (method,) = c_project.write(project, folder).methods
    flash, ram = sizes(make(folder, board))
    minimum, planned = method.temp, sum(method.planned)
    fastest = compiling.fastest_temp(ptm.data, "forward", board.core, minimum)
    execute, stack = run(ptm.data, model, board, minimum)
    fastest_execute, fastest_stack = run(ptm.data, model, board, fastest)
    return {
        **instructions_to_open(folder, board),
        "execute": fastest_execute, "min_execute": execute,
        "ptm": len(ptm.data), "packed": ptm.parts.packed,
        "constants": ptm_writer.compile_ptm(program).parts.constants,  # the file itself may have fewer
        "planned": planned, "temp": minimum, "stack": stack, "besides": ram - planned - minimum,
        "ram": ram + stack, "temp_fastest": fastest,
        "ram_fastest": ram + fastest - minimum + fastest_stack,
        "flash": flash - sum(-(-array.nbytes // 4) * 4 for array in model.inputs),
    }


def row(name, board, folder):
    """Return one entry of the JSON: our figures, the anchor's, and their ratios."""
    figures = measure(name, board, folder)
    entry = {"model": name, "board": board.name, "core": board.core, **figures,
             "ptm_to_data": round(figures["ptm"] / (figures["constants"] + figures["packed"]), 4)}
    anchor = ANCHOR[name].get(board.name)
    if anchor:
        program = len(benchmark_store.load(name).pte(board.name))
        stack = max(anchor["stack_load"], anchor["stack_execute"])
        entry["anchor"] = {
            "load": anchor["load"], "execute": anchor["execute"], "flash": anchor["flash"] + program,
            "besides": anchor["pool"], "ram": anchor["pool"] + anchor["planned"] + stack}
        ours = {"load": figures["open"]["walk"], **figures}
        entry["ratio"] = {key: round(ours[key] / value, 4) for key, value in entry["anchor"].items()}
    return entry


def table(entries):
    drawn = Table(title="Compiled methods: instructions, and bytes; x: ratio to ExecuTorch's runtime")
    for heading in ("model", "core"):
        drawn.add_column(heading, no_wrap=True)
    for heading in ("start", "trusted", "walk", "x", "strict", "execute", "x", "ptm", "/data",
                    "flash", "x", "planned", "temp", "besides", "x", "stack", "RAM", "x"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for e in entries:
        drawn.add_row(*cells(e))
    return drawn


def cells(e):
    """Return the cells of an entry's row, as text."""
    ratio = {key: shown(e.get("ratio", {}).get(key)) for key in COMPARED}
    start, trusted, walk, strict = (f"{count:,}" for count in (e["start"], *e["open"].values()))
    return [e["model"], e["core"], start, trusted, walk, ratio["load"], strict, f"{e['execute']:,}",
            ratio["execute"], f"{e['ptm']:,}",
            shown(e["ptm_to_data"]), f"{e['flash']:,}", ratio["flash"], f"{e['planned']:,}",
            f"{e['temp']:,}", f"{e['besides']:,}", ratio["besides"], f"{e['stack']:,}", f"{e['ram']:,}",
            ratio["ram"]]


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, type=click.Choice(BOARDS), default=BOARDS,
              help="default: all")
@click.option("--model", "models", multiple=True, type=click.Choice(benchmark_store.NAMES),
              default=benchmark_store.NAMES, help="default: all")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/bench_ptm.json")
def main(names, models, output):
    projects = ROOT / "build" / "bench_ptm"
    shutil.rmtree(projects, ignore_errors=True)  # an earlier version may have left it
    todo = [(model, board) for board in names for model in models]
    entries = [row(model, boards.load_board(board), projects / board)
               for model, board in track(todo, "Measuring", transient=True)]
    Console(width=210).print(table(entries))
    keep(entries, output)


if __name__ == "__main__":
    main()
