"""The outputs of a method: what get_output gives, and the memory of those that are not planned."""

from .errors import (
    INVALID_ARGUMENT,
    INVALID_STATE,
    OUT_OF_RESOURCES,
    bad_program,
    fail,
)
from .memory import check_memory
from .schema import EXECUTION_PLAN_OUTPUTS
from .signature import Signature, check_apart
from .values import Kept, ValueList


class Output(Kept):
    """The objects for one output."""

    def __init__(self):
        super().__init__()
        self.list = ValueList()


class Outputs(Signature):
    """`count` outputs can be held at once; their objects are made here."""

    def __init__(self, method, count):
        super().__init__(method, EXECUTION_PLAN_OUTPUTS, "output")
        self._kept = [Output() for _ in range(count)]

    def get(self, index):
        """See Method.get_output."""
        value = self.value(index)
        if index >= len(self._kept):
            raise fail(OUT_OF_RESOURCES, "is one more than Method was made for", "output", index,
                       remedy="give Method a larger max_outputs")
        if self.is_tensor(value) and not self.has_memory(value):
            raise fail(INVALID_STATE, "has no memory", "output", index,
                       remedy="call set_output_data_ptr")
        try:
            return self.values.get(value, self._kept[index])
        except ValueError:
            raise bad_program("lies outside the file", "output", index) from None

    def set_memory(self, buffer, index):
        """See Method.set_output_data_ptr."""
        context = self.method.context
        value = self.value(index)
        if not self.is_tensor(value):
            raise fail(INVALID_ARGUMENT, "is no tensor", "output", index)
        self.check_dtype(buffer, value, index)
        nbytes = self.bound(value)
        given = self.nbytes(buffer, index)
        if given < nbytes:
            raise fail(INVALID_ARGUMENT, "", "output", index, nbytes, given,
                       "give as many bytes as the program's sizes say")
        if nbytes == 0:
            return
        memory = self.data(value) >> 25
        if memory < self.method.first_external():
            raise fail(INVALID_STATE, "has planned memory", "output", index,
                       remedy="read it with get_output")
        check_memory(buffer, "output", index)
        check_apart(context.overlap(buffer, self.method.first_external()), "output", index)
        context.set_memory(memory, buffer)
