"""What each instruction of a method takes, counted in memory that was handed over.

    tracer = EventTracer(bytearray(EventTracer.nbytes(meta)))   # set-up
    method.load(program, "forward", event_tracer=tracer)
    method.execute()
    tracer.ticks(3), tracer.calls(3)                            # of instruction 3

A tick is one of the port's time.ticks_cpu(): a processor cycle on most boards, an instruction on
emulated ones, a nanosecond on the twin. What measuring itself takes is measured at load, and taken off.
"""

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    INVALID_TYPE,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    fail,
)
from .memory import check_memory

_EVENT_BYTES = _picotorch.EVENT_BYTES  # u64 ticks, u32 calls, 4 unused
_CALLS = 8  # where the calls stand
_BYTES = ord("B")


class EventTracer:
    """Of one method at a time. `buffer`: nbytes(meta) bytes, which hold the events as they are:
    first that of the loop, then one an instruction, in the order of the program.

    Raises InvalidType, InvalidArgument for what is no memory that can be written.
    """

    def __init__(self, buffer):
        check_memory(buffer, "event tracer")
        if _picotorch.typecode(buffer) != _BYTES:
            raise fail(INVALID_TYPE, "is no memory of bytes", "event tracer")
        self.buffer = buffer
        self._instructions = 0
        self._reader = _picotorch.Reader(buffer)

    @staticmethod
    def nbytes(meta):
        """Bytes for the events of a method."""
        return (meta.num_instructions() + 1) * _EVENT_BYTES

    def __len__(self):
        """Instructions of the method; 0 before it is loaded."""
        return self._instructions

    def attach(self, context, n_instructions, memories):
        """Starts to measure the method that is loaded into the context, from zero; for Method.load.

        memories: number behind the last memory, with none of which the buffer may share a byte. Raises
        MemoryAllocationFailed, InvalidArgument.
        """
        wanted = (n_instructions + 1) * _EVENT_BYTES
        if wanted > len(self._reader):
            raise fail(MEMORY_ALLOCATION_FAILED, "", "event tracer", -1, wanted, len(self._reader),
                       "make it larger")
        if context.overlap(self.buffer, 0, memories):
            raise fail(INVALID_ARGUMENT, "shares bytes with the program or the method's memories",
                       "event tracer", remedy="hand over memory of its own")
        self._instructions = n_instructions
        self.reset()
        context.set_tracer(self.buffer)

    def reset(self):
        """Back to zero."""
        _picotorch.clear(self.buffer)

    def calls(self, instruction):
        """How often an instruction ran, failed runs included."""
        return self._reader.u32_at(self._at(instruction + 1) + _CALLS)

    def ticks(self, instruction):
        """Ticks that an instruction took in all its calls, with the executor's loop around it."""
        return self._ticks(self._at(instruction + 1))

    def executions(self):
        """How often execute ran to the end of the program or to a failure."""
        return self._reader.u32_at(_CALLS)

    def total(self):
        """Ticks of all executions and steps: the sum over the instructions, and what the loop takes
        at its end."""
        total = 0
        try:
            for i in range(self._instructions + 1):
                total += self._ticks(i * _EVENT_BYTES)
        except MemoryError:
            raise _too_large() from None
        return total

    def _at(self, event):
        if not 0 < event <= self._instructions:
            raise fail(INVALID_ARGUMENT, "there is no such", "instruction", event - 1)
        return event * _EVENT_BYTES

    def _ticks(self, at):
        ticks = self._reader.u64_at(at)
        if ticks < _picotorch.SMALL_INT_MAX:
            return ticks
        try:
            return int.from_bytes(self.buffer[at : at + 8], "little")
        except MemoryError:
            raise _too_large() from None

    def __repr__(self):
        return "<EventTracer of %d instructions: %d executions>" % (
            self._instructions, self.executions())


def _too_large():
    return fail(NOT_SUPPORTED, "ticks of more than 30 bits while the heap is locked", "event tracer",
                remedy="unlock it")
