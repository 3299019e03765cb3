"""Read the values of a method: numbers, lists, and the locations of tensors."""

import functools
import struct
from collections.abc import Iterable
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
    """The values of method number `plan`. Raises InvalidProgram if an offset is outside the file."""

    def __init__(self, program: Program, plan: int) -> None:
        self.program = program
        self.plan = plan
        self.written: set[int] = set()  # values that instructions write: shown by name, not by number
        self._library = program.library
        self._evalues: dict[int, tuple[Any, ...]] = {}  # what was read of a value

    def __len__(self) -> int:
        count: int = self._library.count(self.plan, _picotorch.VALUES)
        return count

    def kind(self, index: int) -> int:
        """Return the KernelTypes number."""
        return self._item(index)[1]

    def _item(self, index: int) -> tuple[int, int, Any, bool]:
        if index not in self._evalues:
            self._evalues[index] = self._library.item(self.plan, _picotorch.VALUES, index)
        return self._evalues[index]

    def tensor(self, index: int) -> TensorInfo:
        """Return the TensorInfo of a value."""
        return TensorInfo(self._library.tensor(self.plan, _picotorch.VALUES, index))

    def number(self, index: int) -> int | float | None:
        """Return the int, float or bool; None for one that is empty or of another kind."""
        return self._constant(index) if self.is_number(index) else None

    def _constant(self, index: int) -> Any:
        return self._item(index)[2]

    def is_number(self, index: int) -> bool:
        """Return True for an int, float or bool."""
        return self.kind(index) in _NUMBERS

    def is_plain(self, index: int) -> bool:
        """Return True for a number, a string and None."""
        return self.kind(index) in (*_NUMBERS, schema.KERNEL_TYPES_STRING, schema.KERNEL_TYPES_NULL)

    def plain(self, index: int) -> int | float | str | None:
        """Return the number, string or None."""
        return (self.string(index) if self.kind(index) == schema.KERNEL_TYPES_STRING
                else self.number(index))

    def text(self, index: int) -> str:
        """Return a value as an argument of an instruction: "%3", "2", "[1, 1]", "None"."""
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
        """Return the text of a string."""
        return text_of(self._constant(index))

    def _entries(self, index: int, maximum: int) -> list[Any]:
        """Return the first items, at most `maximum`, of a list: indexes of values, bools, or floats."""
        _, item = self._library.value(self.plan, _picotorch.VALUES, index)
        meta = self._library.method_meta(self.plan)
        found = [lib.pt_list_entry(meta, item, k) for k in range(min(item.count, maximum))]
        if item.type == schema.KERNEL_TYPES_DOUBLE_LIST:
            return list(struct.unpack(f"{len(found)}d", struct.pack(f"{len(found)}q", *found)))
        return [entry != 0 for entry in found] if item.type == schema.KERNEL_TYPES_BOOL_LIST else found

    def _has_numbers(self, index: int) -> bool:
        """Return True for a list of ints of a .ptm file, whose entries are the numbers themselves."""
        return bool(self._library.value(self.plan, _picotorch.VALUES, index)[1].has_numbers)

    def ints(self, index: int) -> list[int | None]:
        """Return the items of a list of ints; None for a list that an instruction may write."""
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
        """Return the tensor itself, or the tensors among the first `maximum` items of a list.

        The tensors are given by their indexes. The list is empty for other values.
        """
        if index < 0 or self.kind(index) == TENSOR:
            return [] if index < 0 else [index]
        if self.kind(index) not in _TENSOR_LISTS:
            return []
        return [i for i in self._entries(index, maximum) if i >= 0 and self.kind(i) == TENSOR]

    def all_tensors(self, indexes: Iterable[int]) -> list[int]:
        """Return the tensors of several values, the items of lists one by one."""
        return [tensor for index in indexes for tensor in self.tensors(index)]

    def location(self, index: int) -> tuple[str, int]:
        """Return the memory of a tensor's data and the offset in it.

        Examples: ("planned buffer 0", 64), ("constant", offset in the file), (LEFT_OUT, 0) for a
        constant that a .ptm file omits, ("external", 0), ("unplanned", 0).
        """
        info = self.tensor(index)
        if info.is_memory_planned():
            return f"planned buffer {info.planned_buffer}", info.offset
        if info.is_external():
            return "external", 0
        if info.is_constant():  # at 0 a file has its header
            return (LEFT_OUT, 0) if info.offset == 0 < info.nbytes() else ("constant", info.offset)
        return "unplanned", 0

    def constant_data(self, index: int) -> bytes:
        """Return the bytes of a tensor; empty unless they are in the file."""
        where, offset = self.location(index)
        if where != "constant":
            return b""
        data = self._library.method_meta(self.plan).program.data
        return bytes(ffi.buffer(ffi.cast("uint8_t *", data) + offset, self.tensor(index).nbytes()))

    @functools.cached_property
    def packed(self) -> list[bool]:
        """Return for each instruction of a .ptm file whether its weights are packed; [] if none are."""
        meta = self._library.method_meta(self.plan)
        start = ffi.cast("uint8_t *", meta.program.data)
        if ffi.cast("uint32_t *", start)[0] != lib.PT_PTM_MAGIC:
            return []
        method = ffi.cast("pt_ptm_method *", start + meta.position)
        record = ffi.cast("pt_method_record *", start + method.record)
        position = (record.packed & (1 << lib.PT_REF_OFFSET_BITS) - 1) << 2
        table = ffi.cast("pt_ref *", start + position)
        return [table[i] != 0 for i in range(record.n_instructions)] if position else []

    def planned(self, index: int) -> tuple[int, int]:
        """Return the planned buffer of a tensor and the byte in it; (-1, 0) for one elsewhere."""
        info = self.tensor(index)
        return (info.planned_buffer, info.offset) if info.is_memory_planned() else (-1, 0)
