"""Compute the integers of picotorch::quantized_layer_norm and picotorch::quantized_group_norm.

kernels/cortex_m/normalization.c describes the arithmetic.
"""

import math
from typing import NamedTuple

import numpy as np

MAX_SIZE = 1 << 19  # values that are normalized together

_EPSILON_BITS = 8  # behind the point, of epsilon
_LARGEST_BITS = 28  # of the largest normalized value, the root of the number of values
_MAX_EPSILON = (1 << 62) - 1
_WEIGHT_BITS = 16  # by which a product with a weight is shifted
_MAX_BIAS = 1 << 29  # leaves room for the product
_MAX_SHIFT = 24


class Parameters(NamedTuple):
    """weight: int16, bias: int32, epsilon and shift: arguments of both operators."""

    weight: np.ndarray
    bias: np.ndarray
    epsilon: int
    shift: int


def compute(weight: np.ndarray, bias: np.ndarray, size: int, epsilon: float, input_scale: float,
            output_scale: float, output_zero_point: int) -> Parameters:
    """Return the integers for `size` values that are normalized together, at most MAX_SIZE.

    weight, bias: floats, of equal length.
    """
    weight = weight.astype(np.float64) / output_scale
    bias = bias.astype(np.float64) / output_scale + output_zero_point
    largest = float(np.abs(weight).max(initial=0))
    largest_bias = float(np.abs(bias).max(initial=0)) + 1
    value_bits = _LARGEST_BITS - math.ceil(math.log2(max(size, 1)) / 2)
    weight_bits = math.floor(math.log2(np.iinfo(np.int16).max / max(largest, 2.0**-31)))
    shift = max(0, min(value_bits + weight_bits - _WEIGHT_BITS, _MAX_SHIFT,
                       math.floor(math.log2(_MAX_BIAS / largest_bias))))
    weight_bits = shift + _WEIGHT_BITS - value_bits
    return Parameters(
        _rounded(weight * 2.0**weight_bits, np.int16), _rounded((bias + 0.5) * 2.0**shift, np.int32),
        min(round(size**2 * epsilon / input_scale**2 * 2**_EPSILON_BITS), _MAX_EPSILON), shift)


def _rounded(values: np.ndarray, dtype: type) -> np.ndarray:
    limits = np.iinfo(dtype)
    rounded: np.ndarray = np.clip(np.rint(values), limits.min, limits.max).astype(dtype)
    return rounded
