#!/usr/bin/env python3
"""Write tests/kernels/dialect_cases: calls of Cortex-M operators, with the results of ExecuTorch's
dialect.

Each file has the calls of one operator: `calls`, a JSON list with the arguments of each, and arrays.
An argument [name, dim order] is a tensor; "out" is the result. Needs the `export` extra.
"""

import argparse
import io
import json
import logging
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "kernels" / "dialect_cases"
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
CHANNELS_LAST = (0, 2, 3, 1)
CALLS = 24
MULTIPLIERS = (0, -(1 << 30), -(1 << 31), 1 << 30, (1 << 30) + 1, (1 << 31) - 1)
INT32 = np.iinfo(np.int32)


class Draw:
    """Seeded values for the calls of one operator; `turn` counts the calls."""

    def __init__(self, operator):
        self.random = np.random.default_rng(zlib.crc32(operator.encode()))
        self.turn = 0

    def integer(self, low, high):
        """Return an int in low..high."""
        return int(self.random.integers(low, high + 1))

    def choice(self, *values):
        return values[self.integer(0, len(values) - 1)]

    def int8(self, *sizes, low=-128):
        """Return random values, sometimes only the limits."""
        if self.choice(0, 0, 1):
            return self.random.choice(np.array([low, 127], np.int8), sizes)
        return self.random.integers(low, 128, sizes).astype(np.int8)

    def offset(self):
        return self.choice(-127, 128, 0, self.integer(-127, 128))

    def zero_point(self):
        return self.choice(-128, 127, 0, self.integer(-128, 127))

    def multiplier(self):
        return self.choice(*MULTIPLIERS, *(self.integer(1 << 30, INT32.max) for _ in range(4)))

    def bounds(self):
        low = self.choice(-128, -128, self.integer(-128, 127))
        return low, self.choice(127, 127, self.integer(low, 127))

    def bias(self, n, large=True):
        """Return None, small values, or values near those at which sums overflow."""
        values = self.random.integers(-3000, 3000, n)
        if large and self.choice(0, 0, 1):
            values = self.random.choice([INT32.min, INT32.max], n) - np.sign(values) * abs(values)
        return self.choice(None, values.astype(np.int32), values.astype(np.int32))

    def shift(self, depth):
        """Return right shifts that bring sums of `depth` products into int8, and others."""
        fitting = -8 - int(np.log2(depth + 1) / 2)
        return self.choice(fitting, fitting, fitting + 2, 0, 1, 5, -1, -31)

    def channels(self, n, depth):
        """Return multipliers and shifts of n channels."""
        multipliers = np.array([self.multiplier() for _ in range(n)], np.int32)
        return multipliers, np.array([self.shift(depth) for _ in range(n)], np.int32)


def channels_last(array):
    return (array, CHANNELS_LAST)


def scratch():
    return np.zeros(0, np.uint8)


# ---- the operators: each generator makes the arguments of one call


def quantize_per_tensor(draw):
    sizes = draw.choice((), (7,), (2, 3), (1, 2, 3, 5))
    scale = draw.choice(1.0, 0.5, 0.0235, draw.random.uniform(1e-3, 3))
    x = np.asarray(draw.random.uniform(-300, 300, sizes) * scale, np.float32)
    if sizes:
        x.flat[:4] = [0.5 * scale, np.inf, -np.inf, 1e30]
        x.flat[-1] = draw.choice(np.nan, 2.5 * scale)
    dtype, low, high = draw.choice((1, -128, 127), (1, -127, 127), (0, 0, 255), (2, -32768, 32767))
    return [x, scale, draw.integer(low, high), low, high, dtype]


def dequantize_per_tensor(draw):
    dtype, kind = draw.choice((1, np.int8), (0, np.uint8), (2, np.int16))
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    sizes = draw.choice((), (7,), (1, 2, 3, 5))
    x = np.asarray(draw.random.integers(low, high + 1, sizes), kind)
    return [x, draw.random.uniform(1e-4, 3), draw.integer(low, high), low, high, dtype]


def pair(draw):
    """Return two operands: of equal sizes, or one of a value for each channel."""
    n, c, h, w = (draw.integer(1, 4) for _ in range(4))
    kind = draw.turn % 4
    if kind == 0:
        return draw.int8(n, c * w), draw.int8(n, c * w)
    image = channels_last(draw.int8(n, c, h, w))
    if kind == 1:
        return image, channels_last(draw.int8(n, c, h, w))
    channels = channels_last(draw.int8(1, c, 1, 1))
    return (image, channels) if kind == 2 else (channels, image)


def quantized_add(draw):
    a, b = pair(draw)

    def scaled(shift):
        return draw.zero_point(), draw.multiplier(), shift

    return [a, *scaled(draw.integer(-6, 1)), b, *scaled(draw.integer(-6, 0)),
            *scaled(draw.integer(-20, -16)), *draw.bounds()]


def quantized_mul(draw):
    a, b = pair(draw)
    return [a, draw.zero_point(), b, draw.zero_point(), draw.zero_point(), draw.multiplier(),
            draw.choice(-8, -7, -6, 0, 2)]


def quantized_div(draw):
    kind = draw.choice(np.int8, np.int16)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    sizes = draw.choice((9,), (2, 3, 4))
    a, b = (draw.random.integers(low, high + 1, sizes).astype(kind) for _ in range(2))
    b.flat[0] = 0
    return [a, draw.zero_point(), b, draw.choice(0, draw.zero_point()), draw.zero_point(),
            draw.random.uniform(0.1, 50)]


def quantized_activation(draw):
    x = draw.int8(2, draw.integer(1, 40))
    return [x, draw.random.permutation(np.arange(-128, 128)).astype(np.int8)]


def minimum(draw):
    a = draw.int8(2, 3, draw.integer(1, 5))
    return [a, draw.choice(draw.int8(*a.shape), draw.int8(1), draw.int8(3, 1))]


def softmax(draw):
    sizes = draw.choice((10,), (3, 12), (2, 5, 4))
    dim = draw.integer(-len(sizes), len(sizes) - 1)
    return [draw.int8(*sizes), dim, draw.zero_point(), -128, draw.integer(1 << 30, INT32.max),
            draw.integer(18, 26), -128]


def transpose(draw):
    sizes = [draw.integer(1, 5) for _ in range(draw.integer(1, 4))]
    return [draw.int8(*sizes), [int(d) for d in draw.random.permutation(len(sizes))]]


def pad(draw):
    rank = draw.integer(1, 4)
    x = draw.int8(*(draw.integer(1, 4) for _ in range(rank)))
    before, after = ([0] * (4 - rank) + [draw.integer(0, 2) for _ in range(rank)] for _ in range(2))
    trivial = x.shape[1:2] == (1,) or x.shape[2:] == (1, 1)  # the dialect treats it as channels_last
    if rank == 4 and (trivial or draw.choice(0, 1)):
        x = channels_last(x)
    return [x, before, after, draw.integer(-128, 127)]


def quantized_linear(draw):
    depth, outputs = draw.choice(1, 3, 8, 27, 64, 130), draw.integer(1, 9)
    bias, kernel_sum = draw.bias(outputs), None
    if draw.turn % 3 == 0:
        bias, kernel_sum = None, draw.random.integers(-9000, 9000, outputs).astype(np.int32)
    low, high = draw.bounds()
    rows = draw.choice((1,), (3,), (2, 2))
    return [draw.int8(*rows, depth), draw.int8(outputs, depth), bias, kernel_sum, draw.offset(),
            draw.choice(0, 0, -5, 128), draw.zero_point(), [draw.multiplier()], [draw.shift(depth)],
            high, low]


def quantized_batch_matmul(draw):
    batch, rows, columns = (draw.integer(1, 6) for _ in range(3))
    depth = draw.choice(1, 3, 16, 50, 250)
    return [draw.int8(batch, rows, depth), draw.offset(), draw.int8(batch, columns, depth),
            draw.offset(), draw.zero_point(), draw.multiplier(), draw.shift(depth), scratch()]


def geometry(draw):
    """Return height, width, kernel, stride, padding and dilation of a convolution that has an
    output."""
    kernel = [draw.choice(1, 2, 3, 3, 5), draw.choice(1, 2, 3, 3, 4)]
    if draw.turn % 3 == 0:
        kernel = [1, 1] if draw.turn % 2 else [3, 3]
    stride = [draw.integer(1, 3), draw.integer(1, 2)]
    dilation = [draw.choice(1, 1, 2), draw.choice(1, 1, 3)]
    padding = [draw.integer(0, kernel[0] + 1), draw.integer(0, kernel[1] // 2)]
    sizes = [max(1, (k - 1) * d + 1 - 2 * p) + draw.integer(0, 5)
             for k, d, p in zip(kernel, dilation, padding, strict=True)]
    return sizes, kernel, stride, padding, dilation


def quantized_conv2d(draw):
    sizes, kernel, stride, padding, dilation = geometry(draw)
    groups = draw.choice(1, 1, 2, 3)
    channels, outputs = draw.choice(1, 3, 4, 8, 13, 20), groups * draw.integer(1, 5)
    depth = kernel[0] * kernel[1] * channels
    return [channels_last(draw.int8(draw.integer(1, 2), groups * channels, *sizes)),
            draw.int8(outputs, *kernel, channels), draw.bias(outputs), stride, padding, dilation,
            draw.offset(), draw.zero_point(), *draw.channels(outputs, depth), *draw.bounds(),
            np.zeros(draw.choice(0, 4 * depth), np.uint8)]


def quantized_depthwise_conv2d(draw):
    sizes, kernel, stride, padding, dilation = geometry(draw)
    multiplier, channels = draw.choice(1, 1, 1, 2, 3, 4, 8), draw.choice(1, 3, 4, 6, 16)
    outputs = multiplier * channels
    return [channels_last(draw.int8(draw.integer(1, 2), channels, *sizes)),
            draw.int8(1, *kernel, outputs), draw.bias(outputs), stride, padding, dilation, multiplier,
            draw.offset(), draw.zero_point(), *draw.channels(outputs, kernel[0] * kernel[1]),
            *draw.bounds(), scratch()]


def quantized_transpose_conv2d(draw):
    kernel = [draw.integer(1, 4), draw.integer(1, 3)]
    stride, dilation = [draw.integer(1, 3) for _ in "hw"], [draw.integer(1, 2) for _ in "hw"]
    padding = [draw.integer(0, (k - 1) * d // 2) for k, d in zip(kernel, dilation, strict=True)]
    extra = [draw.integer(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)]
    channels, outputs = draw.choice(1, 3, 8), draw.integer(1, 6)
    return [channels_last(draw.int8(draw.integer(1, 2), channels, *(draw.integer(2, 4) for _ in "hw"))),
            draw.int8(outputs, *kernel, channels), draw.bias(outputs, large=False), stride, padding,
            extra, dilation, draw.offset(), draw.zero_point(),
            *draw.channels(outputs, kernel[0] * kernel[1] * channels), *draw.bounds(), scratch(),
            scratch()]


def pool_geometry(draw):
    kernel = [draw.integer(1, 4), draw.integer(1, 4)] if draw.turn % 6 else [12, 12]
    padding = [draw.integer(0, k // 2) for k in kernel]
    sizes = [k + draw.integer(0, 4) for k in kernel]
    image = channels_last(draw.int8(draw.integer(1, 2), draw.choice(1, 4, 5), *sizes))
    return image, kernel, [draw.integer(1, 3) for _ in "hw"], padding


def quantized_avg_pool2d(draw):
    from executorch.backends.cortex_m.passes.passes_utils import quantize_multiplier_aot

    scale = quantize_multiplier_aot(draw.random.uniform(1e-3, 1))
    return [*pool_geometry(draw), draw.choice(False, True), draw.zero_point(), *scale, scratch()]


def quantized_max_pool2d(draw):
    zero_point = draw.zero_point()
    return [*pool_geometry(draw), [1, 1], False, zero_point, zero_point, *draw.bounds()]


GENERATORS = {f.__name__: f for f in (
    quantize_per_tensor, dequantize_per_tensor, quantized_add, quantized_mul, quantized_div,
    quantized_activation, minimum, softmax, transpose, pad, quantized_linear,
    quantized_batch_matmul, quantized_conv2d, quantized_depthwise_conv2d,
    quantized_transpose_conv2d, quantized_avg_pool2d, quantized_max_pool2d)}
GENERATORS["maximum"] = minimum


# ---- running the dialect, and the files


def to_torch(argument):
    import torch

    if isinstance(argument, tuple):
        return torch.from_numpy(argument[0]).to(memory_format=torch.channels_last)
    return torch.from_numpy(np.asarray(argument)) if isinstance(argument, np.ndarray) else argument


def result(operator, arguments):
    """Return the dialect's output, with logical sizes in row-major order."""
    import torch

    if operator in ("quantized_conv2d", "quantized_depthwise_conv2d"):
        arguments = without_dilation(arguments)
    converted = [to_torch(argument) for argument in arguments]
    if operator.endswith("quantize_per_tensor"):
        converted[5] = [torch.uint8, torch.int8, torch.int16][converted[5]]
    return getattr(torch.ops.cortex_m, operator)(*converted).contiguous().numpy()


def without_dilation(arguments):
    """Return the same convolution with zeros in the weights, since PyTorch does not dilate integers."""
    weights, dilation = arguments[1], arguments[5]
    kernel = [(k - 1) * d + 1 for k, d in zip(weights.shape[1:3], dilation, strict=True)]
    spread = np.zeros((weights.shape[0], *kernel, weights.shape[3]), np.int8)
    spread[:, :: dilation[0], :: dilation[1]] = weights
    return [arguments[0], spread, *arguments[2:5], [1, 1], *arguments[6:]]


def describe(argument, name, arrays):
    """Return the JSON of an argument, and store its array under `name`."""
    if not isinstance(argument, (tuple, np.ndarray)):
        return argument
    array, order = argument if isinstance(argument, tuple) else (argument, range(argument.ndim))
    arrays[name] = array
    return [name, list(order)]


def make(operator):
    """Return the arrays of the operator's file, `calls` among them."""
    draw, calls, arrays = Draw(operator), [], {}
    for draw.turn in range(CALLS):
        arguments = GENERATORS[operator](draw)
        described = [describe(a, f"{draw.turn}_{i}", arrays) for i, a in enumerate(arguments)]
        arrays[f"{draw.turn}_out"] = out = result(operator, arguments)
        like = max((a[1] for a in arguments if isinstance(a, tuple)), default=range(out.ndim))
        calls.append({"arguments": described, "out": [f"{draw.turn}_out", list(like)]})
    return {"calls": np.array(json.dumps(calls)), **arrays}


def npz(arrays):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", TIMESTAMP)
            archive.writestr(entry, member.getvalue(), zipfile.ZIP_DEFLATED)
    return data.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    check = parser.parse_args().check
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    import executorch.backends.cortex_m.passes  # noqa: F401  registers the operators

    FOLDER.mkdir(exist_ok=True)
    differing = []
    for operator in GENERATORS:
        path, data = FOLDER / f"{operator}.npz", npz(make(operator))
        if check and (not path.exists() or path.read_bytes() != data):
            differing.append(path.name)
        elif not check:
            path.write_bytes(data)
    print(f"{len(GENERATORS)} operators" + "".join(f", differs: {name}" for name in differing))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
