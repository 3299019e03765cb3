"""Sums, means, products, variances, any and extrema over dims, against numpy."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernel_call import KernelError, Tensor, call

FLOATING = [np.float32, np.float64]
INTEGRAL = [bool, np.uint8, np.int8, np.int16, np.int32, np.int64]
CODES = {np.int32: 3, np.int64: 4, np.float32: 6, np.float64: 7}


def sample(shape, dtype, nan=False):
    values = np.round(np.random.default_rng(len(shape)).standard_normal(shape) * 3, 1)
    if dtype is np.uint8:
        values = abs(values)
    if nan and dtype in FLOATING:
        values = np.where(values > 3, np.nan, values)
    return np.asarray(values).astype(dtype)


@st.composite
def tensors(draw, smallest=0):
    """(shape, dim order)"""
    shape = draw(st.lists(st.integers(smallest, 6), max_size=4))
    natural = tuple(range(len(shape)))
    return tuple(shape), draw(st.one_of(st.just(natural), st.permutations(natural).map(tuple)))


@st.composite
def reductions(draw, smallest=0):
    """shape, dim order, dims as given, axes for numpy, keepdim"""
    shape, order = draw(tensors(smallest))
    rank = len(shape)
    places = draw(st.lists(st.integers(0, rank - 1), unique=True)) if rank else []
    dims = [d - rank if draw(st.booleans()) else d for d in places]
    given_dims = None if not dims and draw(st.booleans()) else dims
    return shape, order, given_dims, tuple(places) or tuple(range(rank)), draw(st.booleans())


@settings(max_examples=200, deadline=None, derandomize=True)
@given(reductions(), st.sampled_from(FLOATING + INTEGRAL),
       st.sampled_from([None, np.int64, np.int32, np.float32, np.float64]))
def test_sum(case, dtype, to):
    shape, order, dims, axes, keep = case
    x = sample(shape, dtype)
    result = to or (dtype if dtype in FLOATING else np.int64)
    expected = x.astype(result).sum(axis=axes, keepdims=keep, dtype=result)
    got = call("aten::sum.IntList_out", Tensor(x, order), dims, keep, CODES.get(to),
               np.zeros(expected.shape, result))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(reductions(smallest=1), st.sampled_from(FLOATING + [np.int8]))
def test_mean(case, dtype):
    shape, order, dims, axes, keep = case
    x, result = sample(shape, dtype), dtype if dtype in FLOATING else np.float32
    expected = x.mean(axis=axes, keepdims=keep, dtype=result)
    got = call("aten::mean.out", Tensor(x, order), dims, keep, CODES[result],
               np.zeros(expected.shape, result))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    got = call("aten::mean.dtype_out", Tensor(x, order), None, np.zeros((), result))
    np.testing.assert_allclose(got, x.mean(dtype=result), rtol=1e-5, atol=1e-5)


def test_long_float_sums_stay_exact_to_a_few_ulps():
    x = np.random.default_rng(3).random((2, 100000)).astype(np.float32)
    got = call("aten::sum.IntList_out", x, [1], False, None, np.zeros(2, np.float32))
    np.testing.assert_allclose(got, x.sum(1, dtype=np.float64), rtol=2e-6)


def test_mean_of_nothing_is_nan_and_sum_is_0():
    x, out = np.zeros((2, 0), np.float32), np.ones(2, np.float32)
    assert np.isnan(call("aten::mean.out", x, [1], False, None, out)).all()
    assert (call("aten::sum.IntList_out", x, [1], False, None, out) == 0).all()
    assert call("aten::sum.IntList_out", x, [0], False, None, np.ones(0, np.float32)).shape == (0,)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(tensors(), st.sampled_from(FLOATING + INTEGRAL), st.booleans(), st.data())
def test_prod(case, dtype, keep, data):
    shape, order = case
    x, result = sample(shape, dtype), dtype if dtype in FLOATING else np.int64
    np.testing.assert_allclose(call("aten::prod.out", Tensor(x, order), None, np.zeros((), result)),
                               x.prod(dtype=result), rtol=1e-5)
    assume(shape)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    expected = x.prod(axis=dim, keepdims=keep, dtype=result)
    got = call("aten::prod.int_out", Tensor(x, order), dim, keep, None,
               np.zeros(expected.shape, result))
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(reductions(smallest=2), st.sampled_from(FLOATING), st.sampled_from([None, 0, 1, 0.5]))
def test_var(case, dtype, correction):
    shape, order, dims, axes, keep = case
    assume(shape)
    x = sample(shape, dtype)
    expected = x.var(axis=axes, keepdims=keep, ddof=1 if correction is None else correction)
    got = call("aten::var.correction_out", Tensor(x, order), dims, correction, keep,
               np.zeros(expected.shape, dtype))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_var_unbiased_and_of_too_few():
    x, out = np.array([[1, 3, 8]], np.float32), np.zeros(1, np.float32)
    assert call("aten::var.out", x, [1], True, False, out) == 13
    assert call("aten::var.out", x, [1], False, False, out) == np.float32(26 / 3)
    assert np.isposinf(call("aten::var.correction_out", x, [1], 4, False, out))
    assert np.isnan(call("aten::var.correction_out", x, [0], 1, False, np.zeros(3, np.float32))).all()


def test_var_of_long_rows():
    x = (np.random.default_rng(4).random(20000) + 10).astype(np.float32)
    got = call("aten::var.correction_out", x, None, 1, False, np.zeros((), np.float32))
    np.testing.assert_allclose(got, x.var(ddof=1, dtype=np.float64), rtol=1e-5)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(reductions(), st.sampled_from(FLOATING + INTEGRAL), st.sampled_from([bool, np.uint8]))
def test_any(case, dtype, result):
    shape, order, dims, axes, keep = case
    x = Tensor(np.where(sample(shape, np.float64) > 4, 1, 0).astype(dtype), order)
    got = call("aten::any.all_out", x, np.zeros((), result))
    np.testing.assert_array_equal(got, x.array.any())
    if dims != []:
        expected = x.array.any(axis=axes, keepdims=keep)
        got = call("aten::any.dims_out", x, dims, keep, np.zeros(expected.shape, result))
        np.testing.assert_array_equal(got, expected)
    if shape:
        expected = x.array.any(axis=axes[0], keepdims=keep)
        got = call("aten::any.out", x, axes[0], keep, np.zeros(expected.shape, result))
        np.testing.assert_array_equal(got, expected)


def test_any_over_an_empty_list_of_dims_reduces_nothing():
    x = np.array([np.nan, 0, 0.25, -0.0], np.float32)
    got = call("aten::any.dims_out", x, [], False, np.zeros(4, bool))
    np.testing.assert_array_equal(got, [True, False, True, False])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(reductions(smallest=1), st.sampled_from(FLOATING + INTEGRAL), st.booleans())
def test_amax_amin(case, dtype, nan):
    shape, order, dims, axes, keep = case
    x = sample(shape, dtype, nan)
    for name, reduce in ("amax", np.max), ("amin", np.min):
        expected = np.asarray(reduce(x, axis=axes, keepdims=keep))
        got = call(f"aten::{name}.out", Tensor(x, order), dims or [], keep,
                   np.zeros(expected.shape, dtype))
        np.testing.assert_array_equal(got, expected)
    for name, value in ("max", np.max(x)), ("min", np.min(x)):
        got = call(f"aten::{name}.unary_out", Tensor(x, order), np.zeros((), dtype))
        np.testing.assert_array_equal(got, value)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(tensors(smallest=1), st.sampled_from(FLOATING + INTEGRAL), st.booleans(), st.booleans(),
       st.data())
def test_places_of_extrema(case, dtype, nan, keep, data):
    shape, order = case
    assume(shape)
    x = sample(shape, dtype, nan)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    out_order = data.draw(st.permutations(range(len(shape) - (not keep))).map(tuple))
    for name, values, places in ("max", np.max, np.argmax), ("min", np.min, np.argmin):
        value, place = values(x, axis=dim, keepdims=keep), places(x, axis=dim, keepdims=keep)
        got = call(f"aten::{name}.dim_{name}", Tensor(x, order), dim, keep,
                   Tensor(np.zeros(value.shape, dtype), out_order), np.zeros(value.shape, np.int64))
        np.testing.assert_array_equal(got[0], value)
        np.testing.assert_array_equal(got[1], place)
        got = call(f"aten::arg{name}.out", Tensor(x, order), dim, keep,
                   np.zeros(place.shape, np.int64))
        np.testing.assert_array_equal(got, place)
        got = call(f"aten::arg{name}.out", Tensor(x, order), None, False, np.zeros((), np.int64))
        assert got == places(x)


@pytest.mark.parametrize("dims", [None, [], [0], [1, -1]])
@pytest.mark.parametrize("keep", [False, True])
def test_var_mean(dims, keep):
    x = np.random.default_rng(3).normal(size=(3, 4, 5)).astype(np.float32)
    over = dict(axis=tuple(dims) if dims else None, keepdims=keep)
    expected = x.var(**over, ddof=2), x.mean(**over)
    result = call("aten::var_mean.correction_out", x, dims, 2, keep, *map(np.zeros_like, expected))
    for mine, wanted in zip(result, expected, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5)


def test_zero_dims():
    x = np.array(2.5, np.float32)
    assert call("aten::sum.IntList_out", x, [0], False, None, np.zeros((), np.float32)) == 2.5
    value, index = call("aten::max.dim_max", x, -1, True, np.zeros((), np.float32),
                        np.ones((), np.int64))
    assert (value, index) == (2.5, 0)


X, ROW = np.zeros((2, 3), np.float32), np.zeros(2, np.float32)
PLACES = np.zeros(2, np.int64)


@pytest.mark.parametrize("operator, arguments, name, reason", [
    ("sum.IntList_out", [X, [2], False, None, ROW], "InvalidArgument", "out of range"),
    ("sum.IntList_out", [X, [1, -1], False, None, ROW], "InvalidArgument", "named twice"),
    ("sum.IntList_out", [X, [-2**63], False, None, ROW], "InvalidArgument", "out of range"),
    ("sum.IntList_out", [X, [1], True, None, ROW], "InvalidArgument", "sizes are not those"),
    ("sum.IntList_out", [X, [1], False, 7, ROW], "InvalidArgument", "the given dtype"),
    ("sum.IntList_out", [X.astype(np.uint16), [1], False, None, ROW], "NotSupported", "dtypes"),
    ("mean.out", [X, [1], False, None, PLACES], "NotSupported", "dtypes"),
    ("mean.dtype_out", [X, None, ROW], "InvalidArgument", "sizes are not those"),
    ("mean.dtype_out", [X, 7, np.zeros((), np.float32)], "InvalidArgument", "the given dtype"),
    ("prod.int_out", [X, 2, False, None, ROW], "InvalidArgument", "out of range"),
    ("prod.out", [X, 4, np.zeros((), np.float32)], "InvalidArgument", "the given dtype"),
    ("var.correction_out", [PLACES, [0], 1, False, np.zeros((), np.float32)], "NotSupported",
     "float or double"),
    ("var.correction_out", [X, [1], 1, False, PLACES], "NotSupported", "dtypes"),
    ("var.out", [X, [3], True, False, ROW], "InvalidArgument", "out of range"),
    ("any.all_out", [X, np.zeros((), np.float32)], "NotSupported", "bool or uint8"),
    ("any.out", [X, -3, False, np.zeros(2, bool)], "InvalidArgument", "out of range"),
    ("any.dims_out", [X, [0, 0], False, np.zeros(2, bool)], "InvalidArgument", "named twice"),
    ("amax.out", [X, [1], False, PLACES], "InvalidArgument", "dtype must be the input's"),
    ("amax.out", [X[:, :0], [1], False, ROW], "InvalidArgument", "no elements to choose from"),
    ("amin.out", [X, [5], False, ROW], "InvalidArgument", "out of range"),
    ("max.dim_max", [X, 1, False, ROW, ROW], "InvalidArgument", "indices must be int64"),
    ("max.dim_max", [X, 1, False, ROW, np.zeros(3, np.int64)], "InvalidArgument",
     "sizes are not those"),
    ("min.dim_min", [X, 9, False, ROW, PLACES], "InvalidArgument", "out of range"),
    ("max.unary_out", [X[:0], np.zeros((), np.float32)], "InvalidArgument", "no elements"),
    ("argmax.out", [X, 1, False, ROW], "InvalidArgument", "indices must be int64"),
    ("argmin.out", [X.astype(np.uint16), 1, False, PLACES], "NotSupported", "not compared"),
])
def test_refusals(operator, arguments, name, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call(f"aten::{operator}", *arguments)
    assert (error.value.name, error.value.stage) == (name, "check")


@pytest.mark.parametrize("operator", ["sum.IntList_out", "prod.int_out"])
def test_reducing_fractions_to_bool_asks_which_are_not_zero(operator):
    x = np.array([[0.25, -0.5], [0, 0.5], [0, 0]], np.float32)
    dims = [1] if operator.startswith("sum") else 1
    result = call(f"aten::{operator}", x, dims, False, 11, np.zeros(3, bool))
    assert result.tolist() == [True, operator.startswith("sum"), False]


def test_reducing_no_elements_of_a_huge_shape_takes_no_time():
    x = Tensor(np.zeros((2**16, 2**15, 2**20, 0), np.float32), (3, 1, 0, 2))
    assert call("aten::sum.IntList_out", x, [], False, None, np.ones((), np.float32)) == 0
    assert np.isnan(call("aten::mean.out", x, None, False, None, np.ones((), np.float32)))
