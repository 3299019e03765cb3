"""Write the files of a C project, but keep the user's changes, see c_project.py.

written.sha256, in the library's folder, lists the written files in the format of sha256sum. It
distinguishes a project from any other folder, a file of picotorch's from one of the user's, and an
unchanged file from one that the user changed.
"""

import errno
import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from picotorch.errors import ACCESS_FAILED, fail

from ..host.files import access_failed
from ..host.files import write as write_file

LIST = "written.sha256"
_NAMED = 5  # maximum number of files that an error names


def pack_lines(sources: Iterable[str]) -> str:
    """Return the lines of a pack's description that list sources."""
    return "\n".join(f'        <file category="source" name="{path}"/>' for path in sorted(sources))


def check_folder(folder: Path, library: str, paths: Iterable[str], own: Collection[str]) -> None:
    """Check that files can be written to a folder, before the work on the files starts.

    Raises AccessFailed for a folder that cannot be written, and for one with files that write_files
    would replace although picotorch did not write them.

    library: the path of the library's folder. It must have no file of the user's, since its makefiles
    compile every file there. paths: of files that will be written outside of it. own: see write_files.
    """
    try:
        found = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not found.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(found, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if found == folder and any(_files_in(folder)) and not (folder / library / LIST).is_file():
            raise fail(ACCESS_FAILED, "has files that are not picotorch's", str(folder),
                       remedy="name a new folder")
        _check_users(folder, library, paths, own)
    except OSError as error:
        raise access_failed(error, folder) from None


def _check_users(folder: Path, library: str, paths: Iterable[str], own: Collection[str]) -> None:
    """Raise AccessFailed for files of the user's that picotorch would replace or remove."""
    paths = {*paths, *map(_beside, own)} - {*own}
    found = {path for path in paths if _exists(folder, path)}
    found |= {path.relative_to(folder).as_posix() for path in _files_in(folder / library)}
    found -= _listed(folder, library).keys() | {f"{library}/{LIST}"}
    found |= {path for path in paths | {*own} if (folder / path).is_dir()}
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise fail(ACCESS_FAILED, "has files that picotorch did not write and would replace: "
                   + ", ".join(sorted(found)[:_NAMED]) + more, str(folder),
                   remedy="move them, or name another folder")


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder, at any depth."""
    return (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def _exists(folder: Path, path: str) -> bool:
    """Return True if something is at a path, or if a file is in place of one of its folders."""
    parents = (folder / parent for parent in Path(path).parents)
    return os.path.lexists(folder / path) or any(
        os.path.lexists(parent) and not parent.is_dir() for parent in parents)


def _beside(path: str) -> str:
    return f"{path}.new"


def written_files(folder: Path, library: str) -> set[str]:
    """Return the paths of the files that an earlier call wrote."""
    return {*_listed(folder, library)}


def write_files(folder: Path, library: str, files: dict[str, str],
                own: Collection[str]) -> list[str]:
    """Write texts by their paths in the folder, and remove the other files of an earlier call.

    library: see check_folder. own: files for the user to change. A file that the user changed stays. If
    picotorch's text for it differs from the one that the user changed, the new text is written beside
    it, as PATH.new. Returns the paths of these files, until the user removes PATH.new. Raises
    AccessFailed, see check_folder.
    """
    check_folder(folder, library, [path for path in files if not path.startswith(f"{library}/")], own)
    try:
        before = _listed(folder, library)
        now = {path: {_sum(text.encode())} for path, text in files.items()}
        # First, so that an interrupted call leaves only files of picotorch's
        _list(folder, library, now, before)
        _remove_others(folder, library, {*files, *map(_beside, own)}, before)
        kept = [path for path, text in files.items() if _write(folder, path, text, path in own, before)]
        _list(folder, library, now, {_beside(path): now[path] for path in kept})
        return kept
    except OSError as error:
        raise access_failed(error, error.filename or folder) from None


def _write(folder: Path, path: str, text: str, is_own: bool, before: dict[str, set[str]]) -> bool:
    """Write a file. Return True for a file that is kept although picotorch's text differs.

    A file with the same text is not written, so that make does not compile it again.
    """
    target, beside = folder / path, folder / _beside(path)
    there = target.read_bytes() if target.is_file() else None
    if (is_own and there is not None and there != text.encode()
            and _sum(there) not in before.get(path, ())):
        is_outdated = beside.exists() or before.get(path) != {_sum(text.encode())}
        if is_outdated:
            write_file(beside, text)
        return is_outdated
    if there != text.encode():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, text)
    if is_own:
        beside.unlink(missing_ok=True)
    return False


def _remove_others(folder: Path, library: str, files: set[str],
                   before: dict[str, set[str]]) -> None:
    """Remove files that were written earlier, except the files of this call.

    Models that the user changed stay, too.
    """
    inside = folder.resolve()
    for path in before.keys() - files - {f"{library}/{LIST}"}:
        there = folder / path
        if (there.resolve().is_relative_to(inside) and there.is_file()
                and (path.startswith(f"{library}/") or _sum(there.read_bytes()) in before[path])):
            there.unlink()


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _listed(folder: Path, library: str) -> dict[str, set[str]]:
    """Read the list of a folder: checksums by path, several after an interrupted call."""
    path = folder / library / LIST
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    found: dict[str, set[str]] = {}
    for digest, _, name in (line.partition("  ") for line in lines):
        found.setdefault(name, set()).add(digest)
    return found


def _list(folder: Path, library: str, *lists: dict[str, set[str]]) -> None:
    (folder / library).mkdir(parents=True, exist_ok=True)
    lines = {f"{digest}  {path}\n" for sums in lists for path, digests in sums.items()
             for digest in digests}
    write_file(folder / library / LIST,
               "".join(sorted(lines, key=lambda line: line.split("  ", 1)[::-1])))
