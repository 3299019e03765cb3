"""Read a board's answers, which are untrusted: each line must be a short literal of one shape.

A shape is `int` (0 to 2**63 - 1), `str` (printable), `bytes`, `bool`, None for None itself, a tuple
of shapes, a list with the shape of all its items, a dict with the shape of each of its keys, or OneOf.
"""

import ast
import re
from typing import Any

LONGEST = 1 << 14  # characters of a line
_DEEPEST = 4
_TOKEN = re.compile(r"""-?\d{1,19}(?!\d)|True|False|None
                        |b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*"|[\[\](){},:\ ]""", re.VERBOSE)


class OneOf:
    """Any of these shapes."""

    def __init__(self, *shapes: object) -> None:
        self.shapes = shapes


class NotAnAnswer(ValueError):
    """A line that does not have the expected shape."""


def read(line: str, shape: object) -> Any:
    """Return the value of a line, in bounded time and memory. Raises NotAnAnswer."""
    _check_tokens(line)
    try:
        value = ast.literal_eval(line)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise NotAnAnswer from None
    if not _fits(value, shape):
        raise NotAnAnswer
    return value


def _check_tokens(line: str) -> None:
    """Raise NotAnAnswer for a line that is too long or deep, or contains a large number or a name."""
    if len(line) > LONGEST:
        raise NotAnAnswer
    position = depth = 0
    while position < len(line):
        found = _TOKEN.match(line, position)
        if not found:
            raise NotAnAnswer
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if depth > _DEEPEST:
            raise NotAnAnswer
        position = found.end()


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, OneOf):
        return any(_fits(value, one) for one in shape.shapes)
    if shape is None:
        return value is None
    if shape is int:
        return type(value) is int and 0 <= value < 1 << 63
    if shape is str:
        return type(value) is str and value.isprintable()
    if isinstance(shape, type):
        return type(value) is shape
    if type(value) is not type(shape):
        return False
    if isinstance(shape, tuple):
        return len(value) == len(shape) and all(map(_fits, value, shape))
    if isinstance(shape, list):
        return all(_fits(one, shape[0]) for one in value)
    return value.keys() == shape.keys() and all(_fits(value[key], shape[key]) for key in shape)
