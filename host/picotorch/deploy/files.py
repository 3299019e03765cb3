"""Read and write files on a connected board."""

import zlib
from collections.abc import Callable, Iterable
from typing import Any

from picotorch.errors import ACCESS_FAILED, fail

from ..run.device.answers import OneOf
from ..run.device.device_run import call
from ..run.device.protocol import NOTHING, ON_BOARD, Link

Tell = Callable[[str, int, int], None]  # the present step, bytes, total bytes


def do(link: Link, doing: str, function: str, *arguments: Any, shape: object = NOTHING,
       module: str = "files") -> Any:
    """Call a function of a module in on_board/, and return the value that it reports.

    The value has this shape (answers.py); None, the default, for a function that reports nothing.
    """
    for name in ("replacing", "files"):
        link.send_module(ON_BOARD / f"{name}.py")
    if shape is NOTHING:
        link.do(doing, call(function, *arguments), module)
        return None
    return link.ask(doing, call(function, *arguments), shape, module)


def free_in(link: Link, folder: str) -> int | None:
    """Return the free bytes of a folder's file system, or None without a file system."""
    free: int | None = do(link, "reading the free space", "free", folder, shape=OneOf(None, int))
    return free


def is_there(link: Link, path: str, data: bytes) -> bool:
    """Return True if the board has this file with these bytes."""
    return checksum(link, path) == (len(data), zlib.crc32(data))


def checksum(link: Link, path: str) -> tuple[int, int] | None:
    """Return size and checksum of a file on the board, or None if it does not exist."""
    found: tuple[int, int] | None = do(link, f"looking for {path}", "checksum", path,
                                       shape=OneOf(None, (int, int)))
    return found


def recover(link: Link, main: str, paths: Iterable[str]) -> None:
    """Repair the files that an interrupted call of copy_files, with the same `main`, left."""
    do(link, "removing the rest of an earlier try", "recover", main, list(paths), module="replacing")


def copy_files(link: Link, main: str, files: dict[str, bytes], tell: Tell) -> None:
    """Replace a set of files as one.

    main: the path by which recover() finds the files of an interrupted call. The files are written
    under other names and checked, and only then renamed. A failure before the renaming leaves the old
    files. recover() completes an interrupted renaming or undoes it.
    """
    for path, data in files.items():
        _write_part(link, data, path, tell)
    do(link, "renaming the files", "replace_all", main, list(files), module="replacing")


def _write_part(link: Link, data: bytes, path: str, tell: Tell) -> None:
    part = path + ".part"
    do(link, f"creating {path}", "begin", part)
    link.put(f"copying {path}", data, lambda sent: tell(path, sent, len(data)))
    do(link, f"closing {path}", "end")
    if not is_there(link, part, data):
        do(link, "removing the bad copy", "remove", part, module="replacing")
        raise fail(ACCESS_FAILED, f"the copy of {path} differs from the file", link.name,
                   remedy="try again; if it happens again, its flash is worn out")
