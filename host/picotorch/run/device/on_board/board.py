"""Provide the runner's interface to a board that is connected to the host.

port/firmware/frozen/board.py has the same names. Memory comes from MicroPython's heap, and the counters
are the port's clocks.
"""

import gc
import struct

from link import say
from picotorch.errors import MEMORY_ALLOCATION_FAILED, fail
from picotorch.memory import buffer_size, bytes_at

try:
    from time import ticks_cpu, ticks_diff, ticks_us

    COUNTERS = ("us_", "cpu_")
except ImportError:
    COUNTERS = ()

try:
    from _board import stack_paint, stack_used
except ImportError:  # a firmware without picotorch's parts

    def stack_paint():
        pass

    def stack_used():
        return -1


BLOCK = 256
_us = 0
_cpu = 0


class Arena:
    """Memory for one purpose."""

    def __init__(self, name):
        pass

    def take(self, size, subject, index=-1):
        """Allocate a bytearray of `size` bytes. Raises MemoryAllocationFailed."""
        try:
            return bytearray(size)
        except MemoryError:
            gc.collect()
            raise fail(MEMORY_ALLOCATION_FAILED, "", subject, index, size, gc.mem_free(),
                       "of MicroPython's heap on the board") from None


def planned_arenas(count):
    return [Arena("planned")] * max(count, 1)


if COUNTERS:

    def count_start():
        global _us, _cpu
        _us = ticks_us()
        _cpu = ticks_cpu()

    def count_stop(buffer, index):
        """Return microseconds; put ticks of the processor's counter into the buffer's second half."""
        cpu = ticks_cpu()
        us = ticks_us()
        struct.pack_into("<i", buffer, index, ticks_diff(us, _us))
        struct.pack_into("<i", buffer, len(buffer) // 2 + index, ticks_diff(cpu, _cpu))

else:

    def count_start():
        pass

    def count_stop(buffer, index):
        pass


def ticks_in(us):
    """Return ticks of the processor's counter, and their time of about `us` microseconds.

    (0, 0) without a counter.
    """
    if not COUNTERS:
        return 0, 0
    count_start()
    while ticks_diff(ticks_us(), _us) < us:
        pass
    return ticks_diff(ticks_cpu(), _cpu), ticks_diff(ticks_us(), _us)


def write_file(name, data):
    """Send a file of results to the host."""
    size = buffer_size(data, name)
    say((name, size))
    for start in range(0, size, BLOCK):
        say(bytes(bytes_at(data, start, min(BLOCK, size - start))))
