"""Convolutions and linear layers of random shapes and parameters: the twin gives what numpy says, and
every board what the twin gives, whichever way its core multiplies."""

import numpy as np
import pytest
from board_call import BOARDS, Case, assert_same
from kernel_call import Tensor, channels_last

LIMIT = 1 << 31


def wrapped(sums, limit=LIMIT):
    return (sums + limit) % (2 * limit) - limit


def requantized(total, multiplier, shift):
    """Python's ints: total * multiplier * 2^(shift - 31), rounded twice."""
    result = wrapped(total * 2 ** max(shift, 0) * multiplier + (1 << 30), 1 << 63) >> 31
    if shift < 0:
        result = (((result - (result < 0)) >> (-shift - 1)) + 1) >> 1
    return int(wrapped(result))


def outputs(sums, multipliers, shifts, offset, low, high):
    """Of int32 sums whose last dim is the channels."""
    rows = sums.reshape(-1, sums.shape[-1])
    values = [[min(max(int(wrapped(requantized(int(s), int(m), int(e)) + offset)), low), high)
               for s, m, e in zip(row, multipliers, shifts, strict=True)] for row in rows]
    return np.array(values, np.int8).reshape(sums.shape)


def convolved(x, weights, bias, stride, padding, dilation, offset, groups):
    """Sums of an NHWC image and OHWI weights."""
    outs, kh, kw, depth = weights.shape
    around = [(0, 0), *[(p, p) for p in padding], (0, 0)]
    padded = np.pad(x.astype(int) + offset, around)
    height = (padded.shape[1] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    width = (padded.shape[2] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    sums = np.zeros((len(x), height, width, outs), int)
    for i in range(kh):
        for j in range(kw):
            rows = np.arange(height) * stride[0] + i * dilation[0]
            columns = np.arange(width) * stride[1] + j * dilation[1]
            taps = padded[:, rows][:, :, columns]
            for g in range(groups):
                of_group = slice(g * outs // groups, (g + 1) * outs // groups)
                sums[..., of_group] += (taps[..., g * depth : (g + 1) * depth]
                                        @ weights[of_group, i, j].astype(int).T)
    return sums + (0 if bias is None else bias)


class Random:
    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def of(self, *choices):
        return choices[self.generator.integers(len(choices))]

    def int(self, low, high):
        return int(self.generator.integers(low, high + 1))

    def int8(self, *sizes):
        """Any values, or mostly the limits, whose sums are large."""
        if self.of(True, False, False):
            return self.generator.choice(np.array([-128, -127, 127], np.int8), sizes)
        return self.generator.integers(-128, 128, sizes).astype(np.int8)

    def int32(self, low, high, *sizes):
        return self.generator.integers(low, high + 1, sizes).astype(np.int32)

    def bias(self, n):
        large = self.of(1000, 1000, 100000, 1 << 28, LIMIT - 1)
        return None if self.of(True, False, False, False) else self.int32(-large, large, n)

    def scaling(self, n):
        """Multipliers and shifts: of a usual layer, or any at all."""
        kind = self.of("usual", "usual", "usual", "usual", "large", "any")
        if kind == "any":
            return self.int32(-LIMIT, LIMIT - 1, n), self.int32(-33, 8, n)
        multipliers = self.int32(1 << 30, LIMIT - 1, n)
        return multipliers, self.int32(-3, 1, n) if kind == "large" else self.int32(-12, -5, n)

    def range(self):
        low, high = self.of((-128, 127), (-128, 127), (-128, 127), (-100, 90), (-5, 5), (3, 3))
        return self.int(-128, 127), low, high


def convolution(seed):
    """Arguments of quantized_conv2d but for the output, and what it gives."""
    random = Random(seed)
    kernel = random.of((1, 1), (1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (2, 3), (1, 5), (5, 1))
    groups = random.of(1, 1, 1, 1, 2, 3)
    depth = random.of(1, 2, 3, 3, 4, 4, 5, 8, 8, 12, 16, 16, 20, 33, 36)
    outs = groups * random.of(1, 2, 3, 4, 5, 7, 8, 10, 16)
    stride = random.of((1, 1), (1, 1), (2, 2), (2, 1), (3, 2))
    padding = random.of((0, 0), (0, 0), (1, 1), (1, 1), (2, 1), (0, 3), (4, 4))
    dilation = random.of((1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (3, 3))
    reach = [d * (k - 1) + 1 - 2 * p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    sizes = [max(random.int(1, 9), r) for r in reach]
    x = random.int8(random.of(1, 1, 1, 2), *sizes, groups * depth)
    weights, bias = random.int8(outs, *kernel, depth), random.bias(outs)
    offset = random.of(128, 128, -127, 0, random.int(-127, 128))
    multipliers, shifts = random.scaling(outs)
    out_offset, low, high = random.range()
    sums = convolved(x, weights, bias, stride, padding, dilation, offset, groups)
    expected = outputs(wrapped(sums), multipliers, shifts, out_offset, low, high)
    whole = 4 * ((weights[0].size + 3) & ~3)
    scratch = np.zeros(random.of(0, 0, whole, whole, whole - 1, 3 * whole + 4), np.uint8)
    arguments = [channels_last(x.transpose(0, 3, 1, 2)), Tensor(weights, constant=True), bias,
                 list(stride), list(padding), list(dilation), offset, out_offset, multipliers, shifts,
                 low, high, Tensor(scratch, scratch=True)]
    return arguments, expected.transpose(0, 3, 1, 2)


def convolution_case(seed):
    arguments, expected = convolution(seed)
    case = Case("cortex_m::quantized_conv2d.out", *arguments, channels_last(np.zeros_like(expected)))
    result = case.on_twin()
    assert not result.error and (result.outputs[0] == expected).all(), f"seed {seed}: {case}"
    return case


def linear_case(seed):
    random = Random(seed)
    rows, depth = random.of(1, 1, 2, 3, 7), random.of(1, 3, 4, 8, 12, 13, 20, 32, 64, 100, 130, 260)
    outs = random.of(1, 2, 3, 4, 5, 9, 16, 33)
    x, weights = random.int8(rows, depth), random.int8(outs, depth)
    addends = random.bias(outs)
    as_kernel_sum = addends is not None and random.of(True, False)
    offset = random.of(128, -127, 0, random.int(-255, 255))
    weight_offset = random.of(0, 0, 0, random.int(-255, 255))
    multiplier, shift = (int(v[0]) for v in random.scaling(1))
    out_offset, low, high = random.range()
    wide = x.astype(int) + (0 if as_kernel_sum else offset)
    products = wrapped(wide @ weights.astype(int).T)
    rest = wide.sum(axis=1, keepdims=True) * weight_offset + (0 if addends is None else addends)
    sums = products + rest if as_kernel_sum else wrapped(products + wrapped(rest))
    expected = outputs(sums, [multiplier] * outs, [shift] * outs, out_offset, low, high)
    given = (None, addends) if as_kernel_sum else (addends, None)
    case = Case("cortex_m::quantized_linear.out", x, Tensor(weights, constant=True), *given, offset,
                weight_offset, out_offset, [multiplier], [shift], high, low, np.zeros_like(expected))
    result = case.on_twin()
    assert not result.error and (result.outputs[0] == expected).all(), f"seed {seed}: {case}"
    return case


@pytest.mark.parametrize("board", BOARDS)
def test_convolutions_of_any_shape(board):
    assert_same(board, [convolution_case(seed) for seed in range(300)])


@pytest.mark.parametrize("board", BOARDS)
def test_linear_layers_of_any_shape(board):
    assert_same(board, [linear_case(seed) for seed in range(200)])
