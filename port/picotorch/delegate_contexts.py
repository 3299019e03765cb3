"""What a backend is given besides its arguments: memories, compile specs, processed data.

Everything that returns bytes takes `view`, a memoryview of the backend's own, made at set-up
(`memoryview(bytearray(1))`). Under MicroPython it is pointed to the bytes and returned, which needs no
heap; without it, and always under CPython, a new one is made.
"""

from .errors import INVALID_STATE, fail, text_of
from .memory import ALIGNMENT
from .program import NamedDataMap


class BackendAllocator:
    """Hands out bytes of a method's pool (in init; zeros, they stay the delegate's until unload) or of
    the temp memory (in execute; undefined contents, until it returns)."""

    def __init__(self, allocate):
        self._allocate = allocate
        self.is_open = True

    def allocate(self, size, alignment=ALIGNMENT, view=None):
        """A memoryview of `size` bytes. Raises MemoryAllocationFailed with all the bytes that the
        method needs of this memory so far, InvalidArgument for an alignment that is no power of two or
        that the memory does not have, InvalidState for memory of the pool after init."""
        if not self.is_open:
            raise fail(INVALID_STATE, "hands out memory in init only", "method pool")
        return self._allocate(size, alignment, view)


class BackendInitContext:
    """What init may use. One is made with each Method; it is valid until init returns."""

    def __init__(self, library):
        self._library = library
        self._method_name = None
        self._allocator = BackendAllocator(library.allocate)
        self._named_data = DelegateDataMap()

    def bind(self, program, data_map, method_name):
        self._named_data.bind(program, data_map)
        self._method_name = method_name

    def begin(self):
        self._allocator.is_open = True

    def end(self):
        self._allocator.is_open = False

    def get_runtime_allocator(self):
        """The method's pool, a BackendAllocator: what is allocated counts as the method's."""
        return self._allocator

    def get_method_name(self):
        return self._method_name

    def get_named_data_map(self):
        """The named data of the program and of the data files, a DelegateDataMap."""
        return self._named_data

    def ask_temp(self, size):
        """Says at load that execute will allocate `size` bytes of temp memory: where there are not so
        many, load fails rather than execute. Raises InvalidArgument."""
        self._library.ask_temp(size)


class BackendExecutionContext:
    """What execute may use, until it returns. One is made with each Method."""

    def __init__(self, library, arguments):
        self._arguments = arguments
        self._method_name = None
        self._allocator = BackendAllocator(library.allocate_temp)

    def bind(self, method_name):
        self._method_name = method_name

    def get_temp_allocator(self):
        """The temp memory, a BackendAllocator."""
        return self._allocator

    def allocate(self, size, alignment=ALIGNMENT, view=None):
        """From the temp allocator."""
        return self._allocator.allocate(size, alignment, view)

    def resize_tensor(self, tensor, sizes):
        """Gives an argument of dynamic shape, an output, other sizes: a buffer of int32, array("i") or
        raw_sizes() of another Tensor. Raises NotSupported for another rank and above the bound,
        InvalidArgument for anything else."""
        self._arguments.resize(tensor, sizes)

    def get_method_name(self):
        return self._method_name


class DelegateDataMap:
    """The named data that a delegate finds: the program's, then that of the data files."""

    def __init__(self):
        self._program_map = NamedDataMap()
        self._data_map = None

    def bind(self, program, data_map):
        """`data_map` may be None."""
        self._program_map.program = program
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


class FreeableBuffer:
    """The processed data of a delegate, in place in the program, until it is freed."""

    def __init__(self):
        self._view = memoryview(bytearray(1))
        self._is_free = True

    def hold(self, library, plan, index):
        """Holds that of delegate `index` of a method."""
        self._view = library.processed(plan, index, self._view)
        self._is_free = False

    def data(self):
        """A read-only memoryview. Raises InvalidState after free."""
        if self._is_free:
            raise fail(INVALID_STATE, "was freed", "processed data")
        return self._view

    def size(self):
        """Bytes; 0 after free."""
        return 0 if self._is_free else len(self._view)

    def free(self):
        """The backend needs the data no longer."""
        self._is_free = True


class CompileSpec:
    """key: str; value: read-only memoryview."""

    def __init__(self, key, value):
        self.key = key
        self.value = value

    def __repr__(self):
        return "<CompileSpec %s: %dB>" % (self.key, len(self.value))


class CompileSpecs:
    """The compile specs of a delegate, in order."""

    def __init__(self):
        self._library = None
        self._plan = 0
        self._index = 0

    def bind(self, program, plan, index):
        self._library = program.library
        self._plan = plan
        self._index = index

    def __len__(self):
        return self._library.num_specs(self._plan, self._index)

    def __getitem__(self, i):
        """A new CompileSpec. Raises IndexError."""
        if not 0 <= i < len(self):
            raise IndexError
        key, value = self._library.spec(self._plan, self._index, i)
        return CompileSpec(text_of(key), value)

    def get(self, key, view=None):
        """The value of the first spec of this key, a read-only memoryview, or None. Needs no heap."""
        return self._library.find_spec(self._plan, self._index, key, view)
