"""The outputs of a method: what get_output gives, and the memory of those that are not planned."""

from .errors import (
    INVALID_ARGUMENT,
    INVALID_STATE,
    OUT_OF_RESOURCES,
    bad_program,
    fail,
)
from .schema import EXECUTION_PLAN_OUTPUTS
from .signature import Signature
from .values import Kept


class Outputs(Signature):
    """`count` outputs can be held at once; their objects are made here."""

    def __init__(self, method, count):
        super().__init__(method, EXECUTION_PLAN_OUTPUTS, "output")
        self._kept = [Kept() for _ in range(count)]

    def get(self, index):
        """See Method.get_output."""
        value = self.value(index)
        if index >= len(self._kept):
            raise fail(OUT_OF_RESOURCES, "is one more than Method was made for", "output", index,
                       remedy="give Method a larger max_outputs")
        if self.is_tensor(value) and not self.values.has_memory(value):
            raise fail(INVALID_STATE, "has no memory", "output", index,
                       remedy="call set_output_data_ptr")
        try:
            return self.values.get(value, self._kept[index])
        except ValueError:
            raise bad_program("lies outside the file", "output", index) from None

    def set_memory(self, buffer, index):
        """See Method.set_output_data_ptr."""
        value = self.value(index)
        if not self.is_tensor(value):
            raise fail(INVALID_ARGUMENT, "is no tensor", "output", index)
        self.give_memory(buffer, value, index, "read it with get_output")
