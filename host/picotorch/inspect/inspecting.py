"""Describe the contents of a program: picotorch inspect."""

from typing import Any

import click

from ..host import show
from ..host.operators import methods_of
from ..host.releases import likely_releases
from ..host.twin import open_program
from ..host.values import LEFT_OUT
from ..run import bundled
from .description import constant_methods, describe, named_data_list

_ARGUMENT_WIDTH = 70


def inspect(model: bytes, name: str, method: str | None = None) -> dict[str, Any]:
    """Return the program of a .pte or .bpte as plain data; all methods, or the requested one."""
    bundle = bundled.read(model) if bundled.is_bundled(model) else None
    program = open_program(model if bundle is None else bundle.program)
    constants = constant_methods(program)
    methods = ([program.method_meta(method)] if method is not None else
               [meta for meta in methods_of(program) if meta.name() not in constants])
    entry = {"model": name, "bytes": len(model), "executorch": likely_releases(program),
             "constant_methods": constants,
             "named_data": named_data_list(program),
             "methods": [describe(meta) for meta in methods]}
    if bundle is not None:
        entry["test_sets"] = [_test_set(case) for case in bundle.sets
                              if method in (None, case.method)]
    return entry


def _test_set(case: bundled.Case) -> dict[str, Any]:
    return {"method": case.method, "index": case.index,
            "inputs": [_bundled_value(value) for value in case.inputs],
            "expected_outputs": [_bundled_value(value) for value in case.expected]}


def _bundled_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bundled.BundledTensor):
        return {"type": "Tensor", "dtype": value.dtype, "sizes": list(value.sizes()),
                "dim_order": list(value.dim_order()), "nbytes": len(value.data)}
    return {"type": {int: "Int", bool: "Bool", float: "Double"}[type(value)], "value": value}


def _show_method(entry: dict[str, Any]) -> None:
    show.heading(f"Method {entry['name']}")
    show.table(["", "type", "bytes>", ""], [
        [f"{kind} {i}", _value(value), value.get("nbytes", ""), _notes(value)]
        for kind in ("input", "output") for i, value in enumerate(entry[kind + "s"])])
    if entry["attributes"]:
        show.heading("Attributes")
        show.table(["name", "type", "bytes>"], [
            [value["name"], show.tensor(value), value["nbytes"]] for value in entry["attributes"]])
    _show_operators(entry)
    _show_delegates(entry)
    _show_memory(entry)
    show.heading(f"{len(entry['instructions'])} instructions")
    show.table(["", "outputs", "operator", "arguments"], [
        [call["index"], ", ".join(call["outputs"]), call["call"], _cut(call["arguments"])]
        for call in entry["instructions"]])


def _value(value: dict[str, Any]) -> str:
    if value["type"] == "Tensor":
        return show.tensor(value)
    return f"{value['type']} {value['value']}" if "value" in value else value["type"]


def _notes(value: dict[str, Any]) -> str:
    notes = ["unplanned"] if value.get("planned") is False else []
    quantization = value.get("quantization")
    if quantization:
        notes.append(f"scale {quantization['scale']:.9g}, zero point {quantization['zero_point']}")
    return "; ".join(notes)


def _show_operators(entry: dict[str, Any]) -> None:
    operators = entry["operators"]
    without = [operator for operator in operators if not operator["kernel"]]
    show.heading(f"{len(operators)} operators, {len(without)} without a kernel")
    show.table(["operator", "kernel"], [
        [operator["name"], "yes" if operator["kernel"] else "MISSING"] for operator in operators])


def _show_delegates(entry: dict[str, Any]) -> None:
    if entry["delegates"]:
        show.heading(f"{len(entry['delegates'])} delegates")
        show.table(["", "backend", "bytes>", "stored", "compile specs", ""], [
            [i, delegate["backend"], delegate["nbytes"], delegate["stored"],
             _cut([f"{key}={value}" for key, value in delegate["compile_specs"]]),
             "" if delegate["registered"] else "BACKEND NEEDED"]
            for i, delegate in enumerate(entry["delegates"])])


def _show_memory(entry: dict[str, Any]) -> None:
    show.heading("Memory plan")
    show.table(["memory", "bytes>"], [
        *[[f"planned buffer {i}", size] for i, size in enumerate(entry["planned_buffers"])],
        ["constants", entry["constant_bytes"]]])
    click.echo()
    show.table(["value", "type", "bytes>", "memory", "at>", "name"], [
        [f"%{value['value']}", show.tensor(value), value["nbytes"], value["memory"],
         "" if value["memory"] == LEFT_OUT else value["offset"], value["name"]]
        for value in entry["tensors"]])


def _cut(arguments: list[str]) -> str:
    text = ", ".join(arguments)
    return text if len(text) <= _ARGUMENT_WIDTH else text[: _ARGUMENT_WIDTH - 3] + "..."


def show_text(entry: dict[str, Any]) -> None:
    show.line(f"{entry['model']}: {show.size(entry['bytes'])}, "
              f"{len(entry['methods'])} method(s)"
              + (f", exported by ExecuTorch {entry['executorch']}" if entry["executorch"] else ""))
    for method in entry["methods"]:
        _show_method(method)
    if entry["named_data"]:
        show.heading("Named data")
        show.table(["key", "bytes>"], [[data["key"], data["nbytes"]] for data in entry["named_data"]])
    if entry["constant_methods"]:
        show.heading("Methods that return values")
        show.table(["method", "returns>"], list(entry["constant_methods"].items()))
    if "test_sets" in entry:
        show.heading(f"{len(entry['test_sets'])} test sets")
        show.table(["method", "set>", "inputs", "expected outputs"], [
            [case["method"], case["index"], *(", ".join(map(_value, case[values]))
                                              for values in ("inputs", "expected_outputs"))]
            for case in entry["test_sets"]])
