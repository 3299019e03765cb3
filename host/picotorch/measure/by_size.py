"""Estimate the instructions of a method from the sizes of its tensors.

It serves a core whose board is not built here.

instructions_by_size.json has, by core and operator, the instructions of a call: the ones of any call,
of each element of its largest tensor, of each element of its output, and of each MAC. The entry of an
operator with a dtype takes precedence over its entry without one. OTHERS is for operators that the
tests' models lack. "less" has the operators that differ between the default and the preferred temp
memory. If each network of the tests is estimated with a table of the other networks, half of the
estimates are within a factor of "half", and nine in ten within "factor".
tests/benchmark/instructions_by_size.py measures and writes the file.
"""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import numpy as np

from picotorch import MethodMeta

from ..host.instructions import KERNEL_CALL, Instruction, read_instructions
from ..host.request import Estimate
from ..host.tensors import numpy_dtype
from ..host.values import Values
from . import cycles
from .cycles import OTHERS, RunConditions, operator_of
from .macs import macs_of

FEATURES = ("call", "elements", "outputs", "macs")
_LOOKED_INTO = 16  # items of a list: many instructions may name one long list
_TABLE = json.loads(
    resources.files("picotorch.measure").joinpath("instructions_by_size.json").read_text())
HALF, FACTOR = _TABLE["half"], _TABLE["factor"]
# The operator of float32 that computes what an int8 operator does; conversions have none
_IN_FLOAT = {
    "quantized_conv2d": "aten::convolution.out", "quantized_depthwise_conv2d": "aten::convolution.out",
    "quantized_transpose_conv2d": "aten::convolution.out", "quantized_linear": "aten::linear.out",
    "quantized_batch_matmul": "aten::bmm.out", "quantized_add": "aten::add.out",
    "quantized_mul": "aten::mul.out", "quantized_div": "aten::div.out",
    "quantized_activation": "aten::sigmoid.out", "softmax": "aten::_softmax.out",
    "transpose": "aten::permute_copy.out", "pad": "aten::constant_pad_nd.out",
    "quantized_avg_pool2d": "aten::avg_pool2d.out",
    "quantized_max_pool2d": "aten::max_pool2d_with_indices.out",
    "maximum": "aten::maximum.out", "minimum": "aten::minimum.out",
    "quantized_layer_norm": "aten::native_layer_norm.out",
    "quantized_group_norm": "aten::native_group_norm.out"}
# Copies of int8 programs for channels-last images, which float32 lacks; sequences become images, too
_LAYOUT = ("dim_order_ops::_clone_dim_order.out", "aten::unsqueeze_copy.out",
           "aten::squeeze_copy.dims_out", "aten::squeeze_copy.dim_out")
_TABLE_LOOKUP = "cortex_m::quantized_activation.out"
_ALIKE = {"cortex-m7": "cortex-m4", "cortex-m33": "cortex-m4"}  # the same loops


# A call of a kernel: its operator and instructions, and the same of the operator of float32
Row = tuple[Instruction, str, int, str, int]


def features_of(instruction: Instruction, values: Values) -> tuple[str, str, list[int]]:
    """Return the operator, see cycles.operator_of, its dtype, and a number for each of FEATURES."""
    inputs, outputs = (
        [values.tensor(i) for value in named for i in values.tensors(value, _LOOKED_INTO)]
        for named in (instruction.arguments[:1], instruction.outputs))
    sizes = [sum(math.prod(tensor.sizes()) for tensor in tensors) for tensors in (inputs, outputs)]
    dtypes = [numpy_dtype(tensor) for tensor in (*inputs, *outputs)]
    return (operator_of(instruction, values), str(dtypes[0]) if dtypes else "none",
            [1, max(sizes), sizes[1], macs_of(instruction, values)])


def estimate(meta: MethodMeta, core: str, clock_hz: int | None,
             run: RunConditions) -> Estimate | None:
    """Return cycles.estimate of an execution that no board counted; None for a method with delegates.

    Its range is wider by FACTOR.
    """
    operators = expected(meta, core, run.has_less_temp)
    if operators is None:
        return None
    found = cycles.estimate(core, clock_hz, sum(operators.values()), operators, run)
    return dataclasses.replace(
        found, counted=False, min_ms=found.min_ms and round(found.min_ms / FACTOR, 3),
        max_ms=found.max_ms and round(found.max_ms * FACTOR, 3))


def expected(meta: MethodMeta, core: str, has_less_temp: bool) -> dict[str, int] | None:
    """Return the estimated instructions of an execution by operator, as cycles.estimate reads them.

    Each call counts once, at the largest sizes. None for a method with delegates.
    """
    if meta.num_backends():
        return None
    found: Counter[str] = Counter()
    for _, operator, dtype, features in _calls(meta, Values(meta.program, meta.plan)):
        found[operator] += _count(core, operator, dtype, features, has_less_temp)
    return dict(found)


def by_instruction(meta: MethodMeta, core: str) -> list[Row]:
    """Return (operator, instructions, instructions in float32) for each call of a kernel.

    The last is 0 for a conversion between int8 and float, and for copies of integers in another layout.
    """
    found = []
    values = Values(meta.program, meta.plan)
    for instruction, operator, dtype, features in _calls(meta, values):
        in_float = _in_float(instruction, dtype, values)
        float_dtype = "float32" if dtype == "int8" else dtype
        found.append((instruction, operator, _count(core, operator, dtype, features), in_float,
                      _count(core, in_float, float_dtype, features) if in_float else 0))
    return found


def cycles_by_instruction(meta: MethodMeta, core: str,
                          counts: Sequence[int] = ()) -> list[tuple[int, float, float]]:
    """Return (index, cycles, cycles in float32) for each call of a kernel, see by_instruction.

    counts: the instructions that a board counted, by instruction of the method, if it did.
    """
    return [(i.index, (counts[i.index] if counts else count) * cycles.factors(core, operator)[1],
             float_count * cycles.factors(core, in_float)[1])
            for i, operator, count, in_float, float_count in by_instruction(meta, core)]


def conversion_cycles(core: str, name: str, elements: int) -> float:
    """Return the cycles that `name`, "quantize" or "dequantize", takes for a tensor."""
    operator = f"cortex_m::{name}_per_tensor.out"
    dtype = "float32" if name == "quantize" else "int8"
    return _count(core, operator, dtype, [1, elements, elements, 0]) * cycles.factors(core, operator)[1]


def _calls(meta: MethodMeta,
           values: Values) -> Iterator[tuple[Instruction, str, str, list[int]]]:
    """Yield (instruction, operator, dtype, features) of each call of a kernel."""
    for instruction in read_instructions(meta, values):
        if instruction.kind == KERNEL_CALL:
            yield instruction, *features_of(instruction, values)


def _count(core: str, operator: str, dtype: str, features: list[int],
           has_less_temp: bool = False) -> int:
    """Return the instructions of a call."""
    factors = _factors(_ALIKE.get(core, core), operator, dtype, has_less_temp)
    return round(sum(map(math.prod, zip(factors, features, strict=True))))


def _in_float(instruction: Instruction, dtype: str, values: Values) -> str:
    """Return the operator of float32 for one of any program, "" for none."""
    call = instruction.call
    if "quantize_per_" in call or (call in _LAYOUT and dtype == "int8"):
        return ""
    if call == _TABLE_LOOKUP and _is_relu(values.constant_data(instruction.arguments[1])):
        return "aten::relu.out"
    return float_operator(call)


def _is_relu(lut: bytes) -> bool:
    """Return True if a table of int8 results has the two straight lines of a ReLU or leaky ReLU.

    Behind the second line it may have a third, of results that are all the maximum.
    """
    if not lut:
        return False
    results = np.frombuffer(lut, np.int8).astype(float)
    results = results[:int(results.argmax()) + 1]
    return any(_is_straight(results[:i + 1]) and _is_straight(results[i:]) for i in range(len(results)))


def _is_straight(results: np.ndarray[Any, Any]) -> bool:
    line = np.linspace(results[0], results[-1], len(results))
    return bool(abs(results - line).max() <= 1)


def float_operator(call: str) -> str:
    """Return the operator of float32 that computes what an operator does, itself if it has none."""
    family, _, name = call.partition("::")
    name = name.partition(".")[0].removesuffix("_nhwc")
    return _IN_FLOAT.get(name, call) if family in ("cortex_m", "picotorch") else call


def _factors(core: str, operator: str, dtype: str, has_less_temp: bool) -> list[float]:
    table = _TABLE["usual"][core] | (_TABLE["less"][core] if has_less_temp else {})
    for name in (f"{operator}, {dtype}", operator, f"{OTHERS}, {dtype}", OTHERS):
        if name in table:
            found: list[float] = table[name]
            return found
    raise KeyError(OTHERS)
