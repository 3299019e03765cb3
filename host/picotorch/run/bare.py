"""Read the lines that a board without MicroPython prints about a run (port/bare).

An error has the fields of a pt_error. `stage` names its source, `missing` lists the operators without a
kernel in the board's build, and `attribute` is the buffer in question; both are written as bytes. A
value that is not a tensor is written as in Python, with three exceptions: bits(those of a double),
text('its bytes') and items('typecode', 'bytes of a tensor').
"""

import ast
import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from picotorch import (
    BufferDataLoader,
    Error,
    FlatTensorDataMap,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    MergedDataMap,
    Method,
    MethodMeta,
    Program,
)
from picotorch.errors import text_of
from picotorch.schema import (
    SUBJECT_METHOD_NAME,
    SUBJECT_MISSING_BACKEND,
    SUBJECT_MISSING_OPERATOR,
)

from ..host.aligned import aligned, aligned_copy
from ..host.request import Request

_PROGRAM, _DATA, _METHOD = range(3)
_FIELDS = ("code", "subject", "index", "argument", "requested", "available")


# ---- numbers, strings, lists


def constant(value: float) -> str:
    """Write a float input as the job contains it."""
    return f"double:{struct.unpack('<Q', struct.pack('<d', value))[0]}"


def read_value(text: str) -> Any:
    """Read an output that is not a tensor from the board's text."""
    return _value(ast.parse(text, mode="eval").body)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.List):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _CALLS[node.func.id](*map(ast.literal_eval, node.args))
    return ast.literal_eval(node)


def _items(typecode: str, digits: str) -> list[Any]:
    items: list[Any] = np.frombuffer(bytes.fromhex(digits), typecode).tolist()
    return items


_CALLS: dict[str, Callable[..., Any]] = {
    "bits": lambda number: struct.unpack("<d", struct.pack("<q", number))[0],
    "text": lambda digits: bytes.fromhex(digits).decode(), "items": _items}


# ---- errors


def _text(digits: str) -> str:
    return text_of(bytes.fromhex(digits))


class _ReportedMethod(Method):
    """A method that is loaded on a board, for the texts of its errors."""

    def __init__(self, program: Program, name: str, data_map: MergedDataMap | None,
                 report: dict[str, str]) -> None:
        super().__init__(MemoryManager(MemoryAllocator(aligned(8)), HierarchicalAllocator([])), 1)
        self.program, self.name, self.data_map = program, name, data_map
        self._requested = _text(report.get("attribute", ""))
        self._missing = ", ".join(map(_text, report.get("missing", "").split(",")))

    def explain(self, error: Any) -> str:  # an Error, whose _kind errors.pyi does not declare
        if error.subject_number == SUBJECT_MISSING_OPERATOR:
            return self._missing
        if error.subject_number == SUBJECT_MISSING_BACKEND:
            assert self.program is not None
            names = MethodMeta(self.program, self.plan).backend_names()
            return ", ".join(dict.fromkeys(names))
        return super().explain(error)


def message(request: Request, report: dict[str, str]) -> str:
    """Return the text of a report's error, equal to the text of MicroPython's runner."""
    fields = [*[int(report[field], 0) for field in _FIELDS], report["what"]]
    try:
        _raise(request, report, fields)
    except Error as error:
        return error.message


def _raise(request: Request, report: dict[str, str], fields: list[Any]) -> NoReturn:
    stage, loader = int(report["stage"], 0), BufferDataLoader(aligned_copy(request.model))
    if stage == _PROGRAM:
        if fields[1] == SUBJECT_METHOD_NAME:
            Program.load(loader).plan(request.method)
        Program(loader).on_error(*fields)
    files = [FlatTensorDataMap(BufferDataLoader(aligned_copy(data))) for data in request.data]
    if stage == _DATA:
        files[0].on_error(*fields)
    data_map = MergedDataMap(files) if files else None
    _ReportedMethod(Program.load(loader), request.method, data_map, report).on_error(*fields)
