"""Test convolutions of shapes that the cores' fast loops process in parts: many channels, single
pixels, strips of columns."""

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same
from support.kernel_call import Tensor, channels_last

SHAPES = [
    # height, width, input channels, outputs, kernel, stride, padding, dilation
    (1, 11, 8, 130, (1, 1), (1, 1), (0, 0), (1, 1)),   # more channels than a table has
    (1, 12, 32, 65, (1, 1), (1, 1), (0, 0), (1, 1)),
    (17, 1, 64, 3, (1, 1), (2, 1), (0, 0), (1, 1)),
    (3, 5, 4, 8, (1, 1), (1, 1), (0, 0), (1, 1)),      # one step of the loops
    (1, 7, 6, 9, (1, 1), (1, 1), (0, 0), (1, 1)),      # rows that are no words
    (6, 7, 24, 5, (3, 3), (1, 1), (1, 1), (1, 1)),     # a strip that overlaps the one before
    (9, 4, 8, 6, (2, 3), (2, 1), (1, 2), (3, 1)),
    (5, 8, 16, 7, (5, 3), (1, 1), (4, 1), (1, 1)),
    (4, 3, 8, 4, (3, 3), (1, 1), (0, 0), (1, 1)),      # narrower than a strip
    (7, 6, 3, 17, (3, 3), (2, 2), (1, 1), (1, 1)),     # channels in parts
    (5, 5, 3, 8, (3, 3), (1, 1), (1, 1), (2, 2)),
    (5, 6, 5, 4, (3, 3), (1, 1), (1, 1), (1, 1)),
    (4, 4, 7, 2, (5, 5), (1, 1), (2, 2), (1, 1)),      # rows too long for parts
]


def case(shape, seed, pack_weights, activation, bias):
    rng = np.random.default_rng(seed)
    height, width, channels, outputs, kernel, stride, padding, dilation = shape
    sizes = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, p, d, k, s in
             zip((height, width), padding, dilation, kernel, stride, strict=True)]
    depth = kernel[0] * kernel[1] * channels

    def constant(values, dtype=np.int32):
        return Tensor(np.asarray(values).astype(dtype), constant=True)

    return Case(
        "cortex_m::quantized_conv2d.out",
        channels_last(rng.integers(-128, 128, (1, channels, height, width)).astype(np.int8)),
        constant(rng.integers(-128, 128, (outputs, *kernel, channels)), np.int8),
        constant(rng.integers(-999, 999, outputs)) if bias else None,
        list(stride), list(padding), list(dilation), int(rng.integers(-127, 129)), -3,
        constant(rng.integers(1 << 30, (1 << 31) - 1, outputs)),
        constant(rng.integers(-10, -7, outputs)), *activation,
        Tensor(np.zeros(0 if kernel == (1, 1) else 4 * (-(-depth // 4) * 4), np.uint8), scratch=True),
        channels_last(np.zeros((1, outputs, *sizes), np.int8)), pack_weights=pack_weights)


@pytest.mark.parametrize("board", BOARDS)
def test_shapes(board):
    kinds = [(False, (-128, 127), True), (True, (-128, 127), True), (False, (-20, 90), False),
             (True, (-20, 90), False)]
    assert_same(board, [case(shape, seed, *kind) for seed, kind in enumerate(kinds)
                        for shape in SHAPES])
