"""Compute PyTorch's dtype promotion, for the references of kernels."""

import numpy as np

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]
INTEGRAL = DTYPES[:6]
INTEGERS = DTYPES[1:6]


def category(dtype):
    return "bif".index(np.dtype(dtype).kind.replace("u", "i"))


def promote(a, b):
    """Return the dtype of two tensors that both have dims, or both none."""
    if "float64" in (a, b):
        return "float64"
    if "float32" in (a, b):
        return "float32"
    return str(np.result_type(a, b))


def result_dtype(x, y):
    """Return the dtype of two arrays or Python numbers; a 0-d array counts by its category."""
    if not isinstance(y, np.ndarray):
        alone = {bool: "bool", int: "int64", float: "float32"}[type(y)]
        return alone if category(alone) > category(x.dtype) else str(x.dtype)
    if not isinstance(x, np.ndarray):
        return result_dtype(y, x)
    a, b = str(x.dtype), str(y.dtype)
    if (x.ndim == 0) == (y.ndim == 0):
        return promote(a, b)
    wide, zero_dim = (a, b) if x.ndim else (b, a)
    return zero_dim if category(zero_dim) > category(wide) else wide


def floating(dtype):
    """Return the dtype in which functions of floating numbers compute."""
    return dtype if category(dtype) == category("float32") else "float32"


def values(rng, shape, dtype):
    """Return random elements; floating ones include zeros, infinities, NaN, subnormal numbers and
    halves."""
    dtype, n = np.dtype(dtype), int(np.prod(shape))
    if dtype.kind == "f":
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 0.5, -2.5, 3e38]
        data = rng.normal(size=n) * 4
        data[: n // 3] = rng.choice(special, n // 3)
        rng.shuffle(data)
    elif dtype.kind == "b":
        data = rng.integers(0, 2, n)
    else:
        bounds = np.iinfo(dtype)
        data = rng.integers(bounds.min, bounds.max, n, dtype, endpoint=True)
        data[: n // 2] = rng.integers(0 if bounds.min == 0 else -9, 10, n // 2)
        rng.shuffle(data)
    return data.astype(dtype).reshape(shape)
