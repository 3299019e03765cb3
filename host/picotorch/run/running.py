"""Run a request on the twin or on a board. Every failure is an Error.

Modules that only boards need are imported for a run there.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from picotorch import Error
from picotorch.errors import (
    ACCESS_FAILED,
    INTERNAL,
    INVALID_ARGUMENT,
    INVALID_STATE,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    OPERATOR_MISSING,
    fail,
)
from picotorch.schema import SUBJECTS

from ..boards import boards
from ..host import files, show, twin
from ..host.report import Report
from ..host.request import POOL_SIZE, PORT, TEMP_SIZE, Request, Result
from . import bundled

HOST = twin.BOARD
DEFAULT_BOARD = "mps2-an386"


def board_names() -> list[str]:
    """Return the names of the twin and of all boards, the twin first."""
    return [HOST, *boards.board_names()]


def run(request: Request, board: str) -> Result:
    """Return the result, which contains the error of a run that failed.

    Raises Error if there was no run: without firmware or emulator, for a model that is too large for
    the board, or after a crash of the board.

    board: a name, or "port:" and the port of a connected board.
    """
    if board.startswith(PORT):
        from .device import device_run  # only this run needs mpremote and pyserial

        return device_run.run(request, board.removeprefix(PORT))
    if board == HOST:
        return twin.run(_with_memories(request, POOL_SIZE, TEMP_SIZE))
    from . import emulated

    with named_errors(board, None):
        found = boards.load_board(board)
    maximum = {name: found.arenas[name].size for name in ("pool", "temp")}
    request = _with_memories(request, maximum["pool"], maximum["temp"])
    remedy = (f"{found.build_command(request.bare)} in picotorch's repository, or --firmware with one "
              "that was built there")
    with named_errors(board, None if request.firmware else remedy):
        result = emulated.run(request, found)
    if result.code == MEMORY_ALLOCATION_FAILED:
        _drop_advice(result, request, maximum)
    if result.code == OPERATOR_MISSING and not found.full_firmware and request.firmware is None:
        result.message = (f"{result.message.partition(';')[0]}; the firmware is for other models: "
                          f"{found.build_command(request.bare).replace('MODEL.pte', request.name)}")
    return result


def _drop_advice(result: Result, request: Request, maximum: dict[str, int]) -> None:
    """Drop the advice to enlarge a memory, and the subject, if the board has no more of it.

    No option helps then.
    """
    subject = SUBJECTS[result.subject]
    sizes = {"method pool": (request.pool_size, "pool"), "temp memory": (request.temp_size, "temp")}
    if subject in sizes and sizes[subject][0] == maximum[sizes[subject][1]]:
        result.subject = 0
        result.message = result.message.replace("; make it larger",
                                                "; the board has no more, see picotorch boards")


def _with_memories(request: Request, pool_size: int, temp_size: int) -> Request:
    """Return the request with these sizes for the sizes that it lacks."""
    return dataclasses.replace(
        request, pool_size=pool_size if request.pool_size is None else request.pool_size,
        temp_size=temp_size if request.temp_size is None else request.temp_size)


@contextmanager
def named_errors(board: str, build: str | None) -> Iterator[None]:
    """Raise Error for errors of the emulator.

    build: the remedy for a missing firmware, None for a file that the user named.
    """
    from . import emulator

    try:
        yield
    except emulator.FirmwareMissing as error:
        if build is None:
            raise fail(ACCESS_FAILED, str(error), board, remedy="check the path") from None
        raise fail(NOT_FOUND, "the firmware is not built", board, remedy=build) from None
    except emulator.WrongFirmware as error:
        raise fail(INVALID_ARGUMENT, str(error), board,
                   remedy="picotorch firmware builds one") from None
    except emulator.OldFirmware as error:
        raise fail(INVALID_STATE, str(error), board, remedy=build or "build it again") from None
    except emulator.EmulatorMissing as error:
        raise fail(NOT_FOUND, str(error), board) from None
    except emulator.EmulatorTimeout as error:
        raise fail(INTERNAL, str(error), board, remedy="look for a loop that does not end, or "
                   "raise --timeout") from None
    except emulator.JobTooLarge as error:
        raise fail(MEMORY_ALLOCATION_FAILED, str(error), board) from None
    except (emulator.EmulatorError, boards.BoardError) as error:
        raise fail(INTERNAL, str(error), board) from None


def read_data(paths: list[Path]) -> list[bytes]:
    """Return the bytes of data files (.ptd).

    Raises the errors of files.read_file, and an error for another kind of file.
    """
    return [_data_file(path) for path in paths]


def _data_file(path: Path) -> bytes:
    data = files.read_file(path)
    try:
        twin.open_data([data])
    except Error as error:
        raise fail(error.code, error.what, str(path),
                   remedy="give the .ptd file that was exported with the program") from None
    return data


def is_bundled(path: Path) -> bool:
    """Return True for a .bpte file; False also for one that cannot be read."""
    try:
        with files.reading(path) as file:
            return bundled.is_bundled(file.read(8))
    except Error:
        return False


def read_program(path: Path) -> bytes:
    """Return the bytes of a program, from a .pte file or a .bpte file.

    Raises AccessFailed, InvalidProgram.
    """
    return bundled.program_of(files.read_file(path))


def failed(name: str, method: str, board: str, error: Error) -> Result:
    """Return the result of a run that did not start."""
    result = Result(name, method, board)
    result.set_error(error)
    return result


def error_of(result: Result, subject: str | None = None) -> Error:
    """Return the error of a result. subject: the start of its text."""
    error = fail(result.code, result.message, subject)
    error.subject_number = result.subject  # after the text is complete
    return error


def check_result(result: Result, report: Report | None = None) -> None:
    """Raise the error of a result. report: further fields of its JSON."""
    if result.code:
        raise show.with_report(error_of(result), report)
