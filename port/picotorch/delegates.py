"""The delegates of a method: made ready at load, called while it executes, destroyed.

All objects are made with the Method. Whatever a backend raises becomes an Error that names the
backend and leaves the method usable: a MemoryError DelegateMemoryAllocationFailed, any other
exception Internal.
"""

import _picotorch

from .delegate_contexts import (
    BackendExecutionContext,
    BackendInitContext,
    CompileSpecs,
    FreeableBuffer,
)
from .errors import (
    DELEGATE_MEMORY_ALLOCATION_FAILED,
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    OK,
    Error,
    fail,
    spare_error,
)
from .method_meta import MethodMeta
from .tensor import Tensor

_INT32 = ord("i")


class Delegate:
    """One delegate."""

    def __init__(self):
        self.backend = None
        self.handle = None
        self.is_ready = False  # made so, and not destroyed since
        self.processed = FreeableBuffer()
        self.compile_specs = CompileSpecs()

    def destroy(self):
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
    """The arguments of the delegate call that runs, a sequence."""

    def __init__(self, method, most):
        from .method import Kept

        self.items = [Kept(method) for _ in range(most)]
        self.values = [None] * most
        self.count = 0
        self._library = method.library

    def read(self):
        library = self._library
        count = library.argument_count()
        values = self.values
        items = self.items
        for i in range(count):
            values[i] = library.argument(i, items[i])
        self.count = count

    def clear(self):
        """What a backend has kept of them has no elements any more."""
        values = self.values
        for i in range(self.count):
            value = values[i]
            item = self.items[i]
            if value is item.tensor or value is item.list:
                value.clear()
            values[i] = None
        self.count = 0

    def resize(self, tensor, sizes):
        """See BackendExecutionContext.resize_tensor."""
        for i in range(self.count):
            if self.values[i] is tensor and isinstance(tensor, Tensor):
                if _picotorch.nbytes(sizes) < 0 or _picotorch.typecode(sizes) != _INT32:
                    raise fail(INVALID_ARGUMENT, "are no buffer of int32, as array('i') is", "sizes")
                self._library.resize_argument(i, sizes)
                self._library.argument(i, self.items[i])
                return
        raise fail(INVALID_ARGUMENT, "is no argument of this call", "tensor")

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index < 0:
            index += self.count
        if not 0 <= index < self.count:
            raise IndexError
        return self.values[index]

    def __repr__(self):
        return "<Arguments %r>" % [self.values[i] for i in range(self.count)]


class Delegates:
    """Those of one Method. most, most_arguments: how many there can be."""

    def __init__(self, method, most, most_arguments):
        self.method = method
        self.items = [Delegate() for _ in range(most)]
        self.arguments = Arguments(method, most_arguments)
        self.keeps_errors = False  # of destroy
        self._init_context = BackendInitContext(method.library)
        self._execution_context = BackendExecutionContext(method.library, self.arguments)
        self._error = None  # what a backend raised last
        # for `explain`
        self._failed = 0
        self._exception = None

    def bind(self, program, plan, data_map, name):
        """What will be loaded."""
        self._error = None
        self._init_context.bind(program, data_map, name)
        self._execution_context.bind(name)
        for i in range(min(len(self.items), program.library.count(plan, _picotorch.DELEGATES))):
            self.items[i].compile_specs.bind(program, plan, i)

    # ---- what the library calls: each gives an error's code

    def find(self, index, backend):
        """Takes the backend of a delegate. NotFound where it cannot work now."""
        try:
            if not backend.is_available():
                self._keep(self._error_of(NOT_FOUND, "is not available", index), index, "delegate",
                           index)
                return NOT_FOUND
        except Exception as error:
            self._keep(error, index, "delegate", index)
            return INTERNAL
        if index < len(self.items):
            self.items[index].backend = backend
        return OK

    def call(self, what, index):
        if what == _picotorch.INIT:
            return self._init(index)
        if what == _picotorch.EXECUTE:
            return self._execute(index)
        return self._destroy(index)

    def _init(self, index):
        delegate = self.items[index]
        method = self.method
        self._error = None
        try:
            self._init_context.begin()
            delegate.processed.hold(method.program.library, method.plan, index)
            delegate.handle = delegate.backend.init(self._init_context, delegate.processed,
                                                    delegate.compile_specs)
            delegate.is_ready = True
        except Exception as error:
            self._keep(error, index, "delegate", index)
            spare_error()  # others are destroyed before it is raised
        finally:
            self._init_context.end()
        return OK if self._error is None else INTERNAL

    def _execute(self, index):
        delegate = self.items[index]
        self._error = None
        try:
            self.arguments.read()
            delegate.backend.execute(self._execution_context, delegate.handle, self.arguments)
        except Exception as error:
            self._keep(error, index, "instruction", self.method.library.instruction())
        finally:
            self.arguments.clear()  # a Tensor that a backend kept has no elements afterwards
        return OK if self._error is None else INTERNAL

    def _destroy(self, index):
        """An interrupt is kept until all are destroyed, and if wanted what else a backend raises. May
        be called again after one."""
        while self.items[index].is_ready:
            try:
                self.items[index].destroy()
            except BaseException as error:
                if self.keeps_errors or not isinstance(error, Exception):
                    self._keep(error, index, "delegate", index)
        return OK

    # ---- errors

    def take_error(self):
        """What the call that just failed has raised, or None."""
        error = self._error
        self._error = None
        return error

    def raise_error(self):
        """Raises it, if there is one."""
        error = self.take_error()
        if error is not None:
            raise error

    def _keep(self, error, delegate, subject, index):
        """Keeps the Error for what a backend has raised; an interrupt as it is."""
        self._failed = delegate
        self._exception = None
        if not isinstance(error, Exception):
            pass
        elif isinstance(error, Error) and self._place(error, subject, index):
            pass
        elif isinstance(error, MemoryError):
            error = self._error_of(DELEGATE_MEMORY_ALLOCATION_FAILED, "no memory was left", delegate)
        else:
            self._exception = error
            error = self._error_of(INTERNAL, "", delegate)
        self._error = error

    def _place(self, error, subject, index):
        """Adds to a backend's own Error where it comes from. False for one that is none after all:
        without a code, or of a class that does not call Error's __init__."""
        try:
            if not isinstance(error.code, int) or error.code == OK:
                return False
            if error.subject is None:
                error.subject = subject
                error.index = index
            if error.source is None:
                error.source = self
            if error.text is not None:
                error.text = None
                error.text = error.message
        except Exception:
            return False
        return True

    def _error_of(self, code, what, delegate):
        self._failed = delegate
        return fail(code, what, "delegate", delegate, source=self)

    def explain(self, error):
        """Which backend it was, and what it raised."""
        method = self.method
        name = "backend " + MethodMeta(method.program, method.plan).get_backend_name(self._failed)
        if self._exception is None:
            return name
        return "%s: %s" % (name, _text_of(self._exception))


def _text_of(exception):
    name = type(exception).__name__
    try:
        return "%s: %s" % (name, exception)
    except Exception:  # its own text fails
        return name
