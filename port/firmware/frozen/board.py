"""Give the runner access to a board that boots this firmware with a job.

Arena and planned_arenas() give out memory. count_start() and count_stop(buffer, index) store a count
for each of COUNTERS, in separate parts of the buffer; this firmware counts instructions only.
stack_paint() and stack_used() measure the stack. write_file(name, data) writes a result for the host.
"""

from _board import (
    count_start,
    count_stop,
    memories,
    memory,
    place,
    stack_paint,
    stack_used,
    write_file,
)
from picotorch.errors import MEMORY_ALLOCATION_FAILED, fail

COUNTERS = ("",)  # the prefixes of the counts in the report


class Arena:
    """Hand out parts of a memory of the board, at multiples of 16."""

    def __init__(self, name):
        self.name = name
        self.memory = memory(name)
        self.used = 0

    def take(self, size, subject, index=-1):
        """Return the next bytes. Raises MemoryAllocationFailed."""
        start = (self.used + 15) & -16
        if start + size > len(self.memory):
            raise fail(MEMORY_ALLOCATION_FAILED, "", subject, index, size,
                       max(0, len(self.memory) - start),
                       "the board has no more in arena %s, which is in its memory %s"
                       % (self.name, place(self.name)))
        self.used = start + size
        return self.memory[start : self.used]


def planned_arenas(count):
    """Return the arena of each planned buffer: planned1 for buffer 1, planned2 for buffer 2 ... if the
    board has it, else planned."""
    arenas = [Arena("planned")]
    for i in range(1, count):
        name = "planned%d" % i
        arenas.append(Arena(name) if name in memories() else arenas[0])
    return arenas
