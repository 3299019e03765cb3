"""Write the log of a run: the lines of ExecuTorch's arm_executor_runner."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from picotorch.program import BufferDataLoader, Program
from picotorch.schema import ERROR_NAMES, KERNEL_TYPES_TENSOR
from picotorch.tensor import Tensor, TensorInfo, from_blob

from .aligned import aligned_copy
from .request import Request, Result, Usage
from .tensors import to_stored

SHOWN = 16  # elements of an output

_KINDS = {"Float": "float", "Double": "double", "Half": "half", "BFloat16": "bfloat16",
          "Bool": "bool", "Byte": "byte", "Char": "char", "Short": "short", "Int": "int",
          "Long": "long", "ComplexHalf": "complex half", "ComplexFloat": "complex float",
          "ComplexDouble": "complex double"}
_REAL = ("Float", "Double", "Half", "BFloat16")
_COMPLEX = ("ComplexHalf", "ComplexFloat", "ComplexDouble")


def log_of(request: Request, result: Result) -> list[str]:
    """Return the lines that describe a run on the twin or on a board."""
    lines = []
    if result.began_load:
        program = Program.load(BufferDataLoader(aligned_copy(request.model)))
        lines = [*_info(_loading(request, program)), *_run(request, result, program)]
    return lines


def _info(lines: Iterable[str]) -> list[str]:
    return ["I [picotorch] " + line for line in lines]


def _failed(what: str, request: Request, result: Result) -> str:
    name = ERROR_NAMES.get(result.code, "Unknown")
    return (f"E [picotorch] {what} of method {request.method} failed with status "
            f"0x{result.code:x} ({name})")


def _loading(request: Request, program: Program) -> Iterator[str]:
    meta = program.method_meta(request.method)
    yield f"Model PTE file loaded. Size: {len(request.model)} bytes."
    yield f"Model buffer loaded, has {program.num_methods()} methods"
    yield f"Running method {request.method}"
    yield f"Setup Method allocator pool. Size: {request.pool_size} bytes."
    for i in range(meta.num_memory_planned_buffers()):
        size = request.planned_sizes.get(i, meta.memory_planned_buffer_size(i))
        yield f"Setting up planned buffer {i}, size {size}."
    yield f"Setup temp allocator pool. Size: {request.temp_size} bytes."
    yield "Loading method."


def _run(request: Request, result: Result, program: Program) -> list[str]:
    if result.method_pool is None:
        return [_failed("Loading", request, result)]
    lines = _info([f"Method '{request.method}' loaded.", "Preparing inputs..."])
    if result.code and not result.outputs:
        return [*lines, _failed("Execution", request, result)]
    return [*lines, *_info(_executed(request, result)), *_outputs(result, program)]


def _executed(request: Request, result: Result) -> Iterator[str]:
    yield "Input prepared."
    yield "Starting the model execution..."
    yield "Model executed successfully."
    if result.instructions is not None:
        yield "Instructions: " + ", ".join(
            f"{phase.replace('_', ' ')} {count}" for phase, count in result.instructions.items())
    yield f"model_pte_program_size:    {len(request.model)} bytes."
    yield _usage("method_allocator_used:     ", result.method_pool)
    for i, usage in enumerate(result.planned):
        yield _usage(f"planned_buffer_{i}_used:     ", usage)
    yield _usage("temp_allocator_used:       ", result.temp)


def _usage(label: str, usage: Usage | None) -> str:
    assert usage is not None  # the method was loaded
    percent = 100 * usage.available // usage.size if usage.size else 0
    return (f"{label}{usage.available} / {usage.size}  free: {usage.size - usage.available} "
            f"( used: {percent} % )")


# ---- outputs


def _outputs(result: Result, program: Program) -> list[str]:
    meta = program.method_meta(result.method)
    lines = _info([f"{len(result.outputs)} outputs:"])
    for i, array in enumerate(result.outputs):
        if meta.output_tag(i) == KERNEL_TYPES_TENSOR:
            lines += _elements(i, _stored(meta.output_tensor_meta(i), array))
        else:
            lines.append(f"Output[{i}]: {array.tolist()}")
    return lines


def _stored(info: TensorInfo, array: np.ndarray) -> Tensor:
    """Return an output with its elements in the order in which the program keeps them."""
    data = aligned_copy(to_stored(array, info.dim_order()))
    return from_blob(data, list(array.shape), info.scalar_type(), info.dim_order())


def _elements(i: int, tensor: Tensor) -> list[str]:
    kind = _KINDS.get(tensor.dtype)
    count = math.prod(tensor.sizes())
    if kind is None:
        return [f"Output[{i}]: {tensor.nbytes()} bytes of {tensor.dtype}"]
    lines = [f"Output[{i}][{k}]: ({kind}) {_text(tensor.dtype, tensor.number(k))}"
             for k in range(min(SHOWN, count))]
    if count > SHOWN:
        lines.append(f"Output[{i}]: {count - SHOWN} more")
    return lines


def _text(dtype: str, value: Any) -> str:
    if dtype == "Bool":
        return "true" if value else "false"
    if dtype in _COMPLEX:
        return "{:f}{:+f}j".format(*value)
    return f"{value:f}" if dtype in _REAL else f"{value:d}"
