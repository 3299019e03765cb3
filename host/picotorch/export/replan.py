"""Replan the memory of a program, and make its inputs and outputs integers: picotorch export.

Files are read and written by ExecuTorch's own code, so this needs the `export` extra.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import numpy as np

from picotorch import Error
from picotorch.errors import INTERNAL, INVALID_PROGRAM, NOT_FOUND, fail
from picotorch.tensor import TensorInfo

from ..host import inputs, show, twin
from ..host.report import Report, TensorType
from ..host.request import Request
from ..run.parity import same_bits
from . import method_editor
from .progress import quiet

if TYPE_CHECKING:
    from executorch.exir._serialize._program import PTEFile
    from executorch.exir.schema import ExecutionPlan

_TEMP_SIZE = 1 << 20


@dataclass(frozen=True)
class IntegerTensor(TensorType):
    """An input or output of integers."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class ReplannedMethod(method_editor.Rewritten):
    """A method with another plan. checked: "same outputs", or why they could not be compared."""

    inputs: list[IntegerTensor]
    outputs: list[IntegerTensor]
    checked: str


@dataclass(frozen=True)
class Replanned(Report):
    """A program whose memory was planned again. output: the file."""

    model: str
    bytes_before: int
    bytes: int
    methods: list[ReplannedMethod]
    output: str = ""


def export_file(data: bytes, name: str, int8_io: bool) -> tuple[bytes, Replanned]:
    """Return the bytes of the new program, and what was done. Raises the errors of rewrite."""
    exporter = _Exporter()
    if data[4:6] != b"ET":
        raise fail(INVALID_PROGRAM, "is no program (.pte): its identifier is not ET12", name)
    try:
        pte = exporter.deserialize_pte_binary(data)
    except Exception as error:
        raise fail(INVALID_PROGRAM, f"ExecuTorch cannot read it: {error}", name) from None
    return replan(pte, data, name, int8_io)


def replan(pte: "PTEFile", data: bytes, name: str, int8_io: bool) -> tuple[bytes, Replanned]:
    """Return the bytes of the new program, and what was done. Raises the errors of rewrite.

    pte: the program that `data` are the bytes of. It is edited in place, even before an error.
    """
    exporter = _Exporter()
    rewritten = method_editor.rewrite(pte.program, exporter.constant_plan, int8_io)
    written = bytes(exporter.serialize_pte_binary(pte, extract_delegate_segments=True))
    methods = [_compared(one, data, written, name) for one in rewritten]
    return written, Replanned(name, len(data), len(written), methods)


class _Exporter:
    """Import the modules of the package. The import logs and warns about unused parts."""

    def __init__(self) -> None:
        try:
            with quiet():
                from executorch.exir import schema
                from executorch.exir._serialize import _program
        except ImportError as error:
            raise fail(NOT_FOUND, f"ExecuTorch's exporter cannot be imported ({error})",
                       remedy="pip install 'picotorch[export]'") from None
        self.schema = schema
        self.deserialize_pte_binary = _program.deserialize_pte_binary
        self.serialize_pte_binary = _program.serialize_pte_binary

    def constant_plan(self, name: str, number: int | float) -> "ExecutionPlan":
        """Return a method that returns a number, as the exporter writes it."""
        schema = self.schema
        value = schema.Double(number) if isinstance(number, float) else schema.Int(number)
        return schema.ExecutionPlan(
            name=name, values=[schema.EValue(value)], inputs=[], outputs=[0],
            chains=[schema.Chain([], [], [], None)], operators=[], delegates=[],
            non_const_buffer_sizes=[0], container_meta_type=schema.ContainerMetadata(
                "", '[1, {"type": null, "context": null, "children_spec": []}]'))


def _compared(one: method_editor.Rewritten, old: bytes, new: bytes, name: str) -> ReplannedMethod:
    meta = twin.open_program(new).method_meta(one.method)
    inputs = [_integers(meta.input_tensor_meta(i), found) for i in range(meta.num_inputs())
              if (found := meta.input_quantization(i))]
    outputs = [_integers(meta.output_tensor_meta(i), found) for i in range(meta.num_outputs())
               if (found := meta.output_quantization(i))]
    return ReplannedMethod(**vars(one), inputs=inputs, outputs=outputs,
                           checked=_check(old, new, name, one))


def _integers(info: TensorInfo, quantization: tuple[float, int]) -> IntegerTensor:
    return IntegerTensor(info.dtype, list(info.sizes()), list(info.dim_order()), *quantization)


# ---- the new program beside the old one, on the twin


def _check(old: bytes, new: bytes, name: str, done: method_editor.Rewritten) -> str:
    """Run both with the same random inputs; return "same outputs", or why they could not run.

    Raises Internal when they differ.
    """
    method, changed = done.method, done.quantized
    try:
        meta = twin.open_program(new).method_meta(method)
        integers = inputs.random_inputs(meta)
    except Error as error:
        return f"not run: {error.message}"
    floats = [_dequantized(value, meta.input_quantization(i)) if f"input {i}" in changed else value
              for i, value in enumerate(integers)]
    was, now = (twin.run(Request(data, name, values, method, temp_size=_TEMP_SIZE))
                for data, values in ((old, floats), (new, integers)))
    if was.code or now.code:
        return f"not run: {was.message or now.message}"
    for i, (one, other) in enumerate(zip(was.outputs, now.outputs, strict=True)):
        if f"output {i}" in changed:
            other = _dequantized(other, meta.output_quantization(i))
        if not same_bits(one, other):
            raise fail(INTERNAL, "differs from the old program's", f"output {i} of {method}",
                       remedy="this is a bug in picotorch: please report it with the model")
    return "same outputs"


def _dequantized(array: np.ndarray, quantization: tuple[float, int] | None) -> np.ndarray:
    """Return the floats of an input or output whose float operator was removed."""
    assert quantization is not None  # rewriting keeps it as constant methods
    return inputs.dequantize_array(array, *quantization)


# ---- for people


def show_text(found: Replanned) -> None:
    show.line(f"{found.model}: {show.size(found.bytes_before)}; {found.output}: "
              f"{show.size(found.bytes)}")
    for method in found.methods:
        show.heading(f"Method {method.method}")
        if method.quantized:
            show.table(["", "type", "scale", "zero point>"], [
                [name, tensor.text, f"{tensor.scale:.9g}", tensor.zero_point]
                for name, tensor in zip(method.quantized, [*method.inputs, *method.outputs],
                                        strict=True)])
            click.echo()
        show.table(["memory", "before>", "now>", "minimum>"], [
            [f"planned buffer {i}", *row] for i, row in enumerate(zip(
                method.planned_before, method.planned, method.min_planned, strict=True))])
        show.line(f"On the twin, with random inputs: {method.checked}")
