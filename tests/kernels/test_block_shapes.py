"""Test shapes around the block sizes of the vector loops of convolutions and linear layers.

The boards' bytes equal the twin's. Weights lie at the end of readable memory.
"""

import numpy as np
import pytest
from support.board_call import Case, assert_same
from support.kernel_call import Tensor, channels_last

BOARDS = ("mps2-an386", "mps2-an500", "mps3-an547")  # M7 has blocks of its own


class Shapes:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def int8(self, *sizes):
        return self.rng.integers(-128, 128, sizes, np.int8)

    def image(self, *sizes):
        return channels_last(self.int8(*sizes))

    def weights(self, *sizes):
        return Tensor(self.int8(*sizes), constant=True, last=True)

    def output(self, n, depth):
        """Return a bias, and multipliers and shifts that keep sums of this depth in range."""
        shift = -int(np.ceil(np.log2(depth) / 2)) - 5
        return (self.rng.integers(-9999, 9999, n).astype(np.int32),
                [self.rng.integers(1 << 30, 1 << 31, n).astype(np.int32),
                 self.rng.integers(shift - 1, shift + 2, n).astype(np.int32)])

    def convolution(self, channels, outputs, size, kernel=(3, 3), stride=1, padding=1,
                    limits=(-128, 127), pack_weights=False):
        out = [(s + 2 * padding - k) // stride + 1 for s, k in zip(size, kernel, strict=True)]
        depth = channels * kernel[0] * kernel[1]
        bias, scales = self.output(outputs, depth)
        scratch = Tensor(np.zeros(4 * (depth + 15 & ~15), np.uint8), scratch=True)
        return Case("cortex_m::quantized_conv2d.out", self.image(1, channels, *size),
                    self.weights(outputs, *kernel, channels), bias, [stride] * 2, [padding] * 2, [1, 1],
                    int(self.rng.choice([-127, 0, 5, 128])), int(self.rng.integers(-128, 128)), *scales,
                    *limits, scratch, self.image(1, outputs, *out), pack_weights=pack_weights)

    def depthwise(self, channels, size, kernel=(3, 3), stride=1, padding=1, multiplier=1, dilation=1):
        outputs = channels * multiplier
        out = [(s + 2 * padding - dilation * (k - 1) - 1) // stride + 1
               for s, k in zip(size, kernel, strict=True)]
        bias, scales = self.output(outputs, kernel[0] * kernel[1])
        return Case("cortex_m::quantized_depthwise_conv2d.out", self.image(1, channels, *size),
                    self.weights(1, *kernel, outputs), bias, [stride] * 2, [padding] * 2,
                    [dilation] * 2, multiplier, int(self.rng.choice([-255, -127, 0, 128, 255])),
                    int(self.rng.integers(-128, 128)), *scales, -128, 127,
                    Tensor(np.zeros(4464, np.uint8), scratch=True), self.image(1, outputs, *out))

    def linear(self, depth, outputs, kernel_sum, offset=128, pack_weights=False, limits=(127, -128),
               rows=2,
               w_offset=0, has_bias=True, is_large=False):
        bias, (multipliers, shifts) = self.output(outputs, depth**2 if is_large else depth)
        return Case("cortex_m::quantized_linear.out", self.int8(rows, depth),
                    self.weights(outputs, depth), bias if has_bias and not kernel_sum else None,
                    bias if kernel_sum else None, offset, w_offset, -7, [int(multipliers[0])],
                    [int(shifts[0])], *limits, self.int8(rows, outputs), pack_weights=pack_weights)


def windows():
    """Yield convolutions whose neighbouring patches share columns, and some that just do not."""
    s = Shapes(1)
    for channels in (16, 32, 48, 64):
        for stride in (1, 2):
            for width in range(3, 12):
                outputs = int(s.rng.choice([4, 8, 12, 20, 30, 68]))
                padding = int(s.rng.integers(0, 3))
                limits = (-90, 80) if width == 5 else (-128, 127)
                yield s.convolution(channels, outputs, (int(s.rng.integers(3, 8)), width),
                                    stride=stride, padding=padding, limits=limits)


def pixels():
    """Yield 1x1 convolutions. The loop takes one to four parts of 16 products at once, and longer
    depths in rounds of four."""
    s = Shapes(2)
    for channels in (1, 7, 8, 15, 16, 17, 31, 32, 33, 48, 49, 63, 64, 65, 80, 96, 112, 128, 129, 200):
        for outputs in (3, 4, 6, 16, 65):
            size = int(s.rng.integers(1, 4)), int(s.rng.integers(1, 6))
            yield s.convolution(channels, outputs, size, kernel=(1, 1),
                                stride=int(s.rng.integers(1, 3)), padding=0)


def many_pixels():
    """Yield 1x1 convolutions with enough pixels to share widened weights, in bands that leave one or
    two pixels."""
    s = Shapes(7)
    for channels in (4, 8, 20, 32, 64, 100):
        for outputs in (2, 5, 12):
            for size in ((25, 5), (9, 13), (17, 23), (16, 16)):
                limits = (-90, 80) if outputs == 5 else (-128, 127)
                for pack_weights in (False, True):
                    yield s.convolution(channels, outputs, size, kernel=(1, 1), padding=0,
                                        stride=int(s.rng.integers(1, 3)) if size[0] == 17 else 1,
                                        limits=limits, pack_weights=pack_weights)


def short_rows():
    """Yield convolutions like the first one of a network."""
    s = Shapes(3)
    for channels, kernel in ((1, (10, 4)), (1, (5, 5)), (2, (3, 3)), (3, (3, 3)), (3, (5, 5)),
                             (3, (2, 6))):
        for stride in (1, 2):
            for size in ((10, 9), (11, 16), (12, 13)):
                yield s.convolution(channels, 8, size, kernel, stride, int(s.rng.integers(0, 3)))


def planes():
    s = Shapes(4)
    for channels in (1, 3, 8, 15, 16, 17, 40, 64):
        for stride in (1, 2):
            for height, width in ((1, 9), (2, 2), (2, 5), (3, 3), (4, 7), (5, 25), (9, 60), (48, 3)):
                yield s.depthwise(channels, (height, width), stride=stride)
        yield s.depthwise(channels, (9, 11), padding=2)
        yield s.depthwise(channels, (9, 11), (5, 5), padding=2)
        yield s.depthwise(channels, (9, 11), dilation=2)
        yield s.depthwise(min(channels, 3), (9, 11), (3, 5), 2, multiplier=6)


def rows():
    s = Shapes(5)
    for depth in (1, 8, 16, 31, 127, 128, 129, 256, 640):
        for outputs in (1, 3, 4, 5, 8, 15, 70):
            yield s.linear(depth, outputs, kernel_sum=True)
            yield s.linear(depth, outputs, kernel_sum=False, offset=int(s.rng.integers(-255, 256)))


def packed_rows():
    """Yield linear layers. Packed rows are computed by fours, and the rest together with some computed
    ones, from plain weights."""
    s = Shapes(8)
    for depth in (4, 8, 12, 60, 64, 68, 72, 128, 252, 640):
        for outputs in (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 25, 70):
            for pack_weights in (False, True):
                yield s.linear(depth, outputs, kernel_sum=False, offset=int(s.rng.integers(-255, 256)),
                               pack_weights=pack_weights,
                               limits=(90, -70) if outputs == 11 else (127, -128))
        yield s.linear(depth, 28, kernel_sum=True, pack_weights=True)


def rounds():
    """Yield rows with each number of steps that the first round of a loop omits, and other numbers
    between them. They have few outputs, no bias, offsets of the weights, and many minimum weights and
    values."""
    s = Shapes(9)
    for depth in (*range(4, 76, 4), 34, 63, 65, 640, 644, 2048):
        for outputs in (1, 2, 3, 4, 5, 7, 8, 27):
            yield s.linear(depth, outputs, kernel_sum=bool(s.rng.integers(0, 2)), rows=1)
            case = s.linear(depth, outputs, kernel_sum=False, offset=int(s.rng.integers(-255, 256)),
                            rows=int(s.rng.integers(1, 4)), w_offset=int(s.rng.choice([0, -9, 12])),
                            has_bias=bool(s.rng.integers(0, 2)), is_large=True)
            for values in (case.arguments[0], case.arguments[1].array):
                values[s.rng.integers(0, 2, values.shape) == 0] = -128
            yield case


def sums():
    """Yield additions and products of a few values, and of enough values for tables to pay."""
    s = Shapes(6)
    for n in (1, 3, 4, 5, 31, 255, 256, 257, 1023, 1024, 1025, 1030, 3001):
        for shift in (0, -1, -3):
            zero_points = [int(z) for z in s.rng.integers(-60, 61, 3)]
            multiplier = int(s.rng.integers(1 << 30, 1 << 31))
            yield Case("cortex_m::quantized_add.out", s.int8(n), zero_points[0], 1 << 30, 0, s.int8(n),
                       zero_points[1], multiplier, shift, zero_points[2], multiplier, -18,
                       -128, 100, s.int8(n))
            yield Case("cortex_m::quantized_mul.out", s.int8(n), zero_points[0], s.int8(n),
                       zero_points[1], zero_points[2], multiplier, shift - 8, s.int8(n))


def says_something(case):
    result = case.on_twin()
    values = result.outputs[0]
    return result.error is None and (values.size < 30 or len(np.unique(values)) > 2)


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("shapes", [windows, pixels, many_pixels, short_rows, planes, rows,
                                    packed_rows, rounds, sums])
def test_boards_equal_the_twin(shapes, board):
    cases = list(shapes())
    assert all(map(says_something, cases))
    assert_same(board, cases)
