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
    TEXTS,
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


class DataMap:
    """The named data of some .ptd files, `files`."""

    _texts = TEXTS

    def __init__(self, files):
        self.files = files
        self.libraries = tuple([file.library for file in files])

    def get_num_keys(self):
        return sum([library.num_keys() for library in self.libraries])

    def get_key(self, index):
        """Raises InvalidArgument when there are not as many."""
        left = index
        for library in self.libraries:
            if 0 <= left < library.num_keys():
                return text_of(library.key(left))
            left -= library.num_keys()
        raise fail(INVALID_ARGUMENT, "there are %d" % self.get_num_keys(), "key", index)

    def keys(self):
        return [self.get_key(i) for i in range(self.get_num_keys())]

    def get_tensor_layout(self, key):
        """TensorLayout of a key. Raises NotFound, InvalidExternalData for data that is no tensor,
        InvalidArgument for a layout that is none."""
        library = self._find(key)
        return TensorLayout(library.tensor(library.find_key(key)))

    def get_data(self, key, view=None):
        """A read-only memoryview of the data of a key where it lies. `view`: see bytes_at. Raises
        NotFound. Works with the heap locked, as long as it finds it."""
        library = self._find(key)
        return library.data(library.find_key(key), view)

    def _find(self, key):
        """The library's object of the file that has a key."""
        for file in self.files:
            file.asked = key
            if file.library.find_key(key) >= 0:
                return file.library
        raise fail(NOT_FOUND, "there is no such key", key, source=self)

    def explain(self, error):
        are = "file has " if len(self.files) == 1 else "files have "
        return "the data " + are + ", ".join(self.keys())


class FlatTensorDataMap(DataMap):
    """The named data of one .ptd file. Made by FlatTensorDataMap.load(loader)."""

    def __init__(self, loader):
        self.loader = loader
        self.library = _picotorch.Data(self)
        self.asked = None  # the key
        super().__init__([self])

    @staticmethod
    def load(loader, verification=STRICT):
        """Opens the loader's file. Raises NotFound for what is no .ptd file, InvalidExternalData,
        InvalidArgument, InvalidType, NotSupported."""
        data_map = FlatTensorDataMap(loader)
        data_map.library.open(loader.buffer, verification)
        return data_map

    def _fail(self, code, subject, index, argument, requested, available, what):
        raise library_error(code, subject, index, argument, requested, available, what, self.loader,
                            self.asked if subject == SUBJECT_KEY else None)

    def __repr__(self):
        return "<FlatTensorDataMap %dB: %s>" % (self.loader.size(), ", ".join(self.keys()))


class MergedDataMap(DataMap):
    """Several data maps as one. Made by MergedDataMap.load([map, map ...])."""

    @staticmethod
    def load(data_maps):
        """Raises InvalidArgument when no map has a key, or two have the same; MemoryAllocationFailed
        when there are too many keys for the heap."""
        merged = MergedDataMap([file for data_map in data_maps for file in data_map.files])
        if not merged.get_num_keys():
            raise fail(INVALID_ARGUMENT, "there is no key in them", "data maps")
        try:
            seen = {}
            for key in merged.keys():
                if key in seen:
                    raise fail(INVALID_ARGUMENT, "is in two of the data maps", key)
                seen[key] = True
        except MemoryError:
            raise fail(MEMORY_ALLOCATION_FAILED, "the heap has no room for so many keys",
                       "data maps") from None
        return merged

    def __repr__(self):
        return "<MergedDataMap: %s>" % ", ".join(self.keys())
