"""Puts picotorch onto a board with stock MicroPython: the native module and the runtime as .mpy."""

from picotorch import Program
from picotorch.errors import MEMORY_ALLOCATION_FAILED, NOT_FOUND, NOT_SUPPORTED, fail

from .. import native_module
from .files import Tell, copy_file, do, free_in
from .link import Link
from .running import facts_of

BUILD = native_module.BUILD  # of make natmod
MODULE = "_picotorch.mpy"
HEAP_BESIDE = 48 * 1024  # bytes of heap for the runtime and the memories of a small model
_MPY_VERSION = 6
_ARCHES = {number: name for name, number in native_module.ARCHES.items()}
_THUMB = range(4, 9)  # code of a smaller number runs on cores of a larger one
_LIBRARY = "say(next((p for p in sys.path if p.endswith('/lib') and not p.startswith('/rom')), '/lib'))"


def install(link: Link, programs: dict[str, Program], tell: Tell) -> list[str]:
    """Copies what the board lacks; the files' paths there. They can be imported after a soft reset.
    The module has all kernels if it is built and the heap has room, else those of the programs.

    Raises NotSupported for MicroPython before 1.23, NotFound where no module is built for it,
    MemoryAllocationFailed where heap or file system have too little room.
    """
    facts = facts_of(link)
    module = _module_for(facts, programs, link.name)
    runtime = sorted((BUILD / "picotorch").glob("*.mpy"))
    size = module.stat().st_size
    _check("heap", _heap_of(module), facts["heap_free"],
           "flash a firmware that has picotorch in its flash" if native_module.SETUP.is_file() else
           "build the module with the kernels of your models only: picotorch natmod --models")
    folder = link.do("sys.path is asked for", _LIBRARY)[0]
    do(link, "the folder is made", "make_folder", folder)
    do(link, "the folder is made", "make_folder", folder + "/picotorch")
    _check("file system", size + sum(path.stat().st_size for path in runtime), free_in(link, folder),
           "remove files there")
    files = {f"{folder}/picotorch/{path.name}": path for path in runtime}
    files[f"{folder}/{MODULE}"] = module  # last: with it the runtime can be imported
    for name, path in files.items():
        copy_file(link, path.read_bytes(), name, tell)
    return list(files)


def _module_for(facts, programs, board):
    """The file of the fastest module that runs there."""
    mpy = facts["mpy"]
    if mpy is None or mpy & 0xFF != _MPY_VERSION:
        raise fail(NOT_SUPPORTED, "MicroPython 1.23 or newer is needed for a native module", board,
                   remedy="flash a newer one, or one with picotorch inside")
    number = mpy >> 10 & 0xF
    if not number:
        raise fail(NOT_FOUND, f"{facts['machine']} has no picotorch, and loads no native modules",
                   board, remedy="flash a firmware that has picotorch")
    numbers = range(number, 3, -1) if number in _THUMB else (number,)
    arches = [_ARCHES[each] for each in numbers if each in _ARCHES]
    built = next((path for path in (BUILD / arch / MODULE for arch in arches) if path.is_file()), None)
    if built and _heap_of(built) <= (facts["heap_free"] or 0):
        return built
    if arches and native_module.SETUP.is_file():
        return native_module.link(arches[0], programs)
    if built:
        return built
    arch = _ARCHES.get(number, f"number {number}")
    raise fail(NOT_FOUND, f"{facts['machine']} has no picotorch, and no native module for {arch} is "
               "built", board, remedy="make natmod builds them; or flash a firmware that has picotorch")


def _heap_of(module):
    return module.stat().st_size + HEAP_BESIDE


def _check(memory, needed, free, remedy):
    if needed > (free or 0):
        raise fail(MEMORY_ALLOCATION_FAILED, "", memory, requested=needed, available=free or 0,
                   remedy=remedy)
