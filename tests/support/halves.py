"""Convert float16 and bfloat16 in numpy, and call operators in them.

numpy has no bfloat16, so an array of its bits (uint16) stands for it.
"""

import numpy as np
from support.kernel_call import DTYPES, Tensor

HALF, BFLOAT16 = "float16", "bfloat16"
HALVES = HALF, BFLOAT16
CODES = DTYPES | {BFLOAT16: 15}


def to_bits(values, dtype):
    """Convert an array of float32 values to the dtype, rounded to the nearest, ties to even."""
    if dtype != BFLOAT16:
        with np.errstate(over="ignore"):
            return np.asarray(values, np.float32).astype(dtype)
    values = np.array(values, np.float32)
    bits = np.asarray(values.view(np.uint32)).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.asarray(np.where(np.isnan(values), 0x7FC0, bits)).astype(np.uint16)


def from_bits(array, dtype):
    """Return the values as float32."""
    if dtype != BFLOAT16:
        return array.astype(np.float32)
    return (np.array(array, np.uint32) << 16).astype(np.uint32).view(np.float32)


def rounded(values, dtype):
    return np.asarray(from_bits(to_bits(values, dtype), dtype))


def is_float(argument):
    """Return True for a float32 tensor with memory of its own."""
    array = getattr(argument, "array", argument)
    return (isinstance(array, np.ndarray) and array.dtype == np.float32
            and getattr(argument, "alias", None) is None)


def as_dtype(argument, dtype):
    """Convert the float32 tensors of an argument, also in lists, to the dtype.

    A tensor that shares the memory of another is unchanged.
    """
    if isinstance(argument, list):
        return [as_dtype(item, dtype) for item in argument]
    order = argument.dim_order if isinstance(argument, Tensor) else None
    array = argument.array if isinstance(argument, Tensor) else argument
    if not is_float(argument):
        return argument
    return Tensor(to_bits(array, dtype), order, dtype=CODES[dtype])


def exact(argument, dtype):
    """Round the float32 tensors of an argument, also in lists, to values that the dtype represents."""
    if isinstance(argument, list):
        return [exact(item, dtype) for item in argument]
    if not is_float(argument):
        return argument
    if isinstance(argument, Tensor):
        return Tensor(rounded(argument.array, dtype), argument.dim_order)
    return rounded(argument, dtype)


def redrawn(argument, random, dtype):
    """Replace the float32 values of an argument by random ones that the dtype represents exactly."""
    if isinstance(argument, list):
        return [redrawn(item, random, dtype) for item in argument]
    if not is_float(argument):
        return argument
    tensor = argument if isinstance(argument, Tensor) else Tensor(argument)
    values = random.normal(size=tensor.array.shape) * random.choice([0.01, 1, 1, 4, 300])
    odd = random.choice([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 6e-8, 65504, 1e-5], values.shape)
    values = np.where(random.random(values.shape) < random.choice([0, 0, 0.1]), odd, values)
    return Tensor(np.asarray(rounded(values, dtype)), tensor.dim_order)
