"""Lists among a method's values."""

import _picotorch

from .errors import INVALID_STATE, fail
from .tensor import Tensor


class ValueList:
    """A list among a method's values: len, [i], iteration. An item is read when it is asked for.

    With the heap locked one item can be held at a time: it is put into `kept`.
    """

    def __init__(self, method, kept):
        self._method = method
        self._kept = kept
        self._value = -1  # which of the method's values it is
        self._length = 0
        self._load = 0  # of the method, that the items are part of

    def _point(self, value, length):
        """Shows value number `value` of the method; for the library."""
        self._value = value
        self._length = length
        self._load = self._method.loads
        return self

    def clear(self):
        """Shows nothing any more."""
        self._length = 0

    def __len__(self):
        if self._length and self._method.loads != self._load:
            raise fail(INVALID_STATE, "is of another load", "list", remedy="call get_output again")
        return self._length

    def __getitem__(self, i):
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError
        if not _picotorch.heap_locked():
            self._kept.tensor = Tensor()
        return self._method.library.item(self._value, i, self._kept)

    def __repr__(self):
        return repr([item for item in self])
