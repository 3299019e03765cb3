"""Build the native module for stock MicroPython: picotorch natmod.

The module has all kernels or those of some models. The folder also gets the runtime as bytecode,
package.json for mip, and install.py, so that it can be copied to a board.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from _picotorch import CORES
from _picotorch_c import lib

import picotorch
from picotorch import Program
from picotorch.errors import INVALID_ARGUMENT, NOT_SUPPORTED, fail

from ..host import quoting, show, twin
from ..host.files import copy, read_file, write
from ..host.operators import (
    CONV_VARIANTS,
    FEATURES,
    common_operators,
    needed_features,
    needed_operators,
    supported_operators,
)
from ..host.optimize import BALANCED, Optimize
from ..host.report import Report
from ..host.sources import ROOT
from ..measure.firmware_map import sections
from . import selective

BUILD = ROOT / "build" / "natmod"
SELECTED = BUILD / "selected"
MODULE = "_picotorch.mpy"
INSTALL = ROOT / "port" / "natmod" / "install.py"
_REPLACING = Path(__file__).resolve().parents[1] / "run" / "device" / "on_board" / "replacing.py"
# By the architecture's number in sys.implementation._mpy.
ARCHES = {"x64": 2, "armv6m": 4, "armv7m": 5, "armv7emsp": 7, "armv7emdp": 8, "rv32imc": 11}
_CORE_OF = {"armv6m": "cortex-m0plus", "armv7emsp": "cortex-m4", "armv7emdp": "cortex-m7"}
_THUMB = range(4, 9)  # code of a smaller number runs on cores of a larger one
_UNSUPPORTED = {1: "32-bit x86", 3: "Armv6", 9: "Xtensa (ESP8266)", 10: "Xtensa (ESP32, ESP32-S)",
                12: "64-bit RISC-V"}
# .mpy 6.3, in the format of sys.implementation._mpy. MicroPython loads native modules of its own
# version and sub-version only, and 1.23 was the first release with these.
MPY = 6 | 3 << 8
RUNTIME = 34 * 1024  # bytes of heap for the runtime, all of it imported from a file system
HEAP_BESIDE = RUNTIME + 14 * 1024  # and the memories of a small model
# The part of an object, by its path in the linker's map: the first match.
PARTS = {".lto.o": "binding, library and kernels",  # link-time optimization of small modules
         "/port/natmod/doubles.o": "compiler's library", "/port/": "binding",
         "/kernels/core/": "library", "/registry/registry.o": "library", "/kernels/": "kernels",
         "": "compiler's library"}
TEXTS = "texts"
FIRMWARE = "flash a firmware that has picotorch"  # for a module that does not fit
TEXT = re.compile(r"\.rodata\..+\.str1\.")  # a literal in a function, see natmod.ld
# Instructions of int8 ds_cnn in a small module, relative to a fast one, on a Cortex-M4F.
SMALL_TAKES = 3.7
_TEXTS_SIZE = 4  # bytes at the end of a module with the size of its texts


def arches_for(number: int) -> list[str]:
    """Return the architectures whose code runs on a core of that number, the fastest first."""
    numbers = range(number, _THUMB.start - 1, -1) if number in _THUMB else (number,)
    return sorted((arch for arch in ARCHES if ARCHES[arch] in numbers), key=ARCHES.__getitem__,
                  reverse=True)


def unsupported(number: int) -> str | None:
    """Return the name of an architecture for which nothing can be built, or None.

    Neither a native module nor a firmware can be built for it. 0 is a MicroPython without native code.
    """
    if not number or arches_for(number):
        return None
    return _UNSUPPORTED.get(number, f"number {number}")


@dataclass(frozen=True)
class Kind:
    """The features of a module (see operators.FEATURES), and its size.

    small: errors have no texts, there is no EventTracer, and the inner loops of int8 kernels are plain
    C.
    """

    features: frozenset[str] = frozenset({"programs"})
    small: bool = False

    @property
    def programs(self) -> bool:
        """Return True if the module runs .pte files."""
        return "programs" in self.features

    @property
    def options(self) -> list[str]:
        """Return the options of this kind for setup_picotorch.py."""
        return [*([] if self.programs else ["--ptm-only"]),
                "--optimize", "size" if self.small else "speed"]

    def folder(self, arch: str) -> str:
        """Return the name of the folder in which the module of an architecture is built."""
        return arch if self.small else f"{arch}-fast"


def kind_for(programs: dict[str, Program], small: bool = False) -> Kind:
    """Return the kind of module that runs these programs, or .pte files without programs."""
    features = needed_features(programs) - CONV_VARIANTS.keys()  # more code and temp memory: RAM, both
    if selective.only_ptms(programs):
        features -= {"programs"}
    return Kind(frozenset(features), small)


def _core_of(arch: str | None, small: bool) -> int:
    """Return the core for which the loops of a module are written."""
    plain: int = lib.PT_CORE_PLAIN
    return plain if small or arch is None else CORES.get(_CORE_OF.get(arch), plain)


def _runs(program: Program, arch: str | None, small: bool) -> bool:
    model: Any = program.loader.buffer
    return twin.runs_on(model, _core_of(arch, small))


def arches_of(programs: dict[str, Program], small: bool = False) -> tuple[str, ...]:
    """Return the architectures that run all programs. Raises NotSupported if none does."""
    found = tuple(arch for arch in ARCHES if runs(programs, arch, small))
    if not found:
        check_ptms(tuple(ARCHES), programs, small)
    return found


def runs(programs: dict[str, Program], arch: str | None, small: bool = False) -> bool:
    """Return True if the module of an architecture runs all programs."""
    return all(_runs(program, arch, small) for program in programs.values())


def runs_small(programs: dict[str, Program]) -> bool:
    """Return True if a small module runs all programs."""
    return runs(programs, None, True)


def is_small(programs: dict[str, Program], optimize: Optimize = BALANCED) -> bool:
    """Return True if the module for these programs is small.

    If optimize decides nothing, a module with all kernels is small, and so is one for .ptm files that a
    small module runs: they have no weights packed for faster loops.
    """
    if optimize.small_module is not None:
        return optimize.small_module
    return not programs or selective.only_ptms(programs) and runs_small(programs)


def check_ptms(arches: tuple[str, ...], programs: dict[str, Program], small: bool = False) -> None:
    """Raise NotSupported for a .ptm file that a module would reject."""
    for name, program in programs.items():
        wrong = [arch for arch in arches if not _runs(program, arch, small)]
        if wrong:
            raise fail(NOT_SUPPORTED, "is a .ptm file without the weights that " + (
                "a small module needs" if small else f"{' and '.join(wrong)} need"), name,
                remedy="compile it with --optimize size" + ("" if small else ", or for that core"))


@dataclass(frozen=True)
class NativeModule(Report):
    """Modules that were built.

    takes: suffixes of the files that they run. modules, heap, parts: bytes of the file, of the heap and
    of each part, by architecture. runtime: bytes of the runtime's files.
    """

    output: str
    models: list[str]
    operators: list[str]
    takes: list[str]
    small: bool
    modules: dict[str, int]
    heap: dict[str, int]
    parts: dict[str, dict[str, int]]
    runtime: int


def build(arches: tuple[str, ...], programs: dict[str, Program], output: Path,
          small: bool = False) -> NativeModule:
    """Build the module for each architecture into OUTPUT/ARCH.

    programs: link only the kernels that these programs need, and the readers of their formats. Without
    programs all kernels except kernels/extra are linked, for .pte files. small: see Kind.

    Raises NotSupported for a .ptm file that the module would reject. Raises InvalidArgument if the
    folder has an install.py that picotorch did not write. Raises NotFound outside of picotorch's
    repository. Raises OperatorMissing for a missing kernel, and Internal if the build fails.
    """
    check_ptms(arches, programs, small)
    check_package(output)
    names = needed_operators(programs) if programs else sorted(common_operators())
    kind = kind_for(programs, small)
    parts = {}
    for arch in arches:
        built = link(arch, names if programs else None, kind)
        parts[arch] = _parts(built.with_suffix(".map"))
        (output / arch).mkdir(parents=True, exist_ok=True)
        copy(built, output / arch / built.name)
    write_package(output, arches, left_out=left_out(kind), remedy=_remedy(kind, bool(programs)))
    takes = [*([".pte"] if kind.programs else []), *([".ptm"] if "images" in kind.features else [])]
    return NativeModule(str(output), list(programs), names, takes, small,
                        {arch: (output / arch / MODULE).stat().st_size for arch in arches},
                        {arch: heap_of(output / arch / MODULE) for arch in arches}, parts,
                        sum(path.stat().st_size for path in (output / "picotorch").glob("*.mpy")))


def _remedy(kind: Kind, is_selective: bool) -> str:
    """Return the remedy for a board that is too small for a module: a smaller module."""
    if not is_selective:
        return "build with --models"
    return FIRMWARE if kind.small else f"build with --optimize size, or {FIRMWARE}"


def heap_of(module: Path) -> int:
    """Return the bytes of a module that MicroPython loads into its heap: all but texts of errors."""
    data = module.read_bytes()
    return len(data) - int.from_bytes(data[-_TEXTS_SIZE:], "little")


def features_of(behind: bytes) -> frozenset[str]:
    """Read from `behind` which of operators.FEATURES a module has.

    behind: the first bytes of the module that MicroPython does not read. link_mpy.py lists there the
    features that were left out.
    """
    left_out = behind.partition(b"\0")[0].split()
    return frozenset(name for name, switch in FEATURES.items()
                     if switch.removeprefix("PT_NO_").encode() not in left_out)


def features_of_file(module: Path) -> frozenset[str]:
    """Read the features of a native module's file, see features_of."""
    return features_of(module.read_bytes()[heap_of(module):])


def left_out(kind: Kind) -> set[str]:
    """Return the runtime's files that a module of this kind does not use."""
    return {*(() if kind.programs else ("data", "delegates")), *(("tracer",) if kind.small else ())}


def link(arch: str, names: Collection[str] | None, kind: Kind = Kind()) -> Path:
    """Link the module of one architecture, with the kernels of these operators or with all.

    The function also builds build/natmod/picotorch. Raises the errors of make.
    """
    folder = kind.folder(arch)
    return make(arch, BUILD / folder if names is None else select(names, folder, kind), *kind.options)


def select(names: Collection[str], name: str, kind: Kind) -> Path:
    """Return a folder of that name for make, with a list of operators (selective.operator_file)."""
    text = selective.operator_file(names, kind.features)
    folder = SELECTED / hashlib.sha256(text.encode()).hexdigest()[:12] / name
    selective.write_changed(folder, {"operators.def": text})
    return folder


def make(arch: str, folder: Path, *options: str) -> Path:
    """Build the module into a folder of select, or into the default one with all kernels.

    options: of setup_picotorch.py. Raises NotFound outside of picotorch's repository, Internal if the
    build fails.
    """
    selective.check_sources(None, "native module", "call this in picotorch's repository; for a "
                            "Raspberry Pi Pico it is not needed: --flash RPI_PICO --frozen-model MODEL")
    with selective.locked(BUILD):
        selective.set_up(["natmod", "--arch", arch, *options],
                         folder if folder.is_relative_to(SELECTED) else None, arch, "native module")
    return folder / MODULE


def _parts(map_file: Path) -> dict[str, int]:
    """Return the bytes of machine code and constants by part, and of texts, from the linker's map."""
    found = dict.fromkeys([*PARTS.values(), TEXTS], 0)
    for section, size, path in sections(map_file):
        part = next(part for folder, part in PARTS.items() if folder in path)
        found[TEXTS if "/kernels/" in path and TEXT.match(section) else part] += size
    return {part: size for part, size in found.items() if size}


def write_package(output: Path, arches: Collection[str], extra: Iterable[str] = (),
                  flash: dict[str, int] | None = None, left_out: Iterable[str] = (),
                  remedy: str = FIRMWARE) -> None:
    """Write the runtime, package.json of each architecture, and install.py beside the modules.

    install.py contains the sizes of the files that it copies. extra: files that are copied with the
    runtime. flash: the entry of install.py for kernels in flash. left_out: modules of the runtime that
    the native module does not use. remedy: the text of install.py for a board without room.
    """
    (output / "picotorch").mkdir(parents=True, exist_ok=True)
    for path in sorted((BUILD / "picotorch").glob("*.mpy")):
        if path.stem in left_out:
            (output / "picotorch" / path.name).unlink(missing_ok=True)
        elif path.parent != output / "picotorch":
            copy(path, output / "picotorch" / path.name)
    runtime = [*(output / "picotorch").glob("*.mpy"), *(output / name for name in extra)]
    sizes = {path.relative_to(output).as_posix(): path.stat().st_size for path in sorted(runtime)}
    for name, text in _of_install(output, arches, sizes, flash or {}, remedy).items():
        write(output / name, text)


def check_package(output: Path) -> None:
    """Raise InvalidArgument for an install.py in the folder that no version of write_package wrote."""
    tables = [line.partition(b" = ")[0] + b" = " for line in INSTALL.read_bytes().splitlines()
              if line.startswith((b"MODULES", b"NUMBERS", b"RUNTIME"))]
    check_ours(output / "install.py", lambda data: all(b"\n" + table in data for table in tables))


def check_ours(path: Path, is_ours: Callable[[bytes], bool]) -> None:
    """Raise InvalidArgument for an existing file that picotorch did not write, by its content."""
    if path.exists() and not is_ours(read_file(path)):
        raise fail(INVALID_ARGUMENT, "is not a file that picotorch natmod wrote: it is not replaced",
                   str(path), remedy="move it, or name another folder with --output")


def installer() -> str:
    """Return install.py with the functions that it imports from replacing.py, and with empty tables."""
    first = "EEXIST ="  # the line behind the imports
    _, _, functions = _REPLACING.read_text().partition(first)
    return INSTALL.read_text().replace("from replacing import recover, replace_all\n",
                                       first + functions.rstrip() + "\n\n")


def _of_install(output: Path, arches: Collection[str], runtime: dict[str, int], flash: dict[str, int],
                remedy: str) -> dict[str, str]:
    runs = {number: [arch for arch in arches_for(number) if arch in arches]
            for number in sorted({*ARCHES.values(), *_THUMB})}
    paths = {number: output / found[0] / MODULE for number, found in runs.items() if found}
    modules = {number: [path.parent.name, path.stat().st_size, heap_of(path)]
               for number, path in paths.items()}
    texts = {f"{arch}/package.json": _package(f"../{name}" for name in runtime) for arch in arches}
    text = installer()
    for name, table in (("MODULES", modules), ("RUNTIME", runtime), ("FLASH", flash)):
        text = text.replace(f"{name} = {{}}\n", f"{name} = {_json_like(table)}\n")
    text = text.replace("NUMBERS = ()\n", f"NUMBERS = {tuple(runs)}\n")
    for name, value in (("HEAP_BESIDE", HEAP_BESIDE), ("MPY", MPY)):
        text = text.replace(f"{name} = 0\n", f"{name} = {value}\n")
    text = text.replace('REMEDY = ""\n', f'REMEDY = "{remedy}"\n')
    return texts | {"install.py": text}


def _package(runtime: Iterable[str]) -> str:
    urls = [[MODULE, MODULE], *([path.removeprefix("../"), path] for path in runtime)]
    return json.dumps({"urls": urls, "version": picotorch.__version__}, indent=1) + "\n"


def _json_like(value: Mapping[Any, object]) -> str:
    """Return a table in Python's notation, one entry a line."""
    lines = [f"    {key!r}: {entry!r},\n" for key, entry in value.items()]
    return "{\n" + "".join(lines) + "}"


def show_text(entry: NativeModule) -> None:
    show.line(f"{entry.output}: kernels of {len(entry.operators)} of {len(supported_operators())} "
              f"operators, for {' and '.join(entry.takes)} files")
    parts = entry.parts
    kinds = [kind for kind in [*dict.fromkeys(PARTS.values()), TEXTS]
             if any(kind in sizes for sizes in parts.values())]
    show.table(["", "bytes>", "in the heap>", *(f"{kind}>" for kind in kinds)],
               [*([f"{arch}/{MODULE}", size, entry.heap[arch],
                   *(parts[arch].get(kind, 0) for kind in kinds)]
                  for arch, size in entry.modules.items()),
                ["picotorch/*.mpy", entry.runtime, "", *("" for _ in kinds)]])
    click.echo()
    show.line(_choice(entry.small))
    folder = quoting.operand(entry.output)
    show.line(f"To copy it: {quoting.shell('cd', folder)} && mpremote mount . run install.py")


def _choice(small: bool) -> str:
    """Describe the cost of a small module."""
    cost = (f"errors have no texts, there is no EventTracer, and int8 ds_cnn takes {SMALL_TAKES} times "
            "as many instructions on a Cortex-M4F")
    return (f"Small: {cost}. --optimize speed builds the fast one." if small else
            f"Fast. With --optimize size {cost}.")
