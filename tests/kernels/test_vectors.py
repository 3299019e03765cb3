"""The vectors of the computer that the twin runs on: the bytes of the plain form, which says what is
computed, for random shapes and extreme numbers.
"""

import contextlib

import numpy as np
import pytest
from _picotorch_c import lib
from support.kernel_call import Tensor, call, channels_last
from support.vectors import KINDS, LOWER, UPPER

WIDEST = lib.pt_use_vectors(lib.PT_VECTORS_UPPER)
SEEDS = range(60)

INT32 = np.iinfo(np.int32)
BIASES = (INT32.min, INT32.min + 1, -1, 0, 1, INT32.max)
MULTIPLIERS = (0, 1, 1 << 30, (1 << 30) + 1, INT32.max - 1, INT32.max)
SHIFTS = (-31, -30, -17, -9, -2, -1)
WITHOUT_VECTORS = (0, 1, 5, -32, -62)  # shifts
EXTREME_FLOATS = (0, -0.0, 1, -1, 1e-45, -1e-45, 1e-38, -1e-23, 1e-23, 2e38, -2e38, np.inf)


@pytest.fixture(params=(LOWER, UPPER))
def vectors(request):
    if KINDS[request.param] > WIDEST:
        pytest.skip(f"this processor has no {request.param}")
    return KINDS[request.param]


@contextlib.contextmanager
def using(vectors):
    assert lib.pt_use_vectors(vectors) == vectors
    try:
        yield
    finally:
        lib.pt_use_vectors(WIDEST)


def assert_same(vectors, operator, *arguments):
    """The outputs of both forms have the same bytes; returns them."""
    with using(lib.PT_VECTORS_NONE):
        plain = call(operator, *arguments)
    with using(vectors):
        assert call(operator, *arguments).tobytes() == plain.tobytes()
    return plain


class Numbers:
    """Random arguments; `extreme`: of the largest sizes and at limits."""

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
        """At the end of what may be read."""
        return Tensor(self.int8(*sizes), constant=True, last=True)

    def requantization(self, n, depth):
        """Bias, multipliers, shifts of n channels."""
        if self.extreme:
            shifts = SHIFTS if self(0, 3) else (*SHIFTS, *WITHOUT_VECTORS)
            return [np.array([self.choice(values) for _ in range(n)], np.int32)
                    for values in (BIASES, MULTIPLIERS, shifts)]
        shift = -int(np.ceil(np.log2(depth) / 2)) - 5
        return [self.rng.integers(low, high, n).astype(np.int32) for low, high in (
            (-9999, 9999), (1 << 30, 1 << 31), (shift - 1, shift + 2))]

    def floats(self, *sizes):
        """At the end of what may be read. Extreme ones overflow, and are subnormal."""
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
    # what the program brings: nothing, the least, and more
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
        ((3, 3), [n(1, 2), 1], [1, 1], [1, 1]),  # which lines are padded for
        ((1, 1), [n(1, 2), n(1, 3)], [0, 0], [1, 1]),
        ((2, 5), [1, n(1, 2)], [n(0, 1), n(0, 2)], [1, n(1, 2)])])
    size = [d * (k - 1) + n(1, most) for d, k, most in zip(dilation, kernel, (6, 70), strict=True)]
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


@pytest.mark.parametrize("width", range(4, 40))
def test_padded_lines_of_any_length(vectors, width):
    """Run a kernel of 3 x 3 with stride 1 over 4 to 11 rows."""
    for rows in (4, 7, 8, 11):
        n = Numbers(100 * width + rows)
        assert_same(vectors, "aten::convolution.out", n.floats(1, 2, 5, width), n.floats(rows, 2, 3, 3),
                    n.floats(rows), [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                    np.zeros((1, rows, 5, width), np.float32))


def test_many_products_are_summed_in_parts(vectors):
    n = Numbers(1)
    assert_same(vectors, "aten::convolution.out", n.floats(1, 40, 9, 31), n.floats(50, 40, 3, 3),
                n.floats(50), [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                np.zeros((1, 50, 9, 31), np.float32))
    assert_same(vectors, "aten::mm.out", n.floats(9, 600), n.floats(600, 300),
                np.zeros((9, 300), np.float32))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("arguments", [convolution, depthwise, linear, float_convolution,
                                       float_depthwise, float_product])
def test_random_shapes(vectors, arguments, seed):
    assert_same(vectors, *arguments(seed))


# As many values of a patch as vectors take together, around it
@pytest.mark.parametrize("depth", [2047, 2048, 2049, 8175, 8176, 8177, 8192, 20001])
def test_deep_patches(vectors, depth):
    n = Numbers(depth)
    bias, *scales = n.requantization(6, depth)
    assert_same(vectors, "cortex_m::quantized_conv2d.out", n.image(1, depth, 2, 3),
                n.weights(6, 1, 1, depth), bias, [1, 1], [0, 0], [1, 1], 128, -3, *scales, -128, 127,
                Tensor(np.zeros(0, np.uint8), scratch=True), n.image(1, 6, 2, 3))


# ---- quantize, dequantize

FLOATS = [0, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 126.5, 127.5, 128.5, 129, 32767.5, 65536, 2**21 + 0.5, 2**22,
          2**22 + 1, 2**23 + 1, 2**24, 2**31, 2**32, 1e30, 3.4e38, np.inf, 1e-45, 1e-38]


@pytest.mark.parametrize("scale", [1.0, 0.5, 3.0, 1 / 3, 1e-30, 1e37])
@pytest.mark.parametrize("zero_point", [0, -128, 127, 65536, -65536])
def test_floats_at_limits(vectors, scale, zero_point):
    x = np.array([*FLOATS, *np.negative(FLOATS), np.nan, -np.nan], np.float32)
    rng = np.random.default_rng(0)
    x = np.concatenate([x, np.nextafter(x, np.float32(0)), rng.normal(0, 40, 300).astype(np.float32)])
    arguments, q = (scale, zero_point, -128, 127, 1), np.zeros(len(x), np.int8)
    q = assert_same(vectors, "cortex_m::quantize_per_tensor.out", x, *arguments, q)
    assert len(set(q)) > 1 or scale in (1e-30, 1e37) or abs(zero_point) == 65536
    assert_same(vectors, "cortex_m::dequantize_per_tensor.out", q, *arguments,
                np.zeros(len(q), np.float32))


@pytest.mark.parametrize("count", range(20))
def test_any_number_of_floats(vectors, count):
    rng = np.random.default_rng(count)
    x = Tensor(rng.normal(0, 60, count).astype(np.float32), last=True)
    q = assert_same(vectors, "cortex_m::quantize_per_tensor.out", x, 1.0, 3, -128, 127, 1,
                    np.zeros(count, np.int8))
    assert_same(vectors, "cortex_m::dequantize_per_tensor.out", Tensor(q, last=True), 0.3, 3, -128, 127,
                1, np.zeros(count, np.float32))


def test_vectors_that_the_processor_lacks_are_not_taken():
    assert lib.pt_use_vectors(99) == WIDEST
