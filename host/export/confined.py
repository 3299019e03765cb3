"""Run a command that changes files in one folder only:

    python -I confined.py FOLDER COMMAND ...

Landlock, which Linux has since 5.13, denies it and all that it starts to write, make, rename or remove
anything elsewhere; where the kernel is new enough also TCP connections (6.7) and signals to others
(6.12). It reads what its user may read, and may still change the owner, mode and times of files.

The standard library is enough for this file, and it begins no thread: those would stay as they are.
Source: Linux, Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h.
"""

import ctypes
import os
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on all machines
_VERSION = 1  # flag of the first: which version there is
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38  # of prctl

_WRITE_FILE = 1 << 1
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15  # of version 2, 3, 5
_TCP = 3  # bind, connect: of version 4
_SCOPES = 3  # abstract Unix sockets, signals: of version 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """The version of Landlock that this computer has, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def command(folder: str, words: list[str]) -> list[str]:
    """The command that runs another one, which can change files in folder only."""
    return [sys.executable, "-I", os.path.abspath(__file__), folder, *words]


def _call(number, *arguments):
    """Return the result of a system call. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _writes(found):
    """Return all rights to change files that a version knows."""
    return (_WRITE_FILE | _REMOVE_AND_MAKE | (_REFER if found >= 2 else 0)
            | (_TRUNCATE if found >= 3 else 0) | (_IOCTL_DEV if found >= 5 else 0))


def _allow(ruleset, path, rights):
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(rights, folder)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(folder)


def restrict(folder: str) -> None:
    """Confine this thread, and what it starts from now on. OSError where that cannot be."""
    found = version()
    if not found:
        raise OSError("this computer has no Landlock")
    rules = _Ruleset(_writes(found), _TCP if found >= 4 else 0, _SCOPES if found >= 6 else 0)
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    try:
        _allow(ruleset, folder, _writes(found))
        _allow(ruleset, os.devnull, _writes(found) & (_WRITE_FILE | _TRUNCATE))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))):
            raise OSError(ctypes.get_errno(), "no new privileges")
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def main() -> None:
    folder, *words = sys.argv[1:]
    try:
        restrict(folder)
    except OSError as error:
        sys.exit(f"confined: {error}")
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
