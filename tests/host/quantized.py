"""Quantization in numpy, as ExecuTorch's kernels compute it: in float32."""

import numpy as np
from kernel_call import DTYPES

QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")


def limits(dtype):
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def quantize(x, scale, zero_point, low, high, dtype):
    """scale and zero_point: numbers, or arrays that broadcast."""
    inverse = np.float32(1) / np.asarray(scale, "float32")
    rounded = np.rint(x * inverse) + np.asarray(zero_point, "int32").astype("float32")
    return np.clip(np.nan_to_num(rounded.astype("float64"), nan=0.0), low, high).astype(dtype)


def dequantize(q, scale, zero_point):
    difference = q.astype("int64") - np.asarray(zero_point, "int64")
    return difference.astype("float32") * np.asarray(scale, "float32")


def code(dtype):
    return DTYPES[dtype]
