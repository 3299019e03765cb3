"""Read the user's files whole, and write them whole or not at all.

A file gets its name when it is complete: an error, ctrl-C or a full disk leaves an older file of that
name unchanged.
"""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from picotorch.errors import ACCESS_FAILED, NOT_SUPPORTED, Error, fail

LARGEST_FILE = 1 << 31  # bytes; TorchScript may be larger than the 128 MiB of a program

_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file",
    errno.EACCES: "check the rights of the file and of its folder",
    errno.EPERM: "check the rights of the file and of its folder",
    errno.EROFS: "name a file in a folder that you can write to",
    errno.ENOSPC: "free some space, or name a file on another disk",
    errno.EDQUOT: "free some space, or name a file on another disk",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), or name a file on another disk",
}
_KINDS = ((stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"),
          (stat.S_ISBLK, "a device"))


def access_failed(error: OSError, path: Path | str) -> Error:
    """Return the error to raise when the system refuses `path`."""
    return fail(ACCESS_FAILED, error.strerror or str(error), str(path),
                remedy=_REMEDIES.get(error.errno or 0, "check the path"))


def name(error: Error, path: Path | str) -> None:
    """Begin the message of an error with the file that it is about."""
    if str(path) not in error.message:
        error.text = f"{path}: {error.message}"


@contextlib.contextmanager
def about(path: Path | str) -> Iterator[None]:
    """Add the name of a file to the errors of the block."""
    try:
        yield
    except Error as error:
        name(error, path)
        raise


@contextlib.contextmanager
def _named(path: Path | str) -> Iterator[None]:
    """Turn an OSError into AccessFailed."""
    try:
        yield
    except OSError as error:
        raise access_failed(error, path) from None


def _check_kind(path: Path | str, remedy: str) -> None:
    """Raise NotSupported for a FIFO, a device or a socket, OSError for a folder or a missing file."""
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:  # a NUL
        raise OSError(str(error)) from None
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            raise fail(NOT_SUPPORTED, f"is {kind}, not a file", str(path), remedy=remedy)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


# ---- reading


def check_input(path: Path | str) -> None:
    """Check an input file.

    Raises AccessFailed for a missing file or a folder, NotSupported for a FIFO, a device or a socket,
    which may never end or never begin.
    """
    with _named(path):
        _check_kind(path, "copy its content into a file first")


@contextlib.contextmanager
def reading(path: Path | str) -> Iterator[BinaryIO]:
    """Open a file to read. Raises the errors of check_input, and AccessFailed for a failing read."""
    check_input(path)
    with _named(path), open(path, "rb") as file:
        yield file


def read_file(path: Path | str) -> bytes:
    """Return the bytes of a file.

    Raises what reading() raises; NotSupported for a file that is too large for any use.
    """
    with reading(path) as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise fail(NOT_SUPPORTED, f"has more than {LARGEST_FILE} bytes", str(path),
                   remedy="name the program itself")
    return data


# ---- writing


def check_output(path: Path | str, make_folder: bool = False) -> None:
    """Raise AccessFailed or NotSupported if no file of this name can be written.

    Call it before the work on its content starts. It leaves no trace but the folder, with make_folder.
    """
    with _named(path):
        if make_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        target = os.path.realpath(path)
        if os.path.exists(target):
            _check_kind(path, "name a file")
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        os.unlink(_part_of(target))


def _part_of(path: str) -> str:
    """Make an empty file beside a path."""
    handle, part = tempfile.mkstemp(prefix=f".{os.path.basename(path)[:100]}.",
                                    dir=os.path.dirname(path))
    os.close(handle)
    return part


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[BinaryIO]:
    """Open a file that gets the name `path` when the block ends without an error.

    Raises AccessFailed, NotSupported.
    """
    check_output(path)
    target = os.path.realpath(path)
    with _named(path):
        part = _part_of(target)
        try:
            with open(part, "wb") as file:
                yield file
            os.chmod(part, _mode_of(target))
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise


def _mode_of(path: Path | str, new: int = 0o666) -> int:
    """Return the rights of the file that is replaced, or of a new one."""
    if os.path.exists(path):
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return new & ~mask


def write(path: Path | str, data: bytes | str) -> None:
    """Write bytes, or text as UTF-8. Raises what writing() raises."""
    with writing(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def making(folder: Path | str) -> Iterator[Path]:
    """Make a folder that gets the name `folder` when the block ends without an error.

    Raises AccessFailed, also if there is something of this name.
    """
    folder = Path(os.path.abspath(folder))
    with _named(folder):
        if os.path.lexists(folder):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name[:100]}.", dir=folder.parent))
        try:
            yield part
            os.chmod(part, _mode_of(folder, 0o777))
            os.rename(part, folder)
        except BaseException as error:
            shutil.rmtree(part, ignore_errors=True)
            if isinstance(error, Error):
                error.text = error.message.replace(str(part), str(folder))
            raise


def copy(source: Path | str, target: Path | str) -> None:
    """Copy the bytes of a file. Raises what read_file() and writing() raise."""
    write(target, read_file(source))
