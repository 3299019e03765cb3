"""Test that embedding, index_select, gather and index reject a bad index before they write."""

import numpy as np
import pytest
from hypothesis import strategies as st
from support.kernel_call import Call, KernelError, Tensor, call

pytestmark = pytest.mark.check


def numbered(shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def indices(draw, size, shape, dtype):
    values = st.integers(0, size - 1)
    n = int(np.prod(shape, dtype=int))
    return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype).reshape(shape)


def test_zero_dims():
    x, out = np.array(7, np.float32), np.zeros((), np.float32)
    assert call("aten::index_select.out", x, 0, np.zeros(1, np.int64), out) == 7
    assert call("aten::gather.out", x, -1, np.zeros((), np.int64), False, out) == 7


def test_gather_treats_0d_as_1d():
    x = np.array(7, np.float32)
    row = np.array([5, 6], np.float32)
    found = call("aten::gather.out", x, 0, np.zeros(3, np.int64), False, np.zeros(3, np.float32))
    np.testing.assert_array_equal(found, [7, 7, 7])
    assert call("aten::gather.out", row, 0, np.array(1), False, np.zeros((), np.float32)) == 6
    with pytest.raises(KernelError, match="larger than self"):
        call("aten::gather.out", x, 0, np.zeros((1, 1), np.int64), False, np.zeros((1, 1), np.float32))


W, OUT = numbered((3, 2)), np.zeros((2, 2), np.float32)
FIRST = np.zeros(2, np.int64)


@pytest.mark.parametrize("bad", [-1, 3, 2**31, 2**32, -2**63])
@pytest.mark.parametrize("operator", ["embedding", "index_select", "gather", "index"])
def test_indices_out_of_range(operator, bad):
    if operator == "index" and bad == -1:
        bad = -4
    index = np.array([0, bad])
    arguments = {"embedding": [W, index, -1, False, False, OUT],
                 "index_select": [W, 0, index, OUT],
                 "gather": [W[:, 0].copy(), 0, index, False, np.zeros(2, np.float32)],
                 "index": [W, [index], OUT]}[operator]
    one = Call("aten::index.Tensor_out" if operator == "index" else f"aten::{operator}.out",
               arguments)
    with pytest.raises(KernelError, match="an index is out of range") as error:
        one.run()
    np.testing.assert_array_equal(one.result(arguments[-1]), arguments[-1])
    assert (error.value.name, error.value.stage) == ("InvalidArgument", "run")


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("embedding", [W[0], FIRST, -1, False, False, OUT], "2 dims", None),
    ("embedding", [W, FIRST.astype(np.int16), -1, False, False, OUT], "int64 or int32", None),
    ("embedding", [Tensor(W, (1, 0)), FIRST, -1, False, False, OUT], "contiguous", "NotSupported"),
    ("embedding", [W, np.zeros((1,) * 16, np.int64), -1, False, False, OUT], "more than 16",
     "NotSupported"),
    ("embedding", [W, FIRST, -1, False, False, OUT.astype(np.int8)], "dtype must be", None),
    ("embedding", [W, FIRST[:1], -1, False, False, OUT], "sizes differ from those", None),
    ("index_select", [W, 2, FIRST, OUT], "dim is out of range", None),
    ("index_select", [W, 0, FIRST.reshape(1, 2), OUT], "1 dim", None),
    ("index_select", [W, 0, FIRST.astype(bool), OUT], "int64 or int32", None),
    ("index_select", [W, 0, FIRST, OUT.astype(np.int8)], "dtype must be", None),
    ("index_select", [W, 1, FIRST, OUT], "sizes differ from those", None),
    ("index_select", [np.array(1, np.float32), 0, FIRST, OUT], "takes one index", None),
    ("gather", [W, 5, FIRST, False, OUT], "dim is out of range", None),
    ("gather", [W, 0, FIRST, False, OUT], "larger than self", None),
    ("gather", [W, 0, np.zeros((2, 3), np.int64), False, OUT], "larger than self", None),
    ("gather", [W, 0, np.zeros((2, 2), np.float32), False, OUT], "int64 or int32", None),
    ("gather", [W, 0, np.zeros((2, 2), np.int64), False, OUT.astype(np.int8)], "dtype must", None),
    ("gather", [W, 0, np.zeros((1, 2), np.int64), False, OUT], "sizes differ from those", None),
])
def test_rejections(operator, arguments, reason, name):
    with pytest.raises(KernelError, match=reason) as error:
        call(f"aten::{operator}.out", *arguments)
    assert (error.value.name, error.value.stage) == (name or "InvalidArgument", "check")


SQUARE = Tensor(np.zeros((2, 2), np.int64), (1, 0))


@pytest.mark.parametrize("arguments, reason, name", [
    ([W, [FIRST, FIRST, FIRST], OUT], "more indices than dims", None),
    ([W, [None], OUT], "no index", None),
    ([W, [FIRST, np.zeros(3, np.int64)], OUT], "do not broadcast", None),
    ([W, [np.zeros(3, np.int16)], OUT], "int64, int32, bool or uint8", "NotSupported"),
    ([W, [np.zeros(2, bool)], OUT], "a mask does not have the sizes", None),
    ([W, [np.zeros((), bool)], OUT], "a mask must have dims", "NotSupported"),
    ([W, [FIRST, np.zeros((2, 1), bool)], OUT], "more indices than dims", None),
    ([W, [FIRST, None, None], OUT], "more indices than dims", None),
    ([W, [SQUARE], OUT], "indices must be contiguous", "NotSupported"),
    ([W, [FIRST], OUT.astype(np.int8)], "dtype must be", None),
    ([W, [FIRST, FIRST], OUT], "sizes differ from those", None),
])
def test_index_tensor_rejects(arguments, reason, name):
    with pytest.raises(KernelError, match=reason) as error:
        call("aten::index.Tensor_out", *arguments)
    assert (error.value.name, error.value.stage) == (name or "InvalidArgument", "check")
