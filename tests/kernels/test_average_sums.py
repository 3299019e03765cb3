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


EVEN_WINDOWS = ((2, 2), (1, 2), (2, 3), (4, 4), (5, 2), (6, 7), (2, 64), (9, 14))


def halves(number):
    """A call whose averages lie half-way between two integers, for any scale: rounding errors of
    every step decide. Channels are no multiple of 4, 8 or 16, or one."""
    rng = np.random.default_rng(number)
    kernel = EVEN_WINDOWS[number % len(EVEN_WINDOWS)]
    taps, channels = kernel[0] * kernel[1], int(rng.integers(1, 40)) if number % 3 else 32
    zero = int(rng.integers(-128, 128))
    x = rng.integers(-128, 128, (channels, taps))
    for row in x:  # make the sum of the taps an odd multiple of half their number
        for i in rng.permutation(taps):
            excess = (row.sum() - zero * taps + taps // 2) % taps
            row[i] += np.clip(row[i] - excess, -128, 127) - row[i]
    image = x.astype(np.int8).reshape(1, channels, *kernel)
    usual = rng.integers(1 << 30, 1 << 31)
    multiplier = int(rng.choice([1 << 30, (1 << 31) - 128, (1 << 31) - 1, usual, usual]))
    return [channels_last(image), list(kernel), [1, 1], [0, 0], False, zero, multiplier,
            int(rng.integers(-20, 5)), Tensor(np.zeros(0, np.uint8), scratch=True),
            channels_last(np.zeros((1, channels, 1, 1), np.int8))]


def test_halves_equal_float_arithmetic():
    for a in map(halves, range(100)):
        np.testing.assert_array_equal(call(OPERATOR, *a), by_floats(*a), err_msg=str(a[1:8]))


@pytest.mark.parametrize("board", BOARDS)
def test_boards_compute_halves_as_the_twin(board):
    assert_same(board, [Case(OPERATOR, *halves(number)) for number in range(400)])


@pytest.mark.parametrize("board", BOARDS)
def test_a_pool_of_four_needs_few_instructions(board):
    """A fourth of the averages lie half-way; floats for each, by a call, would need far more."""
    x = np.random.default_rng(1).integers(-128, 128, (1, 16, 16, 16)).astype(np.int8)
    maximum = {"mps3-an547": 34, "mps2-an385": 300, "mps2-an385-m0plus": 900}.get(board, 50)
    case = Case(OPERATOR, channels_last(x), [2, 2], [2, 2], [0, 0], False, 3, 1518500249, -6,
                Tensor(np.zeros(0, np.uint8), scratch=True),
                channels_last(np.zeros((1, 16, 8, 8), np.int8)))
    result = call_on_board(board, [case])[0]
    assert result.instructions < maximum * result.outputs[0].size


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_large_windows_are_summed_in_integers(board):
    x = np.random.default_rng(2).integers(-128, 128, (1, 32, 16, 16)).astype(np.int8)
    case = Case(OPERATOR, channels_last(x), [16, 16], [1, 1], [0, 0], False, 3, 1 << 30, -3,
                Tensor(np.zeros(0, np.uint8), scratch=True),
                channels_last(np.zeros((1, 32, 1, 1), np.int8)))
    [result] = call_on_board(board, [case])
    assert result.instructions < (4 if board == "mps2-an386" else 1.5) * x.size
