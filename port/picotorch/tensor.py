"""What the program says of a tensor, and tensors that a method takes and gives."""

from array import array

import _picotorch

from .errors import INVALID_ARGUMENT, INVALID_PROGRAM, NOT_SUPPORTED, fail
from .memory import LIMIT, buffer_size
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
    TENSOR_SHAPE_DYNAMISM,
    TENSOR_SIZES,
)

# Typecodes of memoryview by ScalarType; float16, bfloat16 and bits16 are seen as their bits, other
# types that it does not know as bytes.
TYPECODES = {0: "B", 1: "b", 2: "h", 3: "i", 4: "q", 5: "H", 6: "f", 7: "d", 11: "B", 12: "b",
             14: "i", 15: "H", 22: "H", 27: "H", 28: "I", 29: "Q"}
# What a buffer's own typecode may be for a ScalarType, besides that in TYPECODES; "B" is taken as raw
# bytes everywhere.
_ACCEPTED = {1: b"b", 2: b"h", 3: b"i", 4: b"q", 5: b"e", 6: b"f", 7: b"d", 11: b"?", 27: b"H",
             28: b"I", 29: b"Q"}
_RAW = 66

# Where a tensor without bytes lies: the start of the pool
_NOWHERE = _picotorch.POOL << 25

MAX_RANK = 16
HALF, BFLOAT16 = 5, 15  # ScalarTypes

_NOTHING = bytearray(0)


def accepts(dtype, buffer):
    """True when the elements of a buffer may be those of a tensor of this dtype."""
    code = _picotorch.typecode(buffer)
    return (code == _RAW or code in _ACCEPTED.get(dtype, b"")
            or code == ord(TYPECODES.get(dtype, "B")))


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
        self._dynamism = reader.u8(tensor, TENSOR_SHAPE_DYNAMISM)
        extra = reader.table(tensor, TENSOR_EXTRA_TENSOR_INFO)
        self._external = is_external(reader, extra)
        self._constant = not self._planned and (
            self._external or reader.u32(tensor, TENSOR_DATA_BUFFER_IDX) != 0)
        self._name = ""
        if extra:
            self._name = program.string(
                reader.table(extra, EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME))

    def sizes(self):
        """Of a dynamic tensor the most that they may be."""
        return self._sizes

    def is_dynamic(self):
        """True when the sizes may change from one execution to the next."""
        return self._dynamism != 0

    def shape_dynamism(self):
        """ExecuTorch's number: 0 static, 1 dynamic within a bound, 2 without a bound."""
        return self._dynamism

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
        return "<TensorInfo %s %s%s %dB%s>" % (
            self.dtype, "up to " if self._dynamism else "", list(self._sizes), self._nbytes,
            self._place())

    def _place(self):
        if self._constant:
            return " external" if self._external else " constant"
        return "" if self._planned else " unplanned"


class Tensor:
    """Sizes, dtype and elements: an output, an attribute, or made by from_blob.

    `data` is a memoryview of the elements where they lie, in the order of dim_order; those of float16
    and bfloat16 as their bits, for which number(i) gives the value. A method points
    the Tensor of an output to where the output is at each get_output of its index; until the next one
    it is valid.
    """

    def __init__(self):
        self.data = memoryview(_NOTHING)
        self._sizes = memoryview(_NOTHING)  # of i32, where the sizes lie
        self._dim_order = memoryview(_NOTHING)
        self._dtype = 0
        self._buffer = None  # of from_blob

    def clear(self):
        """Shows no elements any more."""
        self.data = _picotorch.view(self.data, b"", 0, 0, "B")

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]

    def __setitem__(self, i, value):
        self.data[i] = value

    def scalar_type(self):
        """ExecuTorch's number of the dtype."""
        return self._dtype

    @property
    def dtype(self):
        """Name of the dtype: "Float", "Char" ..."""
        return SCALAR_TYPE_NAMES[self._dtype]

    def dim(self):
        return len(self._sizes)

    def size(self, dim):
        return self._sizes[dim]

    def sizes(self):
        return tuple(self._sizes)

    def dim_order(self):
        return tuple(self._dim_order)

    def nbytes(self):
        return _picotorch.nbytes(self.data)

    def raw_sizes(self):
        """A memoryview of the sizes, i32, where they lie."""
        return self._sizes

    def has_dim_order(self, other):
        """True when both have the same dim order; their ranks are equal."""
        for i in range(len(self._dim_order)):
            if self._dim_order[i] != other._dim_order[i]:
                return False
        return True

    def expected_nbytes(self):
        """Bytes that the sizes lead to; -1 when `data` has fewer: a method has executed since."""
        return _nbytes(self._sizes, self._dtype, self.data)

    def resize(self, sizes):
        """Gives a tensor of from_blob other sizes, as many, whose elements fit into its buffer.

        Allocates nothing. Raises NotSupported for another rank, for more elements than the buffer has
        and for a tensor of a method; InvalidArgument for a negative size.
        """
        if self._buffer is None:
            raise fail(NOT_SUPPORTED, "belongs to a method", "tensor",
                       remedy="set the sizes of the method's inputs")
        if len(sizes) != len(self._sizes):
            raise fail(NOT_SUPPORTED, "keeps its rank", "tensor")
        nbytes = _checked_nbytes(sizes, self._dtype, self._buffer)
        for i in range(len(sizes)):
            self._sizes[i] = sizes[i]
        self.data = _picotorch.view(self.data, self._buffer, 0, nbytes,
                                    TYPECODES.get(self._dtype, "B"))

    def point(self, context, at, record):
        """Shows the tensor whose record is at `at` of the context's pool. `record` is a list of 6 to
        work in. ValueError where a place lies outside its memory."""
        self.describe(context, at, record)
        self._show(context, record)

    def point_again(self, context, at, record):
        """As point, for the record to which it was pointed last: sizes and dim order lie where they
        did."""
        context.read_value(at, record)
        self._show(context, record)

    def _show(self, context, record):
        data = record[0] if record[5] else _NOWHERE
        self.data = context.view(self.data, data, record[5], TYPECODES.get(self._dtype, "B"))

    def describe(self, context, at, record):
        """As point, but without the data, which may have no memory yet."""
        context.read_value(at, record)
        rank = record[3]
        self._dtype = record[4]
        self._sizes = context.view(self._sizes, record[1], 4 * rank, "i")
        self._dim_order = context.view(self._dim_order, record[2], rank, "B")

    def number(self, i):
        """Element i of the data as a number, that of float16 and bfloat16 too. May allocate."""
        if self._dtype == HALF:
            return _float_of(self.data[i], 10, 25)
        if self._dtype == BFLOAT16:
            return _float_of(self.data[i], 7, 134)
        return self.data[i]

    def __repr__(self):
        shown = ", ".join(["%g" % self.number(i) for i in range(min(6, len(self.data)))])
        if len(self.data) > 6:
            shown += ", ..."
        return "<Tensor %s %s [%s]>" % (self.dtype, list(self.sizes()), shown)


def _float_of(bits, fraction, bias):
    """The number of a 16-bit float: so many bits of fraction; `bias` makes it an integer's exponent."""
    one = 1 << fraction
    exponent = (bits & 0x7FFF) >> fraction
    mantissa = bits & (one - 1)
    if exponent == 0x7FFF >> fraction:
        number = float("nan") if mantissa else float("inf")
    elif exponent == 0:
        number = mantissa * 2.0 ** (1 - bias)
    else:
        number = (one + mantissa) * 2.0 ** (exponent - bias)
    return -number if bits >> 15 else number


def from_blob(buffer, sizes, dtype=None, dim_order=None):
    """A Tensor of these sizes on a buffer, which it uses in place; dim order 0, 1, 2 ...
    if none is given.

    dtype: a name ("Float") or ExecuTorch's number; without it that of the buffer's elements. The
    buffer may have more bytes than the sizes need. Allocates. Raises InvalidType for what is no
    buffer, InvalidArgument for a dtype that is unknown or a negative size, NotSupported for sizes that
    need more bytes or more than 16 dims.
    """
    buffer_size(buffer, "tensor")
    if len(sizes) > MAX_RANK:
        raise fail(NOT_SUPPORTED, "tensors of more than 16 dims")
    tensor = Tensor()
    tensor._dtype = _dtype_of(buffer) if dtype is None else _dtype_of_name(dtype)
    tensor._buffer = memoryview(buffer)
    _checked_nbytes(sizes, tensor._dtype, buffer)
    tensor._sizes = memoryview(array("i", sizes))
    tensor._dim_order = memoryview(bytes(range(len(sizes)) if dim_order is None else dim_order))
    if sorted(tensor._dim_order) != list(range(len(sizes))):
        raise fail(INVALID_ARGUMENT, "its dim order is no permutation of its dims", "tensor")
    tensor.resize(sizes)
    return tensor


def _dtype_of(buffer):
    code = _picotorch.typecode(buffer)
    for dtype in _ACCEPTED:
        if code == _ACCEPTED[dtype][0]:
            return dtype
    if code != _RAW:
        raise fail(INVALID_ARGUMENT, "its elements are of no dtype", "tensor",
                   remedy="give the dtype")
    return 0


def _dtype_of_name(dtype):
    for number in SCALAR_TYPE_NAMES:
        if dtype in (number, SCALAR_TYPE_NAMES[number]) and _picotorch.element_size(number):
            return number
    raise fail(INVALID_ARGUMENT, "there is no such dtype", "tensor")


def _checked_nbytes(sizes, dtype, buffer):
    """Bytes of a tensor of these sizes on a buffer. Raises InvalidArgument, NotSupported."""
    for i in range(len(sizes)):
        if not 0 <= sizes[i] <= _picotorch.SMALL_INT_MAX:
            raise fail(INVALID_ARGUMENT, "a size is negative or above 2**30", "tensor")
    nbytes = _nbytes(sizes, dtype, buffer)
    if nbytes < 0:
        raise fail(NOT_SUPPORTED, "its buffer has too few bytes for these sizes", "tensor",
                   remedy="make it larger")
    return nbytes


def _nbytes(sizes, dtype, buffer):
    """Bytes of a tensor of these sizes; -1 when a buffer has fewer."""
    elements = _picotorch.nbytes(buffer) // _picotorch.element_size(dtype)
    count = 1
    for i in range(len(sizes)):
        if sizes[i] == 0:
            return 0
    for i in range(len(sizes)):
        if sizes[i] > elements // count:
            return -1
        count *= sizes[i]
    return count * _picotorch.element_size(dtype)
