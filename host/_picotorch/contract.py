"""Define the contract of `_picotorch` with picotorch, for the bindings of CPython and MicroPython.

CPython's binding is this package, MicroPython's is port/module. Each name that a binding reads or calls
is here, and nowhere else.

No binding imports picotorch. A binding receives objects and calls them: the *owner* of a Program, a
Data or a Method makes the errors; a Tensor and a ValueList are pointed to the values of a method.

A binding raises TypeError or ValueError, without a text, for arguments of its own functions that
picotorch never passes. All other errors come from an owner.
"""

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol


class Owner(Protocol):
    """The object for which a Program or a Data is made."""

    @property
    def texts(self) -> Sequence[str]:
        """Show the text of an error in place while the heap is locked. MicroPython only.

        The first str points to the text. text() makes it.
        """
        ...

    def on_error(self, code: int, subject: int, index: int, argument: int, requested: int,
                 available: int, what: Any) -> NoReturn:
        """Raise the error of the library, from the fields of a pt_error.

        index, argument, requested, available: -1 for none. what: a str, "" for none; in a native module
        the distance of the text in bytes from the end of the file `__file__`.
        """
        ...


class MethodOwner(Owner, Protocol):
    """The object for which a Method is made."""

    @property
    def kept(self) -> Sequence[Any]:
        """Return a Kept for each output: a list or a tuple."""
        ...

    def on_request(self, what: int, index: int) -> int:
        """Answer a request with the code of an error, 0 for success, or raise.

        what: FIND, INIT, EXECUTE or DESTROY the delegate `index`; KEPT: add to `kept` until it has
        output `index`.
        """
        ...


class ConvertingOwner(MethodOwner, Protocol):
    """A MethodOwner that accepts more types of inputs. CPython only, and optional."""

    def as_input(self, value: Any, index: int) -> Any:
        """Convert an object for set_input.

        Called for an object that is no buffer, Tensor, number, str or None.
        """


class Tensor(Protocol):
    """An object that shows a tensor of a method, or that is passed as one.

    Any object without `sizes_view` is not a Tensor.

    MicroPython points the three views that it finds when a Kept is made; CPython replaces them.
    """

    data: memoryview  # the elements, in the order of dim_order_view
    sizes_view: memoryview  # int32
    dim_order_view: memoryview  # uint8
    dtype_number: int  # ScalarType

    @property
    def buffer(self) -> Any:
        """Return the memory that contains `data` and may be resized, or None."""


class ValueList(Protocol):
    """An object that shows a list of a method."""

    def point_to(self, value: int, length: int) -> Any:
        """Show value number `value` of the method, a list, and return the object for the caller."""


# The tuple that tensor() of a Program and of a Data returns. sizes, dim_order: tuples; name: bytes;
# planned: index of the planned buffer; offset: byte in its memory
TENSOR_FIELDS = ("dtype", "sizes", "dim_order", "nbytes", "dynamism", "is_planned", "is_constant",
                 "is_external", "name", "planned", "offset")

# The names of the module. The names of Program, Data and Method are their public functions.
BOTH = {
    "VALUES", "INPUTS", "OUTPUTS", "OPERATORS", "DELEGATES", "PLANNED_BUFFERS", "INSTRUCTIONS",
    "DELEGATE_ARGUMENTS",  # items that count() counts
    "FIND", "INIT", "EXECUTE", "DESTROY", "KEPT",  # requests
    "EVENT_BYTES", "SMALL_INT_MAX",
    "Program", "Data", "Method", "Kept",
    "heap_locked", "nbytes", "buffer", "view", "element_size", "number", "has_operator",
    "argument_name",
}
MICROPYTHON = {"clear_traceback", "text"}
CPYTHON = {"CORES", "PREFERRING_CORES"}
# Further functions of CPython's classes, for programs on computers
CPYTHON_FUNCTIONS = {
    "Program": {"c", "call", "ask", "method_meta", "value", "delegate", "check_data"},
    "Data": {"c", "call", "ask"},
    "Method": {"c", "call", "ask", "core", "threads", "alone", "tensor", "conv_variants",
               "unpack_once"},
}
