"""Test copies of whole tensors and of their parts: conversions, odd cases, and errors."""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call, channels_last


def numbered(shape, dtype=np.float32):
    return np.asarray(np.arange(np.prod(shape, dtype=int)) % 120).reshape(shape).astype(dtype)


def refuses(operator, arguments, reason, name="InvalidArgument"):
    with pytest.raises(KernelError, match=reason) as error:
        call(operator, *arguments)
    assert (error.value.name, error.value.stage) == (name, "check")


# ---- whole tensors


@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (2, 16, 5, 7), (1, 64, 1, 1), (3, 1, 9, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16, np.float64])
def test_to_channels_last_and_back(shape, dtype):
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    operator = "dim_order_ops::_to_dim_order_copy.out"
    last, natural = channels_last(np.zeros_like(x)), np.zeros_like(x)
    np.testing.assert_array_equal(call(operator, x, False, [0, 2, 3, 1], last), x)
    np.testing.assert_array_equal(call(operator, channels_last(x), False, [0, 1, 2, 3], natural), x)


def test_conversion_of_floats_beyond_the_integers():
    x = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    got = call("aten::_to_copy.out", x, False, None, np.zeros(4, np.int64))
    assert got.tolist() == [0, 2**63 - 1, -2**63, 2**63 - 1]
    assert call("aten::_to_copy.out", x, False, None, np.zeros(4, bool)).all()


@pytest.mark.parametrize("to", [np.float32, np.float64, np.int16, bool])
def test_conversion_of_integers_around_int32(to):
    x = np.array([2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**53 + 1, 16777217, 0], np.int64)
    np.testing.assert_array_equal(call("aten::_to_copy.out", x, False, None, np.zeros(7, to)),
                                  x.astype(to))


def test_conversion_of_floats_around_int32():
    x = np.array([2.0**31, -2.0**31, 2.0**31 - 128, -2.0**31 - 256, 0.9, -0.9], np.float32)
    np.testing.assert_array_equal(
        call("aten::_to_copy.out", x, False, None, np.zeros(6, np.int64)), x.astype(np.int64))
    got = call("aten::_to_copy.out", x, False, None, np.zeros(6, bool))
    assert got.all()


def test_copy_onto_itself():
    x = numbered((2, 3))
    out = Tensor(np.zeros_like(x), alias=x)
    np.testing.assert_array_equal(call("aten::alias_copy.out", x, out), x)


X, Y = numbered((2, 3)), np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("aten::clone.out", [X, None, Y.astype(np.int32)], "dtype must be the input's", None),
    ("aten::clone.out", [X, None, Y[:1]], "sizes differ from those", None),
    ("aten::alias_copy.out", [X, Y.T.copy()], "sizes differ from those", None),
    ("aten::_to_copy.out", [X, False, None, Y.astype(np.uint16)], "no conversion",
     "NotSupported"),
    ("dim_order_ops::_to_dim_order_copy.out", [X, False, [1, 0], Y], "given dim order", None),
    ("dim_order_ops::_to_dim_order_copy.out", [X, False, [0], Y], "given dim order", None),
    ("dim_order_ops::_clone_dim_order.out", [X, False, [0, 1], Y.astype(np.int32)],
     "dtype must be the input's", None),
    ("dim_order_ops::_clone_dim_order.out", [X, False, [0, 1, 2**40], Y], "given dim order", None),
    ("aten::copy.out", [X, X[0, :2], False, Y], "does not broadcast", None),
    ("aten::copy.out", [X[0], X, False, Y], "does not broadcast", None),
    ("aten::copy.out", [X, X, False, Y.astype(np.int64)], "dtype must be the input's", None),
    ("aten::copy_", [X, X.astype(np.uint16), False], "no conversion", "NotSupported"),
    ("aten::expand_copy.out", [X, [2, 4], False, np.zeros((2, 4), np.float32)],
     "does not expand", None),
    ("aten::expand_copy.out", [X, [-1, 2, 3], False, Y], "does not expand", None),
    ("aten::expand_copy.out", [X, [3], False, Y], "fewer sizes", None),
    ("aten::expand_copy.out", [X, [-2, 3], False, Y], "a size is out of range", None),
    ("aten::expand_copy.out", [X, [2**32 + 2, 3], False, Y], "a size is out of range", None),
    ("aten::expand_copy.out", [X, [1] * 17, False, Y], "more than 16", "NotSupported"),
])
def test_copies_reject(operator, arguments, reason, name):
    refuses(operator, arguments, reason, name or "InvalidArgument")


# ---- views


def test_flatten_channels_last_of_one_pixel():
    x = channels_last(numbered((1, 5, 1, 1)))
    got = call("aten::view_copy.out", x, [1, 5], np.zeros((1, 5), np.float32))
    np.testing.assert_array_equal(got, x.array.reshape(1, 5))


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("aten::view_copy.out", [X, [4, -1], Y], "do not hold", None),
    ("aten::view_copy.out", [X, [-1, -1], Y], "do not hold", None),
    ("aten::view_copy.out", [X, [2**31 - 1] * 4, Y], "do not hold", None),
    ("aten::view_copy.out", [X[:0], [-1, 0], Y[:0]], "do not hold", None),
    ("aten::view_copy.out", [X, [3, 2], Y], "sizes differ from those", None),
    ("aten::view_copy.out", [X, [6], np.zeros(6, np.int32)], "dtype must be the input's", None),
    ("aten::view_copy.out", [channels_last(numbered((1, 2, 2, 2))), [8], np.zeros(8, np.float32)],
     "must be contiguous", "NotSupported"),
    ("aten::unsqueeze_copy.out", [X, 3, Y], "out of range", None),
    ("aten::unsqueeze_copy.out", [numbered((1,) * 16), 0, Y], "more than 16", "NotSupported"),
    ("aten::squeeze_copy.dim_out", [X, 2, Y], "out of range", None),
    ("aten::squeeze_copy.dims_out", [X, [0, -2], Y], "named twice", None),
])
def test_views_reject(operator, arguments, reason, name):
    refuses(operator, arguments, reason, name or "InvalidArgument")


# ---- parts along a dim


def along(x, dim):
    return (slice(None),) * (dim % x.ndim)


def test_cat_converts_and_of_nothing():
    parts = [np.array([1.5], np.float32), np.array([2], np.int64), np.array([True])]
    got = call("aten::cat.out", parts, 0, np.zeros(3, np.float32))
    assert got.tolist() == [1.5, 2, 1]
    nothing = np.zeros(0, np.float32)
    assert call("aten::cat.out", [nothing, nothing.copy()], 0, np.zeros(0, np.float32)).shape == (0,)


ZERO_D = np.array(1, np.float32)
COLUMN = np.zeros((2, 1), np.float32)


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("slice_copy.Tensor_out", [X, 1, None, None, 0, Y], "step must be positive", None),
    ("slice_copy.Tensor_out", [X, 1, None, None, -1, Y], "step must be positive", None),
    ("slice_copy.Tensor_out", [X, 2, None, None, 1, Y], "dim is out of range", None),
    ("slice_copy.Tensor_out", [X, 1, 1, None, 1, Y], "sizes differ from those", None),
    ("slice_copy.Tensor_out", [ZERO_D, 0, None, None, 1, ZERO_D], "0-d", None),
    ("slice_copy.Tensor_out", [X, 0, None, None, 1, Y.astype(np.int8)], "the input's", None),
    ("slice_scatter.out", [X, X, 1, 0, 1, 1, Y], "dtype and sizes of the part", None),
    ("slice_scatter.out", [X, X.astype(np.int8), 1, 0, 3, 1, Y], "dtype and sizes", None),
    ("slice_scatter.out", [X, COLUMN, 1, 0, 1, 1, COLUMN.copy()], "sizes differ from those", None),
    ("select_copy.int_out", [X, 1, 3, Y[:, 0].copy()], "index is out of range", None),
    ("select_copy.int_out", [X, 1, -4, Y[:, 0].copy()], "index is out of range", None),
    ("select_copy.int_out", [X, 1, -2**63, Y[:, 0].copy()], "index is out of range", None),
    ("select_copy.int_out", [X, 1, 0, COLUMN], "sizes differ from those", None),
    ("select_scatter.out", [X, X, 1, 0, Y], "dtype and sizes of the part", None),
    ("narrow_copy.out", [X, 1, 4, 0, Y], "start is out of range", None),
    ("narrow_copy.out", [X, 1, -4, 0, Y], "start is out of range", None),
    ("narrow_copy.out", [X, 1, 1, 3, Y], "length is out of range", None),
    ("narrow_copy.out", [X, 1, 1, -1, Y], "length is out of range", None),
    ("split_copy.Tensor_out", [X, 0, 1, [Y]], "split_size must be positive", None),
    ("split_copy.Tensor_out", [X, -1, 1, [Y]], "split_size must be positive", None),
    ("split_copy.Tensor_out", [X, 2, 1, [Y]], "not as many", None),
    ("split_copy.Tensor_out", [X, 2, 1, [Y[:, :2].copy(), Y]], "sizes differ from those", None),
    ("split_with_sizes_copy.out", [X, [1, 1], 1, [COLUMN, COLUMN.copy()]], "smaller", None),
    ("split_with_sizes_copy.out", [X, [1, 3], 1, [COLUMN, Y]], "larger", None),
    ("split_with_sizes_copy.out", [X, [-1, 4], 1, [COLUMN, Y]], "larger", None),
    ("split_with_sizes_copy.out", [X, [3], 1, [Y, Y.copy()]], "not as many", None),
    ("split_with_sizes_copy.out", [X, [1, 2], 1, [COLUMN, Y]], "sizes differ from those", None),
    ("unbind_copy.int_out", [X, 0, [Y[0].copy()]], "not as many", None),
    ("unbind_copy.int_out", [X, 0, [Y[0].copy(), Y]], "sizes differ from those", None),
    ("cat.out", [[X, X[:, :1].copy()], 0, Y], "differ outside the dim", None),
    ("cat.out", [[X, X[0].copy()], 0, Y], "differ outside the dim", None),
    ("cat.out", [[X], 2, Y], "dim is out of range", None),
    ("cat.out", [[np.zeros(0, np.float32)], 1, Y], "dim is out of range", None),
    ("cat.out", [[ZERO_D, ZERO_D], 0, Y], "0-d", None),
    ("cat.out", [[X, X], 0, Y], "sizes differ from those", None),
    ("cat.out", [[X.astype(np.uint16)], 0, Y], "no conversion", "NotSupported"),
    ("stack.out", [[X, X[:1].copy()], 0, Y], "differ in sizes", None),
    ("stack.out", [[X], 3, Y], "dim is out of range", None),
    ("stack.out", [[X], 0, Y], "sizes differ from those", None),
    ("stack.out", [[numbered((1,) * 16)], 0, Y], "more than 16", "NotSupported"),
])
def test_parts_reject(operator, arguments, reason, name):
    refuses(f"aten::{operator}", arguments, reason, name or "InvalidArgument")


# ---- rearrangements


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("repeat.out", [X, [2], Y], "fewer repeats", None),
    ("repeat.out", [X, [-1, 1], Y], "a size is out of range", None),
    ("repeat.out", [X, [2**31 - 1, 1], Y], "too large", None),
    ("repeat.out", [X, [1, 2], Y], "sizes differ from those", None),
    ("repeat.out", [np.zeros((2,) * 9, np.int8), [2] * 9, Y], "repeats above 1", "NotSupported"),
    ("constant_pad_nd.out", [X, [1], 0, Y], "two items", None),
    ("constant_pad_nd.out", [X, [0] * 6, 0, Y], "two items", None),
    ("constant_pad_nd.out", [X, [-4, 0], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [-2, -2], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [-4, 5], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [2**63 - 1, 2**63 - 1], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [-2**63, 0], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [1, 0], 0, Y], "sizes differ from those", None),
    ("constant_pad_nd.out", [X.astype(np.uint16), [0, 0], 0, Y.astype(np.uint16)],
     "cannot be padded", "NotSupported"),
    ("flip.out", [X, [2], Y], "dim is out of range", None),
    ("flip.out", [X, [1, 1], Y], "named twice", None),
    ("flip.out", [X, [1], COLUMN], "sizes differ from those", None),
    ("tril.out", [X[0], 0, Y], "at least 2 dims", None),
    ("tril.out", [X.astype(np.uint16), 0, Y.astype(np.uint16)], "cannot be cut", "NotSupported"),
    ("as_strided_copy.out", [X, [2, 3], [3], 0, Y], "the same length", None),
    ("as_strided_copy.out", [X, [2, 3], [3, 1], 1, Y], "beyond the tensor", None),
    ("as_strided_copy.out", [X, [2, 3], [3, 1], -1, Y], "beyond the tensor", None),
    ("as_strided_copy.out", [X, [2, 3], [3, 1], 2**62, Y], "beyond the tensor", None),
    ("as_strided_copy.out", [X, [2**31 - 1] * 16, [2**31 - 1] * 16, 0, Y], "beyond", None),
    ("as_strided_copy.out", [X, [2, 3], [-3, 1], 3, Y], "a size is out of range", None),
])
def test_rearranging_rejects(operator, arguments, reason, name):
    refuses(f"aten::{operator}", arguments, reason, name or "InvalidArgument")
