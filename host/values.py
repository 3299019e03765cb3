"""The values of a method as Python sees them: numbers, lists, and where tensors lie."""

import struct

from picotorch import Program, TensorInfo, schema
from picotorch.method_meta import TAG_NAMES
from picotorch.plan import evalue

TENSOR = schema.KERNEL_TYPES_TENSOR
_NUMBERS = {schema.KERNEL_TYPES_INT: (schema.INT_INT_VAL, "<q"),
            schema.KERNEL_TYPES_DOUBLE: (schema.DOUBLE_DOUBLE_VAL, "<d"),
            schema.KERNEL_TYPES_BOOL: (schema.BOOL_BOOL_VAL, "<?")}
_LISTS = {schema.KERNEL_TYPES_DOUBLE_LIST: (schema.DOUBLE_LIST_ITEMS, "<d"),
          schema.KERNEL_TYPES_BOOL_LIST: (schema.BOOL_LIST_ITEMS, "<?")}
_MOST_ITEMS = 256  # of a list that are shown: many instructions may name one long list
_TENSOR_LISTS = (schema.KERNEL_TYPES_TENSOR_LIST, schema.KERNEL_TYPES_OPTIONAL_TENSOR_LIST)


class Values:
    """The values of the method whose execution plan lies at `plan`.

    Raises InvalidProgram or ValueError where the file leads outside.
    """

    def __init__(self, program: Program, plan: int):
        self.program = program
        self.written: set[int] = set()  # those whose numbers are not the program's, shown by name
        self.reader = program.reader
        self.vector = self.reader.table(plan, schema.EXECUTION_PLAN_VALUES)

    def __len__(self):
        return self.reader.length(self.vector)

    def kind(self, index: int) -> int:
        """KernelTypes number."""
        return self.reader.u8(evalue(self.reader, self.vector, index), schema.EVALUE_VAL_TYPE)

    def _table(self, index):
        return self.reader.table(evalue(self.reader, self.vector, index), schema.EVALUE_VAL)

    def tensor(self, index: int) -> TensorInfo:
        return TensorInfo(self.program, self._table(index))

    def number(self, index: int):
        """The int, float or bool; None for one that is empty or of another kind."""
        layout = _NUMBERS.get(self.kind(index))
        if layout is None:
            return None
        position = self.reader.field(self._table(index), layout[0])
        return self._unpack(layout[1], position) if position else _zero(layout[1])

    def is_number(self, index: int) -> bool:
        return self.kind(index) in _NUMBERS

    def is_plain(self, index: int) -> bool:
        """True for a number, a string and None."""
        return self.kind(index) in (*_NUMBERS, schema.KERNEL_TYPES_STRING, schema.KERNEL_TYPES_NULL)

    def plain(self, index: int):
        """The number, string or None."""
        return (self.string(index) if self.kind(index) == schema.KERNEL_TYPES_STRING
                else self.number(index))

    def _unpack(self, layout, position):
        if position + struct.calcsize(layout) > len(self.program.data):
            raise ValueError
        return struct.unpack_from(layout, self.program.data, position)[0]

    def text(self, index: int) -> str:
        """As an argument of an instruction: "%3", "2", "[1, 1]", "None"."""
        if index < 0:
            return "None"
        if index in self.written:
            return f"%{index}"
        kind = self.kind(index)
        if kind == TENSOR:
            return f"%{index}"
        if kind == schema.KERNEL_TYPES_NULL:
            return "None"
        if kind in _NUMBERS:
            return str(self.number(index))
        if kind == schema.KERNEL_TYPES_STRING:
            return repr(self.string(index))
        items = self._items(index, kind)
        if len(items) > _MOST_ITEMS:
            items[_MOST_ITEMS:] = ["..."]
        return "[" + ", ".join(items) + "]"

    def string(self, index: int) -> str:
        """The text of a string."""
        return self.program.string(self.reader.table(self._table(index), schema.STRING_STRING_VAL))

    def _items(self, index, kind):
        reader, table = self.reader, self._table(index)

        def shown(items):
            return range(min(reader.length(items), _MOST_ITEMS + 1))

        if kind == schema.KERNEL_TYPES_INT_LIST:
            items = reader.table(table, schema.INT_LIST_ITEMS)
            indexes = [reader.i64_item(items, i) for i in shown(items)]
            return [self.text(i) if self.is_number(i) else f"%{i}" for i in indexes]
        if kind in _TENSOR_LISTS:
            items = reader.table(table, schema.TENSOR_LIST_ITEMS)
            indexes = [reader.i32_item(items, i) for i in shown(items)]
            return [f"%{i}" if i >= 0 and self.kind(i) == TENSOR else "None" for i in indexes]
        if kind not in _LISTS:
            return [TAG_NAMES.get(kind, "unknown")]
        slot, layout = _LISTS[kind]
        items = reader.table(table, slot)
        step = struct.calcsize(layout)
        return [str(self._unpack(layout, items + 4 + step * i)) for i in shown(items)]

    def tensors(self, index: int) -> list[int]:
        """The tensor itself, or the tensors of a list of them, by their indexes; of others none."""
        if index < 0 or self.kind(index) == TENSOR:
            return [] if index < 0 else [index]
        if self.kind(index) not in _TENSOR_LISTS:
            return []
        items = self.reader.table(self._table(index), schema.TENSOR_LIST_ITEMS)
        found = [self.reader.i32_item(items, i) for i in range(self.reader.length(items))]
        return [i for i in found if i >= 0 and self.kind(i) == TENSOR]

    def place(self, index: int) -> tuple[str, int]:
        """Where a tensor's data lies, and at which byte: ("planned buffer 0", 64),
        ("constant", position in the file), ("external", 0) or ("unplanned", 0)."""
        memory, offset = self.planned(index)
        if memory >= 0:
            return f"planned buffer {memory}", offset
        if self.tensor(index).is_external():
            return "external", 0
        reader, table = self.reader, self._table(index)
        constant = reader.u32(table, schema.TENSOR_DATA_BUFFER_IDX)
        if constant:
            return "constant", self.program.constant(constant, self.tensor(index).nbytes())
        return "unplanned", 0

    def planned(self, index: int) -> tuple[int, int]:
        """Planned buffer of a tensor and the byte in it; (-1, 0) for one that lies elsewhere."""
        reader = self.reader
        allocation = reader.table(self._table(index), schema.TENSOR_ALLOCATION_INFO)
        if not allocation:
            return -1, 0
        return (reader.u32(allocation, schema.ALLOCATION_DETAILS_MEMORY_ID) - 1,
                reader.u32(allocation, schema.ALLOCATION_DETAILS_MEMORY_OFFSET_LOW))


def _zero(layout):
    return struct.unpack(layout, bytes(struct.calcsize(layout)))[0]
