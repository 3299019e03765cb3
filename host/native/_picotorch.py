"""The `_picotorch` module of CPython: what port/module is under MicroPython, on the same C.

Positions and sizes are bytes. Numbers read from a file are clamped to the small ints of
MicroPython, +-(2**30 - 1), so that both see the same.
"""

import itertools
import math
import struct
import threading
import weakref

from _picotorch_c import ffi, lib

PROGRAM, POOL, PLANNED, MEMORIES = 1, 2, 3, 32
SMALL_INT_MAX = 2**30 - 1
FLAT_TENSOR = lib.PT_FORMAT_FLAT_TENSOR
STACK_BYTES = 2048  # that stack_free has to give for load, execute, step and unload to begin
LIMIT = 2**27  # bytes that a reference reaches
INTERNAL = 0x01
NOT_READY = 0x02  # InvalidState
NO_STACK = -1  # instead of an error's code
EVENT_BYTES = ffi.sizeof("pt_event")
_read_u16 = struct.Struct("<H").unpack_from
_read_i32 = struct.Struct("<i").unpack_from
_read_u32 = struct.Struct("<I").unpack_from
_read_i64 = struct.Struct("<q").unpack_from
_NANOSECONDS = ffi.addressof(lib, "pt_nanoseconds")


def _address(buffer):
    return int(ffi.cast("uintptr_t", ffi.from_buffer(buffer)))


def misaligned(buffer, alignment):
    """True when the buffer does not start at a multiple of `alignment`."""
    if alignment <= 0:
        raise ValueError
    return memoryview(buffer).nbytes > 0 and _address(buffer) % alignment != 0


def view(view, buffer, offset, size, typecode, writable=True):
    """A memoryview of `size` bytes of a buffer, elements of `typecode`, one of bBhHiIqQfd; read-only
    where the buffer is or `writable` is false. MicroPython points `view` there instead. ValueError
    where the bytes lie outside."""
    data = memoryview(buffer).cast("B")
    if offset < 0 or size < 0 or offset + size > len(data) or size % struct.calcsize(typecode):
        raise ValueError
    return _typed(data[offset : offset + size], typecode, writable)


def _typed(data, typecode, writable):
    if not writable:
        data = data.toreadonly()
    return data.cast(typecode) if len(data) else memoryview(bytearray()).cast(typecode)


def heap_locked():
    """Whether nothing can be allocated now, as under MicroPython's heap_lock()."""
    return False


def new_float():
    """A float for Reader.number to put a value into while the heap is locked."""
    return 0.0


def new_string():
    """A string for Reader.string to put a text into while the heap is locked."""
    return ""


def stack_free():
    """Bytes of stack left until MicroPython refuses to call; here there are always enough."""
    return SMALL_INT_MAX


def nbytes(buffer):
    """Bytes of a buffer; -1 for what is no contiguous buffer, for a view that was released, and for
    references to Python's objects, which are no bytes to write."""
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):
        return -1
    return view.nbytes if view.c_contiguous and "O" not in view.format else -1


def typecode(buffer):
    """Typecode of a buffer's elements, as of the array module: the character's number. `l` and `L` are
    `i`, `q`, `I`, `Q` by their size; 0 for what is no number in the order of this machine's bytes, and
    for a view that was released."""
    try:
        view = memoryview(buffer)
    except ValueError:
        return 0
    order, code = view.format[:-1], view.format[-1]
    if order not in ("", "@", "=", "<"):
        return 0
    if code in "lL":
        code = {("l", 4): "i", ("l", 8): "q", ("L", 4): "I", ("L", 8): "Q"}[code, view.itemsize]
    return ord(code)


def readonly(buffer):
    """True for a buffer that cannot be written, and for what is no buffer."""
    try:
        return memoryview(buffer).readonly
    except (TypeError, ValueError):
        return True


def clear(buffer):
    """Makes all bytes of a buffer zero."""
    view = memoryview(buffer).cast("B")
    view[:] = bytes(len(view))


def clear_traceback(error):
    """Lets an exception that is raised again have no traceback of when it was raised before, which
    MicroPython would add to."""
    error.__traceback__ = None


def element_size(dtype):
    """Bytes of an element of a ScalarType; 0 for one that has no whole bytes."""
    return lib.pt_element_size(dtype) if 0 <= dtype < 256 else 0


def operator_count():
    return lib.pt_operator_count()


def _operator_text(text, number):
    if not 0 <= number < lib.pt_operator_count():
        raise ValueError
    return ffi.string(text(number)).decode()


def operator_name(number):
    return _operator_text(lib.pt_operator_name, number)


def operator_signature(number):
    return _operator_text(lib.pt_operator_signature, number)


def operator_arguments(number):
    """How many arguments the operator has, outputs included."""
    return len(operator_signature(number))


def operator_traits(number):
    """What the operator has that loading has to know: 1 lists of tensors, 2 a number that it writes as
    its last argument, 4 a view as its last."""
    if not 0 <= number < lib.pt_operator_count():
        raise ValueError
    return lib.pt_operator_traits(number)


def _number(kind, data):
    """The number of 8 bytes, of which a bool uses the first."""
    if kind == lib.PT_TYPE_BOOL:
        return data[0] != 0
    layout = {lib.PT_TYPE_INT: "<q", lib.PT_TYPE_DOUBLE: "<d"}
    if kind not in layout:
        raise ValueError
    return struct.unpack(layout[kind], data)[0]


class Reader:
    """Bounds-checked reading of a FlatBuffer; ValueError where it leads outside."""

    def __init__(self, buffer):
        self._data = memoryview(buffer).cast("B")
        self._size = len(self._data)
        if self._size > SMALL_INT_MAX:
            raise ValueError

    def __len__(self):
        return self._size

    def verify(self, format=lib.PT_FORMAT_PROGRAM):
        """-1, or the position at which the structure is wrong of a program or of another format, as
        FLAT_TENSOR is. ValueError if not aligned to 4."""
        if not 0 <= format < lib.PT_FORMATS or misaligned(self._data, 4):
            raise ValueError
        return lib.pt_verify(ffi.from_buffer("uint8_t[]", self._data), self._size, format)

    def _check(self, position, size):
        if position < 0 or position + size > self._size:
            raise ValueError

    def _bytes(self, position, size):
        self._check(position, size)
        return self._data[position : position + size]

    def _u8(self, position):
        self._check(position, 1)
        return self._data[position]

    def _u16(self, position):
        if not 0 <= position <= self._size - 2:
            raise ValueError
        return _read_u16(self._data, position)[0]

    def _i32(self, position):
        if not 0 <= position <= self._size - 4:
            raise ValueError
        return max(-SMALL_INT_MAX, min(_read_i32(self._data, position)[0], SMALL_INT_MAX))

    def _u32(self, position):
        if not 0 <= position <= self._size - 4:
            raise ValueError
        value = _read_u32(self._data, position)[0]
        return value if value <= SMALL_INT_MAX else SMALL_INT_MAX

    def _i64(self, position):
        """Also of a u64: what is negative as an i64 is above any limit as a u64."""
        self._check(position, 8)
        return max(-SMALL_INT_MAX, min(_read_i64(self._data, position)[0], SMALL_INT_MAX))

    def field(self, table, slot):
        """Position of a field; 0 when the file leaves it out."""
        if slot < 0 or not 0 <= table <= self._size - 4:
            raise ValueError
        vtable = table - _read_i32(self._data, table)[0]
        entry = 4 + 2 * slot
        if entry + 2 > self._u16(vtable):
            return 0
        offset = self._u16(vtable + entry)
        return table + offset if offset else 0

    def _follow(self, position):
        """Position that the offset at `position` leads to."""
        target = position + self._u32(position)
        if target > self._size - 4:
            raise ValueError
        return target

    _LETTERS = {"B": _u8, "i": _i32, "I": _u32, "q": _i64, "o": _follow}  # of layouts, see read

    def root(self):
        return self._follow(0)

    def table(self, table, slot):
        """Position of the table, vector or string in a field; 0 when the file leaves it out."""
        position = self.field(table, slot)
        return self._follow(position) if position else 0

    def u8(self, table, slot):
        position = self.field(table, slot)
        return self._u8(position) if position else 0

    def i32(self, table, slot):
        position = self.field(table, slot)
        return self._i32(position) if position else 0

    def u32(self, table, slot):
        position = self.field(table, slot)
        return self._u32(position) if position else 0

    def i64(self, table, slot):
        """Also for u64: both are clamped."""
        position = self.field(table, slot)
        return self._i64(position) if position else 0

    def read(self, table, layout, into):
        """Reads the fields of a table in slot order into a list of ints, 0 for one that is left out.

        layout has a letter each: B u8, i i32, I u32, q i64 or u64, o position that it leads to, x none.
        """
        if len(into) < len(layout):
            raise ValueError
        for slot, letter in enumerate(layout):
            position = self.field(table, slot)
            into[slot] = self._letter(position, chr(letter)) if position else 0

    def _letter(self, position, letter):
        return self._LETTERS[letter](self, position) if letter in self._LETTERS else 0

    def length(self, vector):
        return self._u32(vector) if vector else 0

    def _item(self, vector, i, size):
        if not 0 <= i < self.length(vector):
            raise ValueError
        return vector + 4 + i * size

    def item(self, vector, i):
        """Position of table i of a vector of tables."""
        return self._follow(self._item(vector, i, 4))

    def read_union(self, vector, i, layouts, into):
        """The type of the union of table i of a vector of tables, in slots 0 and 1. Reads the fields of
        its member, as `read` does, where there is a layout at this place of `layouts`."""
        table = self.item(vector, i)
        kind = self.u8(table, 0)
        if kind < len(layouts) and layouts[kind] is not None:
            self.read(self.table(table, 1), layouts[kind], into)
        return kind

    def _type(self, evalue):
        return self.u8(evalue, lib.PT_SLOT_EVALUE_VAL_TYPE)

    def count_tensors(self, values, into):
        """Sets into[0] to the number of tensors in a vector of values, into[1] to the words that the
        sizes of the dynamic ones take in the pool."""
        tensors = words = 0
        for i in range(self.length(values)):
            evalue = self.item(values, i)
            if self._type(evalue) == lib.PT_TYPE_TENSOR:
                tensors += 1
                tensor = self.table(evalue, lib.PT_SLOT_EVALUE_VAL)
                if self.u8(tensor, lib.PT_SLOT_TENSOR_SHAPE_DYNAMISM):
                    words += 1 + self.length(self.table(tensor, lib.PT_SLOT_TENSOR_SIZES))
        if len(into) < 2:
            raise ValueError
        into[0], into[1] = min(tensors, SMALL_INT_MAX), min(words, SMALL_INT_MAX)

    def read_tensor(self, values, start, layout, into):
        """Index of the first EValue of a vector, from `start` on, that holds a tensor, whose fields it
        reads, as `read` does; or -1."""
        length = self.length(values)
        if start < 0:
            raise ValueError
        for i in range(start, length):
            evalue = self.item(values, i)
            if self._type(evalue) == lib.PT_TYPE_TENSOR:
                self.read(self.table(evalue, lib.PT_SLOT_EVALUE_VAL), layout, into)
                return i
        return -1

    def u8_item(self, vector, i):
        return self._u8(self._item(vector, i, 1))

    def i32_item(self, vector, i):
        return self._i32(self._item(vector, i, 4))

    def i64_item(self, vector, i):
        return self._i64(self._item(vector, i, 8))

    def _items(self, vector, item):
        """The items of a vector, which all lie in the file."""
        length = self.length(vector)
        if length:
            self._bytes(self._item(vector, length - 1, 1), 1)
        return [item(vector, i) for i in range(length)]

    def same_items(self, vector, size, other, other_vector):
        """True when a vector of items of `size` bytes is equal to one in another reader's file."""
        length = self.length(vector)
        if not 1 <= size <= 8:
            raise ValueError
        if length != other.length(other_vector) or length > len(self._data):
            return False
        return length == 0 or (self._bytes(vector + 4, length * size)
                               == other._bytes(other_vector + 4, length * size))

    def find(self, tables, slot, other, string, start):
        """Index of the first table of a vector, from `start` on and round, whose string in a slot reads
        as the string at a position of another reader's file, or -1."""
        count = self.length(tables)
        for i in itertools.chain(range(start, count), range(min(start, count))):
            found = self.table(self.item(tables, i), slot)
            if found and self.same_items(found, 1, other, string):
                return i
        return -1

    def tensor_nbytes(self, dtype, sizes, limit):
        """Bytes of a tensor of a dtype with the i32 sizes of a vector, 0 with a size of 0. -1 for a
        dtype without whole bytes, a negative size, or when those but for 0 make more than `limit`."""
        fits, empty, nbytes = True, False, element_size(dtype)
        for size in self._items(sizes, self.i32_item):
            empty = empty or size == 0
            nbytes *= size or 1
            fits = fits and size >= 0 and nbytes <= limit
        return -1 if not nbytes or not fits else 0 if empty else nbytes

    def tensor_flags(self, sizes, order):
        """Rank of a tensor with these vectors of sizes and of dim order, + 32 when the order
        counts 0, 1, 2 ...; -1 when the order is no permutation of so many dims, or of more than 16."""
        order = self._items(order, self.u8_item)
        rank = len(order)
        if rank > lib.PT_MAX_RANK or rank != self.length(sizes) or set(order) != set(range(rank)):
            return -1
        return rank + (lib.PT_VALUE_CONTIGUOUS if order == sorted(order) else 0)

    def u32_at(self, position):
        return self._u32(position)

    def u64_at(self, position):
        return self._i64(position)

    def number(self, evalue, kept):
        """The int, bool or float of an EValue. MicroPython puts a float into `kept`, of new_float,
        while the heap is locked; an int that would need it is a MemoryError then."""
        member = self.table(evalue, lib.PT_SLOT_EVALUE_VAL)
        position = self.field(member, 0)  # the only one that each of them has
        kind = self._type(evalue)
        size = 1 if kind == lib.PT_TYPE_BOOL else 8
        return _number(kind, self._bytes(position, size) if position else bytes(size))

    def is_number(self, evalue, value):
        """True when a value is of the type of an EValue's number and equal to it, or as close as
        ExecuTorch asks of an input."""
        wanted = self.number(evalue, None)
        if type(wanted) is float and isinstance(value, float):
            close = math.isfinite(wanted) and abs(value - wanted) <= 1e-4 + 1e-5 * abs(wanted)
            return close or value == wanted or (value != value and wanted != wanted)
        same_type = isinstance(value, type(wanted)) and isinstance(value, bool) == (
            type(wanted) is bool)
        return same_type and value == wanted

    def double_item(self, vector, i, kept):
        """Item i of a vector of doubles; `kept` as in number."""
        return struct.unpack("<d", self._bytes(self._item(vector, i, 8), 8))[0]

    def string(self, string, kept):
        """The text of the string at a position, "" for 0. While the heap is locked MicroPython lets
        `kept`, of new_string, refer to it."""
        if not string:
            return ""
        text = bytes(self._bytes(string + 4, self.length(string) + 1))
        if text[-1]:
            raise ValueError
        return text[:-1].decode()

    def equals(self, string, text):
        """True when the string at position `string` reads `text`."""
        length = self.length(string)
        return bytes(self._bytes(string + 4, length)) == text.encode("utf-8", "surrogateescape")

    def operator(self, name, overload):
        """Number of the operator whose name and overload stand at these positions, or -1."""
        parts = []
        for string in (name, overload):
            length = self.length(string)
            parts += [bytes(self._bytes(string + 4, length)) if string else b"", length]
        return lib.pt_find_operator(*parts)


def _reference(memory, offset):
    return memory << 25 | offset >> 2


def _offset(ref):
    return (ref & (2**25 - 1)) << 2


class _Memory:
    """Address and size of a buffer, which stays where it is as long as this object lives.

    What is locked is the object behind a memoryview, not the view: the garbage collector could not
    clear a view with an export.
    """

    def __init__(self, buffer):
        self.buffer = view = memoryview(buffer)  # the caller may release the one handed over
        self.size = view.nbytes
        self.pointer = ffi.cast("uint8_t *", ffi.from_buffer(view))
        base = buffer if view.obj is None else view.obj
        self._lock = ffi.from_buffer(base, require_writable=False)


def _keep(kind, error, traceback):
    """Keeps what a function raised that the executor calls, for when the executor has returned."""
    ffi.from_handle(traceback.tb_frame.f_locals["c"].owner)()._raised = error


@ffi.def_extern(error=INTERNAL, onerror=_keep)
def call_delegate(c, position):
    """What the executor calls: on_delegate of the context that owns `c`."""
    return ffi.from_handle(c.owner)()._on_delegate(position)


@ffi.def_extern(error=INTERNAL, onerror=_keep)
def handle_signals(c):
    """Called now and then while the executor runs: Python handles signals where it calls a function.
    What a handler raises, KeyboardInterrupt for ctrl-C, ends the execution."""
    return 0


class Context:
    """The memories that references lead into, and the executor's state.

    ValueError where a position, a reference or a number does not fit. Only constant memories may lie
    in a buffer that cannot be written. on_failure(code): see step. on_delegate(position): runs the
    delegate call whose record is at `position` of the pool, and returns an error code.
    """

    def __init__(self, on_failure=None, on_delegate=None):
        self._on_failure = on_failure
        self._on_delegate = on_delegate
        self._raised = None
        self._ready = False
        self._lock = threading.RLock()  # a handler of signals may run while it is held
        self._runner = None  # the thread that runs the executor
        self._c = ffi.new("pt_context *")
        self._handle = ffi.new_handle(weakref.ref(self))
        self._c.owner = self._handle
        self._c.call_delegate = lib.call_delegate if on_delegate else ffi.NULL
        self._c.poll = ffi.addressof(lib, "pt_poll")
        self._buffers = [None] * MEMORIES
        self._constant = {PROGRAM}  # memories that nothing writes to
        self._scratch = None
        self._events = None

    def set_memory(self, memory, buffer):
        """Makes a buffer, or None, the memory of this number."""
        self._set_memory(memory, buffer)
        self._constant -= {memory} - {PROGRAM}

    def set_constant_memory(self, memory, buffer):
        """The same for a buffer that nothing may write to, as nothing does to the program."""
        self._set_memory(memory, buffer)
        self._constant.add(memory)

    def _set_memory(self, memory, buffer):
        if not 0 < memory < MEMORIES:
            raise ValueError
        self._buffers[memory] = found = None if buffer is None else _Memory(buffer)
        self._c.memory[memory] = found.pointer if found else ffi.NULL
        self._c.memory_size[memory] = found.size if found else 0
        self._ready = self._ready and found is not None

    def set_scratch(self, buffer):
        self._scratch = found = None if buffer is None else _Memory(buffer)
        self._c.scratch = found.pointer if found else ffi.NULL
        self._c.scratch_size = found.size if found else 0

    def moved_memory(self):
        """Number of a memory whose buffer was resized, so that it lies elsewhere or is too small:
        MEMORIES is the temp memory, one more that of events; 0 for none, as always under CPython."""
        return 0

    def release(self):
        """Takes all memories away, the temp memory and that of events, too."""
        for memory in range(PROGRAM, MEMORIES):
            if self._buffers[memory] is not None:
                self.set_memory(memory, None)
        self.set_scratch(None)
        self.set_tracer(None)
        self._ready = False

    def _record(self, kind, position, size=None):
        size = ffi.sizeof(kind) if size is None else size
        if position < 0 or position % 4 or position + size > self._c.memory_size[POOL]:
            raise ValueError
        return ffi.cast(kind + " *", self._c.memory[POOL] + position)

    def limit_memory(self, memory, size):
        """Lets references reach only the first `size` bytes of a memory, which has as many."""
        if not 0 <= size <= self._c.memory_size[memory]:
            raise ValueError
        self._c.memory_size[memory] = size

    def is_inside(self, memory, offset, size):
        """True when the bytes from offset on lie in the memory. No number is negative."""
        return offset + size <= self._c.memory_size[memory]

    def overlap(self, buffer, first, end):
        """The first memory from number `first` to below `end` that shares a byte with a buffer;
        MEMORIES when the temp memory or that of events does, 0 when none does."""
        if not (0 <= first <= MEMORIES and 0 <= end <= MEMORIES):
            raise ValueError
        found = _Memory(buffer)
        return lib.pt_find_overlap(self._c, found.pointer, found.size, first, end)

    def has_memory(self, memory):
        if not 0 <= memory < MEMORIES:
            raise ValueError
        return self._buffers[memory] is not None

    def _put(self, kind, position, **fields):
        record = self._record(kind, position)
        try:
            record[0] = ffi.new(kind + " *", fields)[0]
        except OverflowError:
            raise ValueError from None

    def put_method(self, position, n_values, n_instructions, values, instructions, program_values,
                   scratch, n_variables):
        self._put("pt_method", position, n_values=n_values, n_variables=n_variables,
                  n_instructions=n_instructions, values=values, instructions=instructions,
                  program_values=program_values, scratch=scratch)
        self._c.program_values = program_values
        self._c.list_items = 0
        self._c.method = position

    def put_tensor(self, position, data, sizes, dim_order, index, dtype, flags):
        """`sizes` and `dim_order` are positions of vectors in the program."""
        if not 0 <= sizes <= LIMIT - 8 or not 0 <= dim_order <= LIMIT - 8:
            raise ValueError
        self._put("pt_value", position, data=data, sizes=_reference(PROGRAM, sizes + 4),
                  dim_order=_reference(PROGRAM, dim_order + 4), index=index, type=dtype, flags=flags)

    def _tensor_record(self, position):
        if self._record("pt_value", position).type >= lib.PT_VALUE_OTHER:
            raise ValueError
        return _reference(POOL, position)

    def read_value(self, position, into):
        """Reads the record of a tensor into a list: references to its data, sizes and dim order, its
        rank, dtype and bytes."""
        ref = self._tensor_record(position)
        value, tensor = self._record("pt_value", position), lib.pt_get_tensor(self._c, ref)
        nbytes = lib.pt_numel(ffi.addressof(tensor)) * element_size(tensor.dtype)
        into[:6] = [value.data, value.sizes, value.dim_order, tensor.rank, tensor.dtype, nbytes]

    def make_dynamic(self, position, at):
        """Gives the tensor at `position` sizes of its own, at `at`: their bound, then those of the
        program, which are the upper bounds."""
        rank = self._record("pt_value", position).flags & lib.PT_VALUE_RANK
        self._record("int32_t", at, 4 + 4 * rank)
        lib.pt_make_dynamic(self._c, position, at)

    def put_list(self, position, items, count, kind):
        """`items` is a reference to as many references as `count` says."""
        if not 0 <= kind < lib.PT_VALUE_OTHER:
            raise ValueError
        self._put("pt_value", position, data=items, sizes=count, type=lib.PT_VALUE_OTHER + kind)

    def put_instruction(self, position, kernel, n_args, op):
        self._put("pt_instruction", position, kernel=kernel, n_args=n_args, op=op)

    def put_ref(self, position, ref):
        try:
            self._record("pt_ref", position)[0] = ref
        except OverflowError:
            raise ValueError from None

    def get_ref(self, position):
        return min(self._record("pt_ref", position)[0], SMALL_INT_MAX)

    def skip(self, position, count):
        """Where the instruction that is `count` behind the one at a position lies."""
        for _ in range(count):
            position += 4 + 4 * self._record("pt_instruction", position, 4).n_args
        return position

    def _method(self):
        """The method's record, whose records of values lie in the pool."""
        method = self._record("pt_method", self._c.method)
        self._record("pt_value", _offset(method.values),
                     16 * (method.n_values + method.n_variables))
        return method

    def _find(self, function, index):
        self._method()
        found = function(self._c, index) if 0 <= index < 2**31 else 0
        return _offset(found) if found else -1

    def find_value(self, index):
        """Position of the record of the tensor that is value `index` of the method, or -1."""
        return self._find(lib.pt_find_value, index)

    def find_variable(self, index):
        """Position of the record of the variable that is value `index` of the method, or -1."""
        return self._find(lib.pt_find_variable, index)

    def sort(self, position, count):
        """Sorts the numbers of 32 bits at `position` and drops those that stand there twice; how many
        are left."""
        if not 0 <= count <= LIMIT // 4:
            raise ValueError
        return lib.pt_sort(self._record("uint32_t", position, 4 * count), count)

    def put_variables(self, position, count):
        """Turns the sorted indexes of values at `position` into records there, with the numbers of the
        program. -1, or the first index that names no number."""
        if not 0 <= count < 2**16:
            raise ValueError
        self._record("pt_value", position, 16 * count)
        return lib.pt_put_variables(self._c, position, count)

    def reset_variables(self):
        """Gives all variables of the method the numbers of the program again."""
        self._method()
        lib.pt_reset_variables(self._c)

    def _read_argument(self, reader, arguments, i):
        """Index, position and type of the value that item `i` of the arguments names."""
        index = reader.i32_item(arguments, i)
        evalue = reader.item(_offset(self._c.program_values), index)
        return index, evalue, reader.u8(evalue, lib.PT_SLOT_EVALUE_VAL_TYPE)

    def _has_variable(self, kind, evalue):
        return kind == lib.PT_TYPE_INT_LIST and lib.pt_list_has_variable(
            self._c, _reference(PROGRAM, evalue))

    def count_lists(self, reader, arguments, count):
        """Bytes of the records of those of the first `count` arguments that are lists of ints with a
        variable."""
        self._method()
        if not isinstance(reader, Reader):
            raise TypeError
        if not 0 <= count < 256:
            raise ValueError
        found = 0
        for i in range(count):
            _, evalue, kind = self._read_argument(reader, arguments, i)
            if self._has_variable(kind, evalue):
                found += 16 + 4 * lib.pt_list_length(self._c, _reference(PROGRAM, evalue))
        return min(found, SMALL_INT_MAX)

    def put_arguments(self, position, reader, arguments, start):
        """Writes the references of the arguments of the instruction at `position`, from number `start`
        on: to the record of a tensor or variable, to another EValue in the program, 0 for None.
        `arguments` is the program's vector of value indexes. Returns the number of the first one that
        is a list of tensors or has variables, which is not written, or -1.
        """
        count = self._record("pt_instruction", position).n_args
        self._record("pt_instruction", position, 4 + 4 * count)
        variables = self._method().n_variables > 0
        if not isinstance(reader, Reader):
            raise TypeError
        if not 0 <= start < 256:
            raise ValueError
        for i in range(start, count):
            index, evalue, kind = self._read_argument(reader, arguments, i)
            if kind in (lib.PT_TYPE_TENSOR_LIST, lib.PT_TYPE_OPTIONAL_TENSOR_LIST):
                return i
            if variables and self._has_variable(kind, evalue):
                return i
            self.put_ref(position + 4 + 4 * i, self._argument(kind, index, evalue))
        if reader.length(arguments) > count:  # an output that is named once more
            self._read_argument(reader, arguments, count)
        return -1

    def _argument(self, kind, index, evalue):
        record = (self.find_value if kind == lib.PT_TYPE_TENSOR else self.find_variable)(index)
        if record >= 0:
            return _reference(POOL, record)
        if kind == lib.PT_TYPE_TENSOR:
            raise ValueError
        return 0 if kind == lib.PT_TYPE_NULL else _reference(PROGRAM, evalue)

    def _check_instructions(self, method):
        """The instructions of the method lie in the pool, and their kernels among the known ones."""
        found = self._record("pt_method", method)
        at = _offset(found.instructions)
        for _ in range(found.n_instructions):
            instruction = self._record("pt_instruction", at, 4)
            size = 4 + 4 * instruction.n_args
            self._record("pt_instruction", at, size)
            calls_kernel = instruction.op != lib.PT_OP_DELEGATE_CALL
            if calls_kernel and instruction.kernel >= lib.pt_operator_count():
                raise ValueError
            at += size

    def settle(self, method, external):
        """Finds out where the unplanned tensors of the method at `method` lie, whose records are all
        written: memories from number `external` on are theirs. One more than the last of these, or
        -code of an error: instruction() is that of a view, or argument() a value without memory.
        """
        self._check_instructions(method)
        if not 0 <= external <= MEMORIES:
            raise ValueError
        end = ffi.new("uint32_t *", external)
        return -lib.pt_settle(self._c, method, end) or end[0]

    def check(self, method):
        """Checks the instructions of the method at `method`: the code of the first error, which is in
        instruction(), or 0."""
        self._check_instructions(method)
        return lib.pt_check_method(self._c, method)

    def resize(self, position, sizes):
        """Gives the tensor whose record is at `position` the sizes (int32) in a buffer: 0 or an error
        code, with the sizes as before."""
        self._record("pt_value", position)
        given = bytes(memoryview(sizes).cast("B"))
        if len(given) % 4 or len(given) > 4 * lib.PT_MAX_RANK:
            raise ValueError
        copy = ffi.new("int32_t[]", list(struct.unpack(f"<{len(given) // 4}i", given)))
        return lib.pt_resize_tensor(self._c, _reference(POOL, position), len(given) // 4, copy)

    def fit(self, memory):
        """Leaves no element to dynamic tensors in a memory that is too small for their sizes."""
        if not 0 <= memory < MEMORIES:
            raise ValueError
        self._method()
        lib.pt_fit(self._c, memory)

    def number(self, position, kept):
        """The number in the variable whose record is at `position`: an int, bool, float, or None before
        one is written. `kept` as in Reader.number."""
        kind = self._record("pt_value", position).type - lib.PT_VALUE_OTHER
        ref = _reference(POOL, position)
        if kind == lib.PT_TYPE_DOUBLE:
            return lib.pt_get_double(self._c, ref)
        if kind not in (lib.PT_TYPE_INT, lib.PT_TYPE_BOOL):
            return None
        value = lib.pt_get_int(self._c, ref)
        return bool(value) if kind == lib.PT_TYPE_BOOL else value

    def argument(self):
        """Which argument the last check refused for its kind, or -1."""
        return self._c.argument

    def reason(self):
        """Why the last check or run failed, or None."""
        return ffi.string(self._c.reason).decode() if self._c.reason else None

    def scratch_needed(self):
        return min(self._c.scratch_needed, SMALL_INT_MAX)

    def ask_scratch(self, size):
        """Counts `size` bytes of temp memory among what is needed."""
        if not 0 <= size <= LIMIT:
            raise ValueError
        lib.pt_ask_scratch(self._c, size)

    def clear_scratch_needed(self):
        self._c.scratch_needed = 0

    def set_prepares(self, prepares):
        """Whether the checks that follow may ask for memory for what they prepare."""
        self._c.prepares = bool(prepares)
        self._c.prepared_needed = 0

    def prepared_bytes(self, method):
        """Bytes of pool for what the checks of the method's instructions asked to prepare."""
        self._record("pt_method", method)
        return min(lib.pt_prepared_bytes(self._c, method), SMALL_INT_MAX)

    def prepare(self, method, position):
        """Prepares what depends only on constants, into the pool at `position`."""
        self._record("pt_method", method)
        self._record("pt_ref", position, lib.pt_prepared_bytes(self._c, method))
        lib.pt_prepare(self._c, method, position)

    def start(self, method):
        """Goes to the first instruction of the method whose record is at `method` of the pool."""
        self._record("pt_method", method)
        lib.pt_start(self._c, method)

    def is_written(self, memory):
        """True when an instruction of the started method writes to a tensor in this memory."""
        if not 0 <= memory < MEMORIES:
            raise ValueError
        self._record("pt_method", self._c.method)
        return lib.pt_is_written(self._c, memory)

    def shared_memory(self, first, end):
        """The first memory from number `first` to below `end` that shares bytes with one of them before
        it, where an instruction of the started method writes to one of the two; 0 for none."""
        if not 0 <= first <= end <= MEMORIES:
            raise ValueError
        self._record("pt_method", self._c.method)
        return lib.pt_find_shared(self._c, first, end)

    def memory_needed(self, memory, bounds):
        """Bytes that a memory of unplanned tensors must have for the static tensors in it; with
        `bounds` for the dynamic ones at their upper bounds, too."""
        if not 0 <= memory < MEMORIES:
            raise ValueError
        self._method()
        return lib.pt_memory_needed(self._c, memory, bounds)

    def set_ready(self, ready):
        """Whether execute and step may run: a method is started and all its memories are set.

        Taking a memory away ends it. False waits for the thread that runs.
        """
        if ready:
            self._record("pt_method", self._c.method)
        with self._lock:
            self._ready = ready

    def is_running(self):
        """True while execute or step runs, in this thread or in another."""
        return self._runner is not None

    def is_at_start(self):
        """True when the next instruction is the first one, and nothing runs."""
        return self._runner is None and self._c.instruction == 0

    def _run(self, function):
        """Threads run one after the other; a backend cannot run its own method."""
        this = threading.get_ident()
        if not self._ready or self._runner == this:
            self._on_failure(NOT_READY)
            return
        with self._lock:
            self._raised = None
            self._runner = this
            try:
                code = NOT_READY if not self._ready else NO_STACK
                if self._ready and stack_free() >= STACK_BYTES:
                    code = function(self._c)
            finally:
                self._runner = None
            if self._raised is not None:
                raised, self._raised = self._raised, None
                raise raised
            if code:
                self._on_failure(code)

    def step(self):
        """Runs one instruction; on_failure(code) is called with an error's code, or with -1 where
        stack_free is less than STACK_BYTES."""
        self._run(lib.pt_step)

    def execute(self):
        """Runs from the first instruction to the end; on_failure(code) as in step."""
        self._run(lib.pt_execute)

    def set_tracer(self, buffer):
        """Measures what each instruction takes into a buffer, or no longer where it is None.

        It has an event of EVENT_BYTES, u64 ticks and u32 calls, for the end of the loop and then one
        for each instruction of the started method. On the twin a tick is a nanosecond.
        """
        found = None if buffer is None else _Memory(buffer)
        if found:
            method = self._record("pt_method", self._c.method)
            if found.size // EVENT_BYTES <= method.n_instructions:
                raise ValueError
        self._events = found
        events = ffi.cast("pt_event *", found.pointer) if found else ffi.NULL
        lib.pt_set_tracer(self._c, events, _NANOSECONDS, 2**64 - 1)

    def tracing_overhead(self):
        """Ticks that measuring takes, of each instruction; they are taken off."""
        return self._c.tracer.overhead

    def instruction(self):
        """Index of the next instruction, or of the one that a check refused."""
        return self._c.instruction

    def failed(self):
        """Index of the instruction at which execute or step ended last."""
        return self._c.failed

    def _data(self, ref, size):
        memory, offset = ref >> 25, _offset(ref)
        if size < 0 or not 0 <= memory < MEMORIES or self._buffers[memory] is None:
            raise ValueError
        if offset + size > self._c.memory_size[memory]:
            raise ValueError
        return memoryview(self._buffers[memory].buffer).cast("B")[offset : offset + size]

    def _writable_data(self, ref, size):
        if ref >> 25 in self._constant:
            raise ValueError
        return self._data(ref, size)

    def copy_in(self, ref, buffer):
        """Copies the bytes of `buffer` to a reference."""
        data = memoryview(buffer).cast("B")
        self._writable_data(ref, len(data))[:] = data

    def copy(self, ref, memory, position, size):
        """Copies bytes at a position of a memory to a reference."""
        if not 0 < memory < MEMORIES or self._buffers[memory] is None:
            raise ValueError
        if position < 0 or position + size > self._c.memory_size[memory]:
            raise ValueError
        data = memoryview(self._buffers[memory].buffer).cast("B")[position : position + size]
        self._writable_data(ref, size)[:] = data

    def clear(self, ref, size):
        self._writable_data(ref, size)[:] = bytes(size)

    def view(self, view, ref, size, typecode):
        """A memoryview of the bytes at a reference. MicroPython points `view` there instead.

        `size` is in bytes; `typecode` one of bBhHiIqQfd. Of a constant memory it is read-only.
        """
        if size % struct.calcsize(typecode):
            raise ValueError
        return _typed(self._data(ref, size), typecode, ref >> 25 not in self._constant)
