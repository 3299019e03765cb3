"""Test softmax, its logarithm and cumulated sums along any dim."""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call
from support.pytorch_dtypes import INTEGRAL, values

pytestmark = [pytest.mark.check, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def log_softmax(x, dim):
    shifted = x.astype("float64") - x.max(axis=dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def softmax(x, dim):
    return np.exp(log_softmax(x, dim))


OPERATORS = {"aten::_softmax.out": (softmax, 1e-6), "aten::_log_softmax.out": (log_softmax, 2e-6)}


def test_wide_rows_sum_to_one():
    x = np.linspace(-90, 90, 4000).astype("float32")
    result = call("aten::_softmax.out", x, 0, False, np.zeros_like(x))
    assert abs(result.astype("float64").sum() - 1) < 1e-6
    # x - max is rounded: by up to 2^-18, for differences of up to 128
    np.testing.assert_allclose(result, softmax(x, 0), rtol=5e-6, atol=1e-44)


@pytest.mark.parametrize("operator", OPERATORS)
def test_special_values(operator):
    x = np.array([[1, np.nan, 2], [np.inf, 1, 2], [-np.inf, 0, 0], [-np.inf] * 3], "float32")
    result = call(operator, x, 1, False, np.zeros_like(x))
    assert np.isnan(result[0]).all() and np.isnan(result[1, 0]) and np.isnan(result[3]).all()
    np.testing.assert_allclose(result[2], OPERATORS[operator][0](x[2:3], 1)[0], rtol=1e-6)


@pytest.mark.parametrize("operator", OPERATORS)
def test_empty_zero_dim_and_in_place(operator):
    function, tolerance = OPERATORS[operator]
    for shape, dim in (((0,), 0), ((0, 3), 1), ((3, 0), 1), ((2, 0, 3), 2)):
        x = np.zeros(shape, "float32")
        assert call(operator, x, dim, False, x.copy()).shape == shape
    x = np.array(4, "float32")
    for dim in (0, -1):
        assert call(operator, x, dim, False, np.zeros((), "float32")) == function(x[None], 0)[0]
    x = Tensor(np.random.default_rng(0).normal(size=(3, 5)).astype("float32"))
    result = call(operator, x, 1, False, Tensor(x.array, alias=x))
    np.testing.assert_allclose(result, function(x.array, 1), rtol=tolerance)


def test_cumulated_sums():
    rng = np.random.default_rng(1)
    for dtype in INTEGRAL:
        x = values(rng, (3, 7), dtype)
        expected = np.cumsum(x, 1, dtype="int64")
        np.testing.assert_array_equal(
            call("aten::cumsum.out", x, 1, None, np.zeros((3, 7), "int64")), expected)
        np.testing.assert_array_equal(
            call("aten::cumsum.out", x, -1, 6, np.zeros((3, 7), "float32")),
            np.cumsum(x.astype("float32"), 1, dtype="float64").astype("float32"))
    for dtype in ("float32", "float64"):
        x = rng.normal(size=(4, 9)).astype(dtype)
        expected = np.cumsum(x.astype("float64"), 0).astype(dtype)
        np.testing.assert_array_equal(call("aten::cumsum.out", x, 0, None, np.zeros_like(x)),
                                      expected)
    zero_dim = np.array(3, "float32")
    assert call("aten::cumsum.out", zero_dim, 0, None, np.zeros((), "float32")) == 3


def refusal(operator, *arguments):
    with pytest.raises(KernelError) as error:
        call(operator, *arguments)
    return error.value.name, error.value.reason


def test_rejections():
    x = np.ones((1, 2, 3, 4), "float32")
    for operator in OPERATORS:
        for dim in (4, -5, 2**40, -2**63):
            assert refusal(operator, x, dim, False, x) == (
                "InvalidArgument", "dim is out of range")
        assert refusal(operator, x, 1, True, x) == (
            "InvalidArgument", "half_to_float is not False")
        assert refusal(operator, x.astype("float64"), 1, False, x) == (
            "NotSupported", "softmax supports floating dtypes only")
        assert refusal(operator, x.astype("int32"), 1, False, x.astype("int32")) == (
            "NotSupported", "softmax supports floating dtypes only")
        assert refusal(operator, x, 1, False, np.ones(3, "float32"))[0] == "InvalidArgument"
    assert refusal("aten::cumsum.out", x, 1, None, np.ones(x.shape, "int64")) == (
        "InvalidArgument", "the output's dtype is not that of the result")
    assert refusal("aten::cumsum.out", x, 1, 5, x) == (
        "InvalidArgument", "the output's dtype is not that of the result")
    assert refusal("aten::cumsum.out", x.astype("uint16"), 1, None, x) == (
        "NotSupported", "the operator does not support this dtype")
    assert refusal("aten::cumsum.out", x, 9, None, x)[0] == "InvalidArgument"
