"""Define oracles of quantized_decomposed: quantization and back, its parameters, products and sums."""

import math

import numpy as np
from support.quantized import QUANTIZED, code, dequantize, limits, quantize
from test_quantized_parameters import choose
from test_quantized_products import PACKED, unpack
from test_quantized_values import along

from .sample import Sample, oracle

NAME = "quantized_decomposed::{}.out".format
CLOSE = {"rtol": 1e-5, "atol": 1e-4}


def reals(draw, shape, scale=1.0):
    """Draw multiples of half the scale, so that there are ties, and special floats."""
    x = draw.values(shape, "float32")
    halves = draw.random.integers(-300, 300, tuple(shape)) * np.float32(scale) / 2
    return np.asarray(np.where(draw.random.random(tuple(shape)) < 0.3, x, halves), "float32")


def range_of(draw, dtype):
    low, high = limits(dtype)
    return (low, high) if draw.chance() else (low + 1, high // 2)


def numbers_of(draw):
    """Draw a scale and a zero point."""
    zero_point = draw.pick(0, 3, -20, 127, draw.int(-(2**31), 2**31 - 1))
    return draw.pick(1.0, 0.5, 0.0712, 3e-6, 1e6), zero_point


def of_numbers(draw, operator, shape):
    """Draw scale and zero point. Return them as arguments, and as values that broadcast."""
    scale, zero_point = numbers_of(draw)
    if ".Tensor" not in operator:
        return [scale, zero_point], scale, zero_point
    scale_dtype, zero_dtype = draw.pick(("float64", "int64"), ("float32", "int32"))
    given = [np.array([scale], scale_dtype), np.array([zero_point], zero_dtype)]
    return given, given[0].reshape(()), zero_point


def parameters(draw, n):
    return draw.random.uniform(0.1, 1, n), draw.random.integers(-9, 9, n)


@oracle(NAME("quantize_per_tensor"), NAME("dequantize_per_tensor"),
        "quantized_decomposed::quantize_per_tensor.Tensor_out",
        "quantized_decomposed::dequantize_per_tensor.Tensor_out")
def per_tensor(draw, operator):
    dtype, shape = draw.pick(*QUANTIZED), draw.shape()
    order, (low, high) = draw.order(len(shape)), range_of(draw, dtype)
    given, scale, zero_point = of_numbers(draw, operator, shape)
    middle = [*given, low, high, code(dtype)]
    if "dequantize" in operator:
        q = draw.values(shape, dtype)
        expected = np.asarray(dequantize(q, scale, zero_point), "float32")
        return Sample([draw.tensor(q, order), *middle, draw.pick(None, 6)], expected, order=order)
    x = reals(draw, shape, scale)
    expected = np.asarray(quantize(x, scale, zero_point, low, high, dtype))
    return Sample([draw.tensor(x, order), *middle], expected, order=order)


@oracle(NAME("quantize_per_channel"), NAME("dequantize_per_channel"))
def per_channel(draw, operator):
    dtype, shape = draw.pick(*QUANTIZED), draw.shape(minimum=1)
    order, (low, high), axis = draw.order(len(shape)), limits(dtype), draw.dim(len(shape))
    scales, points = parameters(draw, shape[axis])
    if "dequantize" in operator and draw.chance():
        points = None
    scale = along(scales, axis % len(shape), len(shape))
    zero_point = 0 if points is None else along(points, axis % len(shape), len(shape))
    middle = [scales, points, axis, low, high, code(dtype)]
    if "dequantize" in operator:
        q = draw.values(shape, dtype)
        return Sample([draw.tensor(q, order), *middle, None], dequantize(q, scale, zero_point),
                      order=order)
    x = reals(draw, shape)
    return Sample([draw.tensor(x, order), *middle], quantize(x, scale, zero_point, low, high, dtype),
                  order=order)


@oracle(NAME("quantize_per_token"), NAME("dequantize_per_token"))
def per_token(draw, operator):
    shape, dtype = draw.shape(minimum=1), draw.pick(*QUANTIZED)
    scales, points = parameters(draw, (*shape[:-1], 1))
    middle = [scales, points, *limits(dtype), code(dtype)]
    if "dequantize" in operator:
        q = draw.values(shape, dtype)
        return Sample([draw.contiguous(q), *middle, 6], dequantize(q, scales, points),
                      order="contiguous")
    x = reals(draw, shape)
    expected = quantize(x, scales, points, *limits(dtype), dtype)
    return Sample([draw.contiguous(x), *middle], expected, order="contiguous")


@oracle("quantized_decomposed::choose_qparams.Tensor_out")
def chosen(draw, operator):
    x = draw.normal(draw.shape()) * np.float32(draw.pick(1.0, 1e-7, 1e10, 300.0))
    low, high = draw.pick((-128, 127), (0, 255), (-127, 127), (-32768, 32767), (3, 4))
    scale, zero_point = choose(x, low, high)
    return Sample([draw.contiguous(x), low, high, 1e-7, 1],
                  [np.array([scale]), np.array([zero_point])], order="contiguous")


@oracle(NAME("choose_qparams_per_token_asymmetric"))
def chosen_per_token(draw, operator):
    x = draw.normal(draw.shape(minimum=1)) * np.float32(draw.pick(1.0, 1e-7, 300.0))
    sizes = (*x.shape[:-1], 1)
    rows = [choose(row, -128, 127) for row in x.reshape(math.prod(sizes), x.shape[-1])]
    scales, points = (np.array([row[i] for row in rows], dtype).reshape(sizes)
                      for i, dtype in enumerate(("float64", "int64")))
    return Sample([draw.contiguous(x), 1], [scales, points], order="contiguous")


@oracle(*(f"quantized_decomposed::embedding_{bits}.{overload}" for bits in PACKED
          for overload in ("out", "dtype_out")))
def embedding(draw, operator):
    bits = operator.split("embedding_")[1].split(".")[0]
    dtype = draw.pick("uint8", "int8") if bits == "byte" else "uint8"
    rows, groups = draw.int(1, 6), draw.pick(None, 1, 2, 4)
    weight = draw.random.integers(0, 256, (rows, 4 * draw.int(1, 3))).astype(dtype)
    scales = draw.random.uniform(0.1, 1, rows if groups is None else (rows, groups)).astype("float32")
    points = draw.normal(scales.shape) if draw.chance() else None
    indices = draw.random.integers(0, rows, draw.shape(maximum=3)).astype(draw.pick("int64", "int32"))
    values = unpack(weight, bits)
    repeats = values.shape[1] // (groups or 1)
    scale, zero_point = (np.repeat(v.reshape(rows, -1), repeats, axis=1)
                         for v in (scales, 0 * scales if points is None else points))
    given = [weight, scales, points, -128, 127, np.asarray(indices)]
    dtype = [draw.pick(None, 6)] if "dtype" in operator else []
    return Sample([*given, *dtype], ((values - zero_point) * scale)[indices], order="contiguous")


@oracle(NAME("mixed_mm"), NAME("mixed_linear"))
def mixed_products(draw, operator):
    m, k, n = draw.int(0, 5), draw.int(1, 9), draw.int(1, 6)
    x = draw.normal((m, k))
    if "mm" in operator:
        weight = draw.random.integers(-128, 128, (k, n)).astype("int8")
        scales = draw.random.uniform(1, 2, k).astype("float32")
        return Sample([x, weight, scales, None], x @ (weight * scales[:, None]), order="contiguous",
                      **CLOSE)
    weight = draw.random.integers(-128, 128, (n, k)).astype("int8")
    groups = draw.pick(None, *(-(-k // size) for size in range(1, k + 1)))
    scales = draw.random.uniform(1, 2, n if groups is None else (n, groups)).astype("float32")
    size = -(-k // (groups or 1))  # the last group may have fewer
    scale = np.repeat(scales.reshape(n, -1), size, axis=1)[:, :k]
    return Sample([x, weight, scales, None, draw.pick(None, 6)], x @ (weight * scale).T,
                  order="contiguous", **CLOSE)


@oracle(NAME("add"))
def add(draw, operator):
    dtype, shape = draw.pick(*QUANTIZED), draw.shape()
    order, (low, high) = draw.order(len(shape)), limits(dtype)
    a, b = (draw.values(shape, dtype) for _ in range(2))
    of_a, of_b, of_out = ([draw.pick(0.1, 0.0712, 0.15, 1.0), draw.int(-20, 20)] for _ in range(3))
    total = dequantize(a, *of_a) + dequantize(b, *of_b)
    expected = np.asarray(quantize(total, *of_out, low, high, dtype))
    return Sample([draw.tensor(a, order), *of_a, low, high, draw.tensor(b, order), *of_b, low, high,
                   *of_out, low, high], expected, order=order)
