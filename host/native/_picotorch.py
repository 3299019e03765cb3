"""The `_picotorch` module of CPython: what port/module is under MicroPython, on the same C.

It turns buffers into addresses and what the library says into Python's objects; the library decides.
What fails is told to `owner._fail(code, subject, index, argument, requested, available, what)`, the
fields of a pt_error (-1 for no bytes and no index, "" for no text), which raises.
"""

import struct
import threading
import weakref

from _picotorch_c import ffi, lib

(VALUES, INPUTS, OUTPUTS, OPERATORS, DELEGATES, PLANNED_BUFFERS, INSTRUCTIONS,
 DELEGATE_ARGUMENTS) = range(8)
FIND, INIT, EXECUTE, DESTROY, KEPT = range(5)  # what `_ask` of a Method's owner is asked for
MEMORIES = lib.PT_MEMORIES
SMALL_INT_MAX = 2**30 - 1
STACK_BYTES = 2304  # that load, execute, step and unload have to find before they begin on a board
EVENT_BYTES = ffi.sizeof("pt_event")
LIMIT = 2**27  # bytes that a reference reaches

_FIXED = (bytes, bytearray, memoryview)  # buffers that Python leaves where they are while they are used


# ---- buffers


def _address(pointer):
    return int(ffi.cast("uintptr_t", pointer))


def _start(buffer):
    """Address of a buffer. What exports it is in no variable: where an interrupt ends this function,
    the garbage collector could not clear the view."""
    return int(ffi.cast("uintptr_t", ffi.from_buffer(buffer)))


def view(view, buffer, offset, size, dtype, writable=True):
    """A memoryview of `size` bytes of a buffer, elements of a ScalarType; read-only where the buffer
    is or `writable` is false. MicroPython points `view` there instead. ValueError where the bytes lie
    outside."""
    typecode = lib.pt_typecode(dtype).decode()
    data = memoryview(buffer).cast("B")
    if offset < 0 or size < 0 or offset + size > len(data) or size % struct.calcsize(typecode):
        raise ValueError
    return _typed(data[offset : offset + size], typecode, writable)


def _typed(data, typecode, writable):
    if not writable:
        data = data.toreadonly()
    return data.cast(typecode) if len(data) else memoryview(bytearray()).cast(typecode)


def nbytes(buffer):
    """Bytes of a buffer; -1 for what is no contiguous buffer, for a view that was released, and for
    references to Python's objects, which are no bytes to write."""
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):
        return -1
    return view.nbytes if view.c_contiguous and "O" not in view.format else -1


def buffer(buffer):
    """Typecode of a buffer's elements, see below, whether it can be written, and whether it starts at a
    multiple of 8 bytes."""
    view = memoryview(buffer)
    is_aligned = view.nbytes == 0 or _start(buffer) % lib.PT_ALIGNMENT == 0
    return typecode(buffer), not view.readonly, is_aligned


def typecode(buffer):
    """Typecode of a buffer's elements, as of the array module: the character's number. `l` and `L` are
    `i`, `q`, `I`, `Q` by their size; 1 for what is no number in the order of this machine's bytes, and
    for a view that was released."""
    try:
        view = memoryview(buffer)
    except ValueError:
        return 1
    order, code = view.format[:-1], view.format[-1]
    if order not in ("", "@", "=", "<"):
        return 1
    if code in "lL":
        code = {("l", 4): "i", ("l", 8): "q", ("L", 4): "I", ("L", 8): "Q"}[code, view.itemsize]
    return ord(code)


class _Memory:
    """Address and size of a buffer, which stays where it is as long as this object lives.

    What is locked is the object behind a memoryview, not the view: the garbage collector could not
    clear a view with an export.
    """

    def __init__(self, buffer):
        self.view = view = memoryview(buffer)  # the caller may release the one handed over
        self.pointer = ffi.cast("uint8_t *", ffi.from_buffer(view))
        base = buffer if view.obj is None else view.obj
        self._lock = ffi.from_buffer(base, require_writable=False)
        self._bases = [(each, _extent(each)) for each in _bases(base)]

    def has_moved(self):
        """True when something else than Python has moved or resized the memory: numpy's resize."""
        return any(_extent(each) != extent for each, extent in self._bases)


def _bases(base):
    """The objects that own the memory of a buffer and might move it."""
    while base is not None and not isinstance(base, _FIXED):
        yield base
        base = getattr(base, "base", None)


def _extent(buffer):
    try:
        view = memoryview(buffer)
        return _start(view), view.nbytes
    except (TypeError, ValueError):
        return None


# ---- what only MicroPython needs


def clear_traceback(error):
    """Lets an exception that is raised again have no traceback of when it was raised before, which
    MicroPython would add to."""
    error.__traceback__ = None


def heap_locked():
    """Whether nothing can be allocated now, as under MicroPython's heap_lock()."""
    return False


class Kept:
    """Objects for one value, made at set-up: a Tensor, a ValueList or None, and under MicroPython a
    float and a string."""

    def __init__(self, tensor, list):
        self.tensor, self.list = tensor, list


def stack_free():
    """Bytes of stack left until MicroPython refuses to call; here there are always enough."""
    return SMALL_INT_MAX


# ---- operators and events


def element_size(dtype):
    """Bytes of an element of a ScalarType; 0 for one that has no whole bytes."""
    return lib.pt_element_size(dtype) if 0 <= dtype < 256 else 0


def accepts(dtype, buffer):
    """True when the elements of a buffer may be those of a tensor of this ScalarType."""
    return lib.pt_accepts(dtype, bytes([typecode(buffer)]))


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


def argument_name(number, i):
    """Name of argument i of an operator; "" where there is none."""
    length = ffi.new("uint32_t *")
    name = lib.pt_operator_argument(number, i, length)
    return ffi.unpack(name, length[0]).decode() if length[0] else ""


# ---- errors


class _Owner:
    """What reports errors, and the file or method that it is for."""

    def __init__(self, owner):
        self._owner = owner
        self._error = ffi.new("pt_error *")

    def _check(self, code):
        if code:
            self._report(self._error)

    def _report(self, e):
        what = ffi.string(e.what).decode() if e.what else ""
        requested, available = (-1 if size == lib.PT_NO_BYTES else min(size, SMALL_INT_MAX)
                                for size in (e.requested, e.available))
        index = min(e.index, SMALL_INT_MAX)
        self._owner._fail(e.code, e.subject, index, e.argument, requested, available, what)

    def _refuse(self, code, subject, index, what):
        self._owner._fail(code, subject, index, -1, -1, -1, what)

    def _check_stack(self):
        """MemoryAllocationFailed where there is not the stack to begin."""
        free = stack_free()
        if free < STACK_BYTES:
            self._owner._fail(lib.PT_ERROR_MEMORY_ALLOCATION_FAILED, lib.PT_SUBJECT_STACK, -1, -1,
                              STACK_BYTES, free,
                              "; call from fewer functions or give the firmware more")

    def _memory(self, buffer, subject, index=-1):
        """The memory of a buffer. InvalidType, NotSupported."""
        size = nbytes(buffer)
        if size < 0:
            self._refuse(lib.PT_ERROR_INVALID_TYPE, subject, index,
                         "is no buffer of contiguous bytes")
        if size >= SMALL_INT_MAX:
            self._refuse(lib.PT_ERROR_NOT_SUPPORTED, subject, index, "has 1 GiB or more")
        return _Memory(buffer)


def _span(span, memory):
    """Fills a pt_span."""
    if memory is not None:
        span.data, span.size = memory.pointer, memory.view.nbytes
        span.is_constant = memory.view.readonly


def _index(i):
    """An index for C: what is negative is out of range there, too."""
    return i & 0xFFFFFFFF


def _text(text):
    return bytes(ffi.buffer(text.data, text.length)) if text.length else b""


def _number(scalar):
    if scalar.type == lib.PT_TYPE_DOUBLE:
        return getattr(scalar, "as").d
    value = getattr(scalar, "as").i
    return value != 0 if scalar.type == lib.PT_TYPE_BOOL else value


def _tensor(info):
    """(dtype, sizes, dim order, bytes, dynamism, is planned, is constant, is external, name as bytes,
    planned buffer, offset)."""
    return (info.dtype, tuple(ffi.unpack(info.sizes, info.rank)) if info.rank else (),
            tuple(ffi.unpack(info.dim_order, info.rank)) if info.rank else (), info.nbytes,
            info.dynamism, info.is_planned, info.is_constant, info.is_external, _text(info.name),
            info.planned, info.offset)


class _File(_Owner):
    """A file that is open: `memory` is its buffer's."""

    def _open(self, kind, function, buffer, verification, subject):
        self._check_stack()
        self.memory = self._memory(buffer, subject)
        self._c = ffi.new(kind)
        self._subject = subject
        self._check(function(self._c, self.memory.pointer, self.memory.view.nbytes, verification,
                             self._error))

    @property
    def c(self):
        """The pt_program or pt_data. InvalidState where the file's memory was resized since."""
        if self.memory.has_moved():
            self._refuse(lib.PT_ERROR_INVALID_STATE, self._subject, -1,
                         "has been resized since it was handed over; leave its size alone, and open "
                         "it again")
        return self._c

    def _part(self, span):
        """A read-only memoryview of bytes of the file."""
        start = _address(span.data) - _address(self.memory.pointer)
        return self.memory.view.cast("B")[start : start + span.size].toreadonly()


# ---- programs


class Program(_File):
    """A .pte file. Methods are counted from 0: `plan` is a method's number. Texts are bytes, since a
    file may have any in them. Where MicroPython points a memoryview of the caller's to something,
    `view`, a new one is returned here."""

    def open(self, buffer, verification):
        """Opens the file in a buffer: its header, with verification 1 its structure, too."""
        self._open("pt_program *", lib.pt_program_open, buffer, verification,
                   lib.PT_SUBJECT_PROGRAM)

    def num_methods(self):
        return lib.pt_program_methods(self.c)

    def find(self, name):
        """Number of the method of a name. NotFound. Needs no heap."""
        found, name = ffi.new("pt_plan *"), name.encode("utf-8", "surrogateescape")
        self._check(lib.pt_plan_find(found, self.c, name, len(name), self._error))
        return found.index

    def plan(self, plan):
        """The pt_plan of method number `plan`. NotFound."""
        found = ffi.new("pt_plan *")
        self._check(lib.pt_plan_at(found, self.c, _index(plan), self._error))
        return found

    def method_name(self, plan):
        return _text(lib.pt_plan_name(self.plan(plan)))

    def count(self, plan, what):
        """How many VALUES, INPUTS, OUTPUTS, OPERATORS ... a method has."""
        return lib.pt_plan_count(self.plan(plan), what)

    def _item(self, plan, what, i):
        item, index, plan = ffi.new("pt_item *"), ffi.new("uint32_t *"), self.plan(plan)
        self._check(lib.pt_plan_item(plan, what, _index(i), index, item, self._error))
        return index[0], item, plan

    def item(self, plan, what, i):
        """Of a value, an input or an output: which of the method's values it is, its KernelTypes, the
        number or string, as bytes, that the program has there, or None, and True for a tensor with a
        fully qualified name."""
        value, item, plan = self._item(plan, what, i)
        constant = None
        if item.type == lib.PT_TYPE_STRING:
            constant = _text(item.text)
        elif lib.PT_TYPE_INT <= item.type <= lib.PT_TYPE_DOUBLE:
            constant = _number(item.number)
        return value, item.type, constant, lib.pt_has_name(plan, item)

    def items(self, plan, i, most=LIMIT):
        """The first items, `most` at most, of value i, a list: indexes of values, bools, or floats."""
        item = self._item(plan, VALUES, i)[1]
        plan = self.plan(plan)
        found = [lib.pt_list_entry(plan, item, k) for k in range(min(item.count, most))]
        if item.type == lib.PT_TYPE_DOUBLE_LIST:
            return list(struct.unpack(f"{len(found)}d", struct.pack(f"{len(found)}q", *found)))
        return [entry != 0 for entry in found] if item.type == lib.PT_TYPE_BOOL_LIST else found

    def tensor(self, plan, what, i):
        """What the program says of a tensor, see _tensor. InvalidArgument for what is none."""
        info, item = ffi.new("pt_tensor_info *"), self._item(plan, what, i)[1]
        self._check(lib.pt_plan_tensor(self.plan(plan), item, info, self._error))
        return _tensor(info)

    def buffer_size(self, plan, i):
        """Bytes of a planned buffer."""
        size = ffi.new("uint32_t *")
        self._check(lib.pt_plan_buffer(self.plan(plan), _index(i), size, self._error))
        return size[0]

    def operator(self, plan, i):
        """Name of an operator, its overload, and its number, -1 where this build has no kernel."""
        name, overload, number = ffi.new("pt_text *"), ffi.new("pt_text *"), ffi.new("int32_t *")
        self._check(lib.pt_plan_operator(self.plan(plan), _index(i), name, overload, number,
                                         self._error))
        return _text(name), _text(overload), number[0]

    def _walk(self, plan):
        """A pt_plan_walk before a method's first instruction, and the pt_plan that it points at: keep
        both."""
        found = self.plan(plan)
        return ffi.new("pt_plan_walk *", lib.pt_plan_walk_start(found)), found

    def instruction(self, plan, i):
        """(kind, target, other, arguments) of an instruction, see pt_plan_walk; None for none."""
        walk, found = self._walk(plan)
        return _instruction(walk) if i >= 0 and lib.pt_plan_walk_to(walk, i) else None

    def instructions(self, plan):
        """The same of all of a method, one after the other."""
        walk, found = self._walk(plan)
        while lib.pt_plan_walk_next(walk):
            yield _instruction(walk)
        if walk.bad:
            self._refuse(lib.PT_ERROR_INVALID_PROGRAM, lib.PT_SUBJECT_NONE, -1,
                         "something lies outside the file")

    def views(self, plan):
        """The values that instructions make views of others."""
        walk, found = self._walk(plan)
        values = []
        while lib.pt_plan_walk_next(walk):
            values.append(lib.pt_plan_walk_view(walk))
        return [value for value in values if value >= 0]

    # ---- delegates

    def backend(self, plan, i):
        """Name of the backend of a delegate."""
        return _text(lib.pt_plan_backend(self.plan(plan), _index(i)))

    def has_backend(self, plan, i, name):
        """True when the backend of a delegate has this name. Needs no heap."""
        return self.backend(plan, i) == name.encode("utf-8", "surrogateescape")

    def _delegate(self, plan, i):
        info = ffi.new("pt_delegate_info *")
        self._check(lib.pt_plan_delegate(self.plan(plan), _index(i), info, self._error))
        return info

    def processed(self, plan, i, view=None):
        """The data that a backend's preprocess wrote for a delegate."""
        return self._part(self._delegate(plan, i).processed)

    def instruction_operator(self, plan, i):
        """The operator that an instruction calls, or -1."""
        found = self.instruction(plan, i)
        return found[1] if found and found[0] == lib.PT_INSTRUCTION_KERNEL_CALL else -1

    def is_inline(self, plan, i):
        """True when that lies in the FlatBuffer, not in a segment."""
        return self._delegate(plan, i).is_inline

    def num_specs(self, plan, i):
        """How many compile specs a delegate has."""
        return self._delegate(plan, i).n_specs

    def spec(self, plan, i, k):
        """Key and value of compile spec k."""
        key, value = ffi.new("pt_text *"), ffi.new("pt_span *")
        lib.pt_compile_spec(self.plan(plan), self._delegate(plan, i), k, key, value)
        return _text(key), self._part(value)

    def find_spec(self, plan, i, key, view=None):
        """Value of the first compile spec of a key, or None. Needs no heap."""
        value, key = ffi.new("pt_span *"), key.encode("utf-8", "surrogateescape")
        found = lib.pt_find_spec(self.plan(plan), self._delegate(plan, i), key, len(key), value)
        return self._part(value) if found else None

    # ---- named data

    def num_keys(self):
        return lib.pt_named_data_count(self.c)

    def key(self, i):
        """Key of named data."""
        key = ffi.new("pt_text *")
        self._check(lib.pt_named_data_key(self.c, _index(i), key, self._error))
        return _text(key)

    def find_key(self, key):
        """Number of a key, or -1. Needs no heap."""
        found, key = ffi.new("int32_t *"), key.encode("utf-8", "surrogateescape")
        self._check(lib.pt_named_data_find(self.c, key, len(key), found, self._error))
        return found[0]

    def data(self, i, view=None):
        """The bytes of named data."""
        span = ffi.new("pt_span *")
        self._check(lib.pt_named_data(self.c, _index(i), span, self._error))
        return self._part(span)


def _instruction(walk):
    arguments = [lib.pt_plan_walk_argument(walk, k) for k in range(walk.n_args)]
    is_jump = walk.kind == lib.PT_INSTRUCTION_JUMP_FALSE_CALL
    return walk.kind, walk.target, walk.other + is_jump * walk.first, arguments


class Data(_File):
    """A .ptd file, as Program."""

    def open(self, buffer, verification):
        self._open("pt_data *", lib.pt_data_open, buffer, verification, lib.PT_SUBJECT_DATA_FILE)

    def num_keys(self):
        return lib.pt_data_keys(self.c)

    def key(self, i):
        return _text(lib.pt_data_key(self.c, i))

    def find_key(self, key):
        """Number of a key, or -1. Needs no heap."""
        key = key.encode("utf-8", "surrogateescape")
        return lib.pt_data_find(self.c, key, len(key))

    def tensor(self, i):
        """The layout of the tensor with key i, see _tensor."""
        info = ffi.new("pt_tensor_info *")
        self._check(lib.pt_data_tensor(self.c, i, info, self._error))
        return _tensor(info)

    def data(self, i, view=None):
        return self._part(lib.pt_data_bytes(self.c, i))


# ---- methods


def _method_of(m):
    return ffi.from_handle(m.c.owner)()


def _keep(kind, error, traceback):
    """Keeps what a function raised that the library calls, for when the library has returned."""
    m = traceback.tb_frame.f_locals.get("m")
    owner = m.c.owner if m is not None else traceback.tb_frame.f_locals["c"].owner
    ffi.from_handle(owner)()._raised = error


@ffi.def_extern(error=lib.PT_ERROR_INTERNAL, onerror=_keep)
def handle_signals(c):
    """Called now and then while a method runs: Python handles signals where it calls a function. What a
    handler raises, KeyboardInterrupt for ctrl-C, ends the execution."""
    return 0


@ffi.def_extern(error=lib.PT_ERROR_INTERNAL, onerror=_keep)
def find_delegate(m, delegate, error):
    return _method_of(m)._ask(FIND, delegate, error)


def _keep_and_destroy(kind, error, traceback):
    """Destroys, too, what an interrupt has kept from being destroyed, or the library from knowing that
    it is ready."""
    _keep(kind, error, traceback)
    arguments = traceback.tb_frame.f_locals
    _method_of(arguments["m"])._owner._ask(DESTROY, arguments["delegate"])


@ffi.def_extern(error=lib.PT_ERROR_INTERNAL, onerror=_keep_and_destroy)
def init_delegate(m, delegate, error):
    return _method_of(m)._ask(INIT, delegate, error)


@ffi.def_extern(error=lib.PT_ERROR_INTERNAL, onerror=_keep)
def execute_delegate(m, delegate, error):
    return _method_of(m)._ask(EXECUTE, delegate, error)


@ffi.def_extern(onerror=_keep_and_destroy)
def destroy_delegate(m, delegate):
    _method_of(m)._owner._ask(DESTROY, delegate)


class Method(_Owner):
    """A loaded method. `kept`: list of a Kept for each output. owner._ask(FIND, INIT, EXECUTE or
    DESTROY, number of a delegate) answers with an error's code; _ask(KEPT, number of an output) adds
    to the list."""

    def __init__(self, owner, kept):
        super().__init__(owner)
        self._kept = kept
        self._raised = None
        self._lock = threading.RLock()  # a handler of signals may run while it is held
        self._runner = None  # the thread that runs
        self._m = ffi.new("pt_method *")
        self._handle = ffi.new_handle(weakref.ref(self))
        self._m.c.owner = self._handle
        self._m.c.poll = ffi.addressof(lib, "pt_poll")
        self._release()

    def _release(self):
        self._program, self._files = None, []
        self._memories, self._given_memories = {}, {}

    def _ask(self, what, delegate, error):
        code = self._owner._ask(what, delegate)
        moved = self._moved() if what != FIND else 0
        return lib.pt_moved_memory(self._m, moved, error) if moved and not code else code

    def _call(self, function, *arguments):
        """Calls the library. What a function raised that it called comes first."""
        self._raised = None
        error = ffi.new("pt_error *")  # another thread may call, too
        code = function(self._m, *arguments, error)
        self._raise_kept()
        if code:
            self._report(error)

    def _raise_kept(self):
        """Raises what a function raised that the library called, see _keep."""
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def _moved(self):
        for memory, found in self._memories.items():
            if found.has_moved():
                return memory
        for i in range(self._m.first_external, self._m.end_external):
            if self._m.has_memory >> i & 1 and self._memory_of(i).has_moved():
                return i
        return 0

    def check(self):
        """InvalidState before load, and where a memory was resized since it was handed over."""
        self._check_moved()
        self._check(lib.pt_check_loaded(self._m, self._error))

    def _check_moved(self):
        moved = self._moved() if self._m.state == lib.PT_LOADED else 0
        if moved:
            self._check(lib.pt_moved_memory(self._m, moved, self._error))

    # ---- loading

    def load(self, program, plan, pool, size, used, planned, temp, files, prepare, events, most,
             most_arguments):
        """Loads a method. `pool`: of its `size` bytes the first `used` are taken. planned: list of
        buffers. temp, events: buffers, or None. files: list of Data, or None. most, most_arguments: of
        delegates and of a call's arguments. Returns how many bytes of the pool are taken afterwards."""
        self._check_stack()
        memories, options = ffi.new("pt_memories *"), ffi.new("pt_options *")
        if self._m.state != lib.PT_UNLOADED:
            self._call(lib.pt_load, program.plan(plan), memories, options)  # is refused
        self._release()
        planned = [self._memory(buffer, lib.PT_SUBJECT_PLANNED_BUFFER, i)
                   for i, buffer in enumerate(planned)]
        found = {"temp": self._memory_or_none(temp, lib.PT_SUBJECT_TEMP),
                 "events": self._memory_or_none(events, lib.PT_SUBJECT_EVENT_TRACER)}
        spans = ffi.new("pt_span[]", max(len(planned), 1))
        for i, memory in enumerate(planned):
            _span(spans[i], memory)
        data = ffi.new("pt_data *[]", [file.c for file in files or []] or [ffi.NULL])
        pool = self._memory(pool, lib.PT_SUBJECT_POOL)
        _span(memories.pool, pool)
        _span(memories.temp, found["temp"])
        _span(options.events, found["events"])
        memories.pool.size = min(size, memories.pool.size)
        memories.pool_used, memories.planned, memories.n_planned = used, spans, len(planned)
        memories.data, memories.n_data = data, len(files or [])
        options.prepare, options.clock = prepare, ffi.addressof(lib, "pt_nanoseconds")
        options.clock_mask = 2**64 - 1
        options.delegates = self._delegates(most, most_arguments)
        self._keep_memories(program, pool, planned, files or [], found, data, spans)
        self._call(lib.pt_load, program.plan(plan), memories, options)
        return self._m.end

    def _memory_or_none(self, buffer, subject):
        return None if buffer is None else self._memory(buffer, subject)

    def _delegates(self, most, most_arguments):
        self._table = ffi.new("pt_delegates *", {
            "most": most, "most_arguments": most_arguments, "find": lib.find_delegate,
            "init": lib.init_delegate, "execute": lib.execute_delegate,
            "destroy": lib.destroy_delegate})
        return self._table

    def _keep_memories(self, program, pool, planned, files, others, *structs):
        """Keeps what the library refers to while the method is loaded."""
        self._program, self._files = program, [*files, *structs]
        memories = [program.memory, pool, *planned, *[file.memory for file in files]]
        self._memories = dict(enumerate(memories, lib.PT_MEMORY_PROGRAM))
        self._memories |= {MEMORIES + i: found for i, found in enumerate(others.values()) if found}

    def unload(self):
        """Lets the method go, after a thread that runs it."""
        self._check_stack()
        with self._lock:
            self._raised = None
            lib.pt_unload(self._m)
            if self._m.state == lib.PT_UNLOADED:
                self._release()
        self._raise_kept()

    def is_loaded(self):
        return self._m.state == lib.PT_LOADED

    def is_running(self):
        """True while execute or step runs, in this thread or in another."""
        return self._m.is_running

    # ---- inputs, outputs, attributes

    def _given(self, value, subject, index):
        """The pt_given of a buffer or a Tensor, and what it refers to."""
        shaped = hasattr(value, "raw_sizes")
        if not shaped and not _is_buffer(value):
            self._refuse(lib.PT_ERROR_INVALID_ARGUMENT, subject, index,
                         "is a tensor: a buffer or a Tensor is wanted")
        memory = self._memory(value.data if shaped else value, subject, index)
        given = ffi.new("pt_given *")
        _span(given.data, memory)
        given.typecode = bytes([typecode(memory.view)])
        parts = [memory]
        if shaped:
            order = value.dim_order()
            given.has_shape, given.rank, given.dtype = True, len(order), value.scalar_type()
            # copies: a view that is exported could not be cleared by the garbage collector
            parts += [ffi.new("int32_t[]", [*value.raw_sizes()]), ffi.new("uint8_t[]", [*order])]
            given.sizes, given.dim_order = parts[1], parts[2]
        return given, memory, parts

    def _give(self, function, value, subject, index, *arguments):
        """Hands over a buffer or a Tensor, which is kept before the library can refer to it: an
        interrupt may come at any place."""
        given, memory, parts = self._given(value, subject, index)
        self._given_memories[_address(memory.pointer)] = memory
        self._call(function, *arguments, given)
        there = {_address(self._m.c.memory[i])
                 for i in range(self._m.first_external, self._m.end_external)}
        for address in self._given_memories.keys() - there:
            del self._given_memories[address]

    def _memory_of(self, number):
        """The _Memory that is memory `number` of the method."""
        found = self._memories.get(number)
        return found or self._given_memories[_address(self._m.c.memory[number])]

    def set_input(self, value, i):
        """See Method.set_input."""
        self._check_moved()
        if value is None or isinstance(value, int | float | str):
            self._set_constant(i, value)
            return
        if not hasattr(value, "raw_sizes") and not _is_buffer(value):
            item = ffi.new("pt_item *")  # of no type: refused by what the input is
            self._call(lib.pt_set_constant_input, _index(i), item)
        self._give(lib.pt_give_input, value, lib.PT_SUBJECT_INPUT, i, _index(i))

    def _set_constant(self, i, value):
        item = ffi.new("pt_item *")
        kinds = {bool: lib.PT_TYPE_BOOL, int: lib.PT_TYPE_INT, float: lib.PT_TYPE_DOUBLE,
                 str: lib.PT_TYPE_STRING, type(None): lib.PT_TYPE_NULL}
        kind = next(kind for kind in kinds if isinstance(value, kind))
        item.type = item.number.type = kinds[kind]
        if kind is float:
            getattr(item.number, "as").d = value
        elif kind is str:
            text = ffi.from_buffer(value.encode("utf-8", "surrogateescape"))
            item.text = ffi.new("pt_text *", (text, len(text)))[0]
        elif kind is not type(None):
            fits = -(2**63) <= value < 2**63
            getattr(item.number, "as").i = value if fits else 0
            item.type = item.type if fits else lib.PT_TYPE_NONE
        self._call(lib.pt_set_constant_input, _index(i), item)

    def set_output(self, buffer, i):
        """See Method.set_output_data_ptr."""
        self._check_moved()
        self._give(lib.pt_set_output, buffer, lib.PT_SUBJECT_OUTPUT, i, _index(i))

    def set_attribute(self, buffer, name):
        """See Method.set_attribute_data_ptr."""
        self._check_moved()
        name = name.encode("utf-8", "surrogateescape")
        self._give(lib.pt_set_attribute, buffer, lib.PT_SUBJECT_ATTRIBUTE, -1, name, len(name))

    def _value(self, view, kept):
        """A value as an object. A list is pointed to by its value's number in `kept.list`."""
        if view.type == lib.PT_TYPE_TENSOR:
            return self._show(view, kept.tensor)
        if view.type == lib.PT_TYPE_STRING:
            return _text(view.text).decode()
        return None if view.type == lib.PT_TYPE_NULL else _number(view.number)

    def _show(self, view, tensor):
        """Points a Tensor to what a pt_value_view shows."""
        t = view.tensor
        memory = self._memory_of(view.memory)
        start = _address(t.data) - _address(memory.pointer)
        data = memory.view.cast("B")[start : start + view.nbytes]
        constant = lib.pt_is_constant_memory(self._m, view.memory)
        tensor.data = _typed(data, lib.pt_typecode(t.dtype).decode(), not constant)
        tensor._dtype = t.dtype
        tensor._sizes = self._shape(t.sizes, 4 * t.rank).cast("i")
        tensor._dim_order = self._shape(t.dim_order, t.rank)
        tensor._buffer = None
        return tensor

    def _shape(self, pointer, size):
        """A memoryview of sizes or a dim order: they lie in the pool or in the program."""
        for memory in (self._memories[lib.PT_MEMORY_POOL], self._program.memory):
            start = _address(pointer) - _address(memory.pointer)
            if size and 0 <= start <= memory.view.nbytes - size:
                return memory.view.cast("B")[start : start + size]
        return memoryview(b"")

    def get_output(self, i):
        """Output i as an object: the Tensor or list of its Kept, pointed to it."""
        view = ffi.new("pt_value_view *")
        self._check_moved()
        self._check(lib.pt_output(self._m, _index(i), view, self._error))
        if i >= len(self._kept):
            self._owner._ask(KEPT, i)
        return self._object(view, self._kept[i])

    def _object(self, view, kept):
        if view.type >= lib.PT_TYPE_INT_LIST:
            return kept.list._point(view.value, view.list.count)
        return self._value(view, kept)

    def item(self, value, i, kept):
        """Item i of value number `value`, a list."""
        view, list = ffi.new("pt_value_view *"), ffi.new("pt_item *")
        self.check()
        self._check(lib.pt_plan_item(ffi.addressof(self._m, "plan"), VALUES, value, ffi.NULL, list,
                                     self._error))
        self._check(lib.pt_list_view(self._m, list, i, view, self._error))
        return self._value(view, kept)

    def attribute(self, name, kept):
        """The parameter or buffer of a name: the Tensor of a Kept, pointed to it."""
        view, name = ffi.new("pt_value_view *"), name.encode("utf-8", "surrogateescape")
        self._check_moved()
        self._check(lib.pt_attribute(self._m, name, len(name), view, self._error))
        return self._show(view, kept.tensor)

    # ---- executing

    def _run(self, function):
        """Threads run one after the other; a backend cannot run its own method."""
        self._check_stack()
        this = threading.get_ident()
        if self._runner == this or not self._m.is_ready:
            self._check_moved()
            self._call(function)
            return
        with self._lock:
            self._check_moved()
            self._runner = this
            try:
                self._call(function)
            finally:
                self._runner = None

    def execute(self):
        """Runs from the first instruction to the end."""
        self._run(lib.pt_execute)

    def step(self):
        """Runs one instruction."""
        self._run(lib.pt_step)

    def restart(self):
        """Back to the first instruction."""
        self._check_moved()
        self._call(lib.pt_restart)

    def reset_state(self):
        """Buffers get their initial values again, or zero."""
        self._check_moved()
        self._call(lib.pt_reset_state)

    def usage(self):
        """Bytes of the pool that the method holds, how many of them are behind its records, and bytes
        of temp memory that were needed so far."""
        usage = lib.pt_get_usage(self._m)
        return usage.pool, usage.prepared, usage.temp

    # ---- for delegates

    def argument_count(self):
        """Arguments of the delegate call that runs."""
        return self._m.n_call

    def argument(self, i, kept):
        """One of them as an object."""
        view = ffi.new("pt_value_view *")
        self._check(lib.pt_argument(self._m, i, view, self._error))
        return self._object(view, kept)

    def resize_argument(self, i, sizes):
        """Gives one of dynamic shape other sizes, a buffer of int32."""
        if nbytes(sizes) < 0 or typecode(sizes) != ord("i"):
            self._refuse(lib.PT_ERROR_INVALID_ARGUMENT, lib.PT_SUBJECT_SIZES, -1,
                         "are no buffer of int32, as array('i') is")
        given = bytes(memoryview(sizes).cast("B"))
        items = ffi.new("int32_t[]", list(struct.unpack(f"<{len(given) // 4}i", given)))
        self._check(lib.pt_resize_argument(self._m, i, len(items), items, self._error))

    def _allocated(self, function, memory, size, alignment):
        data = ffi.new("void **")
        self._check(function(self._m, _index(size), _index(alignment), data, self._error))
        start = ffi.cast("uint8_t *", data[0]) - self._memories[memory].pointer
        return self._memories[memory].view.cast("B")[start : start + size]

    def allocate(self, size, alignment, view=None):
        """In INIT bytes of the pool, in EXECUTE of the temp memory."""
        if self._m.state == lib.PT_LOADING:
            return self._allocated(lib.pt_allocate, lib.PT_MEMORY_POOL, size, alignment)
        return self._allocated(lib.pt_allocate_temp, MEMORIES, size, alignment)

    def ask_temp(self, size):
        """Says in INIT that EXECUTE will allocate so many."""
        self._check(lib.pt_ask_temp(self._m, _index(size), self._error))

    def instruction(self):
        """Number of the instruction that runs."""
        return self._m.c.instruction

    def tracing_overhead(self):
        """Ticks that measuring takes, of each instruction; they are taken off."""
        return self._m.c.tracer.overhead


def _is_buffer(value):
    try:
        memoryview(value)
    except TypeError:
        return False
    except ValueError:  # a view that was released
        return True
    return True
