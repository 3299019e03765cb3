"""Test that kernels poll: no instruction runs for long without a poll, and it ends at once if the poll
requests the end."""

import numpy as np
import pytest
from picotorch import schema
from picotorch.host.operators import built_operators
from support.board_call import Case, assert_same
from support.kernel_call import Call, KernelError, Tensor
from support.long_calls import LONG, LONG_COMPLEX, SHORT
from support.polls import ENDED, Polls


def poll_through(operator, arguments, last=None):
    polls = Polls(last)
    one = Call(operator, arguments)
    one.context._c.poll = polls.callback
    ended = None
    try:
        one.run()
    except KernelError as error:
        ended = error
    return polls.count, ended


def operators():
    return list(built_operators())


def test_all_operators_are_here():
    numbers = {name for name in operators() if name.startswith("executorch_prim::")}
    assert set(LONG) | SHORT | numbers == set(operators())
    assert not set(LONG) & (SHORT | numbers)


@pytest.mark.parametrize("operator, arguments", sorted(LONG.items()) + LONG_COMPLEX)
def test_a_long_call_polls_and_can_be_ended(operator, arguments):
    count, ended = poll_through(operator, arguments)
    assert ended is None
    assert count > 3  # the first poll is the executor's
    for last in (2, 3, count):
        asked, ended = poll_through(operator, arguments, last)
        assert (asked, ended.stage, ended.name) == (last, "run", schema.ERROR_NAMES[ENDED])


WIDE = np.random.default_rng(0).uniform(0.1, 0.9, (64, 64))
PAIRS = np.zeros((64, 64))


@pytest.mark.parametrize("operator, arguments", [
    ("aten::exp.out", (WIDE, WIDE * 0)),
    ("aten::gelu.out", (WIDE, "none", WIDE * 0)),
    ("aten::pow.Tensor_Tensor_out", (WIDE, WIDE, WIDE * 0)),
    ("aten::pow.Tensor_Scalar_out", (WIDE, 2.5, WIDE * 0)),
    ("aten::atan2.out", (WIDE, WIDE, WIDE * 0)),
    ("aten::_softmax.out", (WIDE.reshape(-1), 0, False, WIDE.reshape(-1) * 0)),
    ("aten::glu.out", (np.concatenate([WIDE, WIDE]), 0, WIDE * 0)),
    ("aten::_cdist_forward.out", (WIDE, WIDE, 3.0, None, PAIRS)),
])
def test_functions_of_float64_poll_each_256_elements(operator, arguments):
    """Without an FPU for doubles, each element takes up to 20,000 instructions."""
    count, ended = poll_through(operator, arguments)
    assert ended is None
    assert count > WIDE.size / 256


# ---- computation in parts

CHANNELS_LAST = (0, 2, 3, 1)


def int8(rng, *sizes):
    return rng.integers(-128, 128, sizes).astype(np.int8)


def scaling(rng, outputs):
    """Return multipliers and shifts."""
    return (Tensor(rng.integers(1 << 30, (1 << 31) - 1, outputs).astype(np.int32), constant=True),
            Tensor(rng.integers(-9, -6, outputs).astype(np.int32), constant=True))


def convolution(rng, x, channels, kernel, padding, stride=1):
    sizes = [(size + 2 * padding - kernel) // stride + 1 for size in x.shape[2:]]
    w = int8(rng, channels, kernel, kernel, x.shape[1])
    return Case("cortex_m::quantized_conv2d.out", Tensor(x, CHANNELS_LAST), Tensor(w, constant=True),
                None, [stride] * 2, [padding] * 2, [1, 1], 7, 3, *scaling(rng, channels), -128, 127,
                np.zeros(4, np.uint8), Tensor(np.zeros((1, channels, *sizes), np.int8), CHANNELS_LAST))


def depthwise(rng, x, padding, stride=1):
    sizes = [(size + 2 * padding - 3) // stride + 1 for size in x.shape[2:]]
    channels = x.shape[1]
    return Case("cortex_m::quantized_depthwise_conv2d.out", Tensor(x, CHANNELS_LAST),
                Tensor(int8(rng, 1, 3, 3, channels), constant=True), None, [stride] * 2, [padding] * 2,
                [1, 1], 1, 7, 3, *scaling(rng, channels), -128, 127, np.zeros(4, np.uint8),
                Tensor(np.zeros((1, channels, *sizes), np.int8), CHANNELS_LAST))


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_images_in_parts_are_the_same(board):
    """The image has more products than are allowed between two polls, so the kernel computes some rows
    at a time, and parts of a row."""
    rng = np.random.default_rng(5)
    image, row = int8(rng, 1, 16, 50, 40), int8(rng, 1, 32, 2, 700)
    assert_same(board, [convolution(rng, image, 24, 3, 1), convolution(rng, image, 24, 3, 0),
                        convolution(rng, row, 32, 3, 1), convolution(rng, row, 128, 1, 0)])
    large = int8(rng, 1, 16, 180, 200)
    assert_same(board, [depthwise(rng, large, 1)])
