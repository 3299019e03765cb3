"""Estimates the cycles of an inference on cores whose instruction timings are documented.

    python tools/cycles.py                                  # table, and build/cycles.json
    python tools/cycles.py --board mps2-an386 --model int8_ds_cnn --functions

The emulator logs each block of instructions that it executes; instructions are counted and weighed with
tools/instruction_timings.py. The estimate leaves out what depends on the chip: wait states of flash,
write buffers, the bus. In brackets: with all that the manuals leave open at its least and its most.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click
from picotorch.host.boards import boards
from picotorch.host.run import emulator
from picotorch.host.run.request import PREPARE
from picotorch.host.run.runner_files import make_job
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import benchmark_store  # noqa: E402
from bench import macs_of, request  # noqa: E402
from instruction_timings import CORES, Instruction, cost  # noqa: E402

BOARDS = [name for name in boards.board_names()
          if boards.load_board(name).core in CORES and name.startswith("mps")]
OVERHEAD = 1000  # instructions around execute() that the board does not count
EXECUTION = 6  # starts of the counter: at boot, of its overhead, verify, load, set_inputs, execute
TRACE = re.compile(r"Trace \d+: (0x[0-9a-f]+) \[[0-9a-f]+/([0-9a-f]+)/[0-9a-f]+/[0-9a-f]+\] ?(.*)")
LISTED = re.compile(r"(0x[0-9a-f]+):\s+((?:[0-9a-f]{4} ?){1,2})\s+(\S+)\s*(.*)")


class Blocks:
    """The blocks of a log, and how often each was followed by which during execute()."""

    def __init__(self):
        self.code, self.names, self.followed = {}, {}, Counter()
        self.counter_start = None  # address

    def read(self, log):
        listing, starts, before = [], 0, None
        for line in log:
            if line.startswith("Trace"):
                key, address, name = TRACE.match(line).groups()
                if listing:
                    self.code[key], self.names[key], listing = listing, name, []
                if starts == EXECUTION and before:
                    self.followed[before, int(address, 16)] += 1
                starts += name == "pt_counter_start" and self._starts_counter(key)
                if starts == EXECUTION and name == "pt_counter_stop":
                    break
                before = key
            elif line.startswith("0x"):
                listing.append(self._instruction(line))
            elif line.startswith("IN:"):
                listing = []
            elif line.startswith("Stopped"):
                before = None

    def _starts_counter(self, key):
        """True for the first block of the function, which may have more."""
        address = self.code[key][0][0]
        self.counter_start = self.counter_start or address
        return address == self.counter_start

    @staticmethod
    def _instruction(line):
        address, code, mnemonic, operands = LISTED.match(line).groups()
        size = 2 * len(code.split())
        return int(address, 16), size, Instruction(mnemonic, operands.strip())


def trace(board, one):
    """The Blocks of a run of the request on the board, and the instructions that the board counted."""
    blocks = Blocks()
    with tempfile.TemporaryDirectory(prefix="picotorch-") as name:
        folder = Path(name)
        (folder / "job").write_bytes(make_job(one).to_bytes())
        os.mkfifo(folder / "log")
        command = emulator.emulator_command(board, emulator.firmware_path(board), folder / "job")
        command += ["-d", "in_asm,exec,nochain", "-D", str(folder / "log")]
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        with (folder / "log").open() as log:
            blocks.read(log)
            for _ in log:  # what follows, so that the emulator comes to its end
                pass
        process.wait()
        report = (folder / "report").read_text()
    return blocks, int(re.search(r"^execute=(\d+)$", report, re.MULTILINE)[1])


def weigh(core, blocks):
    """Instructions and (least, usual, most) cycles by function."""
    functions = {}
    for (key, following), count in blocks.followed.items():
        instructions, cycles = 0, [0, 0, 0]
        before = None
        for address, size, one in blocks.code[key]:
            last = (address, size, one) == blocks.code[key][-1]
            taken = last and one.is_branch and following != address + size
            instructions += 1
            for i, part in enumerate(cost(core, one, before, taken)):
                cycles[i] += part
            before = one
        sums = functions.setdefault(blocks.names[key], [0, 0, 0, 0])
        for i, part in enumerate([instructions, *cycles]):
            sums[i] += part * count
    return functions


def estimate(name, board, prepare):
    """One entry of the JSON."""
    blocks, counted = trace(board, request(name, board, prepare))
    functions = weigh(board.core, blocks)
    instructions, least, usual, most = (round(sum(column)) for column in
                                        zip(*functions.values(), strict=True))
    if not 0 <= instructions - counted < OVERHEAD:
        raise RuntimeError(f"{name} on {board.name}: {instructions} traced, {counted} counted")
    macs = macs_of(name)
    return {"model": name, "board": board.name, "core": board.core, "prepare": prepare,
            "instructions": instructions, "cycles": usual, "least": least, "most": most,
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
@click.option("--prepare", type=click.Choice(PREPARE), default=PREPARE[0], show_default=True)
@click.option("--functions", is_flag=True, help="also those that take most, for each model and core")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/cycles.json")
def main(names, models, prepare, functions, output):
    todo = [(model, board) for model in models or benchmark_store.NAMES for board in names or BOARDS]
    entries = [estimate(model, boards.load_board(board), prepare)
               for model, board in track(todo, "Tracing", transient=True)]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(entries, indent=1) + "\n")
    Console(width=140).print(table(entries))
    for e in entries if functions else []:
        click.echo(f"\n{e['model']} on {e['core']}: instructions, cycles, function")
        for function, (instructions, _, usual, _) in e["functions"].items():
            click.echo(f"{instructions:>12,} {usual:>12,}  {function}")
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
