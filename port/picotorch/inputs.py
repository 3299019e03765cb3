"""The inputs of a method, as ExecuTorch's Method::set_input takes them."""

import _picotorch

from .errors import INVALID_ARGUMENT, INVALID_STATE, NOT_SUPPORTED, fail
from .memory import check_alignment, check_memory
from .schema import (
    EVALUE_VAL_TYPE,
    EXECUTION_PLAN_INPUTS,
    KERNEL_TYPES_NULL,
    KERNEL_TYPES_STRING,
    STRING_STRING_VAL,
    TENSOR_SIZES,
)
from .signature import Signature, check_apart
from .tensor import Tensor
from .values import NUMBERS

_MAX_INPUTS = 256
_PROGRAM = _picotorch.PROGRAM


class Inputs(Signature):
    """missing: how many were not yet set."""

    def __init__(self, method):
        super().__init__(method, EXECUTION_PLAN_INPUTS, "input")
        self.missing = 0
        self._set = bytearray(_MAX_INPUTS)  # 1 for each that was set
        self._own = Tensor()  # the input as it is
        self._sizes = memoryview(bytearray(8))  # of the program

    def check(self):
        super().check()
        if self.count() > _MAX_INPUTS:
            raise fail(NOT_SUPPORTED, "more than 256 inputs", "method")

    def forget(self):
        """Lets all be set again."""
        self.missing = self.count()
        for i in range(self.missing):
            self._set[i] = 0

    def check_all_set(self):
        """Raises InvalidArgument when one was never set."""
        for i in range(self.count()):
            if not self._set[i]:
                raise fail(INVALID_ARGUMENT, "was never set", "input", i, remedy="call set_input")

    def set(self, value, index):
        """See Method.set_input."""
        which = self.value(index)
        if not self.method.context.is_at_start():
            self.method.check_not_running()
            raise fail(INVALID_STATE, "cannot be set between steps", "input", index,
                       remedy="call reset_execution")
        if self.is_tensor(which):
            self._set_tensor(value, which, index)
        else:
            self._check_constant(value, which, index)
        if not self._set[index]:
            self._set[index] = 1
            self.missing -= 1

    # ---- what is part of the program

    def _check_constant(self, value, which, index):
        reader = self.method.program.reader
        found = self.values.position(which)
        kind = reader.u8(found, EVALUE_VAL_TYPE)
        if kind == KERNEL_TYPES_NULL:
            same = value is None
        elif kind in NUMBERS:
            same = reader.is_number(found, value)
        elif kind == KERNEL_TYPES_STRING:
            same = isinstance(value, str) and self._is_string(self.table(which), value)
        else:
            raise fail(INVALID_ARGUMENT, "is a list, which no input can be", "input", index)
        if not same:
            raise fail(INVALID_ARGUMENT, "is not the value that the program was exported with",
                       "input", index, remedy="give the same, of the same type")

    def _is_string(self, table, value):
        reader = self.method.program.reader
        string = reader.table(table, STRING_STRING_VAL)
        return reader.equals(string, value) if string else value == ""

    # ---- tensors

    def _set_tensor(self, value, which, index):
        """Checks all before anything changes."""
        context = self.method.context
        given = isinstance(value, Tensor)
        data = value.data if given else value
        self.check_dtype(data, which, index)
        nbytes = self.nbytes(data, index)
        if given:
            self._check_tensor(value, which, nbytes, index)
        elif nbytes != self.bound(which):
            raise fail(INVALID_ARGUMENT, "", "input", index, self.bound(which), nbytes,
                       "give as many bytes as the program's sizes say")
        memory = self.data(which) >> 25
        if self.method.is_constant(memory):
            raise fail(INVALID_ARGUMENT, "is constant in the program", "input", index)
        sizes = value.raw_sizes() if given else self._program_sizes(which)
        if memory >= self.method.first_external():
            self._check_memory(data, nbytes, memory, index)
            self._use(data, memory, sizes, which, index)
            return
        code = self._resize(sizes, which)
        if code:
            raise self._bad_sizes(code, index)
        if nbytes:
            context.copy_in(self.data(which), data)

    def _use(self, data, memory, sizes, which, index):
        """Makes a buffer the memory of an input. One that an interrupt leaves half set is not set: its
        new sizes may not fit into the old memory."""
        context = self.method.context
        was_set = self._set[index]
        if was_set:
            self._set[index] = 0
            self.missing += 1
        self.method.make_unready()
        code = self._resize(sizes, which)
        if code:
            self._set[index] = was_set
            self.missing -= was_set
            self.method.update_ready()
            raise self._bad_sizes(code, index)
        context.set_memory(memory, data)
        context.fit(memory)

    def _check_tensor(self, tensor, which, nbytes, index):
        own = self._own
        own.describe(self.method.context, self.method.context.find_value(which), self.values.record)
        if tensor.scalar_type() != own.scalar_type():
            raise fail(INVALID_ARGUMENT, "has another dtype than the program", "input", index)
        if tensor.expected_nbytes() != nbytes:
            raise fail(INVALID_ARGUMENT, "its sizes have changed since", "input", index,
                       remedy="call get_output again")
        if tensor.dim() == own.dim() and not tensor.has_dim_order(own):
            raise fail(INVALID_ARGUMENT, "has another dim order than the program", "input", index)

    def _program_sizes(self, which):
        reader = self.method.program.reader
        sizes = reader.table(self.table(which), TENSOR_SIZES)
        self._sizes = self.method.context.view(
            self._sizes, (_PROGRAM << 25) + (sizes + 4 >> 2), 4 * reader.length(sizes), "i")
        return self._sizes

    def _resize(self, sizes, which):
        """0, or NotSupported for another rank, for other sizes than those of a static input, for more
        elements than a dynamic one may have."""
        context = self.method.context
        return context.resize(context.find_value(which), sizes)

    def _bad_sizes(self, code, index):
        return fail(code, "", "input", index, source=self,
                    remedy="MethodMeta.input_tensor_meta says which sizes it takes")

    def explain(self, error):
        return self.method.context.reason()

    def _check_memory(self, buffer, nbytes, memory, index):
        """A buffer that becomes the memory of an input, and of its views. Only if no instruction writes
        to it, it may be read-only or part of the program; else the instruction may give it any size up
        to the bound."""
        context = self.method.context
        check_alignment(buffer, "input", index)
        shared = context.overlap(buffer, 0, self.method.first_external())
        written = context.is_written(memory)
        needed = context.memory_needed(memory, written)
        if written:
            check_memory(buffer, "input", index)
        while not written and self.method.is_constant(shared):  # other memories may follow it
            shared = context.overlap(buffer, shared + 1, self.method.first_external())
        if nbytes < needed:
            raise fail(INVALID_ARGUMENT, "the program writes to it" if written else "it has views",
                       "input", index, needed, nbytes,
                       "give as many bytes as the program's sizes say")
        check_apart(shared, "input", index)
