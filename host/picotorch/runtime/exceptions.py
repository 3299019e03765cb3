"""Define the builtin exceptions of ExecuTorch's runtime as subclasses of picotorch.Error."""

from collections.abc import Iterator
from contextlib import contextmanager

from picotorch import Error
from picotorch.errors import INVALID_TYPE


class _Named(Error):
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


class RuntimeFailure(_Named, RuntimeError):
    """An error about data, inputs or files, or any other error."""


class UnknownName(_Named, KeyError):
    """A name that no method has."""


class WrongIndex(_Named, IndexError):
    """An index that no input, output or attribute has."""


class WrongType(_Named, TypeError):
    """An argument of the wrong type."""


class WrongState(_Named, ValueError):
    """A file object that is closed, or was opened for writing."""


@contextmanager
def raises(kind: type[Error]) -> Iterator[None]:
    """Give an Error that the block raises the class `kind`, or WrongType for an argument's type.

    Of nested blocks the innermost one counts. The Error stays the same object, with its traceback.
    """
    try:
        yield
    except Error as error:
        if type(error) is Error:
            is_argument = error.code == INVALID_TYPE and error.index < 0
            error.__class__ = WrongType if is_argument else kind
        raise
