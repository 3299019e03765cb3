#!/usr/bin/env python3
"""Run tests/boards/renode on Renode, with the renode-test on PATH, or the one that RENODE_TEST names.

It first builds the firmware of the boards. The expected results come from a run on QEMU just before,
with the same firmware and the same job: outputs, instruction counts and lines on the UART. Without a
renode-test, the program builds and runs nothing, and ends with status 0.

Example: RENODE_TEST=/opt/renode/renode-test tools/renode.py
Example: RENODE_TEST=/opt/renode/renode-test tools/renode.py --board mps2-an386
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import renode_platform
from picotorch import Error
from picotorch.boards import boards
from picotorch.firmware import mpy
from picotorch.host import quoting
from picotorch.host.inputs import read_inputs
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.run import emulated, emulator

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
SUITES = ROOT / "tests" / "boards" / "renode"
BUILD = ROOT / "build" / "renode"
SETUP = ROOT / "tools" / "setup_picotorch.py"
SKIPPED = ("skipped: no renode-test is on PATH, and RENODE_TEST names none. Renode is in no package "
           "registry: get 1.16.1 from renode.io and set RENODE_TEST=/path/to/renode-test")
TIMEOUT = 1200  # seconds of the host for the tests of one board
QEMU_TIMEOUT = 60
MODEL = "int8_ds_cnn"
SMALL_MODEL = "add_1"
MISSING = "external"  # the memory that a platform can lack: for planned buffers, on most boards
POOL_SIZE = 8192  # enough for both models, and available on every board
TEMP_SIZE = 4096
COUNTS = ("verify", "load", "execute")
PROMPT = b">>> "
END = "_board.exit(0)"

ALLOCATION = """
import _board
import job
from picotorch import BufferDataLoader, Error, HierarchicalAllocator, MemoryAllocator, MemoryManager
from picotorch import Method, Program

sections = job.sections(_board.job())
program = Program.load(BufferDataLoader(sections["model"]))
meta = program.method_meta("forward")
planned = [bytearray(meta.memory_planned_buffer_size(i))
           for i in range(meta.num_memory_planned_buffers())]


def run(pool_size):
    pool = MemoryAllocator(bytearray(pool_size))
    try:
        method = Method(MemoryManager(pool, HierarchicalAllocator(planned)))
        method.load(program, "forward")
        for i in range(meta.num_inputs()):
            method.set_input(sections["in%d" % i], i)
        method.execute()
    except Error as error:
        print("error", error)
    else:
        print("output", list(method.get_output(0).data))


run(64)
run(2048)
_board.exit(0)
"""

COMMANDS = """\
import picotorch
import _board
import job
s = job.sections(_board.job())
m = picotorch.Module(s["model"])
y = m.forward(s["in0"])
print("output", list(y.data))
"""


class RenodeError(Exception):
    """A part of the tests could not be set up or did not pass; the message names it."""


def renode_test():
    """Return the program that RENODE_TEST names, or renode-test on PATH, or None.

    Raises RenodeError if the named program is missing.
    """
    named = os.environ.get("RENODE_TEST")
    if not named:
        return shutil.which("renode-test")
    program = shutil.which(named)
    if program is None:
        raise RenodeError(f"RENODE_TEST={named}: there is no such program")
    return os.path.abspath(program)


def build_firmware(names):
    """Build the firmware of boards, in all variants. Raises RenodeError."""
    boards_to_build = [word for name in names for word in ("--board", name)]
    if subprocess.run([sys.executable, SETUP, "firmware", *boards_to_build]).returncode != 0:
        raise RenodeError("the firmware is not built")


def board_names():
    """Return the names of the boards that Renode can run: the ones with a [renode]."""
    return [name for name in boards.board_names() if "renode" in _toml(name)]


def _toml(name):
    return renode_platform.load(boards.BOARDS_DIR / name)


def job_of(name):
    """Return the job that runs a fixture's model with its inputs."""
    pte = (FIXTURES / name / "model.pte").read_bytes()
    inputs = read_inputs(FIXTURES / name / "inputs.npz", open_program(pte).method_meta("forward"))
    return emulated.make_job(Request(pte, name, inputs, pool_size=POOL_SIZE, temp_size=TEMP_SIZE))


# -- results on QEMU --------------------------------------------------------------------


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))


def run_on_qemu(board, job):
    """Return the result of a run on QEMU. Raises RenodeError if it failed."""
    result = emulator.run(board, emulator.firmware_path(board), job, timeout=QEMU_TIMEOUT)
    if result.status != 0:
        raise RenodeError(f"the run on QEMU ended with status {result.status}: {result.lines}")
    return result


def prepare_model(board, folder):
    """Write the job of the model, and its outputs and counts."""
    job = job_of(MODEL)
    files = run_on_qemu(board, job).files
    (folder / "model.job").write_bytes(job.to_bytes())
    counts = [line for line in files.pop("report").decode().splitlines()
              if line.split("=")[0] in COUNTS]
    if len(counts) != len(COUNTS) or "out0" not in files:
        raise RenodeError(f"the run on QEMU told {counts} and wrote {sorted(files)}")
    (folder / "model").mkdir()
    for name, data in files.items():
        (folder / "model" / name).write_bytes(data)
    write_lines(folder / "model.files", sorted(files))
    write_lines(folder / "model.counts", counts)


def prepare_allocation(board, folder):
    """Write the job of the allocation that fails, and its lines on the UART."""
    job = job_of(SMALL_MODEL)
    job.add("script", mpy.compile_script(ALLOCATION))
    lines = run_on_qemu(board, job).lines
    kinds = [line.split(" ")[0] for line in lines]
    if kinds != ["error", "output"] or "(0x21)" not in lines[0] or "B available" not in lines[0]:
        raise RenodeError(f"the allocation that fails printed {lines}")
    (folder / "allocation.job").write_bytes(job.to_bytes())
    write_lines(folder / "allocation.lines", lines)


def talk(process, commands):
    """Type each command at a prompt, and return all output."""
    heard = b""
    for command in commands:
        while not heard.endswith(PROMPT):
            byte = process.stdout.read(1)
            if not byte:
                raise RenodeError(f"no prompt on QEMU: {heard.decode(errors='replace')}")
            heard += byte
        process.stdin.write(command.encode() + b"\r")
        process.stdin.flush()
        heard += b"\n"
    return heard + process.stdout.read()


def prepare_repl(board, folder):
    """Write the commands for the prompt, and the last lines that they print."""
    job = folder / "small.job"
    job.write_bytes(job_of(SMALL_MODEL).to_bytes())
    firmware = emulator.firmware_path(board, "repl")
    commands = COMMANDS.splitlines()
    with subprocess.Popen(emulator.emulator_command(board, firmware, job), cwd=folder,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        timer = threading.Timer(QEMU_TIMEOUT, process.kill)
        timer.start()
        try:
            heard = talk(process, [*commands, END]).decode()
        finally:
            timer.cancel()
            process.kill()
    lines = [line.rstrip() for line in heard.splitlines() if line.startswith("output ")]
    if len(lines) != 1:
        raise RenodeError(f"the prompt on QEMU printed:\n{heard}")
    write_lines(folder / "repl.commands", commands)
    write_lines(folder / "repl.lines", lines)


# -- Renode ---------------------------------------------------------------------------


def suites(toml):
    """Return the .robot files for a board. Without MISSING, the board has no memory to leave out."""
    return [path for path in sorted(SUITES.glob("*.robot"))
            if path.stem != "missing_memory" or MISSING in toml["memories"]]


def prepare(board, toml, folder):
    """Write all files that the suites need for a board into its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("files", "results"):
        (folder / name).mkdir(parents=True)
    (folder / "board.repl").write_text(renode_platform.platform(toml))
    if MISSING in toml["memories"]:
        (folder / "missing.repl").write_text(renode_platform.platform(toml, without=(MISSING,)))
    prepare_model(board, folder)
    prepare_allocation(board, folder)
    prepare_repl(board, folder)


def variables(board, folder):
    """Return the variables of tests/boards/renode/board.resource."""
    return {
        "BOARD": board.name,
        "CREATE_SNAPSHOT_ON_FAIL": False,  # Renode cannot store the hooks of semihosting.py
        "CASES": folder,
        "FILES": folder / "files",
        "FIRMWARE": emulator.firmware_path(board),
        "REPL_FIRMWARE": emulator.firmware_path(board, "repl"),
        "UART": renode_platform.UART_NAME,
        "JOB_ADDRESS": f"{board.job.address:#010x}",
        "CODE_ADDRESS": f"{board.code.address:#010x}",
        "CODE_SIZE": f"{board.code.size:#x}",
    }


def run_suites(program, board, toml, folder):
    """Run the suites of a board. Raises RenodeError unless all pass in time."""
    command = [program, "-r", str(folder / "results")]
    for name, value in variables(board, folder).items():
        command += ["--variable", f"{name}:{value}"]
    command += map(str, suites(toml))
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL,
                          start_new_session=True) as process:
        try:
            status = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise RenodeError(f"{board.name}: not done within {TIMEOUT} s") from None
        finally:
            _kill_group(process.pid)
    if status != 0:
        raise RenodeError(f"{board.name}: status {status}; the logs are in {folder / 'results'}")


def _kill_group(leader):
    """End a Renode that renode-test has left running."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_board(program, name, folder=None):
    """Prepare and run the tests of a board. Raises RenodeError."""
    board, toml = boards.load_board(name), _toml(name)
    folder = folder or BUILD / name
    try:
        quoting.robot(folder)
    except Error as error:
        raise RenodeError(error.message) from None
    prepare(board, toml, folder)
    run_suites(program, board, toml, folder)


@click.command(help=__doc__.partition("\n\n")[0])
@click.option("--board", "names", multiple=True, type=click.Choice(board_names()),
              help="Default: all that Renode can be told of.")
def main(names):
    failed = []
    names = names or board_names()
    try:
        program = renode_test()
        if program is None:
            click.echo(SKIPPED)
            return
        build_firmware(names)
    except RenodeError as error:
        sys.exit(f"renode: {error}")
    for name in names:
        try:
            run_board(program, name)
        except (RenodeError, emulator.EmulatorError, mpy.CompileError) as error:
            failed.append(f"renode: {error}")
            click.echo(failed[-1], err=True)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
