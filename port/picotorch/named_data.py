"""Named data: bytes of a program that have a key, the weights of a delegate for instance."""

from .errors import INVALID_ARGUMENT, NOT_FOUND, fail
from .schema import NAMED_DATA_KEY, NAMED_DATA_SEGMENT_INDEX, PROGRAM_NAMED_DATA


class NamedDataMap:
    """The named data of a program; made by Program.get_named_data_map."""

    def __init__(self):
        self.program = None
        self._entries = 0

    def bind(self, program):
        """Shows those of a program from now on."""
        self.program = program
        self._entries = program.reader.table(program.root, PROGRAM_NAMED_DATA)

    def get_num_keys(self):
        return self.program.reader.length(self._entries)

    def _key(self, index):
        """Position of the key of an entry. Raises InvalidArgument."""
        reader = self.program.reader
        if not 0 <= index < self.get_num_keys():
            raise fail(INVALID_ARGUMENT, "there is no such", "named data", index)
        key = reader.table(reader.item(self._entries, index), NAMED_DATA_KEY)
        if key == 0:
            raise fail(INVALID_ARGUMENT, "has no key", "named data", index)
        return key

    def get_key(self, index):
        """The key of entry `index`. Raises InvalidArgument."""
        return self.program.string(self._key(index))

    def find(self, key):
        """Index of a key, or -1. Raises InvalidArgument for an entry that has none."""
        for i in range(self.get_num_keys()):
            if self.program.reader.equals(self._key(i), key):
                return i
        return -1

    def get_data(self, key, view=None):
        """A read-only memoryview of the bytes of this key, where they lie in the program.

        view: a memoryview of the caller's own, which is pointed there under MicroPython: that needs no
        heap. Raises NotFound; InvalidArgument where the program names a segment that it does not have.
        """
        index = self.find(key)
        if index < 0:
            raise fail(NOT_FOUND, "there is no named data of this key", key)
        return self.get_item(index, view)

    def get_item(self, index, view=None):
        """The same of entry `index`."""
        reader = self.program.reader
        segment = reader.u32(reader.item(self._entries, index), NAMED_DATA_SEGMENT_INDEX)
        if segment >= reader.length(self.program.segments):
            raise fail(INVALID_ARGUMENT, "there is no such segment", "named data", index)
        return self.program.segment(segment, view)

    def keys(self):
        return [self.get_key(i) for i in range(self.get_num_keys())]

    def __repr__(self):
        return "<NamedDataMap %s>" % ", ".join(self.keys())


class DelegateDataMap:
    """The named data that a delegate finds: the program's, then that of the data files."""

    def __init__(self):
        self._program_map = NamedDataMap()
        self._data_map = None

    def bind(self, program, data_map):
        """`data_map` may be None."""
        self._program_map.bind(program)
        self._data_map = data_map

    def get_num_keys(self):
        files = 0 if self._data_map is None else self._data_map.get_num_keys()
        return self._program_map.get_num_keys() + files

    def get_key(self, index):
        """Raises InvalidArgument."""
        own = self._program_map.get_num_keys()
        if self._data_map is None or index < own:
            return self._program_map.get_key(index)
        return self._data_map.get_key(index - own)

    def get_data(self, key, view=None):
        """As NamedDataMap.get_data."""
        if self._data_map is None or self._program_map.find(key) >= 0:
            return self._program_map.get_data(key, view)
        return self._data_map.get_data(key, view)
