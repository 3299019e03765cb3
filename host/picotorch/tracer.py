"""Count the ticks of each instruction of a method, in the caller's memory.

    tracer = EventTracer(bytearray(EventTracer.nbytes(meta)))   # set-up
    method.load(program, "forward", event_tracer=tracer)
    method.execute()
    tracer.ticks(3), tracer.calls(3)                            # of instruction 3

A tick is one of the port's time.ticks_cpu(): a processor cycle on most boards, an instruction on
emulated ones, a nanosecond on the twin. The time of the measurement itself is measured at load and
subtracted.
"""

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    INVALID_TYPE,
    NOT_SUPPORTED,
    check_index,
    fail,
    need,
)
from .memory import buffer_size
from .method_meta import MethodMeta

_BYTES = 66  # "B"
_UINT32 = 28  # ScalarType


class EventTracer:
    """Trace one method at a time.

    `buffer`: nbytes(meta) bytes for the events: first the event of the loop, then one for each
    instruction, in the order of the program.

    Raises InvalidArgument for a read-only or unaligned buffer, InvalidType if it is not one of bytes.
    """

    def __init__(self, buffer):
        buffer_size(buffer, "event tracer")
        typecode, is_writable, is_aligned = _picotorch.buffer(buffer)
        if not (is_writable and is_aligned):
            raise fail(INVALID_ARGUMENT, "is read-only, or not aligned to 8 bytes; give a bytearray",
                       "event tracer")
        if typecode != _BYTES:
            raise fail(INVALID_TYPE, "is not a memory of bytes; give a bytearray", "event tracer")
        self.buffer = buffer
        self._words = memoryview(bytearray(4))  # of an event: low and high half of its ticks, calls
        self._instructions = 0

    @staticmethod
    def nbytes(meta):
        """Return the number of bytes for the events of a method."""
        need(meta, MethodMeta, "meta")
        return (meta.num_instructions() + 1) * _picotorch.EVENT_BYTES

    def __len__(self):
        """Return the number of instructions of the method; 0 before it is loaded."""
        return self._instructions

    def attach(self, n_instructions):
        """Set the number of instructions of the measured method; for Method.load."""
        self._instructions = n_instructions

    def reset(self):
        """Reset all counts to zero."""
        buffer = self.buffer
        for i in range(len(buffer)):
            buffer[i] = 0

    def calls(self, instruction):
        """Return the number of runs of an instruction, failed runs included."""
        return self._read(self._event(instruction))[2]

    def ticks(self, instruction):
        """Return the ticks of an instruction in all its calls, with the executor's loop around it."""
        event = self._event(instruction)
        return self._sum(event, event + 1)

    def executions(self):
        """Return how many executions reached the end of the program or failed."""
        return self._read(0)[2]

    def total(self):
        """Return the ticks of all executions and steps: the instructions and the end of the loop."""
        return self._sum(0, self._instructions + 1)

    def _event(self, instruction):
        check_index(instruction, self._instructions, "instruction")
        return instruction + 1

    def _read(self, event):
        self._words = _picotorch.view(self._words, self.buffer, event * _picotorch.EVENT_BYTES,
                                      _picotorch.EVENT_BYTES, _UINT32)
        return self._words

    def _sum(self, first, end):
        total = 0
        try:
            for event in range(first, end):
                words = self._read(event)
                total += words[0]
                if words[1]:  # a shift allocates
                    total += words[1] << 32
        except MemoryError:
            raise fail(NOT_SUPPORTED, "ticks of more than 30 bits while the heap is locked; unlock it",
                       "event tracer") from None
        return total

    def __repr__(self):
        return "<EventTracer of %d instructions: %d executions>" % (
            self._instructions, self.executions())
