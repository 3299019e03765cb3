"""Build MicroPython's port rp2 with picotorch and models: picotorch firmware --board RPI_PICO.

The models are in the flash behind the firmware. The result is a UF2 file, which the board's boot loader
accepts (port/upstream/rp2).

A checkout builds it with the kernels of the models. A wheel contains it with all kernels, and only the
models are added, without a compiler.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _picotorch import CORES

from picotorch import PARTS as ALL_PARTS
from picotorch import Program
from picotorch.errors import INVALID_ARGUMENT, MEMORY_ALLOCATION_FAILED, NOT_SUPPORTED, fail

from ..host import romfs, show, twin
from ..host.files import check_output, write
from ..host.operators import needed_operators, supported_operators
from ..host.optimize import BALANCED, Optimize
from ..host.report import Report
from ..host.sources import ROOT
from . import selective, uf2

PORT = ROOT / "port" / "upstream" / "rp2"
BUILD = ROOT / "build" / "rp2"
FLASH = 0x10000000
PARTS = ("files", "module", "tracer")  # parts of the runtime that scripts use


@dataclass(frozen=True)
class Chip:
    """Facts that the board's files lack.

    machine: MicroPython's name for the board. family: number of its UF2 files. flash: size in bytes.
    """

    title: str
    machine: str
    core: str
    family: int
    flash: int


BOARDS = {
    "RPI_PICO": Chip("Raspberry Pi Pico", "Raspberry Pi Pico with RP2040", "cortex-m0plus",
                     0xE48BFF56, 2 << 20),
    "RPI_PICO2": Chip("Raspberry Pi Pico 2", "Raspberry Pi Pico2 with RP2350", "cortex-m33",
                      0xE48BFF59, 4 << 20),
}


def board_of(machine: str) -> str | None:
    """Return the board with this name in MicroPython, or None for others, such as a Pico W."""
    return next((name for name, chip in BOARDS.items() if chip.machine == machine), None)


@dataclass(frozen=True)
class Layout:
    """Bytes of the parts of the flash: firmware, a ROMFS partition, the file system."""

    firmware: int
    romfs: int
    filesystem: int


def layout(board: str) -> Layout:
    """Read the division of a board's flash from its mpconfigboard.h."""
    text = (PORT / board / "mpconfigboard.h").read_text()
    kib = dict(re.findall(r"#define MICROPY_HW_(\w+)_BYTES \((\d+) \* 1024\)", text))
    romfs_size, filesystem = (int(kib[name]) * 1024 for name in ("ROMFS", "FLASH_STORAGE"))
    return Layout(BOARDS[board].flash - romfs_size - filesystem, romfs_size, filesystem)


@dataclass(frozen=True)
class PicoFirmware(Report):
    """A firmware that was written, with the bytes of flash that each part uses and has.

    replaced: True if a file with the default name existed.
    """

    board: str
    models: list[str]
    firmware: str
    operators: list[str]
    parts: list[str]
    files: list[str]
    flash: int
    flash_size: int
    romfs: int
    romfs_size: int
    filesystem: int
    replaced: bool


def default_output(board: str, models: Collection[Any]) -> Path:
    """Return the default path of a board's firmware."""
    if not selective.has_sources():
        return Path(f"{board}.uf2")
    return BUILD / f"{board}{'-selected' if models else ''}.uf2"


def build(board: str, programs: dict[str, Program], models: dict[str, bytes],
          output: Path | None = None, parts: tuple[str, ...] = (),
          optimize: Optimize = BALANCED) -> PicoFirmware:
    """Write the firmware of a board, with the programs as /rom/<name>.

    It has the kernels and parts of the runtime that the programs need, or all of them without programs
    or without sources. `programs` and `models` have the same keys, paths. output: by default
    default_output. optimize: selects the variants of convolutions.

    Raises NotSupported for a .ptm file that the board would reject, NotFound without sources and
    without a firmware, the errors of selective.make, OperatorMissing, and MemoryAllocationFailed if the
    flash is too small.
    """
    if optimize.left_out:
        selective.check_sources(board)
    is_default = output is None
    output = output or default_output(board, models)
    is_replaced = is_default and output.exists()
    files = _on_board(models)
    check_ptms(board, models)
    check_output(output, make_folder=True)
    needed = needed_operators(programs)
    has_sources = selective.has_sources()
    if programs and has_sources:
        names, selected = needed, {*selective.needed_parts(programs), *PARTS, *parts}
    else:
        names, selected = sorted(supported_operators()), {name for name, _ in ALL_PARTS}
    firmware = (_make(board, programs, selected, optimize, output.with_suffix(".elf")) if has_sources
                else _prebuilt(board))
    if output.is_relative_to(Path.cwd()):
        output = output.relative_to(Path.cwd())
    write(output, pack(board, firmware, files))
    division = layout(board)
    return PicoFirmware(board, list(programs), str(output), names, sorted(selected), sorted(files),
                        len(firmware), division.firmware, len(romfs.build(files)), division.romfs,
                        division.filesystem, is_replaced)


def _make(board: str, programs: dict[str, Program], parts: set[str], optimize: Optimize,
          elf: Path) -> bytes:
    """Build the firmware for the programs. Return its bytes, and write it as an ELF file to `elf`."""
    check_output(elf, make_folder=True)
    folder = BUILD / board / ("selected" if programs else "")
    with selective.locked(BUILD / board):
        if programs:
            selective.write_changed(folder, {
                "operators.def": selective.selection(programs, optimize),
                "manifest.py": selective.manifest(parts, PORT / "manifest.py")})
        selective.make(board, ["rp2"], folder if programs else None)
        write(elf, (folder / "firmware.elf").read_bytes())
        return (folder / "firmware.bin").read_bytes()


def _prebuilt(board: str) -> bytes:
    """Return the wheel's firmware with all kernels."""
    path = BUILD / board / "firmware.bin"
    if not path.is_file():
        selective.check_sources(board)
    return path.read_bytes()


def _on_board(models: dict[str, bytes]) -> dict[str, bytes]:
    """Return the models by their names on the board.

    Raises InvalidArgument if two have the same name.
    """
    files = {Path(path).name: file for path, file in models.items()}
    if len(files) < len(models):
        raise fail(INVALID_ARGUMENT, "two models have the same file name", ", ".join(models),
                   remedy="each becomes /rom/<name>: rename one")
    return files


def check_ptms(board: str, models: dict[str, bytes]) -> None:
    """Raise NotSupported for a .ptm file without the weights that the board's kernels need."""
    core = BOARDS[board].core
    for name, data in models.items():
        if not twin.runs_on(data, CORES[core]):
            raise fail(NOT_SUPPORTED, f"is a .ptm file without the weights that a {core} needs", name,
                       remedy="compile it with --optimize size, or for that core")


def pack(board: str, firmware: bytes, files: dict[str, bytes]) -> bytes:
    """Return the UF2 file of a firmware, and of files in the ROMFS partition.

    Raises MemoryAllocationFailed if the flash is too small.
    """
    parts = layout(board)
    image = romfs.build(files)
    _check_fits("the firmware", len(firmware), parts.firmware, board,
                "name the models with --models: it then includes only their kernels")
    _check_fits("the ROMFS of the models", len(image), parts.romfs, board,
                "put fewer into one firmware, or copy them to the file system")
    contents = {FLASH: firmware, FLASH + parts.firmware: image}
    return uf2.write(contents, BOARDS[board].family)


def _check_fits(what: str, size: int, available: int, board: str, remedy: str) -> None:
    if size > available:
        raise fail(MEMORY_ALLOCATION_FAILED, f"the flash of {board} is too small", what,
                   requested=size, available=available, remedy=remedy)


def show_text(entry: PicoFirmware) -> None:
    show.line(f"{entry.firmware}: {BOARDS[entry.board].title}, kernels of "
              f"{len(entry.operators)} of {len(supported_operators())} operators"
              + (" (an older file was replaced)" if entry.replaced else ""))
    show.heading("Flash")
    show.table(["", "bytes>", "size>", "free>"], [
        [what, size, available, available - size]
        for what, size, available in (("firmware", entry.flash, entry.flash_size),
                                      ("models, in ROMFS", entry.romfs, entry.romfs_size))
    ] + [["file system", "", entry.filesystem, ""]])
    for name in entry.files:
        show.line(f"On the board: /rom/{name}")
    show.line("To flash it: hold BOOTSEL while the board is plugged in, and copy the file to the drive "
              "that appears.")
