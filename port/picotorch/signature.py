"""The inputs or the outputs of a method: which values they are, and what both have to check."""

import _picotorch

from .errors import INVALID_ARGUMENT, INVALID_STATE, INVALID_TYPE, fail
from .memory import check_memory
from .schema import (
    EVALUE_VAL,
    EVALUE_VAL_TYPE,
    KERNEL_TYPES_TENSOR,
    TENSOR_SCALAR_TYPE,
)
from .tensor import accepts, tensor_nbytes


def check_apart(shared, subject, index):
    """Raises InvalidArgument when a buffer shares bytes with memory number `shared`, 0 for none."""
    if shared:
        raise fail(INVALID_ARGUMENT, "shares bytes with the program or the method's memories",
                   subject, index, remedy="hand over a copy")


class Tensors:
    """Of one method. `subject` says in errors what they are: "input", "output", or a name."""

    def __init__(self, method, subject):
        self.method = method
        self.values = method.values
        self._subject = subject

    # ---- of a value

    def is_tensor(self, value):
        return self.method.program.reader.u8(self.values.position(value),
                                             EVALUE_VAL_TYPE) == KERNEL_TYPES_TENSOR

    def table(self, value):
        """Position of the program's table of a value."""
        return self.method.program.reader.table(self.values.position(value), EVALUE_VAL)

    def bound(self, value):
        """Bytes of a tensor of the program's sizes: the most that it may have."""
        return tensor_nbytes(self.method.program.reader, self.table(value))

    def data(self, value):
        """Reference to the data of a tensor; 0 when it has no bytes."""
        context = self.method.context
        return context.get_ref(context.find_value(value))

    # ---- of a buffer

    def nbytes(self, buffer, index):
        """Bytes of a buffer. Raises InvalidArgument for what is none, InvalidType for one whose bytes
        are not contiguous."""
        given = _picotorch.nbytes(buffer)
        if given >= 0:
            return given
        try:
            _picotorch.typecode(buffer)
        except TypeError:
            raise fail(INVALID_ARGUMENT, "is a tensor: a buffer or a Tensor is wanted",
                       self._subject, index) from None
        raise fail(INVALID_TYPE, "is no buffer of contiguous bytes", self._subject, index)

    def check_dtype(self, buffer, value, index):
        """Raises InvalidArgument for a buffer of other elements than the tensor's; see nbytes."""
        self.nbytes(buffer, index)
        dtype = self.method.program.reader.u8(self.table(value), TENSOR_SCALAR_TYPE)
        if not accepts(dtype, buffer):
            raise fail(INVALID_ARGUMENT, "has another dtype than the program", self._subject, index)

    # ---- memory

    def give_memory(self, buffer, value, index, otherwise):
        """Makes a buffer the memory of a tensor that the program leaves unplanned; it has at least the
        bytes of the program's sizes. Raises InvalidArgument, and InvalidState for one that is
        planned: `otherwise` says what to do with it."""
        method = self.method
        self.check_dtype(buffer, value, index)
        nbytes = self.bound(value)
        given = self.nbytes(buffer, index)
        if given < nbytes:
            raise fail(INVALID_ARGUMENT, "", self._subject, index, nbytes, given,
                       "give as many bytes as the program's sizes say")
        if nbytes == 0:
            return
        memory = self.data(value) >> 25
        if memory < method.first_external():
            raise fail(INVALID_STATE, "has planned memory", self._subject, index, remedy=otherwise)
        needed = method.context.memory_needed(memory, True)
        if given < needed:
            raise fail(INVALID_ARGUMENT, "it is a view", self._subject, index, needed, given,
                       "give as many bytes as its source has")
        check_memory(buffer, self._subject, index)
        check_apart(method.context.overlap(buffer, 0, method.first_external()), self._subject, index)
        method.make_unready()  # until it is known to lie apart from the others
        method.context.set_memory(memory, buffer)


class Signature(Tensors):
    """`slot`: of the execution plan; `subject`: "input" or "output"."""

    def __init__(self, method, slot, subject):
        super().__init__(method, subject)
        self._slot = slot

    def _indexes(self):
        return self.method.program.reader.table(self.method.plan, self._slot)

    def count(self):
        return self.method.program.reader.length(self._indexes())

    def check(self):
        """Raises InvalidProgram when one of them is a value that is not there."""
        reader = self.method.program.reader
        indexes = self._indexes()
        for i in range(reader.length(indexes)):
            self.values.position(reader.i32_item(indexes, i))

    def value(self, index):
        """Which of the method's values number `index` is. Raises InvalidArgument."""
        reader = self.method.program.reader
        indexes = self._indexes()
        if not 0 <= index < reader.length(indexes):
            raise fail(INVALID_ARGUMENT, "an index below 0" if index < 0 else "there is no such",
                       self._subject, index,
                       remedy="inputs_size and outputs_size say how many there are")
        return reader.i32_item(indexes, index)
