"""Puts picotorch onto a board with stock MicroPython: the native module and the runtime as .mpy."""

from collections.abc import Collection
from dataclasses import dataclass

import picotorch
from picotorch.errors import MEMORY_ALLOCATION_FAILED, NOT_FOUND, NOT_SUPPORTED, OPERATOR_MISSING, fail

from ..firmware import native_module, selective
from ..operators import known_operators
from .files import Tell, copy_files, do, free_in, is_there, remove_part
from .link import Link
from .session import facts_of, version_of

BUILD = native_module.BUILD  # of make natmod
MODULE = "_picotorch.mpy"
_MPY_VERSION = 6
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
_TITLES = {"images": ".ptm files", "programs": ".pte files", "float64": "float64 functions",
           "complex": "complex arithmetic", "volumes": "3-d convolutions"}
# Those that a model is sure to need: its float64 and complex tensors may be only copied.
_CERTAIN = frozenset({"images", "programs", "volumes"})


def within_reach(features: Collection[str]) -> frozenset[str]:
    """Those that deploy sees to: all where modules can be built, else those that are certain."""
    return frozenset(features) if selective.SETUP.is_file() else _CERTAIN.intersection(features)


@dataclass(frozen=True)
class Installed:
    """What a board has of picotorch. version: None where it has none. path: of the native module, None
    where it is part of the firmware. flash: whether its kernels are in flash, of picotorch natmod
    --flash. operators: the names of those that it has kernels for. features: of a native module those
    of operators.FEATURES that it has; None where they are not known."""

    version: str | None = None
    path: str | None = None
    flash: bool = False
    operators: frozenset[str] = frozenset()
    features: frozenset[str] | None = None

    @property
    def folder(self) -> str:
        """Where the native module is; "." where the board starts."""
        return (self.path or "").rpartition("/")[0] or "."

    def lacks(self, operators: Collection[str], features: Collection[str]) -> list[str]:
        """What it lacks of these, in words."""
        missing = sorted(set(operators) - self.operators)
        known = features if self.features is None else self.features
        return [*([f"kernels for {', '.join(missing)}"] if missing else []),
                *(_TITLES[name] for name in sorted(set(features) - set(known)))]


def find(link: Link) -> Installed:
    """Asks the board."""
    version = version_of(link)
    if version is None:
        return Installed()
    names = {operator.number: name for name, operator in known_operators().items()}
    path, flash, numbers, behind = link.do("reading its list of kernels",
                                           _MODULE.format(1 + max(names)))[0]
    return Installed(version, path, flash,
                     frozenset(names[number] for number in numbers if number in names),
                     None if behind is None else native_module.features_of(behind))


def is_needed(found: Installed, operators: list[str], features: Collection[str], board: str) -> bool:
    """Whether a native module has to be installed for these operators and features.

    Raises OperatorMissing or NotSupported where they are missing in what deploy cannot replace.
    """
    if found.version is None:
        return True
    current = found.version == picotorch.__version__
    if current and not found.lacks(operators, features):
        return False
    if found.path is None:
        holder, remedy = "the firmware", "flash one that has them: picotorch firmware --models"
    elif found.flash:
        holder, remedy = "the flash", "copy other kernels there: picotorch natmod --flash --models"
    elif found.path.startswith("/rom"):
        holder, remedy = found.path, "take it out of the ROMFS, and deploy again"
    else:
        return True
    lacking = found.lacks(operators, _CERTAIN.intersection(features))
    if not current or not lacking:  # running.begin names both versions
        return False
    code = OPERATOR_MISSING if set(operators) - found.operators else NOT_SUPPORTED
    raise fail(code, f"{holder} has no {', '.join(lacking)}", board, remedy=remedy)


def install(link: Link, found: Installed, operators: list[str], features: Collection[str],
            tell: Tell) -> list[str]:
    """Copies what the board lacks, under other names first: where something breaks it stays as it was.
    The files' paths there; they can be imported after a soft reset. The module has all kernels if it
    is built, has the features and the heap has room, else those of the operators, and of those that it
    had. Nothing may have imported picotorch in this conversation: the heap has to be empty.

    Raises NotSupported for MicroPython before 1.23 and for features that the module with all kernels
    lacks, NotFound where none is built for it, both where none can be built; MemoryAllocationFailed
    where heap or file system have too little room.
    """
    facts = facts_of(link)
    kept = found.features if found.features and selective.SETUP.is_file() else ()
    module = _module_for(facts, sorted({*operators, *found.operators}),
                         frozenset(features).union(kept), link.name)
    _check("heap", _heap_of(module), facts["heap_free"], _remedy(found))
    folder = found.folder if found.path else link.do("reading sys.path", _LIBRARY)[0]
    do(link, "making the folder", "make_folder", folder + "/picotorch")
    files = {f"{folder}/picotorch/{path.name}": path.read_bytes()
             for path in sorted((BUILD / "picotorch").glob("*.mpy"))}
    files[f"{folder}/{MODULE}"] = module.read_bytes()  # last: with it the runtime can be imported
    for path in files:
        remove_part(link, path)
    files = {path: data for path, data in files.items() if not is_there(link, path, data)}
    _check("file system", sum(map(len, files.values())), free_in(link, folder), "remove files there")
    copy_files(link, files, tell)
    return list(files)


def _remedy(found):
    """Where the heap is too small for the module."""
    if not selective.SETUP.is_file():
        return "build the module with the kernels of your models only: picotorch natmod --models"
    if found.operators:
        return (f"remove {found.path}, and deploy makes one for this model alone; or flash a firmware "
                "that has picotorch in its flash")
    return "flash a firmware that has picotorch in its flash"


def _module_for(facts, operators, features, board):
    """The file of the fastest module that runs there."""
    mpy = facts["mpy"]
    if mpy is None or mpy & 0xFF != _MPY_VERSION:
        raise fail(NOT_SUPPORTED, "MicroPython 1.23 or newer is needed for a native module", board,
                   remedy="flash a newer one, or one with picotorch inside")
    number = mpy >> 10 & 0xF
    if not number:
        raise fail(NOT_FOUND, f"{facts['machine']} has no picotorch, and loads no native modules",
                   board, remedy="flash a firmware that has picotorch")
    arches = native_module.arches_for(number)
    there = [path for path in (BUILD / arch / MODULE for arch in arches) if path.is_file()]
    built = next((path for path in there if features <= native_module.features_of_file(path)), None)
    if built and _heap_of(built) <= (facts["heap_free"] or 0):
        return built
    if arches and selective.SETUP.is_file():
        return native_module.link(arches[0], operators, native_module.Kind(features))
    if built:
        return built
    if there:
        lacking = features - native_module.features_of_file(there[0])
        raise fail(NOT_SUPPORTED, "the native module with all kernels has no " + ", ".join(
            _TITLES[name] for name in sorted(lacking)), board,
            remedy="build one for the model: picotorch natmod --models, in picotorch's repository")
    wanted = arches[0] if arches else f"number {number}"
    raise fail(NOT_FOUND, f"{facts['machine']} has no picotorch, and no native module for {wanted} is "
               "built", board, remedy="make natmod builds them; or flash a firmware that has picotorch")


def _heap_of(module):
    return native_module.heap_of(module) + native_module.HEAP_BESIDE


def _check(memory, needed, free, remedy):
    if needed > (free or 0):
        raise fail(MEMORY_ALLOCATION_FAILED, "", memory, requested=needed, available=free or 0,
                   remedy=remedy)
