"""Define tensors of a program, and the tensors and lists that a method accepts and returns."""

from array import array

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    INVALID_STATE,
    NOT_SUPPORTED,
    fail,
    need,
    text_of,
)
from .memory import BYTE, buffer_size
from .schema import SCALAR_TYPE_NAMES

MAX_RANK = 16

# dtypes by the typecodes of buffers
_CODES = "BbhiqefdHIQ?"
_DTYPES = b"\0\1\2\3\4\5\6\7\x1b\x1c\x1d\x0b"
_NOTHING = bytearray(0)


class TensorInfo:
    """Sizes, dtype and memory of a tensor in the program or a data file."""

    def __init__(self, fields):
        self._fields = fields  # see pt_tensor_tuple
        self.planned_buffer = fields[9]
        self.offset = fields[10]

    def sizes(self):
        """Return the sizes; of a dynamic tensor the largest ones."""
        return self._fields[1]

    def is_dynamic(self):
        """Return True when the sizes may change from one execution to the next."""
        return self.shape_dynamism() != 0

    def shape_dynamism(self):
        """Return ExecuTorch's number: 0 static, 1 dynamic within a bound, 2 without a bound."""
        return self._fields[4]

    def dim_order(self):
        """Return the dim order of the tensor."""
        return self._fields[2]

    def scalar_type(self):
        """Return ExecuTorch's number of the dtype."""
        return self._fields[0]

    @property
    def dtype(self):
        """Return the name of the dtype: "Float", "Char" ..."""
        return SCALAR_TYPE_NAMES[self.scalar_type()]

    def nbytes(self):
        """Return the bytes of the tensor."""
        return self._fields[3]

    def is_memory_planned(self):
        """Return True if the tensor is in planned memory."""
        return self._fields[5]

    def is_constant(self):
        """Return True when its data lies in the program or in a data file."""
        return self._fields[6]

    def is_external(self):
        """Return True when its data, or its initial value, comes from a data file."""
        return self._fields[7]

    def name(self):
        """Return the fully qualified name of a parameter or buffer, '' if the program has none."""
        return text_of(self._fields[8])

    def __repr__(self):
        memory = "" if self.is_memory_planned() else " unplanned"
        if self.is_constant():
            memory = " external" if self.is_external() else " constant"
        return "<%s %s %s%s %dB%s>" % (
            type(self).__name__, self.dtype, "up to " if self.is_dynamic() else "", list(self.sizes()),
            self.nbytes(), memory)


class Tensor:
    """Sizes, dtype and elements: an output, an attribute, or made by from_blob.

    `data` is a memoryview of the elements in place, in the order of dim_order; float16 and bfloat16 are
    bits, and number(i) returns the value. A complex number is two elements, its real and its imaginary
    part, and number(i) is a tuple of the two, since some builds of MicroPython lack `complex`. A method
    has one Tensor for each output: get_output points it at the output, where it is valid until the next
    get_output of this index.
    """

    buffer = None  # the buffer of from_blob

    def __init__(self):
        self.data = memoryview(_NOTHING)
        self.sizes_view = memoryview(_NOTHING)  # of i32, where the sizes lie
        self.dim_order_view = memoryview(_NOTHING)
        self.dtype_number = 0

    def clear(self):
        """Detach the tensor from its elements: it has none afterwards."""
        self.data = _picotorch.view(self.data, b"", 0, 0, BYTE)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        """Return element i of the data; with an index for each dim, t[1, 2], the number there."""
        return self.number(self._position(i)) if isinstance(i, tuple) else self.data[i]

    def __setitem__(self, i, value):
        if not isinstance(i, tuple):
            self.data[i] = value
        elif self._is_complex():
            at = 2 * self._position(i)
            self.data[at], self.data[at + 1] = value
        else:
            self.data[self._position(i)] = value

    def _is_complex(self):
        return 8 <= self.dtype_number <= 10  # ComplexHalf, ComplexFloat, ComplexDouble

    def _position(self, indexes):
        """Return the element of the data at these indexes, one for each dim. Raises IndexError."""
        sizes = self.sizes_view
        if len(indexes) != len(sizes):
            raise IndexError
        position = 0
        for dim in self.dim_order_view:
            i = indexes[dim]
            size = sizes[dim]
            if not -size <= i < size:
                raise IndexError
            position = position * size + i % size
        return position

    def scalar_type(self):
        """Return ExecuTorch's number of the dtype."""
        return self.dtype_number

    @property
    def dtype(self):
        """Return the name of the dtype: "Float", "Char" ..."""
        return SCALAR_TYPE_NAMES[self.dtype_number]

    def dim(self):
        """Return the number of dims."""
        return len(self.sizes_view)

    def size(self, dim):
        """Return the size of a dim."""
        return self.sizes_view[dim]

    def sizes(self):
        """Return the sizes as a tuple."""
        return tuple(self.sizes_view)

    def dim_order(self):
        """Return the dim order as a tuple."""
        return tuple(self.dim_order_view)

    def nbytes(self):
        """Return the bytes of the elements."""
        return _picotorch.nbytes(self.data)

    def raw_sizes(self):
        """Return a memoryview of the sizes, int32, in place; read-only if the tensor is a method's."""
        return self.sizes_view

    def _place(self, sizes, dim_order):
        """Set the sizes and the dim order of a new tensor of from_blob."""
        rank = len(sizes)
        if rank > MAX_RANK:
            raise fail(NOT_SUPPORTED, "tensors of more than 16 dims; give fewer", "sizes")
        self.sizes_view = memoryview(array("i", range(rank)))
        order = list(self.sizes_view if dim_order is None else dim_order)
        if sorted(order) != list(self.sizes_view):
            raise fail(INVALID_ARGUMENT, "is not a permutation; give each dim once", "dim_order")
        self.dim_order_view = memoryview(bytes(order))
        self.resize(sizes)

    def resize(self, sizes):
        """Set the sizes of a tensor of from_blob, which keeps its rank and its buffer.

        Allocates nothing. Raises NotSupported for another rank, for more elements than the buffer has
        and for a tensor of a method; InvalidArgument for a negative size.
        """
        if self.buffer is None:
            raise fail(NOT_SUPPORTED, "belongs to a method; set the sizes of its inputs",
                       "tensor")
        if len(sizes) != len(self.sizes_view):
            raise fail(NOT_SUPPORTED, "cannot change its rank; give dim() sizes", "tensor")
        nbytes = _nbytes(sizes, self.dtype_number, self.buffer)
        for i in range(len(sizes)):
            self.sizes_view[i] = sizes[i]
        self.data = _picotorch.view(self.data, self.buffer, 0, nbytes, self.dtype_number)

    def copy(self):
        """Return a Tensor of the same numbers in memory of its own. Allocates."""
        return from_blob(bytearray(self.data), self.sizes_view, self.dtype_number, self.dim_order_view)

    def tolist(self):
        """Return the numbers as nested lists, a level for each dim; without dims the number itself."""
        return self._nested(())

    def _nested(self, indexes):
        rank = len(indexes)
        if rank == len(self.sizes_view):
            return self[indexes]
        return [self._nested(indexes + (i,)) for i in range(self.sizes_view[rank])]

    def number(self, i):
        """Return element i as a number; a complex one as a tuple of real and imaginary part.

        float16 and bfloat16 are converted. May allocate.
        """
        number = _picotorch.number
        data = self.data
        dtype = self.dtype_number
        if self._is_complex():
            return number(data[2 * i], dtype), number(data[2 * i + 1], dtype)
        return number(data[i], dtype)

    def __repr__(self):
        pairs = self._is_complex()
        count = len(self.data) >> pairs
        shown = "%g%+gj" if pairs else "%g"
        shown = ", ".join([shown % self.number(i) for i in range(min(6, count))])
        if count > 6:
            shown += ", ..."
        return "<Tensor %s %s [%s]>" % (self.dtype, list(self.sizes_view), shown)


def from_blob(buffer, sizes, dtype=None, dim_order=None):
    """Return a Tensor of these sizes on a buffer, which it uses in place.

    dim_order: by default 0, 1, 2 ...

    dtype: a name ("Float") or ExecuTorch's number; by default the dtype of the buffer's elements. The
    buffer may have more bytes than the sizes need. Allocates. Raises InvalidType for anything but a
    buffer, InvalidArgument for an unknown dtype, a negative size or a wrong dim order, NotSupported for
    sizes that need more bytes than the buffer has, or for more than 16 dims.
    """
    buffer_size(buffer, "tensor")
    tensor = Tensor()
    tensor.dtype_number = _dtype_of(buffer, dtype)
    tensor.buffer = buffer
    tensor._place(sizes, dim_order)
    return tensor


def _dtype_of(buffer, dtype):
    """Return the ScalarType of a dtype, or of the buffer's elements for None."""
    if dtype is None:
        code = _picotorch.buffer(buffer)[0]
        i = _CODES.find(chr(code))
        if i >= 0:
            return _DTYPES[i]
    elif isinstance(dtype, (int, str)):
        for number in SCALAR_TYPE_NAMES:
            if dtype in (number, SCALAR_TYPE_NAMES[number]) and _picotorch.element_size(number):
                return number
    raise fail(INVALID_ARGUMENT, "does not exist; give 'Float' for instance", "dtype")


def _nbytes(sizes, dtype, buffer):
    """Return the bytes of a tensor of these sizes on a buffer. Raises InvalidArgument, NotSupported."""
    there = _picotorch.nbytes(buffer) // _picotorch.element_size(dtype)
    count = 1
    fits = there > 0
    empty = False
    for i in range(len(sizes)):
        size = sizes[i] | 0  # TypeError for anything but an int, before anything changes
        if not 0 <= size <= _picotorch.SMALL_INT_MAX:
            raise fail(INVALID_ARGUMENT, "a size is negative or above 2**30; give smaller ones",
                       "tensor")
        empty = empty or size == 0
        fits = fits and size <= there // count
        if fits and not empty:
            count *= size
    if empty:
        return 0
    if not fits:
        raise fail(NOT_SUPPORTED, "its buffer has too few bytes for these sizes; make it larger",
                   "tensor")
    return count * _picotorch.element_size(dtype)


class ValueList:
    """A list among a method's values: len, [i], iteration. An item is read when it is requested.

    With the heap locked, reading an item invalidates the one before: they share one object.
    """

    def __init__(self, method):
        self._method = method
        self._kept = None
        self._value = -1  # index among the method's values
        self._length = 0
        self._unloads = 0  # the method's `unloads` when this list was returned

    def point_to(self, value, length):
        """Refer to value number `value` of the method; return self. Called by the library."""
        self._value = value
        self._length = length
        self._unloads = self._method.unloads
        return self

    def clear(self):
        """Empty the list."""
        self._length = 0

    def __len__(self):
        method = self._method
        if self._length and method.unloads != self._unloads and method.is_loaded():
            raise fail(INVALID_STATE, "belongs to another load; call get_output again", "list")
        return self._length

    def __getitem__(self, i):
        need(i, int, "index")
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError
        kept = self._kept if _picotorch.heap_locked() else _picotorch.Kept(Tensor(), None)
        return self._method.library.item(self._value, i, kept)

    def __repr__(self):
        return repr(list(self))


def new_kept(method):
    """Make the objects for one value at set-up, since a locked heap cannot make them."""
    values = ValueList(method)
    values._kept = _picotorch.Kept(Tensor(), values)
    return values._kept
