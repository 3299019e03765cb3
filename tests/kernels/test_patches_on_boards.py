"""Test products of patches and rows at the shapes where cores without packed multiplication change
loops."""

import numpy as np
import pytest
from support.board_call import Case, assert_same
from support.kernel_call import Tensor

BOARDS = ("mps2-an385-m0plus", "mps2-an385")
CONVOLUTION = "cortex_m::quantized_conv2d.out"
CHANNELS_LAST = (0, 2, 3, 1)
INT32_MAX = (1 << 31) - 1


def int8(rng, *sizes):
    return rng.integers(-128, 128, sizes).astype(np.int8)


def constant(values):
    return Tensor(values.astype(np.int32), constant=True)


def assert_same_packed(board, cases):
    """Compare a board with the twin, without and with packed weights."""
    assert_same(board, cases)
    assert_same(board, [Case(CONVOLUTION, *case.arguments, pack_weights=True) for case in cases])


def convolution(x, w, bias, multipliers, shifts, offset=128, out_offset=-128, padding=0, scratch=0):
    """Return a convolution of stride 1 with x (1, C, H, W) and w (N, KH, KW, C)."""
    height, width = (x.shape[2 + i] + 2 * padding - w.shape[1 + i] + 1 for i in (0, 1))
    out = Tensor(np.full((1, len(w), height, width), 77, np.int8), CHANNELS_LAST)
    return Case(CONVOLUTION, Tensor(x, CHANNELS_LAST), Tensor(w, constant=True),
                None if bias is None else constant(bias), [1, 1], [padding, padding], [1, 1],
                offset, out_offset, constant(np.broadcast_to(multipliers, len(w))),
                constant(np.broadcast_to(shifts, len(w))), -128, 127,
                Tensor(np.zeros(scratch, np.uint8), scratch=True), out)


def linear(rng, x, outputs, offset, w_offset=0, out_offset=3):
    w = int8(rng, outputs, x.shape[-1])
    bias = rng.integers(-3000, 3000, outputs).astype(np.int32)
    return Case("cortex_m::quantized_linear.out", x, w, bias, None, offset, w_offset, out_offset,
                [int(rng.integers(1 << 30, INT32_MAX))], [-8], 127, -128,
                np.zeros((*x.shape[:-1], outputs), np.int8))


@pytest.mark.parametrize("board", BOARDS)
def test_any_depth_number_of_pixels_and_channels(board):
    rng = np.random.default_rng(1)
    cases = []
    for depth in (*range(1, 36), *range(125, 133), *range(253, 260), 384, 385, 511, 513):
        pixels, channels = int(rng.integers(1, 15)), int(rng.integers(1, 8))
        cases.append(convolution(int8(rng, 1, depth, 1, pixels), int8(rng, channels, 1, 1, depth),
                                 rng.integers(-9999, 9999, channels), 1 << 30, -9))
    for pixels in range(1, 20):
        cases.append(convolution(int8(rng, 1, 9, pixels, 1), int8(rng, 50, 1, 1, 9),
                                 rng.integers(-999, 999, 50), INT32_MAX, -7))
    assert_same_packed(board, cases)


@pytest.mark.parametrize("board", BOARDS)
def test_padding(board):
    rng = np.random.default_rng(6)
    cases = []
    for channels in (1, 3, 7, 8, 9, 16, 18):
        for kernel in (2, 3, 5):
            depth = kernel * kernel * channels
            x, w = int8(rng, 1, channels, 5, 4), int8(rng, 6, kernel, kernel, channels)
            cases += [convolution(x, w, rng.integers(-999, 999, 6), 1 << 30, -10, offset, 3, 1,
                                  4 * -(-depth // 4) * 4) for offset in (-127, -5, 128)]
    assert_same_packed(board, cases)


@pytest.mark.parametrize("board", BOARDS)
def test_greatest_products(board):
    rng = np.random.default_rng(2)
    cases = []
    for depth in (2, 3, 128, 129, 256, 300):
        for value in (-128, 127):
            for weight in (-128, -127, 127):
                for offset in (-127, 0, 128):
                    x = np.full((1, depth, 1, 7), value, np.int8)
                    w = np.full((3, 1, 1, depth), weight, np.int8)
                    w[1] = int8(rng, 1, 1, depth)
                    w[2, ..., depth // 2:] = -w[2, ..., depth // 2:].clip(-127)
                    cases.append(convolution(x, w, None, INT32_MAX, -16, offset, 0))
                    cases.append(convolution(x[..., :1], w[:, ::-1], None, INT32_MAX, -16, offset, 0))
    assert_same_packed(board, cases)


@pytest.mark.parametrize("board", BOARDS)
def test_two_minimum_weights_beside_each_other(board):
    rng = np.random.default_rng(3)
    cases = []
    for channels in ((0,), (5,), (99,), (0, 1, 2), (3, 40, 41, 97)):
        for at in (0, 1, 6, 31, 34):
            w = int8(rng, 100, 1, 1, 36).clip(-127)
            w[list(channels), ..., at : at + 2] = -128
            x = int8(rng, 1, 36, 3, 5)
            x[:, :, 1] = -128
            cases.append(convolution(x, w, rng.integers(-999, 999, 100), 1 << 30, -9))
            cases.append(convolution(x[:, :4], w.reshape(100, 3, 3, 4), None, 1 << 30, -9,
                                     out_offset=7, padding=1, scratch=144))
    assert_same_packed(board, cases)


@pytest.mark.parametrize("board", BOARDS)
def test_channels_packed_in_temp_memory(board):
    """Layers of many pixels have temp memory for all channels, for some, or for none. Some channels
    have two adjacent weights of -128."""
    rng = np.random.default_rng(7)
    cases = []
    for depth, kernel, groups in ((48, 1, 1), (67, 1, 2), (6, 3, 1), (16, 3, 1), (7, 3, 2)):
        for minimum in ((), (0,), (3, 4), (1, 17)):
            channels = int(rng.integers(18, 60)) * groups
            w = int8(rng, channels, kernel, kernel, depth).clip(-127)
            w.reshape(channels, -1)[list(minimum), 6:8] = -128
            x = int8(rng, 1, depth * groups, 7, int(rng.integers(8, 12)))
            x[:, :, 2:4] = -128
            one = convolution(x, w, rng.integers(-999, 999, channels), 1 << 30, -9, out_offset=5,
                              padding=kernel // 2)
            asked, channel = one.on_twin(board).scratch, 2 * (-(-w[0].size // 4) * 4) + 16
            cases += [Case(CONVOLUTION, *one.arguments, given=given) for given in
                      (None, asked, asked + 3 * channel, asked + 4 * channel + 4, asked + 9 * channel)]
    assert_same(board, cases)


@pytest.mark.parametrize("board", BOARDS)
def test_sums_beside_halves(board):
    """The sums lie next to the boundaries of outputs, and some beyond all outputs."""
    rng = np.random.default_rng(4)
    x = np.full((1, 2, 2, 3), -5, np.int8)
    x[..., 0] = int8(rng, 1, 2, 2)
    cases = []
    for right in (*range(1, 23), 30, 31):
        for out_offset in (-128, 0, 127):
            multipliers = rng.integers(1 << 30, INT32_MAX, 300)
            multipliers[:7] = (1, 1 << 16, (1 << 30) - 1, 1 << 30, INT32_MAX, 0x40008000, 0x7FFF0000)
            multipliers[7:100] |= 0xFFFF
            outputs = rng.integers(-300, 300, 300) + 0.5
            bias = np.round(outputs * 2.0 ** (31 + right) / multipliers) + rng.integers(-2, 3, 300)
            bias = bias.clip(-(1 << 29), 1 << 29)
            cases.append(convolution(x, int8(rng, 300, 1, 1, 2), bias, multipliers, -right, 5,
                                     out_offset))
    zero = convolution(x, int8(rng, 9, 1, 1, 2), rng.integers(-99, 99, 9), 0, -8, 5)
    assert_same_packed(board, [*cases, zero])


@pytest.mark.parametrize("board", BOARDS)
def test_rows_with_zeros(board):
    rng = np.random.default_rng(5)
    cases = []
    for depth in (1, 2, 3, 4, 5, 8, 63, 64, 255, 256, 257, 511, 512, 513, 700):
        for outputs in (1, 2, 3, 4, 5, 7, 9):
            x = int8(rng, 1, depth)
            x[rng.integers(0, 100, x.shape) < int(rng.integers(0, 101))] = -128
            cases.append(linear(rng, x, outputs, 128, w_offset=int(rng.integers(-3, 4))))
    cases += [linear(rng, np.full((2, 40), -offset, np.int8), 6, offset) for offset in (-127, 0, 128)]
    assert_same(board, cases)
