"""Compare aten::permute_copy, transpose_copy and t_copy with numpy."""

import numpy as np
import pytest
from support.kernel_call import KernelError, call

pytestmark = pytest.mark.check


def numbered(shape, dtype):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("shape", [(5, 5), (640, 128), (8, 128), (1, 7), (7, 1), (3, 18), (130, 6)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_matrices(shape, dtype):
    x = np.random.default_rng(1).integers(-100, 100, shape).astype(dtype)
    out = np.zeros(shape[::-1], dtype)
    np.testing.assert_array_equal(call("aten::permute_copy.out", x, [1, 0], out), x.T)
    np.testing.assert_array_equal(call("aten::t_copy.out", x, out), x.T)
    np.testing.assert_array_equal(call("aten::transpose_copy.int_out", x, 0, -1, out), x.T)


@pytest.mark.parametrize("a, b", [(0, 2), (2, 1), (-1, -3), (1, 1)])
def test_transpose_copy(a, b):
    x = numbered((2, 3, 4), np.int32)
    expected = x.swapaxes(a, b)
    got = call("aten::transpose_copy.int_out", x, a, b, np.zeros(expected.shape, np.int32))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape", [(), (4,)])
def test_few_dims(shape):
    x, out = np.full(shape, 3, np.float32), np.zeros(shape, np.float32)
    np.testing.assert_array_equal(call("aten::t_copy.out", x, out), x)
    np.testing.assert_array_equal(call("aten::transpose_copy.int_out", x, 0, -1, out), x)


def test_rank_16():
    shape = (2, 1, 3, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1, 3)
    x = numbered(shape, np.int16)
    dims = list(reversed(range(16)))
    got = call("aten::permute_copy.out", x, dims, np.zeros(shape[::-1], np.int16))
    np.testing.assert_array_equal(got, x.T)


def test_not_a_number_keeps_its_bits():
    x = np.array([[0x7F800001, 0xFFC12345]], np.uint32)
    out = np.zeros((2, 1), np.float32)
    got = call("aten::permute_copy.out", x.view(np.float32), [1, 0], out)
    np.testing.assert_array_equal(got.view(np.uint32), x.T)


M, T = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
EACH, NO_DIM = "names each dim once", "no such dim"


@pytest.mark.parametrize(
    "operator, arguments, reason",
    [
        ("permute_copy.out", (M, [1], T), EACH),
        ("permute_copy.out", (M, [1, 0, 2], T), EACH),
        ("permute_copy.out", (M, [1, 1], T), EACH),
        ("permute_copy.out", (M, [1, -1], T), EACH),
        ("permute_copy.out", (M, [0, 2], T), EACH),
        ("permute_copy.out", (M, [-3, 0], T), EACH),
        ("permute_copy.out", (M, [2**32, 1], T), EACH),
        ("permute_copy.out", (M, [1, 0], T.astype(np.int32)), "dtype"),
        ("permute_copy.out", (M, [1, 0], M.copy()), "sizes"),
        ("permute_copy.out", (M, [1, 0], np.ones(6, np.float32)), "sizes"),
        ("transpose_copy.int_out", (M, 0, 2, T), NO_DIM),
        ("transpose_copy.int_out", (M, -3, 0, T), NO_DIM),
        ("transpose_copy.int_out", (M, 0, 2**32, T), NO_DIM),
        ("transpose_copy.int_out", (M, 0, 0, T), "sizes"),
        ("t_copy.out", (np.ones((1, 1, 1)), np.ones((1, 1, 1))), "at most 2 dims"),
        ("t_copy.out", (M, T.astype(np.int32)), "dtype"),
    ],
)
def test_rejections(operator, arguments, reason):
    with pytest.raises(KernelError) as refusal:
        call(f"aten::{operator}", *arguments)
    assert (refusal.value.stage, refusal.value.name) == ("check", "InvalidArgument")
    assert reason in refusal.value.reason
