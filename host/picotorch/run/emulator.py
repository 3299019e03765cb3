"""Start an emulated board with a job and collect its results.

The board prints lines on its UART, writes files through semihosting into a folder that exists during
the run, and ends with an exit status.
"""

import contextlib
import functools
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..boards.boards import BOARDS_DIR, Board, Memory
from ..host import child, quoting, show
from ..host.elf import flash_end
from ..host.files import write
from ..host.sources import ROOT
from .job import ALIGNMENT, Job

FIRMWARE_DIR = ROOT / "build" / "firmware"
SOURCES = ROOT / "port" / "firmware" / "frozen_repl"  # the scripts of a checkout

FAULT_STATUS = 70

# Denied to the emulator: starting a program (semihosting's SYS_SYSTEM would), and changing its user or
# its priority. It may access files.
SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

# The emulator's own messages. The second one appears when the Stellaris' watchdog is reset.
NOISE = (": warning: ", "Timer with period zero, disabling")
LOCKUP = "Lockup"

# The firmware prints these lines at a fault (port/firmware/fault.c)
FAULT = "picotorch: fault: "
STACK_OVERFLOW = "stack overflow"


_processes: set[subprocess.Popen[bytes]] = set()  # running processes


class EmulatorError(Exception):
    """The emulator could not run the board, or stopped by itself."""


class EmulatorMissing(EmulatorError):
    """The emulator's program is not installed."""


class FirmwareMissing(EmulatorError):
    """The firmware of the board is not built."""


class WrongFirmware(EmulatorError):
    """A file that is not a firmware of the board."""


class OldFirmware(EmulatorError):
    """The firmware is older than the board's board.toml."""


class JobTooLarge(EmulatorError):
    """The job does not fit into the board's memory for it, or its objects into the heap."""


class EmulatorTimeout(EmulatorError):
    """The board did not end in time. lines: its output until then."""

    def __init__(self, message: str, lines: list[str]) -> None:
        super().__init__(message)
        self.lines = lines


@dataclass(frozen=True)
class Result:
    """The result of a boot: exit status, lines from the UART, files by name."""

    status: int
    lines: list[str]
    files: dict[str, bytes]


def build_folder(board: str, variant: str) -> Path:
    """Return the folder of a board's firmware and of its objects."""
    return FIRMWARE_DIR / f"{board}-{variant}"


def selected_path(board: str, bare: bool = False) -> Path:
    """Return the output path of `picotorch firmware --models` for a board."""
    return FIRMWARE_DIR / f"{board}{'-bare' if bare else ''}-selected.elf"


def _selected_firmware(board: Board, bare: bool) -> Path:
    path = selected_path(board.name, bare)
    if not path.exists():
        raise FirmwareMissing(f"there is no {path}: {board.build_command(bare)}")
    return path


def firmware_path(board: Board, variant: str = "run") -> Path:
    """Return the path of the board's firmware.

    It is the selected firmware if all kernels do not fit. Raises FirmwareMissing if it is not built.
    """
    if not board.full_firmware and variant != "repl":
        return _selected_firmware(board, variant == "bare")
    path = build_folder(board.name, variant) / "firmware.elf"
    if not path.exists():
        make = ("port/bare" if variant == "bare" else "port/firmware", f"BOARD={board.name}",
                *([] if variant == "bare" else [f"VARIANT={variant}"]))
        raise FirmwareMissing(f"there is no {path}: make -C {' '.join(make)}")
    return path


def _title(board: Board) -> str:
    return f"{board.name} with {board.core}"


def is_bare(board: Board, path: Path) -> bool:
    """Return True for a firmware without MicroPython."""
    return f"board=bare, {_title(board)}\0".encode() in path.read_bytes()


def symbols_in(path: Path, names: Iterable[str]) -> set[str]:
    """Return the names that are symbols in a firmware."""
    data = path.read_bytes()
    return {name for name in names if f"\0{name}\0".encode() in data}


def check_firmware(board: Board, path: Path, bare: bool = False) -> None:
    """Check a firmware file.

    Raises FirmwareMissing without the file, OldFirmware if board.toml changed after its build,
    WrongFirmware if it is not for the board. With `bare` it has to be a firmware without MicroPython.
    """
    if not path.is_file():
        raise FirmwareMissing(f"there is no file {path}")
    if f"{_title(board)}\0".encode() not in path.read_bytes():
        raise WrongFirmware(f"{path} is not a firmware of {board.name}")
    if bare and not is_bare(board, path):
        raise WrongFirmware(f"{path} has MicroPython in it")
    toml = BOARDS_DIR / board.name / "board.toml"
    if SOURCES.is_dir() and toml.stat().st_mtime > path.stat().st_mtime:
        raise OldFirmware(f"{path} is older than boards/{board.name}/board.toml")


def _emulator_program(board: Board) -> str:
    program = shutil.which(board.emulator.program)
    if program is None:
        raise EmulatorMissing(
            f"{board.emulator.program} is not installed; "
            f"on Debian: apt-get install {board.emulator.package}"
        )
    return program


@functools.cache
def _sandbox(program: str) -> tuple[str, ...]:
    """Return the arguments for SANDBOX. If it is unavailable, print a warning and return none."""
    arguments = ("-sandbox", SANDBOX)
    start = [program, *arguments, "-machine", "none", "-nodefaults", "-display", "none"]
    tried = subprocess.run([*start, "-monitor", "stdio"], input=b"quit\n", capture_output=True)
    if tried.returncode == 0:
        return arguments
    reason = tried.stderr.decode("utf-8", "backslashreplace").strip().splitlines()[-1:]
    show.line(
        f"{program} has no sandbox ({''.join(reason) or f'status {tried.returncode}'}): nothing keeps "
        "a board's code from starting programs on this computer; run only models that you trust",
        err=True,
    )
    return ()


def identity(board: Board) -> bytes:
    """Return the data on which all counts of a run depend besides firmware and job.

    Raises EmulatorMissing.
    """
    program = Path(_emulator_program(board))
    return repr((board, program, program.stat().st_mtime_ns)).encode()


def emulator_command(
    board: Board,
    firmware: Path,
    job: Path | None = None,
    arguments: Sequence[str] = (),
    console: Sequence[str] = ("-monitor", "null", "-serial", "stdio"),
) -> list[str]:
    """Return the command that starts the board, in SANDBOX and without network.

    job: a file with the job's bytes, for job_memory(). arguments: the board's command line. console:
    connects its UART and the emulator's monitor; by default the UART to stdin and stdout.
    """
    semihosting = ",".join(
        f"arg={quoting.qemu(word)}" for word in (board.name, *arguments)
    )
    program = _emulator_program(board)
    command = [program, *_sandbox(program), "-machine", board.emulator.machine]
    command += [*board.emulator.arguments, "-nic", "none", "-nographic"]
    command += console
    command += ["-semihosting-config", f"enable=on,target=native,{semihosting}"]
    command += ["-kernel", quoting.operand(firmware)]
    if job is not None:
        behind = job_memory(board, firmware).address - board.job.address
        address = board.emulator.job_address + behind
        loader = f"loader,file={quoting.qemu(job)},addr={address:#x},force-raw=on"
        command += ["-device", loader]
    return command


def job_memory(board: Board, firmware: Path) -> Memory:
    """Return the memory for the job: the rest behind the firmware if both share a memory."""
    if not board.job_follows_code:
        return board.job
    start = -(-flash_end(firmware) // ALIGNMENT) * ALIGNMENT
    return Memory(board.job.name, start, board.job.address + board.job.size - start)


def _check_job(size: int, board: Board, firmware: Path) -> None:
    memory = job_memory(board, firmware)
    if size > memory.size:
        firmware_size = memory.address - board.job.address
        raise JobTooLarge(
            f"{size}B of job, {memory.size}B available in memory '{memory.name}' of {board.name}"
            + (f", behind {firmware_size}B of firmware" if firmware_size else ""))


def run(
    board: Board,
    firmware: Path,
    sections: Mapping[str, bytes] | Job,
    *,
    timeout: float = 60.0,
    on_line: Callable[[str], None] | None = None,
    arguments: Sequence[str] = (),
) -> Result:
    """Boot the board with sections as its job and wait for its end.

    timeout: in seconds of the host. on_line: receives every complete line. Raises EmulatorMissing,
    JobTooLarge, EmulatorTimeout, EmulatorError.
    """
    job = sections if isinstance(sections, Job) else Job(dict(sections))
    blob = job.to_bytes()
    _check_job(len(blob), board, firmware)
    with tempfile.TemporaryDirectory(prefix="picotorch-") as folder:
        job_file = Path(folder) / "job"
        write(job_file, blob)
        results = Path(folder) / "results"
        results.mkdir()
        command = emulator_command(board, Path(firmware).resolve(), job_file, arguments)
        with show.progress(f"{board.name} runs"):
            status, lines = _run_command(command, results, timeout, on_line)
        files = {path.name: path.read_bytes() for path in results.iterdir()}
    return Result(status, lines, files)


def _run_command(
    command: list[str],
    folder: Path,
    timeout: float,
    on_line: Callable[[str], None] | None,
) -> tuple[int, list[str]]:
    """Run the emulator in folder, and return its exit status and the printed lines."""
    lines: list[str] = []
    with started(command, folder, timeout, lines) as process:
        assert process.stdout is not None
        for raw in process.stdout:
            lines.append(raw.decode("utf-8", "backslashreplace").rstrip("\r\n"))
            if on_line is not None:
                on_line(lines[-1])
    return process.returncode, lines


def end_all() -> None:
    """End the running emulators of all threads."""
    for process in list(_processes):
        process.kill()


@contextlib.contextmanager
def started(command: list[str], folder: Path, timeout: float, lines: list[str],
            stdin: int = subprocess.DEVNULL, bufsize: int = -1) -> Iterator[subprocess.Popen[bytes]]:
    """Start the emulator in folder, and yield it and its stdout. Wait for its end after the block.

    lines: the board's output, for errors. An error in the block ends the emulator. Raises
    EmulatorTimeout, EmulatorError.
    """
    timed_out = threading.Event()
    with tempfile.TemporaryFile() as errors:
        with child.started(command, cwd=folder, stdin=stdin, stdout=subprocess.PIPE, stderr=errors,
                           bufsize=bufsize) as process:

            def stop() -> None:
                timed_out.set()
                process.kill()

            timer = threading.Timer(timeout, stop)
            try:
                _processes.add(process)
                timer.start()
                yield process
                status = process.wait()
            finally:
                timer.cancel()
                process.kill()
                _processes.discard(process)
        errors.seek(0)
        messages = errors.read().decode("utf-8", "backslashreplace").splitlines()
    message = "\n".join(line for line in messages if not any(noise in line for noise in NOISE)).strip()
    if timed_out.is_set():
        raise EmulatorTimeout(f"the board did not end within {timeout:g} s", lines)
    if status == -signal.SIGSYS:
        raise EmulatorError("the board requested an operation that the emulator's sandbox denies")
    if status < 0 and LOCKUP in message:
        raise EmulatorError("the core locked up: a fault in a fault handler, or no vector table at the "
                            "start of its memory")
    if status < 0 or (status != 0 and message and not lines):
        raise EmulatorError(message or f"the emulator was ended by signal {-status}")


def fault(board: Board, lines: Sequence[str]) -> str | None:
    """Return the text of the firmware's fault report, with a remedy, or None."""
    begin = next((i for i, line in enumerate(lines) if line.startswith(FAULT)), None)
    if begin is None:
        return None
    report = list(lines[begin:])
    if any(line.startswith(STACK_OVERFLOW) for line in report):
        return (f"the stack of {board.stack_size} B overflowed; give [stack] in boards/{board.name}/"
                "board.toml more bytes, and build the firmware again")
    return " | ".join([report[0].removeprefix(FAULT), *report[1:]])
