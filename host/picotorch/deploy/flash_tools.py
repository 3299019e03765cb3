"""Flash a firmware to a board, by its boot drive or by an installed tool: picotorch flash.

boards/flashing.toml lists the methods of each board. Most methods verify: tools read the flash back,
and a boot loader's drive disappears only when it has received all blocks of a UF2 file. If a tool does
not verify, the board's prompt is the check (--port).
"""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from picotorch import Error, Program
from picotorch.errors import (
    ACCESS_FAILED,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    fail,
)

from ..boards.boards import BOARDS_DIR
from ..firmware import ports, rp2, uf2
from ..host import quoting, show
from ..host.frozen_models import FLASHED
from ..host.operators import needed_operators
from ..host.report import Report
from ..host.twin import open_program
from ..run.running import read_program
from .boot_drives import Drive, boot_drives

_Found = TypeVar("_Found")
DRIVE = "drive"
_WAIT = 15.0  # seconds for a drive to appear or disappear, and for a prompt
_PAUSE = 0.1
_TAIL = 3  # last lines of a tool's output
_DEBIAN = "on Debian: apt-get install"


@dataclass(frozen=True)
class Tool:
    """A program that flashes firmware.

    It has the `suffixes` of its files, its arguments for a board's entry and a file, an instruction to
    install it, and a flag that it verifies the flash.
    """

    name: str
    key: str
    suffixes: tuple[str, ...]
    arguments: Callable[[dict[str, Any], Path], list[str]]
    remedy: str
    checks: bool = True


def _openocd(entry: dict[str, Any], file: Path) -> list[str]:
    address = f" {entry['address']:#x}" if file.suffix == ".bin" else ""
    files = [word for name in entry["openocd"] for word in ("-f", name)]
    return [*files, "-c", f"program {quoting.tcl(file)}{address} verify reset exit"]


def _pyocd(entry: dict[str, Any], file: Path) -> list[str]:
    base = ["--base-address", f"{entry['address']:#x}"] if file.suffix == ".bin" else []
    return ["flash", "--target", entry["pyocd"], *base, quoting.operand(file)]


def _dfu_util(entry: dict[str, Any], file: Path) -> list[str]:
    address = ["-s", f"{entry['address']:#x}:leave"] if file.suffix == ".bin" else ["-s", ":leave"]
    return ["-a", "0", "-d", entry["dfu"], *address, "-D", quoting.operand(file)]


def _st_flash(entry: dict[str, Any], file: Path) -> list[str]:
    if file.suffix == ".hex":
        return ["--reset", "--format", "ihex", "write", quoting.operand(file)]
    return ["--reset", "write", quoting.operand(file), f"{entry['address']:#x}"]


_TOOLS = {tool.name: tool for tool in (
    Tool("picotool", "picotool", (".uf2", ".elf", ".bin"),
         lambda entry, file: ["load", "-v", "-x", quoting.operand(file)],
         "get it from https://github.com/raspberrypi/pico-sdk-tools/releases"),
    Tool("openocd", "openocd", (".elf", ".hex", ".bin"), _openocd, f"{_DEBIAN} openocd"),
    Tool("pyocd", "pyocd", (".elf", ".hex", ".bin"), _pyocd, "pip install pyocd"),
    Tool("dfu-util", "dfu", (".dfu", ".bin"), _dfu_util, f"{_DEBIAN} dfu-util", checks=False),
    Tool("st-flash", "st", (".bin", ".hex"), _st_flash, f"{_DEBIAN} stlink-tools"),
    Tool("teensy_loader_cli", "teensy", (".hex",),
         lambda entry, file: [f"--mcu={entry['teensy']}", "-w", "-v", quoting.operand(file)],
         f"{_DEBIAN} teensy-loader-cli", checks=False),
)}
TOOLS = (DRIVE, *_TOOLS)
MODELS = (".pte", ".ptm")  # suffixes of files that first become a firmware


@functools.cache
def _entries() -> dict[str, dict[str, Any]]:
    return tomllib.loads((BOARDS_DIR / "flashing.toml").read_text(encoding="utf-8"))


def board_names() -> list[str]:
    """Return the names of the boards that can be flashed, sorted."""
    return sorted(_entries())


def boards_with_drive(drive: Drive) -> list[str]:
    """Return the boards whose boot loader shows this drive."""
    return [name for name, entry in _entries().items() if _is_drive_of(drive, entry)]


def _is_drive_of(drive: Drive, entry: dict[str, Any]) -> bool:
    prefix = entry.get("drive")
    return prefix is not None and (drive.board_id.startswith(prefix) or drive.model.startswith(prefix))


@dataclass(frozen=True)
class Flashed(Report):
    """A firmware that was written to a board, or would be in a dry run.

    model: None for a firmware of the user. build: the command that builds the firmware of a model.
    tool: DRIVE or the name of a Tool. command: its call. done: False in a dry run. checked: the tool
    verified the flash. machine: the name that the board reports, None if it was not queried. installed:
    the tool is installed.
    """

    model: str | None
    build: list[str] | None
    firmware: str
    board: str
    tool: str
    done: bool
    command: list[str]
    checked: bool
    machine: str | None
    installed: bool


def flash(firmware: Path, board: str, port: str | None, tool: str | None, dry_run: bool,
          timeout: float | None = None) -> Flashed:
    """Flash a firmware, or build one for a model and flash it.

    The firmware that is built for a Pico is in a temporary folder. dry_run: return the commands, but
    build, write and send nothing; the firmware of a model is only a name. Raises Error.
    """
    if firmware.suffix not in MODELS:
        _check_file(firmware, board, _entries()[board])
        return _flash(firmware, board, port, tool, dry_run, timeout)
    if board not in (*rp2.BOARDS, *ports.boards()):
        raise fail(NOT_SUPPORTED, "its firmware cannot contain a model", board,
                   remedy="flash a firmware, and picotorch deploy the model")
    data = read_program(firmware)
    programs = {str(firmware): open_program(data)}
    needed_operators(programs)  # raises OperatorMissing
    if board in rp2.BOARDS:
        rp2.check_ptms(board, {str(firmware): data})
    with tempfile.TemporaryDirectory() if not dry_run else contextlib.nullcontext("") as folder:
        built = _file_for([Path(path) for path in _outputs(board)] if dry_run else
                          _built(programs, data, board, Path(folder)), _entries()[board], tool)
        done = _flash(built, board, port, tool, dry_run, timeout)
        if built.parent == Path(folder):
            done = replace(done, firmware=built.name, command=[
                word.replace(str(built), built.name) for word in done.command])
    return replace(done, model=str(firmware), build=_build_command(firmware, board, done.firmware))


def _flash(firmware: Path, board: str, port: str | None, tool: str | None, dry_run: bool,
           timeout: float | None) -> Flashed:
    entry = _entries()[board]
    tool = tool or _choose(firmware, board, entry, dry_run)
    if not (_accepts_drive(firmware, entry) if tool == DRIVE
            else _accepts(_TOOLS[tool], firmware, entry)):
        raise fail(NOT_SUPPORTED, f"{tool} does not flash {firmware.suffix} files onto it", board,
                   remedy=_flashers(board, entry))
    command = (_by_drive(firmware, board, entry, port, dry_run, timeout) if tool == DRIVE
               else _by_tool(firmware, board, entry, tool, dry_run))
    machine = None if port is None or dry_run else _machine(port, timeout)
    return Flashed(None, None, str(firmware), board, tool, not dry_run, command,
                   tool == DRIVE or _TOOLS[tool].checks, machine,
                   tool == DRIVE or shutil.which(tool) is not None)


# ---- the firmware of a model


def _outputs(board: str) -> list[str]:
    """Return the names of the files that a build of the board's firmware writes."""
    return [f"{board}.uf2"] if board in rp2.BOARDS else list(ports.boards()[board].outputs)


def _built(programs: dict[str, Program], data: bytes, board: str, folder: Path) -> list[Path]:
    """Build the firmware with a model's kernels and the model in its flash, and return its files."""
    if board in rp2.BOARDS:
        (output,) = _outputs(board)
        rp2.build(board, programs, dict.fromkeys(programs, data), folder / output)
        return [folder / output]
    return [Path(path) for path in ports.build(board, programs, [("model", data)]).outputs]


def _file_for(files: list[Path], entry: dict[str, Any], name: str | None) -> Path:
    """Choose the file for the board: a UF2 file, or one for an installed tool."""
    for file in files:
        if file.suffix == ".uf2" or any(_accepts(tool, file, entry) and name in (None, tool.name)
                                        and shutil.which(tool.name) for tool in _TOOLS.values()):
            return file
    return files[-1]


def _build_command(model: Path, board: str, firmware: str) -> list[str]:
    """Return the command that builds the firmware of a model."""
    operand = quoting.operand(model)
    return ["picotorch", "firmware", "--board", board, "--models", operand,
            *(["--output", firmware] if board in rp2.BOARDS
              else ["--frozen-model", f"{FLASHED}={operand}"])]


def _check_file(firmware: Path, board: str, entry: dict[str, Any]) -> None:
    """Check the firmware's file.

    Raises AccessFailed if it is missing, InvalidArgument for a UF2 file of another chip.
    """
    if not firmware.is_file():
        raise fail(ACCESS_FAILED, "there is no such file", str(firmware))
    if firmware.suffix != ".uf2":
        return
    try:
        families = {block.family for block in uf2.read(firmware.read_bytes())} - {uf2.ABSOLUTE}
    except Error as error:
        raise fail(error.code, error.message, str(firmware), remedy="get it once more") from None
    if "family" in entry and not families & {entry["family"], None}:
        named = ", ".join(f"{family:#x}" for family in sorted(
            family for family in families if family is not None))
        raise fail(INVALID_ARGUMENT, f"is for family {named}, not for {board}", str(firmware))


def _accepts(tool: Tool, firmware: Path, entry: dict[str, Any]) -> bool:
    return bool(entry.get(tool.key)) and firmware.suffix in tool.suffixes


def _accepts_drive(firmware: Path, entry: dict[str, Any]) -> bool:
    return "drive" in entry and firmware.suffix == ".uf2"


def _choose(firmware: Path, board: str, entry: dict[str, Any], dry_run: bool) -> str:
    """Return the drive for a .uf2 file, else the first tool that is installed or could be."""
    tools = [tool.name for tool in _TOOLS.values() if _accepts(tool, firmware, entry)]
    installed = [name for name in tools if shutil.which(name)]
    if _accepts_drive(firmware, entry) and not (installed and not _drive(entry)):
        return DRIVE
    if installed:
        return installed[0]
    if not tools:
        raise fail(NOT_SUPPORTED, f"{firmware.suffix} files cannot be flashed", board,
                   remedy=_flashers(board, entry))
    if dry_run:
        return tools[0]
    raise fail(NOT_FOUND, f"{' or '.join(tools)} is not installed", board,
               remedy=_TOOLS[tools[0]].remedy)


def _flashers(board: str, entry: dict[str, Any]) -> str:
    drive = [".uf2 by its drive"] if "drive" in entry else []
    tools = [f"{'/'.join(tool.suffixes)} by {tool.name}" for tool in _TOOLS.values()
             if entry.get(tool.key)]
    return f"{board} accepts " + ", ".join(drive + tools)


# ---- by drive


def _by_drive(firmware: Path, board: str, entry: dict[str, Any], port: str | None, dry_run: bool,
              timeout: float | None) -> list[str]:
    """Copy the firmware to a drive, and return the equivalent command."""
    drive = _drive(entry)
    if dry_run:
        folder = str(drive.path if drive else entry["drive"])
        return ["cp", quoting.operand(firmware), folder]
    if drive is None and port is not None:
        _start_boot_loader(port, timeout)
        drive = _wait_for(lambda: _drive(entry))
    if drive is None:
        raise fail(NOT_FOUND, f"no drive of {board}'s boot loader ({entry['drive']}) is mounted", board,
                   remedy="hold BOOTSEL while you plug it in, or give --port where it has MicroPython; "
                          "mount its drive if your system does not")
    target = drive.path / firmware.name
    _copy(firmware, target, board)
    if not _wait_for(lambda: not _is_there(target)):
        raise fail(ACCESS_FAILED, "its drive is still there: the copy is incomplete", board,
                   remedy="unplug it and try again")
    return ["cp", quoting.operand(firmware), str(drive.path)]


def _copy(firmware: Path, target: Path, board: str) -> None:
    """Copy a file and wait for the end of the write. The drive may disappear with the last block."""
    try:
        with open(target, "wb") as file:
            file.write(firmware.read_bytes())
            file.flush()
            try:
                os.fsync(file.fileno())
            except OSError:
                pass
    except OSError as error:
        raise fail(ACCESS_FAILED, f"the copy to the drive failed: {error.strerror or error}", board,
                   remedy="unplug it and try again") from None


def _is_there(path: Path) -> bool:
    """Return True if a folder exists.

    The check fails if the folder's drive disappeared without being unmounted.
    """
    try:
        return path.exists()
    except OSError:
        return False


def _drive(entry: dict[str, Any]) -> Drive | None:
    return next((drive for drive in boot_drives() if _is_drive_of(drive, entry)), None)


def _wait_for(condition: Callable[[], _Found]) -> _Found:
    """Return the first true result of the condition, or its result at the end."""
    end = time.monotonic() + _WAIT
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(_PAUSE)
    return found


def _start_boot_loader(port: str, timeout: float | None) -> None:
    from ..run.device.protocol import Link
    from ..run.device.serial_ports import resolve

    Link(resolve(port), timeout).start_boot_loader()


# ---- by a tool


def _by_tool(firmware: Path, board: str, entry: dict[str, Any], tool: str,
             dry_run: bool) -> list[str]:
    """Call a tool, and return its command."""
    command = [tool, *_TOOLS[tool].arguments(entry, firmware)]
    if dry_run:
        return command
    try:
        ended = subprocess.run(command, capture_output=True, text=True, errors="backslashreplace",
                               stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise fail(NOT_FOUND, f"{tool} is not installed", board,
                   remedy=_TOOLS[tool].remedy) from None
    if ended.returncode:
        output = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
        raise fail(ACCESS_FAILED, f"{tool} ended with status {ended.returncode}: "
                   + " | ".join(output[-_TAIL:]), board,
                   remedy="is it plugged in, and in its boot loader where that is needed?")
    return command


# ---- afterwards


def _machine(port: str, timeout: float | None) -> str:
    """Wait for the board's prompt, and return the name that the board reports."""
    from ..run.device.device_run import machine_of
    from ..run.device.protocol import Link
    from ..run.device.serial_ports import resolve

    end = time.monotonic() + _WAIT
    while True:
        try:
            with Link(resolve(port), timeout) as link:
                return machine_of(link)
        except Error:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE)


def show_text(found: Flashed) -> None:
    if found.build and (found.board in rp2.BOARDS or not found.done):
        show.line(quoting.shell(*found.build))
    show.line(quoting.shell(*found.command))
    if not found.installed:
        show.line(f"{found.tool} is not installed: {_TOOLS[found.tool].remedy}")
    if found.done:
        how = "written and checked" if found.checked else "written"
        by = "its boot loader" if found.tool == DRIVE else found.tool
        what = f"; it is {found.machine}" if found.machine else ""
        show.line(f"{found.firmware} is on {found.board}, {how} by {by}{what}")
