"""Run a command that can change files in one folder only.

    python -I sandbox.py FOLDER COMMAND ...

Landlock, in Linux since 5.13, denies the command and its children all changes of files elsewhere:
writes, new names, removals. Newer kernels also deny TCP connections (6.7) and signals to other
processes (6.12). On x86-64 and AArch64 a seccomp filter denies the system calls of _DENIED: sockets of
all kinds, changes of the owner, mode, times and attributes of files, other processes and their memory,
shared memory, message queues and namespaces. The command reads what its user may read. Without Landlock
the command does not start. Without seccomp it starts, and gaps() lists what is not denied.

The standard library is enough for this file, and it starts no thread, since a thread would not be
confined. Source: Linux, Documentation/userspace-api/landlock.rst and seccomp_filter.rst,
include/uapi/linux/landlock.h, seccomp.h and filter.h, arch/x86/entry/syscalls/syscall_64.tbl and
scripts/syscall.tbl.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import Any, TypeAlias

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on all machines
_VERSION = 1  # flag of the first: which version there is
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38  # of prctl

_WRITE_FILE = 1 << 1
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15  # of version 2, 3, 5
_TCP = 3  # bind, connect: of version 4
_SCOPES = 3  # abstract Unix sockets, signals: of version 6


_SECCOMP, _FILTER = 22, 2  # of prctl
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000  # what a filter returns
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in what a filter reads

_UNKNOWN = 463  # the first system call without an entry here; x32's are above, too
_NAMESPACES = 0x7E020000  # flags of clone
_TERMINAL = 0x5400  # ioctls of files, pipes and terminals; ioctls of file systems set flags of files
_TERMINAL_INPUT, _TERMINAL_LINUX = 0x5412, 0x541C  # of these, what types for the user

# System calls: their numbers on x86-64 and AArch64, or None
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_CLONE, _CLONE3, _IOCTL = (56, 220), (435, 435), (16, 29)
_LIMITS, _TIMES = (302, 261), (280, 88)  # prlimit64, utimensat
_DENIED = {
    # Sockets: Unix ones by path, UDP, netlink, and all others
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200),
    "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206),
    "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # io_uring makes system calls that no filter sees
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # Attributes, mode, owner and times of files
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "chmod": (90, None), "fchmod": (91, 52),
    "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None), "lchown": (94, None),
    "fchown": (93, 55), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None),
    # Other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "kcmp": (312, 272),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "sched_setaffinity": (203, 122),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # Memory, queues and keys that processes of the user share
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "semctl": (66, 191), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Files by handle, namespaces and mounts, which Landlock need not see as paths
    "open_by_handle_at": (304, 265), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442),
    # The kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip


_Instruction: TypeAlias = tuple[int, int, int, int]  # operation, jumps if true and if not, operand


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """Return the version of Landlock on this computer, 0 without Landlock."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def command(folder: str, words: list[str]) -> list[str]:
    """Return the command that runs another one, which can change files only in `folder`."""
    return [sys.executable, "-I", os.path.abspath(__file__), folder, *words]


def _call(number: int, *arguments: Any) -> int:
    """Return the result of a system call. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def denied() -> dict[str, int]:
    """Return {name: number} of the system calls that this computer's filter denies.

    Returns {} without a filter: on another machine than x86-64 or AArch64, with a Python of 32 bits, or
    without seccomp.
    """
    column, _ = _machine()
    return {} if column is None or not _has_filters() else {
        name: number for name, numbers in _DENIED.items() if (number := numbers[column]) is not None}


def _has_filters() -> bool:
    """Return whether the kernel has seccomp filters: if so, it tries to read one at address 0."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_SECCOMP, ctypes.c_ulong(_FILTER), None)
                and ctypes.get_errno() == errno.EFAULT)


def gaps() -> list[str]:
    """List what a confined command can still do that a newer kernel or a seccomp filter would deny.

    Returns [] without Landlock, since no command is confined then.
    """
    landlock, has_filter = version(), bool(denied())
    found = {
        "reach Unix sockets by path, UDP and netlink": not has_filter,
        "connect to TCP ports": not has_filter and landlock < 4,
        "change attributes, mode, owner and times of your files": not has_filter,
        "use the memory of your other processes and what they share": not has_filter,
        "signal your other processes": landlock < 6,
        "empty your files": landlock < 3,
    }
    return [gap for gap, is_open in found.items() if landlock and is_open]


def _machine() -> tuple[int, int] | tuple[None, None]:
    """Return the column of system call numbers and the filter's architecture; None if unknown."""
    is_wide = ctypes.sizeof(ctypes.c_void_p) == 8
    return _MACHINES.get(platform.machine(), (None, None)) if is_wide else (None, None)


def _filter() -> list[_Instruction]:
    """Return the instructions of the filter. A jump names how many to skip if true, and if false."""
    column, architecture = _machine()
    assert column is not None and architecture is not None  # denied() has calls for these alone
    refuse = [(_RETURN, 0, 0, _ERROR | errno.EPERM)]
    no_such_call = [(_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    allow = [(_RETURN, 0, 0, _ALLOW)]

    def load(offset: int) -> list[_Instruction]:
        return [(_LOAD, 0, 0, offset)]

    def argument(index: int, half: int = 0) -> list[_Instruction]:
        return load(_ARGUMENTS + 8 * index + 4 * half)  # 0: its lower half

    def of_call(numbers: tuple[int, int], instructions: list[_Instruction]) -> list[_Instruction]:
        return [(_EQUAL, 0, len(instructions), numbers[column]), *instructions]

    found = [*load(_ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL),
             *load(_NUMBER), (_AT_LEAST, 0, 1, _UNKNOWN), *no_such_call]
    for number in denied().values():
        found += [(_EQUAL, 0, 1, number), *refuse]
    found += of_call(_CLONE3, no_such_call)  # glibc calls clone then, whose flags are an argument
    found += of_call(_CLONE, [*argument(0), (_ANY_BIT, 0, 1, _NAMESPACES), *refuse, *allow])
    found += of_call(_IOCTL, [*argument(1), (_EQUAL, 3, 0, _TERMINAL_INPUT),
                              (_EQUAL, 2, 0, _TERMINAL_LINUX), (_AND, 0, 0, 0xFFFFFF00),
                              (_EQUAL, 1, 0, _TERMINAL), *refuse, *allow])
    found += of_call(_LIMITS, [*argument(0), (_EQUAL, 1, 0, 0), *refuse, *allow])  # of itself only
    found += of_call(_TIMES, [*argument(2), (_EQUAL, 0, 2, 0), *argument(2, 1), (_EQUAL, 1, 0, 0),
                              *refuse, *allow])  # no time but the present, as touch has it
    return [*found, *allow]


def _deny_calls(libc: ctypes.CDLL) -> None:
    """Deny this thread system calls, for good. Raises OSError if that fails."""
    if not denied():
        return
    found = _filter()
    instructions = b"".join(struct.pack("=HBBI", *one) for one in found)
    program = _Program(len(found), instructions)
    if libc.prctl(_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "no seccomp filter")


def _writes(found: int) -> int:
    """Return all rights to change files in a version of Landlock."""
    return (_WRITE_FILE | _REMOVE_AND_MAKE | (_REFER if found >= 2 else 0)
            | (_TRUNCATE if found >= 3 else 0) | (_IOCTL_DEV if found >= 5 else 0))


def _allow(ruleset: int, path: str, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(rights, folder)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(folder)


def restrict(folder: str) -> None:
    """Confine this thread and its later children. Raises OSError if that fails."""
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
        _deny_calls(libc)
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
