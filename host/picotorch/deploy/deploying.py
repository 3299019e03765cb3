"""Copy a model to a connected board, into its file system or its ROMFS: picotorch deploy."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from picotorch.errors import (
    ACCESS_FAILED,
    INVALID_ARGUMENT,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    fail,
)

from ..host import quoting, romfs, show
from ..host.report import Report
from ..host.request import Request
from ..host.twin import open_program
from ..run.device.answers import OneOf
from ..run.device.device_run import begin, call, frozen_model, heap_of
from ..run.device.protocol import BLOCK, Link
from ..run.device.serial_ports import resolve
from . import installing
from .device_memory import SPARE
from .files import Tell, copy_files, do, free_in, recover

_LARGEST = 1 << 26  # bytes of a partition
_ERASED_AT_ONCE = 32768  # bytes, so that each answer comes in time


@dataclass(frozen=True)
class Deployed(Report):
    """A model on a board.

    machine: the board's name in its firmware. bytes: of the model. heap_free: bytes before the copy.
    installed: the parts of picotorch that were installed. lacked: the operators and features that the
    previous native module lacked. small: the new module is a small one. copied: False if the model is
    in the firmware. path: the model's path on the board. data: the paths of its data files. in_place: a
    run uses the model in place.
    """

    model: str
    port: str
    machine: str
    bytes: int
    heap_free: int
    copied: bool
    path: str
    data: list[str]
    in_place: bool
    installed: list[str] = field(default_factory=list)
    lacked: list[str] = field(default_factory=list)
    small: bool = False


def deploy(model: bytes, path: Path, port: str, folder: str | None, to_romfs: bool,
           methods: list[str] | None, tell: Tell, data: Sequence[tuple[Path, bytes]] = (),
           timeout: float | None = None) -> Deployed:
    """Copy a model to a board, and picotorch if it is missing or lacks kernels.

    A model in the firmware is not copied, unless a folder or ROMFS is named.

    methods: the methods whose memories must fit in the heap, None for no check. data: the model's data
    files, which are copied beside it. Raises Error; then all earlier files are still there, except
    after an interrupted write of ROMFS, which leaves ROMFS empty.
    """
    files = {path.name: model}
    for other, content in data:
        if other.name in files:
            raise fail(INVALID_ARGUMENT, "is the name of two files", other.name, remedy="rename one")
        files[other.name] = content
    port = resolve(port)
    needed = 0 if methods is None else _heap_for(files, path, methods, to_romfs)
    needs = installing.needs_of({str(path): open_program(model)}, needed)
    with Link(port, timeout) as link:
        installing.put_back(link)
        found = installing.find(link)
        if not installing.is_needed(link, found, needs):
            return _deploy(link, files, path, folder, to_romfs, needed, tell)
    with Link(port, timeout) as link:
        installed, module = installing.install(link, found, needs, tell)
    with Link(port, timeout) as link:
        deployed = _deploy(link, files, path, folder, to_romfs, needed, tell)
    lacked = found.lacks(needs.operators, needs.features) if found.operators else []
    return replace(deployed, installed=installed, lacked=lacked, small=module.small)


def _deploy(link: Link, files: dict[str, bytes], path: Path, folder: str | None, to_romfs: bool,
            needed: int, tell: Tell) -> Deployed:
    found = begin(link)
    free = link.ask("measuring the heap", "gc.collect()\nsay(gc.mem_free())", int)  # with picotorch
    main = files[path.name]
    location, in_place = None, False
    if folder is None and not to_romfs and len(files) == 1:
        location, in_place = frozen_model(link, path.name, main)
    if in_place and needed:  # 0 needs no heap
        needed -= len(main)
    if needed > free:
        remedy = ("use a smaller model, or a board with more memory" if to_romfs
                  else "deploy it with --romfs, where it is used in place")
        raise fail(MEMORY_ALLOCATION_FAILED, f"{found.machine} has too little for this model", "heap",
                   requested=needed, available=free, remedy=remedy)
    is_copied, data = location is None, list[str]()
    if location is None:
        copy = _into_romfs if to_romfs else _into_files
        (location, *data), in_place = copy(link, files, folder, tell)
    return Deployed(str(path), link.port, found.machine, len(main), free, is_copied, location, data,
                    in_place)


def _heap_for(files: dict[str, bytes], path: Path, methods: list[str], to_romfs: bool) -> int:
    """Return the bytes of the heap that the model needs, with the largest memories of any method."""
    in_heap = 0 if to_romfs else sum(map(len, files.values()))
    model, *data = files.values()
    runs = (Request(model, str(path), [], name, None, temp_size=None, data=data) for name in methods)
    return in_heap + SPARE + max(map(heap_of, runs), default=0)


# ---- files


def _into_files(link: Link, files: dict[str, bytes], folder: str | None, tell: Tell
                ) -> tuple[list[str], bool]:
    """Copy files to the file system, and return their paths and whether a run uses them in place."""
    folder = (folder or "").rstrip("/")
    paths = {f"{folder}/{name}" if folder else name: data for name, data in files.items()}
    if folder:
        do(link, "making the folder", "make_folder", folder)
    if (free := free_in(link, folder or ".")) is None:
        raise fail(NOT_FOUND, "the firmware has no file system", link.name,
                   remedy="deploy with --romfs, or flash a firmware that has one")
    main = next(iter(paths))
    recover(link, main, paths)
    free = free_in(link, folder or ".") or 0
    needed = sum(map(len, paths.values()))
    if needed > free:
        raise fail(MEMORY_ALLOCATION_FAILED, "", "file system", requested=needed, available=free,
                   remedy="remove files there, or deploy with --romfs")
    copy_files(link, main, paths, tell)
    return list(paths), False


# ---- ROMFS


def _into_romfs(link: Link, files: dict[str, bytes], folder: str | None, tell: Tell
                ) -> tuple[list[str], bool]:
    """Write a new ROMFS image with its present files and these.

    Its first block is written last. If the write fails, the board finds no ROMFS instead of a part of
    one.
    """
    partition = do(link, "looking for a ROMFS", "open_rom", shape=OneOf(None, (int, int, bool)))
    if partition is None:
        raise fail(NOT_FOUND, "has no ROMFS partition", link.name,
                   remedy="deploy without --romfs, or flash a firmware that has one")
    size, block, in_place = partition
    if not 0 < block <= size <= _LARGEST:
        raise link.refused(f"a ROMFS of {size} bytes in blocks of {block}")
    folders = [*filter(None, (folder or "").removeprefix("/rom").split("/"))]
    paths = {"/".join([*folders, name]): data for name, data in files.items()}
    rom = _rom_files(link, size)
    others = bool(rom)
    for path, data in paths.items():
        _put(rom, path, data, link.name)
    image = romfs.build(rom)
    if len(image) > size:
        raise fail(MEMORY_ALLOCATION_FAILED, "", "ROMFS", requested=len(image), available=size,
                   remedy="with its other files there is too little room: remove some (mpremote romfs)"
                   if others else "use a smaller model")
    _write_rom(link, image, size, block, tell)
    return ["/rom/" + path for path in paths], in_place


def _put(files: dict[str, Any], path: str, data: bytes, board: str) -> None:
    """Add a file to a tree. Raises InvalidArgument if a name is that of a file and of a folder."""
    *folders, name = path.split("/")
    for folder in folders:
        files = files.setdefault(folder, {})
        if not isinstance(files, dict):
            raise fail(INVALID_ARGUMENT, f"/rom has a file {folder}", board,
                       remedy="name another folder")
    if isinstance(files.get(name), dict):
        raise fail(INVALID_ARGUMENT, f"/rom has a folder {name}", board, remedy="rename the model")
    files[name] = data


def _rom_files(link: Link, size: int) -> dict[str, Any]:
    """Return the present files of the ROMFS, or {} without an image."""
    head = b"".join(link.do("reading the ROMFS", call("read_rom", 0, min(size, 32)), "files",
                            each=bytes))
    length = romfs.size_of(head)
    if not 0 < length <= size:
        return {}
    try:
        return romfs.read(b"".join(_read_rom(link, length)))
    except (ValueError, IndexError, RecursionError):
        return {}


def _read_rom(link: Link, length: int) -> Iterator[bytes]:
    for start in range(0, length, BLOCK):
        yield from link.do("reading the ROMFS", call("read_rom", start, min(BLOCK, length - start)),
                           "files", each=bytes)


def _write_rom(link: Link, image: bytes, size: int, block: int, tell: Tell) -> None:
    padded = image + bytes(-len(image) % BLOCK if len(image) + BLOCK <= size else 0)
    at_once = size if block == size else max(block, _ERASED_AT_ONCE // block * block)
    for start in range(0, len(padded), at_once):
        part = min(at_once, -(-(len(padded) - start) // block) * block) if block < size else len(padded)
        do(link, "erasing the ROMFS", "erase_rom", start, part)
    link.put("writing the ROMFS", padded[BLOCK:], lambda sent: tell("/rom", sent, len(image)), BLOCK)
    link.put("writing the ROMFS", padded[:BLOCK], lambda sent: tell("/rom", len(image), len(image)))
    if do(link, "checking the ROMFS", "end_rom", len(image), shape=int) != zlib.crc32(image):
        raise fail(ACCESS_FAILED, "the ROMFS differs from the data sent", link.name,
                   remedy="try again; if it happens again, its flash is worn out")


def show_text(found: Deployed) -> None:
    if found.lacked:
        show.line(f"the native module had no {', '.join(found.lacked)}: it is replaced")
    for name in found.installed:
        show.line(f"{name} is installed")
    if found.small:
        show.line("the native module is a small one, because the heap has no room for a fast one: its "
                  "errors have no texts, and int8 kernels are slower")
    how = "used in place" if found.in_place else "read into the heap"
    done = "checked" if found.copied else "in the firmware, not copied"
    show.line(f"{found.model} is {found.path} on {found.machine}: {found.bytes:,} bytes, "
              f"{done}; for a run it is {how}")
    for path in found.data:
        show.line(f"{path} is also there")
    model = quoting.operand(found.model)
    show.line(quoting.shell("picotorch", "run", model, "--port", found.port))
