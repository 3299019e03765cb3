"""External weights: .ptd files, with the data of tensors that a program leaves out.

    weights = FlatTensorDataMap.load(FileDataLoader("weights.ptd"))
    method.load(program, "forward", data_map=weights)

As with a program, no byte of the file is trusted, and its data is used where it lies: a file in flash
or ROM is not copied, but for the initial values of mutable buffers.
"""

import _picotorch

from . import flat_tensor as schema
from .errors import (
    INVALID_ARGUMENT,
    INVALID_EXTERNAL_DATA,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    NOT_SUPPORTED,
    Error,
    check_stack,
    fail,
)
from .memory import LIMIT, buffer_size, bytes_at, check_alignment
from .program import STRICT, text_at
from .schema import SCALAR_TYPE_NAMES

_HEADER_END = schema.HEADER_POSITION + schema.HEADER_MINIMUM_LENGTH


def bad_data(what, subject=None, index=-1, source=None):
    return fail(INVALID_EXTERNAL_DATA, what, subject, index, source=source,
                remedy="take the .ptd file that was exported with the program")


class TensorLayout:
    """dtype, sizes and dim order of a tensor in a .ptd file."""

    def __init__(self, reader, layout):
        sizes = reader.table(layout, schema.TENSOR_LAYOUT_SIZES)
        order = reader.table(layout, schema.TENSOR_LAYOUT_DIM_ORDER)
        self._dtype = reader.u8(layout, schema.TENSOR_LAYOUT_SCALAR_TYPE)
        self._nbytes = reader.tensor_nbytes(self._dtype, sizes, LIMIT)
        if self._nbytes < 0 or reader.tensor_flags(sizes, order) < 0:
            raise fail(INVALID_ARGUMENT, "sizes, dim order and dtype make no tensor",
                       "tensor layout")
        self._sizes = tuple([reader.i32_item(sizes, i) for i in range(reader.length(sizes))])
        self._dim_order = tuple([reader.u8_item(order, i) for i in range(reader.length(order))])

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

    def __repr__(self):
        return "<TensorLayout %s %s %dB>" % (self.dtype, list(self._sizes), self._nbytes)


class FlatTensorDataMap:
    """The named data of one .ptd file. Made by FlatTensorDataMap.load(loader)."""

    def __init__(self, loader):
        self.loader = loader
        buffer_size(loader.buffer, "data file")
        self.data = memoryview(loader.buffer)
        self.reader = None
        self.segment_base = 0
        self.segments = 0
        self.named_data = 0
        self.files = [self]
        self.next_key = 0  # where `find` starts
        self.visited = 0  # keys that it looked at

    @staticmethod
    def load(loader, verification=STRICT):
        """Reads header and tables of the loader's file. Raises NotFound for what is no .ptd file,
        InvalidExternalData, InvalidArgument, InvalidType, NotSupported."""
        check_stack()
        data_map = FlatTensorDataMap(loader)
        try:
            data_map._read_header(verification)
        except ValueError:
            raise bad_data("something lies outside the file", source=loader) from None
        except Error as error:
            raise error.with_source(loader) from None
        return data_map

    def _read_header(self, verification):
        size = len(self.data)
        at = schema.HEADER_POSITION
        if size < _HEADER_END:
            raise fail(INVALID_ARGUMENT, "%dB are too few for a .ptd file" % size, "data file")
        if bytes(self.data[at : at + 4]) != schema.HEADER_MAGIC:
            raise fail(NOT_FOUND, "no header FH01: not a .ptd file", "data file")
        if size > LIMIT:
            raise fail(NOT_SUPPORTED, "data files above 128 MiB")
        check_alignment(self.data, "data file")
        head = _picotorch.Reader(self.data)
        if head.u32_at(at + schema.HEADER_LENGTH) < schema.HEADER_MINIMUM_LENGTH:
            raise bad_data("header is too short", "data file")
        if bytes(self.data[4:8]) != schema.FILE_IDENTIFIER:
            raise bad_data("no file identifier FT01", "data file")
        start = head.u64_at(at + schema.HEADER_FLATBUFFER_OFFSET)
        length = head.u64_at(at + schema.HEADER_FLATBUFFER_SIZE)
        if not (0 <= start <= size and 0 <= length <= size - start):
            raise fail(INVALID_ARGUMENT, "tables at byte %d of %d" % (start, size), "data file")
        self.reader = _picotorch.Reader(self.data[: start + length])
        if verification == STRICT:
            position = self.reader.verify(_picotorch.FLAT_TENSOR)
            if position >= 0:
                raise bad_data("structure is broken", "byte", position)
        self._read_root(head.u64_at(at + schema.HEADER_SEGMENT_BASE),
                        head.u64_at(at + schema.HEADER_SEGMENT_DATA_SIZE))

    def _read_root(self, base, length):
        reader = self.reader
        root = reader.root()
        version = reader.u32(root, schema.FLAT_TENSOR_VERSION)
        if version != 0:
            raise fail(NOT_SUPPORTED, "schema version %d" % version, "data file")
        if not (0 <= base <= len(self.data) and 0 <= length <= len(self.data) - base):
            raise bad_data("segments of %dB at byte %d of %d" % (length, base, len(self.data)),
                           "data file")
        self.segment_base = base
        self.segments = reader.table(root, schema.FLAT_TENSOR_SEGMENTS)
        self.named_data = reader.table(root, schema.FLAT_TENSOR_NAMED_DATA)
        if not self.segments or not self.named_data:
            raise bad_data("has no segments or no named data", "data file")
        for i in range(reader.length(self.segments)):
            segment = reader.item(self.segments, i)
            offset = reader.i64(segment, schema.DATA_SEGMENT_OFFSET)
            size = reader.i64(segment, schema.DATA_SEGMENT_SIZE)
            if not (0 <= offset <= length and 0 <= size <= length - offset):
                raise bad_data("lies outside the data file", "segment", i)
        for i in range(self.get_num_keys()):
            self._check_key(i)

    def _check_key(self, i):
        reader = self.reader
        item = reader.item(self.named_data, i)
        if not reader.table(item, schema.NAMED_DATA_KEY):
            raise bad_data("has no key", "named data", i)
        if reader.u32(item, schema.NAMED_DATA_SEGMENT_INDEX) >= reader.length(self.segments):
            raise bad_data("there is no such segment", "named data", i)

    # ---- for load, with the heap locked

    def find(self, reader, string):
        """Index of the key that stands at a position of another file; -1 when there is none.

        It starts behind the one that was found last: programs name them in the order of the file.
        """
        first = self.next_key
        count = self.get_num_keys()
        found = self.reader.find(self.named_data, schema.NAMED_DATA_KEY, reader, string, first)
        self.visited = count
        if found >= 0:
            self.visited = found - first + 1 if found >= first else found - first + 1 + count
            self.next_key = found + 1
        return found

    def layout(self, index):
        """Position of the tensor layout of key `index`; 0 when it is no tensor."""
        return self.reader.table(self.reader.item(self.named_data, index),
                                 schema.NAMED_DATA_TENSOR_LAYOUT)

    def layout_dtype(self, layout):
        return self.reader.u8(layout, schema.TENSOR_LAYOUT_SCALAR_TYPE)

    def layout_sizes(self, layout):
        """Position of the vector of sizes of a tensor layout."""
        return self.reader.table(layout, schema.TENSOR_LAYOUT_SIZES)

    def layout_dim_order(self, layout):
        return self.reader.table(layout, schema.TENSOR_LAYOUT_DIM_ORDER)

    def _segment(self, index):
        reader = self.reader
        return reader.item(self.segments, reader.u32(reader.item(self.named_data, index),
                                                     schema.NAMED_DATA_SEGMENT_INDEX))

    def position(self, index):
        """Where in the file the data of key `index` starts."""
        return self.segment_base + self.reader.i64(self._segment(index),
                                                   schema.DATA_SEGMENT_OFFSET)

    def size(self, index):
        """Bytes of the data of key `index`."""
        return self.reader.i64(self._segment(index), schema.DATA_SEGMENT_SIZE)

    # ---- for everybody

    def get_num_keys(self):
        return self.reader.length(self.named_data)

    def get_key(self, index):
        """Raises InvalidArgument when there are not as many."""
        if not 0 <= index < self.get_num_keys():
            raise fail(INVALID_ARGUMENT, "there are %d" % self.get_num_keys(), "key", index)
        reader = self.reader
        return text_at(self.data, reader, reader.table(reader.item(self.named_data, index),
                                                       schema.NAMED_DATA_KEY))

    def keys(self):
        return [self.get_key(i) for i in range(self.get_num_keys())]

    def index(self, key):
        """Index of a key. Raises NotFound. Works with the heap locked, as long as it finds it."""
        reader = self.reader
        for i in range(self.get_num_keys()):
            if reader.equals(reader.table(reader.item(self.named_data, i), schema.NAMED_DATA_KEY),
                             key):
                return i
        raise fail(NOT_FOUND, "there is no such key", key, source=self)

    def explain(self, error):
        return "the data file has " + ", ".join(self.keys())

    def get_tensor_layout(self, key):
        """TensorLayout of a key. Raises NotFound, InvalidExternalData for data that is no tensor,
        InvalidArgument for a layout that is none."""
        layout = self.layout(self.index(key))
        if not layout:
            raise bad_data("is no tensor", key)
        return TensorLayout(self.reader, layout)

    def get_data(self, key, view=None):
        """A read-only memoryview of the data of a key where it lies. `view`: see bytes_at. Raises
        NotFound."""
        index = self.index(key)
        return bytes_at(self.data, self.position(index), self.size(index), view, False)

    def __repr__(self):
        return "<FlatTensorDataMap %dB: %s>" % (len(self.data), ", ".join(self.keys()))


def _check_keys(files):
    """Raises InvalidArgument for one that there is twice."""
    seen = set()
    for file in files:
        for i in range(file.get_num_keys()):
            key = file.get_key(i)
            if key in seen:
                raise fail(INVALID_ARGUMENT, "is in two of the data maps", key)
            seen.add(key)


class MergedDataMap:
    """Several data maps as one. Made by MergedDataMap.load([map, map ...])."""

    def __init__(self, files):
        self.files = files

    @staticmethod
    def load(data_maps):
        """Raises InvalidArgument when no map has a key, or two have the same; MemoryAllocationFailed
        when there are too many keys for the heap."""
        files = [file for data_map in data_maps for file in data_map.files]
        if not [file for file in files if file.get_num_keys()]:
            raise fail(INVALID_ARGUMENT, "there is no key in them", "data maps")
        try:
            _check_keys(files)
        except MemoryError:
            raise fail(MEMORY_ALLOCATION_FAILED, "the heap has no room for so many keys",
                       "data maps") from None
        return MergedDataMap(files)

    def get_num_keys(self):
        return sum([file.get_num_keys() for file in self.files])

    def get_key(self, index):
        """Raises InvalidArgument when there are not as many."""
        left = index
        for file in self.files:
            if 0 <= left < file.get_num_keys():
                return file.get_key(left)
            left -= file.get_num_keys()
        raise fail(INVALID_ARGUMENT, "there are %d" % self.get_num_keys(), "key", index)

    def keys(self):
        return [self.get_key(i) for i in range(self.get_num_keys())]

    def _file(self, key):
        for file in self.files:
            if key in file.keys():
                return file
        raise fail(NOT_FOUND, "there is no such key", key, source=self)

    def explain(self, error):
        return "the data files have " + ", ".join(self.keys())

    def get_tensor_layout(self, key):
        return self._file(key).get_tensor_layout(key)

    def get_data(self, key, view=None):
        return self._file(key).get_data(key, view)

    def __repr__(self):
        return "<MergedDataMap: %s>" % ", ".join(self.keys())
