"""Write the files that the runner on a board reads for a request, and read its results.

The runner is port/firmware/frozen/runner.py, on emulated and on connected boards, or port/bare/main.c
on boards without MicroPython.
"""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picotorch import BufferDataLoader, MethodMeta, Program, TensorInfo
from picotorch.errors import NOT_SUPPORTED, fail
from picotorch.schema import KERNEL_TYPES_TENSOR

from ..host.request import Request, Result, Usage, read_events
from ..host.tensors import from_stored, output_array, to_stored
from . import bare
from .job import Job

PHASES = ("verify", "load", "set_inputs", "execute", "get_outputs")


def repr_float(value: float) -> str:
    """Write a float input as the job for MicroPython contains it."""
    return f"float:{value!r}"


def make_job(request: Request, write_float: Callable[[float], str] = repr_float) -> Job:
    """Return the files of a request for the board's runner. Raises NotSupported."""
    if re.search("[\n\ud800-\udfff]", request.method):
        raise fail(NOT_SUPPORTED, "has a line break or bytes that are not UTF-8 in its name", "method",
                   remedy="run it on the twin, or export it with another name")
    job = Job({"model": request.model} | {f"data{i}": data for i, data in enumerate(request.data)})
    settings: dict[str, object] = {
        "method": request.method, "pack_weights": "pool" if request.pack_weights else "none",
        "whole_pool": int(request.core is not None), "trace": int(request.executions > 0),
        "pool_size": request.pool_size, "temp_size": request.temp_size}
    try:
        meta = Program.load(BufferDataLoader(request.model)).method_meta(request.method)
    except Exception:
        meta = None  # the board reports the error
    if meta is not None:
        for i in range(meta.num_memory_planned_buffers()):
            settings[f"planned{i}"] = request.planned_sizes.get(
                i, meta.memory_planned_buffer_size(i))
        settings["further"] = len(request.further)
        for number, values in enumerate([request.inputs, *request.further]):
            _add_inputs(job, settings, meta, values, _suffix(number), write_float)
    job.add_settings("settings", settings)
    return job


def _suffix(number: int) -> str:
    """Return the end of the names of an execution's inputs and outputs."""
    return f"_{number}" if number else ""


def _add_inputs(job: Job, settings: dict[str, object], meta: MethodMeta, values: Sequence[Any],
                suffix: str, write_float: Callable[[float], str]) -> None:
    for i, value in enumerate(values):
        if meta.input_tag(i) == KERNEL_TYPES_TENSOR:
            info = meta.input_tensor_meta(i)
            job.add(f"in{i}{suffix}", to_stored(value, info.dim_order()))
            if info.is_dynamic():
                settings[f"sizes{i}{suffix}"] = ",".join(map(str, np.shape(value)))
        else:
            settings[f"input{i}{suffix}"] = _constant(value, write_float)


def _constant(value: Any, write_float: Callable[[float], str]) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return f"str:{value}"
    value = np.asarray(value).item()
    if isinstance(value, bool):
        return f"bool:{int(value)}"
    return write_float(value) if isinstance(value, float) else f"int:{value}"


def read_report(files: dict[str, bytes]) -> dict[str, str]:
    """Return the lines key=value of the report."""
    return dict(line.split("=", 1) for line in files["report"].decode().split("\n") if line)


def read_files(request: Request, result: Result, report: dict[str, str],
               files: dict[str, bytes]) -> None:
    """Fill in a result."""
    _read_counts(result, report, files)
    executed = int(report.get("executed", "0"), 0)
    if executed:
        result.outputs = _outputs(request, report, files, "")
        result.further = [_outputs(request, report, files, _suffix(number))
                          for number in range(1, executed)]
    if result.code == 0 and request.executions:
        result.events = [read_events(files["events"])]


def _read_counts(result: Result, report: dict[str, str], files: dict[str, bytes]) -> None:
    result.code = int(report.get("code", "0"), 0)
    result.message = report.get("message", "")
    result.subject = int(report.get("subject", "0"), 0)
    if "heap" in report:
        result.heap_bytes_allocated = int(report["heap"], 0)
    result.instructions = read_phases(report, "", PHASES)
    result.began_load = "stack_load" in report
    if int(report.get("stack_load", "-1"), 0) >= 0:
        result.stack = read_phases(report, "stack_", ("load", "execute"))
    if "pool_used" in report:
        result.method_pool = _usage(report, "pool")
        result.packed = int(report["packed"], 0)
        result.temp = _usage(report, "temp")
        result.pool = files["pool"]
        while f"planned{len(result.planned)}_used" in report:
            result.planned.append(_usage(report, f"planned{len(result.planned)}"))


def read_phases(report: dict[str, str], prefix: str, phases: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the measurement of each phase.

    It is None for a phase that was not reached; the whole result is None without a load.
    """
    if prefix + "load" not in report:
        return None
    return {phase: int(report[prefix + phase], 0) if prefix + phase in report else None
            for phase in phases}


def _usage(report: dict[str, str], name: str) -> Usage:
    return Usage(int(report[name + "_used"], 0), int(report[name + "_size"], 0))


def _outputs(request: Request, report: dict[str, str], files: dict[str, bytes],
             suffix: str) -> list[np.ndarray]:
    """Return the outputs of one execution; of further executions only tensors are included."""
    meta = Program.load(BufferDataLoader(request.model)).method_meta(request.method)
    return [_tensor(meta.output_tensor_meta(i), files, f"{i}{suffix}")
            if meta.output_tag(i) == KERNEL_TYPES_TENSOR
            else _value(report, f"output{i}{suffix}", i)
            for i in range(meta.num_outputs())]


def _tensor(info: TensorInfo, files: dict[str, bytes], name: str) -> np.ndarray:
    sizes = np.frombuffer(files["sizes" + name], "<i4").tolist() if info.is_dynamic() else None
    return from_stored(files["out" + name], info, sizes)


class _Floats(ast.NodeTransformer):
    """The special floats that Python prints as names."""

    def visit_Name(self, node: ast.Name) -> ast.Constant:
        return ast.Constant(float(node.id))


def _value(report: dict[str, str], name: str, index: int) -> np.ndarray:
    """Read an output that is not a tensor. MicroPython's floats have 32 bits."""
    text = report.get(name, "None")
    if "board" in report:
        return output_array(bare.read_value(text), index)
    array = output_array(ast.literal_eval(_Floats().visit(ast.parse(text, mode="eval"))), index)
    return array.astype(np.float32) if array.dtype == np.float64 else array
