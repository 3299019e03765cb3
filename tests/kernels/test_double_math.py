"""Compare the mathematical functions in float64 with Python's, whose errors are about 1 ulp."""

import math

import numpy as np
import pytest
from support.kernel_call import call

INFINITE = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0}  # points at which a logarithm is -inf


def sample():
    """Return doubles of every exponent and sign, more of them near bends of the functions, and special
    ones."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2**64, 5000, dtype=np.uint64).view(np.float64)
    dense = [rng.uniform(-limit, limit, 5000) for limit in (1e-3, 0.5, 1, 4, 30, 750)]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 2.2250738585072014e-308, 1.79e308, 0.5, 1,
               -1, 0.75, 2**-28, 45, 709.78, -745.1, math.pi / 2, math.pi, 1e22]
    return np.concatenate([patterns, *dense, special])


X = sample()


def one(name, *values):
    """Call Python's function, and return a NaN for its error of the domain."""
    try:
        return getattr(math, name)(*values)
    except OverflowError:
        return -math.inf if name in ("sinh", "expm1") and values[0] < 0 else math.inf
    except ValueError:
        return -math.inf if INFINITE.get(name) == values[0] else (
            math.copysign(math.inf, values[0]) if name == "atanh" and abs(values[0]) == 1 else math.nan)


def ulps(result, expected):
    unit = np.abs(np.spacing(np.where(np.isfinite(expected), expected, 1.0)))
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(result - expected) / unit
    same = (result == expected) | (np.isnan(result) & np.isnan(expected))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


# Largest errors against Python's functions: half an ulp or one above the errors in the header.
FUNCTIONS = {"exp": 1, "expm1": 2, "log": 1, "log2": 2, "log10": 2, "log1p": 1, "tanh": 3, "erf": 2,
             "sin": 1, "cos": 1, "tan": 2, "asin": 2, "acos": 2, "atan": 2, "sinh": 3, "cosh": 2,
             "asinh": 2, "acosh": 2, "atanh": 2, "sqrt": 0}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name):
    result = call(f"aten::{name}.out", X, np.zeros_like(X))
    expected = np.array([one(name, x) for x in X.tolist()])
    errors = ulps(result, expected)
    worst = np.argmax(errors)
    assert errors[worst] <= FUNCTIONS[name], (X[worst], result[worst], expected[worst], errors[worst])
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


def test_cosine_nearest_to_zero():
    """No double is nearer to an odd multiple of pi / 2. The expected value was computed with 1,400
    bits."""
    x = np.array([6381956970095103 * 2.0**797])
    assert call("aten::cos.out", x, np.zeros(1)) == -4.6871659242546276e-19


def test_sigmoid():
    result = call("aten::sigmoid.out", X, np.zeros_like(X))
    parts = [(math.exp(-abs(x)), x) for x in X.tolist()]
    expected = np.array([(e if x < 0 else 1.0) / (1.0 + e) for e, x in parts])
    assert ulps(result, expected).max() <= 3


def test_erfc_by_gelu():
    """gelu is x / 2 times erfc, and exact even for small results."""
    x = np.linspace(-30, -1, 3000)
    result = call("aten::gelu.out", x, "none", np.zeros_like(x))
    expected = np.array([0.5 * v * math.erfc(v * -math.sqrt(0.5)) for v in x.tolist()])
    np.testing.assert_allclose(result, expected, rtol=5e-13)  # for the rounding of x / sqrt(2), squared


@pytest.mark.parametrize("name, operator, limit", [
    ("pow", "aten::pow.Tensor_Tensor_out", 1), ("atan2", "aten::atan2.out", 2),
    ("fmod", "aten::fmod.Tensor_out", 0)])
def test_two_operands(name, operator, limit):
    rng = np.random.default_rng(1)
    special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5e-324, 3, -3, 0.5, 1e300, 2.0**53])
    x = np.concatenate([X, rng.uniform(0.5, 2, 5000), rng.uniform(0.99, 1.01, 5000), X,
                        np.repeat(special, special.size)])
    y = np.concatenate([rng.permutation(X), rng.uniform(-999, 999, 5000),
                        rng.uniform(-50000, 50000, 5000), rng.integers(-9, 9, X.size).astype(float),
                        np.tile(special, special.size)])
    if name == "fmod":  # the work of fmod grows with the distance of the exponents
        x, y = np.clip(x, -1e9, 1e9), np.where(np.abs(y) < 1e-9, 1.0, y)
    result = call(operator, x, y, np.zeros_like(x))
    with np.errstate(all="ignore"):
        expected = {"pow": np.float_power, "atan2": np.arctan2, "fmod": np.fmod}[name](x, y)
    errors = ulps(result, expected)
    worst = np.argmax(errors)
    assert errors[worst] <= limit, (x[worst], y[worst], result[worst], expected[worst])
