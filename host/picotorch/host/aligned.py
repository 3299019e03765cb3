"""Memories that start at a multiple of 16 bytes, as a linker places a board's."""

import numpy as np

ALIGNMENT = 16


def aligned(size: int) -> memoryview:
    """`size` zero bytes."""
    storage = np.zeros(size + ALIGNMENT, np.uint8)
    start = -storage.ctypes.data % ALIGNMENT
    return storage[start : start + size].data


def aligned_copy(data) -> memoryview:
    """The bytes of a buffer."""
    source = memoryview(data).cast("B")
    copy = aligned(source.nbytes)
    copy[:] = source
    return copy
