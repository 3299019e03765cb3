"""The delegates of a method: found and made ready at load, called by the executor, destroyed.

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
    OUT_OF_RESOURCES,
    Error,
    bad_program,
    fail,
)
from .method_loader import HEADER_BYTES, VALUE_BYTES
from .no_delegates import NoDelegates
from .schema import BACKEND_DELEGATE_COMPILE_SPECS, BACKEND_DELEGATE_PROCESSED
from .values import Kept

_MOST_ARGUMENTS = 254  # of a call, by the record's layout
_POOL = _picotorch.POOL
_OFFSET = 0x1FFFFFF  # of a reference, in words
_INT32 = ord("i")


class Delegate:
    """One delegate."""

    def __init__(self):
        self.backend = None
        self.handle = None
        self.is_ready = False
        self.processed = FreeableBuffer()
        self.compile_specs = CompileSpecs()

    def hold(self, program, table, index):
        """Holds what the program has for the delegate whose BackendDelegate lies at `table`."""
        processed = program.reader.table(table, BACKEND_DELEGATE_PROCESSED)
        if processed == 0:
            raise bad_program("has no processed data", "delegate", index)
        self.processed.hold(program, processed)
        self.compile_specs.hold(program,
                                program.reader.table(table, BACKEND_DELEGATE_COMPILE_SPECS))

    def init(self, context):
        self.handle = self.backend.init(context, self.processed, self.compile_specs)
        self.is_ready = True

    def destroy(self):
        """It is ready no longer once its backend's destroy is called."""
        self.processed.free()
        backend = self.backend
        handle = self.handle
        self.is_ready = False
        self.backend = None
        self.handle = None
        backend.destroy(handle)


class Argument(Kept):
    """One argument of a call, and the objects for it."""

    def __init__(self):
        super().__init__()
        self.at = -1  # place in the pool of the record that the Tensor shows
        self.value = None

    def clear(self):
        """What a backend has kept of it has no elements any more."""
        if self.value is self.tensor:
            self.tensor.clear()
        elif self.value is self.list:
            self.list.clear()
        self.value = None


class Arguments:
    """The arguments of the delegate call that runs, a sequence."""

    def __init__(self, method, most):
        self.values = method.values
        self.items = [Argument() for _ in range(most)]
        self.count = 0
        self.tensors = 0  # where the records of the method's tensors start and end
        self.tensors_end = 0

    def bind(self, tensors, tensors_end):
        self.tensors = tensors
        self.tensors_end = tensors_end
        for argument in self.items:
            argument.at = -1

    def read(self, context, position, count):
        """Takes the arguments whose references start at a position of the pool; behind them is one to
        the program's vector of their value indexes."""
        self.count = count
        # names of the loop's own: a global or an attribute is another 100 instructions each time
        record = self.values.record
        items = self.items
        first = self.tensors
        end = self.tensors_end
        for i in range(count):
            ref = context.get_ref(position + 4 * i)
            at = (ref & _OFFSET) << 2
            if ref >> 25 == _POOL and first <= at < end:
                argument = items[i]
                tensor = argument.value = argument.tensor
                if at == argument.at:
                    tensor.point_again(context, at, record)
                else:
                    tensor.point(context, at, record)
                    argument.at = at
            else:
                self._read_other(context.get_ref(position + 4 * count), i)

    def _read_other(self, vector, i):
        argument = self.items[i]
        try:
            index = self.values.method.program.reader.i32_item((vector & _OFFSET) << 2, i)
            argument.value = self.values.get(index, argument)
        except ValueError:
            raise bad_program("lies outside the file", "argument", i) from None

    def clear(self):
        for i in range(self.count):
            self.items[i].clear()
        self.count = 0

    def resize(self, tensor, sizes):
        """See BackendExecutionContext.resize_tensor."""
        context = self.values.method.context
        for i in range(self.count):
            argument = self.items[i]
            if argument.value is tensor:
                code = self._try_resize(argument.at, sizes)
                if code:
                    raise fail(code, "", "argument", i, source=self)
                tensor.point_again(context, argument.at, self.values.record)
                return
        raise fail(INVALID_ARGUMENT, "is no argument of this call", "tensor")

    def _try_resize(self, at, sizes):
        # two clauses: a tuple of classes would need the heap
        try:
            if _picotorch.typecode(sizes) != _INT32:
                raise TypeError
            return self.values.method.context.resize(at, sizes)
        except TypeError:
            raise fail(INVALID_ARGUMENT, "are no buffer of int32, as array('i') is", "sizes") from None
        except ValueError:
            raise fail(INVALID_ARGUMENT, "are more than 16", "sizes") from None

    def explain(self, error):
        return self.values.method.context.reason()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index < 0:
            index += self.count
        if not 0 <= index < self.count:
            raise IndexError
        return self.items[index].value

    def __repr__(self):
        return "<Arguments %r>" % [self.items[i].value for i in range(self.count)]


class Delegates(NoDelegates):
    """Those of one Method. max_delegates, max_arguments: how many there can be."""

    def __init__(self, method, max_delegates, max_arguments):
        super().__init__(method)
        self.context = None
        self.init_context = None
        self.arguments = Arguments(method, max_arguments)
        self.execution_context = BackendExecutionContext(self.arguments)
        self.items = [Delegate() for _ in range(max_delegates)]
        self.count = 0
        # what failed last, for `explain`
        self.failed = 0
        self.exception = None

    def bind(self, context):
        self.context = context
        self.init_context = BackendInitContext(context)

    # ---- loading

    def find(self, program, plan):
        self.count = 0
        count = super().find(program, plan)
        for i in range(count):
            self.items[i].backend = self.find_backend(program, i)
            if not self._is_available(i):
                raise self._error_of(NOT_FOUND, "is not available", i)
        self.count = count

    def _is_available(self, index):
        try:
            return bool(self.items[index].backend.is_available())
        except Exception as error:
            self._keep(error, index, "delegate", index)
        raise self.error

    def check_call(self, index, count, instruction):
        """Raises InvalidProgram for a call of no delegate of the method, OutOfResources for one of more
        arguments than there are objects for."""
        if not 0 <= index < self.count:
            super().check_call(index, count, instruction)
        if count > len(self.arguments.items) or count > _MOST_ARGUMENTS:
            raise fail(OUT_OF_RESOURCES, "has more arguments than Method was made for", "instruction",
                       instruction, remedy="give Method a larger max_arguments")

    def init(self, program, data_map, name, manager, loader):
        """Makes all delegates ready; what they allocate of the pool counts from the method's start
        on."""
        self.init_context.bind(program, data_map, name, manager.method_allocator, loader.start)
        self.arguments.bind(loader.value_at, loader.value_at + VALUE_BYTES * loader.n_tensors)
        self.execution_context.bind(name, manager.temp_allocator)
        try:
            for i in range(self.count):
                self._init(program, i)
        finally:
            self.init_context.end()

    def _init(self, program, index):
        self.error = None
        self.items[index].hold(program, self.table(program, index), index)
        try:
            self.items[index].init(self.init_context)
        except Exception as error:
            self._keep(error, index, "delegate", index)
        if self.error is not None:
            raise self.error

    def destroy(self, keep_errors):
        """Destroys those that are ready. An interrupt is kept in `error` until all are, and if wanted
        what else a backend raises."""
        self.error = None
        for i in range(len(self.items)):
            while self.items[i].is_ready:
                try:
                    self.items[i].destroy()
                except BaseException as error:
                    if keep_errors or not isinstance(error, Exception):
                        self._keep(error, i, "delegate", i)

    def raise_interrupt(self):
        """Raises what destroy has kept if it is no Exception."""
        error = self.error
        if error is not None and not isinstance(error, Exception):
            self.error = None
            raise error

    # ---- executing

    def call(self, position):
        """Runs the delegate call whose record is at a position of the pool: 0, or Internal where it
        failed. The error is then in `error`."""
        header = self.context.get_ref(position)
        index = header & 0xFFFF
        self.error = None
        try:
            self._execute(self.items[index], position, (header >> 16 & 0xFF) - 1)
        except Exception as error:
            self._keep(error, index, "instruction", self.context.instruction())
        finally:
            self.arguments.clear()  # a Tensor that a backend kept has no elements afterwards
        return 0 if self.error is None else INTERNAL

    def _execute(self, delegate, position, count):
        temp = self.method.manager.temp_allocator
        if temp is not None:
            temp.reset()
        self.arguments.read(self.context, position + HEADER_BYTES, count)
        delegate.backend.execute(self.execution_context, delegate.handle, self.arguments)

    # ---- errors

    def _keep(self, error, delegate, subject, index):
        """Keeps the Error for what a backend has raised; an interrupt as it is."""
        self.failed = delegate
        self.exception = None
        if not isinstance(error, Exception):
            pass
        elif isinstance(error, Error) and self._place(error, subject, index):
            pass
        elif isinstance(error, MemoryError):
            error = self._error_of(DELEGATE_MEMORY_ALLOCATION_FAILED, "no memory was left", delegate)
        else:
            self.exception = error
            error = self._error_of(INTERNAL, "", delegate)
        self.error = error

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
        self.failed = delegate
        return fail(code, what, "delegate", delegate, source=self)

    def explain(self, error):
        """Which backend it was, and what it raised."""
        name = "backend " + self.method.backend_name(self.failed)
        if self.exception is None:
            return name
        return "%s: %s" % (name, _text_of(self.exception))


def _text_of(exception):
    name = type(exception).__name__
    try:
        return "%s: %s" % (name, exception)
    except Exception:  # its own text fails
        return name
