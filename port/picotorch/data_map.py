"""External weights: .ptd files, with the data of tensors that a program leaves out.

    weights = FlatTensorDataMap.load(FileDataLoader("weights.ptd"))
    method.load(program, "forward", data_map=weights)

As with a program, no byte of the file is trusted, and its data is used where it lies: a file in flash
or ROM is not copied, but for the initial values of mutable buffers.
"""

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    fail,
    library_error,
    text_of,
)
from .program import STRICT
from .schema import SUBJECT_KEY
from .tensor import TensorInfo


class TensorLayout(TensorInfo):
    """dtype, sizes and dim order of a tensor in a .ptd file."""

    def __repr__(self):
        return "<TensorLayout %s %s %dB>" % (self.dtype, list(self._sizes), self._nbytes)


class FlatTensorDataMap:
    """The named data of one .ptd file. Made by FlatTensorDataMap.load(loader)."""

    def __init__(self, loader):
        self.loader = loader
        self.library = _picotorch.Data(self._fail)
        self.files = [self]
        self.libraries = [self.library]
        self._asked = None  # key that was asked for

    @staticmethod
    def load(loader, verification=STRICT):
        """Opens the loader's file. Raises NotFound for what is no .ptd file, InvalidExternalData,
        InvalidArgument, InvalidType, NotSupported."""
        data_map = FlatTensorDataMap(loader)
        data_map.library.open(loader.buffer, verification)
        return data_map

    def _fail(self, code, subject, index, argument, requested, available, what):
        raise library_error(code, subject, index, argument, requested, available, what, self.loader,
                            self._asked if subject == SUBJECT_KEY else None)

    def get_num_keys(self):
        return self.library.num_keys()

    def get_key(self, index):
        """Raises InvalidArgument when there are not as many."""
        if not 0 <= index < self.get_num_keys():
            raise fail(INVALID_ARGUMENT, "there are %d" % self.get_num_keys(), "key", index)
        return text_of(self.library.key(index))

    def keys(self):
        return [self.get_key(i) for i in range(self.get_num_keys())]

    def index(self, key):
        """Index of a key. Raises NotFound. Works with the heap locked, as long as it finds it."""
        self._asked = key
        index = self.library.find_key(key)
        if index < 0:
            raise fail(NOT_FOUND, "there is no such key", key, source=self)
        return index

    def explain(self, error):
        return "the data file has " + ", ".join(self.keys())

    def get_tensor_layout(self, key):
        """TensorLayout of a key. Raises NotFound, InvalidExternalData for data that is no tensor,
        InvalidArgument for a layout that is none."""
        return TensorLayout(self.library.tensor(self.index(key)))

    def get_data(self, key, view=None):
        """A read-only memoryview of the data of a key where it lies. `view`: see bytes_at. Raises
        NotFound."""
        return self.library.data(self.index(key), view)

    def __repr__(self):
        return "<FlatTensorDataMap %dB: %s>" % (self.loader.size(), ", ".join(self.keys()))


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
        self.libraries = [file.library for file in files]

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
