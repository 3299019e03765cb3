"""What a backend is given besides its arguments: memories, compile specs, processed data.

Everything that returns bytes takes `view`, a memoryview of the backend's own, made at set-up
(`memoryview(bytearray(1))`). Under MicroPython it is pointed to the bytes and returned, which needs no
heap; without it, and always under CPython, a new one is made.
"""

import _picotorch

from .errors import INVALID_ARGUMENT, INVALID_STATE, fail, out_of_memory
from .memory import ALIGNMENT, LIMIT, bytes_at
from .named_data import DelegateDataMap
from .schema import COMPILE_SPEC_KEY, COMPILE_SPEC_VALUE


def _check_size(size):
    """Raises InvalidArgument."""
    if size < 0 or size > LIMIT:
        raise fail(INVALID_ARGUMENT, "is negative or more than 128 MiB", "size of an allocation")


class BackendAllocator:
    """Hands out bytes of a method's pool (in init; zeros, they stay the delegate's until unload) or of
    the temp memory (in execute; undefined contents, until it returns)."""

    def __init__(self, is_pool):
        self._is_pool = is_pool
        self._allocator = None
        self._base = 0

    def bind(self, allocator, base):
        """Works from now on in this MemoryAllocator, or None; what the method has there starts at
        `base`."""
        self._allocator = allocator
        self._base = base

    def end(self):
        """Hands out nothing any more."""
        self._allocator = None

    def allocate(self, size, alignment=ALIGNMENT, view=None):
        """A memoryview of `size` bytes. Raises MemoryAllocationFailed with all the bytes that the
        method needs of this memory so far, InvalidArgument for an alignment that is no power of two or
        that the memory does not have, InvalidState for memory of the pool after init."""
        _check_size(size)
        if alignment <= 0 or alignment & (alignment - 1):
            raise fail(INVALID_ARGUMENT, "is no power of two", "alignment of an allocation")
        allocator = self._allocator
        if allocator is None:
            if self._is_pool:
                raise fail(INVALID_STATE, "hands out memory in init only", "method pool")
            raise out_of_memory("temp memory", -1, size, 0, "hand over a temp allocator")
        alignment = max(alignment, ALIGNMENT)
        start = (allocator.used + alignment - 1) & -alignment
        if start + size > allocator.size:
            raise out_of_memory(allocator.name, -1, start + size - self._base,
                                allocator.size - self._base, "make it larger")
        found = bytes_at(allocator.buffer, start, size, view)
        if _picotorch.misaligned(found, alignment):
            raise fail(INVALID_ARGUMENT, "is not aligned as an allocation asks", allocator.name)
        allocator.used = start + size
        if self._is_pool:
            _picotorch.clear(found)
        return found


class BackendInitContext:
    """What init may use. One is made with each Method; it is valid until init returns."""

    def __init__(self, context):
        self._context = context
        self._method_name = None
        self._allocator = BackendAllocator(True)
        self._named_data = DelegateDataMap()

    def bind(self, program, data_map, method_name, allocator, base):
        self._named_data.bind(program, data_map)
        self._method_name = method_name
        self._allocator.bind(allocator, base)

    def end(self):
        self._allocator.end()

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
        _check_size(size)
        self._context.ask_scratch(size)


class BackendExecutionContext:
    """What execute may use, until it returns. One is made with each Method."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._method_name = None
        self._allocator = BackendAllocator(False)

    def bind(self, method_name, allocator):
        self._method_name = method_name
        self._allocator.bind(allocator, 0)

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


class FreeableBuffer:
    """The processed data of a delegate, in place in the program, until it is freed."""

    def __init__(self):
        self._view = memoryview(bytearray(1))
        self._is_free = True

    def hold(self, program, reference):
        """Holds the data that a BackendDelegateDataReference of the program names."""
        self._view = program.delegate_data(reference, self._view)
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
        self._program = None
        self._vector = 0

    def hold(self, program, vector):
        self._program = program
        self._vector = vector

    def __len__(self):
        return self._program.reader.length(self._vector)

    def __getitem__(self, index):
        """A new CompileSpec. Raises IndexError."""
        reader = self._program.reader
        if not 0 <= index < len(self):
            raise IndexError
        spec = reader.item(self._vector, index)
        return CompileSpec(self._program.string(reader.table(spec, COMPILE_SPEC_KEY)),
                           self._program.bytes_of(reader.table(spec, COMPILE_SPEC_VALUE)))

    def get(self, key, view=None):
        """The value of the first spec of this key, a read-only memoryview, or None. Needs no heap."""
        reader = self._program.reader
        for i in range(len(self)):
            spec = reader.item(self._vector, i)
            text = reader.table(spec, COMPILE_SPEC_KEY)
            if text and reader.equals(text, key):
                return self._program.bytes_of(reader.table(spec, COMPILE_SPEC_VALUE), view)
        return None
