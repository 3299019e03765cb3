"""Test addition and multiplication of int8 tensors: the twin against numpy, boards against the twin."""

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same
from support.kernel_call import KernelError, call, channels_last
from support.requantized import requantize, to_int8, wrap_int32

ADD, MUL = "cortex_m::quantized_add.out", "cortex_m::quantized_mul.out"
OFFSETS = (0, -128, 127, 255, -255, 3)
# x + 3 in a hardswish of small values, the last operands with differences in int16, products that wrap
FAR = (-358, 300, 32639, -32639, 32640, -32641, 8_000_000, -(1 << 31), (1 << 31) - 1)


def operands(rng):
    """Return operands of equal sizes below and above the size from which tables pay, or one value per
    channel."""
    size = (1, *rng.integers(1, 9, 3).tolist())
    sizes = [size, size if rng.random() < 0.7 else (1, size[1], 1, 1)]
    if rng.random() < 0.5:
        sizes.reverse()
    a, b = (channels_last(rng.integers(-128, 128, s).astype(np.int8)) for s in sizes)
    return a, b, channels_last(np.zeros(max(sizes, key=np.prod), np.int8))


def parameters(rng, shifts):
    """Return a multiplier, some are negative, and a shift, mostly with typical values of programs."""
    if rng.random() < 0.1:
        return int(rng.integers(-1 << 31, 1 << 31)), int(rng.integers(-62, 32))
    low = 1 << 30 if rng.random() < 0.8 else 0
    multiplier = int(rng.integers(low, 1 << 31))
    return ~multiplier if rng.random() < 0.2 else multiplier, int(rng.choice(shifts))


def limits(rng):
    if rng.random() < 0.6:
        return -128, 127
    return int(rng.integers(-128, 0)), int(rng.integers(0, 128))


def add_arguments(rng):
    a, b, out = operands(rng)
    operand = [[int(rng.choice(OFFSETS)), *parameters(rng, (0, 0, -1, -2, -20))] for _ in "ab"]
    return [a, *operand[0], b, *operand[1], int(rng.choice(OFFSETS)),
            *parameters(rng, (-18, -19, -20, -17, -1)), *limits(rng), out]


def mul_arguments(rng):
    a, b, out = operands(rng)
    zero_points = [int(rng.choice(OFFSETS if rng.random() < 0.7 else FAR)) for _ in "ab"]
    return [a, zero_points[0], b, zero_points[1], int(rng.choice(OFFSETS)),
            *parameters(rng, (-1, -5, -8, -20)), out]


def sum_of(a, a_zero, a_multiplier, a_shift, b, b_zero, b_multiplier, b_shift, zero, multiplier,
           shift, low, high, out):
    def scaled(x, zero_point, multiplier, shift):
        up = wrap_int32((x.array.astype(np.int64) - zero_point) << 20)
        return wrap_int32(requantize(up, multiplier, shift))

    total = scaled(a, a_zero, a_multiplier, a_shift) + scaled(b, b_zero, b_multiplier, b_shift)
    return to_int8(requantize(wrap_int32(total), multiplier, shift), zero, low, high)


def product_of(a, a_zero, b, b_zero, zero, multiplier, shift, out):
    product = (a.array.astype(np.int64) - a_zero) * (b.array.astype(np.int64) - b_zero)
    return to_int8(requantize(wrap_int32(product), multiplier, shift), zero, -128, 127)


def test_sums_equal_numpy():
    rng = np.random.default_rng(1)
    for _ in range(150):
        a = add_arguments(rng)
        np.testing.assert_array_equal(call(ADD, *a), sum_of(*a), err_msg=str(a[1:4] + a[5:13]))


def test_products_equal_numpy():
    rng = np.random.default_rng(2)
    for _ in range(150):
        a = mul_arguments(rng)
        np.testing.assert_array_equal(call(MUL, *a), product_of(*a), err_msg=str(a[1::2]))


def test_products_reject_a_zero_point_beyond_int32():
    a = mul_arguments(np.random.default_rng(4))
    for place in (1, 3):
        with pytest.raises(KernelError, match="out of its range"):
            call(MUL, *a[:place], 1 << 31, *a[place + 1:])


@pytest.mark.thorough
@pytest.mark.parametrize("board", BOARDS)
def test_boards_equal_the_twin(board):
    rng = np.random.default_rng(3)
    cases = [Case(ADD, *add_arguments(rng)) for _ in range(200)]
    assert_same(board, cases + [Case(MUL, *mul_arguments(rng)) for _ in range(100)])
