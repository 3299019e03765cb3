"""Begin the other scripts of this folder: tests/support/targets.py puts this file before them.

The scripts run on a board and under CPython and print the same lines on both. The job's sections are in
`sections`.
"""

import struct

import _board
import job
import picotorch
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
    Tensor,
    ValueList,
    errors,
    from_blob,
    schema,
)

try:
    from gc import collect, mem_alloc

    from micropython import heap_lock, heap_unlock
except ImportError:

    def mem_alloc():
        return 0

    def heap_lock():
        pass

    collect = heap_unlock = heap_lock

sections = job.sections(_board.job())
GUARD = b"\xA5" * 12
GUARD_BYTES = 16  # bytes of the pattern, and of the guard before it
_taken = {}
_guards = {}  # by name of the memory: the position of its last guard
_at_zero = bytes(_board.address_zero())


def take(name, size, shift=0):
    """Return the next `size` bytes of a board's memory, `shift` bytes behind a multiple of 16, with
    guard bytes behind them if there is room."""
    start = _taken.get(name, 0) + shift
    end = start + size
    memory = _board.memory(name)
    assert end <= len(memory), "the board's memory is too small"
    _taken[name] = (end + 15) & -16
    if end + GUARD_BYTES <= len(memory):
        struct.pack_into("<12sI", memory, end, GUARD, 1 + _guards.get(name, -1))
        _guards[name] = end
        _taken[name] = (end + GUARD_BYTES + 15) & -16
    return memory[start:end]


def take_share(name, count):
    """Return as much of a board's memory as each of `count` users can get."""
    return take(name, len(_board.memory(name)) // count - GUARD_BYTES & -16)


def check_guards(name):
    at = _guards.get(name, -1)
    while at >= 0:
        pattern, before = struct.unpack_from("<12sI", _board.memory(name), at)
        assert pattern == GUARD, "guard bytes in memory %s were written" % name
        at = before - 1


def check_surroundings():
    """Assert that nothing was written outside the allocated memories, or to the target of a null
    pointer. Every script ends with this check."""
    for name in _guards:
        check_guards(name)
    assert bytes(_board.address_zero()) == _at_zero, "the bytes at address 0 were written"


def planned_arena(i):
    """Return the name of the board's memory that planned buffer `i` is in."""
    name = "planned%d" % i
    return name if name in _board.memories() else "planned"


def give_back(name):
    """Let take() begin at the start of a memory again."""
    check_guards(name)
    _guards[name] = -1
    _taken[name] = 0


def unlocked(function):
    """Call function(), and return the Error that it raised, or None."""
    try:
        function()
    except Error as error:
        return error
    return None


def locked(function):
    """Call function() with the heap locked, and return the Error that it raised, or None. An
    allocation, and any other exception, ends the script."""
    caught = None
    collect()
    before = mem_alloc()
    heap_lock()
    try:
        function()
    except Error as error:
        caught = error
    finally:
        heap_unlock()
    allocated = mem_alloc() - before
    assert allocated == 0, "%d bytes of heap were allocated" % allocated
    return caught
