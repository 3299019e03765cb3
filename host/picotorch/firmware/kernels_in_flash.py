"""Put kernels and models into the flash that a stock firmware leaves free: picotorch natmod --flash.

The results are UF2 files, and a native module that calls the kernels there, so that the heap only
contains the binding.

The module stores size and checksum of its kernels in flash and checks them before its first call.
picotorch_models.py has those of the models. No check on the board can detect a firmware that
kernels.uf2 has damaged, so this module compares the firmware's file.

A checkout builds kernels and module. A wheel contains those of nearly all operators, and only the
models are added, without a compiler.
"""

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import click

from picotorch import Error, Program
from picotorch.errors import (
    INVALID_ARGUMENT,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    OPERATOR_MISSING,
    fail,
)

from ..host import quoting, show
from ..host.files import write
from ..host.frozen_models import MODULE, check_names
from ..host.operators import (
    FEATURES,
    common_operators,
    in_words,
    needed_features,
    needed_operators,
    supported_operators,
)
from ..host.optimize import BALANCED, Optimize
from ..host.report import Report
from ..host.twin import open_program
from . import native_module, rp2, selective, uf2

SECTOR = 4096  # the unit of an erase, so that each file has sectors of its own
ALIGNMENT = 16
COMMON_FEATURES = frozenset(FEATURES) - {"float64", "complex", "volumes"}  # float64 has 14 KB
KERNELS = "kernels.uf2"
MODELS, NAMES = "models.uf2", f"{MODULE}.py"  # Python on the board uses the names
_MODELS = """\
from binascii import crc32
from uctypes import bytearray_at

def _at(address, size, crc):
    data = memoryview(bytearray_at(address, size))
    if data[4:8] != b"ET12" and data[:3] != b"PTM":
        raise RuntimeError("no model in flash: copy models.uf2 to the board's boot drive")
    if crc32(data) != crc:
        raise RuntimeError("the models in flash are damaged, or of another build: copy the models.uf2 "
                           "that was written with this picotorch_models.py to the board's boot drive")
    return data

"""


@dataclass(frozen=True)
class FlashRegion:
    """The flash of a board that its stock firmware leaves free.

    It lies between the firmware (324 KB in 1.25) and the file system.
    """

    arch: str
    start: int
    end: int


BOARDS = {"RPI_PICO": FlashRegion("armv6m", rp2.FLASH + (352 << 10), rp2.FLASH + (640 << 10))}


@dataclass(frozen=True)
class KernelsInFlash(Report):
    """Files that were written.

    module: bytes of heap for the native module. kernels, free: bytes of flash. frozen: bytes of the
    models there, by name.
    """

    output: str
    board: str
    models: list[str]
    operators: list[str]
    module: int
    kernels: int
    frozen: dict[str, int]
    free: int


def build(board: str, programs: dict[str, Program], models: list[tuple[str, bytes]],
          firmware: Path | None, output: Path, optimize: Optimize = BALANCED) -> KernelsInFlash:
    """Write the files for a board into the folder output.

    programs: include only their kernels; without programs include all but the extra ones. models: for
    the flash, by name. firmware: the UF2 file that is on the board. optimize: selects the variants of
    convolutions.

    Raises InvalidArgument for two models with one name, for a file that is not a firmware of the board,
    and for a file in the folder that picotorch did not write and would replace. Raises
    MemoryAllocationFailed if the firmware, kernels and models do not fit, NotSupported for a .ptm file
    that the module would reject, and the errors of native_module.make. Without sources it raises
    OperatorMissing or NotSupported for a model that needs an extra kernel.
    """
    region, family = BOARDS[board], rp2.BOARDS[board].family
    check_names(models)
    _check_output(output, board)
    if firmware:
        check_firmware(firmware.read_bytes(), board)
    opened = {name: open_program(data) for name, data in models}
    native_module.check_ptms((region.arch,), programs | opened)
    get = _make if selective.has_sources() else _prebuilt
    names, module, kernels = get(board, programs, opened, optimize)
    start = region.start + _whole(len(kernels), SECTOR)
    laid_out = _lay_out(models, start)
    end = max((address + len(data) for _, address, data in laid_out), default=start)
    if end > region.end:
        remedy = (_in_firmware(board) if programs or not selective.has_sources() else
                  "name the models with --models: only their kernels are included")
        raise fail(MEMORY_ALLOCATION_FAILED, "too large for the free flash", board,
                   requested=end - region.start, available=region.end - region.start, remedy=remedy)
    module_path = output / region.arch / native_module.MODULE
    module_path.parent.mkdir(parents=True, exist_ok=True)
    write(module_path, module)
    write(output / KERNELS, uf2.write({region.start: kernels}, family))
    extra = _write_models(laid_out, family, output)
    free = rp2.FLASH + rp2.BOARDS[board].flash - region.end
    native_module.write_package(output, [region.arch], extra, {"file system": free})
    return KernelsInFlash(str(output), board, list(programs), sorted(names),
                          native_module.heap_of(module_path), len(kernels),
                          {name: len(data) for name, _, data in laid_out}, region.end - end)


def _check_output(output: Path, board: str) -> None:
    """Raise InvalidArgument for a file in the folder that build would replace, but did not write."""
    native_module.check_package(output)
    region = BOARDS[board]
    native_module.check_ours(output / KERNELS, lambda data: _address(data, board) == region.start)
    native_module.check_ours(output / MODELS,
                             lambda data: region.start < _address(data, board) < region.end)
    head = _MODELS.partition("\n\n")[0].encode()
    native_module.check_ours(output / NAMES, lambda data: data.startswith(head))


def _address(file: bytes, board: str) -> int:
    """Return the first address of a UF2 file for a board, or 0 for another file."""
    try:
        first = next(iter(uf2.read(file)))
    except Error:
        return 0
    return first.address if first.family == rp2.BOARDS[board].family else 0


def _make(board: str, programs: dict[str, Program],
          models: dict[str, Program], optimize: Optimize) -> tuple[set[str], bytes, bytes]:
    """Build module and kernels, and return the names of the operators, the module and the kernels."""
    if programs:
        names, features = {*needed_operators(programs)}, needed_features(programs)
    else:
        names = operators_in_flash().union(needed_operators(models))
        features = needed_features(models) | COMMON_FEATURES
    kind = native_module.Kind(frozenset(features - optimize.left_out))
    folder = native_module.select(names, board, kind)
    module = native_module.make(BOARDS[board].arch, folder, "--flash", hex(BOARDS[board].start))
    return names, module.read_bytes(), (folder / "kernels.bin").read_bytes()


def _prebuilt(board: str, programs: dict[str, Program],
              models: dict[str, Program], optimize: Optimize) -> tuple[set[str], bytes, bytes]:
    """Return the wheel's names, module and kernels, if these suffice for the programs and models."""
    folder = native_module.BUILD / board
    if optimize.left_out or not (folder / KERNELS).is_file():
        selective.check_sources(board, "native module")
    names = operators_in_flash()
    missing = {*needed_operators(programs), *needed_operators(models)} - names
    features = needed_features(programs) | needed_features(models)
    lacking = in_words(missing, features - COMMON_FEATURES)
    if lacking:
        raise fail(OPERATOR_MISSING if missing else NOT_SUPPORTED,
                   f"the kernels that are installed have no {', '.join(lacking)}", board,
                   remedy=_in_firmware(board))
    kernels = b"".join(block.data for block in uf2.read((folder / KERNELS).read_bytes()))
    return names, (folder / BOARDS[board].arch / native_module.MODULE).read_bytes(), kernels


def _in_firmware(board: str) -> str:
    return f"flash a firmware with them inside: picotorch firmware --board {board} --models"


def operators_in_flash() -> set[str]:
    """List the operators whose kernels fit in flash.

    The list excludes kernels/extra, random numbers, bags of embeddings, histograms, unique elements,
    nonzero_static, antialiased resizes and grid_sampler.
    """
    too_large = re.compile("::rand|embedding_bag|::histc|::_unique|_static|2d_aa|grid_sampler")
    return {name for name in common_operators() if not too_large.search(name)}


def check_firmware(file: bytes, board: str) -> None:
    """Reject a UF2 file of a firmware that overlaps the kernels."""
    blocks = list(uf2.read(file))
    if blocks[0].family != rp2.BOARDS[board].family or blocks[0].address != rp2.FLASH:
        raise fail(INVALID_ARGUMENT, f"is not a firmware for {board}", "--firmware")
    available = BOARDS[board].start - rp2.FLASH
    last = max(block.address + len(block.data) for block in blocks) - rp2.FLASH
    if last > available:
        raise fail(MEMORY_ALLOCATION_FAILED, "reaches to where the kernels are", "the firmware",
                   requested=last, available=available,
                   remedy="picotorch firmware builds one with picotorch inside")


def _whole(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _lay_out(models: list[tuple[str, bytes]], address: int) -> list[tuple[str, int, bytes]]:
    """Return (name, address, bytes) of each model."""
    laid_out = []
    for name, data in models:
        laid_out.append((name, address, data))
        address += _whole(len(data), ALIGNMENT)
    return laid_out


def _write_models(laid_out: list[tuple[str, int, bytes]], family: int, output: Path) -> list[str]:
    """Write models.uf2 and picotorch_models.py, and return the names of files for the file system."""
    flash, names = output / MODELS, output / NAMES
    if not laid_out:
        for path in (flash, names):
            path.unlink(missing_ok=True)
        return []
    start = laid_out[0][1]
    blob = bytearray()
    for _, address, data in laid_out:
        blob += bytes(address - start - len(blob)) + data
    # The names are set all at once, since a model may have the name of a function of the file
    names_of = "".join(f"{name}, " for name, _, _ in laid_out)
    lines = [f"{names_of.rstrip()} = (\n", *(
        f"    _at({address:#x}, {len(data)}, {zlib.crc32(data):#x}),\n"
        for _, address, data in laid_out), ")\n"]
    write(flash, uf2.write({start: bytes(blob)}, family))
    write(names, _MODELS + "".join(lines))
    return [names.name]


def show_text(entry: KernelsInFlash) -> None:
    show.line(f"{entry.output}: for {rp2.BOARDS[entry.board].title}, kernels of "
              f"{len(entry.operators)} of {len(supported_operators())} operators")
    show.table(["", "bytes>"], [
        ["kernels.uf2: in flash", entry.kernels],
        *([f"models.uf2: {name}", size] for name, size in entry.frozen.items()),
        ["free in flash", entry.free], ["_picotorch.mpy: in the heap", entry.module]])
    click.echo()
    show.line("To flash it, behind stock MicroPython: hold BOOTSEL while the board is plugged in, copy "
              "kernels.uf2 to the drive that appears, then the same with models.uf2.")
    folder = quoting.operand(entry.output)
    show.line(f"To copy the module: {quoting.shell('cd', folder)} && mpremote mount . run install.py")
    for name in entry.frozen:
        show.line(f"On the board: {MODULE}.{name}")
