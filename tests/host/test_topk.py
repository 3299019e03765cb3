"""topk against numpy's stable sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_call import KernelError, Tensor, call

DTYPES = st.sampled_from([np.float32, np.float64, np.int8, np.uint8, np.int64])
many = settings(max_examples=150, deadline=None, derandomize=True)


@many
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.booleans(), DTYPES, st.data())
def test_topk(shape, largest, dtype, data):
    """Few values, so that many are equal; NaN is above all."""
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 5, shape).astype(dtype)
    if x.dtype.kind == "f":
        x = np.where(x == 4, np.nan, x)
    dim = data.draw(st.integers(0, x.ndim - 1))
    k = data.draw(st.integers(0, x.shape[dim]))
    keys = np.nan_to_num(x, nan=9) if x.dtype.kind == "f" else x.astype(np.int64)
    places = np.argsort(-keys if largest else keys, dim, kind="stable").take(range(k), dim)
    orders = [tuple(data.draw(st.permutations(range(x.ndim)))) for _ in range(3)]
    outs = [Tensor(np.zeros_like(places, t), order)
            for t, order in zip((dtype, np.int64), orders, strict=False)]
    values, indices = call("aten::topk.values", Tensor(x, orders[2]), k, dim - x.ndim, largest, True,
                           *outs)
    np.testing.assert_array_equal(indices, places)
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, dim))


def test_a_number():
    value, index = call("aten::topk.values", np.float32([2.5]).reshape(()), 1, -1, True, True,
                        np.zeros((), np.float32), np.ones((), np.int64))
    assert (value, index) == (2.5, 0)


X, VALUES = np.zeros((2, 3), np.float32), np.zeros((2, 1), np.float32)
PLACES = np.zeros((2, 1), np.int64)


@pytest.mark.parametrize("arguments, reason", [
    ((X, 4, 1, True, True, VALUES, PLACES), "k is not within"),
    ((X, -1, 1, True, True, VALUES, PLACES), "k is not within"),
    ((X, 1, 2, True, True, VALUES, PLACES), "dim is out of range"),
    ((X, 1, 1, True, True, PLACES, PLACES), "dtype must be the input's"),
    ((X, 1, 1, True, True, VALUES, VALUES), "indices must be int64"),
    ((X, 2, 1, True, True, VALUES, PLACES), "sizes are not those"),
    ((X.astype(bool), 1, 1, True, True, VALUES.astype(bool), PLACES), "not compared"),
])
def test_refusals(arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call("aten::topk.values", *arguments)
    assert error.value.stage == "check"
