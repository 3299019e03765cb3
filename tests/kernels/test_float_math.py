"""Compare the mathematical functions with float64: errors in ulp, special values, exact cases."""

import math

import numpy as np
import pytest
from support.kernel_call import call

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def sample():
    """Return floats of every exponent and sign, more of them near bends of the functions, and special
    ones."""
    patterns = np.arange(0, 2**32, 12289, dtype=np.uint64).astype(np.uint32).view(np.float32)
    dense = [np.linspace(-limit, limit, 60001) for limit in (1, 4, 15, 110)]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 2**-149, 1.1754942e-38, 2**23, 2**23 - 0.5]
    with np.errstate(invalid="ignore"):
        return np.concatenate([patterns, *dense, special]).astype(np.float32)


X = sample()


def run(operator, *arguments):
    return call(f"aten::{operator}", *arguments, np.zeros_like(X))


def erf(x):
    return np.array([math.erf(v) for v in x])


def ulps(result, expected):
    """Return the distance to the float64 `expected` in units of its last place as a float32."""
    rounded = expected.astype(np.float32)
    unit = np.abs(np.spacing(np.where(np.isfinite(rounded), rounded, 3e38))).astype(np.float64)
    error = np.abs(result.astype(np.float64) - expected) / unit
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


# Largest errors found, rounded up. The header of float_math lists them.
FUNCTIONS = {
    "exp": (np.exp, 1.0),
    "expm1": (np.expm1, 1.6),
    "log": (np.log, 0.9),
    "log2": (np.log2, 1.6),
    "log10": (np.log10, 2.0),
    "log1p": (np.log1p, 0.9),
    "sigmoid": (lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-abs(x))), 2.4),
    "tanh": (np.tanh, 1.5),
    "erf": (erf, 1.8),
    "sin": (np.sin, 1.6),
    "cos": (np.cos, 1.6),
    "tan": (np.tan, 3.2),
    "asin": (np.arcsin, 2.3),
    "acos": (np.arccos, 1.2),
    "atan": (np.arctan, 1.9),
    "sinh": (np.sinh, 1.9),
    "cosh": (np.cosh, 1.9),
    "asinh": (np.arcsinh, 1.7),
    "acosh": (np.arccosh, 1.7),
    "atanh": (np.arctanh, 1.6),
    "sqrt": (np.sqrt, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "reciprocal": (lambda x: 1 / x, 0.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name):
    function, limit = FUNCTIONS[name]
    result, expected = run(f"{name}.out", X), function(X.astype(np.float64))
    errors = ulps(result, expected)
    worst = np.argmax(errors)
    assert errors[worst] <= limit, (X[worst], result[worst], expected[worst], errors[worst])
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


def test_angles_of_points():
    """The points are in all quadrants, and have zeros of either sign and infinities."""
    special = np.float32([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 3e38])
    some = np.concatenate([np.random.default_rng(1).normal(size=3000).astype(np.float32), special])
    for y, x in ((X, np.random.default_rng(0).permutation(X)),
                 (np.repeat(special, some.size), np.tile(some, special.size))):
        result = call("aten::atan2.out", y, x, np.zeros_like(y))
        expected = np.arctan2(y.astype(np.float64), x.astype(np.float64))
        assert ulps(result, expected).max() <= 2.3
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("name, function", [
    ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.rint)])
def test_rounding_is_exact(name, function):
    result = run(f"{name}.out", X)
    np.testing.assert_array_equal(result, function(X))
    np.testing.assert_array_equal(np.signbit(result), np.signbit(function(X)))


def test_square_root_is_correctly_rounded():
    assert run("sqrt.out", X).tobytes() == np.where(
        X < 0, np.uint32(0x7FC00000).view(np.float32), np.sqrt(X)).tobytes()


def test_remainder_of_division_is_exact():
    y = np.random.default_rng(0).permutation(X)
    result, expected = run("fmod.Tensor_out", X, y), np.fmod(X, y)
    np.testing.assert_array_equal(result, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


def test_logarithms_of_powers_are_exact():
    exponents = np.arange(-149, 128)
    powers = np.ldexp(np.float32(1), exponents).astype(np.float32)
    np.testing.assert_array_equal(call("aten::log2.out", powers, np.zeros_like(powers)), exponents)
    tens = np.float32(10) ** np.arange(11, dtype=np.float32)
    np.testing.assert_array_equal(call("aten::log10.out", tens, np.zeros_like(tens)), np.arange(11))


def test_angles_of_every_size():
    """The reduction is exact up to the largest float, also next to multiples of pi / 2."""
    multiples = (np.arange(1, 2000) * (np.pi / 2)).astype(np.float32)
    large = np.ldexp(np.float32(1.2345678), np.arange(128)).astype(np.float32)
    x = np.concatenate([multiples, large, -large])
    for name, function in (("sin", np.sin), ("cos", np.cos)):
        result = call(f"aten::{name}.out", x, np.zeros_like(x))
        assert ulps(result, function(x.astype(np.float64))).max() <= 1.6


def test_gelu_is_accurate_far_below_zero():
    x = np.linspace(-9, 9, 20001).astype(np.float32)
    erfc = np.array([math.erfc(-v / math.sqrt(2)) for v in x.astype(np.float64)])
    expected = 0.5 * x.astype(np.float64) * erfc
    result = call("aten::gelu.out", x, "none", np.zeros_like(x))
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x.astype(np.float64) ** 3)
    expected = x / (1 + np.exp(-2 * u))
    result = call("aten::gelu.out", x, "tanh", np.zeros_like(x))
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-44)
