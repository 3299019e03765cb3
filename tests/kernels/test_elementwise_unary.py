"""Test operators of one operand against numpy, their dtypes, and their errors."""

import itertools

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call, channels_last
from support.pytorch_dtypes import DTYPES, INTEGRAL, result_dtype, values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = ["float32", "float64"]
DTYPE = ("NotSupported", "the operator does not support this dtype")
CAST = ("InvalidArgument", "the result cannot be cast to the output's dtype")


def sign(x):
    wide = x.astype("float64")
    return np.where(np.isnan(wide), 0, np.sign(wide)).astype(x.dtype)


def isnan(x):
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def isinf(x):
    return np.isinf(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def whole(function):
    return lambda x: function(x) if x.dtype.kind == "f" else x


NUMBERS = [d for d in DTYPES if d != "bool"]
# Operator: numpy's function, the dtypes it supports, its result's dtype (None: the operand's).
OPERATORS = {
    "abs": (np.abs, DTYPES, None),
    "neg": (lambda x: -x, NUMBERS, None),
    "sign": (sign, DTYPES, None),
    "relu": (lambda x: np.where(x <= 0, x.dtype.type(0), x), NUMBERS, None),
    "floor": (whole(np.floor), DTYPES, None),
    "ceil": (whole(np.ceil), DTYPES, None),
    "trunc": (whole(np.trunc), DTYPES, None),
    "round": (whole(np.rint), DTYPES, None),
    "bitwise_not": (np.invert, INTEGRAL, None),
    "logical_not": (np.logical_not, DTYPES, "bool"),
    "isnan": (isnan, DTYPES, "bool"),
    "isinf": (isinf, DTYPES, "bool"),
    "reciprocal": (lambda x: 1 / x.astype(x.dtype if x.dtype.kind == "f" else "float32"), DTYPES,
                   "floating"),
}
SHAPES = [(37,), (), (2, 3, 4), (0, 3)]


def refusal(operator, *arguments):
    with pytest.raises(KernelError) as error:
        call(f"aten::{operator}", *arguments)
    return error.value.name, error.value.reason


def operand(seed, shape, dtype):
    return values(np.random.default_rng(seed), shape, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_function(name, dtype):
    function, taken, result = OPERATORS[name]
    result = {None: dtype, "floating": "float64" if dtype == "float64" else "float32"}.get(
        result, result)
    for seed, shape in enumerate(SHAPES):
        x = operand(seed, shape, dtype)
        out = np.zeros(shape, result)
        if dtype not in taken:
            assert refusal(f"{name}.out", x, out) == DTYPE
        else:
            np.testing.assert_array_equal(call(f"aten::{name}.out", x, out), function(x))


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt",
                                  "sin", "cos", "tanh", "sigmoid", "erf"])
def test_functions_of_floats_convert_integers_to_float32(name):
    operator = f"aten::{name}.out"
    for dtype in INTEGRAL:
        x = operand(1, (30,), dtype)
        expected = call(operator, x.astype("float32"), np.zeros(30, "float32"))
        np.testing.assert_array_equal(call(operator, x, np.zeros(30, "float32")), expected)
        np.testing.assert_array_equal(call(operator, x, np.zeros(30, "float64")), expected)
    assert refusal(f"{name}.out", x.astype("float32"), np.ones(3, "int32")) == CAST


def clamp(x, low, high):
    """Clamp as PyTorch does: NaN gives NaN, and the upper bound wins."""
    if any(isinstance(b, float) and np.isnan(b) for b in (low, high)):
        return np.full_like(x, np.nan)
    y = x if low is None else np.where(x < low, np.array(low, x.dtype), x)
    return y if high is None else np.where(y > high, np.array(high, x.dtype), y)


BOUNDS = [(0, 6), (-1.5, 2), (None, 1), (0.5, None), (3, -3), (float("nan"), 1),
          (None, float("nan")), (0, 0), (-2, None), (float("-inf"), float("inf")), (-0.0, 1e-40)]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_clamp(bounds, dtype):
    low, high = (0 if dtype == "uint8" and b is not None and b < 0 else b for b in bounds)
    x = operand(2, (60,), dtype)
    result = dtype
    for bound in (low, high):
        result = result_dtype(np.zeros(1, result), bound) if bound is not None else result
    expected = clamp(x.astype(result), low, high)
    np.testing.assert_array_equal(call("aten::clamp.out", x, low, high, np.zeros(60, result)),
                                  expected)
    if result == dtype and None not in bounds:
        np.testing.assert_array_equal(call("aten::hardtanh.out", x, low, high, np.zeros_like(x)),
                                      expected)


def rounded(x, decimals):
    """Round to decimals as PyTorch does, to the bit."""
    power = np.array(float(f"1e{abs(decimals)}")).astype(x.dtype)
    return np.asarray(np.rint(x / power) * power if decimals < 0 else np.rint(x * power) / power)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("decimals, expected", [
    (0, [2, -4, 1234]), (1, [2.2, -3.8, 1234.5]), (-2, [0, 0, 1200]), (-400, [np.nan] * 3)])
def test_round_to_decimals(decimals, expected, dtype):
    """Halves of the product round to even."""
    x = np.array([2.25, -3.75, 1234.5], dtype)
    result = call("aten::round.decimals_out", x, decimals, np.zeros_like(x))
    np.testing.assert_array_equal(result, np.array(expected, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_leaky_relu(dtype):
    x = operand(3, (50,), dtype)
    expected = np.where(x > 0, x, x * np.array(0.1, dtype))
    np.testing.assert_array_equal(call("aten::leaky_relu.out", x, 0.1, np.zeros_like(x)), expected)


def test_elu():
    x = operand(4, (500,), "float32")
    wide = x.astype("float64")
    expected = np.where(wide < 0, np.expm1(wide * 0.5) * 0.7, wide) * 1.5
    result = call("aten::elu.out", x, 0.7, 1.5, 0.5, np.zeros_like(x))
    np.testing.assert_allclose(result, expected.astype("float32"), rtol=5e-7)


@pytest.mark.parametrize("name", ["relu", "clamp", "exp", "abs", "leaky_relu"])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 21])
def test_out_may_be_the_operand(name, n):
    numbers = {"clamp": (-1, 1), "leaky_relu": (0.5,)}.get(name, ())
    x = Tensor(operand(n, (n,), "float32"))
    expected = call(f"aten::{name}.out", x.array, *numbers, np.zeros_like(x.array))
    result = call(f"aten::{name}.out", x, *numbers, Tensor(x.array, alias=x))
    np.testing.assert_array_equal(result, expected)


def test_channels_last():
    x = operand(5, (2, 3, 4, 5), "float32")
    expected = np.where(x <= 0, np.float32(0), x)
    for a, b in itertools.product((Tensor, channels_last), repeat=2):
        np.testing.assert_array_equal(call("aten::relu.out", a(x), b(np.zeros_like(x))), expected)


def test_rejections():
    x = np.ones(3, "float32")
    assert refusal("abs.out", x, np.ones(4, "float32"))[0] == "InvalidArgument"
    assert refusal("abs.out", x, np.ones(3, "int64")) == CAST
    assert refusal("abs.out", x.astype("uint16"), x) == DTYPE
    assert refusal("abs.out", x, x.astype("uint16")) == DTYPE
    assert refusal("clamp.out", x, None, None, x) == ("InvalidArgument", "clamp needs min or max")
    assert refusal("clamp.out", x.astype("bool"), True, None, x.astype("bool")) == DTYPE
    assert refusal("gelu.out", x, "erf", x) == (
        "InvalidArgument", "gelu's approximate is not none or tanh")
    assert refusal("gelu.out", x, "both", x)[0] == "InvalidArgument"
    assert refusal("gelu.out", x.astype("int32"), "none", x.astype("int32")) == DTYPE
    assert refusal("elu.out", x.astype("int32"), 1, 1, 1, x.astype("int32")) == DTYPE


@pytest.mark.parametrize("eps", [None, 0.0, 0.01, 0.3, -1.0])
def test_logit(eps):
    x = np.linspace(-0.25, 1.25, 61).astype(np.float32)
    limited = x if eps is None or eps < 0 else np.clip(x, np.float32(eps), 1 - np.float32(eps))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.log(limited / (1 - limited))
    result = call("aten::logit.out", x, eps, np.zeros_like(x))
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(dim):
    x = np.random.default_rng(dim + 1).normal(size=(2, 4, 6)).astype(np.float32)
    a, b = np.split(x, 2, dim)
    for order in ((0, 1, 2), (2, 0, 1)):
        result = call("aten::glu.out", Tensor(x, order), dim, Tensor(np.zeros_like(a), (1, 0, 2)))
        np.testing.assert_allclose(result, a / (1 + np.exp(-b)), rtol=1e-6)


@pytest.mark.parametrize("arguments, reason", [
    ((np.zeros((2, 3), np.float32), 1, np.zeros((2, 1), np.float32)), "must be even"),
    ((np.zeros((), np.float32), 0, np.zeros((), np.float32)), "must be even"),
    ((np.zeros((2, 2), int), 1, np.zeros((2, 1), int)), "does not support this dtype"),
    ((np.zeros((2, 2), np.float32), 2, np.zeros((2, 1), np.float32)), "dim is out of range"),
])
def test_glu_rejects(arguments, reason):
    with pytest.raises(KernelError, match=reason):
        call("aten::glu.out", *arguments)
