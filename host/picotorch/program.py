"""Open a program: the bytes of a .pte file.

A loader provides the whole file as one buffer, which is never moved: a program in flash or ROM is used
in place.
"""

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    TEXTS,
    Error,
    fail,
    library_error,
    need,
    text_of,
)
from .memory import buffer_size
from .schema import SUBJECT_METHOD_NAME

STRICT = 1  # structure of the whole file
MINIMAL = 0  # header only: for trusted files


class BufferDataLoader:
    """A program, or external weights, in memory: bytes, bytearray or memoryview, aligned to 8 bytes."""

    def __init__(self, buffer):
        buffer_size(buffer, "program")
        self.buffer = buffer

    def size(self):
        """Return the bytes of the program."""
        return buffer_size(self.buffer, "program")

    def explain(self, error):
        """Return the file, if it has a name."""
        return ""

    def __repr__(self):
        return "<BufferDataLoader %dB>" % self.size()


class Program:
    """A program. Made by Program.load(loader)."""

    texts = TEXTS

    def __init__(self, loader):
        self.loader = loader
        self.library = _picotorch.Program(self)
        self._requested = ""  # name of the requested method
        self._plans = None  # numbers of the methods by name, after the first request

    @staticmethod
    def load(loader, verification=STRICT):
        """Open the loader's file. Raises InvalidProgram, InvalidArgument, InvalidType."""
        try:
            buffer = loader.buffer
        except AttributeError:
            need(loader, "buffer", "loader")
        if verification is not STRICT and verification is not MINIMAL:
            raise fail(INVALID_ARGUMENT, "does not exist; give STRICT or MINIMAL", "verification")
        program = Program(loader)
        program.library.open(buffer, verification)
        return program

    def on_error(self, code, subject, index, argument, requested, available, what):
        """Raise the error that the library reports."""
        name = self._requested if subject == SUBJECT_METHOD_NAME else None
        raise library_error(code, subject, index, argument, requested, available, what,
                            self if name is not None else None, name)

    # ---- methods

    def num_methods(self):
        """Return the number of methods."""
        return self.library.num_methods()

    def get_method_name(self, index):
        """Return the name of method number `index`. Raises NotFound if there are fewer methods."""
        return text_of(self.library.method_name(index))

    @property
    def method_names(self):
        """Return the names of the methods, in the order of their numbers."""
        return [self.get_method_name(i) for i in range(self.num_methods())]

    def plan(self, name):
        """Return the number of the method of this name. Raises NotFound. Works with the heap locked."""
        self._requested = name
        return self.library.find(name)

    def find_plan(self, name):
        """Return the number of the method of this name, or -1. Allocates."""
        need(name, str, "name")
        if self._plans is None:
            self._plans = {}
            for i in range(self.num_methods() - 1, -1, -1):  # the first one of a name stays
                self._plans[self.get_method_name(i)] = i
        return self._plans.get(name, -1)

    def method_meta(self, name="forward"):
        """Return the MethodMeta of a method. Raises NotFound."""
        from .method_meta import MethodMeta

        return MethodMeta(self, self.plan(name))

    def load_method(self, name, manager, pack_weights=False, data_map=None, event_tracer=None):
        """Return a new Method, loaded; see Method.load."""
        from .method import Method

        method = Method(manager)
        method.load(self, name, pack_weights, data_map, event_tracer)
        return method

    def explain(self, error):
        """Return the text that follows the requested name in NotFound."""
        return "the program has " + ", ".join(self.method_names)

    # ---- named data

    def get_named_data_map(self):
        """Return a new NamedDataMap of the program's named data."""
        return NamedDataMap(self.library)

    def get_named_data(self, key, view=None):
        """Return the data of a key, as NamedDataMap.get_data does."""
        return self.get_named_data_map().get_data(key, view)

    def __repr__(self):
        try:
            return "<Program %dB: %s>" % (self.loader.size(), ", ".join(self.method_names))
        except Error:
            return "<Program %dB>" % self.loader.size()


class NamedDataMap:
    """The named data of a program, then of its data files.

    Made by Program.get_named_data_map, and for the init of backends.
    """

    def __init__(self, library=None, data_map=None):
        self.library = library
        self.data_map = data_map

    def get_num_keys(self):
        """Return the number of keys of the program and its data files."""
        own = self.library.num_keys()
        return own if self.data_map is None else own + self.data_map.get_num_keys()

    def get_key(self, index):
        """Return the key of entry `index`. Raises InvalidArgument."""
        own = self.library.num_keys()
        need(index, int, "index")
        if self.data_map is None or index < own:
            return text_of(self.library.key(index))
        return self.data_map.get_key(index - own)

    def get_data(self, key, view=None):
        """Return a read-only memoryview of the data of a key, in place.

        view: a memoryview of the caller's, which is pointed at the data and returned under MicroPython:
        that needs no heap. Raises NotFound; InvalidArgument if the program names a segment that it does
        not have, or an entry has no key.
        """
        index = self.library.find_key(key)
        if index >= 0:
            return self.library.data(index, view)
        if self.data_map is None:
            raise fail(NOT_FOUND, "there is no named data of this key; give one of keys()",
                       key or "key")
        return self.data_map.get_data(key, view)

    def keys(self):
        """Return the keys as a new list."""
        return [self.get_key(i) for i in range(self.get_num_keys())]
