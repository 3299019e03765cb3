"""Count multiply-accumulates of an instruction, by its operator; those with padding count."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..host.instructions import Instruction
from ..host.values import Values

_Sizes = Callable[[int], Sequence[int]]  # the sizes of a tensor, by the index of its value
_Macs = Callable[[_Sizes, Instruction], int]


def _inner_product(sizes: _Sizes, instruction: Instruction) -> int:
    """Count an inner product along the last dim of the first factor for each output element."""
    return _numel(sizes(instruction.outputs[0])) * sizes(factors(instruction)[0])[-1]


def _convolution(transposed: bool) -> _Macs:
    """Return a function for weights with output channels first (transposed: input channels)."""
    def macs(sizes: _Sizes, instruction: Instruction) -> int:
        pixels = instruction.arguments[0] if transposed else instruction.outputs[0]
        return _numel(sizes(pixels)) * _numel(sizes(instruction.arguments[1])[1:])

    return macs


def _aten_convolution(sizes: _Sizes, instruction: Instruction, number: Callable[[int], Any]) -> int:
    return _convolution(number(instruction.arguments[6]))(sizes, instruction)


def _depthwise(sizes: _Sizes, instruction: Instruction) -> int:
    """Count with weights of [1, height, width, channels of the output]."""
    return _numel(sizes(instruction.outputs[0])) * _numel(sizes(instruction.arguments[1])[1:3])


def _cortex_m_transposed(sizes: _Sizes, instruction: Instruction) -> int:
    """Count with weights of [channels of the output, height, width, channels of the input]."""
    return _numel(sizes(instruction.arguments[0])) * _numel(sizes(instruction.arguments[1])[:3])


def _recurrent(sizes: _Sizes, instruction: Instruction) -> int:
    """Count all weights of the layer for each step of each sample of a batch."""
    return math.prod(sizes(instruction.arguments[0])[:2]) * sum(
        _numel(sizes(instruction.arguments[i])) for i in (1, 2))


_OPERATORS: dict[str, _Macs] = {
    "aten::addmm.out": _inner_product,
    "aten::bmm.out": _inner_product,
    "aten::linear.out": _inner_product,
    "aten::mm.out": _inner_product,
    "cortex_m::quantized_batch_matmul.out": _inner_product,
    "cortex_m::quantized_conv2d.out": _convolution(False),
    "cortex_m::quantized_conv2d_nhwc.out": _convolution(False),
    "cortex_m::quantized_depthwise_conv2d.out": _depthwise,
    "cortex_m::quantized_depthwise_conv2d_nhwc.out": _depthwise,
    "cortex_m::quantized_linear.out": _inner_product,
    "cortex_m::quantized_transpose_conv2d.out": _cortex_m_transposed,
    "cortex_m::quantized_transpose_conv2d_nhwc.out": _cortex_m_transposed,
    "picotorch::gru.out": _recurrent,
    "picotorch::lstm.out": _recurrent,
    "quantized_decomposed::mixed_linear.out": _inner_product,
    "quantized_decomposed::mixed_mm.out": _inner_product,
}


_FACTORS = {"aten::addmm.out": (1, 2), "cortex_m::quantized_batch_matmul.out": (0, 2)}


def _numel(sizes: Sequence[int]) -> int:
    return math.prod(sizes)


def factors(instruction: Instruction) -> list[int]:
    """Return the two values whose elements are multiplied."""
    return [instruction.arguments[i] for i in _FACTORS.get(instruction.call, (0, 1))]


def macs_of(instruction: Instruction, values: Values) -> int:
    """Count the MACs of one call, at the program's sizes; 0 without sums of products."""
    def sizes(index: int) -> Sequence[int]:
        return values.tensor(index).sizes()

    if instruction.call == "aten::convolution.out":
        return _aten_convolution(sizes, instruction, values.number)
    function = _OPERATORS.get(instruction.call)
    return function(sizes, instruction) if function else 0
