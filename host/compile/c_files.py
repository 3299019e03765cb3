"""The files of a C project in their folder: what the user changed is kept, see c_project.py.

picotorch/written.sha256 lists what was written, as sha256sum has it. It tells a project from any other
folder, and a file as it was written from one that the user changed.
"""

import errno
import hashlib
import os
from collections.abc import Collection
from pathlib import Path

from picotorch.errors import ACCESS_FAILED, fail

from ..files import access_failed
from ..files import write as write_file

LIBRARY = "picotorch"
LIST = f"{LIBRARY}/written.sha256"


def check_folder(folder: Path) -> None:
    """Raise AccessFailed for a folder that cannot be written, or with files that are not picotorch's.
    Call it before the work on the files starts."""
    try:
        found = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not found.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(found, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if found == folder and any(folder.iterdir()) and not (folder / LIST).is_file():
            raise fail(ACCESS_FAILED, "has files that are not picotorch's", str(folder),
                       remedy="name a new folder")
    except OSError as error:
        raise access_failed(error, folder) from None


def write_files(folder: Path, files: dict[str, str], own: Collection[str]) -> list[str]:
    """Write texts by their paths in the folder, and remove what an earlier call wrote besides.

    own: files for the user to change. One that the user changed stays, and where the text for it is no
    longer the one that the user changed, it is written beside it, as PATH.new. Return the paths of
    these, until the user removes PATH.new. Raises AccessFailed.
    """
    check_folder(folder)
    try:
        before = _listed(folder)
        now = {path: _sum(text.encode()) for path, text in files.items()}
        _list(folder, before or now)  # so that the folder is picotorch's if this is interrupted
        _remove_others(folder, files, before)
        kept = [path for path, text in files.items() if _write(folder, path, text, path in own, before)]
        _list(folder, now)
        return kept
    except OSError as error:
        raise access_failed(error, error.filename or folder) from None


def _write(folder, path, text, is_own, before):
    """True for a file that is kept although its text is another. A file with this text stays as it is,
    so that make does not compile it again."""
    target, beside = folder / path, folder / f"{path}.new"
    there = target.read_bytes() if target.is_file() else None
    if is_own and there not in (None, text.encode()) and _sum(there) != before.get(path):
        is_outdated = beside.exists() or before.get(path) != _sum(text.encode())
        if is_outdated:
            write_file(beside, text)
        return is_outdated
    if there != text.encode():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, text)
    if is_own:
        beside.unlink(missing_ok=True)
    return False


def _remove_others(folder, files, before):
    """Remove what is in the library's folder, and files of models, but those that are written now."""
    inside = folder.resolve()
    found = {path.relative_to(folder).as_posix() for path in (folder / LIBRARY).rglob("*")
             if path.is_file()}
    found |= {path for path in before if (folder / path).resolve().is_relative_to(inside)}
    for path in found - files.keys() - {LIST}:
        (folder / path).unlink(missing_ok=True)


def _sum(data):
    return hashlib.sha256(data).hexdigest()


def _listed(folder):
    """Read the checksums in the list of a folder, by path."""
    path = folder / LIST
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _list(folder, sums):
    (folder / LIBRARY).mkdir(parents=True, exist_ok=True)
    write_file(folder / LIST, "".join(f"{digest}  {path}\n" for path, digest in sorted(sums.items())))
