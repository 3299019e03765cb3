"""Read external weights: .ptd files, with the data of tensors that are not in the program.

    weights = FlatTensorDataMap.load(FileDataLoader("weights.ptd"))
    method.load(program, "forward", data_map=weights)

As with a program, no byte of the file is trusted, and its data is used in place: a file in flash or ROM
is not copied, except the initial values of mutable buffers.
"""

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    TEXTS,
    check_index,
    fail,
    library_error,
    need,
    text_of,
)
from .program import STRICT
from .schema import SUBJECT_KEY
from .tensor import TensorInfo


class TensorLayout(TensorInfo):
    """dtype, sizes and dim order of a tensor in a .ptd file."""


class DataMap:
    """The named data of .ptd files, `files`."""

    texts = TEXTS

    def __init__(self, files):
        self.files = files
        self.libraries = tuple([file.library for file in files])

    def get_num_keys(self):
        """Return the number of keys."""
        return sum([library.num_keys() for library in self.libraries])

    def get_key(self, index):
        """Return key number `index`. Raises InvalidArgument if there are fewer keys."""
        check_index(index, self.get_num_keys(), "key")
        for library in self.libraries:
            if index < library.num_keys():
                break
            index -= library.num_keys()
        return text_of(library.key(index))

    def keys(self):
        """Return the keys as a new list."""
        return [self.get_key(i) for i in range(self.get_num_keys())]

    def get_tensor_layout(self, key):
        """Return the TensorLayout of a key.

        Raises NotFound, InvalidExternalData for data that is not a tensor, InvalidArgument for an
        invalid layout.
        """
        library = self._find(key)
        return TensorLayout(library.tensor(library.find_key(key)))

    def get_data(self, key, view=None):
        """Return a read-only memoryview of the data of a key, in place.

        `view`: see bytes_at. Raises NotFound. Works with the heap locked if the key exists.
        """
        library = self._find(key)
        return library.data(library.find_key(key), view)

    def _find(self, key):
        """Return the library's object for the file that has a key. Raises NotFound."""
        for file in self.files:
            file.requested_key = key
            if file.library.find_key(key) >= 0:
                return file.library
        raise fail(NOT_FOUND, "is none of the keys; give one of them", key or "key", source=self)

    def explain(self, error):
        """Return the keys, for the text of NotFound."""
        return ", ".join(self.keys())


class FlatTensorDataMap(DataMap):
    """The named data of one .ptd file. Made by FlatTensorDataMap.load(loader)."""

    def __init__(self, loader):
        self.loader = loader
        self.library = _picotorch.Data(self)
        self.requested_key = None  # the key
        super().__init__([self])

    @staticmethod
    def load(loader, verification=STRICT):
        """Open the loader's file.

        Raises NotFound if it is not a .ptd file, InvalidExternalData, InvalidArgument, InvalidType,
        NotSupported.
        """
        need(verification, int, "verification")
        need(loader, "buffer", "loader")
        data_map = FlatTensorDataMap(loader)
        data_map.library.open(loader.buffer, verification)
        return data_map

    def on_error(self, code, subject, index, argument, requested, available, what):
        """Raise the error that the library reports."""
        raise library_error(code, subject, index, argument, requested, available, what, self.loader,
                            self.requested_key if subject == SUBJECT_KEY else None)

    def __repr__(self):
        return "<FlatTensorDataMap %dB: %s>" % (self.loader.size(), ", ".join(self.keys()))


class MergedDataMap(DataMap):
    """Several data maps as one. Made by MergedDataMap.load([map, map ...])."""

    @staticmethod
    def load(data_maps):
        """Merge data maps.

        Raises InvalidArgument if no map has a key or two have the same, MemoryAllocationFailed if the
        heap has no room for the keys.
        """
        need(data_maps, list, "data_maps")
        for data_map in data_maps:
            need(data_map, DataMap, "data_maps")
        merged = MergedDataMap([file for data_map in data_maps for file in data_map.files])
        if not merged.get_num_keys():
            raise fail(INVALID_ARGUMENT, "have no key; give those of other files", "data maps")
        try:
            seen = {}
            for key in merged.keys():
                if key in seen:
                    raise fail(INVALID_ARGUMENT, "is in two of the data maps; leave one of them out",
                               key)
                seen[key] = True
        except MemoryError:
            raise fail(MEMORY_ALLOCATION_FAILED, "too many keys for the heap; merge fewer",
                       "data maps") from None
        return merged
