"""Define oracles of the int8 operators of ExecuTorch's Cortex-M dialect and of int8 normalizations.

They compute the calls of random_operators.
"""

import numpy as np
from support import quantized, random_operators
from support.kernel_call import Tensor
from test_convolution import reference

from .sample import Sample, oracle

CHANNELS_LAST = (0, 2, 3, 1)
NHWC = "conv2d depthwise_conv2d transpose_conv2d avg_pool2d max_pool2d".split()


def arrays(arguments):
    """Return the arguments with arrays for tensors, without scratch and output."""
    return [a.array if isinstance(a, Tensor) else a for a in arguments[:-1]
            if not (isinstance(a, Tensor) and a.scratch)]


def batch_matmul(x, x_offset, y, y_offset, offset, multiplier, shift):
    sums = np.einsum("bmk,bnk->bmn", x.astype("int64") + x_offset, y.astype("int64") + y_offset)
    return quantized.finish(sums.astype("int32"), multiplier, shift, offset, -128, 127)


def transpose_conv2d(x, w, bias, stride, padding, extra, dilation, in_offset, out_offset, multipliers,
                     shifts, low, high):
    sums = reference(x.astype("int64") + in_offset, w.transpose(3, 0, 1, 2), bias, stride, padding,
                     dilation, True, extra, 1).transpose(0, 2, 3, 1)
    outputs = quantized.finish(sums.astype("int32"), multipliers, shifts, out_offset, low, high)
    return outputs.transpose(0, 3, 1, 2)


def div(x, x_zero, y, y_zero, zero, scale):
    a, b = (v.astype("float32") - np.float32(z) for v, z in ((x, x_zero), (y, y_zero)))
    quotient = np.where(b != 0, a / np.where(b == 0, np.float32(1), b), np.float32(0))
    scaled = np.rint((quotient * np.float32(scale)).astype("float64"))
    return np.clip(scaled + zero, -128, 127).astype("int8")


def window_places(d, shape, kernel, stride, padding, at):
    first = at * stride[d] - padding[d]
    return [p for p in range(first, first + kernel[d]) if 0 <= p < shape[2 + d]]


def pooled(x, kernel, stride, padding, shape, pool):
    out = np.zeros((*x.shape[:2], *shape), "int8")
    for y, z in np.ndindex(*shape):
        rows, columns = (window_places(d, x.shape, kernel, stride, padding, at)
                         for d, at in enumerate((y, z)))
        taps = x[..., rows, :][..., columns]
        out[..., y, z] = pool(taps.reshape(*x.shape[:2], len(rows) * len(columns)))
    return out


def average_pool(x, kernel, stride, padding, ceil, zero, multiplier, shift, shape):
    """Round to the nearest integer; a tie goes to the result of float32 arithmetic."""
    scale = np.float32(multiplier * 2.0 ** (shift - 31))

    def average(taps):
        n = taps.shape[-1]
        if n == 0:
            return np.int8(zero)
        doubled = 2 * taps.sum(-1, dtype="int64") + n
        nearest = doubled // (2 * n)
        real = (taps.astype("float32") - np.float32(zero)) * scale
        total = np.zeros(taps.shape[:-1], "float32")
        for i in range(n):
            total = total + real[..., i]
        as_floats = np.rint(total / np.float32(n) / scale).astype("int64") + zero
        return np.clip(np.where(doubled % (2 * n) == 0, as_floats, nearest), -128, 127)

    return pooled(x, kernel, stride, padding, shape, average)


def max_pool(x, kernel, stride, padding, dilation, ceil, zero, out_zero, low, high, shape):
    return np.clip(pooled(x, kernel, stride, padding, shape, lambda taps: taps.max(-1)), low, high)


def pad(x, before, after, value):
    widths = list(zip(before, after, strict=True))[4 - x.ndim :]
    return np.pad(x, widths, constant_values=value)


def quantize(x, scale, zero, low, high, code):
    """Multiply by the reciprocal of the scale, which is rounded once. A NaN gives 0, whatever the
    limits."""
    limited = np.clip(np.rint(x * np.float32(1.0 / scale)) + np.float32(zero), low, high)
    return np.where(np.isnan(limited), 0, limited).astype(["uint8", "int8", "int16"][code])


def add(x, x_zero, x_multiplier, x_shift, y, y_zero, y_multiplier, y_shift, zero, multiplier, shift,
        low, high):
    x, y = (quantized.requantize((v.astype("int64") - z << 20).astype("int32"), m, s)
            for v, z, m, s in ((x, x_zero, x_multiplier, x_shift), (y, y_zero, y_multiplier, y_shift)))
    return quantized.finish(x + y, multiplier, shift, zero, low, high)


def mul(x, x_zero, y, y_zero, zero, multiplier, shift):
    product = (x.astype("int64") - x_zero) * (y.astype("int64") - y_zero)
    return quantized.finish(product, multiplier, shift, zero, -128, 127)


def softmax(x, dim, zero, out_zero, multiplier, shift, _):
    scale = multiplier * 2.0 ** (shift - 31 - 26)
    real = (x.astype("float64") - zero) * scale
    real = np.exp(real - real.max(dim, keepdims=True))
    share = real / real.sum(dim, keepdims=True)
    return np.clip(np.rint(share * 256) - 128, -128, 127).astype("int8")


# Operator without cortex_m:: and .out: class of random_operators, oracle, tolerance.
TABLE = {
    "quantized_conv2d": ("conv2d", quantized.conv2d, 0),
    "quantized_depthwise_conv2d": ("depthwise_conv2d", quantized.depthwise_conv2d, 0),
    "quantized_linear": ("linear", quantized.linear, 0),
    "quantized_batch_matmul": ("batch_matmul", batch_matmul, 0),
    "quantized_transpose_conv2d": ("transpose_conv2d", transpose_conv2d, 0),
    "quantized_add": ("add", add, 0),
    "quantized_mul": ("mul", mul, 0),
    "quantized_div": ("div", div, 0),
    "minimum": ("extremum", np.minimum, 0),
    "maximum": ("extremum", np.maximum, 0),
    "quantize_per_tensor": ("quantize", quantize, 0),
    "dequantize_per_tensor": ("dequantize", lambda x, scale, zero, *_: quantized.dequantize(
        x, scale, zero), 0),
    "quantized_avg_pool2d": ("average_pool", average_pool, 0),
    "quantized_max_pool2d": ("max_pool", max_pool, 0),
    "pad": ("pad", pad, 0),
    "transpose": ("transpose", lambda x, order: x.transpose(order), 0),
    "softmax": ("softmax", softmax, 1),  # for values half-way between two
    "quantized_activation": ("activation", lambda x, table: table[x.astype(int) + 128], 0),
}


def accepted(draw, name, operator):
    """Draw the arguments of a random call that the operator accepts."""
    seed = draw.int(0, 2**32 - 1)
    while True:
        case = random_operators.NAMES[name](random_operators.Draw([seed, *map(ord, operator)]))
        if not case.on_twin().error and case.operator == operator:
            return list(case.arguments)
        seed += 1


@oracle(*(f"cortex_m::{name}.out" for name in TABLE))
def int8(draw, operator):
    name = operator[10:].removesuffix(".out")
    kind, function, quanta = TABLE[name]
    arguments = accepted(draw, kind, operator)
    shape = [arguments[-1].array.shape[2:]] if "pool" in kind else []
    return Sample(arguments, np.asarray(function(*arrays(arguments), *shape)), atol=quanta,
                  in_place=True)


@oracle(*(f"cortex_m::quantized_{name}_nhwc.out" for name in NHWC))
def explicit_layout(draw, operator):
    """Draw such arguments with NHWC tensors, which are contiguous."""
    sample = int8(draw, operator.replace("_nhwc", ""))
    image = np.ascontiguousarray(sample.arguments[0].array.transpose(CHANNELS_LAST))
    expected = np.ascontiguousarray(sample.expected.transpose(CHANNELS_LAST))
    return Sample([Tensor(image), *sample.arguments[1:-1]], expected, order="contiguous")


@oracle("picotorch::quantized_layer_norm.out")
def layer_norm(draw, operator):
    arguments = accepted(draw, "layer_norm", operator)
    x, *others = arrays(arguments)
    if arguments[0].dim_order == CHANNELS_LAST:  # rows as they lie in memory
        expected = quantized.layer_norm(x.transpose(CHANNELS_LAST), *others).transpose(0, 3, 1, 2)
    else:
        expected = quantized.layer_norm(x, *others)
    return Sample(arguments, expected, in_place=True)


@oracle("picotorch::quantized_group_norm.out")
def group_norm(draw, operator):
    arguments = accepted(draw, "group_norm", operator)
    return Sample(arguments, quantized.group_norm(*arrays(arguments)), in_place=True)
