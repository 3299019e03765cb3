"""Allocate memories that start at a multiple of 16 bytes, as a linker places a board's."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ALIGNMENT = 16


def aligned(size: int) -> memoryview:
    """Allocate `size` zero bytes."""
    storage = np.zeros(size + ALIGNMENT, np.uint8)
    start = -storage.ctypes.data % ALIGNMENT
    return storage[start : start + size].data


def aligned_copy(data: "ReadableBuffer") -> memoryview:
    """Return an aligned copy of the bytes of a buffer."""
    source = memoryview(data).cast("B")
    copy = aligned(source.nbytes)
    copy[:] = source
    return copy
