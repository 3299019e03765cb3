"""Read arrays of .npz files; a user's file is unpacked only as far as needed."""

import contextlib
import math
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from picotorch.errors import INVALID_ARGUMENT, Error, fail

from . import files

SPARE = 1 << 20  # bytes beyond the limits, for arrays whose sizes a later check reports
_HEADER = 1 << 10  # and for each array, of what .npy files begin with
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of np.savez and np.savez_compressed
_Members: TypeAlias = dict[str, zipfile.ZipInfo]  # by name
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npz(path: Path, limits: list[int], prefix: str = "in") -> list[np.ndarray]:
    """Return the arrays in0, in1 ... of a file; one of no type (V1) is None.

    limits: the maximum bytes of each; together they have at most SPARE more. Raises AccessFailed,
    InvalidArgument.
    """
    with _opened(path) as (archive, members):
        members = _numbered(members, prefix)
        _check_names(members, path, prefix)
        _check_size(members, sum(limits) + _HEADER * len(limits) + SPARE, path)
        return [_array(archive, members[f"{prefix}{i}"]) for i in range(len(members))]


def read_named_npz(path: Path, limit: int, prefix: str = "in") -> dict[str, np.ndarray]:
    """Read all arrays of a file by name, of `limit` bytes together at most.

    Those without a name are in0, in1 ... Raises AccessFailed, InvalidArgument.
    """
    with _opened(path) as (archive, members):
        members = _numbered(members, prefix)
        _check_size(members, limit, path)
        return {name: _array(archive, member) for name, member in members.items()}


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, _Members]]:
    """Return (archive, members by name). Raises AccessFailed, InvalidArgument."""
    try:
        with files.reading(path) as file, zipfile.ZipFile(file) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if len(members) != len(archive.infolist()):
                raise ValueError
            yield archive, members
    except (Error, MemoryError):
        raise
    except Exception:  # whatever numpy, zipfile and the decompressors raise for other bytes
        raise fail(INVALID_ARGUMENT, "is not an .npz file of arrays", str(path),
                   remedy="write it with numpy.savez") from None


def _numbered(members: _Members, prefix: str) -> _Members:
    """Return the members, with arr_0, arr_1 ... of numpy.savez as prefix0, prefix1 ..."""
    n = sum(re.fullmatch(r"arr_\d+", name) is not None for name in members)
    names = {f"arr_{i}": f"{prefix}{i}" for i in range(n)}
    if not names.keys() <= members.keys() or not members.keys().isdisjoint(names.values()):
        return members
    return {names.get(name, name): member for name, member in members.items()}


def _check_names(members: _Members, path: Path, prefix: str) -> None:
    unknown = sorted(set(members) - {f"{prefix}{i}" for i in range(len(members))})
    if unknown:
        raise fail(INVALID_ARGUMENT, f"has {', '.join(unknown)}", str(path),
                   remedy=f"name the arrays {prefix}0, {prefix}1 ... without a gap")


def _check_size(members: _Members, limit: int, path: Path) -> None:
    """Raise InvalidArgument if a size in the archive's directory is too large.

    No more than this size is unpacked of a member, whatever is packed there.
    """
    unpacked = sum(member.file_size for member in members.values())
    if unpacked > limit:
        raise fail(INVALID_ARGUMENT, f"unpacks to {unpacked}B, {limit}B at most expected", str(path),
                   remedy="give arrays of the expected sizes and dtypes")
    if any(member.compress_type not in _METHODS for member in members.values()):
        raise fail(INVALID_ARGUMENT, "is packed in another way than numpy.savez packs", str(path),
                   remedy="write it with numpy.savez")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return the array of a member. Raises ValueError if its header states another size."""
    with archive.open(member) as file:
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
        if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError
        file.seek(0)
        array = np.lib.format.read_array(file, allow_pickle=False)
    return np.array(None) if dtype.kind == "V" else array


def write_npz(path: Path, arrays: list[Any]) -> None:
    """Write out0, out1 ... Raises AccessFailed."""
    with files.writing(path) as file:
        named: dict[str, Any] = {f"out{i}": storable(array) for i, array in enumerate(arrays)}
        np.savez(file, **named)


def storable(array: Any) -> np.ndarray:
    """Return an array as a file can keep it: None as one of no type."""
    array = np.asarray(array)
    return np.empty(0, "V1") if array.dtype == object else array
