"""Install picotorch on a board with stock MicroPython: the native module and the runtime as .mpy."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import picotorch
from picotorch import Error, Program
from picotorch.errors import MEMORY_ALLOCATION_FAILED, NOT_FOUND, NOT_SUPPORTED, OPERATOR_MISSING, fail

from ..firmware import kernels_in_flash, native_module, rp2, selective
from ..host.operators import common_operators, in_words, needed_operators, supported_operators
from ..run.device.answers import OneOf
from ..run.device.device_run import facts_of, machine_of, version_of
from ..run.device.protocol import Link
from .files import Tell, copy_files, do, free_in, is_there, recover

BUILD = native_module.BUILD  # the output of make natmod
MODULE = native_module.MODULE
_LIBRARY = "say(next((p for p in sys.path if p.endswith('/lib') and not p.startswith('/rom')), '/lib'))"
_MODULE = """\
import _picotorch
_has = getattr(_picotorch, 'has_operator', lambda number: False)
_path = getattr(_picotorch, '__file__', None)
_behind = None
if _path:
    with open(_path, 'rb') as _file:
        _file.seek(-4, 2)
        _file.seek(-int.from_bytes(_file.read(4), 'little'), 2)
        _behind = _file.read(256)
say((_path, hasattr(_picotorch, '_flash'), [number for number in range({}) if _has(number)], _behind))
"""
# These are certain. float64 and complex are not, since a model may only copy such tensors.
_CERTAIN = frozenset({"images", "programs", "volumes"})


@dataclass(frozen=True)
class Needs:
    """The needs of a model: its operators and features (operators.FEATURES) that deploy checks.

    heap: bytes besides the module and the runtime. small: True if a small module runs it. arches: the
    architectures whose modules run it, which a .ptm file may limit.
    """

    operators: list[str]
    features: frozenset[str]
    heap: int = 0
    small: bool = False
    arches: tuple[str, ...] = tuple(native_module.ARCHES)


def needs_of(programs: dict[str, Program], heap: int = 0) -> Needs:
    """Collect the needs of programs: all features if modules can be built, else the certain ones."""
    features = native_module.kind_for(programs).features
    if not selective.has_sources():
        features = features.intersection(_CERTAIN)
    arches = tuple(arch for arch in native_module.ARCHES if native_module.runs(programs, arch))
    return Needs(needed_operators(programs), features, heap, native_module.runs_small(programs),
                 arches)


@dataclass(frozen=True)
class Module:
    """The native module for a board."""

    file: Path
    small: bool = False

    @property
    def heap(self) -> int:
        """Return the bytes of the heap for the module and the runtime."""
        return native_module.heap_of(self.file) + native_module.RUNTIME


@dataclass(frozen=True)
class Installed:
    """The picotorch on a board.

    version: None without picotorch. path: of the native module, None if it is part of the firmware.
    flash: True if its kernels are in flash (picotorch natmod --flash). operators: the names of the
    operators with a kernel. features: the native module's of operators.FEATURES; None if unknown.
    """

    version: str | None = None
    path: str | None = None
    flash: bool = False
    operators: frozenset[str] = frozenset()
    features: frozenset[str] | None = None

    @property
    def folder(self) -> str:
        """Return the folder of the native module; "." if the board starts in it."""
        return (self.path or "").rpartition("/")[0] or "."

    def lacks(self, operators: Collection[str], features: Collection[str]) -> list[str]:
        """List the missing operators and features, in words."""
        present = features if self.features is None else self.features
        return in_words(set(operators) - self.operators, set(features) - set(present))


def put_back(link: Link) -> None:
    """Restore the old files after an interrupted install(), before anything imports them."""
    do(link, "looking for an interrupted deploy", "put_back_library", MODULE)


def find(link: Link) -> Installed:
    """Query the board for its picotorch."""
    version = version_of(link)
    if version is None:
        return Installed()
    names = {operator.number: name for name, operator in supported_operators().items()}
    path, flash, numbers, behind = link.ask(
        "reading its list of kernels", _MODULE.format(1 + max(names)),
        (OneOf(None, str), bool, [int], OneOf(None, bytes)))
    return Installed(version, path, flash,
                     frozenset(names[number] for number in numbers if number in names),
                     None if behind is None else native_module.features_of(behind))


def is_needed(link: Link, found: Installed, needs: Needs) -> bool:
    """Return True if a native module has to be installed.

    Raises OperatorMissing or NotSupported if the board lacks something in a part that deploy cannot
    replace.
    """
    if found.version is None:
        return True
    current = found.version == picotorch.__version__
    if current and not found.lacks(needs.operators, needs.features):
        return False
    if found.path is None:
        holder = "the firmware"
    elif found.flash:
        holder = "the flash"
    elif found.path.startswith("/rom"):
        holder = found.path
    else:
        return True
    lacking = found.lacks(needs.operators, _CERTAIN.intersection(needs.features))
    if not current or not lacking:  # running.begin reports both versions
        return False
    code = OPERATOR_MISSING if set(needs.operators) - found.operators else NOT_SUPPORTED
    raise fail(code, f"{holder} has no {', '.join(lacking)}", link.name,
               remedy=_other_kernels(found, machine_of(link)))


def _other_kernels(found: Installed, machine: str) -> str:
    """Return the remedy for kernels that deploy cannot replace."""
    if found.path is not None and not found.flash:
        return "take it out of the ROMFS, and deploy again"
    if found.flash and selective.has_sources():
        return ("copy other kernels there: picotorch natmod --flash "
                f"{'|'.join(kernels_in_flash.BOARDS)} --models MODEL")
    return _firmware_for(machine)


def _firmware_for(machine: str) -> str:
    """Return a remedy that works for every model.

    A wheel can put a model only into the firmware of a Pico.
    """
    board = rp2.board_of(machine)
    return ("flash a firmware with its kernels: picotorch firmware "
            f"--board {board or 'NAME'} --models MODEL"
            + ("" if board or selective.has_sources() else ", in picotorch's repository"))


def choose(facts: dict[str, Any], found: Installed, needs: Needs, board: str) -> Module:
    """Return the module for a board with these facts (device_run.facts_of), measured without picotorch.

    It is the first one for which the heap has room, or the last one if none fits. The order:

    - the module with all kernels, if it has the features and operators;
    - one with the kernels for the operators and those of the board's module;
    - the small modules of both kinds.

    Raises NotSupported if MicroPython loads other .mpy files, if no module runs the .ptm file, or for
    features and extra operators that the module with all kernels lacks. Raises NotFound if no module is
    built for the board. The last two are raised only if no module can be built here.
    """
    arches = arches_of(facts, board)
    kept = found.features if found.features and selective.has_sources() else frozenset()
    features = needs.features | kept
    operators = {*needs.operators, *(found.operators if selective.has_sources() else ())}
    runs = [arch for arch in arches if arch in needs.arches]
    if arches and not runs and not needs.small:
        raise fail(NOT_SUPPORTED, f"the model is a .ptm file without the weights that {arches[0]} "
                   "needs",
                   board, remedy="compile it with --optimize size, or for its core")
    module = None
    small = needs.small and "images" not in kept
    for module in _modules(arches, runs, operators, features, small):
        if _heap_for(module, needs) <= facts["heap_free"]:
            break
    if module is None:
        raise _not_built(facts, runs or arches, operators, features, board)
    return module


def _heap_for(module: Module, needs: Needs) -> int:
    return module.heap + max(native_module.HEAP_BESIDE - native_module.RUNTIME, needs.heap)


def install(link: Link, found: Installed, needs: Needs, tell: Tell) -> tuple[list[str], Module]:
    """Install the parts that the board lacks. If this fails, the board stays unchanged.

    The files are first written under other names. Returns their paths, which can be imported after a
    soft reset, and the module. Nothing may have imported picotorch in this conversation, since the heap
    has to be empty. Raises the errors of choose, and MemoryAllocationFailed if heap or file system are
    too small.
    """
    facts = facts_of(link)
    module = choose(facts, found, needs, link.name)
    _check("heap", _heap_for(module, needs), facts["heap_free"], _more_heap(found, facts["machine"]))
    folder = found.folder if found.path else link.ask("reading sys.path", _LIBRARY, str)
    do(link, "making the folder", "make_folder", folder + "/picotorch")
    files = {f"{folder}/picotorch/{path.name}": path.read_bytes()
             for path in sorted((BUILD / "picotorch").glob("*.mpy"))}
    main = f"{folder}/{MODULE}"
    files[main] = module.file.read_bytes()
    recover(link, main, files)
    files = {path: data for path, data in files.items() if not is_there(link, path, data)}
    _check("file system", sum(map(len, files.values())), free_in(link, folder) or 0,
           "remove files there")
    copy_files(link, main, files, tell)
    return list(files), module


def _more_heap(found: Installed, machine: str) -> str:
    """Return the remedy for a heap that is too small for the module."""
    if found.operators and selective.has_sources():
        return (f"remove {found.path}, and deploy makes one for this model alone; or "
                + native_module.FIRMWARE)
    board = rp2.board_of(machine)
    if board in kernels_in_flash.BOARDS:
        return (f"{_firmware_for(machine)}, or keep its firmware: picotorch natmod --flash {board} "
                "--frozen-model MODEL")
    if board or selective.has_sources():
        return _firmware_for(machine)
    return ("build the module with the kernels of your models only: picotorch natmod --models, in "
            "picotorch's repository")


def architecture(facts: dict[str, Any]) -> int:
    """Return the number of a board's architecture in sys.implementation._mpy.

    It is 0 without native code.
    """
    return (facts["mpy"] or 0) >> 10 & 0xF


def arches_of(facts: dict[str, Any], board: str) -> list[str]:
    """Return the architectures of the native modules that a board loads, the fastest first.

    Raises NotSupported or NotFound if it loads none.
    """
    mpy = facts["mpy"]
    if mpy is None or mpy & 0x3FF != native_module.MPY:
        version, ours = ((number & 0xFF, number >> 8 & 3) for number in (mpy or 0, native_module.MPY))
        loads = "" if mpy is None else ", this one loads .mpy {}.{}".format(*version)
        needed, remedy = "MicroPython 1.23 or newer is needed for a native module", "flash a newer one"
        if version > ours:
            needed = "a native module needs .mpy {}.{}".format(*ours)
            remedy = "flash a MicroPython from 1.23 to the last one with it"
        raise fail(NOT_SUPPORTED, needed + loads, board,
                   remedy=f"{remedy}, or one with picotorch inside")
    number = architecture(facts)
    if (name := native_module.unsupported(number)) is not None:
        raise fail(NOT_SUPPORTED, f"picotorch does not support {name} yet, the architecture of "
                   f"{facts['machine']}", board,
                   remedy="use a board with a Cortex-M or RV32 core; picotorch boards lists some")
    if not number:
        raise fail(NOT_FOUND, f"{facts['machine']} has no picotorch, and loads no native modules",
                   board, remedy=native_module.FIRMWARE)
    return native_module.arches_for(number)


def _modules(arches: Sequence[str], runs: list[str], operators: set[str], features: frozenset[str],
             small: bool) -> Iterator[Module]:
    """Yield the modules that run there, the best first. Each is built when it is needed."""
    for is_small, run in [(False, runs), (True, arches if small else [])]:
        kind = native_module.Kind(features, is_small)
        for built in _built(run, kind):
            if not _lacking(built, operators, features):
                yield Module(built, is_small)
                break
        if run and selective.has_sources():
            yield Module(native_module.link(run[0], sorted(operators), kind), is_small)


def _built(arches: Sequence[str], kind: native_module.Kind) -> list[Path]:
    """Return the modules with all kernels, fast or small."""
    return [path for arch in arches if (path := BUILD / kind.folder(arch) / MODULE).is_file()]


def _lacking(built: Path, operators: set[str], features: frozenset[str]) -> list[str]:
    """Return words for the operators and features that a module with all kernels lacks."""
    return in_words(operators - common_operators(), features - native_module.features_of_file(built))


def _not_built(facts: dict[str, Any], arches: Sequence[str], operators: set[str],
               features: frozenset[str], board: str) -> Error:
    built = [path for small in (False, True)
             for path in _built(arches, native_module.Kind(small=small))]
    if built:
        return fail(NOT_SUPPORTED, "the native module with all kernels has no " + ", ".join(
            _lacking(built[0], operators, features)), board,
            remedy=_firmware_for(facts["machine"]) if rp2.board_of(facts["machine"]) else
            "build one for the model: picotorch natmod --models, in picotorch's repository")
    remedy = "make natmod builds them; or " if selective.has_sources() else ""
    return fail(NOT_FOUND, f"{facts['machine']} has no picotorch, and no native module for "
                f"{arches[0]} is built", board, remedy=remedy + _firmware_for(facts["machine"]))


def _check(memory: str, needed: int, free: int, remedy: str) -> None:
    if needed > free:
        raise fail(MEMORY_ALLOCATION_FAILED, "", memory, requested=needed, available=free,
                   remedy=remedy)
