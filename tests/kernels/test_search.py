"""searchsorted, isin, scatter_reduce and their like in the cases where PyTorch decides."""

import numpy as np
import pytest
from support.kernel_call import KernelError, call

NAN = float("nan")


@pytest.mark.parametrize("sequence, values, left, right", [
    ([1, 2, NAN], [3, NAN, 1.5], [3, 3, 1], [3, 3, 1]),
    ([1, 2, NAN, NAN], [3, NAN], [4, 4], [4, 4]),
    ([1, 2, 2, 3], [2, 0, 9], [1, 0, 4], [3, 0, 4])])
def test_searchsorted_goes_right_for_a_nan(sequence, values, left, right):
    given = [np.float32(sequence), np.float32(values)]
    for side, expected in (("left", left), ("right", right)):
        found = call("aten::searchsorted.Tensor_out", *given, False, False, side, None,
                     np.zeros(len(values), np.int64))
        assert found.tolist() == expected


def test_isin_compares_in_the_promoted_dtype():
    """2^24 + 1 is no float32."""
    found = call("aten::isin.Tensor_Tensor_out", np.int64([2**24 + 1, 3]), np.float32([2**24]), False,
                 False, np.zeros(2, bool))
    assert found.tolist() == [True, False]


def test_cumsum_converts_first():
    given = np.int64([2**24 + 1, 1])
    found = call("aten::cumsum.out", given, 0, 6, np.zeros(2, np.float32))
    assert found.tolist() == [2**24, 2**24]


@pytest.mark.parametrize("reduce, expected", [("sum", 3000), ("mean", 1)])
def test_halves_are_rounded_once(reduce, expected):
    zeros = np.zeros(2, np.float16)
    found = call("aten::scatter_reduce.two_out", zeros, 0, np.zeros(3000, np.int64),
                 np.ones(3000, np.float16), reduce, False, zeros.copy())
    assert found.tolist() == [expected, 0]


def test_the_median_of_nothing_is_nan():
    nothing = np.zeros((0, 2), np.float32)
    assert np.isnan(call("aten::median.out", nothing, np.zeros((), np.float32)))
    with pytest.raises(KernelError, match="no elements to choose from"):
        call("aten::median.dim_values", nothing, 0, False, np.zeros(2, np.float32),
             np.zeros(2, np.int64))


def test_an_offset_beyond_the_matrix_takes_all_of_it():
    found = call("aten::tril_indices.out", 2, 2, 2**40, np.zeros((2, 4), np.int64))
    assert found.tolist() == [[0, 0, 1, 1], [0, 1, 0, 1]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_that_need_no_logarithm_are_exact(dtype):
    x = np.random.default_rng(0).uniform(0.1, 9, 500).astype(dtype)
    for exponent, expected in ((2, x * x), (3, x * x * x), (0.5, np.sqrt(x)), (-1, 1 / x),
                               (-2, 1 / (x * x)), (-0.5, 1 / np.sqrt(x))):
        found = call("aten::pow.Tensor_Scalar_out", x, exponent, np.zeros_like(x))
        np.testing.assert_array_equal(found, expected)
    odd = np.array([-0.0, -np.inf], dtype)
    found = call("aten::pow.Tensor_Scalar_out", odd, 0.5, np.zeros_like(odd))
    assert np.signbit(found[0]) and np.isnan(found[1])
    found = call("aten::pow.Tensor_Scalar_out", odd, -0.5, np.zeros_like(odd))
    assert found[0] == -np.inf and np.isnan(found[1])
    found = call("aten::pow.Tensor_Scalar_out", odd, -1, np.zeros_like(odd))
    assert found[0] == -np.inf and found[1] == 0 and np.signbit(found[1])


def test_roots_of_float16_are_powers():
    """As PyTorch: of -0 and -inf no sign is left."""
    odd = np.array([-0.0, -np.inf, 2.25], "float16")
    found = call("aten::pow.Tensor_Scalar_out", odd, 0.5, np.zeros_like(odd))
    np.testing.assert_array_equal(found, np.array([0, np.inf, 1.5], "float16"))
    assert not np.signbit(found[0])
    found = call("aten::pow.Tensor_Scalar_out", odd[:2], -0.5, np.zeros_like(odd[:2]))
    np.testing.assert_array_equal(found, np.array([np.inf, 0], "float16"))
