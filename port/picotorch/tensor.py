"""What the program says of a tensor, and the tensors and lists that a method takes and gives."""

from array import array

import _picotorch

from .errors import INVALID_ARGUMENT, INVALID_STATE, NOT_SUPPORTED, fail, text_of
from .memory import BYTE, buffer_size
from .schema import SCALAR_TYPE_NAMES

MAX_RANK = 16
HALF, BFLOAT16 = 5, 15  # ScalarTypes

# dtypes by the typecodes of buffers
_CODES = b"BbhiqefdHIQ?"
_DTYPES = (0, 1, 2, 3, 4, 5, 6, 7, 27, 28, 29, 11)
_NOTHING = bytearray(0)


class TensorInfo:
    """Sizes, dtype and place of a tensor, as the program or a data file gives them."""

    def __init__(self, fields):
        (self._dtype, self._sizes, self._dim_order, self._nbytes, self._dynamism, self._planned,
         self._constant, self._external, name, self.planned_buffer, self.offset) = fields
        self._name = text_of(name)

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

    _buffer = None  # of from_blob

    def __init__(self):
        self.data = memoryview(_NOTHING)
        self._sizes = memoryview(_NOTHING)  # of i32, where the sizes lie
        self._dim_order = memoryview(_NOTHING)
        self._dtype = 0

    def clear(self):
        """Shows no elements any more."""
        self.data = _picotorch.view(self.data, b"", 0, 0, BYTE)

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
        """A memoryview of the sizes, i32, where they lie; read-only where the tensor is a method's."""
        return self._sizes

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
        nbytes = _nbytes(sizes, self._dtype, self._buffer)
        for i in range(len(sizes)):
            self._sizes[i] = sizes[i]
        self.data = _picotorch.view(self.data, self._buffer, 0, nbytes, self._dtype)

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
    tensor._buffer = buffer
    _nbytes(sizes, tensor._dtype, buffer)
    tensor._sizes = memoryview(array("i", sizes))
    order = list(range(len(sizes)) if dim_order is None else dim_order)
    if sorted(order) != list(range(len(sizes))):
        raise fail(INVALID_ARGUMENT, "its dim order is no permutation of its dims", "tensor")
    tensor._dim_order = memoryview(bytes(order))
    tensor.resize(sizes)
    return tensor


def _dtype_of(buffer):
    code = _picotorch.buffer(buffer)[0]
    for i in range(len(_CODES)):
        if _CODES[i] == code:
            return _DTYPES[i]
    raise fail(INVALID_ARGUMENT, "its elements are of no dtype", "tensor", remedy="give the dtype")


def _dtype_of_name(dtype):
    for number in SCALAR_TYPE_NAMES:
        if dtype in (number, SCALAR_TYPE_NAMES[number]) and _picotorch.element_size(number):
            return number
    raise fail(INVALID_ARGUMENT, "there is no such dtype", "tensor")


def _nbytes(sizes, dtype, buffer):
    """Bytes of a tensor of these sizes on a buffer. Raises InvalidArgument, NotSupported."""
    there = _picotorch.nbytes(buffer) // _picotorch.element_size(dtype)
    count = 1
    fits = there > 0
    empty = False
    for i in range(len(sizes)):
        size = sizes[i] | 0  # TypeError for what is no int, before anything changes
        if not 0 <= size <= _picotorch.SMALL_INT_MAX:
            raise fail(INVALID_ARGUMENT, "a size is negative or above 2**30", "tensor")
        empty = empty or size == 0
        fits = fits and size <= there // count
        if fits and not empty:
            count *= size
    if empty:
        return 0
    if not fits:
        raise fail(NOT_SUPPORTED, "its buffer has too few bytes for these sizes", "tensor",
                   remedy="make it larger")
    return count * _picotorch.element_size(dtype)


class ValueList:
    """A list among a method's values: len, [i], iteration. An item is read when it is asked for.

    With the heap locked one item can be held at a time: it is put into `kept`.
    """

    def __init__(self, method):
        self._method = method
        self._kept = None
        self._value = -1  # which of the method's values it is
        self._length = 0
        self._unloads = 0  # of the method, when the items were part of it

    def _point(self, value, length):
        """Shows value number `value` of the method; for the library."""
        self._value = value
        self._length = length
        self._unloads = self._method.unloads
        return self

    def clear(self):
        """Shows nothing any more."""
        self._length = 0

    def __len__(self):
        method = self._method
        if self._length and method.unloads != self._unloads and method.is_loaded():
            raise fail(INVALID_STATE, "is of another load", "list", remedy="call get_output again")
        return self._length

    def __getitem__(self, i):
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError
        kept = self._kept if _picotorch.heap_locked() else _picotorch.Kept(Tensor(), None)
        return self._method.library.item(self._value, i, kept)

    def __repr__(self):
        return repr([item for item in self])


def new_kept(method):
    """Objects for one value, made at set-up: what a locked heap cannot make."""
    values = ValueList(method)
    values._kept = _picotorch.Kept(Tensor(), values)
    return values._kept
