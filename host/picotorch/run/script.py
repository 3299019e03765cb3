"""Run the user's own script on an emulated board, with MicroPython and the files that it opens."""

import codecs
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..boards.boards import Board
from ..host import quoting, romfs
from ..host.files import write
from . import emulator

_PROMPT = b">>> "
_RAW = b"raw REPL; CTRL-B to exit\r\n>"
_ACCEPTED = b"OK"
_CHUNK = 4096

# Input of the raw prompt. The board ends with CPython's exit status for the script.
_TYPED = """\
import os, sys, _board
os.chdir("/rom")
_status = 0
try:
    execfile({script})
except SystemExit as error:
    _value = error.args[0] if error.args else None
    if not (_value is None or isinstance(_value, int)):
        print(_value)
    _status = 0 if _value is None else _value if isinstance(_value, int) else 1
except BaseException as error:
    sys.print_exception(error)
    _status = 1
_board.exit(_status)
"""


@dataclass
class Ended:
    """Exit status of the script, and its output."""

    status: int
    output: str


def run(board: Board, firmware: Path, script: str, files: dict[str, bytes], timeout: float,
        tell: Callable[[str], None]) -> Ended:
    """Run the script on the board until it ends.

    files: the script and the files that it opens, by name; they are in /rom, the script's working
    folder. timeout: maximum seconds of the host. tell: receives the output as it arrives. Raises
    EmulatorTimeout, JobTooLarge, EmulatorError.
    """
    image = romfs.build(files)
    if len(image) > board.job.size:
        raise emulator.JobTooLarge(f"{len(image)}B of files, {board.job.size}B available in memory "
                                   f"'{board.job.name}' of {board.name}")
    with tempfile.TemporaryDirectory(prefix="picotorch-") as folder:
        path = Path(folder) / "files"
        write(path, image)
        command = emulator.emulator_command(board, firmware.resolve(), path)
        output: list[str] = []
        with emulator.started(command, Path(folder), timeout, output, subprocess.PIPE,
                              bufsize=0) as process:
            _type(process, _TYPED.format(script=quoting.python(script)).encode())
            _read_output(process, output, tell)
    lines = "".join(output).splitlines()
    if (fault := emulator.fault(board, lines)) is not None:
        raise emulator.EmulatorError(fault)
    return Ended(process.returncode, "".join(output))


def _type(process: subprocess.Popen[bytes], text: bytes) -> None:
    """Type the text at the raw prompt once the board has booted."""
    assert process.stdin is not None and process.stdout is not None
    for answer, typed in ((_PROMPT, b"\x01"), (_RAW, text + b"\x04"), (_ACCEPTED, b"")):
        received = b""
        while not received.endswith(answer):
            more = process.stdout.read(1)
            if not more:
                return
            received += more
        try:
            process.stdin.write(typed)
            process.stdin.flush()
        except BrokenPipeError:
            return


def _read_output(process: subprocess.Popen[bytes], output: list[str],
                 tell: Callable[[str], None]) -> None:
    """Append the output to a list, part by part, until the board ends."""
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    while chunk := process.stdout.read(_CHUNK):
        output.append(decoder.decode(chunk).replace("\r", ""))
        tell(output[-1])
