"""Read bundled programs: .bpte files, with a program and sets of inputs with expected outputs.

No byte of the file is trusted. Every read is checked to lie inside the file, and every tensor to have
the bytes of its sizes. The file may not have more tables and words of vectors than bytes; tables and
vectors with several references count each time.
"""

import dataclasses
import math
import struct

import _picotorch
import numpy as np

from picotorch import Error
from picotorch.errors import INVALID_PROGRAM, NOT_SUPPORTED, fail
from picotorch.memory import LIMIT
from picotorch.schema import SCALAR_TYPE_NAMES
from picotorch.tensor import MAX_RANK

from ..host.tensors import from_stored
from . import bundled_schema as schema

_NUMBERS = {schema.VALUE_UNION_INT: (schema.INT_INT_VAL, "<q"),
            schema.VALUE_UNION_BOOL: (schema.BOOL_BOOL_VAL, "<?"),
            schema.VALUE_UNION_DOUBLE: (schema.DOUBLE_DOUBLE_VAL, "<d")}


class BundledTensor:
    """A tensor of a test set, with sizes(), dim_order() and scalar_type() as in a TensorInfo.

    data: its bytes in the order of its dims, inside the file.
    """

    def __init__(self, scalar_type: int, sizes: tuple[int, ...], dim_order: tuple[int, ...],
                 data: memoryview) -> None:
        self._scalar_type, self._sizes, self._dim_order = scalar_type, sizes, dim_order
        self.data = data

    def sizes(self) -> tuple[int, ...]:
        return self._sizes

    def dim_order(self) -> tuple[int, ...]:
        return self._dim_order

    def scalar_type(self) -> int:
        return self._scalar_type

    @property
    def dtype(self) -> str:
        return SCALAR_TYPE_NAMES[self._scalar_type]

    def array(self) -> np.ndarray:
        """Return the numbers in logical order."""
        return from_stored(self.data, self)


Value = BundledTensor | int | float | bool


@dataclasses.dataclass
class Case:
    """One test set of a method: BundledTensors, and ints, floats and bools.

    A set without expected outputs is for profiling. index: counts the sets of a method from 0.
    """

    method: str
    index: int
    inputs: list[Value]
    expected: list[Value]


@dataclasses.dataclass
class BundledProgram:
    """A bundled program. program: the bytes of the .pte."""

    version: int
    program: memoryview
    sets: list[Case]

    def methods(self) -> list[str]:
        """Return the methods that have test sets, in the file's order."""
        return list(dict.fromkeys(case.method for case in self.sets))


def is_bundled(data: bytes) -> bool:
    """Return True for the bytes of a bundled program."""
    return bytes(data[4:8]) == schema.FILE_IDENTIFIER


def program_of(data: bytes) -> bytes:
    """Return the program of a .bpte, or the bytes of any other file. Raises InvalidProgram."""
    return bytes(read(data).program) if is_bundled(data) else data


def read(data: bytes) -> BundledProgram:
    """Read a .bpte file.

    Raises NotSupported for another kind of file, InvalidProgram for a damaged one.
    """
    if not is_bundled(data):
        raise fail(NOT_SUPPORTED, "no file identifier BP08: not a .bpte file")
    if len(data) > LIMIT:
        raise fail(NOT_SUPPORTED, "bundled programs above 128 MiB")
    try:
        return _File(data).read()
    except (ValueError, IndexError, struct.error):
        raise _damaged("a part lies outside the bundled program") from None


def _damaged(what: str, subject: str | None = None, index: int = -1) -> Error:
    return fail(INVALID_PROGRAM, what, subject, index,
                remedy="export the program again or copy it again")


class _File:
    """Read the tables of a file."""

    def __init__(self, data: bytes) -> None:
        from .tables import Tables  # imports flatbuffers, which a .pte does not need

        self.data = memoryview(data).cast("B")
        self.reader = Tables(self.data)
        self.visits = len(self.data)

    def read(self) -> BundledProgram:
        root = self.reader.root()
        version = self.reader.u32(root, schema.BUNDLED_PROGRAM_VERSION)
        program = self.bytes_of(root, schema.BUNDLED_PROGRAM_PROGRAM)
        if program is None:
            raise _damaged("has no program in it", "bundled program")
        suites = self.tables(root, schema.BUNDLED_PROGRAM_METHOD_TEST_SUITES)
        cases = [case for suite in suites for case in self.suite(suite)]
        return BundledProgram(version, program, cases)

    def suite(self, table: int) -> list[Case]:
        method = self.text(table, schema.BUNDLED_METHOD_TEST_SUITE_METHOD_NAME)
        cases = self.tables(table, schema.BUNDLED_METHOD_TEST_SUITE_TEST_CASES)
        return [Case(method, index,
                     self.values(case, schema.BUNDLED_METHOD_TEST_CASE_INPUTS),
                     self.values(case, schema.BUNDLED_METHOD_TEST_CASE_EXPECTED_OUTPUTS))
                for index, case in enumerate(cases)]

    def values(self, table: int, slot: int) -> list[Value]:
        return [self.value(value) for value in self.tables(table, slot)]

    def value(self, table: int) -> Value:
        kind = self.reader.u8(table, schema.VALUE_VAL_TYPE)
        member = self.reader.table(table, schema.VALUE_VAL)
        if member == 0:
            raise _damaged("a value is missing", "bundled program")
        if kind == schema.VALUE_UNION_TENSOR:
            return self.tensor(member)
        if kind not in _NUMBERS:
            raise fail(NOT_SUPPORTED, f"values of type {kind}", "bundled program")
        slot, layout = _NUMBERS[kind]
        position = self.reader.field(member, slot)
        content = self.slice(position, struct.calcsize(layout)) if position else bytes(8)
        number: int | float | bool = struct.unpack_from(layout, content)[0]
        return number

    def tensor(self, table: int) -> BundledTensor:
        scalar_type = self.reader.u8(table, schema.TENSOR_SCALAR_TYPE)
        element = _picotorch.element_size(scalar_type)
        if not element:
            raise fail(NOT_SUPPORTED, "tensors of this dtype", "dtype", scalar_type)
        vector = self.reader.table(table, schema.TENSOR_SIZES)
        rank = self.reader.length(vector)
        if rank > MAX_RANK:
            raise fail(NOT_SUPPORTED, f"tensors of more than {MAX_RANK} dims")
        sizes = tuple(self.reader.i32_item(vector, i) for i in range(rank))
        dim_order = tuple(self.bytes_of(table, schema.TENSOR_DIM_ORDER) or b"")
        if sorted(dim_order) != list(range(rank)):
            raise _damaged("a dim order is not a permutation of the dims", "bundled program")
        data = self.bytes_of(table, schema.TENSOR_DATA) or memoryview(b"")
        nbytes = math.prod(sizes) * element
        if min(sizes, default=0) < 0 or nbytes > len(data):
            raise _damaged(f"a tensor {list(sizes)} of {SCALAR_TYPE_NAMES[scalar_type]} has "
                              f"{len(data)}B of data", "bundled program")
        return BundledTensor(scalar_type, sizes, dim_order, data[:nbytes])

    # ---- parts of the file

    def tables(self, table: int, slot: int) -> list[int]:
        """Return the positions of the tables of a vector."""
        vector = self.reader.table(table, slot)
        count = self.reader.length(vector)
        self.visit(count)
        return [self.reader.item(vector, i) for i in range(count)]

    def bytes_of(self, table: int, slot: int) -> memoryview | None:
        """Return the bytes of a vector of bytes, or None if the file omits it."""
        vector = self.reader.table(table, slot)
        if not vector:
            return None
        self.visit(self.reader.length(vector) // 4)
        return self.slice(vector + 4, self.reader.length(vector))

    def text(self, table: int, slot: int) -> str:
        content = self.bytes_of(table, slot)
        if content is None:
            raise _damaged("a test suite names no method", "bundled program")
        try:
            return str(content, "utf-8")
        except UnicodeDecodeError:
            raise _damaged("a method's name is not UTF-8", "bundled program") from None

    def visit(self, count: int) -> None:
        self.visits -= count
        if self.visits < 0:
            raise _damaged("refers to more tables and bytes than it can have", "bundled program")

    def slice(self, position: int, size: int) -> memoryview:
        if not 0 <= position <= len(self.data) - size:
            raise ValueError
        return self.data[position : position + size]
