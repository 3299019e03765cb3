"""Bind the C library to CPython: the `_picotorch` module, as port/module binds it to MicroPython.

The module turns buffers into addresses and the library's results into Python's objects; the library
decides, and picotorch.h documents its functions. contract.py describes the functions of the module and
the objects that it receives. It imports nothing of picotorch: numpy, torch and the texts of errors
belong to the packages above it.
"""

import functools
import math
import operator
import struct
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, TypeVar

from _picotorch_c import ffi, lib

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from .contract import MethodOwner, Owner, Tensor

(VALUES, INPUTS, OUTPUTS, OPERATORS, DELEGATES, PLANNED_BUFFERS, INSTRUCTIONS,
 DELEGATE_ARGUMENTS) = range(8)
FIND, INIT, EXECUTE, DESTROY, KEPT = range(5)  # requests to `on_request` of a Method's owner
SMALL_INT_MAX = 2**30 - 1
EVENT_BYTES = ffi.sizeof("pt_event")

_CData: TypeAlias = Any  # a struct, a pointer or a function of the library: cffi has no types
_Range: TypeAlias = tuple[int, int]  # start and end address of a memory
_Ranges: TypeAlias = tuple[Sequence[_Range], Sequence[_Range]]  # of planned memory and of temp memory
_Found = TypeVar("_Found")

# ---- buffers


def _address(pointer: _CData) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _start(buffer: "ReadableBuffer") -> int:
    """Return the address of a buffer.

    No variable refers to the exporting object: if an interrupt ended this function, the garbage
    collector could not clear the view.
    """
    return _address(ffi.from_buffer(buffer))


def nbytes(buffer: Any) -> int:
    """Return the size of a contiguous buffer in bytes, or -1.

    -1: the buffer is not contiguous, the view was released, or the elements are references to Python's
    objects.
    """
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):
        return -1
    return view.nbytes if view.c_contiguous and "O" not in view.format else -1


def buffer(buffer: Any) -> tuple[int, bool, bool]:
    """Return three facts of a buffer.

    These are its typecode, True if it is writable, and True if it starts at a multiple of 8 bytes. The
    typecode is the number of a character of the array module, or 1 for elements that are not numbers in
    the byte order of this machine. `l` and `L` become `i`, `q`, `I` or `Q` by their size.
    """
    view = memoryview(buffer)
    order, code = view.format[:-1], view.format[-1]
    code = {"l4": "i", "l8": "q", "L4": "I", "L8": "Q"}.get(f"{code}{view.itemsize}", code)
    return (ord(code) if order in ("", "@", "=", "<") else 1, not view.readonly,
            view.nbytes == 0 or _start(view) % lib.PT_ALIGNMENT == 0)


def view(view: memoryview | None, buffer: Any, offset: int, size: int, dtype: int,
         writable: bool = True) -> memoryview:
    """Return a view of `size` bytes of a buffer, as elements of a ScalarType.

    The view is read-only if the buffer is, or if `writable` is false. Raises ValueError for bytes
    outside the buffer.
    """
    data = memoryview(buffer)
    data = data.cast("B") if data.nbytes else memoryview(b"")  # shapes with zeros cannot be cast
    if offset < 0 or size < 0 or offset + size > len(data):
        raise ValueError
    return _typed(data[offset : offset + size], dtype, writable)


def _typed(data: memoryview, dtype: int, writable: bool = True) -> memoryview:
    code = lib.pt_typecode(dtype).decode()
    if len(data) % struct.calcsize(code):
        raise ValueError
    if not len(data):  # an empty view cannot be cast
        data = memoryview(bytearray())
    return (data if writable else data.toreadonly()).cast(code)


class _Memory:
    """The memory of a buffer: as long as this object lives, Python does not move it."""

    def __init__(self, buffer: "ReadableBuffer") -> None:
        self.view = memoryview(buffer)  # the caller may release its own view
        self.start, self.size = _start(self.view), self.view.nbytes
        self.span = {"data": ffi.cast("void *", self.start), "size": self.size,
                     "is_constant": self.view.readonly}
        self._array_addresses = self._arrays()

    def _arrays(self) -> list[Any]:
        """Return the addresses of the arrays with this memory. numpy moves an array that it resizes."""
        array: Any = self.view.obj
        found = []
        while hasattr(array, "base"):
            found.append((array.__array_interface__["data"], array.nbytes))
            array = array.base
        return found

    def has_moved(self) -> bool:
        return bool(self._array_addresses) and self._arrays() != self._array_addresses

    def part(self, pointer: _CData, size: int) -> memoryview | None:
        """Return a memoryview of the bytes at a pointer, or None if they are outside of the buffer."""
        at = _address(pointer) - self.start
        return self.view.cast("B")[at : at + size] if 0 <= at <= self.size - size else None


# ---- values


class Kept(NamedTuple):
    """The objects for one value: a Tensor, and a ValueList or None."""

    tensor: Any
    list: Any


def heap_locked() -> bool:
    return False


def element_size(dtype: int) -> int:
    """Return the bytes of an element of a ScalarType, or 0 for a dtype without whole bytes."""
    return lib.pt_element_size(dtype) if 0 <= dtype < 256 else 0


def number(item: int, dtype: int) -> Any:
    """Return the number for an item of a tensor's data. The items of float16 and bfloat16 are bits."""
    if dtype == lib.PT_DTYPE_BFLOAT16:
        return struct.unpack("<f", struct.pack("<I", item << 16))[0]
    if dtype in (lib.PT_DTYPE_HALF, lib.PT_DTYPE_COMPLEX_HALF):
        return struct.unpack("<e", struct.pack("<H", item))[0]
    return item


def has_operator(number: int) -> bool:
    """Return True if this build has a kernel for the operator with this number."""
    found: bool = lib.pt_operator_kernel(number) != ffi.NULL
    return found


def argument_name(number: int, i: int) -> str:
    """Return the name of argument i of an operator, or "" if it has no name."""
    length = ffi.new("uint32_t *")
    name = lib.pt_operator_argument(number, _index(i), length)
    found: str = ffi.unpack(name, length[0]).decode()
    return found


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other surrogates, which no file contains
        return text.encode("utf-8", "surrogatepass")


def _text(text: _CData) -> bytes:
    return bytes(ffi.buffer(text.data, text.length)) if text.length else b""


def _number(scalar: _CData) -> float | bool:
    if scalar.type == lib.PT_TYPE_DOUBLE:
        return float(getattr(scalar, "as").d)
    value = int(getattr(scalar, "as").i)
    return value != 0 if scalar.type == lib.PT_TYPE_BOOL else value


def _item(value: Any) -> dict[str, Any]:
    """Return the pt_evalue of an input that is not a tensor; of other objects one without a type."""
    if value is None:
        return {"type": lib.PT_TYPE_NULL}
    if isinstance(value, str):
        text = _utf8(value)
        return {"type": lib.PT_TYPE_STRING, "text": (ffi.from_buffer(text), len(text))}
    if isinstance(value, float):
        return {"type": lib.PT_TYPE_DOUBLE, "number": (lib.PT_TYPE_DOUBLE, {"d": value})}
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        kind = lib.PT_TYPE_BOOL if isinstance(value, bool) else lib.PT_TYPE_INT
        return {"type": kind, "number": (kind, {"i": value})}
    return {"type": lib.PT_TYPE_NONE}


def _tensor(info: _CData) -> tuple[Any, ...]:
    """Return the fields of the contract's TENSOR_FIELDS."""
    sizes, dim_order = [tuple(ffi.unpack(items, info.rank)) if info.rank else ()
                        for items in (info.sizes, info.dim_order)]
    return (info.dtype, sizes, dim_order, info.nbytes, info.dynamism, info.is_planned,
            info.is_constant, info.is_external, _text(info.name), info.planned, info.offset)


# ---- calls of the library

_type_of = functools.cache(ffi.typeof)
_TEXT = ffi.typeof("const char *")
_PYTHON = {ffi.typeof(kind): function for kind, function in (
    ("pt_text", _text), ("pt_text *", _text), ("pt_tensor_info *", _tensor),
    ("uint32_t *", operator.itemgetter(0)), ("int32_t *", operator.itemgetter(0)),
    ("void **", operator.itemgetter(0)))}


def _python(found: Any) -> Any:
    """Convert a value of the library to a Python object, if there is one."""
    convert = _PYTHON.get(ffi.typeof(found)) if isinstance(found, ffi.CData) else None
    return convert(found) if convert else found


def _index(value: Any) -> int:
    """Return an index or a size, clamped to int32.

    The library reports a clamped value as out of range, as it reports a negative one. Raises TypeError
    for a value that is not an int.
    """
    value = operator.index(value)
    if not -(2**31) <= value < 2**31:
        value = -1 if value < 0 else 2**31 - 1
    found: int = value & 0xFFFFFFFF
    return found


def _function(function: _CData) -> Callable[..., Any]:
    """Return a method that calls a function of the library through `ask`."""
    return lambda self, *arguments: self.ask(function, *arguments)


class _Caller:
    """Call the library, and report failures to its owner."""

    def __init__(self, owner: "Owner") -> None:
        self._owner = owner
        # The exception of a function that the library called, by thread, see _keep
        self._raised: dict[int, BaseException] = {}

    @property
    def c(self) -> _CData:
        """Return the struct that `ask` passes to the functions of the library."""
        raise NotImplementedError

    def call(self, function: _CData, *arguments: Any) -> Any:
        """Call a function of the library and return its result.

        The last parameters of the function are its results and a pt_error; the caller passes no
        argument for them. Raises the error that the library reports.
        """
        passed: list[Any] = []
        parameters = _type_of(function).args
        for each in arguments:
            kind = parameters[len(passed)]
            if kind is _TEXT:
                text = self._text(each)
                passed += text, len(text)
            else:
                passed.append(self._int(each) if kind.kind in ("primitive", "enum") else each)
        found = [ffi.new(kind) for kind in parameters[len(passed) :]]
        answer = function(*passed, *found)
        if threading.get_ident() in self._raised:  # in no variable: it would be a cycle with the frame
            raise self._raised.pop(threading.get_ident())
        if answer and found:
            self._report(found[-1])
        found = [_python(each) for each in found[:-1] or [answer]]
        return found[0] if len(found) == 1 else found

    def _text(self, value: Any) -> bytes:
        if not isinstance(value, str):
            self._refuse_type("give a str")
        return _utf8(value)

    def _int(self, value: Any) -> int:
        try:
            return _index(value)
        except TypeError:
            self._refuse_type("give an int")

    def _flag(self, value: Any) -> bool:
        try:
            return bool(value)
        except ValueError:  # an array
            self._refuse_type("give a bool")

    def _refuse_type(self, remedy: str) -> NoReturn:
        self._refuse(lib.PT_ERROR_INVALID_TYPE, lib.PT_SUBJECT_ARGUMENT, -1,
                     f"has the wrong type; {remedy}")

    def ask(self, function: _CData, *arguments: Any) -> Any:
        """Call a function on the struct of this object, whose memory must not have been resized."""
        return self.call(function, self.c, *arguments)

    def _report(self, e: _CData) -> NoReturn:
        requested, available = [-1 if size == lib.PT_NO_BYTES else min(size, SMALL_INT_MAX)
                                for size in (e.requested, e.available)]
        self._owner.on_error(e.code, e.subject, min(e.index, SMALL_INT_MAX), e.argument,
                             requested, available, ffi.string(e.what).decode() if e.what else "")

    def _refuse(self, code: int, subject: int, index: int, what: str) -> NoReturn:
        self._owner.on_error(code, subject, index, -1, -1, -1, what)

    def _memory(self, buffer: Any, subject: int, index: int = -1) -> _Memory:
        size = nbytes(buffer)
        if size < 0:
            self._refuse(lib.PT_ERROR_INVALID_TYPE, subject, index,
                         "is not a buffer of contiguous bytes; "
                         "give a bytearray, an array or a memoryview")
        if size >= SMALL_INT_MAX:
            self._refuse(lib.PT_ERROR_NOT_SUPPORTED, subject, index, "has 1 GiB or more")
        return _Memory(buffer)


# ---- files


class _File(_Caller):
    """An open file, in the memory of its buffer."""

    _c: _CData = None
    memory: _Memory  # set by open
    _kind: str  # name of its struct in `_c`
    _open: _CData
    _subject: int

    def open(self, buffer: Any, verification: int) -> None:
        memory, c = self._memory(buffer, self._subject), ffi.new(self._kind)
        self.call(self._open, c, memory.span["data"], memory.size, verification)
        self.memory, self._c = memory, c

    @property
    def c(self) -> _CData:
        """Return the pt_program or pt_data.

        Raises InvalidState before open(), and if the file's memory was resized since.
        """
        if self._c is None:
            self._refuse(lib.PT_ERROR_INVALID_STATE, self._subject, -1, "is not open; make it by load")
        if self.memory.has_moved():
            self._refuse(lib.PT_ERROR_INVALID_STATE, self._subject, -1,
                         "has been resized since it was passed; keep its size, and open "
                         "it again")
        return self._c

    def _part(self, span: _CData) -> memoryview:
        """Return a read-only memoryview of bytes of the file."""
        part = self.memory.part(span.data, span.size)
        assert part is not None  # the library returns parts of the file only
        return part.toreadonly()


class Program(_File):
    """A .ptm or .pte file. method: the number of a method. Texts are bytes: a file may have any."""

    _kind, _open, _subject = "pt_program *", lib.pt_open, lib.PT_SUBJECT_PROGRAM
    num_methods = _function(lib.pt_program_methods)
    method_name = _function(lib.pt_method_meta_name)
    count = _function(lib.pt_method_meta_count)
    buffer_size = _function(lib.pt_method_meta_buffer)
    operator = _function(lib.pt_method_meta_operator)  # name, overload, number
    instruction_operator = _function(lib.pt_method_meta_called_operator)
    backend = _function(lib.pt_method_meta_backend)
    delegate = _function(lib.pt_method_meta_delegate)
    value = _function(lib.pt_method_meta_evalue)  # returns the number of the value, and its pt_evalue
    check_data = _function(lib.pt_ptm_check_data)
    num_keys = _function(lib.pt_named_data_count)
    key = _function(lib.pt_named_data_key)
    find_key = _function(lib.pt_named_data_find)

    def ask(self, function: _CData, *arguments: Any) -> Any:
        """Call a function. For a function of a method, the first argument is the method's number."""
        if _type_of(function).args[0] is not ffi.typeof("pt_method_meta *"):
            return super().ask(function, *arguments)
        method, *further = arguments
        return self.call(function, self.method_meta(method), *further)

    def method_meta(self, method: int) -> _CData:
        """Return the pt_method_meta of a method."""
        meta = ffi.new("pt_method_meta *")
        self.call(lib.pt_method_meta_at, meta, self.c, method)
        return meta

    def find(self, name: str) -> int:
        """Return the number of the method with this name."""
        meta = ffi.new("pt_method_meta *")
        self.call(lib.pt_method_meta_find, meta, self.c, name)
        found: int = meta.index
        return found

    def item(self, method: int, what: int, i: int) -> tuple[int, int, Any, bool]:
        """Describe a value, an input or an output.

        Returns its index among the method's values, its KernelTypes, its constant and a flag. The
        constant is its number or string (bytes) in the program, or None. The flag is True for a tensor
        with a fully qualified name.
        """
        meta = self.method_meta(method)
        value, item = self.call(lib.pt_method_meta_evalue, meta, what, i)
        constant: Any = _text(item.text) if item.type == lib.PT_TYPE_STRING else None
        if lib.PT_TYPE_INT <= item.type <= lib.PT_TYPE_DOUBLE:
            constant = _number(item.number)
        return value, item.type, constant, lib.pt_has_name(meta, item)

    def tensor(self, method: int, what: int, i: int) -> tuple[Any, ...]:
        """Return the program's description of a tensor, see _tensor."""
        item = self.value(method, what, i)[1]
        found: tuple[Any, ...] = self.ask(lib.pt_method_meta_tensor, method, item)
        return found

    def views(self, method: int) -> list[int]:
        """Return the values that instructions turn into views of others."""
        meta, values = self.method_meta(method), []
        walk = ffi.new("pt_instruction_walk *", lib.pt_instruction_walk_start(meta))
        while lib.pt_instruction_walk_next(walk):
            values.append(lib.pt_instruction_walk_view(walk))
        return [value for value in values if value >= 0]

    def has_backend(self, method: int, i: int, name: str) -> bool:
        found: bool = self.backend(method, i) == _utf8(name)
        return found

    def processed(self, method: int, i: int, view: memoryview | None = None) -> memoryview:
        return self._part(self.delegate(method, i).processed)

    def num_specs(self, method: int, i: int) -> int:
        found: int = self.delegate(method, i).n_specs
        return found

    def spec(self, method: int, i: int, k: int) -> tuple[bytes, memoryview]:
        """Return the key and value of compile spec k."""
        key, value = ffi.new("pt_text *"), ffi.new("pt_span *")
        self.ask(lib.pt_compile_spec, method, self.delegate(method, i), k, key, value)
        return _text(key), self._part(value)

    def find_spec(self, method: int, i: int, key: str,
                  view: memoryview | None = None) -> memoryview | None:
        """Return the value of the first compile spec with this key, or None."""
        value = ffi.new("pt_span *")
        found = self.ask(lib.pt_find_spec, method, self.delegate(method, i), key, value)
        return self._part(value) if found else None

    def data(self, i: int, view: memoryview | None = None) -> memoryview:
        return self._part(self.ask(lib.pt_named_data, i))


class Data(_File):
    """A .ptd file, with the interface of Program."""

    _kind, _open, _subject = "pt_data *", lib.pt_data_open, lib.PT_SUBJECT_DATA_FILE
    num_keys = _function(lib.pt_data_keys)
    key = _function(lib.pt_data_key)
    find_key = _function(lib.pt_data_find)
    tensor = _function(lib.pt_data_tensor)

    def data(self, i: int, view: memoryview | None = None) -> memoryview:
        return self._part(self.ask(lib.pt_data_bytes, i))


# ---- what the library calls


def _method_of(m: _CData) -> "Method":
    found: Method = ffi.from_handle(m.c.owner)()
    return found


def _keep(kind: type[BaseException], error: BaseException, traceback: TracebackType) -> None:
    """Keep the exception of a function that the library calls, until the library returns.

    An interrupt may end INIT or DESTROY. Then the delegate is destroyed here, since the library does
    not know that it is ready, or since it was not destroyed.
    """
    arguments = traceback.tb_frame.f_locals
    method = _method_of(arguments["m"])
    method._raised[threading.get_ident()] = error
    if arguments.get("what") in (INIT, DESTROY):
        method._owner.on_request(DESTROY, arguments["delegate"])


@ffi.def_extern(error=lib.PT_ERROR_INTERNAL, onerror=_keep)  # type: ignore[untyped-decorator]  # cffi has no types
def handle_signals(m: _CData) -> int:
    """Handle signals. The library calls this function from time to time while a method runs.

    An exception of a handler, such as KeyboardInterrupt for ctrl-C, ends the execution.
    """
    return 0


@ffi.def_extern(error=lib.PT_ERROR_INTERNAL, onerror=_keep)  # type: ignore[untyped-decorator]  # cffi has no types
def ask(m: _CData, what: int, delegate: int, error: _CData) -> int:
    """Pass the request of a delegate to its owner."""
    method = _method_of(m)
    try:
        method._delegate_thread = threading.get_ident()
        code = method._owner.on_request(what, delegate)
    finally:
        method._delegate_thread = None
    moved = method._moved() if what != DESTROY and not code else 0
    return lib.pt_moved_memory(m, moved, error) if moved else code


# ---- methods


class _Call(NamedTuple):
    thread: int
    method: "Method"
    planned: Sequence[_Range]  # each memory that the call may read or write
    temp: Sequence[_Range]  # the call's temp memory
    pool: object  # MemoryAllocator of a load or an unload


_calls: dict[object, _Call] = {}  # running calls, the oldest first


def _check_alone(key: object) -> None:
    """Raise InvalidState if an older call than the key's uses its method or its memory."""
    calls = _calls.copy()
    call = calls[key]
    for each, older in calls.items():
        if each is key:
            return
        doing = "executing" if older.method._m.is_running else "in use"
        if older.method is call.method:
            if older.thread != call.thread:
                call.method._refuse_call(f"is {doing} in another thread; give each thread its own "
                                         "Method, or a lock held from set_input to get_output")
        elif call.pool is not None and older.pool is call.pool:
            call.method._refuse_call("a method is being loaded or unloaded there",
                                     lib.PT_SUBJECT_POOL)
        elif _share_memory(call, older):
            call.method._refuse_call(f"shares memory with one that is {doing}; give each Method its "
                                     "own memory, or call them one after the other")


def _ranges(*memories: _Memory | None) -> list[_Range]:
    return [(memory.start, memory.start + memory.size) for memory in memories if memory]


def _share_memory(call: _Call, older: _Call) -> bool:
    """Return True if two calls use the same bytes.

    A delegate of the older call may run a method in temp memory: in bytes that the delegate has
    allocated there, or in a temp memory without its allocations.
    """
    used, theirs = [*call.planned, *call.temp], older.temp
    if older.method._delegate_thread == call.thread:
        theirs = [(start, start + older.method._m.temp_used) for start, _ in theirs]
        used = [(start, end) for start, end in used
                if not any(first <= start and end <= last for first, last in theirs)]
    return _overlap(used, [*older.planned, *theirs])


def _overlap(ranges: Iterable[_Range], others: Collection[_Range]) -> bool:
    return any(start < other_end and other < end and start < end and other < other_end
               for start, end in ranges for other, other_end in others)


# Cores for which kernels pack constants.
CORES: dict[str | None, int] = {
    "cortex-m0": lib.PT_CORE_V6M,
    "cortex-m0plus": lib.PT_CORE_V6M,
    "cortex-m1": lib.PT_CORE_V6M,
    "cortex-m4": lib.PT_CORE_DSP,
    "cortex-m7": lib.PT_CORE_DSP,
    "cortex-m33": lib.PT_CORE_DSP,
    "cortex-m35p": lib.PT_CORE_DSP,
}
# Cores whose kernels gain from more temp memory than they need.
PREFERRING_CORES = {**CORES, "cortex-m3": lib.PT_CORE_V7M}


class Method(_Caller):
    """A loaded method.

    owner: a contract.MethodOwner. max_delegates: delegates of the method. max_arguments: arguments of a
    call. planned: number of buffers. Under MicroPython, a locked heap has room for at most eight
    others.
    """

    _owner: "MethodOwner"
    check = _function(lib.pt_check_loaded)
    ask_temp = _function(lib.pt_ask_temp)

    def __init__(self, owner: "MethodOwner", max_delegates: int, max_arguments: int,
                 planned: int) -> None:
        super().__init__(owner)
        self._delegates = ffi.new("pt_delegates *", lib.delegates)
        self._delegates.max_delegates, self._delegates.max_arguments = max_delegates, max_arguments
        self.core = lib.PT_CORE_PLAIN  # load packs weights and prefers temp memory for it
        self.threads = 1  # number of threads that share the large loops of execute
        self._delegate_thread: int | None = None  # the thread in which the library calls a delegate
        self._m = ffi.new("pt_method *")
        self._m.c.owner = self._handle = ffi.new_handle(weakref.ref(self))
        self._m.c.poll = ffi.addressof(lib, "pt_poll")
        self._release()

    @property
    def c(self) -> _CData:
        """Return the pt_method. Raises InvalidState if a memory was resized since load."""
        moved = self._m.state in (lib.PT_LOADED, lib.PT_LOADING) and self._moved()
        if moved:
            self.call(lib.pt_moved_memory, self._m, moved)
        return self._m

    # ---- memories

    def _release(self) -> None:
        self._structs: tuple[Any, ...] = ()  # the library refers to these while the method is loaded
        self._own: _Ranges = [], []  # of a _Call; events count as planned memory
        self._load_memories: dict[int, _Memory] = {}  # memories of load, by their numbers
        # Other memories, the oldest first. A memory is listed before the library refers to it, under
        # any number, since an interrupt may come at any time.
        self._attached: list[_Memory] = []

    def _memories(self) -> dict[int, _Memory]:
        """Return the memories by their numbers."""
        external = range(self._m.first_external, self._m.end_external) if self._attached else ()
        found = {i: self._attached_at(self._m.c.memory[i], self._m.c.memory_size[i]) for i in external}
        return self._load_memories | {i: memory for i, memory in found.items() if memory}

    def _attached_at(self, pointer: _CData, size: int) -> _Memory | None:
        """Return the memory at an address. A memory that the library rejected may begin there, too."""
        for memory in self._attached:
            if memory.start == _address(pointer) and memory.size >= size:
                return memory
        return None

    def _moved(self) -> int:
        """Return the number of the first memory that was moved or resized; 0 for none."""
        for i, memory in self._memories().items():
            if memory.has_moved():
                return i
        return 0

    def _part(self, pointer: _CData, size: int) -> memoryview:
        """Return a memoryview of bytes in place."""
        if not size:
            return memoryview(bytearray())
        for memory in (*self._load_memories.values(), *self._attached):
            part = memory.part(pointer, size)
            if part is not None:
                return part
        raise ValueError

    def _refuse_call(self, what: str, subject: int = lib.PT_SUBJECT_METHOD) -> NoReturn:
        self._refuse(lib.PT_ERROR_INVALID_STATE, subject, -1, what)

    def alone(self, function: Callable[..., _Found], *arguments: Any,
              own: _Ranges = ((), ()), pool: object = None) -> _Found:
        """Call a function while no other call uses this method, the pool, or memory in `own`.

        Raises InvalidState if another thread uses one of them; the call of that thread continues.
        """
        key = object()
        try:
            _calls[key] = _Call(threading.get_ident(), self, *own, pool)
            _check_alone(key)
            found = function(*arguments)
        finally:  # an interrupt comes behind the call here, not before it
            _calls.pop(key, None)
        return found

    def _ask_alone(self, function: _CData, *arguments: Any) -> Any:
        return self.alone(self.ask, function, *arguments, own=self._own)

    # ---- loading

    def load(self, program: Program, method: int, pool: "WriteableBuffer", size: int, used: int,
             planned: "Sequence[WriteableBuffer]", temp: "WriteableBuffer | None",
             files: list[Data] | None, pack_weights: Any, events: "WriteableBuffer | None") -> int:
        """Load a method, and return the used bytes of the pool.

        `pool`: the first `used` of its `size` bytes are in use. planned: list of buffers. temp, events:
        buffers, or None. files: list of Data, or None.
        """
        meta, files = program.method_meta(method), files or []
        if self._m.state != lib.PT_UNLOADED:
            self.call(lib.pt_load, self._m, meta, [{}], [{}])  # the library rejects it
        self._release()
        pool_memory = self._memory(pool, lib.PT_SUBJECT_POOL)
        planned_memories = [
            self._memory(buffer, lib.PT_SUBJECT_PLANNED_BUFFER, i)
            for i, buffer in enumerate(planned[: program.count(method, PLANNED_BUFFERS)])]
        scratch, tracer = [
            buffer if buffer is None else self._memory(buffer, subject)
            for buffer, subject in ((temp, lib.PT_SUBJECT_TEMP), (events, lib.PT_SUBJECT_EVENT_TRACER))]
        spans = ffi.new("pt_span[]", [memory.span for memory in planned_memories])
        data = ffi.new("pt_data *[]", [file.c for file in files])
        memories = {"pool": pool_memory.span | {"size": min(size, pool_memory.size)}, "pool_used": used,
                    "planned": spans, "n_planned": len(planned_memories),
                    "temp": scratch.span if scratch else {},
                    "data": data, "n_data": len(files)}
        options = {"pack_weights": self._flag(pack_weights), "core": self.core,
                   "delegates": self._delegates,
                   "clock": ffi.addressof(lib, "pt_nanoseconds"), "clock_mask": 2**64 - 1,
                   "events": tracer.span if tracer else {}}
        self._structs = program, files, spans, data
        self._own = _ranges(*planned_memories, tracer), _ranges(scratch)
        others = [*planned_memories, *[file.memory for file in files]]
        self._load_memories = {
            lib.PT_MEMORY_PROGRAM: program.memory, lib.PT_MEMORY_POOL: pool_memory,
            **dict(enumerate(others, lib.PT_MEMORY_PLANNED)),
            **{lib.PT_MEMORIES + i: found for i, found in enumerate([scratch, tracer]) if found}}
        self.alone(self.call, lib.pt_load, self._m, meta, [memories], [options], own=self._own)
        result: int = self._m.end
        return result

    def unload(self) -> None:
        self.alone(self._unload)

    def _unload(self) -> None:
        try:
            self.call(lib.pt_unload, self._m)
        finally:
            if self._m.state == lib.PT_UNLOADED:
                self._release()

    def end(self) -> int:
        """Return the end of the method in its pool; -1 while it is not loaded."""
        return self._m.end if self._m.state == lib.PT_LOADED else -1

    def count(self, what: int) -> int:
        """Count as Program.count does, in the loaded method."""
        self.check()
        found: int = lib.pt_method_meta_count(ffi.addressof(self._m, "meta"), what)
        return found

    def is_running(self) -> bool:
        """Return True while execute or step runs, in this or another thread."""
        found: bool = self._m.is_running
        return found

    def usage(self) -> tuple[int, int, int, int]:
        """Return four sizes in bytes: pool, pool behind the records, used and preferred temp memory.

        The preferred temp memory is the size with which the core's kernels are fastest.
        """
        usage = lib.pt_get_usage(self._m)
        return usage.pool, usage.packed, usage.temp, usage.preferred_temp

    def conv_variants(self) -> int:
        """Return a bit 1 << PT_VARIANT_... for each variant that speeds up a convolution with DSP."""
        found: int = self._m.c.conv_variants
        return found

    def unpack_once(self, memory: memoryview) -> None:
        """Let convolutions unpack their packed weights once per load instead of once per call.

        memory: receives the unpacked weights; starts at a multiple of 8 bytes.
        """
        self._unpacked = memory
        self._m.c.unpacked = ffi.cast("uint8_t *", _start(memory))
        self._m.c.unpacked_bytes, self._m.c.unpacked_used = len(memory), 0

    # ---- inputs, outputs, attributes

    def _attach(self, function: _CData, key: int | str, value: Any, subject: int, index: int) -> None:
        """Pass a buffer or a Tensor to a function of the library."""
        if not _is_tensor(value):
            self._refuse(lib.PT_ERROR_INVALID_ARGUMENT, subject, index,
                         "is a tensor; give its data")
        shaped = hasattr(value, "sizes_view")
        memory = self._memory(value.data if shaped else value, subject, index)
        fields: dict[str, Any] = {"data": memory.span, "typecode": bytes([buffer(memory.view)[0]])}
        if shaped:
            # copies, since the garbage collector cannot clear a view that is exported
            order = tuple(value.dim_order_view)
            fields |= {"has_shape": True, "rank": len(order), "dtype": value.dtype_number,
                       "sizes": ffi.new("int32_t[]", tuple(value.sizes_view)),
                       "dim_order": ffi.new("uint8_t[]", order)}
        self.alone(self._ask_with, memory, function, key, [fields], own=self._own)

    def _ask_with(self, memory: _Memory, function: _CData, *arguments: Any) -> Any:
        self._attached = [*self._attached, memory]
        try:
            self.ask(function, *arguments)
        finally:  # memory that was rejected, or is no longer used
            used = self._memories()
            self._attached = [each for each in self._attached if each in used.values()]

    def set_input(self, value: Any, index: int) -> None:
        """Set an input. The owner may convert a value that cannot be an input."""
        item = _item(value)
        as_input = getattr(self._owner, "as_input", None)
        if item["type"] == lib.PT_TYPE_NONE and not _is_tensor(value) and as_input is not None:
            value = as_input(value, index)
            item = _item(value)
        if item["type"] == lib.PT_TYPE_NONE and _is_tensor(value):
            self._attach(lib.pt_give_input, index, value, lib.PT_SUBJECT_INPUT, index)
        else:
            self._ask_alone(lib.pt_set_constant_input, index, [item])

    def set_output(self, buffer: Any, i: int) -> None:
        self._attach(lib.pt_set_output, i, buffer, lib.PT_SUBJECT_OUTPUT, i)

    def set_attribute(self, buffer: Any, name: str) -> None:
        self._attach(lib.pt_set_attribute, name, buffer, lib.PT_SUBJECT_ATTRIBUTE, -1)

    def _object(self, view: _CData, kept: Kept) -> Any:
        """Return a value as an object. A tensor or a list is the Kept's, pointed to the value."""
        if view.type == lib.PT_TYPE_TENSOR:
            return self._show(view, kept.tensor)
        if view.type == lib.PT_TYPE_NULL:
            return None
        if view.type == lib.PT_TYPE_STRING:
            try:
                return _text(view.text).decode()
            except UnicodeDecodeError:
                self._refuse(lib.PT_ERROR_INVALID_PROGRAM, lib.PT_SUBJECT_VALUE, view.value,
                             "is not UTF-8")
        if view.type <= lib.PT_TYPE_DOUBLE:
            return _number(view.number)
        return kept.list.point_to(view.value, view.list.count)

    def _show(self, view: _CData, tensor: "Tensor") -> "Tensor":
        t, constant = view.tensor, lib.pt_is_constant_memory(self._m, view.memory)
        tensor.data = _typed(self._part(t.data, view.nbytes), t.dtype, not constant)
        tensor.dtype_number = t.dtype
        tensor.sizes_view = _typed(self._part(t.sizes, 4 * t.rank), lib.PT_DTYPE_INT, False)
        tensor.dim_order_view = self._part(t.dim_order, t.rank).toreadonly()
        return tensor

    def get_output(self, index: int) -> Any:
        """Return an output as an object: the Tensor or list of its Kept, pointed to the output."""
        return self.alone(self._get_output, index, own=self._own)

    def _get_output(self, index: int) -> Any:
        view = self.ask(lib.pt_output, index)
        if index >= len(self._owner.kept):
            self._owner.on_request(KEPT, index)
        return self._object(view, self._owner.kept[index])

    def item(self, value: int, i: int, kept: Kept) -> Any:
        """Return item i of value number `value`, a list."""
        self.check()
        meta = ffi.addressof(self._m, "meta")
        _, list = self.call(lib.pt_method_meta_evalue, meta, VALUES, value)
        return self._object(self.ask(lib.pt_list_view, list, i), kept)

    def attribute(self, name: str, kept: Kept) -> Any:
        """Return the parameter or buffer with this name: the Tensor of a Kept, pointed to it."""
        return self._show(self._ask_alone(lib.pt_attribute, name), kept.tensor)

    def tensor(self, value: int) -> tuple[int, list[int], list[int], bytes]:
        """Return (dtype, sizes, dim order, bytes) of value number `value`, a tensor in RAM."""
        c = ffi.addressof(self._m, "c")
        t = lib.pt_get_tensor(c, lib.pt_find_value(c, value))
        sizes = ffi.unpack(t.sizes, t.rank)
        nbytes = math.prod(sizes) * element_size(t.dtype)
        return t.dtype, sizes, list(ffi.unpack(t.dim_order, t.rank)), bytes(ffi.buffer(t.data, nbytes))

    # ---- executing

    def reset_state(self) -> None:
        self._ask_alone(lib.pt_reset_state)

    def seed(self, seed: int) -> None:
        self._ask_alone(lib.pt_seed, (seed + 2**31 & 0xFFFFFFFF) - 2**31)

    def restart(self) -> None:
        self._ask_alone(lib.pt_restart)

    def execute(self) -> None:
        self._ask_alone(lib.pt_execute_by_threads, self.threads)

    def step(self) -> None:
        self._ask_alone(lib.pt_step)

    # ---- for delegates

    def argument_count(self) -> int:
        """Return the number of arguments of the running delegate call."""
        found: int = self._m.n_call
        return found

    def argument(self, i: int, kept: Kept) -> Any:
        return self._object(self.ask(lib.pt_argument, i), kept)

    def resize_argument(self, i: int, sizes: Any) -> None:
        """Set the sizes of an argument of dynamic shape, a buffer of int32."""
        if nbytes(sizes) < 0 or buffer(sizes)[0] != ord("i"):
            self._refuse(lib.PT_ERROR_INVALID_ARGUMENT, lib.PT_SUBJECT_SIZES, -1,
                         "are not a buffer of int32, such as array('i')")
        sizes = memoryview(sizes).tolist()
        self.ask(lib.pt_resize_argument, i, len(sizes), sizes)

    def allocate(self, size: int, alignment: int, view: memoryview | None = None) -> memoryview:
        """Allocate bytes of the pool in INIT, of the temp memory in EXECUTE."""
        is_pool = self._m.state == lib.PT_LOADING
        function = lib.pt_allocate if is_pool else lib.pt_allocate_temp
        return self._part(self.ask(function, size, alignment), size)

    def instruction(self) -> int:
        """Return the number of the running instruction."""
        found: int = self._m.c.instruction
        return found


# ---- values for the caller


def _is_tensor(value: Any) -> bool:
    """Return True for a Tensor, and for a buffer, even a released one."""
    try:
        memoryview(value)
    except TypeError:
        return hasattr(value, "data") and hasattr(value, "sizes_view")
    except ValueError:
        pass
    return True
