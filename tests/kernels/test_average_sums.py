"""Test average pools of int8: the bytes are those of float32 arithmetic, for all sums near half-way
between two integers."""

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same, call_on_board
from support.kernel_call import Tensor, call, channels_last

OPERATOR = "cortex_m::quantized_avg_pool2d.out"
WINDOWS = ((1, 1), (1, 2), (2, 2), (1, 3), (8, 16), (3, 43), (12, 12), (16, 16), (1, 255), (1, 256),
           (2, 128), (257, 1), (1, 700), (48, 48))
LARGE = ((255, 128), (256, 128), (183, 180))  # the last two are near the maximum for integer arithmetic


def images(kernel, channels, rng):
    """Return images in which about half of the taps are one higher than the rest, and in channel i, i -
    channels / 2 more."""
    n = kernel[0] * kernel[1]
    high = np.clip(n // 2 - channels // 2 + np.arange(channels), 0, n)
    x = np.where(np.arange(n)[None] < high[:, None], 1, 0) + rng.integers(-128, 127, (channels, 1))
    for row in x:
        rng.shuffle(row)
    return x.astype(np.int8).reshape(1, channels, *kernel)


def cases(kernels=WINDOWS):
    rng = np.random.default_rng(1)
    for number, kernel in enumerate(kernels):
        for channels in (min(kernel[0] * kernel[1] + 2, 300) & ~3 or 4, 5 + 8 * (number % 2)):
            if channels * kernel[0] * kernel[1] > 1 << 20:
                channels = 12
            x = images(kernel, channels, rng)
            if number % 3 == 2:
                x = rng.choice(np.array([-128, 127], np.int8), x.shape)
            zero = int(rng.choice([-128, 127, 0, 5]))
            image = Tensor(x, (0, 2, 3, 1), last=True) if number % 2 else channels_last(x)
            multiplier = int(rng.integers(1 << 30, 1 << 31))
            yield [image, list(kernel), [1, 1], [0, 0], False, zero, multiplier,
                   int(rng.integers(-20, 5)), Tensor(np.zeros(0, np.uint8), scratch=True),
                   channels_last(np.zeros((1, channels, 1, 1), np.int8))]


def by_floats(x, kernel, stride, padding, ceil, zero, multiplier, shift, *_):
    scale = np.float32(multiplier) * np.float32(2.0 ** (shift - 31))
    taps = (x.array.reshape(x.array.shape[1], -1).astype(np.float32) - np.float32(zero)) * scale
    total = np.add.accumulate(taps, 1, np.float32)[:, -1]
    average = np.rint(total / np.float32(taps.shape[1]) / scale).astype(np.int64) + zero
    return np.clip(average, -128, 127).astype(np.int8).reshape(1, -1, 1, 1)


@pytest.mark.parametrize("kernels", [WINDOWS, LARGE])
def test_the_twin_equals_float_arithmetic(kernels):
    for a in cases(kernels):
        np.testing.assert_array_equal(call(OPERATOR, *a), by_floats(*a), err_msg=str(a[1:8]))


@pytest.mark.parametrize("board", BOARDS)
def test_boards_equal_the_twin(board):
    assert_same(board, [Case(OPERATOR, *a) for a in cases()])


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_large_windows_are_summed_in_integers(board):
    x = np.random.default_rng(2).integers(-128, 128, (1, 32, 16, 16)).astype(np.int8)
    case = Case(OPERATOR, channels_last(x), [16, 16], [1, 1], [0, 0], False, 3, 1 << 30, -3,
                Tensor(np.zeros(0, np.uint8), scratch=True),
                channels_last(np.zeros((1, 32, 1, 1), np.int8)))
    [result] = call_on_board(board, [case])
    assert result.instructions < (4 if board == "mps2-an386" else 1.5) * x.size
