"""Files on a connected board."""

import zlib
from collections.abc import Callable

from picotorch.errors import ACCESS_FAILED, fail

from .link import ON_BOARD, Link
from .session import call

Tell = Callable[[str, int, int], None]  # what is done, bytes, of how many


def do(link: Link, doing: str, function: str, *arguments):
    """Return the first line that a function of on_board/files.py prints."""
    link.send_module(ON_BOARD / "files.py")
    said = link.do(doing, call(function, *arguments), "files")
    return said[0] if said else None


def free_in(link: Link, folder: str) -> int | None:
    """Free bytes, None without a file system."""
    return do(link, "reading the free space", "free", folder)


def is_there(link: Link, path: str, data: bytes) -> bool:
    """Return whether the board has this file with these bytes."""
    return do(link, f"looking for {path}", "checksum", path) == (len(data), zlib.crc32(data))


def remove_part(link: Link, path: str) -> None:
    """Removes what an earlier try, that broke, has left of a file."""
    do(link, "removing the rest of an earlier try", "remove", path + ".part")


def copy_files(link: Link, files: dict[str, bytes], tell: Tell) -> None:
    """Writes files under other names, checks what is there, and only then gives all their names: what
    breaks before leaves the files that were there, and no mixture."""
    for path, data in files.items():
        _write_part(link, data, path, tell)
    do(link, "renaming the files", "replace_all", list(files))


def _write_part(link, data, path, tell):
    part = path + ".part"
    do(link, f"creating {path}", "begin", part)
    link.put(f"copying {path}", data, lambda sent: tell(path, sent, len(data)))
    do(link, f"closing {path}", "end")
    if not is_there(link, part, data):
        do(link, "removing the bad copy", "remove", part)
        raise fail(ACCESS_FAILED, f"the copy of {path} differs from the file", link.name,
                   remedy="try again; if it happens again, its flash is worn out")
