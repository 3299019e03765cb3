"""Build MicroPython's own firmware of a board with picotorch: picotorch firmware --board PYBV11.

The boards are those of port/upstream/boards.toml. Each build is in build/upstream/BOARD/<digest of its
content>, with the log of the port's make.
"""

import functools
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from picotorch import PARTS, Error, Program
from picotorch.errors import INTERNAL, INVALID_ARGUMENT, MEMORY_ALLOCATION_FAILED, NOT_FOUND, fail

from ..host import child, quoting, show
from ..host.elf import flash_bytes
from ..host.files import write
from ..host.frozen_models import MODULE, c_source
from ..host.operators import needed_operators, supported_operators
from ..host.optimize import BALANCED, Optimize
from ..host.report import Report
from ..host.sources import ROOT
from . import selective

BOARDS = ROOT / "port" / "upstream" / "boards.toml"
VERSION = ROOT / "port" / "version.mk"
BUILD = ROOT / "build" / "upstream"
MPY_CROSS = ROOT / "build" / "mpy-cross" / "mpy-cross"
LOG_TAIL = 15
_OF_ANOTHER_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "BOARD", "BUILD", "CFLAGS")
_JOBS = f"-j{os.cpu_count() or 1}"
_OVERFLOW = re.compile(r"region [`'](\w+)' overflowed by (\d+) bytes")
_URL = "https://github.com/micropython/micropython"
_VERSION = "v1.25.0"


@dataclass(frozen=True)
class PortBoard:
    """An entry of boards.toml, which documents its keys."""

    name: str
    core: str
    port: str
    outputs: tuple[str, ...]
    flash: int | None = None
    make: tuple[str, ...] = ()
    manifest: str | None = None
    submodules: tuple[str, ...] = ()


@functools.cache
def boards() -> dict[str, PortBoard]:
    """Return all boards by name."""
    entries = tomllib.loads(BOARDS.read_text())
    return {name: PortBoard(name, **_fields(entry)) for name, entry in entries.items()}


def _fields(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


# ---- the tree


def tree_of(board: PortBoard) -> Path:
    """Return the MicroPython tree for the build: MICROPYTHON_DIR, or get_micropython.py's.

    Raises NotFound if the tree lacks submodules that the board needs.
    """
    named = os.environ.get("MICROPYTHON_DIR")
    if board.submodules and not named:
        raise fail(NOT_FOUND, f"needs a MicroPython tree with its submodules ({_list(board)})",
                   board.name, remedy=_how_to_get(board))
    command = [sys.executable, str(ROOT / "tools" / "get_micropython.py"), "--ports"]
    done = child.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise fail(NOT_FOUND, " ".join(done.stderr.split()), board.name)
    tree = Path(done.stdout.strip())
    missing = [name for name in (f"ports/{board.port}/Makefile", *board.submodules)
               if not (tree / name).is_file() and not any((tree / name).glob("*"))]
    if missing:
        raise fail(NOT_FOUND, f"{tree} lacks {', '.join(missing)}", board.name,
                   remedy=_how_to_get(board, tree))
    return tree


def _list(board: PortBoard) -> str:
    return ", ".join(board.submodules)


def _how_to_get(board: PortBoard, tree: Path | None = None) -> str:
    """Return the remedy for an incomplete tree. A tree of git's with the port can fetch submodules."""
    clone, folder = "", str(tree)
    if tree is None or not ((tree / ".git").exists() and (tree / "ports" / board.port).is_dir()):
        folder = f"micropython-{_VERSION}"
        clone = f"git clone --branch {_VERSION} {_URL} {folder} && "
    make = quoting.shell("make", "-C", f"{folder}/ports/{board.port}", f"BOARD={board.name}",
                         "submodules")
    return f"{clone}{make}, then the same command with MICROPYTHON_DIR={quoting.shell(folder)}"


# ---- contents of the firmware


def _manifest(board: PortBoard, parts: set[str]) -> str:
    own = f'include({quoting.python(f"$(PORT_DIR)/{board.manifest}")})\n' if board.manifest else ""
    return own + selective.manifest(parts, ROOT / "port" / "manifest.py")


def _files(board: PortBoard, programs: dict[str, Program], frozen: Sequence[tuple[str, bytes]],
           parts: set[str], optimize: Optimize) -> dict[str, str]:
    """Return the files that the build reads in addition to the sources: {name: text}."""
    files = {"manifest.py": _manifest(board, parts)}
    if programs:
        files["operators.def"] = selective.selection(programs, optimize)
    if frozen:
        files["models.c"] = c_source(list(frozen))
    return files


def _folder(board: PortBoard, files: dict[str, str], arguments: Sequence[str]) -> Path:
    """Return the build folder, one for each content, since make does not detect changed flags."""
    digest = hashlib.sha256("\0".join([*arguments, *files, *files.values()]).encode()).hexdigest()[:12]
    return BUILD / board.name / digest


# ---- make


def environment() -> dict[str, str]:
    """Return the environment for make: without an outer make's variables, and equal each day."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_MAKE}
    fixed = re.findall(r"^export (\w+) = ?(.*)$", VERSION.read_text(), re.MULTILINE)
    return inherited | dict(fixed) | {"PYTHONDONTWRITEBYTECODE": "1"}


def _have_mpy_cross(tree: Path, log: Path) -> None:
    if not MPY_CROSS.is_file():
        _run(["make", "-C", str(tree / "mpy-cross"), _JOBS, f"BUILD={MPY_CROSS.parent}"], log)


def _run(command: Sequence[str], log: Path) -> bool:
    """Run a command with its output in the log. Return True for success."""
    with log.open("a") as file:
        return child.run(command, stdout=file, stderr=subprocess.STDOUT,
                         env=environment()).returncode == 0


def _command(board: PortBoard, tree: Path, folder: Path, files: dict[str, str],
             arguments: Sequence[str]) -> list[str]:
    command = ["make", "-C", str(tree / "ports" / board.port), _JOBS, "all",
               f"BUILD={folder}", f"USER_C_MODULES={ROOT / 'port'}",
               f"FROZEN_MANIFEST={folder / 'manifest.py'}", f"MICROPY_MPYCROSS={MPY_CROSS}",
               *(board.make or [f"BOARD={board.name}"]), *arguments]
    if not board.submodules:
        command.append(f"MPY_LIB_DIR={tree}")  # make only looks for a README.md there
    if "operators.def" in files:
        command.append(f"PT_OPERATORS={folder / 'operators.def'}")
    if "models.c" in files:
        command.append(f"PT_MODELS_C={folder / 'models.c'}")
    return command


@dataclass(frozen=True)
class PortFirmware(Report):
    """A firmware of MicroPython's port that was built.

    frozen: bytes of the models in its flash, by name. flash: its bytes. available: the flash for it in
    bytes, None if unknown.
    """

    board: str
    port: str
    models: list[str]
    operators: list[str]
    parts: list[str]
    frozen: dict[str, int]
    outputs: list[str]
    flash: int
    available: int | None


def build(name: str, programs: dict[str, Program], frozen: Sequence[tuple[str, bytes]] = (),
          parts: tuple[str, ...] = (), optimize: Optimize = BALANCED,
          arguments: tuple[str, ...] = ()) -> PortFirmware:
    """Build the firmware.

    programs: link only the kernels that these need, by file name; link all without programs. frozen:
    models for its flash, by name. parts: parts of picotorch.PARTS in addition to files, module and
    the parts that the programs need. optimize: selects the variants of convolutions. arguments: for
    make, in addition to those of boards.toml.

    Raises NotFound without the sources or the tree, MemoryAllocationFailed if the firmware does not
    fit, OperatorMissing, and Internal if the build fails.
    """
    selective.check_sources(name)
    board = boards()[name]
    tree = tree_of(board)
    for path in (tree, ROOT):
        quoting.make(path)
    if programs:
        selected = selective.needed_parts(programs) | {"files", "module"} | set(parts)
    else:
        selected = {part for part, _ in PARTS}
    files = _files(board, programs, frozen, selected, optimize)
    folder = _folder(board, files, (str(tree), *board.make, *arguments))
    log = folder / "make.log"
    show.line(f"{name}: make in {tree}/ports/{board.port} (log: {log})", err=True)
    with selective.locked(BUILD):
        selective.write_changed(folder, files)
        write(log, "")
        _have_mpy_cross(tree, log)
        if not _run(_command(board, tree, folder, files, arguments), log):
            raise _failure(board, log, bool(programs))
    outputs = [folder / output for output in board.outputs]
    missing = ", ".join(path.name for path in outputs if not path.is_file())
    if missing:
        raise fail(INTERNAL, f"the port's make built no {missing}", name, remedy=f"see {log}")
    names = needed_operators(programs) if programs else sorted(supported_operators())
    return PortFirmware(name, board.port, list(programs), names, sorted(selected),
                        {name: len(data) for name, data in frozen}, [str(path) for path in outputs],
                        _flash(outputs[0]), board.flash and board.flash * 1024)


def _flash(path: Path) -> int:
    try:
        return flash_bytes(path)
    except ValueError:  # a program of this computer
        return path.stat().st_size


def _failure(board: PortBoard, log: Path, is_selective: bool) -> Error:
    """Return the error that the log reports."""
    text = log.read_text(errors="replace")
    overflows = {region: int(count) for region, count in _OVERFLOW.findall(text)}
    if overflows:
        excess = " and ".join(f"{region} by {show.size(count)}" for region, count in overflows.items())
        remedy = ("fewer models, or a board with more flash" if is_selective else
                  "with --models only the kernels that some models need are linked")
        return fail(MEMORY_ALLOCATION_FAILED, f"does not fit: overflows {excess}", board.name,
                    remedy=remedy)
    tail = " | ".join(text.splitlines()[-LOG_TAIL:])
    return fail(INTERNAL, f"make failed: {tail}", board.name, remedy=f"see {log}")


def check(name: str, bare: bool, output: Path | None) -> None:
    """Raise InvalidArgument for options that only our own firmware has."""
    for option, is_passed in (("--bare", bare), ("--output", output is not None)):
        if is_passed:
            raise fail(INVALID_ARGUMENT, f"{option} is not for MicroPython's own boards", name)


def show_text(entry: PortFirmware) -> None:
    show.line(f"{entry.board}: MicroPython's port {entry.port}, kernels of "
              f"{len(entry.operators)} of {len(supported_operators())} operators")
    available = f" of {show.size(entry.available)}" if entry.available else ""
    show.line(f"Flash: {show.size(entry.flash)}{available}")
    for name, size in entry.frozen.items():
        show.line(f"{MODULE}.{name}: {show.size(size)}, used in place")
    show.line(f"Parts of the runtime: {', '.join(entry.parts)}")
    for path in entry.outputs:
        show.line(path)
