"""Quantize in numpy as ExecuTorch's kernels do, in float32."""

import numpy as np
from support.kernel_call import DTYPES

QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")


def limits(dtype):
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def quantize(x, scale, zero_point, low, high, dtype):
    """Quantize x. scale and zero_point: numbers, or arrays that broadcast."""
    inverse = np.float32(1) / np.asarray(scale, "float32")
    rounded = np.rint(x * inverse) + np.asarray(zero_point, "int32").astype("float32")
    return np.clip(np.nan_to_num(rounded.astype("float64"), nan=0.0), low, high).astype(dtype)


def dequantize(q, scale, zero_point):
    difference = q.astype("int64") - np.asarray(zero_point, "int64")
    return difference.astype("float32") * np.asarray(scale, "float32")


def code(dtype):
    return DTYPES[dtype]


# ---- int8 layers of ExecuTorch's Cortex-M dialect, in integers; sums wrap around at 32 bits


def requantize(value, multiplier, shift):
    """Return value * multiplier * 2^(shift - 31), rounded twice: half up, then half away from zero."""
    value, multiplier, shift = np.broadcast_arrays(*(np.asarray(a, "int64")
                                                     for a in (value, multiplier, shift)))
    left = np.clip(shift, 0, 63).astype("uint64")
    shifted = np.where(shift < 64, value.astype("uint64") << left, np.uint64(0))
    product = shifted * multiplier.astype("uint64") + np.uint64(1 << 30)
    result = product.astype("int64") >> 31
    halvings = np.clip(-shift, 1, 62) - 1
    halved = (((result + (result >> 63)) >> halvings) + 1) >> 1
    return np.where(shift < 0, halved, result).astype("int32")


def finish(sums, multipliers, shifts, offset, low, high):
    """Return the int8 outputs of sums whose last dim is the channels."""
    values = (requantize(sums, multipliers, shifts).astype("int64") + offset).astype("int32")
    return np.clip(values, low, high).astype("int8")


def windows(x, kernel, stride, padding, dilation):
    """Return (batch, rows, columns, kernel height, kernel width, channels) of an NCHW image."""
    padded = np.pad(x, [(0, 0), (0, 0), *([p, p] for p in padding)])
    places = []
    for d in range(2):
        reach = dilation[d] * (kernel[d] - 1) + 1
        first = np.arange(0, padded.shape[2 + d] - reach + 1, stride[d])
        places.append(first[:, None] + dilation[d] * np.arange(kernel[d]))
    gathered = padded[:, :, places[0][:, None, :, None], places[1][None, :, None, :]]
    return gathered.transpose(0, 2, 3, 4, 5, 1)


def conv2d(x, w, bias, stride, padding, dilation, in_offset, out_offset, multipliers, shifts, low,
           high):
    """Compute a convolution. w: (outputs, height, width, channels of a group)."""
    patches = windows(x.astype("int64") + in_offset, w.shape[1:3], stride, padding, dilation)
    groups = x.shape[1] // w.shape[3]
    sums = [np.einsum("brcyxi,oyxi->brco", part, weights) for part, weights in
            zip(np.split(patches, groups, -1), np.split(w.astype("int64"), groups), strict=True)]
    sums = (np.concatenate(sums, -1) + (0 if bias is None else bias)).astype("int32")
    return finish(sums, multipliers, shifts, out_offset, low, high).transpose(0, 3, 1, 2)


def depthwise_conv2d(x, w, bias, stride, padding, dilation, multiplier, in_offset, out_offset,
                     multipliers, shifts, low, high):
    """Compute a depthwise convolution. w: (1, height, width, channels * multiplier)."""
    grouped = w.transpose(3, 1, 2, 0)
    return conv2d(x, grouped, bias, stride, padding, dilation, in_offset, out_offset, multipliers,
                  shifts, low, high)


def linear(x, w, bias, kernel_sum, in_offset, weight_offset, out_offset, multipliers, shifts, high,
           low):
    """Compute a linear layer. A kernel_sum, which includes the input's offset, is added without
    wrapping around."""
    sums = (x.astype("int64") + (in_offset if kernel_sum is None else 0)) @ \
        (w.astype("int64") + weight_offset).T
    if kernel_sum is not None:
        sums = sums + kernel_sum
    else:
        sums = (sums + (0 if bias is None else bias)).astype("int32")
    return finish(sums, multipliers[0], shifts[0], out_offset, low, high)


# ---- int8 normalizations, in integers of any size


def norm_bits(n):
    """Return the bits behind the point of normalized values, whose largest is the root of n."""
    return next(28 - h for h in range(16) if 4**h >= n)


def inverse_root(x):
    """Return 2^30 / sqrt(x / 2^32), as the kernel approximates it."""
    y = 2369032378 - (x * 1431655765 >> 32)
    for _ in range(3):
        y = y * ((3 << 28) - (x * (y * y >> 32) >> 32)) >> 29
    return y


def norm_line(n, variance, total, epsilon):
    """Return the factor and the addend that normalize n values.

    variance: n^2 times their variance. total: their sum.
    """
    if variance == 0:
        return 0, 0
    value = (variance << 8) + epsilon
    zeros = (64 - value.bit_length()) & ~1
    right, root = 58 - norm_bits(n) - zeros // 2, inverse_root(value << zeros >> 32)
    half = 1 << (right - 1)
    return n * root + half >> right, half - total * root >> right


def wrapped(values):
    """Return integers of any size modulo 2^32, as int32."""
    return (np.asarray(values) + (1 << 31) & 0xFFFFFFFF).astype("int64") - (1 << 31)


def layer_norm(x, weight, bias, subtract_mean, zero_point, epsilon, shift):
    """Normalize rows of as many values as there are weights, in the order of their memory."""
    out, n = np.zeros(x.shape, "int8"), weight.size
    if not x.size:
        return out
    for row, to in zip(x.reshape(-1, n).astype("int64"), out.reshape(-1, n), strict=True):
        deviations = row if subtract_mean else row - zero_point
        total = int(row.sum()) if subtract_mean else n * zero_point
        variance = n * int((deviations**2).sum()) - (total**2 if subtract_mean else 0)
        scale, addend = norm_line(n, variance, total, epsilon)
        values = wrapped(row.astype(object) * scale + addend)
        to[:] = np.clip(wrapped((values * weight >> 16) + bias) >> shift, -128, 127)
    return out


def group_norm(x, weight, bias, groups, epsilon, shift):
    """Normalize the groups of channels of an array (batch, channels, ...)."""
    shape, channels = x.shape, x.shape[1] // groups
    x = x.reshape(*shape[:2], -1) if x.size else x.reshape(0, shape[1], 0)
    out = np.zeros(x.shape, "int8")
    for i, first in np.ndindex(len(x), groups):
        own = slice(first * channels, (first + 1) * channels)
        values = x[i, own].astype("int64")
        total, n = int(values.sum()), values.size
        scale, addend = norm_line(n, n * int((values**2).sum()) - total**2, total, epsilon)
        for value, to, w, b in zip(values, out[i, own], weight[own], bias[own], strict=True):
            sums = value.astype(object) * (scale * int(w) >> 16) + (addend * int(w) >> 16) + int(b)
            to[:] = np.clip(wrapped(sums) >> shift, -128, 127)
    return out.reshape(shape)
