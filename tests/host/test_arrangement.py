"""Operators that arrange elements anew, against numpy: pads, pixels, rolls, windows, diagonals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_call import KernelError, Tensor, call

DTYPES = st.sampled_from([np.float32, np.float64, np.int8, np.int16, np.int64, bool])
many = settings(max_examples=100, deadline=None, derandomize=True)


def sizes(low, high, most=5):
    return st.lists(st.integers(1, most), min_size=low, max_size=high)


def numbered(shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)) % 127).reshape(shape).astype(dtype)


def check(operator, x, arguments, expected, data):
    """In any dim order."""
    orders = [tuple(data.draw(st.permutations(range(t.ndim)))) for t in (x, expected)]
    out = Tensor(np.full(expected.shape, 99, expected.dtype), orders[1])
    result = call(f"aten::{operator}", Tensor(x, orders[0]), *arguments, out)
    np.testing.assert_array_equal(result, expected)


@many
@given(st.integers(1, 3), st.data(), DTYPES)
@pytest.mark.parametrize("kind, mode", [("replication", "edge"), ("reflection", "reflect")])
def test_pads_of_edges(kind, mode, dims, data, dtype):
    x = numbered(data.draw(sizes(dims + 1, dims + 2)), dtype)
    pads = [[data.draw(st.integers(0, n - 1 if mode == "reflect" else 3)) for _ in range(2)]
            for n in x.shape[-dims:]]
    expected = np.pad(x, [(0, 0)] * (x.ndim - dims) + pads, mode)
    check(f"{kind}_pad{dims}d.out", x, [[p for pair in pads[::-1] for p in pair]], expected, data)


@many
@given(sizes(0, 2), sizes(3, 3), st.integers(1, 3), st.data(), DTYPES)
def test_pixels(outer, image, r, data, dtype):
    (channels, height, width), n = image, len(outer)
    x = numbered([*outer, channels, r, r, height, width], dtype)
    many_channels = x.reshape(*outer, channels * r * r, height, width)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    large = x.transpose(order).reshape(*outer, channels, height * r, width * r)
    check("pixel_shuffle.out", many_channels, [r], large, data)
    check("pixel_unshuffle.out", large, [r], many_channels, data)


@many
@given(sizes(1, 4), st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=1, max_size=4),
       st.data(), DTYPES)
def test_roll(shape, moves, data, dtype):
    x = numbered(shape, dtype)
    shifts, dims = [shift for shift, _ in moves], [dim % x.ndim for _, dim in moves]
    check("roll.out", x, [shifts, dims], np.roll(x, shifts, dims), data)


@many
@given(sizes(0, 4), st.integers(-(2**40), 2**40), DTYPES)
def test_roll_of_all_elements(shape, shift, dtype):
    x = numbered(shape, dtype)
    result = call("aten::roll.out", x, [shift], [], np.zeros_like(x))
    np.testing.assert_array_equal(result, np.roll(x, shift % x.size))


@many
@given(sizes(1, 4), st.integers(-4, 3), st.integers(0, 5), st.integers(1, 4), st.data(), DTYPES)
def test_unfold(shape, dim, size, step, data, dtype):
    x = numbered(shape, dtype)
    dim %= x.ndim
    size = min(size, x.shape[dim])
    starts = range(0, x.shape[dim] - size + 1, step)
    windows = [np.moveaxis(x.take(range(i, i + size), dim), dim, -1) for i in starts]
    check("unfold_copy.out", x, [dim - x.ndim, size, step], np.stack(windows, dim), data)


@many
@given(sizes(2, 4), st.integers(-6, 6), st.data(), DTYPES)
def test_diagonal(shape, offset, data, dtype):
    x = numbered(shape, dtype)
    first, second = data.draw(st.permutations(range(x.ndim)))[:2]
    expected = np.diagonal(x, offset, first, second)
    check("diagonal_copy.out", x, [offset, first, second - x.ndim], expected, data)


X, IMAGE = np.ones((2, 3), np.float32), np.ones((4, 2, 3), np.float32)
REFUSED = [
    ("reflection_pad1d", X, [[3, 0]], "a padding is out of range"),
    ("replication_pad1d", X, [[-1, 0]], "a padding is out of range"),
    ("replication_pad1d", X[:, :0], [[1, 0]], "a padding is out of range"),
    ("replication_pad1d", X, [[2**31 - 1, 0]], "a padding is out of range"),
    ("replication_pad1d", X, [[1]], "padding must have two items for each dim"),
    ("replication_pad2d", X, [[1, 0, 0, 0]], "one or two dims more"),
    ("pixel_shuffle", X, [1], "3 to 14 dims"),
    ("pixel_shuffle", IMAGE, [0], "the factor is out of range"),
    ("pixel_shuffle", IMAGE, [3], "the factor does not fit"),
    ("pixel_unshuffle", IMAGE, [2], "the factor does not fit"),
    ("roll", X, [[1], [2]], "dim is out of range"),
    ("roll", X, [[1, 2], [0]], "as many as dims"),
    ("roll", X, [[1, 2], []], "as many as dims, or one"),
    ("unfold_copy", X, [1, 4, 1], "size or step"),
    ("unfold_copy", X, [1, -1, 1], "size or step"),
    ("unfold_copy", X, [1, 1, 0], "size or step"),
    ("diagonal_copy", X, [0, 1, -1], "a diagonal is one of two dims"),
    ("diagonal_copy", X[0], [0, 0, 0], "a diagonal is one of two dims"),
]


@pytest.mark.parametrize("operator, x, arguments, reason", REFUSED)
def test_refusals(operator, x, arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call(f"aten::{operator}.out", x, *arguments, np.zeros_like(x))
    assert error.value.stage == "check"
