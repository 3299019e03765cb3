"""The values of a method as Python sees them: numbers, lists, and where tensors lie."""

import functools
import struct
from typing import Any

import _picotorch
from _picotorch_c import ffi, lib

from picotorch.errors import text_of
from picotorch.memory import LIMIT
from picotorch.program import Program
from picotorch.tensor import TensorInfo

from . import program_schema as schema

LEFT_OUT = "left out"
TENSOR = schema.KERNEL_TYPES_TENSOR
_NUMBERS = (schema.KERNEL_TYPES_INT, schema.KERNEL_TYPES_BOOL, schema.KERNEL_TYPES_DOUBLE)
_PLAIN_LISTS = (schema.KERNEL_TYPES_DOUBLE_LIST, schema.KERNEL_TYPES_BOOL_LIST)
_MAX_ITEMS = 256  # of a list that are shown: many instructions may name one long list
_TENSOR_LISTS = (schema.KERNEL_TYPES_TENSOR_LIST, schema.KERNEL_TYPES_OPTIONAL_TENSOR_LIST)
_KIND_NAMES = ("unknown", "None", "Int", "Bool", "Double", "Tensor", "String", "ListInt", "ListDouble",
               "ListBool", "ListTensor", "ListOptionalTensor")


def kind_name(kind: int) -> str:
    """Return the name of a KernelTypes number."""
    return _KIND_NAMES[kind] if kind < len(_KIND_NAMES) else "unknown"


class Values:
    """The values of method number `plan`. Raises InvalidProgram where the file leads outside."""

    def __init__(self, program: Program, plan: int) -> None:
        self.program = program
        self.plan = plan
        self.written: set[int] = set()  # those whose numbers are not the program's, shown by name
        self._library = program.library
        self._known: dict[int, tuple[Any, ...]] = {}  # what was read of a value

    def __len__(self) -> int:
        count: int = self._library.count(self.plan, _picotorch.VALUES)
        return count

    def kind(self, index: int) -> int:
        """KernelTypes number."""
        return self._item(index)[1]

    def _item(self, index: int) -> tuple[int, int, Any, bool]:
        if index not in self._known:
            self._known[index] = self._library.item(self.plan, _picotorch.VALUES, index)
        return self._known[index]

    def tensor(self, index: int) -> TensorInfo:
        return TensorInfo(self._library.tensor(self.plan, _picotorch.VALUES, index))

    def number(self, index: int) -> int | float | None:
        """The int, float or bool; None for one that is empty or of another kind."""
        return self._constant(index) if self.is_number(index) else None

    def _constant(self, index: int) -> Any:
        return self._item(index)[2]

    def is_number(self, index: int) -> bool:
        return self.kind(index) in _NUMBERS

    def is_plain(self, index: int) -> bool:
        """True for a number, a string and None."""
        return self.kind(index) in (*_NUMBERS, schema.KERNEL_TYPES_STRING, schema.KERNEL_TYPES_NULL)

    def plain(self, index: int) -> int | float | str | None:
        """The number, string or None."""
        return (self.string(index) if self.kind(index) == schema.KERNEL_TYPES_STRING
                else self.number(index))

    def text(self, index: int) -> str:
        """Return it as an argument of an instruction: "%3", "2", "[1, 1]", "None"."""
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
        if len(items) > _MAX_ITEMS:
            items[_MAX_ITEMS:] = ["..."]
        return "[" + ", ".join(items) + "]"

    def string(self, index: int) -> str:
        """The text of a string."""
        return text_of(self._constant(index))

    def _entries(self, index: int, maximum: int) -> list[Any]:
        """The first items, `most` at most, of a list: indexes of values, bools, or floats."""
        _, item = self._library.value(self.plan, _picotorch.VALUES, index)
        plan = self._library.plan(self.plan)
        found = [lib.pt_list_entry(plan, item, k) for k in range(min(item.count, maximum))]
        if item.type == schema.KERNEL_TYPES_DOUBLE_LIST:
            return list(struct.unpack(f"{len(found)}d", struct.pack(f"{len(found)}q", *found)))
        return [entry != 0 for entry in found] if item.type == schema.KERNEL_TYPES_BOOL_LIST else found

    def _has_numbers(self, index: int) -> bool:
        """True for a list of ints of an image, whose entries are the numbers themselves."""
        return bool(self._library.value(self.plan, _picotorch.VALUES, index)[1].has_numbers)

    def ints(self, index: int) -> list[int | None]:
        """The items of a list of ints; None for those that an instruction may write."""
        items = self._entries(index, LIMIT)
        if self._has_numbers(index):
            return items
        numbers: list[Any] = [self.number(i) for i in items]
        return numbers

    def _items(self, index: int, kind: int) -> list[str]:
        if kind not in (schema.KERNEL_TYPES_INT_LIST, *_TENSOR_LISTS, *_PLAIN_LISTS):
            return [kind_name(kind)]
        items = self._entries(index, _MAX_ITEMS + 1)
        if kind == schema.KERNEL_TYPES_INT_LIST and not self._has_numbers(index):
            return [self.text(i) if self.is_number(i) else f"%{i}" for i in items]
        if kind in _TENSOR_LISTS:
            return [f"%{i}" if i >= 0 and self.kind(i) == TENSOR else "None" for i in items]
        return [str(item) for item in items]

    def tensors(self, index: int, maximum: int = LIMIT) -> list[int]:
        """The tensor itself, or the tensors among the first items, `most` at most, of a list of them,
        by their indexes; of others none."""
        if index < 0 or self.kind(index) == TENSOR:
            return [] if index < 0 else [index]
        if self.kind(index) not in _TENSOR_LISTS:
            return []
        return [i for i in self._entries(index, maximum) if i >= 0 and self.kind(i) == TENSOR]

    def location(self, index: int) -> tuple[str, int]:
        """Return the memory of a tensor's data and the byte in it: ("planned buffer 0", 64),
        ("constant", position in the file), (LEFT_OUT, 0) of a constant that an image does without,
        ("external", 0) or ("unplanned", 0)."""
        info = self.tensor(index)
        if info.is_memory_planned():
            return f"planned buffer {info.planned_buffer}", info.offset
        if info.is_external():
            return "external", 0
        if info.is_constant():  # at 0 a file has its header
            return (LEFT_OUT, 0) if info.offset == 0 < info.nbytes() else ("constant", info.offset)
        return "unplanned", 0

    @functools.cached_property
    def prepared(self) -> list[bool]:
        """Tell of each instruction of an image whether weights are prepared for it; [] if none are."""
        plan = self._library.plan(self.plan)
        start = ffi.cast("uint8_t *", plan.program.data)
        if ffi.cast("uint32_t *", start)[0] != lib.PT_PTM_MAGIC:
            return []
        method = ffi.cast("pt_ptm_method *", start + plan.position)
        record = ffi.cast("pt_method_record *", start + method.record)
        position = (record.packed & (1 << lib.PT_REF_OFFSET_BITS) - 1) << 2
        table = ffi.cast("pt_ref *", start + position)
        return [table[i] != 0 for i in range(record.n_instructions)] if position else []

    def planned(self, index: int) -> tuple[int, int]:
        """Planned buffer of a tensor and the byte in it; (-1, 0) for one that lies elsewhere."""
        info = self.tensor(index)
        return (info.planned_buffer, info.offset) if info.is_memory_planned() else (-1, 0)
