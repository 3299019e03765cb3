"""Test the errors of operators that write by indices or masks, or whose sizes depend on data."""

import numpy as np
import pytest
from support.kernel_call import Call, KernelError, call


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


def test_scatter_treats_0d_as_1d():
    x, row, zero = np.array(5, np.float32), np.array([5, 6], np.float32), np.zeros((), np.int64)
    one = np.array([3], np.float32)
    assert call("aten::scatter.src_out", x, 0, zero[None], one, x.copy()) == 3
    found = call("aten::scatter.src_out", row, 0, np.array(1), np.array(7, np.float32), row * 0)
    np.testing.assert_array_equal(found, [5, 7])
    found = call("aten::scatter_add.out", row, 0, np.array(1), one, row * 0)
    np.testing.assert_array_equal(found, [5, 9])
    found = call("aten::scatter_reduce.two_out", row, 0, zero, one, "mean", True, row * 0)
    np.testing.assert_array_equal(found, [4, 6])


# ---- rejections: nothing is written

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
    ("masked_select.out", (X, MASK[:, None], np.zeros(2, np.float32)), "sizes differ", "run"),
    ("masked_select.out", (X, MASK[:, None], BIG), "must have 1 dim", "check"),
    ("masked_scatter.out", (X, MASK[:, None], X[0, :2], BIG), "fewer elements", "run"),
    ("masked_scatter.out", (X, MASK[:, None], FIRST, BIG), "source must have", "check"),
    ("nonzero.out", (X, np.zeros((3, 2), np.int64)), "sizes differ from those", "run"),
    ("nonzero.out", (X, BIG), "int64 of 2 dims", "check"),
    ("nonzero_static.out", (X, 2, -1, BIG), "int64 of 2 dims", "check"),
    ("nonzero_static.out", (X, -1, -1, np.zeros((3, 2), np.int64)), "size is not in 0", "check"),
    ("nonzero_static.out", (X, 1 << 31, -1, np.zeros((3, 2), np.int64)), "size is not in 0", "check"),
    ("nonzero_static.out", (X, 2, -1, np.zeros((3, 2), np.int64)), "sizes differ from those", "check"),
    ("repeat_interleave.Tensor_out", (INTS, 4, np.zeros(3, np.int64)), "output_size is not", "run"),
    ("repeat_interleave.Tensor_out", (-INTS, None, np.zeros(3, np.int64)), "out of range", "run"),
    ("repeat_interleave.Tensor_out", (X, None, np.zeros(3, np.float32)), "int64 or int32", "check"),
]


@pytest.mark.parametrize("operator, arguments, reason, stage", REFUSED)
def test_rejections(operator, arguments, reason, stage):
    one = Call(f"aten::{operator}", arguments)
    before = {number: memory.copy() for number, memory in one.memories.items()}
    with pytest.raises(KernelError, match=reason) as error:
        one.run()
    assert error.value.stage == stage
    assert all((memory == before[number]).all() for number, memory in one.memories.items())
