"""Run MicroPython's prompt on an emulated board: picotorch repl.

The prompt is in this terminal, or behind a port to which mpremote and pyboard.py connect.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import click

from picotorch.errors import INVALID_ARGUMENT, fail

from ..boards.boards import Board
from ..host import child, romfs, show
from ..host.files import read_file, write
from . import emulator

_END = b"\r\rimport _board; _board.exit(0)\r"
_MONITOR_READY = b"(qemu) "
_CHUNK = 4096
_PROMPT = b">>> "


def _firmware(board: Board) -> Path:
    path = emulator.firmware_path(board, "repl")
    emulator.check_firmware(board, path)
    return path


def _check_romfs(board: Board, image: Path | None) -> None:
    size = 0 if image is None else image.stat().st_size
    if size > board.job.size:
        raise emulator.JobTooLarge(f"{size}B of ROMFS image, {board.job.size}B available in memory "
                                   f"'{board.job.name}' of {board.name}")


@contextmanager
def models_ptm(models: Iterable[Path]) -> Iterator[Path]:
    """Return a ROMFS image of programs, each a file with its name. Print their paths on the board.

    Raises Error if two have the same name or one cannot be read.
    """
    files = {}
    for path in models:
        if path.name in files:
            raise fail(INVALID_ARGUMENT, "is the name of two files", path.name, remedy="rename one")
        files[path.name] = read_file(path)
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder, "models.romfs")
        write(image, romfs.build(files))
        for path in models:
            show.line(f"{path}: /rom/{path.name} on the board", err=True)
        yield image


def run(board: Board, image: Path | None = None) -> int:
    """Run the prompt on stdin and stdout until the board ends, and return its exit status.

    image: of ROMFS, mounted at /rom. Raises emulator.EmulatorError.
    """
    _check_romfs(board, image)
    command = emulator.emulator_command(board, _firmware(board), image,
                                        console=("-serial", "mon:stdio"))
    ends = None if sys.stdin.isatty() else subprocess.PIPE
    with child.started(command, stdin=ends, stdout=ends, stderr=subprocess.PIPE) as process:
        complaining = threading.Thread(target=_show_errors, args=(process.stderr,), daemon=True)
        complaining.start()
        if process.stdin is not None and process.stdout is not None:
            ready = threading.Event()
            threading.Thread(target=_type, args=(process.stdin, ready), daemon=True).start()
            _show_output(process.stdout, ready)
        status = process.wait()
        complaining.join()
        return status


def _show_errors(errors: IO[bytes]) -> None:
    """Print the emulator's lines without its usual messages."""
    for line in errors:
        text = line.decode("utf-8", "backslashreplace")
        if not any(noise in text for noise in emulator.NOISE):
            click.echo(text, err=True, nl=False)


def _show_output(output: IO[bytes], ready: threading.Event) -> None:
    """Print the board's output until it ends.

    Set `ready` at the first prompt, since a UART drops bytes that arrive before the board has booted.
    """
    last = b""
    while received := os.read(output.fileno(), _CHUNK):
        click.echo(received, nl=False)
        last = (last + received)[-_CHUNK:]
        if _PROMPT in last:
            ready.set()
    ready.set()


def _type(prompt: IO[bytes], ready: threading.Event) -> None:
    """Type the text of stdin at the prompt, then end the board."""
    ready.wait()
    try:
        # Not sys.stdin: Python cannot end while a thread waits in its buffer
        while typed := os.read(sys.stdin.fileno(), _CHUNK):
            prompt.write(typed.replace(b"\n", b"\r"))
            prompt.flush()
        prompt.write(_END)
        prompt.flush()
    except BrokenPipeError:
        pass  # the board ended before its input


@contextmanager
def listening(board: Board, listen: str,
              image: Path | None = None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Open the board's console on a port, and yield its name for pyserial, and the process.

    listen: "pty", or "tcp:PORT" on this computer alone; PORT 0 is any free one. Clients connect one at
    a time. Text typed before the board has booted may be lost. Raises emulator.EmulatorError if the
    port is in use.
    """
    _check_romfs(board, image)
    serial = listen
    if listen.startswith("tcp:"):
        serial = f"tcp:127.0.0.1:{listen.removeprefix('tcp:')},server=on,wait=off,nodelay=on"
    command = emulator.emulator_command(board, _firmware(board), image,
                                        console=("-monitor", "stdio", "-serial", serial))
    with child.started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE) as process:
        yield _port(process), process


def _port(process: subprocess.Popen[bytes]) -> str:
    """Query the emulator's monitor for the address of the console."""
    assert process.stdin is not None
    _answer(process)
    with suppress(BrokenPipeError):  # the emulator has ended: _answer raises the reason
        os.write(process.stdin.fileno(), b"info chardev\n")
    answer = _answer(process)
    found = re.search(rb"serial0: filename=(?:disconnected:)?(pty|tcp):([^\s,]+)", answer)
    if found is None:
        raise emulator.EmulatorError("the emulator's monitor names no port of the console: "
                                     + answer.decode("utf-8", "backslashreplace"))
    kind, address = (part.decode() for part in found.groups())
    return address if kind == "pty" else f"socket://localhost:{address.rsplit(':', 1)[1]}"


def _answer(process: subprocess.Popen[bytes]) -> bytes:
    """Return the monitor's text until it accepts a command."""
    assert process.stdout is not None and process.stderr is not None
    received = b""
    while not received.endswith(_MONITOR_READY):
        more = process.stdout.read(1)
        if not more:
            message = process.stderr.read().decode("utf-8", "backslashreplace").strip()
            raise emulator.EmulatorError(message or "the emulator ended")
        received += more
    return received


def serve(board: Board, listen: str, image: Path | None = None) -> int:
    """Connect the board's console to a port until the board ends, and return its exit status.

    Prints how to connect. Raises emulator.EmulatorError.
    """
    with listening(board, listen, image) as (port, process):
        show.line(f"{board.name} listens. Type in another terminal:")
        show.line(f"  mpremote connect {port}")
        show.line("To end it: _board.exit(0) there, or ctrl-C here.")
        return process.wait()
