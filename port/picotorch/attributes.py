"""Parameters and buffers of a loaded method by their fully qualified names."""

import _picotorch

from .errors import INVALID_STATE, NOT_FOUND, fail
from .schema import (
    EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME,
    TENSOR_EXTRA_TENSOR_INFO,
    TENSOR_FIELDS,
)
from .signature import Tensors
from .tensor import Tensor


class Attributes(Tensors):
    def __init__(self, method):
        super().__init__(method, "attribute")
        self._kept = Tensor()
        self._fields = [0] * len(TENSOR_FIELDS)

    def get(self, name):
        """See Method.get_attribute."""
        index = self._find(name)
        if not self.values.has_memory(index):
            raise fail(INVALID_STATE, "has no memory", name, remedy="call set_attribute_data_ptr")
        tensor = self._kept if _picotorch.heap_locked() else Tensor()
        return self.values.tensor(index, tensor)

    def set_memory(self, buffer, name):
        """See Method.set_attribute_data_ptr."""
        index = self._find(name)
        self._subject = name
        self.give_memory(buffer, index, -1, "write to what get_attribute gives")

    def _find(self, name):
        index = self._search(name)
        if index < 0:
            raise fail(NOT_FOUND, "no parameter or buffer of this name", name,
                       remedy="MethodMeta.attribute_tensor_meta gives the names that the program keeps")
        return index

    def _search(self, name):
        reader = self.method.program.reader
        values = self.values.table()
        fields = self._fields
        index = reader.read_tensor(values, 0, TENSOR_FIELDS, fields)
        while index >= 0:
            extra = fields[TENSOR_EXTRA_TENSOR_INFO]
            found = reader.table(extra, EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME) if extra else 0
            if found and reader.equals(found, name):
                return index
            index = reader.read_tensor(values, index + 1, TENSOR_FIELDS, fields)
        return -1
