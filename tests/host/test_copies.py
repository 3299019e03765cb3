"""Copies of whole tensors and of their parts, in all dim orders and dtypes, against numpy."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernel_call import KernelError, Tensor, call, channels_last

DTYPES = [np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, bool]
MOVED = [*DTYPES, np.float16, np.uint16]  # also those that are only moved
many = settings(max_examples=150, deadline=None, derandomize=True)
INT64 = st.sampled_from([-2**63, 2**63 - 1, -2**31, 2**31])


def numbered(shape, dtype=np.float32):
    return np.asarray(np.arange(np.prod(shape, dtype=int)) % 120).reshape(shape).astype(dtype)


def empty(like, order=None):
    return Tensor(np.zeros_like(like, order="C"), order)


@st.composite
def orders(draw, rank):
    natural = tuple(range(rank))
    return draw(st.one_of(st.just(natural), st.permutations(natural).map(tuple)))


@st.composite
def tensors(draw, least_rank=0, smallest=0):
    shape = draw(st.lists(st.integers(smallest, 6), min_size=least_rank, max_size=4))
    return Tensor(numbered(shape, draw(st.sampled_from(MOVED))), draw(orders(len(shape))))


def check(operator, arguments, expected, data):
    """The call gives `expected` in an output of any dim order."""
    out = empty(expected, data.draw(orders(expected.ndim)))
    got = call(operator, *arguments, out)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def refuses(operator, arguments, reason, name="InvalidArgument"):
    with pytest.raises(KernelError, match=reason) as error:
        call(operator, *arguments)
    assert (error.value.name, error.value.stage) == (name, "check")


# ---- whole tensors


@many
@given(tensors(), st.data())
def test_clones(x, data):
    order = data.draw(orders(x.array.ndim))
    for operator, middle in [("aten::clone.out", [None]), ("aten::alias_copy.out", []),
                             ("aten::detach_copy.out", []), ("aten::lift_fresh_copy.out", []),
                             ("aten::_to_copy.out", [False, None]),
                             ("dim_order_ops::_clone_dim_order.out", [False, list(order)])]:
        got = call(operator, x, *middle, empty(x.array, order))
        np.testing.assert_array_equal(got, x.array)


@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (2, 16, 5, 7), (1, 64, 1, 1), (3, 1, 9, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16, np.float64])
def test_to_channels_last_and_back(shape, dtype):
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    operator = "dim_order_ops::_to_dim_order_copy.out"
    last, natural = channels_last(np.zeros_like(x)), np.zeros_like(x)
    np.testing.assert_array_equal(call(operator, x, False, [0, 2, 3, 1], last), x)
    np.testing.assert_array_equal(call(operator, channels_last(x), False, [0, 1, 2, 3], natural), x)


@many
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.data())
def test_conversion(dtype, to, data):
    x = np.array([[0, 1, 2.75], [-3.5, 100, -1]]).astype(np.int64 if dtype in DTYPES[2:] else dtype)
    x = abs(x).astype(dtype) if np.uint8 in (dtype, to) else x.astype(dtype)
    check("aten::_to_copy.out", [Tensor(x, data.draw(orders(2))), False, None], x.astype(to), data)


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


@many
@given(tensors(smallest=1), st.sampled_from(DTYPES), st.data())
def test_copy_broadcasts_src(x, dtype, data):
    assume(x.array.dtype.type in DTYPES)
    shape = [1 if data.draw(st.booleans()) else n for n in x.array.shape]
    shape = shape[data.draw(st.integers(0, len(shape))):]
    src = Tensor(numbered(shape, dtype), data.draw(orders(len(shape))))
    expected = np.broadcast_to(src.array, x.array.shape).astype(x.array.dtype)
    check("aten::copy.out", [x, src, False], expected, data)
    np.testing.assert_array_equal(call("aten::copy_", x, src, False), expected)


@many
@given(tensors(), st.data())
def test_expand_copy(x, data):
    shape = x.array.shape
    sizes = [data.draw(st.integers(0, 4)) if n == 1 else n for n in shape]
    new = data.draw(st.lists(st.integers(0, 3), max_size=2))
    expected = np.broadcast_to(x.array, [*new, *sizes])
    kept = [-1 if n == m and data.draw(st.booleans()) else m
            for n, m in zip(shape, sizes, strict=True)]
    check("aten::expand_copy.out", [x, [*new, *kept], False], expected, data)


def test_copy_onto_itself():
    x = numbered((2, 3))
    out = Tensor(np.zeros_like(x), alias=x)
    np.testing.assert_array_equal(call("aten::alias_copy.out", x, out), x)


X, Y = numbered((2, 3)), np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("aten::clone.out", [X, None, Y.astype(np.int32)], "dtype must be the input's", None),
    ("aten::clone.out", [X, None, Y[:1]], "sizes are not those", None),
    ("aten::alias_copy.out", [X, Y.T.copy()], "sizes are not those", None),
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
def test_copies_refuse(operator, arguments, reason, name):
    refuses(operator, arguments, reason, name or "InvalidArgument")


# ---- views


@many
@given(tensors(), st.data())
def test_view_copy(x, data):
    shape = list(data.draw(st.permutations(x.array.shape)))
    expected = x.array.reshape(shape)
    if shape and 0 not in shape and data.draw(st.booleans()):
        shape[data.draw(st.integers(0, len(shape) - 1))] = -1
    got = call("aten::view_copy.out", x.array, shape, empty(expected))
    np.testing.assert_array_equal(got, expected)


@many
@given(tensors(), st.data())
def test_unsqueeze_and_squeeze(x, data):
    rank = x.array.ndim
    dim = data.draw(st.integers(-rank - 1, rank))
    check("aten::unsqueeze_copy.out", [x, dim], np.expand_dims(x.array, dim), data)
    assume(rank)
    dims = data.draw(st.lists(st.integers(0, rank - 1), unique=True))
    ones = [d for d in dims if x.array.shape[d] == 1]
    check("aten::squeeze_copy.dims_out", [x, [d - rank for d in dims]],
          x.array.squeeze(tuple(ones)), data)
    dim = data.draw(st.integers(-rank, rank - 1))
    expected = x.array.squeeze(dim) if x.array.shape[dim] == 1 else x.array
    check("aten::squeeze_copy.dim_out", [x, dim], expected, data)


def test_flatten_channels_last_of_one_pixel():
    x = channels_last(numbered((1, 5, 1, 1)))
    got = call("aten::view_copy.out", x, [1, 5], np.zeros((1, 5), np.float32))
    np.testing.assert_array_equal(got, x.array.reshape(1, 5))


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("aten::view_copy.out", [X, [4, -1], Y], "do not hold", None),
    ("aten::view_copy.out", [X, [-1, -1], Y], "do not hold", None),
    ("aten::view_copy.out", [X, [2**31 - 1] * 4, Y], "do not hold", None),
    ("aten::view_copy.out", [X[:0], [-1, 0], Y[:0]], "do not hold", None),
    ("aten::view_copy.out", [X, [3, 2], Y], "sizes are not those", None),
    ("aten::view_copy.out", [X, [6], np.zeros(6, np.int32)], "dtype must be the input's", None),
    ("aten::view_copy.out", [channels_last(numbered((1, 2, 2, 2))), [8], np.zeros(8, np.float32)],
     "must be contiguous", "NotSupported"),
    ("aten::unsqueeze_copy.out", [X, 3, Y], "out of range", None),
    ("aten::unsqueeze_copy.out", [numbered((1,) * 16), 0, Y], "more than 16", "NotSupported"),
    ("aten::squeeze_copy.dim_out", [X, 2, Y], "out of range", None),
    ("aten::squeeze_copy.dims_out", [X, [0, -2], Y], "named twice", None),
])
def test_views_refuse(operator, arguments, reason, name):
    refuses(operator, arguments, reason, name or "InvalidArgument")


# ---- parts along a dim


def along(x, dim):
    return (slice(None),) * (dim % x.ndim)


@many
@given(tensors(least_rank=1), st.data())
def test_slices(x, data):
    a = x.array
    dim = data.draw(st.integers(-a.ndim, a.ndim - 1))
    bound = st.one_of(st.none(), st.integers(-8, 8), INT64)
    start, end = data.draw(bound), data.draw(bound)
    step = data.draw(st.one_of(st.integers(1, 4), st.just(2**63 - 1)))
    part = (*along(a, dim), slice(start, end, step))
    check("aten::slice_copy.Tensor_out", [x, dim, start, end, step], a[part], data)
    expected = a.copy()
    expected[part] = 0
    src = np.zeros_like(a[part], order="C")
    check("aten::slice_scatter.out", [x, src, dim, start, end, step], expected, data)
    length = data.draw(st.integers(0, a.shape[dim]))
    start = data.draw(st.integers(0, a.shape[dim] - length))
    expected = a[(*along(a, dim), slice(start, start + length))]
    check("aten::narrow_copy.out", [x, dim, start, length], expected, data)


@many
@given(tensors(least_rank=1, smallest=1), st.data())
def test_select(x, data):
    a = x.array
    dim = data.draw(st.integers(-a.ndim, a.ndim - 1))
    index = data.draw(st.integers(-a.shape[dim], a.shape[dim] - 1))
    check("aten::select_copy.int_out", [x, dim, index], a.take(index, dim), data)
    expected = a.copy()
    expected[(*along(a, dim), index)] = 0
    src = Tensor(np.zeros_like(a.take(index, dim)), data.draw(orders(a.ndim - 1)))
    check("aten::select_scatter.out", [x, src, dim, index], expected, data)


def parts_equal(got, expected):
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@many
@given(tensors(least_rank=1), st.data())
def test_split(x, data):
    a = x.array
    dim = data.draw(st.integers(-a.ndim, a.ndim - 1))
    size = data.draw(st.integers(1, 7))
    cuts = list(range(size, a.shape[dim], size))
    expected = np.split(a, cuts, dim)
    got = call("aten::split_copy.Tensor_out", x, size, dim, [empty(p) for p in expected])
    parts_equal(got, expected)
    cuts = sorted(data.draw(st.lists(st.integers(0, a.shape[dim]), max_size=4)))
    expected = np.split(a, cuts, dim)
    sizes = [p.shape[dim] for p in expected]
    outs = [empty(p, data.draw(orders(a.ndim))) for p in expected]
    parts_equal(call("aten::split_with_sizes_copy.out", x, sizes, dim, outs), expected)
    assume(a.shape[dim])
    expected = [a.take(i, dim) for i in range(a.shape[dim])]
    parts_equal(call("aten::unbind_copy.int_out", x, dim, [empty(p) for p in expected]), expected)


@many
@given(tensors(least_rank=1), st.data())
def test_cat(first, data):
    a = first.array
    dim = data.draw(st.integers(-a.ndim, a.ndim - 1))
    tensors = [first]
    for size in data.draw(st.lists(st.integers(0, 4), max_size=3)):
        shape = list(a.shape)
        shape[dim] = size
        tensors.append(Tensor(numbered(shape, a.dtype), data.draw(orders(a.ndim))))
    expected = np.concatenate([t.array for t in tensors], dim)
    tensors.insert(data.draw(st.integers(0, 1)), np.zeros(0, a.dtype))  # skipped, whatever the rank
    check("aten::cat.out", [tensors, dim], expected, data)
    dim = data.draw(st.integers(-a.ndim - 1, a.ndim))
    tensors = [Tensor(a + (i if a.dtype != bool else False), data.draw(orders(a.ndim)))
               for i in range(data.draw(st.integers(1, 4)))]
    tensors = [Tensor(t.array.astype(a.dtype), t.dim_order) for t in tensors]
    check("aten::stack.out", [tensors, dim], np.stack([t.array for t in tensors], dim), data)


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
    ("slice_copy.Tensor_out", [X, 1, 1, None, 1, Y], "sizes are not those", None),
    ("slice_copy.Tensor_out", [ZERO_D, 0, None, None, 1, ZERO_D], "0-d", None),
    ("slice_copy.Tensor_out", [X, 0, None, None, 1, Y.astype(np.int8)], "the input's", None),
    ("slice_scatter.out", [X, X, 1, 0, 1, 1, Y], "dtype and sizes of the part", None),
    ("slice_scatter.out", [X, X.astype(np.int8), 1, 0, 3, 1, Y], "dtype and sizes", None),
    ("slice_scatter.out", [X, COLUMN, 1, 0, 1, 1, COLUMN.copy()], "sizes are not those", None),
    ("select_copy.int_out", [X, 1, 3, Y[:, 0].copy()], "index is out of range", None),
    ("select_copy.int_out", [X, 1, -4, Y[:, 0].copy()], "index is out of range", None),
    ("select_copy.int_out", [X, 1, -2**63, Y[:, 0].copy()], "index is out of range", None),
    ("select_copy.int_out", [X, 1, 0, COLUMN], "sizes are not those", None),
    ("select_scatter.out", [X, X, 1, 0, Y], "dtype and sizes of the part", None),
    ("narrow_copy.out", [X, 1, 4, 0, Y], "start is out of range", None),
    ("narrow_copy.out", [X, 1, -4, 0, Y], "start is out of range", None),
    ("narrow_copy.out", [X, 1, 1, 3, Y], "length is out of range", None),
    ("narrow_copy.out", [X, 1, 1, -1, Y], "length is out of range", None),
    ("split_copy.Tensor_out", [X, 0, 1, [Y]], "split_size must be positive", None),
    ("split_copy.Tensor_out", [X, -1, 1, [Y]], "split_size must be positive", None),
    ("split_copy.Tensor_out", [X, 2, 1, [Y]], "not as many", None),
    ("split_copy.Tensor_out", [X, 2, 1, [Y[:, :2].copy(), Y]], "sizes are not those", None),
    ("split_with_sizes_copy.out", [X, [1, 1], 1, [COLUMN, COLUMN.copy()]], "smaller", None),
    ("split_with_sizes_copy.out", [X, [1, 3], 1, [COLUMN, Y]], "larger", None),
    ("split_with_sizes_copy.out", [X, [-1, 4], 1, [COLUMN, Y]], "larger", None),
    ("split_with_sizes_copy.out", [X, [3], 1, [Y, Y.copy()]], "not as many", None),
    ("split_with_sizes_copy.out", [X, [1, 2], 1, [COLUMN, Y]], "sizes are not those", None),
    ("unbind_copy.int_out", [X, 0, [Y[0].copy()]], "not as many", None),
    ("unbind_copy.int_out", [X, 0, [Y[0].copy(), Y]], "sizes are not those", None),
    ("cat.out", [[X, X[:, :1].copy()], 0, Y], "differ beside the dim", None),
    ("cat.out", [[X, X[0].copy()], 0, Y], "differ beside the dim", None),
    ("cat.out", [[X], 2, Y], "dim is out of range", None),
    ("cat.out", [[np.zeros(0, np.float32)], 1, Y], "dim is out of range", None),
    ("cat.out", [[ZERO_D, ZERO_D], 0, Y], "0-d", None),
    ("cat.out", [[X, X], 0, Y], "sizes are not those", None),
    ("cat.out", [[X.astype(np.uint16)], 0, Y], "no conversion", "NotSupported"),
    ("stack.out", [[X, X[:1].copy()], 0, Y], "differ in sizes", None),
    ("stack.out", [[X], 3, Y], "dim is out of range", None),
    ("stack.out", [[X], 0, Y], "sizes are not those", None),
    ("stack.out", [[numbered((1,) * 16)], 0, Y], "more than 16", "NotSupported"),
])
def test_parts_refuse(operator, arguments, reason, name):
    refuses(f"aten::{operator}", arguments, reason, name or "InvalidArgument")


# ---- rearranged


@many
@given(tensors(), st.data())
def test_repeat(x, data):
    rank = x.array.ndim
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank + 2))
    check("aten::repeat.out", [x, repeats], np.tile(x.array, repeats), data)


@many
@given(tensors(least_rank=1), st.data())
def test_constant_pad(x, data):
    assume(x.array.dtype.type in DTYPES)
    a, pad = x.array, []
    widths = []
    for size in reversed(a.shape[data.draw(st.integers(0, a.ndim)):]):
        before = data.draw(st.integers(-size, 3))
        after = data.draw(st.integers(-size - min(before, 0), 3))
        pad += [before, after]
        widths.insert(0, (before, after))
    widths = [(0, 0)] * (a.ndim - len(widths)) + widths
    cut = tuple(slice(max(-b, 0), n + min(e, 0)) for n, (b, e) in zip(a.shape, widths, strict=True))
    expected = np.pad(a[cut], [(max(b, 0), max(e, 0)) for b, e in widths], constant_values=1)
    expected = np.asarray(expected).astype(a.dtype)
    check("aten::constant_pad_nd.out", [x, pad, data.draw(st.sampled_from([1, 1.0]))], expected, data)


@many
@given(tensors(), st.data())
def test_flip(x, data):
    rank = x.array.ndim
    dims = data.draw(st.lists(st.integers(0, rank - 1), unique=True)) if rank else []
    given_dims = [d - rank if data.draw(st.booleans()) else d for d in dims]
    check("aten::flip.out", [x, given_dims], np.flip(x.array, dims), data)


@many
@given(tensors(least_rank=2), st.one_of(st.integers(-7, 7), INT64), st.data())
def test_tril(x, diagonal, data):
    assume(x.array.dtype.type in DTYPES)
    expected = np.tril(x.array, max(min(diagonal, 99), -99))
    check("aten::tril.out", [x, diagonal], expected, data)


@many
@given(st.lists(st.integers(0, 4), max_size=4), st.data())
def test_as_strided(sizes, data):
    x = numbered(100)
    strides = data.draw(st.lists(st.integers(0, 7), min_size=len(sizes), max_size=len(sizes)))
    offset = data.draw(st.one_of(st.none(), st.integers(0, 9)))
    expected = np.lib.stride_tricks.as_strided(x[offset or 0:], sizes, [4 * s for s in strides])
    check("aten::as_strided_copy.out", [x, sizes, strides, offset], expected.copy(), data)


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("repeat.out", [X, [2], Y], "fewer repeats", None),
    ("repeat.out", [X, [-1, 1], Y], "a size is out of range", None),
    ("repeat.out", [X, [2**31 - 1, 1], Y], "too large", None),
    ("repeat.out", [X, [1, 2], Y], "sizes are not those", None),
    ("repeat.out", [np.zeros((2,) * 9, np.int8), [2] * 9, Y], "repeats above 1", "NotSupported"),
    ("constant_pad_nd.out", [X, [1], 0, Y], "two items", None),
    ("constant_pad_nd.out", [X, [0] * 6, 0, Y], "two items", None),
    ("constant_pad_nd.out", [X, [-4, 0], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [-2, -2], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [-4, 5], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [2**63 - 1, 2**63 - 1], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [-2**63, 0], 0, Y], "a pad is out of range", None),
    ("constant_pad_nd.out", [X, [1, 0], 0, Y], "sizes are not those", None),
    ("constant_pad_nd.out", [X.astype(np.uint16), [0, 0], 0, Y.astype(np.uint16)],
     "cannot be padded", "NotSupported"),
    ("flip.out", [X, [2], Y], "dim is out of range", None),
    ("flip.out", [X, [1, 1], Y], "named twice", None),
    ("flip.out", [X, [1], COLUMN], "sizes are not those", None),
    ("tril.out", [X[0], 0, Y], "at least 2 dims", None),
    ("tril.out", [X.astype(np.uint16), 0, Y.astype(np.uint16)], "cannot be cut", "NotSupported"),
    ("as_strided_copy.out", [X, [2, 3], [3], 0, Y], "the same length", None),
    ("as_strided_copy.out", [X, [2, 3], [3, 1], 1, Y], "beyond the tensor", None),
    ("as_strided_copy.out", [X, [2, 3], [3, 1], -1, Y], "beyond the tensor", None),
    ("as_strided_copy.out", [X, [2, 3], [3, 1], 2**62, Y], "beyond the tensor", None),
    ("as_strided_copy.out", [X, [2**31 - 1] * 16, [2**31 - 1] * 16, 0, Y], "beyond", None),
    ("as_strided_copy.out", [X, [2, 3], [-3, 1], 3, Y], "a size is out of range", None),
])
def test_rearranging_refuses(operator, arguments, reason, name):
    refuses(f"aten::{operator}", arguments, reason, name or "InvalidArgument")
