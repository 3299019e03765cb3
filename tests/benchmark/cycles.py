"""Estimate the cycles of an inference on each kind of core.

    python tests/benchmark/cycles.py                                  # table, and build/cycles.json
    python tests/benchmark/cycles.py --board mps2-an386 --model int8_ds_cnn --functions

The manuals of M0+, M3 and M4 have tables of cycles, which instruction_timings.py contains. For these
cores the emulator counts each block of instructions (block_counts.c). pipelines.py simulates M7, M33
and M55; for these the emulator logs each block that it executes.

The estimate omits the parts that depend on the chip: wait states of flash, caches, write buffers, the
bus. The figures in brackets use the minimum and the maximum of each cost that the sources leave open.
"""

import dataclasses
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click
from picotorch.boards import boards
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.host.instructions import KERNEL_CALL, read_instructions
from picotorch.host.twin import open_program
from picotorch.host.values import Values
from picotorch.measure.cycles import conditions, operator_of, preferred_by
from picotorch.run import emulated, emulator, running
from picotorch.run.runner_files import make_job
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import DENSE, MODELS, WEIGHTS, keep, macs_of, request  # noqa: E402
from benchmark.disassembly import disassemble  # noqa: E402
from benchmark.instruction_timings import CORES, Timings  # noqa: E402
from benchmark.pipelines import Pipelines  # noqa: E402
from support import benchmark_store  # noqa: E402

BOARDS = [name for name in boards.board_names() if name.startswith("mps")]
SPARSE = "int8_deep_autoencoder"
SKIPPING = ("mps2-an385-m0plus", "mps2-an385")  # linear layers of these cores skip zeros
OVERHEAD = 1000  # instructions around execute() that the board's counter excludes
EXECUTION = 6  # starts of the counter: at boot, for its overhead, verify, load, set_inputs, execute
EXECUTORS = ("pt_context_execute", "call_in_place")  # call kernels, of .ptm files too, and POLL
POLL = "mp_method_poll"
TRACE = re.compile(r"Trace \d+: (0x[0-9a-f]+) \[[0-9a-f]+/([0-9a-f]+)/[0-9a-f]+/[0-9a-f]+\] ?(.*)")
LISTED = re.compile(r"(0x[0-9a-f]+):\s+((?:[0-9a-f]{4} ?){1,2})")


def code_between(instructions, first, end):
    """Return the instructions from the address `first` up to `end`."""
    found = []
    while first < end:
        found.append(instructions[first])
        first += found[-1].size
    return tuple(found)


class Blocks:
    """The blocks of instructions in a log of the emulator."""

    def __init__(self, instructions):
        self.instructions = instructions  # by address
        self.code, self.names = {}, {}
        self.counter_start = None  # address of the function's first block

    def executed(self, log):
        """Yield (block, address of the next block) for each block of execute()."""
        first, end, starts, before = None, None, 0, None
        for line in log:
            if line.startswith("Trace"):
                key, address, name = TRACE.match(line).groups()
                if first is not None:
                    self.code[key], self.names[key] = code_between(self.instructions, first, end), name
                    first = None
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
        """Return True for the first block of the function, which may have more."""
        address = self.code[key][0].address
        self.counter_start = self.counter_start or address
        return address == self.counter_start


class Predictor:
    """The branch prediction of M7: two bits per branch, and the last target of each indirect branch."""

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
    """Sums of [instructions, minimum, usual, maximum of cycles] by (call of a kernel, function). Blocks
    are added in the order of execution. Call 0 covers the blocks before the first call."""

    def __init__(self, core, blocks):
        self.blocks, self.sums, self.call, self.calls = blocks, {}, 0, False
        self.core = Timings(core) if core in CORES else Pipelines(core)
        self.predictor = Predictor() if core == "cortex-m7" else None
        self.state, self.known = self.core.start, {}

    def add(self, key, following):
        code, name = self.blocks.code[key], self.blocks.names[key]
        self.call += self.calls and name != POLL
        last = code[-1]
        taken = last.is_branch and following != last.address + last.size
        wrong = self.predictor is not None and last.is_branch \
            and self.predictor.is_wrong(last, taken, following)
        case = self.state, key, taken, wrong
        if case not in self.known:
            self.known[case] = self.core.run(self.state, code, taken, wrong)
        cycles, self.state = self.known[case]
        add(self.sums, (self.call, name), len(code), cycles)
        self.calls = name in EXECUTORS and last.name == "blx"


def add(sums, key, instructions, cycles, times=1):
    found = sums.setdefault(key, [0, 0, 0, 0])
    for i, part in enumerate((instructions, *cycles)):
        found[i] += part * times


def weigh(core, instructions, log):
    blocks = Blocks(instructions)
    weights = Weights(core, blocks)
    for key, following in blocks.executed(log):
        weights.add(key, following)
    return weights.sums


def weigh_counts(core, instructions, lines):
    """Return the sums of Weights from the counts of block_counts.c."""
    blocks, names, sums, core = {}, {}, {}, Timings(core)
    for line in lines:
        word, *values = line.split()
        if word == "block":
            index, first, last = int(values[0]), int(values[1], 16), int(values[2], 16)
            blocks[index] = code_between(instructions, first, last + instructions[last].size)
            names[index] = values[3] if len(values) > 3 else ""
        elif word == "count":
            call, before, block, following, times = map(int, values)
            code = blocks[block]
            last = code[-1]
            taken = last.is_branch and blocks[following][0].address != last.address + last.size
            cycles, _ = core.run(blocks[before][-1], code, taken, False)
            add(sums, (call, names[block]), len(code), cycles, times)
    return sums


def plugin():
    """Build block_counts.c, and return the path of the plugin."""
    source, built = Path(__file__).with_name("block_counts.c"), ROOT / "build/block_counts.so"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        new = built.with_suffix(f".{os.getpid()}")  # other processes may build it at the same time
        subprocess.run(["cc", "-std=c99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", source,
                        "-o", new], check=True)
        new.replace(built)
    return built


def logged(command, folder):
    """Run the emulator, and yield the lines of its log."""
    os.mkfifo(folder / "log")
    command = [*command, "-d", "in_asm,exec,nochain", "-D", str(folder / "log")]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    with (folder / "log").open() as log:
        yield from log
    process.wait()


def counted(command, folder):
    """Run the emulator, and yield the lines that block_counts.c writes."""
    names = ",".join([f"polls={POLL}", *(f"executor={name}" for name in EXECUTORS)])
    command = [*command, "-plugin",
               f"{plugin()},output={folder / 'counts'},starts={EXECUTION},{names}"]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    with (folder / "counts").open() as lines:
        yield from lines


def check_names(firmware):
    """Raise RuntimeError unless the firmware has the functions that separate the calls of kernels."""
    listed = subprocess.run(["arm-none-eabi-nm", firmware], check=True, text=True, capture_output=True)
    missing = {*EXECUTORS, POLL} - {line.split()[-1] for line in listed.stdout.splitlines()}
    if missing:
        raise RuntimeError(f"{firmware}: no function {', '.join(sorted(missing))}; was it renamed?")


def trace(board, one, is_logged=True):
    """Run the request on the board. Return its sums, the counted instructions, and the bytes of packed
    weights."""
    firmware = emulated.firmware_of(one, board)
    check_names(firmware)
    instructions = disassemble(firmware, board.core)
    run, weighed = (logged, weigh) if is_logged else (counted, weigh_counts)
    with tempfile.TemporaryDirectory(prefix="picotorch-") as name:
        folder = Path(name)
        (folder / "job").write_bytes(make_job(one).to_bytes())
        lines = run(emulator.emulator_command(board, firmware, folder / "job"), folder)
        sums = weighed(board.core, instructions, lines)
        for _ in lines:  # read the rest, so that the emulator ends
            pass
        report = (folder / "report").read_text()
    figures = dict(re.findall(r"^(\w+)=(\d+)$", report, re.MULTILINE))
    return sums, int(figures["execute"]), int(figures["packed"])


def total(sums, part):
    """Add up the sums of all keys with the same `part`."""
    found = {}
    for key, (instructions, *cycles) in sums.items():
        add(found, key[part], instructions, cycles)
    return found


def operators(one, sums):
    """Return [instructions, usual cycles] by operator, or {} for a method that runs a call more than
    once."""
    meta = open_program(one.model).method_meta(one.method)
    values = Values(meta.program, meta.plan)
    calls = [operator_of(instruction, values) for instruction in read_instructions(meta, values)
             if instruction.kind == KERNEL_CALL]
    by_call, found = total(sums, 0), {}
    if len(by_call) != len(calls) + 1:
        return {}
    for i, (count, _, usual, _) in by_call.items():
        sums = found.setdefault(calls[max(0, i - 1)], [0, 0])
        sums[0] += count
        sums[1] += round(usual)
    return found


def request_in(name, board, weights, has_less_temp=False, of_ptm=False):
    """Return the request of an estimate. has_less_temp: provide only as much temp memory as kernels
    use. of_ptm: run the compiled method of the program."""
    one = request(name, board, weights)
    if of_ptm:
        ptm = compile_ptm(one.model, (), board.core if weights == "pool" else None)
        one = dataclasses.replace(one, model=ptm.data, pack_weights=False)
    if has_less_temp:
        one.temp_size = running.run(one, board.name).temp.used
    return one


def estimate(name, board, weights, has_less_temp=False, of_ptm=False):
    """Return one entry of the JSON; request_in has the arguments."""
    one = request_in(name, board, weights, has_less_temp, of_ptm)
    sums, counted, packed = trace(board, one, board.core not in CORES)
    functions = total(sums, 1)
    instructions, minimum, usual, maximum = (round(sum(column)) for column in
                                        zip(*functions.values(), strict=True))
    if not 0 <= instructions - counted < OVERHEAD:
        raise RuntimeError(f"{name} on {board.name}: {instructions} traced, {counted} counted")
    macs = macs_of(name)
    return {"model": name, "board": board.name, "core": board.core, "weights": weights,
            "mode": conditions(one.model, board.core, packed, has_less_temp).mode(),
            "has_less_temp": has_less_temp, "temp": one.temp_size, "packed": packed,
            "execute": counted, "instructions": instructions, "cycles": usual,
            "least": minimum, "most": maximum,
            "cycles_per_instruction": round(usual / instructions, 3),
            "cycles_per_mac": round(usual / macs, 3) if macs else None,
            "operators": operators(one, sums),
            "functions": {function: [round(part) for part in parts] for function, parts in
                          sorted(functions.items(), key=lambda item: -item[1][2])[:12]}}


HEADINGS = ["model", "core", "mode", "instructions", "cycles", "[least", "most]", "cycles/instr",
            "cycles/MAC"]


def cells(e):
    return [e["model"], e["core"], e["mode"], f"{e['instructions']:,}", f"{e['cycles']:,}",
            f"[{e['least']:,}", f"{e['most']:,}]", f"{e['cycles_per_instruction']:.2f}",
            "-" if e["cycles_per_mac"] is None else f"{e['cycles_per_mac']:.2f}"]


def table(entries):
    drawn = Table(title="Cycles of one inference, estimated")
    for i, heading in enumerate(HEADINGS):
        drawn.add_column(heading, justify="left" if i < 3 else "right", no_wrap=True)
    for e in entries:
        drawn.add_row(*cells(e))
    return drawn


def prefers_more(name, board, weights, of_ptm):
    """Return True if kernels prefer more temp memory than they use."""
    one = request_in(name, board, weights, True, of_ptm)
    return preferred_by(one, board.core) > one.temp_size


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, type=click.Choice(BOARDS), help="default: all")
@click.option("--model", "models", multiple=True, help="default: those of bench.py")
@click.option("--weights", "modes", multiple=True, type=click.Choice(WEIGHTS), default=WEIGHTS,
              help="default: all")
@click.option("--functions", is_flag=True, help="also those that take most, for each model and core")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/cycles.json")
def main(names, models, modes, functions, output):
    entries = []
    todo = [(model, board) for model in models or [*MODELS, SPARSE + DENSE] for board in names or BOARDS
            if DENSE not in model or board in SKIPPING]
    for model, board in track(todo, "Tracing", transient=True):
        board, is_int8 = boards.load_board(board), model in benchmark_store.NAMES
        for weights in modes if is_int8 else modes[:1]:  # no other cores pack weights
            found = [estimate(model, board, weights)]
            found += [estimate(model, board, weights, True, of_ptm) for of_ptm in (False, True)
                      if is_int8 and prefers_more(model, board, weights, of_ptm)]
            entries += [e for e in found if weights == modes[0] or "pool" in e["mode"]]
    Console(width=140).print(table(entries))
    for e in entries if functions else []:
        click.echo(f"\n{e['model']} on {e['core']}, {e['weights']}: instructions, cycles, function")
        for function, (instructions, _, usual, _) in e["functions"].items():
            click.echo(f"{instructions:>12,} {usual:>12,}  {function}")
    keep(entries, output)


if __name__ == "__main__":
    main()
