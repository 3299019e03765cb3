"""What the other scripts of this folder begin with: tests/host/targets.py puts it before them.

The scripts run on a board and under CPython and print the same lines on both. The job's sections are
in `sections`.
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
_taken = {}


def take(name, size, shift=0):
    """The next `size` bytes of a board's memory, `shift` bytes behind a multiple of 16."""
    start = _taken.get(name, 0) + shift
    memory = _board.memory(name)
    assert start + size <= len(memory), "the board's memory is too small"
    _taken[name] = (start + size + 15) & -16
    return memory[start : start + size]


def planned_arena(i):
    """Name of the board's memory that planned buffer `i` is in."""
    name = "planned%d" % i
    return name if name in _board.memories() else "planned"


def give_back(name):
    """Lets take() begin at the start of a memory again."""
    _taken[name] = 0


def unlocked(function):
    """Calls function(): the Error that it raised or None."""
    try:
        function()
    except Error as error:
        return error
    return None


def locked(function):
    """Calls function() with the heap locked: the Error that it raised or None. Anything allocated,
    and any other exception, ends the script."""
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
