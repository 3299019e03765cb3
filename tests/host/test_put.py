"""Operators that write where indices or masks point, and those whose sizes depend on data: numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_call import Call, KernelError, Tensor, call

DTYPES = st.sampled_from([np.float32, np.float64, np.int8, np.int16, np.int64])
many = settings(max_examples=150, deadline=None, derandomize=True)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def numbered(shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)) % 101).reshape(shape).astype(dtype)


def any_order(data, x):
    return Tensor(x, tuple(data.draw(st.permutations(range(x.ndim)))))


@st.composite
def indexed(draw):
    """A shape and indices of some of its dims: tensors of integers that broadcast, masks, None."""
    shape = draw(SHAPES)
    random = np.random.default_rng(draw(st.integers(0, 999)))
    common, picks, dim = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))], [], 0
    only_masks = draw(st.booleans())
    while dim < len(shape) and (not picks or draw(st.integers(0, 3))):
        if draw(st.integers(0, 2)) == 0:
            picks.append(None)
            dim += 1
        elif only_masks and all(pick is None for pick in picks):  # one, so that sizes always fit
            dims = draw(st.integers(1, len(shape) - dim))
            picks.append(random.integers(0, 2, shape[dim : dim + dims]).astype(bool))
            dim += dims
        elif only_masks:
            break
        else:
            own = [size if draw(st.booleans()) else 1 for size in common]
            picks.append(random.integers(-shape[dim], shape[dim], own))
            dim += 1
    if all(pick is None for pick in picks):
        picks[-1] = np.array([0])
    return shape, picks


def in_numpy(picks):
    return tuple(slice(None) if pick is None else pick for pick in picks)


@many
@given(indexed(), DTYPES, st.data())
def test_index(case, dtype, data):
    shape, picks = case
    x = numbered(shape, dtype)
    expected = np.asarray(x[in_numpy(picks)])
    out = any_order(data, np.zeros_like(expected, order="C"))
    np.testing.assert_array_equal(call("aten::index.Tensor_out", any_order(data, x), picks, out),
                                  expected)


@many
@given(indexed(), DTYPES, st.booleans(), st.data())
def test_index_put(case, dtype, adds, data):
    shape, picks = case
    x = numbered(shape, dtype)
    result = np.shape(x[in_numpy(picks)])
    own = [size if data.draw(st.booleans()) else 1 for size in result]
    values = numbered(own[data.draw(st.integers(0, len(own))):], dtype) + dtype(1)
    values = values if adds else np.full_like(values, 55)  # which of two comes last is not said
    expected = x.copy()
    if adds:
        np.add.at(expected, in_numpy(picks), values)
    else:
        expected[in_numpy(picks)] = values
    out = any_order(data, np.zeros_like(x))
    arguments = picks, any_order(data, values), adds
    np.testing.assert_array_equal(call("aten::index_put.out", any_order(data, x), *arguments, out),
                                  expected)
    np.testing.assert_array_equal(call("aten::index_put_", any_order(data, x), *arguments), expected)


@many
@given(SHAPES, DTYPES, st.sampled_from([np.int64, np.int32]), st.data())
def test_scatter(shape, dtype, index_dtype, data):
    x, dim = numbered(shape, dtype), data.draw(st.integers(0, len(shape) - 1))
    sizes = [data.draw(st.integers(0, 5)) if d == dim else data.draw(st.integers(1, n))
             for d, n in enumerate(shape)]
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    index = random.integers(0, shape[dim], sizes).astype(index_dtype)
    source = numbered([n + 1 for n in sizes], dtype)
    last, sums, filled = x.copy(), x.copy(), x.copy()
    for place in np.ndindex(*sizes):
        to = (*place[:dim], index[place], *place[dim + 1 :])
        last[to], filled[to] = source[place], 3
        sums[to] += source[place]
    arguments = any_order(data, x), dim - x.ndim, any_order(data, index)
    for operator, what, expected in (("scatter.src_out", any_order(data, source), last),
                                     ("scatter.value_out", 3, filled),
                                     ("scatter_add.out", any_order(data, source), sums)):
        if operator == "scatter.src_out":
            arguments = *arguments[:2], Tensor(index)  # of equals the last in memory stays
        result = call(f"aten::{operator}", *arguments, what, any_order(data, np.zeros_like(x)))
        np.testing.assert_array_equal(result, expected)


@st.composite
def masked(draw):
    """An array and a mask that broadcast to each other."""
    shape, random = draw(SHAPES), np.random.default_rng(draw(st.integers(0, 99)))
    cut = [[n if draw(st.integers(0, 3)) else 1 for n in shape][draw(st.integers(0, len(shape))):]
           for _ in range(2)]
    return numbered(cut[0], draw(DTYPES)), random.integers(0, 2, cut[1]).astype(bool)


@many
@given(masked(), st.data())
def test_masks(case, data):
    x, mask = case
    whole, spread = np.broadcast_arrays(x, mask)
    selected = whole[spread]
    arguments = any_order(data, x), any_order(data, mask)
    result = call("aten::masked_select.out", *arguments, np.zeros_like(selected))
    np.testing.assert_array_equal(result, selected)
    source = numbered([selected.size + 1], x.dtype) + x.dtype.type(1)
    expected = whole.copy()
    expected[spread] = source[:-1]
    out = any_order(data, np.zeros(whole.shape, x.dtype))
    np.testing.assert_array_equal(call("aten::masked_scatter.out", *arguments, source, out), expected)


@many
@given(st.lists(st.integers(0, 4), max_size=4), DTYPES, st.integers(0, 99), st.data())
def test_nonzero(shape, dtype, seed, data):
    x = np.random.default_rng(seed).integers(0, 3, shape).astype(dtype)
    expected = np.argwhere(x) if x.ndim else np.zeros((int(x != 0), 0), np.int64)
    out = any_order(data, np.zeros_like(expected))
    np.testing.assert_array_equal(call("aten::nonzero.out", any_order(data, x), out), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_repeat_interleave(dtype):
    repeats = np.array([2, 0, 3, 1], dtype)
    expected = np.repeat(np.arange(4, dtype=dtype), repeats)
    for size in (None, 6):
        result = call("aten::repeat_interleave.Tensor_out", repeats, size, np.zeros_like(expected))
        np.testing.assert_array_equal(result, expected)


def test_a_tensor_can_be_its_own_mask():
    x = np.array([True, False, True])
    np.testing.assert_array_equal(call("aten::index_put_", x, [x], np.array(False), False), [False] * 3)


# ---- refusals: nothing is written

X, BIG = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
FIRST, MASK, INTS = np.array([0]), np.array([True, False]), np.array([2, 1])
REFUSED = [
    ("index_put.out", (X, [FIRST], X[0].astype(np.int8), False, BIG), "values must have", "check"),
    ("index_put.out", (X, [FIRST], np.ones(2, np.float32), False, BIG), "do not broadcast", "check"),
    ("index_put.out", (X, [np.array([2])], X[0], False, BIG), "out of range", "run"),
    ("index_put.out", (X, [MASK], X, False, BIG), "do not broadcast", "run"),
    ("index_put.out", (X.astype(np.uint16), [FIRST], X.astype(np.uint16), True,
                       BIG.astype(np.uint16)), "not added", "check"),
    ("index_put_", (BIG, [np.array([-3])], X[0], False), "out of range", "run"),
    ("scatter.src_out", (X, 0, INTS[None], X, BIG), "out of range", "run"),
    ("scatter.src_out", (X, 0, np.zeros((1, 4), np.int64), X, BIG), "larger than self", "check"),
    ("scatter.src_out", (X, 1, np.zeros((2, 4), np.int64), X, BIG), "larger than self or src", "check"),
    ("scatter.src_out", (X, 2, INTS[None], X, BIG), "dim is out of range", "check"),
    ("scatter_add.out", (X, 0, X, X, BIG), "int64 or int32", "check"),
    ("scatter_add.out", (X, 0, INTS[None], X.astype(np.int8), BIG), "src must have", "check"),
    ("masked_select.out", (X, X, np.zeros(3, np.float32)), "not a bool tensor", "check"),
    ("masked_select.out", (X, MASK, np.zeros(3, np.float32)), "broadcast", "check"),
    ("masked_select.out", (X, MASK[:, None], np.zeros(2, np.float32)), "sizes are not those", "run"),
    ("masked_select.out", (X, MASK[:, None], BIG), "must have 1 dim", "check"),
    ("masked_scatter.out", (X, MASK[:, None], X[0, :2], BIG), "fewer elements", "run"),
    ("masked_scatter.out", (X, MASK[:, None], FIRST, BIG), "source must have", "check"),
    ("nonzero.out", (X, np.zeros((3, 2), np.int64)), "sizes are not those", "run"),
    ("nonzero.out", (X, BIG), "int64 of 2 dims", "check"),
    ("repeat_interleave.Tensor_out", (INTS, 4, np.zeros(3, np.int64)), "output_size is not", "run"),
    ("repeat_interleave.Tensor_out", (-INTS, None, np.zeros(3, np.int64)), "out of range", "run"),
    ("repeat_interleave.Tensor_out", (X, None, np.zeros(3, np.float32)), "int64 or int32", "check"),
]


@pytest.mark.parametrize("operator, arguments, reason, stage", REFUSED)
def test_refusals(operator, arguments, reason, stage):
    one = Call(f"aten::{operator}", arguments)
    before = {number: memory.copy() for number, memory in one.memories.items()}
    with pytest.raises(KernelError, match=reason) as error:
        one.run()
    assert error.value.stage == stage
    assert all((memory == before[number]).all() for number, memory in one.memories.items())
