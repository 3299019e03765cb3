"""Test operators of two operands against numpy, with PyTorch's promotion, and their errors."""

import itertools

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call, channels_last
from support.pytorch_dtypes import DTYPES, INTEGERS, INTEGRAL, floating, result_dtype, values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def add(x, y):
    return x + y if x.dtype != bool else x | y


def trunc_divide(x, y):
    quotient = np.trunc(x / y) if x.dtype.kind == "f" else np.floor_divide(abs(x), abs(y))
    return quotient if x.dtype.kind == "f" else quotient * np.sign(x) * np.sign(y)


# Operator: function of two arrays of the computation's dtype; the dtypes in which it does not compute.
SAME = {
    "mul.out": (lambda x, y: x * y, []),
    "maximum.out": (np.maximum, []),
    "minimum.out": (np.minimum, []),
    "bitwise_and.Tensor_out": (np.bitwise_and, ["float32", "float64"]),
    "bitwise_or.Tensor_out": (np.bitwise_or, ["float32", "float64"]),
    "bitwise_xor.Tensor_out": (np.bitwise_xor, ["float32", "float64"]),
}
PREDICATES = {
    "eq.Tensor_out": np.equal,
    "ne.Tensor_out": np.not_equal,
    "lt.Tensor_out": np.less,
    "le.Tensor_out": np.less_equal,
    "gt.Tensor_out": np.greater,
    "ge.Tensor_out": np.greater_equal,
    "logical_and.out": np.logical_and,
    "logical_or.out": np.logical_or,
    "logical_xor.out": np.logical_xor,
}
SHAPES = [((7,), (7,)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 2), ()), ((), (5,)), ((), ()),
          ((1,), (3,)), ((2, 1, 3), (3, 1)), ((0, 3), (3,))]
PAIRS = list(itertools.product(DTYPES, DTYPES))


def run(operator, x, y, dtype, *more):
    shapes = [v.shape for v in (x, y) if isinstance(v, np.ndarray)]
    return call(f"aten::{operator}", x, y, *more, np.zeros(np.broadcast_shapes(*shapes), dtype))


def operands(seed, shapes, dtypes):
    rng = np.random.default_rng(seed)
    return [values(rng, shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]


def refusal(operator, *arguments):
    with pytest.raises(KernelError) as error:
        call(f"aten::{operator}", *arguments)
    return error.value.name, error.value.reason


DTYPE = ("NotSupported", "the operator does not support this dtype")
CAST = ("InvalidArgument", "the result cannot be cast to the output's dtype")


@pytest.mark.parametrize("operator", SAME)
@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
def test_computes_in_the_promoted_dtype(operator, dtypes):
    function, refused = SAME[operator]
    for seed, shapes in enumerate(SHAPES):
        x, y = operands(seed, shapes, dtypes)
        dtype = result_dtype(x, y)
        if dtype in refused:
            assert refusal(operator, x, y, np.zeros((), dtype)) == DTYPE
            continue
        expected = function(x.astype(dtype), y.astype(dtype))
        np.testing.assert_array_equal(run(operator, x, y, dtype), expected)


@pytest.mark.parametrize("operator", PREDICATES)
@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
def test_predicates_return_bool(operator, dtypes):
    for seed, shapes in enumerate(SHAPES):
        x, y = operands(seed, shapes, dtypes)
        dtype = result_dtype(x, y)
        expected = PREDICATES[operator](x.astype(dtype), y.astype(dtype))
        np.testing.assert_array_equal(run(operator, x, y, "bool"), expected)


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
@pytest.mark.parametrize("sign", [1, -1], ids=["add", "sub"])
def test_alpha_scales_the_second_operand(sign, dtypes):
    operator = "add.out" if sign == 1 else "sub.out"
    for (seed, shapes), alpha in itertools.product(enumerate(SHAPES), (1, 3, 0.5)):
        x, y = operands(seed, shapes, dtypes)
        dtype = result_dtype(x, y)
        if sign == -1 and dtype == "bool":
            assert refusal(operator, x, y, alpha, np.zeros(1, dtype)) == DTYPE
        elif alpha == 0.5 and dtype in INTEGRAL:
            assert refusal(operator, x, y, alpha, np.zeros(1, dtype)) == (
                "InvalidArgument", "alpha of integer tensors must be an integer")
        else:
            a, b = x.astype(dtype), y.astype(dtype)
            scaled = b * np.array(alpha, dtype)
            expected = add(a, scaled) if sign == 1 else a - scaled
            np.testing.assert_array_equal(run(operator, x, y, dtype, alpha), expected)


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
def test_division_is_of_floating_numbers(dtypes):
    for seed, shapes in enumerate(SHAPES):
        x, y = operands(seed, shapes, dtypes)
        dtype = floating(result_dtype(x, y))
        expected = x.astype(dtype) / y.astype(dtype)
        np.testing.assert_array_equal(run("div.out", x, y, dtype), expected)


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32"])
def test_rounding_division_and_its_rest(dtype):
    x, y = operands(1, [(500,), (500,)], [dtype, dtype])
    if dtype == "float32":
        x, y = np.nan_to_num(x, posinf=7, neginf=-7), np.nan_to_num(y, posinf=3, neginf=-3)
        x, y = np.clip(x, -1e6, 1e6), np.where(abs(y) < 1e-3, np.float32(1), np.clip(y, -9, 9))
    y[y == 0] = 3
    cases = {"fmod.Tensor_out": np.fmod, "remainder.Tensor_out": np.remainder,
             "floor_divide.out": np.floor_divide}
    for operator, function in cases.items():
        np.testing.assert_array_equal(run(operator, x, y, dtype), function(x, y), operator)
    for mode, function in (("floor", np.floor_divide), ("trunc", trunc_divide)):
        wide = x.astype(np.int64) if dtype != "float32" else x
        other = y.astype(np.int64) if dtype != "float32" else y
        expected = function(wide, other).astype(dtype)
        np.testing.assert_array_equal(run("div.out_mode", x, y, dtype, mode), expected, mode)
    np.testing.assert_array_equal(run("div.out_mode", x, y, "float32", None),
                                  x.astype("float32") / y.astype("float32"))


def test_floor_division_at_infinity_and_zero():
    x = np.array([1, -1, 5, -5, 0, np.inf, 1, -1], "float32")
    y = np.array([np.inf, np.inf, -np.inf, 0, 0, 2, -0.0, 1e30], "float32")
    np.testing.assert_array_equal(run("floor_divide.out", x, y, "float32"),
                                  np.array([0, -1, -1, -np.inf, np.nan, np.nan, -np.inf, -1]))


def test_integer_division_by_zero_is_rejected_before_anything_is_written():
    x, y = np.arange(3, dtype="int32"), np.array([1, 0, 2], "int32")
    with pytest.raises(KernelError, match="by zero"):  # 256 cast to uint8
        run("floor_divide.out", x.astype("uint8"), np.array(256), "uint8")
    for operator, more in (("floor_divide.out", ()), ("fmod.Tensor_out", ()),
                           ("remainder.Tensor_out", ()), ("div.out_mode", ("trunc",))):
        with pytest.raises(KernelError) as error:
            run(operator, x, y, "int32", *more)
        assert (error.value.name, error.value.stage, error.value.reason) == (
            "InvalidArgument", "run", "division of an integer by zero")


def test_the_lowest_integer_divided_by_minus_one_wraps():
    x, y = np.array([-2**63], "int64"), np.array([-1], "int64")
    assert run("floor_divide.out", x, y, "int64") == x
    assert run("fmod.Tensor_out", x, y, "int64") == 0
    assert run("remainder.Tensor_out", x, y, "int64") == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [2, -3, 0.5, True])
def test_numbers_promote_by_category(dtype, number):
    x, = operands(3, [(4, 5)], [dtype])
    result = result_dtype(x, number)
    a, b = x.astype(result), np.array(number).astype(result)
    cases = {"mul.Scalar_out": a * b, "eq.Scalar_out": a == b, "ne.Scalar_out": a != b,
             "lt.Scalar_out": a < b, "le.Scalar_out": a <= b, "gt.Scalar_out": a > b,
             "ge.Scalar_out": a >= b,
             "div.Scalar_out": a.astype(floating(result)) / np.array(number, floating(result))}
    if result in INTEGRAL:
        cases |= {"bitwise_and.Scalar_out": a & b, "bitwise_or.Scalar_out": a | b,
                  "bitwise_xor.Scalar_out": a ^ b}
    for operator, expected in cases.items():
        np.testing.assert_array_equal(run(operator, x, number, expected.dtype), expected, operator)
    if result != "bool":
        for alpha in (1, 2):
            scaled = b * np.array(alpha, result)
            np.testing.assert_array_equal(run("add.Scalar_out", x, number, result, alpha),
                                          a + scaled)
            np.testing.assert_array_equal(run("sub.Scalar_out", x, number, result, alpha),
                                          a - scaled)
            np.testing.assert_array_equal(run("rsub.Scalar_out", x, number, result, alpha),
                                          b - a * np.array(alpha, result))


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32"])
def test_rests_by_a_number(dtype):
    x, = operands(4, [(300,)], [dtype])
    x = np.nan_to_num(x, posinf=1e6, neginf=-1e6) if dtype == "float32" else x
    for number in (3, 5) if dtype == "uint8" else (3, -4):
        y = np.array(number, dtype)
        np.testing.assert_array_equal(run("fmod.Scalar_out", x, number, dtype), np.fmod(x, y))
        np.testing.assert_array_equal(run("remainder.Scalar_out", x, number, dtype),
                                      np.remainder(x, y))
        np.testing.assert_array_equal(
            run("div.Scalar_mode_out", x, number, dtype, "floor"), np.floor_divide(x, y))


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, 0, 2.5, -0.75])
def test_powers_by_a_number(exponent):
    x = np.abs(operands(5, [(200,)], ["float32"])[0])
    expected = np.power(x.astype("float64"), exponent)
    result = run("pow.Tensor_Scalar_out", x, exponent, "float32")
    np.testing.assert_allclose(result, expected.astype("float32"), rtol=2e-7)


def test_powers():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 9, 300).astype("float32"), rng.uniform(-9, 9, 300).astype("float32")
    expected = np.power(x.astype("float64"), y.astype("float64"))
    np.testing.assert_allclose(run("pow.Tensor_Tensor_out", x, y, "float32"), expected, rtol=7e-8)
    np.testing.assert_allclose(run("pow.Scalar_out", 1.5, y, "float32"),
                               np.power(1.5, y.astype("float64")), rtol=7e-8)
    for dtype in INTEGERS:
        base, exponent = values(rng, (99,), dtype), rng.integers(0, 70, 99).astype(dtype)
        np.testing.assert_array_equal(run("pow.Tensor_Tensor_out", base, exponent, dtype),
                                      np.power(base, exponent))
    whole = np.array([1, -1, -1, 2, 7], "int32"), np.array([-3, -3, -4, -1, -2], "int32")
    np.testing.assert_array_equal(run("pow.Tensor_Tensor_out", *whole, "int32"), [1, -1, 1, 0, 0])


def test_powers_of_special_numbers():
    special = np.array([0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-40,
                        -1e-40, 2**24 - 1, 2**24 + 2, 3e38], "float32")
    x, y = (v.ravel().copy() for v in np.meshgrid(special, special))
    expected = np.power(x.astype("float64"), y.astype("float64")).astype("float32")
    result = run("pow.Tensor_Tensor_out", x, y, "float32")
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_allclose(result, expected, rtol=2e-7, atol=2e-45)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))




def test_sixteen_dims():
    shape = (2, 1, 2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1, 1, 3)
    x = np.arange(48, dtype="float32").reshape(shape)
    order = tuple(reversed(range(16)))
    y = Tensor(x + 1, order)
    np.testing.assert_array_equal(call("aten::add.out", x, y, 1, np.zeros_like(x)), 2 * x + 1)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 9, 31])
def test_out_may_be_an_operand(n):
    x, y = operands(n, [(n,), (n,)], ["float32", "float32"])
    for first, second in ((True, False), (False, True), (True, True)):
        a, b = Tensor(x), Tensor(x if first and second else y)
        if first and second:
            b = Tensor(x, alias=a)
        out = Tensor(x if first else y, alias=a if first else b)
        np.testing.assert_array_equal(call("aten::mul.out", a, b, out), a.array * b.array)


def test_channels_last_operands_are_walked_as_they_lie():
    x, y = operands(6, [(2, 3, 4, 5)] * 2, ["float32"] * 2)
    out = np.zeros_like(x)
    for a, b, c in itertools.product((Tensor, channels_last), repeat=3):
        np.testing.assert_array_equal(call("aten::add.out", a(x), b(y), 1, c(out)), x + y)


def test_results_are_cast_to_a_wider_output():
    x, y = np.array([200, 100], "uint8"), np.array([100, 100], "uint8")
    np.testing.assert_array_equal(run("add.out", x, y, "int32", 1), [44, 200])
    np.testing.assert_array_equal(run("lt.Tensor_out", x, y, "float32"), [0, 0])
    np.testing.assert_array_equal(run("div.out", x, y, "float64"), [2, 1])


def test_rejections():
    x, i = np.ones(3, "float32"), np.ones(3, "int32")
    assert refusal("add.out", x, np.ones(4, "float32"), 1, x) == (
        "InvalidArgument", "the sizes of the operands do not broadcast")
    assert refusal("add.out", x, x, 1, np.ones((1, 3), "float32"))[0] == "InvalidArgument"
    assert refusal("add.out", x, x, 1, i) == CAST
    assert refusal("mul.out", i, i, np.ones(3, "bool")) == CAST
    assert refusal("add.out", x.astype("uint16"), x, 1, x) == DTYPE
    assert refusal("add.out", x, x, 1, x.astype("uint16")) == DTYPE
    assert refusal("mul.Scalar_out", x.astype("uint16"), 2, x) == DTYPE
    assert refusal("fmod.Tensor_out", x, x.astype("uint16"), x) == DTYPE
    assert refusal("div.out_mode", x, x, "nearest", x) == (
        "InvalidArgument", "rounding_mode is not None, trunc or floor")
    assert refusal("div.Scalar_mode_out", x, 2, "ceils", x)[0] == "InvalidArgument"
    assert refusal("pow.Tensor_Scalar_out", i, -1, i) == (
        "InvalidArgument", "an integer to a negative integer power")


@pytest.mark.parametrize("operator", ["floor_divide.out", "remainder.Tensor_out", "fmod.Tensor_out"])
def test_a_divisor_that_the_output_overwrites_by_zero_ends_in_a_number(operator):
    out = Tensor(np.array([3, 1, 1], np.int32))
    divisor = Tensor(np.array([3], np.int32), alias=out)
    result = call(f"aten::{operator}", np.array([0, 5, 7], np.int32), divisor, out)
    assert result.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_shifts(dtype):
    """A shift by at least as many places as the dtype has bits leaves only the sign."""
    x = np.array([1, 3, 100, 127, 0], dtype)
    x = np.concatenate([x, -x, ~x])
    bits = x.dtype.itemsize * 8
    for places in (0, 1, 3, 7, 8, 15, 16, 31, 32, 63, 64, 1000, -1):
        is_far = places < 0 or places >= bits
        left = np.zeros_like(x) if is_far else np.left_shift(x, places, dtype=dtype)
        right = np.right_shift(x, bits - 1 if is_far else places, dtype=dtype)
        right = np.zeros_like(x) if is_far and dtype == "uint8" else right
        for name, expected in (("left", left), ("right", right)):
            out = call(f"aten::bitwise_{name}_shift.Tensor_Scalar_out", x, places, np.zeros_like(x))
            np.testing.assert_array_equal(out, expected)
            if places < 128:
                other = np.full((2, 1), places).astype(dtype)
                if not (places < 0 and dtype == "uint8"):
                    out = call(f"aten::bitwise_{name}_shift.Tensor_out", x, other,
                               np.zeros((2, x.size), dtype))
                    np.testing.assert_array_equal(out, np.stack([expected] * 2))
