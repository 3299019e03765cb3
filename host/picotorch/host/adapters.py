"""Add to picotorch what only computers have: arrays of numpy, tensors of torch, threads, dir().

The modules at the top of picotorch are the same files on boards, and the binding `_picotorch` supports
neither numpy nor torch. `import picotorch` calls adapt(), which imports neither of the two.
"""

import functools
import os
import types
from collections.abc import Callable, Sequence
from typing import Any

from picotorch.errors import INVALID_ARGUMENT, fail
from picotorch.files import FileDataLoader
from picotorch.method import Method
from picotorch.tensor import Tensor


def adapt(package: dict[str, Any]) -> None:
    """Add the methods below to Tensor, Method and FileDataLoader, and the names of PARTS to dir().

    `import *` imports these names, too. package: the namespace of picotorch.
    """
    for name, (subject, remedy) in _WRONG.items():
        setattr(Tensor, name, _named_errors(getattr(Tensor, name), subject, remedy))
    _add(Tensor, numpy=numpy, __array__=__array__)
    _add(Method, as_input=as_input, as_inputs=as_inputs, load=_alone(Method.load),
         unload=_alone(Method.unload))
    _add(FileDataLoader, __init__=_without_devices(FileDataLoader.__init__))
    own = {name for name, value in package.items()
           if not name.startswith("_") and not isinstance(value, types.ModuleType)}
    own -= {"PARTS", "part", "adapt"}
    public = sorted(own.union(*[names for _, names in package["PARTS"]]))
    package["__all__"] = public
    package["__dir__"] = lambda: sorted({*package, *public})


def _add(cls: type, **functions: Callable[..., Any]) -> None:
    for name, function in functions.items():
        setattr(cls, name, function)


# ---- methods of Tensor


def numpy(self: Tensor) -> Any:
    """Return the numbers as an array of numpy on the memory of the Tensor.

    The array has the logical order whatever the dim order; bfloat16 is returned as bits (uint16). Call
    `copy` to keep the values.
    """
    import numpy as np

    from .tensors import numpy_dtype

    order = list(self.dim_order())
    if not len(self.data):
        return np.zeros(self.sizes(), numpy_dtype(self))
    stored = np.frombuffer(self.data, numpy_dtype(self))
    return stored.reshape([self.size(dim) for dim in order]).transpose(np.argsort(order))


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    return array.astype(dtype or array.dtype) if copy or dtype else array


# Subject and remedy of the error for wrong arguments of a method
_WRONG = {"__getitem__": ("index", "give an int, or one for each dim"),
          "__setitem__": ("index or value", "give an int, or one for each dim, and a number of its "
                          "dtype, where it may be written"),
          "size": ("dim", "give an int below dim()"), "number": ("element", "give an int below len()"),
          "resize": ("sizes", "give a list of ints"),
          "_place": ("sizes or dim_order", "give a list of ints, and each dim once")}


def _named_errors(function: Callable[..., Any], subject: str, remedy: str) -> Callable[..., Any]:
    """Return a method of Tensor that raises InvalidArgument for arguments of wrong types or values."""

    @functools.wraps(function)
    def checked(self: Tensor, *arguments: Any, **named: Any) -> Any:
        try:
            return function(self, *arguments, **named)
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            if isinstance(error, IndexError) and function.__name__.endswith("item__") and \
                    not isinstance(arguments[0], tuple):
                raise  # the end of an iteration
            raise fail(INVALID_ARGUMENT, "has the wrong type or value", subject,
                       remedy=remedy) from None

    return checked


# ---- methods of Method


def as_inputs(self: Method, values: Sequence[Any]) -> list[Any]:
    """Return the inputs of a Module, with arrays of numpy and tensors of torch converted to Tensors.

    They are checked as picotorch.runtime checks them; other inputs are returned as they are.
    """
    from .inputs import check_count

    check_count(self.method_meta(), values)
    return [self.as_input(value, i) for i, value in enumerate(values)]


def as_input(self: Method, value: Any, index: int) -> Any:
    """Return an array as a Tensor, or as the exported number; anything else as it is."""
    if not _is_array(value):
        return value
    from .inputs import checked_input
    from .tensors import as_tensor

    meta = self.method_meta()
    checked = checked_input(meta, index, value)
    return as_tensor(checked, meta.input_tensor_meta(index)) if _is_array(checked) else checked


def _is_array(value: Any) -> bool:
    """Return True for an array of numpy, a tensor of torch and the like.

    False for a class and for a Tensor, whose sizes set_input reads itself.
    """
    return hasattr(value, "__array__") and not isinstance(value, (type, Tensor))


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make load or unload a method for one thread at a time, as the calls of its library are."""

    @functools.wraps(function)
    def alone(self: Method, *arguments: Any, **named: Any) -> Any:
        return self.library.alone(functools.partial(function, self, *arguments, **named),
                                  pool=self.manager.method_allocator)

    return alone


# ---- FileDataLoader


def _without_devices(function: Callable[..., Any]) -> Callable[..., None]:
    """Wrap a constructor so that it raises NotSupported for a FIFO, a device or a socket.

    Opening one may never end.
    """

    @functools.wraps(function)
    def checked(self: FileDataLoader, path: Any, *arguments: Any, **named: Any) -> None:
        name = path.__fspath__() if hasattr(path, "__fspath__") else path
        if isinstance(name, str) and os.path.exists(name):
            from .files import check_input

            check_input(name)
        function(self, path, *arguments, **named)

    return checked
