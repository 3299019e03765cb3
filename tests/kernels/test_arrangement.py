"""Test the arguments that pads, pixels, rolls, windows and diagonals reject."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from support.kernel_call import KernelError, Tensor, call

many = settings(max_examples=100, deadline=None, derandomize=True)


def check(operator, x, arguments, expected, data):
    """Check a call with x in any dim order."""
    orders = [tuple(data.draw(st.permutations(range(t.ndim)))) for t in (x, expected)]
    out = Tensor(np.full(expected.shape, 99, expected.dtype), orders[1])
    result = call(f"aten::{operator}", Tensor(x, orders[0]), *arguments, out)
    np.testing.assert_array_equal(result, expected)


X, IMAGE = np.ones((2, 3), np.float32), np.ones((4, 2, 3), np.float32)
REFUSED = [
    ("reflection_pad1d", X, [[3, 0]], "a padding is out of range"),
    ("replication_pad1d", X, [[-3, 0]], "a padding is out of range"),
    ("replication_pad1d", X, [[1, -4]], "a padding is out of range"),
    ("reflection_pad1d", X, [[-(2**63), 2**63 - 1]], "a padding is out of range"),
    ("reflection_pad1d", X, [[-(2**40), 2]], "a padding is out of range"),
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


def test_elements_cropped_on_one_side_are_reflected_on_the_other():
    x = np.arange(5, dtype=np.float32)[None]
    found = call("aten::reflection_pad1d.out", x, [-3, 3], np.zeros((1, 5), np.float32))
    assert found.tolist() == [[3, 4, 3, 2, 1]]
    found = call("aten::replication_pad1d.out", x, [2, -4], np.zeros((1, 3), np.float32))
    assert found.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("operator, x, arguments, reason", REFUSED)
def test_rejections(operator, x, arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call(f"aten::{operator}.out", x, *arguments, np.zeros_like(x))
    assert error.value.stage == "check"
