"""Make calls of convolutions and matrix products with random shapes and numbers. Each function returns
the operator and its arguments, for support.kernel_call.call, the same ones for a seed."""

import numpy as np
from support.kernel_call import Tensor, channels_last

INT32 = np.iinfo(np.int32)
BIASES = (INT32.min, INT32.min + 1, -1, 0, 1, INT32.max)
MULTIPLIERS = (0, 1, 1 << 30, (1 << 30) + 1, INT32.max - 1, INT32.max)
SHIFTS = (-31, -30, -17, -9, -2, -1)
WITHOUT_VECTORS = (0, 1, 5, -32, -62)  # shifts
EXTREME_FLOATS = (0, -0.0, 1, -1, 1e-45, -1e-45, 1e-38, -1e-23, 1e-23, 2e38, -2e38, np.inf)


class Numbers:
    """Random arguments. `extreme`: of the largest sizes and at limits."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.extreme = seed % 3 == 0

    def __call__(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def choice(self, values):
        return values[self(0, len(values) - 1)]

    def int8(self, *sizes):
        if self.extreme:
            return self.rng.choice(np.array([-128, -127, 127], np.int8), sizes)
        return self.rng.integers(-128, 128, sizes, np.int8)

    def image(self, *sizes):
        return channels_last(self.int8(*sizes))

    def weights(self, *sizes):
        """Return weights at the end of readable memory."""
        return Tensor(self.int8(*sizes), constant=True, last=True)

    def requantization(self, n, depth):
        """Return bias, multipliers and shifts of n channels."""
        if self.extreme:
            shifts = SHIFTS if self(0, 3) else (*SHIFTS, *WITHOUT_VECTORS)
            return [np.array([self.choice(values) for _ in range(n)], np.int32)
                    for values in (BIASES, MULTIPLIERS, shifts)]
        shift = -int(np.ceil(np.log2(depth) / 2)) - 5
        return [self.rng.integers(low, high, n).astype(np.int32) for low, high in (
            (-9999, 9999), (1 << 30, 1 << 31), (shift - 1, shift + 2))]

    def floats(self, *sizes):
        """Return floats at the end of readable memory. Extreme ones overflow or are subnormal."""
        if self.extreme:
            found = self.rng.choice(np.array(EXTREME_FLOATS, np.float32), sizes)
        else:
            found = self.rng.standard_normal(sizes).astype(np.float32)
        return Tensor(found, last=True)

    def limits(self):
        return self.choice([(-128, 127), (-128, 127), (-90, 80), (0, 127), (5, 5)])


def windows(size, kernel, stride, padding, dilation):
    return [(s + 2 * p - d * (k - 1) - 1) // t + 1
            for s, k, t, p, d in zip(size, kernel, stride, padding, dilation, strict=True)]


def convolution(seed):
    n = Numbers(seed)
    groups, channels = n.choice([1, 1, 1, 2, 3]), n.choice([1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64])
    outputs = n(1, 22)
    kernel = n.choice([(1, 1), (1, 1), (3, 3), (2, 5), (10, 4)])
    stride, padding, dilation = [n(1, 3), n(1, 2)], [n(0, 2), n(0, 2)], [n(1, 2), n(1, 2)]
    size = [d * (k - 1) + n(1, 7) for d, k in zip(dilation, kernel, strict=True)]
    depth = channels * kernel[0] * kernel[1]
    bias, *scales = n.requantization(groups * outputs, depth)
    # the program's scratch tensor has no memory, the minimum, or more
    scratch = Tensor(np.zeros(n.choice([0, 4 * (depth + 3 & ~3), 99 * depth]), np.uint8), scratch=True)
    out = n.image(n(1, 2), groups * outputs, *windows(size, kernel, stride, padding, dilation))
    return ("cortex_m::quantized_conv2d.out", n.image(out.array.shape[0], groups * channels, *size),
            n.weights(groups * outputs, *kernel, channels), n.choice([bias, bias, None]), stride,
            padding, dilation, n.choice([-127, 0, 5, 128]), n(-128, 127), *scales, *n.limits(), scratch,
            out)


def depthwise(seed):
    n = Numbers(seed)
    channels, outputs = n.choice([1, 7, 8, 9, 15, 16, 24, 31, 40]), n.choice([1, 1, 1, 2, 5])
    kernel = n.choice([(3, 3), (3, 3), (1, 1), (2, 5), (7, 1)])
    stride, padding, dilation = [n(1, 2), n(1, 3)], [n(0, 2), n(0, 2)], [n(1, 2), n(1, 2)]
    size = [d * (k - 1) + n(1, 7) for d, k in zip(dilation, kernel, strict=True)]
    bias, *scales = n.requantization(channels * outputs, kernel[0] * kernel[1])
    scratch = Tensor(np.zeros(n.choice([0, 4464]), np.uint8), scratch=True)
    out = n.image(n(1, 2), channels * outputs, *windows(size, kernel, stride, padding, dilation))
    return ("cortex_m::quantized_depthwise_conv2d.out", n.image(out.array.shape[0], channels, *size),
            n.weights(1, *kernel, channels * outputs), n.choice([bias, bias, None]), stride, padding,
            dilation, outputs, n.choice([-255, -127, 0, 128, 255]), n(-128, 127), *scales,
            *n.limits(), scratch, out)


def linear(seed):
    n = Numbers(seed)
    depth, outputs, rows = n.choice([1, 7, 8, 15, 16, 17, 40, 129, 640]), n(1, 19), n(1, 3)
    bias, multipliers, shifts = n.requantization(outputs, depth)
    with_sum = n(0, 1)
    return ("cortex_m::quantized_linear.out", n.int8(rows, depth), n.weights(outputs, depth),
            None if with_sum else bias, bias if with_sum else None, n(-255, 255), n(-255, 255),
            n(-128, 127), [int(multipliers[0])], [int(shifts[0])], *reversed(n.limits()),
            n.int8(rows, outputs))


def float_convolution(seed):
    n = Numbers(seed)
    groups, outputs = n.choice([1, 1, 2]), n(1, 20)
    inputs = n(1, 5)
    kernel, stride, padding, dilation = n.choice([
        ((3, 3), [n(1, 2), 1], [1, 1], [1, 1]),  # shapes with padded lines
        ((1, 1), [n(1, 2), n(1, 3)], [0, 0], [1, 1]),
        ((2, 5), [1, n(1, 2)], [n(0, 1), n(0, 2)], [1, n(1, 2)])])
    size = [d * (k - 1) + n(1, maximum)
            for d, k, maximum in zip(dilation, kernel, (6, 70), strict=True)]
    out = np.zeros([n(1, 2), groups * outputs, *windows(size, kernel, stride, padding, dilation)],
                   np.float32)
    return ("aten::convolution.out", n.floats(out.shape[0], groups * inputs, *size),
            n.floats(groups * outputs, inputs, *kernel), n.choice([None, n.floats(groups * outputs)]),
            stride, padding, dilation, False, [0, 0], groups, out)


def float_depthwise(seed):
    n = Numbers(seed)
    channels, kernel = n(1, 5), n.choice([(3, 3), (2, 3), (5, 4), (1, 7)])
    stride, padding = [n(1, 2), n(1, 2)], [n(0, 1), n(0, kernel[1] // 2)]
    size = [kernel[0] + n(0, 5), kernel[1] + n(0, 80)]
    out = np.zeros([1, channels, *windows(size, kernel, stride, padding, (1, 1))], np.float32)
    return ("aten::convolution.out", n.floats(1, channels, *size), n.floats(channels, 1, *kernel),
            n.choice([None, n.floats(channels)]), stride, padding, [1, 1], False, [0, 0], channels, out)


def float_product(seed):
    n = Numbers(seed)
    rows, depth, columns = n(1, 18), n(1, 40), n(1, 70)
    return ("aten::mm.out", n.floats(rows, depth), n.floats(depth, columns),
            np.zeros((rows, columns), np.float32))
