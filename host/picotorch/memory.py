"""Define the memories that a method works in.

The caller provides all of them; none grows.

    MemoryManager(MemoryAllocator(bytearray(4096)), HierarchicalAllocator([bytearray(64000)]))
"""

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    INVALID_STATE,
    INVALID_TYPE,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    check_index,
    fail,
    need,
)

BYTE = 0  # ScalarType
ALIGNMENT = 8  # bytes, of every memory handed over
LIMIT = 1 << 27  # bytes that a reference reaches
BUSY = LIMIT + 1  # value of `held` while a method is being loaded or unloaded


def buffer_size(buffer, subject, index=-1):
    """Return the bytes of a buffer.

    Raises InvalidType for anything but a buffer of contiguous bytes, NotSupported for one of 1 GiB or
    more.
    """
    size = _picotorch.nbytes(buffer)
    if size < 0:
        raise fail(INVALID_TYPE, "is not a buffer of contiguous bytes; "
                   "give a bytearray, an array or a memoryview", subject, index)
    if size >= _picotorch.SMALL_INT_MAX:  # the maximum that nbytes returns
        raise fail(NOT_SUPPORTED, "has 1 GiB or more", subject, index)
    return size


def bytes_at(buffer, offset, size, view=None, writable=True):
    """Return a memoryview of bytes of a buffer: `view`, pointed at them, or a new one.

    A new one is made if `view` is None, and always under CPython. Raises ValueError for bytes outside.
    """
    if view is None:
        view = memoryview(bytearray(1))
    return _picotorch.view(view, buffer, offset, size, BYTE, writable)


class MemoryAllocator:
    """Allocate the bytes of one buffer in order; `name` is its name in errors.

    used: allocated bytes; held: the bytes up to the end of the last loaded method, BUSY while one is
    being loaded or unloaded.
    """

    def __init__(self, buffer, name="method pool"):
        self.buffer = buffer
        self.name = name
        self.size = buffer_size(buffer, name)
        self.used = 0
        self.held = 0

    def check_size(self):
        """Raise InvalidArgument if the buffer now has fewer bytes than it had at first."""
        if _picotorch.nbytes(self.buffer) < self.size:
            raise fail(INVALID_ARGUMENT, "has become smaller; make a new MemoryAllocator",
                       self.name, -1, self.size,
                       buffer_size(self.buffer, self.name))

    @property
    def free(self):
        """Return the free bytes."""
        return self.size - self.used

    def allocate(self, size, alignment=ALIGNMENT):
        """Return the offset of `size` bytes at a multiple of `alignment`.

        Raises MemoryAllocationFailed, InvalidArgument.
        """
        need(size, int, "size")
        need(alignment, int, "alignment")
        if size < 0 or alignment <= 0 or alignment & (alignment - 1):
            raise fail(INVALID_ARGUMENT, "is negative, or its alignment is not a power of two; "
                       "give others", "size of an allocation")
        start = (self.used + alignment - 1) & -alignment
        if start + size > self.size:
            available = self.size - start
            raise fail(MEMORY_ALLOCATION_FAILED, "; make it larger", self.name, -1, size,
                       available if available > 0 else 0)
        self.used = start + size
        return start

    def reset(self, used=0):
        """Free all bytes after the first `used` ones.

        Raises InvalidState if a loaded method uses them, InvalidArgument if fewer bytes are used.
        """
        need(used, int, "used")
        if used < self.held:
            raise fail(INVALID_STATE, "holds a method; unload it first", self.name)
        if used < 0 or used > self.used:
            raise fail(INVALID_ARGUMENT, "has fewer bytes in use; "
                       "reset to at most `used`", self.name, -1, used, self.used)
        self.used = used

    def __repr__(self):
        return "<MemoryAllocator %s: %dB used of %dB>" % (self.name, self.used, self.size)


class HierarchicalAllocator:
    """The planned buffers, in the order of MethodMeta.memory_planned_buffer_size.

    Raises InvalidType for an item that is not a buffer.
    """

    def __init__(self, buffers):
        need(buffers, list, "buffers")
        self.buffers = buffers
        for i in range(len(buffers)):
            self.size(i)

    def __len__(self):
        return len(self.buffers)

    def size(self, index):
        """Return the bytes of planned buffer `index`. Raises InvalidArgument."""
        check_index(index, len(self), "planned buffer")
        return buffer_size(self.buffers[index], "planned buffer", index)


class MemoryManager:
    """The memories of a method: its pool, its planned buffers, and temp memory for its kernels."""

    def __init__(self, method_allocator, planned_memory=None, temp_allocator=None):
        if planned_memory is None:
            planned_memory = HierarchicalAllocator([])
        need(method_allocator, MemoryAllocator, "method_allocator")
        need(planned_memory, HierarchicalAllocator, "planned_memory")
        if temp_allocator is not None:
            need(temp_allocator, MemoryAllocator, "temp_allocator")
        self.method_allocator = method_allocator
        self.planned_memory = planned_memory
        self.temp_allocator = temp_allocator
