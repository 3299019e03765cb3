"""Test float16 and bfloat16: operators compute in float32 and round once, on every core.

ExecuTorch's portable kernels do so element by element, too. Some of them sum in the dtype itself
(addmm, convolution, pooling, cumsum); picotorch sums in float32 and is closer to the exact result.
"""

import itertools

import numpy as np
import pytest
from picotorch.host.operators import built_operators
from support.board_call import BOARDS, Case, assert_same
from support.example_calls import EXAMPLES
from support.halves import (
    BFLOAT16,
    CODES,
    HALF,
    HALVES,
    as_dtype,
    exact,
    from_bits,
    is_float,
    redrawn,
    rounded,
    to_bits,
)
from support.kernel_call import KernelError, Tensor, call

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# Operators without either dtype, although their example has float32 tensors: they belong to
# ExecuTorch's dialects, or PyTorch's linear algebra, or their output has a fixed dtype.
NOT_IN_HALVES = {name for name in EXAMPLES if name.startswith((
    "cortex_m::", "aten::linalg_", "aten::_linalg_", "picotorch::", "torchvision::"))} | {
    "aten::bincount.out"} | {
    f"quantized_decomposed::{name}.{overload}" for name, overload in [
        ("choose_qparams", "Tensor_out"), ("choose_qparams_per_token_asymmetric", "out")]}


def is_complex(argument):
    array = getattr(argument, "array", argument)
    return isinstance(array, np.ndarray) and array.dtype.kind == "c"


NOT_IN_HALVES |= {name for name in EXAMPLES if any(map(is_complex, EXAMPLES[name]))}


def has_floats(operator):
    """Return True if the operator's example has floats. Views accept any dtype, so they do not
    count."""
    def found(argument):
        return any(map(found, argument)) if isinstance(argument, list | tuple) else is_float(argument)

    return found(EXAMPLES[operator]) and operator != "executorch_prim::et_view.default"


OPERATORS = [name for name in EXAMPLES if has_floats(name) and name not in NOT_IN_HALVES]
# grid_sampler rounds positions, too, as PyTorch does, and random numbers have the bits of the dtype.
# test_grid_sampler.py and test_random.py test them.
NOT_ROUNDED_ONCE = ("aten::grid_sampler_2d.out", "aten::rand.out", "aten::rand_like.out")
ROUNDED_ONCE = [name for name in OPERATORS if name not in NOT_ROUNDED_ONCE]

# Operators that add repeatedly to elements of the output round each sum, as PyTorch does.
ADDING = ("aten::index_put.out", "aten::index_put_", "aten::scatter_add.out",
          "aten::max_pool2d_with_indices_backward.grad_input")
EPSILON = {HALF: 2.0**-11, BFLOAT16: 2.0**-8}


def in_dtype(operator, arguments, dtype):
    """Return the arguments with float32 tensors converted to the dtype, and with the dtype's code."""
    arguments = [as_dtype(a, dtype) for a in arguments]
    if operator == "quantized_decomposed::dequantize_per_token.out":
        arguments[-2] = CODES[dtype]
    return arguments


def flat(result):
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in flat(item)]
    return [result]


def assert_rounded(operator, arguments, dtype):
    """Assert that the call in the dtype has the results of float32, rounded."""
    wanted = flat(call(operator, *[exact(a, dtype) for a in arguments]))
    given = flat(call(operator, *in_dtype(operator, arguments, dtype)))
    for one, other in zip(given, wanted, strict=True):
        if not isinstance(other, np.ndarray):
            assert one == other
            continue
        if other.dtype == np.float32:
            one, other = from_bits(one, dtype), rounded(other, dtype)
        if operator in ADDING:
            largest = np.abs(other, where=np.isfinite(other), out=np.zeros_like(other)).max()
            np.testing.assert_allclose(one, other, 0, 4 * EPSILON[dtype] * largest)
            continue
        np.testing.assert_array_equal(one, other, err_msg=operator)


# ---- conversion


def convert(x, to):
    """Convert an array or Tensor with _to_copy, and return an array of the dtype."""
    array = getattr(x, "array", x)
    out = Tensor(np.zeros(array.shape, "uint16" if to == BFLOAT16 else to), dtype=CODES[to])
    return call("aten::_to_copy.out", x, False, None, out)


@pytest.mark.parametrize("dtype", HALVES)
def test_all_values_to_float32_and_back(dtype):
    bits = np.arange(65536, dtype=np.uint16)
    array = bits.view(np.float16) if dtype == HALF else bits
    given = convert(Tensor(array, dtype=CODES[dtype]), "float32")
    np.testing.assert_array_equal(given, from_bits(array, dtype))
    back = convert(given, dtype).view(np.uint16)
    number = ~np.isnan(given)
    np.testing.assert_array_equal(back[number], bits[number])
    assert set(back[~number]) == {0x7E00 if dtype == HALF else 0x7FC0}


@pytest.mark.parametrize("dtype", HALVES)
def test_float32_is_rounded_to_the_nearest(dtype):
    """The numbers are exactly in the middle of two neighbours, or the next float32 to either side."""
    numbers = from_bits(to_bits(np.geomspace(1e-9, 7e4, 20000), dtype), dtype)
    following = from_bits((to_bits(numbers, dtype).view(np.uint16) + 1).astype(np.uint16).view(
        np.float16 if dtype == HALF else np.uint16), dtype)
    middle = ((numbers.astype(float) + following) / 2).astype(np.float32)
    x = np.concatenate([middle, np.nextafter(middle, np.float32(0)),
                        np.nextafter(middle, np.float32(np.inf)), np.float32([65519.9, 65520, 1e38])])
    x = np.concatenate([x, -x])
    np.testing.assert_array_equal(from_bits(convert(x, dtype), dtype), rounded(x, dtype))
    n = len(middle)
    nearest = from_bits(convert(x[n : 3 * n], dtype), dtype)
    np.testing.assert_array_equal(nearest[:n], np.where(np.isfinite(following), numbers, nearest[:n]))
    np.testing.assert_array_equal(nearest[n:], following)


OTHERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("other", OTHERS)
def test_between_all_dtypes(dtype, other):
    """The conversion goes through float32, as in PyTorch."""
    values = np.array([0, 1, 2, 3, 100, 127, 255, 257, 2049, 32767, 70000, 2**31 + 2**20 + 1, 2**62])
    x = np.concatenate([values, -values]).astype(other)
    np.testing.assert_array_equal(from_bits(convert(x, dtype), dtype),
                                  rounded(x.astype(np.float32), dtype))
    y = rounded(np.array([0, -0.0, 1.5, 100.75, 7e-8, -1, -2.5]), dtype)
    y = np.abs(y) if other.startswith("u") else y
    np.testing.assert_array_equal(convert(as_dtype(y, dtype), other), y.astype(other))


def test_between_each_other():
    x = np.float32([0, 1.5, -3, 65504, 1e-5])
    for one, other in (HALVES, HALVES[::-1]):
        given = convert(as_dtype(x, one), other)
        np.testing.assert_array_equal(from_bits(given, other), rounded(rounded(x, one), other))


# ---- operators


def test_operators_that_support_halves():
    """The operators that support each dtype are exactly the ones in the table."""
    for operator, dtype in itertools.product(EXAMPLES, HALVES):
        if not has_floats(operator):
            continue
        try:
            call(operator, *in_dtype(operator, EXAMPLES[operator], dtype))
            assert operator in OPERATORS, f"{operator} takes {dtype}"
        except KernelError as error:
            assert operator in NOT_IN_HALVES, f"{operator}, {dtype}: {error}"
            assert error.stage == "check" and error.name in ("NotSupported", "InvalidArgument")


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("operator", ROUNDED_ONCE)
def test_computed_in_float32_and_rounded_once(operator, dtype):
    assert_rounded(operator, EXAMPLES[operator], dtype)


def redraw(operator, dtype, seed):
    random = np.random.default_rng([seed, *map(ord, operator)])
    return [redrawn(a, random, dtype) for a in EXAMPLES[operator]]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("operator", ROUNDED_ONCE)
def test_random_numbers(operator, dtype):
    for seed in range(5):
        assert_rounded(operator, redraw(operator, dtype, seed), dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("board", BOARDS)
def test_on_boards(board):
    cases = [Case(operator, *in_dtype(operator, redraw(operator, dtype, seed), dtype))
             for operator in OPERATORS for dtype in HALVES for seed in range(5, 9)]
    assert not any(case.on_twin().error for case in cases)
    assert_same(board, cases)


def test_long_sums():
    """The sum is computed in float32: in float16 itself a sum of ones would stay at 2048."""
    ones = np.ones((3, 5000), np.float32)
    for dtype in HALVES:
        for operator in ("sum.IntList_out", "mean.out"):
            assert_rounded(f"aten::{operator}", [ones, [1], False, None, ones[:, 0].copy()], dtype)
        random = rounded(np.random.default_rng(1).normal(size=(700, 3)), dtype)
        assert_rounded("aten::var.out", [random, [0], True, False, np.zeros(3, np.float32)], dtype)
        assert_rounded("aten::mm.out", [ones, ones.T.copy(), np.zeros((3, 3), np.float32)], dtype)


# ---- promotion

MIXED = ["bool", "uint8", "int64", *HALVES, "float32", "float64"]
PROMOTED = {(HALF, BFLOAT16): "float32", (BFLOAT16, HALF): "float32"}


def promoted(one, other):
    """Return PyTorch's dtype of the result of two tensors with dims."""
    wide = [d for d in (one, other) if d in (*HALVES, "float32", "float64")]
    if len(wide) == 1:
        return wide[0]
    return PROMOTED.get((one, other)) or max(wide, key=["bfloat16", "float16", "float32",
                                                        "float64"].index)


def of(dtype, *values):
    x = np.array(values, np.float32)
    return as_dtype(x, dtype) if dtype in HALVES else x.astype(dtype)


@pytest.mark.parametrize("one, other", [p for p in itertools.product(MIXED, MIXED) if {*p} & {*HALVES}])
def test_promotion(one, other):
    """1/3 distinguishes the dtypes to which the quotient may be rounded."""
    result = promoted(one, other)
    given = convert(of(result, 0), result)  # an empty array of that kind
    out = Tensor(np.zeros_like(given), dtype=CODES[result])
    quotient = call("aten::div.out", of(one, 1), of(other, 3), out)
    if other == "bool":
        assert from_bits(quotient, result) == 1
        return
    third = (1 / np.float64(3)) if result == "float64" else np.float32(1) / np.float32(3)
    if result in HALVES:
        assert from_bits(quotient, result) == rounded(third, result)
    else:
        assert quotient[0] == third


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_and_0d_tensors_do_not_promote(dtype):
    x, out = of(dtype, 1, 2), of(dtype, 0, 0)
    given, tenth = call("aten::add.Scalar_out", x, 0.1, 1, out), np.float32(0.1)
    np.testing.assert_array_equal(from_bits(given, dtype), rounded(np.float32([1, 2]) + tenth, dtype))
    given = call("aten::mul.out", x, np.array(tenth), out)  # above float16, but without dims
    np.testing.assert_array_equal(from_bits(given, dtype), rounded(np.float32([1, 2]) * tenth, dtype))


# ---- rejections

X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("operator, arguments, name, reason", [
    ("aten::mm.out", [of(HALF, 1).array.reshape(1, 1), np.ones((1, 1), np.float32),
                      np.zeros((1, 1), np.float16)], "InvalidArgument", "one dtype"),
    ("aten::_softmax.out", [X.astype(np.float16), 1, False, X.copy()], "NotSupported", "softmax"),
    ("aten::native_layer_norm.out",
     [X.astype(np.float16), [3], np.ones(3, np.float32), None, 1e-5, X.astype(np.float16),
      np.ones((2, 1), np.float16), np.ones((2, 1), np.float16)], "InvalidArgument", "one dtype"),
    ("aten::bitwise_not.out", [X.astype(np.float16), X.astype(np.float16)], "NotSupported", "dtype"),
    ("aten::add.out", [X.astype(np.float16), X.astype(np.float16), 1, X.astype(np.int32)],
     "InvalidArgument", "cast"),
    ("aten::clone.out", [X.astype(np.float16), None, Tensor(np.zeros((2, 3), np.uint16), dtype=15)],
     "InvalidArgument", "dtype")])
def test_rejections(operator, arguments, name, reason):
    with pytest.raises(KernelError) as refusal:
        call(operator, *arguments)
    assert (refusal.value.stage, refusal.value.name) == ("check", name)
    assert reason in refusal.value.reason


def test_every_operator_is_in_the_table():
    assert built_operators().keys() == set(EXAMPLES)
