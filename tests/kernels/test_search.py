"""Test searchsorted, isin, scatter_reduce, embedding_bag and histc in the cases that PyTorch
defines."""

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
    """float32 cannot represent 2^24 + 1."""
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


def test_an_offset_beyond_the_matrix_includes_all_of_it():
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
    """In PyTorch, too, the root of -0 or -inf has no sign."""
    odd = np.array([-0.0, -np.inf, 2.25], "float16")
    found = call("aten::pow.Tensor_Scalar_out", odd, 0.5, np.zeros_like(odd))
    np.testing.assert_array_equal(found, np.array([0, np.inf, 1.5], "float16"))
    assert not np.signbit(found[0])
    found = call("aten::pow.Tensor_Scalar_out", odd[:2], -0.5, np.zeros_like(odd[:2]))
    np.testing.assert_array_equal(found, np.array([np.inf, 0], "float16"))


BAG = "aten::_embedding_bag_forward_only.out"
WEIGHT = np.ones((3, 2), np.float32)


def bags(indices, offsets, mode=0, weight=WEIGHT, factors=None):
    n, rows = len(offsets), len(indices)
    outputs = [np.zeros((n, 2), weight.dtype), np.zeros(0 if mode == 0 else rows, np.int64),
               np.zeros(n, np.int64), np.zeros((n, 2) if mode == 2 else n, np.int64)]
    return call(BAG, weight, np.int64(indices), np.int64(offsets), False, mode, False, factors, False,
                -1, *outputs)[0]


def test_a_nan_is_the_greatest_of_a_bag_only_as_its_first():
    weight = np.float32([[NAN, 1], [2, NAN], [3, 0]])
    np.testing.assert_array_equal(bags([0, 1, 2, 1, 2], [0, 3, 5], 2, weight)[:2],
                                  [[NAN, 1], [3, NAN]])


@pytest.mark.parametrize("indices, offsets, words", [
    ([3], [0], "InvalidArgument in run: an index is out of range"),
    ([-1], [0], "InvalidArgument in run: an index is out of range"),
    ([0, 1], [0, 3], "InvalidArgument in run: an index is out of range"),
    ([0, 1], [1], "offsets do not rise from 0"),
    ([0, 1], [0, 2, 1], "offsets do not rise from 0")])
def test_bags_that_are_none(indices, offsets, words):
    with pytest.raises(KernelError, match=words):
        bags(indices, offsets)


@pytest.mark.parametrize("mode, factors, words", [
    (3, None, "mode must be a sum, a mean or a maximum"), (-1, None, "mode must be"),
    (1, np.ones(2, np.float32), "per_sample_weights must be one for each index, of a sum"),
    (0, np.ones(3, np.float32), "per_sample_weights must be one for each index, of a sum"),
    (0, np.ones(2), "per_sample_weights must be one for each index, of a sum")])
def test_bags_are_rejected(mode, factors, words):
    with pytest.raises(KernelError, match=words):
        bags([0, 1], [0], mode, factors=factors)


HISTC = "aten::histc.out"


def test_the_histogram_of_equal_numbers_and_of_none():
    """The range extends by one to each side. Without numbers it is -1 to 1, as in PyTorch."""
    for x, expected in (([2, 2], [0, 0, 2, 0]), ([], [0, 0, 0, 0]), ([0, 3], [1, 0, 0, 1])):
        assert call(HISTC, np.float32(x), 4, 0, 0, np.zeros(4, np.float32)).tolist() == expected


@pytest.mark.parametrize("x, low, high, expected", [
    ([0.7, 0.9], 0.7, 1, [1, 0, 1, 0]), ([0.3, 0.1], 0, 0.3, [0, 1, 0, 1])])
def test_elements_at_the_ends_of_a_histogram_count(x, low, high, expected):
    """The ends are float32, too, as in PyTorch."""
    assert call(HISTC, np.float32(x), 4, low, high, np.zeros(4, np.float32)).tolist() == expected


@pytest.mark.parametrize("x, bins, low, high, words", [
    ([1, NAN], 4, 0, 0, "the range is not finite"), ([1, -np.inf], 4, 0, 0, "the range is not finite"),
    ([1], 4, -np.inf, 0, "the range is not finite"), ([1], 4, NAN, 0.5, "the range is not finite"),
    ([1], 4, -1e308, 1e308, "the range is not finite"), ([1], 4, 1, 0, "min is above max"),
    ([1], 0, 0, 1, "bins must be above 0"), ([1], -1, 0, 1, "bins must be above 0")])
def test_histograms_are_rejected(x, bins, low, high, words):
    with pytest.raises(KernelError, match=words):
        call(HISTC, np.float32(x), bins, low, high, np.zeros(max(bins, 0), np.float32))


def test_a_histogram_over_its_own_numbers_stays_inside():
    """The output is the input, so elements change while they are counted."""
    x = np.float32([0, 1, 2, 3])
    assert len(call(HISTC, x, 4, 0, 3, x)) == 4


@pytest.mark.parametrize("x, value, index", [
    ([2, 1, 2, 1], 1, 3), ([3, NAN, NAN], 3, 0), ([NAN, NAN], NAN, 0), ([0.0, -0.0, 1], -0.0, 1),
    ([NAN, 1], NAN, 0), ([NAN, 2, NAN, 2, 1], NAN, 0), ([NAN, NAN, 1, 1], 1, 3),
    ([2, NAN, 1, 2, NAN, 1], 1, 2), ([2, 1, NAN, *[1] * 13], 1, 15),
    ([NAN, *[3, 1] * 8], 1, 16), ([NAN] * 17, NAN, 0)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_smallest_of_the_most_frequent(x, value, index, dtype):
    """A NaN equals no other, and the index is that of the last of equal elements. Up to 16 elements
    have the results of PyTorch 2.13."""
    values, indices = call("aten::mode.values", np.array(x, dtype), 0, False, np.zeros((), dtype),
                           np.zeros((), np.int64))
    np.testing.assert_array_equal(values, np.array(value, dtype))
    assert np.signbit(values) == np.signbit(value) and indices == index


def test_a_nan_stays_the_maximum_and_the_minimum():
    x = np.float32([1, NAN, 5, NAN, -2])
    for name in ("cummax", "cummin"):
        values, indices = call(f"aten::{name}.out", x, 0, np.zeros_like(x), np.zeros(5, np.int64))
        np.testing.assert_array_equal(values, [1, NAN, NAN, NAN, NAN])
        assert indices.tolist() == [0, 1, 1, 3, 3]


CONSECUTIVE = "aten::unique_consecutive.out"
ROWS = np.int32([[1, 2], [1, 2], [0, 2]])


def test_slices_along_a_dim_have_an_inverse_and_counts_in_any_case():
    """The exporter plans memory for the inverse and the counts."""
    found = call(CONSECUTIVE, ROWS, False, False, -2, np.zeros((2, 2), np.int32),
                 np.zeros(3, np.int64), np.zeros(2, np.int64))
    assert [one.tolist() for one in found] == [[[1, 2], [0, 2]], [0, 0, 1], [2, 1]]
    empty = call(CONSECUTIVE, ROWS[:0], False, False, 0, np.zeros((0, 2), np.int32),
                 np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert [one.shape for one in empty] == [(0, 2), (0,), (0,)]


@pytest.mark.parametrize("x, dim, outputs, words", [
    (ROWS, None, [np.zeros(3, np.int32), (0,), (0,)], "sizes"),
    (ROWS, None, [np.zeros((5, 1), np.int32), (0,), (0,)], "must have 1 dim"),
    (ROWS, 0, [np.zeros(5, np.int32), (3,), (2,)], "another rank"),
    (ROWS, 2, [np.zeros((2, 2), np.int32), (3,), (2,)], "dim"),
    (np.zeros((2, 0), np.int32), 0, [np.zeros((1, 0), np.int32), (2,), (1,)], "another size"),
    (np.array(1, np.int32), 0, [np.zeros(1, np.int32), (1,), (1,)], "another rank")])
def test_slices_are_rejected(x, dim, outputs, words):
    out, *sizes = outputs
    with pytest.raises(KernelError, match=words):
        call(CONSECUTIVE, x, False, False, dim, out, *(np.zeros(one, np.int64) for one in sizes))


BINCOUNT = "aten::bincount.out"
COUNTED = np.int32([1, 3, 1])


def test_weights_are_added_in_the_order_of_the_elements():
    """float32 weights are added as float32, one after the other."""
    weights = np.float32([1e8, 1, -1e8, 3])
    found = call(BINCOUNT, np.int8([0, 0, 0, 0]), weights, 0, np.zeros(1, np.float32))
    assert found.tolist() == [3]
    found = call(BINCOUNT, np.int8([0, 0, 0, 0]), np.float64(weights), 0, np.zeros(1))
    assert found.tolist() == [4]


@pytest.mark.parametrize("x, weights, minimum, out, words, stage", [
    (COUNTED, None, 0, np.zeros(3, np.int64), "sizes", "run"),
    (COUNTED, None, 5, np.zeros(4, np.int64), "sizes", "run"),
    (np.int32([1, -1]), None, 0, np.zeros(2, np.int64), "below 0 or too large", "run"),
    (np.int64([1 << 31]), None, 0, np.zeros(2, np.int64), "below 0 or too large", "run"),
    (COUNTED, None, -1, np.zeros(4, np.int64), "minlength is not in", "check"),
    (COUNTED, None, 0, np.zeros(4, np.int32), "the output must be int64", "check"),
    (COUNTED, np.float32(COUNTED), 0, np.zeros(4), "the output must be int64", "check"),
    (COUNTED, np.float32([1, 2]), 0, np.zeros(4, np.float32), "the sizes of weights", "check"),
    (np.float32(COUNTED), None, 0, np.zeros(4, np.int64), "integers only", "check"),
    (COUNTED[None], None, 0, np.zeros(4, np.int64), "must have 1 dim", "check")])
def test_counts_are_rejected(x, weights, minimum, out, words, stage):
    with pytest.raises(KernelError, match=words) as caught:
        call(BINCOUNT, x, weights, minimum, out)
    assert caught.value.stage == stage


def test_boundaries_have_one_dim():
    with pytest.raises(KernelError, match="boundaries must have 1 dim"):
        call("aten::bucketize.Tensor_out", np.zeros((2, 3)), np.zeros((2, 3)), False, False,
             np.zeros((2, 3), np.int64))


def test_logcumsumexp_of_infinite_numbers():
    x = np.float32([-np.inf, 1, np.inf, 2, -np.inf, NAN, np.inf])
    found = call("aten::logcumsumexp.out", x, 0, np.zeros_like(x))
    np.testing.assert_array_equal(found, [-np.inf, 1, np.inf, np.inf, np.inf, NAN, NAN])


def test_an_output_that_overlaps_its_input_keeps_the_results():
    """The order is determined before, so elements that change are not compared again."""
    x = np.float32([2, 1, 2, 1])
    outputs = [np.zeros(2, np.float32), np.zeros(0, np.int64), np.zeros(2, np.int64)]
    found = call("aten::_unique2.out", x, True, False, True, *outputs)
    assert [one.tolist() for one in found] == [[1, 2], [], [2, 2]]


@pytest.mark.parametrize("n, words", [(1, "the output's sizes differ|sizes"), (3, "sizes")])
def test_unique_numbers_that_are_more_or_fewer(n, words):
    with pytest.raises(KernelError, match=words):
        call("aten::_unique2.out", np.float32([2, 1, 2]), True, False, False, np.zeros(n, np.float32),
             np.zeros(0, np.int64), np.zeros(0, np.int64))
