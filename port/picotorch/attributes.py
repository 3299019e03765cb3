"""Parameters and buffers of a loaded method by their fully qualified names."""

import _picotorch

from .errors import NOT_FOUND, fail
from .schema import (
    EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME,
    TENSOR_EXTRA_TENSOR_INFO,
    TENSOR_FIELDS,
)
from .tensor import Tensor
from .values import Values


class Attributes:
    def __init__(self, method):
        self.method = method
        self._values = Values(method)
        self._kept = Tensor()
        self._fields = [0] * len(TENSOR_FIELDS)

    def get(self, name):
        """See Method.get_attribute."""
        index = self._find(name)
        if index < 0:
            raise fail(NOT_FOUND, "no parameter or buffer of this name", name,
                       remedy="MethodMeta.attribute_tensor_meta gives the names that the program keeps")
        tensor = self._kept if _picotorch.heap_locked() else Tensor()
        return self._values.tensor(index, tensor)

    def _find(self, name):
        reader = self.method.program.reader
        values = self._values.table()
        fields = self._fields
        index = reader.read_tensor(values, 0, TENSOR_FIELDS, fields)
        while index >= 0:
            extra = fields[TENSOR_EXTRA_TENSOR_INFO]
            found = reader.table(extra, EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME) if extra else 0
            if found and reader.equals(found, name):
                return index
            index = reader.read_tensor(values, index + 1, TENSOR_FIELDS, fields)
        return -1
