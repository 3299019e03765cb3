"""Test operators that choose between elements: where, masked_fill, clamp by tensors."""

import itertools

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call, channels_last
from support.pytorch_dtypes import DTYPES, result_dtype, values

pytestmark = [pytest.mark.check, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

DTYPE = ("NotSupported", "the operator does not support this dtype")
CAST = ("InvalidArgument", "the result cannot be cast to the output's dtype")
BROADCAST = ("InvalidArgument", "the sizes of the operands do not broadcast")


def refusal(operator, *arguments):
    with pytest.raises(KernelError) as error:
        call(f"aten::{operator}", *arguments)
    return error.value.name, error.value.reason


@pytest.mark.parametrize("dtypes", list(itertools.product(DTYPES, DTYPES)), ids="-".join)
def test_where(dtypes):
    rng = np.random.default_rng(0)
    for m, a, b in (((5,), (5,), (5,)), ((3, 1), (4,), ()), ((), (2, 3), (3,)), ((0,), (1,), ())):
        mask, x, y = values(rng, m, "bool"), values(rng, a, dtypes[0]), values(rng, b, dtypes[1])
        dtype = result_dtype(x, y)
        expected = np.where(mask, x.astype(dtype), y.astype(dtype))
        for condition in (mask, mask.astype("uint8")):
            result = call("aten::where.self_out", condition, x, y, np.zeros(expected.shape, dtype))
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_fill(dtype):
    rng = np.random.default_rng(1)
    x, mask = values(rng, (3, 4), dtype), values(rng, (4,), "bool")
    value = True if dtype == "bool" else 7 if dtype[0] in "iu" else -1.5
    expected = np.where(mask, np.array(value, dtype), x)
    np.testing.assert_array_equal(
        call("aten::masked_fill.Scalar_out", x, mask, value, np.zeros_like(x)), expected)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
@pytest.mark.parametrize("given", [(True, True), (True, False), (False, True)])
def test_clamp_by_tensors(dtype, given):
    rng = np.random.default_rng(2)
    x, low, high = (values(rng, shape, dtype) for shape in ((3, 4), (4,), (3, 1)))
    expected = np.maximum(x, low) if given[0] else x
    expected = np.minimum(expected, high) if given[1] else expected
    result = call("aten::clamp.Tensor_out", x, low if given[0] else None,
                  high if given[1] else None, np.zeros((3, 4), dtype))
    np.testing.assert_array_equal(result, expected)


def test_clamp_by_tensors_promotes():
    x, low = np.array([1, 5, 9], "int32"), np.array(2.5, "float32")
    np.testing.assert_array_equal(
        call("aten::clamp.Tensor_out", x, low, np.array([4, 4, 8], "int64"),
             np.zeros(3, "float32")), [2.5, 4, 8])
    empty = np.zeros((0, 2), "float32")
    assert call("aten::clamp.Tensor_out", empty, low, None, empty).size == 0


def test_out_may_be_an_operand():
    mask = np.array([True, False, True, False])
    x, y = (Tensor(np.arange(4, dtype="float32") + k) for k in (0, 10))
    for shared in (x, y):
        result = call("aten::where.self_out", mask, x, y, Tensor(shared.array, alias=shared))
        np.testing.assert_array_equal(result, [0, 11, 2, 13])
    high = Tensor(np.array([9, 0, 9, 0], "float32"))
    result = call("aten::clamp.Tensor_out", x, y.array, high, Tensor(high.array, alias=high))
    np.testing.assert_array_equal(result, [9, 0, 9, 0])


def test_dim_orders_may_differ():
    rng = np.random.default_rng(3)
    mask, x, y = (values(rng, (2, 3, 4, 5), d) for d in ("bool", "int16", "int16"))
    for order in itertools.product((Tensor, channels_last), repeat=4):
        arguments = [f(v) for f, v in zip(order, (mask, x, y, np.zeros_like(x)), strict=True)]
        np.testing.assert_array_equal(call("aten::where.self_out", *arguments),
                                      np.where(mask, x, y))


def test_rejections():
    x, i, mask = np.ones(3, "float32"), np.ones(3, "int32"), np.ones(3, bool)
    no_mask = ("InvalidArgument", "the mask is not a bool tensor")
    assert refusal("where.self_out", x, x, x, x) == no_mask
    assert refusal("where.self_out", mask, x, np.ones(4, "float32"), x) == BROADCAST
    assert refusal("where.self_out", mask, x, x, i) == CAST
    assert refusal("where.self_out", mask, x.astype("uint16"), x, x) == DTYPE
    assert refusal("where.self_out", mask, x, x, np.ones(4, "float32"))[0] == "InvalidArgument"
    assert refusal("masked_fill.Scalar_out", x, i, 1, x) == no_mask
    assert refusal("masked_fill.Scalar_out", i, mask, 1.5, i) == (
        "InvalidArgument", "the value cannot be cast to self's dtype")
    assert refusal("clamp.Tensor_out", x, None, None, x) == (
        "InvalidArgument", "clamp needs min or max")
    assert refusal("clamp.Tensor_out", x, np.ones(2, "float32"), None, x) == BROADCAST
    assert refusal("clamp.Tensor_out", mask, mask, None, mask) == DTYPE
    assert refusal("clamp.Tensor_out", x, x, None, i) == CAST
