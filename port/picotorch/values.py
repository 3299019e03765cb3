"""The values of a loaded method as Python sees them: tensors, numbers, strings and lists of them."""

import _picotorch

from .errors import (
    INVALID_STATE,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    bad_program,
    fail,
)
from .plan import evalue
from .schema import (
    EVALUE_VAL,
    EVALUE_VAL_TYPE,
    EXECUTION_PLAN_VALUES,
    INT_LIST_ITEMS,
    KERNEL_TYPES_BOOL_LIST,
    KERNEL_TYPES_DOUBLE_LIST,
    KERNEL_TYPES_INT_LIST,
    KERNEL_TYPES_NULL,
    KERNEL_TYPES_OPTIONAL_TENSOR_LIST,
    KERNEL_TYPES_STRING,
    KERNEL_TYPES_TENSOR,
    STRING_STRING_VAL,
)
from .tensor import Tensor

NUMBERS = (2, 3, 4)  # KernelTypes: Int, Bool, Double


class Values:
    """Of one method, which says what is loaded."""

    def __init__(self, method):
        self.method = method
        self.record = [0] * 6  # of the tensor that is read

    def table(self):
        """Position of the program's vector of values."""
        method = self.method
        return method.program.reader.table(method.plan, EXECUTION_PLAN_VALUES)

    def position(self, index):
        """Position of the EValue of value `index`. Raises InvalidProgram."""
        return evalue(self.method.program.reader, self.table(), index)

    def get(self, index, kept):
        """Value `index` as an object; one that needs memory is put into `kept`, a Kept, where it has to
        be. ValueError where the file leads outside, MemoryAllocationFailed for an int of more than 30
        bits while the heap is locked."""
        reader = self.method.program.reader
        found = self.position(index)
        kind = reader.u8(found, EVALUE_VAL_TYPE)
        if kind == KERNEL_TYPES_TENSOR:
            return self.tensor(index, kept.tensor)
        if kind == KERNEL_TYPES_NULL or kind in NUMBERS:
            return self.number(index, kept)
        table = reader.table(found, EVALUE_VAL)
        if kind == KERNEL_TYPES_STRING:
            return reader.string(reader.table(table, STRING_STRING_VAL), kept.text)
        if not KERNEL_TYPES_INT_LIST <= kind <= KERNEL_TYPES_OPTIONAL_TENSOR_LIST:
            raise fail(NOT_SUPPORTED, "is of an unknown type", "value", index)
        return kept.list.point(self, kind, reader.table(table, INT_LIST_ITEMS))

    def tensor(self, index, tensor):
        """Points a Tensor to value `index`. Raises InvalidProgram for what is none."""
        at = self.method.context.find_value(index)
        if at < 0:
            raise bad_program("is no tensor", "value", index)
        tensor.point(self.method.context, at, self.record)
        return tensor

    def has_memory(self, index):
        """False for a tensor outside the planned memory that was given none."""
        context = self.method.context
        at = context.find_value(index)
        data = context.get_ref(at) if at >= 0 else 0
        return data == 0 or context.has_memory(data >> 25)

    def is_none(self, index):
        """True for an optional tensor that is left out: as -1, or as a value that is Null."""
        return index < 0 or self._is_null(self.position(index))

    def _is_null(self, found):
        return self.method.program.reader.u8(found, EVALUE_VAL_TYPE) == KERNEL_TYPES_NULL

    def number(self, index, kept):
        """The int, bool or float that value `index` is now, or None. ValueError for what is none."""
        context = self.method.context
        at = context.find_variable(index)
        try:
            if at >= 0:  # an instruction writes it
                return context.number(at, kept.number)
            found = self.position(index)
            if self._is_null(found):
                return None
            return self.method.program.reader.number(found, kept.number)
        except MemoryError:
            raise fail(MEMORY_ALLOCATION_FAILED, "an int of more than 30 bits", "value",
                       index, remedy="ask for it with the heap unlocked") from None


class Kept:
    """Objects for one value, made at set-up: what a locked heap cannot make."""

    def __init__(self):
        self.tensor = Tensor()
        self.number = _picotorch.new_float()
        self.text = _picotorch.new_string()
        self.list = ValueList(self)


class ValueList:
    """A list among a method's values: len, [i], iteration. An item is read when it is asked for.

    With the heap locked one item can be held at a time: it is put into `kept`.
    """

    def __init__(self, kept):
        self._values = None
        self._load = 0  # of the method, that the items are part of
        self._kind = KERNEL_TYPES_INT_LIST
        self._items = 0
        self._kept = kept

    def point(self, values, kind, items):
        """Shows the list of this kind whose items are at a position of the program."""
        self._values = values
        self._load = values.method.loads
        self._kind = kind
        self._items = items
        return self

    def clear(self):
        """Shows nothing any more."""
        self._values = None

    def __len__(self):
        if self._values is None:
            return 0
        method = self._values.method
        if method.loads != self._load:
            raise fail(INVALID_STATE, "is of another load", "list", remedy="call get_output again")
        return method.program.reader.length(self._items)

    def __getitem__(self, i):
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError
        self._values.method.check_loaded()
        try:
            return self._item(i)
        except ValueError:
            raise bad_program("is no value of this list", "item", i) from None

    def _item(self, i):
        reader = self._values.method.program.reader
        kind = self._kind
        if kind == KERNEL_TYPES_DOUBLE_LIST:
            return reader.double_item(self._items, i, self._kept.number)
        if kind == KERNEL_TYPES_BOOL_LIST:
            return reader.u8_item(self._items, i) != 0
        if kind == KERNEL_TYPES_INT_LIST:
            return self._values.number(reader.i64_item(self._items, i), self._kept)
        index = reader.i32_item(self._items, i)
        if kind == KERNEL_TYPES_OPTIONAL_TENSOR_LIST and self._values.is_none(index):
            return None
        if not _picotorch.heap_locked():
            self._kept.tensor = Tensor()
        if not self._values.has_memory(index):
            raise fail(INVALID_STATE, "has no memory", "item", i, remedy="call set_input for each")
        return self._values.tensor(index, self._kept.tensor)

    def __repr__(self):
        return repr([item for item in self])
