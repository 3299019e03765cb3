"""Estimates the cycles of an inference on each kind of core.

    python tests/benchmark/cycles.py                                  # table, and build/cycles.json
    python tests/benchmark/cycles.py --board mps2-an386 --model int8_ds_cnn --functions

The emulator logs each block of instructions that it executes. What they take is in
instruction_timings.py for M0+, M3 and M4, whose manuals have tables; pipelines.py simulates M7, M33 and
M55. The estimate leaves out what depends on the chip: wait states of flash, caches, write
buffers, the bus. In brackets: with all that the sources leave open at its least and its most.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click
from picotorch.host.boards import boards
from picotorch.host.run import emulator
from picotorch.host.run.request import PREPARE
from picotorch.host.run.runner_files import make_job
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import macs_of, request  # noqa: E402
from benchmark.disassembly import disassemble  # noqa: E402
from benchmark.instruction_timings import CORES, Timings  # noqa: E402
from benchmark.pipelines import Pipelines  # noqa: E402
from support import benchmark_store  # noqa: E402

BOARDS = [name for name in boards.board_names() if name.startswith("mps")]
OVERHEAD = 1000  # instructions around execute() that the board does not count
EXECUTION = 6  # starts of the counter: at boot, of its overhead, verify, load, set_inputs, execute
TRACE = re.compile(r"Trace \d+: (0x[0-9a-f]+) \[[0-9a-f]+/([0-9a-f]+)/[0-9a-f]+/[0-9a-f]+\] ?(.*)")
LISTED = re.compile(r"(0x[0-9a-f]+):\s+((?:[0-9a-f]{4} ?){1,2})")


class Blocks:
    """The blocks of a log."""

    def __init__(self, instructions):
        self.instructions = instructions  # by address
        self.code, self.names = {}, {}
        self.counter_start = None  # address

    def executed(self, log):
        """Yield (block, address of the next) for what execute() runs."""
        first, end, starts, before = None, None, 0, None
        for line in log:
            if line.startswith("Trace"):
                key, address, name = TRACE.match(line).groups()
                if first is not None:
                    self.code[key], self.names[key], first = self._between(first, end), name, None
                if starts == EXECUTION and before:
                    yield before, int(address, 16)
                starts += name == "pt_counter_start" and self._starts_counter(key)
                if starts == EXECUTION and name == "pt_counter_stop":
                    break
                before = key
            elif line.startswith("0x"):
                address, code = LISTED.match(line).groups()
                end = int(address, 16) + 2 * len(code.split())
                first = int(address, 16) if first is None else first
            elif line.startswith("IN:"):
                first = None
            elif line.startswith("Stopped"):  # the block before did not run
                starts -= before is not None and self.names[before] == "pt_counter_start" \
                    and self._starts_counter(before)
                before = None

    def _starts_counter(self, key):
        """True for the first block of the function, which may have more."""
        address = self.code[key][0].address
        self.counter_start = self.counter_start or address
        return address == self.counter_start

    def _between(self, first, end):
        found = []
        while first < end:
            found.append(self.instructions[first])
            first += found[-1].size
        return tuple(found)


class Predictor:
    """M7's prediction: two bits a branch; the last target of a branch through a register."""

    def __init__(self):
        self.taken, self.targets = {}, {}

    def is_wrong(self, branch, taken, following):
        if branch.is_indirect:
            expected = self.targets.get(branch.address, following)
            self.targets[branch.address] = following
            return expected != following
        if branch.name != "bcond" and branch.kind == "branch" and not branch.name.startswith("cb"):
            return False
        count = self.taken.get(branch.address, 2)
        self.taken[branch.address] = min(3, count + 1) if taken else max(0, count - 1)
        return taken != (count >= 2)


class Weights:
    """By function [instructions, least, usual, most cycles], of blocks in the order of execution."""

    def __init__(self, core, blocks):
        self.blocks, self.functions = blocks, {}
        self.core = Timings(core) if core in CORES else Pipelines(core)
        self.predictor = Predictor() if core == "cortex-m7" else None
        self.state, self.known = self.core.start, {}

    def add(self, key, following):
        code = self.blocks.code[key]
        last = code[-1]
        taken = last.is_branch and following != last.address + last.size
        wrong = self.predictor is not None and last.is_branch \
            and self.predictor.is_wrong(last, taken, following)
        case = self.state, key, taken, wrong
        if case not in self.known:
            self.known[case] = self.core.run(self.state, code, taken, wrong)
        cycles, self.state = self.known[case]
        sums = self.functions.setdefault(self.blocks.names[key], [0, 0, 0, 0])
        for i, part in enumerate((len(code), *cycles)):
            sums[i] += part


def weigh(core, instructions, log):
    blocks = Blocks(instructions)
    weights = Weights(core, blocks)
    for key, following in blocks.executed(log):
        weights.add(key, following)
    return weights.functions


def trace(board, one):
    """(functions of a run of the request on the board, counted instructions, prepared bytes)"""
    firmware = emulator.firmware_path(board)
    instructions = disassemble(firmware, board.core)
    with tempfile.TemporaryDirectory(prefix="picotorch-") as name:
        folder = Path(name)
        (folder / "job").write_bytes(make_job(one).to_bytes())
        os.mkfifo(folder / "log")
        command = emulator.emulator_command(board, firmware, folder / "job")
        command += ["-d", "in_asm,exec,nochain", "-D", str(folder / "log")]
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        with (folder / "log").open() as log:
            functions = weigh(board.core, instructions, log)
            for _ in log:  # what follows, so that the emulator comes to its end
                pass
        process.wait()
        report = (folder / "report").read_text()
    figures = dict(re.findall(r"^(\w+)=(\d+)$", report, re.MULTILINE))
    return functions, int(figures["execute"]), int(figures["prepared"])


def estimate(name, board, prepare):
    """One entry of the JSON."""
    functions, counted, prepared = trace(board, request(name, board, prepare))
    instructions, least, usual, most = (round(sum(column)) for column in
                                        zip(*functions.values(), strict=True))
    if not 0 <= instructions - counted < OVERHEAD:
        raise RuntimeError(f"{name} on {board.name}: {instructions} traced, {counted} counted")
    macs = macs_of(name)
    return {"model": name, "board": board.name, "core": board.core, "prepare": prepare,
            "prepared": prepared, "instructions": instructions,
            "cycles": usual, "least": least, "most": most,
            "cycles_per_instruction": round(usual / instructions, 3),
            "cycles_per_mac": round(usual / macs, 3) if macs else None,
            "functions": {function: [round(part) for part in parts] for function, parts in
                          sorted(functions.items(), key=lambda item: -item[1][2])[:12]}}


HEADINGS = ["model", "core", "prepare", "instructions", "cycles", "[least", "most]", "cycles/instr",
            "cycles/MAC"]


def cells(e):
    return [e["model"], e["core"], e["prepare"], f"{e['instructions']:,}", f"{e['cycles']:,}",
            f"[{e['least']:,}", f"{e['most']:,}]", f"{e['cycles_per_instruction']:.2f}",
            "-" if e["cycles_per_mac"] is None else f"{e['cycles_per_mac']:.2f}"]


def table(entries):
    drawn = Table(title="Cycles of one inference, estimated")
    for i, heading in enumerate(HEADINGS):
        drawn.add_column(heading, justify="left" if i < 3 else "right", no_wrap=True)
    for e in entries:
        drawn.add_row(*cells(e))
    return drawn


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, type=click.Choice(BOARDS), help="default: all")
@click.option("--model", "models", multiple=True, help="default: the int8 models of the benchmark")
@click.option("--prepare", "modes", multiple=True, type=click.Choice(PREPARE), default=PREPARE,
              help="default: all")
@click.option("--functions", is_flag=True, help="also those that take most, for each model and core")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/cycles.json")
def main(names, models, modes, functions, output):
    entries = []
    todo = [(model, board) for model in models or benchmark_store.NAMES for board in names or BOARDS]
    for model, board in track(todo, "Tracing", transient=True):
        found = [estimate(model, boards.load_board(board), mode) for mode in modes]
        entries += [e for e in found if e["prepare"] == modes[0] or e["prepared"]]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(entries, indent=1) + "\n")
    Console(width=140).print(table(entries))
    for e in entries if functions else []:
        click.echo(f"\n{e['model']} on {e['core']}, {e['prepare']}: instructions, cycles, function")
        for function, (instructions, _, usual, _) in e["functions"].items():
            click.echo(f"{instructions:>12,} {usual:>12,}  {function}")
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
