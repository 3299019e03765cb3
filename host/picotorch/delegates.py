"""Run delegates: the parts of a program that its exporter assigned to a backend.

    class Negate(Backend):
        def execute(self, context, handle, args): ...

    register_backend("Negate", Negate())

A backend has the methods of ExecuTorch's BackendInterface (docs/delegates.md). To fail, they raise an
Error:

    raise fail(DELEGATE_INVALID_COMPATIBILITY, "was exported for version 2")

Any other exception becomes an Error that names the backend and leaves the method usable. All objects
are made with the Method, so that delegates can be loaded and executed with the heap locked.

A function that returns bytes to a backend has a parameter `view`, a memoryview that the backend made at
set-up (`memoryview(bytearray(1))`). Under MicroPython the function points it at the bytes and returns
it, which needs no heap. Without `view`, and always under CPython, it returns a new memoryview.
"""

import _picotorch

from . import errors
from .errors import Error, fail, need, spare_error, text_of
from .memory import ALIGNMENT
from .method_meta import MethodMeta, backends
from .program import NamedDataMap
from .tensor import Tensor, ValueList, new_kept


class Backend:
    """The base of all backends."""

    def is_available(self):
        """Return False if the backend cannot work now; load then raises NotFound."""
        return True

    def init(self, context, processed, compile_specs):
        """Set up a delegate at load, and return its handle, which may be any object.

        context: BackendInitContext. processed: FreeableBuffer with the result of the backend's
        preprocess at export. compile_specs: the CompileSpecs of the export.
        """
        raise fail(errors.NOT_IMPLEMENTED, "has no init", "backend")

    def execute(self, context, handle, args):
        """Execute a delegate.

        args: its inputs, then its outputs, which it writes: Tensors (valid until it returns), numbers,
        bools, None. context: BackendExecutionContext.
        """
        raise fail(errors.NOT_IMPLEMENTED, "has no execute", "backend")

    def destroy(self, handle):
        """Destroy a handle when its method is unloaded, or when its load fails."""


def register_backend(name, backend):
    """Register a backend for all methods that are made afterwards.

    Raises InvalidArgument for a name that is registered, InvalidType for anything but a Backend.
    """
    need(backend, Backend, "backend")
    if get_backend(name) is not None:
        raise fail(errors.INVALID_ARGUMENT, "is already registered; unregister_backend first", name)
    backends.append((name, backend))


def unregister_backend(name):
    """Unregister a backend; methods that are loaded keep it. Raises NotFound."""
    backend = get_backend(name)
    if backend is None:
        raise fail(errors.NOT_FOUND, "does not exist; give one of registered_backend_names()",
                   "backend")
    backends.remove((name, backend))


def registered_backend_names():
    """Return the names of the registered backends."""
    return [name for name, _ in backends]


def get_backend(name):
    """Return the backend of this name, or None."""
    need(name, str, "name")
    for registered, backend in backends:
        if registered == name:
            return backend
    return None


# ---- a backend's contexts


class BackendAllocator:
    """Allocate bytes for a delegate: from the method's pool in init, from the temp memory in execute.

    Bytes of the pool are zero and belong to the delegate until unload. Bytes of the temp memory have
    undefined contents and are valid until execute returns.
    """

    def __init__(self, allocate):
        self._allocate = allocate
        self.is_open = True

    def allocate(self, size, alignment=ALIGNMENT, view=None):
        """Return a memoryview of `size` bytes.

        Raises MemoryAllocationFailed, whose `requested` is the bytes of this memory that the method
        needs so far; InvalidArgument for an alignment that is not a power of two, or that the memory
        does not have; InvalidState for memory of the pool after init.
        """
        if not self.is_open:
            raise fail(errors.INVALID_STATE, "allocates only in init", "method pool")
        return self._allocate(size, alignment, view)


class _Context:
    """The base of both contexts. Each Method has one of each."""

    def __init__(self, method, allocate):
        self._method = method
        self._allocator = BackendAllocator(allocate)

    def get_method_name(self):
        return self._method.name


class BackendInitContext(_Context):
    """The objects that init may use, until it returns."""

    def __init__(self, method):
        super().__init__(method, method.library.allocate)
        self._named_data = NamedDataMap()

    def get_runtime_allocator(self):
        """Return a BackendAllocator of the method's pool; its bytes count as the method's."""
        return self._allocator

    def get_named_data_map(self):
        """Return a NamedDataMap of the named data of the program and of its data files."""
        self._named_data.library = self._method.program.library
        self._named_data.data_map = self._method.data_map
        return self._named_data

    def ask_temp(self, size):
        """Request, in init, `size` bytes of temp memory for execute.

        If there is less, load fails instead of execute. Raises InvalidArgument.
        """
        self._method.library.ask_temp(size)


class BackendExecutionContext(_Context):
    """The objects that execute may use, until it returns."""

    def __init__(self, method, arguments):
        super().__init__(method, method.library.allocate)
        self._arguments = arguments

    def get_temp_allocator(self):
        """Return a BackendAllocator of the temp memory."""
        return self._allocator

    def allocate(self, size, alignment=ALIGNMENT, view=None):
        """Allocate from the temp allocator."""
        return self._allocator.allocate(size, alignment, view)

    def resize_tensor(self, tensor, sizes):
        """Set the sizes of an output of dynamic shape.

        sizes: a buffer of int32, array("i") or raw_sizes() of another Tensor. Raises NotSupported for
        another rank and for sizes above the bound, InvalidArgument for anything else.
        """
        self._arguments.resize(tensor, sizes)


class FreeableBuffer:
    """The processed data of a delegate, in place in the program, until it is freed."""

    def __init__(self):
        self._view = memoryview(bytearray(1))
        self._is_free = True

    def point_to(self, library, plan, index):
        """Refer to the data of delegate `index` of a method."""
        self._view = library.processed(plan, index, self._view)
        self._is_free = False

    def data(self):
        """Return a read-only memoryview. Raises InvalidState after free."""
        if self._is_free:
            raise fail(errors.INVALID_STATE, "was freed", "processed data")
        return self._view

    def size(self):
        """Return the number of bytes; 0 after free."""
        return 0 if self._is_free else len(self._view)

    def free(self):
        """Free the data, which the backend no longer needs."""
        self._is_free = True


class CompileSpec:
    """A compile spec. key: str; value: read-only memoryview."""

    def __init__(self, key, value):
        self.key = key
        self.value = value


class CompileSpecs:
    """The compile specs of delegate `index` of a Method or MethodMeta, in order."""

    def __init__(self, method, index):
        self._method = method
        self._index = index

    def __len__(self):
        return self._method.program.library.num_specs(self._method.plan, self._index)

    def __getitem__(self, i):
        """Return a new CompileSpec. Raises IndexError."""
        if not 0 <= i < len(self):
            raise IndexError
        key, value = self._method.program.library.spec(self._method.plan, self._index, i)
        return CompileSpec(text_of(key), value)

    def get(self, key, view=None):
        """Return the value of the first spec of this key, a read-only memoryview, or None.

        Needs no heap.
        """
        return self._method.program.library.find_spec(self._method.plan, self._index, key, view)


# ---- the delegates of a method: initialized at load, called by execute, destroyed by unload


class Delegate:
    """One delegate of a method, its backend and its handle."""

    def __init__(self, method, index):
        self.backend = None
        self.handle = None
        self.is_ready = False  # initialized, and not destroyed since
        self.processed = FreeableBuffer()
        self.compile_specs = CompileSpecs(method, index)

    def destroy(self):
        """Call the backend's destroy and free the processed data, if the delegate is ready."""
        if not self.is_ready:
            return
        self.processed.free()
        self.is_ready = False
        backend = self.backend
        handle = self.handle
        self.backend = None
        self.handle = None
        backend.destroy(handle)


class Arguments:
    """The arguments of the running delegate call, a sequence."""

    def __init__(self, method, maximum):
        self.items = [new_kept(method) for _ in range(maximum)]
        self.values = [None] * maximum
        self.count = 0
        self._library = method.library

    def read(self):
        """Read the arguments of the running delegate call."""
        library = self._library
        count = library.argument_count()
        values = self.values
        items = self.items
        for i in range(count):
            values[i] = library.argument(i, items[i])
        self.count = count

    def clear(self):
        """Empty the arguments; a Tensor or list that a backend kept then has no elements."""
        values = self.values
        for i in range(self.count):
            value = values[i]
            if isinstance(value, Tensor) or isinstance(value, ValueList):
                value.clear()
            values[i] = None
        self.count = 0

    def resize(self, tensor, sizes):
        """Set the sizes of an argument; see BackendExecutionContext.resize_tensor."""
        for i in range(self.count):
            if self.values[i] is tensor and isinstance(tensor, Tensor):
                self._library.resize_argument(i, sizes)
                self._library.argument(i, self.items[i])
                return
        raise fail(errors.INVALID_ARGUMENT, "is not an argument of this call", "tensor")

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index < 0:
            index += self.count
        if not 0 <= index < self.count:
            raise IndexError
        return self.values[index]


class Delegates:
    """The delegates of one Method, at most `maximum`; a call has at most `max_arguments`."""

    def __init__(self, method, maximum, max_arguments):
        self.method = method
        self.items = [Delegate(method, i) for i in range(maximum)]
        self.arguments = Arguments(method, max_arguments)
        self.keeps_errors = False  # whether to store errors of destroy, as unload does
        self._init_context = BackendInitContext(method)
        self._execution_context = BackendExecutionContext(method, self.arguments)
        self._error = None  # what a backend raised last
        # for `explain`
        self._failed = 0
        self._exception = None

    # ---- called by the library: each returns an error code

    def find(self, index, backend):
        """Store the backend of delegate `index`; return NOT_FOUND if it cannot work now."""
        code = errors.INTERNAL
        try:
            if not backend.is_available():
                code = errors.NOT_FOUND
                raise fail(errors.NOT_FOUND, "is not available")
        except Exception as error:
            self._keep(error, index)
            return code
        if index < len(self.items):
            self.items[index].backend = backend
        return errors.OK

    def call(self, what, index):
        """Pass the request INIT, EXECUTE or DESTROY to a backend; return an error code."""
        delegate = self.items[index]
        if what == _picotorch.DESTROY:
            return self._destroy(delegate, index)
        self._error = None
        try:
            if what == _picotorch.INIT:
                self._init(delegate, index)
            else:
                self._execute(delegate)
        except Exception as error:
            if what == _picotorch.EXECUTE:
                self._keep(error, index, self.method.library.instruction())
            else:
                self._keep(error, index)
                spare_error()  # others are destroyed before it is raised
        return errors.OK if self._error is None else errors.INTERNAL

    def _init(self, delegate, index):
        method = self.method
        allocator = self._init_context.get_runtime_allocator()
        try:
            allocator.is_open = True
            delegate.processed.point_to(method.program.library, method.plan, index)
            delegate.handle = delegate.backend.init(self._init_context, delegate.processed,
                                                    delegate.compile_specs)
            delegate.is_ready = True
        finally:
            allocator.is_open = False

    def _execute(self, delegate):
        try:
            self.arguments.read()
            delegate.backend.execute(self._execution_context, delegate.handle, self.arguments)
        finally:
            self.arguments.clear()  # a Tensor that a backend kept has no elements afterwards

    def _destroy(self, delegate, index):
        """Destroy a delegate; store an interrupt, and with keeps_errors also a backend's error.

        May be called again after an interrupt.
        """
        while delegate.is_ready:
            try:
                delegate.destroy()
            except BaseException as error:
                if self.keeps_errors or not isinstance(error, Exception):
                    self._keep(error, index)
        return errors.OK

    # ---- errors

    def take_error(self):
        """Return and clear the exception of the call that just failed, or return None."""
        error = self._error
        self._error = None
        return error

    def raise_error(self):
        """Raise the exception that take_error returns, if there is one."""
        error = self.take_error()
        if error is not None:
            try:
                raise error
            finally:
                error = None  # no cycle of the error and this frame

    def _keep(self, error, delegate, instruction=-1):
        """Store the Error for an exception of a backend, at load or in an instruction.

        An interrupt is stored as it is.
        """
        self._failed = delegate
        self._exception = None
        if isinstance(error, Exception) and not self._locate(error, delegate, instruction):
            if isinstance(error, MemoryError):
                error = fail(errors.DELEGATE_MEMORY_ALLOCATION_FAILED, "no memory was left",
                             "delegate", delegate, source=self)
            else:
                self._exception = error
                error = fail(errors.INTERNAL, "", "delegate", delegate, source=self)
                if error.text is not None:  # it has the exception's text, whose frames are not kept
                    self._exception = None
        self._error = error

    def _locate(self, error, delegate, instruction):
        """Add the delegate to a backend's own Error.

        Returns False for an Error without a code, or of a class that does not call Error's __init__.
        """
        if not isinstance(error, Error):
            return False
        try:
            if not isinstance(error.code, int) or error.code == errors.OK:
                return False
            if error.subject is None:
                error.subject = "delegate" if instruction < 0 else "instruction"
                error.index = delegate if instruction < 0 else instruction
            if error.source is None:
                error.source = self
            if error.text is not None:
                error.text = None
                error.text = error.message
        except Exception:
            return False
        return True

    def explain(self, error):
        """Return the name of the backend that failed, and its exception."""
        method = self.method
        name = "backend " + MethodMeta(method.program, method.plan).get_backend_name(self._failed)
        if self._exception is None:
            return name
        name = "%s: %s" % (name, type(self._exception).__name__)
        try:
            return "%s: %s" % (name, self._exception)
        except Exception:  # its own text fails
            return name
