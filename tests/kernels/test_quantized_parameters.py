"""Test scales and zero points chosen for the values of a tensor, or of each of its rows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernel_call import KernelError, Tensor, call

OF_TENSOR = "quantized_decomposed::choose_qparams.Tensor_out"
OF_TOKENS = "quantized_decomposed::choose_qparams_per_token_asymmetric.out"
LEAST = np.float32(6.1e-5)


def choose(x, low, high):
    """Compute as ExecuTorch's kernel does: in double, from float values."""
    minimum = np.float32(min(x.min(initial=0), 0))
    maximum = np.float32(max(x.max(initial=0), 0))
    steps = high - low
    scale = (float(maximum) - float(minimum)) / steps
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    if scale < float(LEAST):
        if minimum == 0:
            maximum = LEAST * np.float32(steps)
        elif maximum == 0:
            minimum = -LEAST * np.float32(steps)
        else:
            factor = LEAST / np.float32(scale)
            minimum, maximum = minimum * factor, maximum * factor
        scale = float(LEAST)
    of_min, of_max = float(minimum) / scale, float(maximum) / scale
    first = abs(low) - abs(of_min) < abs(high) - abs(of_max)
    zero_point = low - of_min if first else high - of_max
    if math.isnan(zero_point):
        return scale, low
    return scale, int(np.rint(np.float32(min(max(zero_point, low), high))))


def choose_tensor(x, low=-128, high=127):
    scale, zero_point = call(OF_TENSOR, x, low, high, 1e-7, 1, np.zeros(1), np.zeros(1, "int64"))
    return scale[0], zero_point[0]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32) | st.floats(-10, 10, width=32), max_size=9),
       st.sampled_from([(-128, 127), (0, 255), (-127, 127), (-32768, 32767), (3, 4)]))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_a_tensor(values, limits):
    x = np.array(values, "float32")
    assert choose_tensor(x, *limits) == choose(x, *limits)


@pytest.mark.parametrize("values", [[0], [1e-8, 2e-8], [-1e-8], [1e-8, -3e-8], [1e-42], []])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_small_values_get_a_scale_that_has_an_inverse(values):
    x = np.array(values, "float32")
    assert choose_tensor(x) == choose(x, -128, 127)
    assert choose_tensor(x)[0] >= LEAST


def test_covers_the_values_and_represents_zero():
    x = np.array([-1, 0.5, 3], "float32")
    scale, zero_point = choose_tensor(x, 0, 255)
    assert (scale, zero_point) == (4 / 255, 64)


def test_nan_is_passed_over_and_infinity_stays_in_range():
    assert choose_tensor(np.array([np.nan, 2, np.nan], "float32")) == (2 / 255, -128)
    scale, zero_point = choose_tensor(np.array([-np.inf, 2], "float32"))
    assert scale == np.inf and -128 <= zero_point <= 127


@pytest.mark.parametrize("shape", [(6,), (4, 5), (2, 3, 4), (0, 4), (2, 0)])
def test_of_each_token(shape):
    x = np.random.default_rng(len(shape)).normal(size=shape).astype("float32") * 7
    sizes = (*shape[:-1], 1)
    scale, zero_point = call(OF_TOKENS, x, 1, np.zeros(sizes), np.zeros(sizes, "int64"))
    rows = x.reshape(math.prod(sizes), shape[-1])
    wanted = [choose(row, -128, 127) for row in rows]
    assert list(zip(scale.ravel(), zero_point.ravel(), strict=True)) == wanted


F, SCALE, POINT = np.zeros((2, 3), "float32"), np.zeros(1), np.zeros(1, "int64")
SCALES, POINTS = np.zeros((2, 1)), np.zeros((2, 1), "int64")
REFUSED = [
    (OF_TENSOR, (F.astype("float64"), 0, 1, 0.0, 1, SCALE, POINT), "real values must be float32"),
    (OF_TENSOR, (F, 0, 1, 0.0, 1, SCALE.astype("float32"), POINT),
     "the outputs must be scales in double and zero points in int64"),
    (OF_TOKENS, (F, 1, SCALES, POINTS.astype("int32")),
     "the outputs must be scales in double and zero points in int64"),
    *((OF_TENSOR, (F, low, high, 0.0, 1, SCALE, POINT),
       "quant_min must be below quant_max, both within int32")
      for low, high in ((1, 1), (-(2**31) - 1, 0), (0, 2**31), (-(2**63), 2**63 - 1))),
    (OF_TENSOR, (F, 0, 1, 0.0, 1, np.zeros(2), POINT),
     "the output's sizes differ from those computed from the inputs"),
    (OF_TOKENS, (np.zeros((), "float32"), 1, SCALE, POINT), "the input must have a dim"),
    (OF_TOKENS, (Tensor(F, (1, 0)), 1, SCALES, POINTS), "the tensors must be contiguous"),
]


@pytest.mark.parametrize(("operator", "arguments", "reason"), REFUSED)
def test_rejects(operator, arguments, reason):
    with pytest.raises(KernelError) as error:
        call(operator, *arguments)
    assert (error.value.stage, error.value.reason) == ("check", reason)


def test_rejects_other_sizes():
    with pytest.raises(KernelError):
        call(OF_TOKENS, F, 1, np.zeros((3, 1)), POINTS)
