"""Run a model on an emulated board: pack the job, start the firmware, read its output."""

from pathlib import Path

from ..boards.boards import Board
from ..host.request import Request, Result
from ..host.runner_log import log_of
from . import bare, emulator
from .runner_files import make_job, read_files, read_report, repr_float

TIMEOUT = 600.0  # seconds of the host; the largest fixture needs about 5
FAILED = 1  # exit status of a run with an error, which the report contains


def firmware_of(request: Request, board: Board) -> Path:
    """Return the firmware that runs the request. Raises emulator.FirmwareMissing."""
    return request.firmware or emulator.firmware_path(board, "bare" if request.bare else "run")


def run(request: Request, board: Board) -> Result:
    """Run the request on the board. Raises emulator.EmulatorError, BoardError."""
    result = Result(request.name, request.method, board.name)
    firmware = firmware_of(request, board)
    emulator.check_firmware(board, firmware, request.bare)
    is_bare = emulator.is_bare(board, firmware)
    ended = emulator.run(board, firmware, make_job(request, bare.constant if is_bare else repr_float),
                         timeout=TIMEOUT)
    if "report" not in ended.files or ended.status > FAILED:
        if any(line.startswith("MemoryError") for line in ended.lines):
            raise emulator.JobTooLarge(
                f"MicroPython's heap on {board.name} has no room for the objects of this run")
        raise emulator.EmulatorError(
            emulator.fault(board, ended.lines)
            or f"the firmware ended with status {ended.status}: " + " | ".join(ended.lines[-12:]))
    report = read_report(ended.files)
    read_files(request, result, report, ended.files)
    _check_counter(result, board)
    if is_bare and result.code:
        result.message = bare.message(request, report)
    result.log = [*ended.lines, *log_of(request, result)]
    return result


def _check_counter(result: Result, board: Board) -> None:
    """Raise EmulatorError if the board's counter stands still."""
    counts = [count for count in (result.instructions or {}).values() if count is not None]
    if counts and not any(counts):
        raise emulator.EmulatorError(
            f"the instruction counter stands still: check driver, address and tick_ns of [counter] in "
            f"boards/{board.name}/board.toml")
