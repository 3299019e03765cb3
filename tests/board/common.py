"""What the other scripts of this folder begin with: tests/host/targets.py puts it before them.

The scripts run on a board and under CPython and print the same lines on both. The job's sections are
in `sections`.
"""

import struct

import _board
import _picotorch
import job
import picotorch
from picotorch import (
    BufferDataLoader,
    Error,
    EventTracer,
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
from picotorch.memory import bytes_at

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
GUARD = b"\xA5" * 16
_taken = {}
_guards = {}  # by name of the memory: the guard bytes behind what was taken
_at_zero = bytes(_board.address_zero())


def take(name, size, shift=0):
    """The next `size` bytes of a board's memory, `shift` bytes behind a multiple of 16, with guard
    bytes behind them if there is room."""
    start = _taken.get(name, 0) + shift
    end = start + size
    memory = _board.memory(name)
    assert end <= len(memory), "the board's memory is too small"
    guard = memory[end : end + len(GUARD)]
    guard[:] = GUARD[: len(guard)]
    _guards.setdefault(name, []).append(guard)
    _taken[name] = (end + len(guard) + 15) & -16
    return memory[start:end]


def take_share(name, count):
    """As much of a board's memory as each of `count` can take."""
    return take(name, len(_board.memory(name)) // count - len(GUARD) & -16)


def check_guards(name):
    for guard in _guards.get(name, ()):
        assert bytes(guard) == GUARD[: len(guard)], "guard bytes in memory %s were written" % name


def check_surroundings():
    """Nothing was written beside the memories that were taken, nor to where a null pointer leads. Every
    script ends with it."""
    for name in _guards:
        check_guards(name)
    assert bytes(_board.address_zero()) == _at_zero, "the bytes at address 0 were written"


def planned_arena(i):
    """Name of the board's memory that planned buffer `i` is in."""
    name = "planned%d" % i
    return name if name in _board.memories() else "planned"


def mark(name):
    """What was taken of a memory so far, for give_back()."""
    return _taken.get(name, 0), len(_guards.get(name, ()))


def give_back(name, to=(0, 0)):
    """Lets take() begin again where a memory was marked, or at its start."""
    check_guards(name)
    taken, guards = to
    _guards[name] = _guards.get(name, [])[:guards]
    _taken[name] = taken


def unlocked(function):
    """Calls function(): the Error that it raised or None."""
    try:
        function()
    except Error as error:
        return error
    return None


def with_heap_locked(function):
    """Calls function(): the Error that it raised or None. A MemoryError ends the script."""
    heap_lock()
    try:
        function()
    except Error as error:
        return error
    finally:
        heap_unlock()
    return None


def locked(function):
    """Calls function() with the heap locked: the Error that it raised or None. Anything allocated,
    and any other exception, ends the script."""
    collect()
    before = mem_alloc()
    caught = with_heap_locked(function)
    allocated = mem_alloc() - before
    assert allocated == 0, "%d bytes of heap were allocated" % allocated
    return caught
