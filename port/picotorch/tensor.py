"""What the program says of a tensor, and the tensor that get_output gives."""

import _picotorch

from .errors import INVALID_PROGRAM, NOT_SUPPORTED, fail
from .memory import LIMIT
from .schema import (
    EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME,
    EXTRA_TENSOR_INFO_LOCATION,
    SCALAR_TYPE_NAMES,
    TENSOR_ALLOCATION_INFO,
    TENSOR_DATA_BUFFER_IDX,
    TENSOR_DATA_LOCATION_EXTERNAL,
    TENSOR_DIM_ORDER,
    TENSOR_EXTRA_TENSOR_INFO,
    TENSOR_SCALAR_TYPE,
    TENSOR_SIZES,
)

# Typecodes of memoryview by ScalarType; types that it does not know are seen as bytes.
TYPECODES = {0: "B", 1: "b", 2: "h", 3: "i", 4: "q", 6: "f", 7: "d", 11: "B", 27: "H", 28: "I",
             29: "Q"}
# What a buffer's own typecode may be for a ScalarType; "B" is taken as raw bytes everywhere.
_ACCEPTED = {1: b"b", 2: b"h", 3: b"i", 4: b"q", 5: b"e", 6: b"f", 7: b"d", 11: b"?", 27: b"H",
             28: b"I", 29: b"Q"}
_RAW = 66

MAX_RANK = 16


def accepts(dtype, buffer):
    """True when the elements of a buffer may be those of a tensor of this dtype."""
    code = _picotorch.typecode(buffer)
    return code == _RAW or code in _ACCEPTED.get(dtype, b"")


def tensor_nbytes(reader, tensor):
    """Bytes of the elements of the tensor table at a position. Raises InvalidProgram for bad sizes,
    NotSupported for a dtype without whole bytes."""
    dtype = reader.u8(tensor, TENSOR_SCALAR_TYPE)
    nbytes = reader.tensor_nbytes(dtype, reader.table(tensor, TENSOR_SIZES), LIMIT)
    if nbytes < 0:
        raise bad_nbytes(dtype)
    return nbytes


def is_external(reader, extra):
    """True when the data of the tensor with this ExtraTensorInfo (0: none) is in a data file."""
    return extra != 0 and (reader.u8(extra, EXTRA_TENSOR_INFO_LOCATION)
                           == TENSOR_DATA_LOCATION_EXTERNAL)


def bad_dims(reader, sizes):
    """The error for sizes and a dim order that Reader.tensor_flags does not take."""
    if reader.length(sizes) > MAX_RANK:
        return fail(NOT_SUPPORTED, "tensors of more than 16 dims")
    return fail(INVALID_PROGRAM, "a dim order is no permutation of the dims")


def bad_nbytes(dtype):
    """The error for a dtype and sizes that Reader.tensor_nbytes does not take."""
    if _picotorch.element_size(dtype) == 0:
        return fail(NOT_SUPPORTED, "tensors of this dtype", "dtype", dtype)
    return fail(INVALID_PROGRAM, "a tensor has a negative size or more than 128 MiB")


class TensorInfo:
    """Sizes, dtype and place of a tensor, as the program gives them."""

    def __init__(self, program, tensor):
        reader = program.reader
        sizes = reader.table(tensor, TENSOR_SIZES)
        order = reader.table(tensor, TENSOR_DIM_ORDER)
        if reader.tensor_flags(sizes, order) < 0:
            raise bad_dims(reader, sizes)
        self._nbytes = tensor_nbytes(reader, tensor)
        self._sizes = tuple([reader.i32_item(sizes, i) for i in range(reader.length(sizes))])
        self._dim_order = tuple([reader.u8_item(order, i) for i in range(reader.length(order))])
        self._dtype = reader.u8(tensor, TENSOR_SCALAR_TYPE)
        self._planned = reader.table(tensor, TENSOR_ALLOCATION_INFO) != 0
        extra = reader.table(tensor, TENSOR_EXTRA_TENSOR_INFO)
        self._external = is_external(reader, extra)
        self._constant = not self._planned and (
            self._external or reader.u32(tensor, TENSOR_DATA_BUFFER_IDX) != 0)
        self._name = ""
        if extra:
            self._name = program.string(
                reader.table(extra, EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME))

    def sizes(self):
        return self._sizes

    def dim_order(self):
        return self._dim_order

    def scalar_type(self):
        """ExecuTorch's number of the dtype."""
        return self._dtype

    @property
    def dtype(self):
        """Name of the dtype: "Float", "Char" ..."""
        return SCALAR_TYPE_NAMES[self._dtype]

    def nbytes(self):
        return self._nbytes

    def is_memory_planned(self):
        return self._planned

    def is_constant(self):
        """True when its data lies in the program or in a data file."""
        return self._constant

    def is_external(self):
        """True when its data, or its initial value, comes from a data file."""
        return self._external

    def name(self):
        """Fully qualified name of a parameter or buffer, '' where the program gives none."""
        return self._name

    def __repr__(self):
        return "<TensorInfo %s %s %dB%s>" % (
            self.dtype, list(self._sizes), self._nbytes, self._place())

    def _place(self):
        if self._constant:
            return " external" if self._external else " constant"
        return "" if self._planned else " unplanned"


class Tensor:
    """An output: `data` is a memoryview of its elements where they lie, in the order of dim_order.

    Made once; the method points it to where the output is, so it is valid until the next
    get_output of the same index.
    """

    def __init__(self):
        self.data = memoryview(bytearray(1))
        self.program = None
        self.table = 0

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]

    def scalar_type(self):
        return self.program.reader.u8(self.table, TENSOR_SCALAR_TYPE)

    @property
    def dtype(self):
        return SCALAR_TYPE_NAMES[self.scalar_type()]

    def dim(self):
        return self.program.reader.length(
            self.program.reader.table(self.table, TENSOR_SIZES))

    def size(self, dim):
        reader = self.program.reader
        return reader.i32_item(reader.table(self.table, TENSOR_SIZES), dim)

    def sizes(self):
        return tuple([self.size(i) for i in range(self.dim())])

    def dim_order(self):
        reader = self.program.reader
        order = reader.table(self.table, TENSOR_DIM_ORDER)
        return tuple([reader.u8_item(order, i) for i in range(reader.length(order))])

    def __repr__(self):
        if self.program is None:
            return "<Tensor>"
        shown = ", ".join(["%g" % self.data[i] for i in range(min(6, len(self.data)))])
        if len(self.data) > 6:
            shown += ", ..."
        return "<Tensor %s %s [%s]>" % (self.dtype, list(self.sizes()), shown)
