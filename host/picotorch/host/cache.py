"""Cache values that take long to compute and are always the same for the same files.

The folder is $XDG_CACHE_HOME/picotorch, or ~/.cache/picotorch if that is not set.

A value is JSON in a file of its own, behind a line with its hash; the file is named by a hash of all
inputs of the value. The folder may be removed at any time; a damaged file is made again.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from picotorch.errors import Error

from .files import write

MAX_FILES = 200  # files, of up to 300 KB; the oldest go


def folder() -> Path:
    """Return the folder of the files, which may not exist."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "picotorch"


def remembered(what: str, parts: Iterable[bytes], find: Callable[[], Any]) -> Any:
    """Return the value that `find` found for these parts, here or in an earlier call.

    None is not cached. what: the kind of value, a word.
    """
    file = _file_of(what, parts)
    with contextlib.suppress(OSError):
        digest, _, text = file.read_bytes().partition(b"\n")
        if digest == _digest(text):
            return json.loads(text)
    value = find()
    if value is not None:
        with contextlib.suppress(OSError, Error):  # a read-only folder: compute it again
            _keep(file, json.dumps(value).encode())
    return value


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _file_of(what: str, parts: Iterable[bytes]) -> Path:
    found = hashlib.sha256(what.encode())
    for part in parts:
        found.update(hashlib.sha256(part).digest())
    return folder() / f"{found.hexdigest()}.json"


def _keep(file: Path, text: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    files = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[: max(len(files) - MAX_FILES + 1, 0)]:
        path.unlink(missing_ok=True)
    write(file, _digest(text) + b"\n" + text)
