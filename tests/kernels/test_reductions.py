"""Compare sums, means, products, variances, any and extrema over dims with numpy."""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call

pytestmark = pytest.mark.check


def test_long_float_sums_stay_exact_to_a_few_ulps():
    x = np.random.default_rng(3).random((2, 100000)).astype(np.float32)
    got = call("aten::sum.IntList_out", x, [1], False, None, np.zeros(2, np.float32))
    np.testing.assert_allclose(got, x.sum(1, dtype=np.float64), rtol=2e-6)


def test_mean_of_nothing_is_nan_and_sum_is_0():
    x, out = np.zeros((2, 0), np.float32), np.ones(2, np.float32)
    assert np.isnan(call("aten::mean.out", x, [1], False, None, out)).all()
    assert (call("aten::sum.IntList_out", x, [1], False, None, out) == 0).all()
    assert call("aten::sum.IntList_out", x, [0], False, None, np.ones(0, np.float32)).shape == (0,)


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


def test_any_over_an_empty_list_of_dims_reduces_nothing():
    x = np.array([np.nan, 0, 0.25, -0.0], np.float32)
    got = call("aten::any.dims_out", x, [], False, np.zeros(4, bool))
    np.testing.assert_array_equal(got, [True, False, True, False])


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
    ("sum.IntList_out", [X, [1], True, None, ROW], "InvalidArgument", "sizes differ from those"),
    ("sum.IntList_out", [X, [1], False, 7, ROW], "InvalidArgument", "the given dtype"),
    ("sum.IntList_out", [X.astype(np.uint16), [1], False, None, ROW], "NotSupported", "dtypes"),
    ("mean.out", [X, [1], False, None, PLACES], "NotSupported", "dtypes"),
    ("mean.dtype_out", [X, None, ROW], "InvalidArgument", "sizes differ from those"),
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
     "sizes differ from those"),
    ("min.dim_min", [X, 9, False, ROW, PLACES], "InvalidArgument", "out of range"),
    ("max.unary_out", [X[:0], np.zeros((), np.float32)], "InvalidArgument", "no elements"),
    ("argmax.out", [X, 1, False, ROW], "InvalidArgument", "indices must be int64"),
    ("argmin.out", [X.astype(np.uint16), 1, False, PLACES], "NotSupported", "not compared"),
])
def test_rejections(operator, arguments, name, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call(f"aten::{operator}", *arguments)
    assert (error.value.name, error.value.stage) == (name, "check")


@pytest.mark.parametrize("operator", ["sum.IntList_out", "prod.int_out"])
def test_reducing_fractions_to_bool_tests_for_zero(operator):
    x = np.array([[0.25, -0.5], [0, 0.5], [0, 0]], np.float32)
    dims = [1] if operator.startswith("sum") else 1
    result = call(f"aten::{operator}", x, dims, False, 11, np.zeros(3, bool))
    assert result.tolist() == [True, operator.startswith("sum"), False]


def test_reducing_no_elements_of_a_huge_shape_needs_no_time():
    x = Tensor(np.zeros((2**9, 2**8, 2**10, 0), np.float32), (3, 1, 0, 2))
    assert call("aten::sum.IntList_out", x, [], False, None, np.ones((), np.float32)) == 0
    assert np.isnan(call("aten::mean.out", x, None, False, None, np.ones((), np.float32)))
