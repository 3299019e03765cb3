"""Describe the contents of a program: picotorch inspect."""

from typing import Any

import click

from ..host import show
from ..host.operators import methods_of
from ..host.releases import likely_releases
from ..host.report import SizedTensor
from ..host.twin import open_program
from ..host.values import LEFT_OUT
from ..run import bundled
from .description import constant_methods, describe, named_data_list
from .report import (
    Constant,
    Contents,
    MethodContents,
    PlannedTensor,
    TensorValue,
    TestSet,
    ValueType,
)

_ARGUMENT_WIDTH = 70


def inspect(model: bytes, name: str, method: str | None = None) -> Contents:
    """Return the contents of a .pte or .bpte; all methods, or the requested one."""
    bundle = bundled.read(model) if bundled.is_bundled(model) else None
    program = open_program(model if bundle is None else bundle.program)
    constants = constant_methods(program)
    methods = ([program.method_meta(method)] if method is not None else
               [meta for meta in methods_of(program) if meta.name() not in constants])
    sets = None if bundle is None else [
        _test_set(case) for case in bundle.sets if method in (None, case.method)]
    return Contents(name, len(model), likely_releases(program), constants, named_data_list(program),
                    [describe(meta) for meta in methods], sets)


def _test_set(case: bundled.Case) -> TestSet:
    return TestSet(case.method, case.index, [_bundled_value(value) for value in case.inputs],
                   [_bundled_value(value) for value in case.expected])


def _bundled_value(value: Any) -> ValueType:
    if isinstance(value, bundled.BundledTensor):
        return TensorValue("Tensor", SizedTensor(value.dtype, list(value.sizes()),
                                                list(value.dim_order()), len(value.data)))
    return Constant({int: "Int", bool: "Bool", float: "Double"}[type(value)], value)


def _show_method(found: MethodContents) -> None:
    show.heading(f"Method {found.name}")
    show.table(["", "type", "bytes>", ""], [
        [f"{kind} {i}", _text(value), value.tensor.nbytes if isinstance(value, TensorValue) else "",
         _notes(value)]
        for kind, values in (("input", found.inputs), ("output", found.outputs))
        for i, value in enumerate(values)])
    if found.attributes:
        show.heading("Attributes")
        show.table(["name", "type", "bytes>"], [
            [one.name, one.tensor.text, one.tensor.nbytes] for one in found.attributes])
    _show_operators(found)
    _show_delegates(found)
    _show_memory(found)
    show.heading(f"{len(found.instructions)} instructions")
    show.table(["", "outputs", "operator", "arguments"], [
        [one.index, ", ".join(one.outputs), one.call, _cut(one.arguments)]
        for one in found.instructions])


def _text(value: ValueType) -> str:
    if isinstance(value, TensorValue):
        return value.tensor.text
    return f"{value.type} {value.value}" if isinstance(value, Constant) else value.type


def _notes(value: ValueType) -> str:
    if not isinstance(value, PlannedTensor):
        return ""
    notes = [] if value.planned else ["unplanned"]
    if value.quantization:
        notes.append(f"scale {value.quantization.scale:.9g}, "
                     f"zero point {value.quantization.zero_point}")
    return "; ".join(notes)


def _show_operators(found: MethodContents) -> None:
    without = [one for one in found.operators if not one.kernel]
    show.heading(f"{len(found.operators)} operators, {len(without)} without a kernel")
    show.table(["operator", "kernel"], [
        [one.name, "yes" if one.kernel else "MISSING"] for one in found.operators])


def _show_delegates(found: MethodContents) -> None:
    if found.delegates:
        show.heading(f"{len(found.delegates)} delegates")
        show.table(["", "backend", "bytes>", "stored", "compile specs", ""], [
            [i, one.backend, one.nbytes, one.stored,
             _cut([f"{key}={value}" for key, value in one.compile_specs]),
             "" if one.registered else "BACKEND NEEDED"]
            for i, one in enumerate(found.delegates)])


def _show_memory(found: MethodContents) -> None:
    show.heading("Memory plan")
    show.table(["memory", "bytes>"], [
        *[[f"planned buffer {i}", size] for i, size in enumerate(found.planned_buffers)],
        ["constants", found.constant_bytes]])
    click.echo()
    show.table(["value", "type", "bytes>", "memory", "at>", "name"], [
        [f"%{one.value}", one.tensor.text, one.tensor.nbytes, one.memory,
         "" if one.memory == LEFT_OUT else one.offset, one.name]
        for one in found.tensors])


def _cut(arguments: list[str]) -> str:
    text = ", ".join(arguments)
    return text if len(text) <= _ARGUMENT_WIDTH else text[: _ARGUMENT_WIDTH - 3] + "..."


def show_text(found: Contents) -> None:
    show.line(f"{found.model}: {show.size(found.bytes)}, {len(found.methods)} method(s)"
              + (f", exported by ExecuTorch {found.executorch}" if found.executorch else ""))
    for method in found.methods:
        _show_method(method)
    if found.named_data:
        show.heading("Named data")
        show.table(["key", "bytes>"], [[data.key, data.nbytes] for data in found.named_data])
    if found.constant_methods:
        show.heading("Methods that return values")
        show.table(["method", "returns>"], [list(one) for one in found.constant_methods.items()])
    if found.test_sets is not None:
        show.heading(f"{len(found.test_sets)} test sets")
        show.table(["method", "set>", "inputs", "expected outputs"], [
            [case.method, case.index, ", ".join(map(_text, case.inputs)),
             ", ".join(map(_text, case.expected_outputs))]
            for case in found.test_sets])
