"""Test the vectors of this computer on the twin: the bytes equal those of the plain loops, which are
the specification, for random shapes and extreme numbers."""

import contextlib

import numpy as np
import pytest
from _picotorch_c import lib
from support.kernel_call import Tensor, call
from support.random_layers import (
    Numbers,
    convolution,
    depthwise,
    float_convolution,
    float_depthwise,
    float_product,
    linear,
)
from support.vectors import KINDS, LOWER, UPPER

WIDEST = lib.pt_use_vectors(lib.PT_VECTORS_UPPER)
SEEDS = range(60)


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
    """Assert that vectors and plain loops have outputs of the same bytes, and return these."""
    with using(lib.PT_VECTORS_NONE):
        plain = call(operator, *arguments)
    with using(vectors):
        assert call(operator, *arguments).tobytes() == plain.tobytes()
    return plain


@pytest.mark.parametrize("width", range(4, 40))
def test_padded_lines_of_any_length(vectors, width):
    """A kernel of 3 x 3 with stride 1 runs over 4 to 11 rows."""
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


# Depths around the number of values of a patch that vectors process together
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


def test_vectors_that_the_processor_lacks_are_not_used():
    assert lib.pt_use_vectors(99) == WIDEST
