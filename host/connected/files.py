"""Files on a connected board."""

import zlib
from collections.abc import Callable, Iterable

from picotorch.errors import ACCESS_FAILED, fail

from .link import ON_BOARD, Link
from .session import call

Tell = Callable[[str, int, int], None]  # what is done, bytes, of how many


def do(link: Link, doing: str, function: str, *arguments):
    """Return the first line that a function of on_board/files.py prints."""
    return _do(link, doing, function, *arguments, module="files")


def _do(link, doing, function, *arguments, module):
    for name in ("replacing", "files"):
        link.send_module(ON_BOARD / f"{name}.py")
    said = link.do(doing, call(function, *arguments), module)
    return said[0] if said else None


def free_in(link: Link, folder: str) -> int | None:
    """Free bytes, None without a file system."""
    return do(link, "reading the free space", "free", folder)


def is_there(link: Link, path: str, data: bytes) -> bool:
    """Return whether the board has this file with these bytes."""
    return do(link, f"looking for {path}", "checksum", path) == (len(data), zlib.crc32(data))


def recover(link: Link, main: str, paths: Iterable[str]) -> None:
    """Repair what an earlier call of copy_files, with the same `main`, left when it was interrupted."""
    _do(link, "removing the rest of an earlier try", "recover", main, list(paths), module="replacing")


def copy_files(link: Link, main: str, files: dict[str, bytes], tell: Tell) -> None:
    """Replace a set of files as one. `main`: the path by which recover() finds what an interruption
    left. The files are written under other names and checked, and only then renamed: what breaks
    before leaves the old files, and what interrupts the renaming leaves them to recover()."""
    for path, data in files.items():
        _write_part(link, data, path, tell)
    _do(link, "renaming the files", "replace_all", main, list(files), module="replacing")


def _write_part(link, data, path, tell):
    part = path + ".part"
    do(link, f"creating {path}", "begin", part)
    link.put(f"copying {path}", data, lambda sent: tell(path, sent, len(data)))
    do(link, f"closing {path}", "end")
    if not is_there(link, part, data):
        _do(link, "removing the bad copy", "remove", part, module="replacing")
        raise fail(ACCESS_FAILED, f"the copy of {path} differs from the file", link.name,
                   remedy="try again; if it happens again, its flash is worn out")
