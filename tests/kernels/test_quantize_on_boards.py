"""Test quantization near halves and at the limits: boards against the twin, the twin against numpy."""

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same
from support.kernel_call import call

SCALES = (1.0, 0.00784, 0.0078125, 3e-5, 700.0, 1e-36, 1e36, 1e-39)


def values(rng, scale, n=1500):
    """Return halves and their neighbours, the whole range, random bits, and NaN."""
    halves = (rng.integers(-300, 300, n) + 0.5) * scale
    near = halves.astype(np.float32).view(np.int32) + rng.integers(-4, 5, n).astype(np.int32)
    inside = rng.uniform(-200, 200, n) * scale
    any_bits = rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38], np.float32)
    return np.concatenate([near.view(np.float32), inside.astype(np.float32), any_bits, special])


def quantize_arguments(rng, scale, zero_point, low=-128, high=127, n=1500):
    x = values(rng, scale, n)
    return [x, scale, zero_point, low, high, 1, np.zeros(x.shape, np.int8)]


def dequantize_arguments(scale, zero_point):
    q = np.arange(-128, 128, dtype=np.int8)
    return [q, scale, zero_point, -128, 127, 1, np.zeros(q.shape, np.float32)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("zero_point", [0, -128, 127, 1000, -65537])
def test_the_twin_equals_numpy(scale, zero_point):
    x, *rest = quantize_arguments(np.random.default_rng(1), scale, zero_point)
    with np.errstate(all="ignore"):
        rounded = np.rint(x * np.float32(1 / scale)).astype(np.float64) + zero_point
        wanted = np.where(np.isnan(rounded), 0, np.clip(rounded, -128, 127)).astype(np.int8)
        np.testing.assert_array_equal(call("cortex_m::quantize_per_tensor.out", x, *rest), wanted)


@pytest.mark.parametrize("board", BOARDS)
def test_boards_equal_the_twin(board):
    rng = np.random.default_rng(2)
    cases = []
    for scale in SCALES:
        for zero_point in (0, -128, 127, 255, -1000, 65537):
            cases += [Case("cortex_m::quantize_per_tensor.out", *a) for a in (
                quantize_arguments(rng, scale, zero_point),
                quantize_arguments(rng, scale, zero_point, -100, 90, 20))]
            cases.append(Case("cortex_m::dequantize_per_tensor.out",
                              *dequantize_arguments(scale, zero_point)))
    assert_same(board, cases)
