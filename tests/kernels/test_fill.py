"""Compare full, full_like, fill, zeros, ones, empty, scalar_tensor and arange with numpy."""

import numpy as np
import pytest
from support.kernel_call import KernelError, call, channels_last

DTYPES = [np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, bool]


def test_fill_channels_last():
    out = channels_last(np.zeros((2, 3, 4, 5), np.float32))
    assert (call("aten::full.out", [2, 3, 4, 5], -1.5, out) == -1.5).all()


@pytest.mark.parametrize("value, dtype, expected", [
    (2.5, np.float32, 2.5), (-3, np.int64, -3), (True, bool, True), (float("inf"), np.float32, np.inf)])
def test_scalar_tensor(value, dtype, expected):
    assert call("aten::scalar_tensor.out", value, np.zeros((), dtype)) == expected


RANGES = [(0, 7, 1), (2, 12, 3), (0, 5, 1.0), (3, 3, 1), (0.5, 3, 1), (5, -1, -2), (9, 8, -1)]


def holds(dtype, values):
    with np.errstate(invalid="ignore"):
        return (values.astype(dtype) == values).all()


@pytest.mark.parametrize("start, end, step, dtype", [
    (*r, dtype) for r in RANGES for dtype in DTYPES[:-1] if holds(dtype, np.arange(*r))])
def test_arange(start, end, step, dtype):
    expected = np.arange(start, end, step).astype(dtype)
    got = call("aten::arange.start_out", start, end, step, np.zeros(len(expected), dtype))
    np.testing.assert_array_equal(got, expected)
    if (start, step) == (0, 1):
        got = call("aten::arange.out", end, np.zeros(len(expected), dtype))
        np.testing.assert_array_equal(got, expected)


def test_arange_rounds_each_float_once():
    got = call("aten::arange.start_out", 0.1, 1.0, 0.1, np.zeros(9, np.float32))
    np.testing.assert_array_equal(got, (0.1 + np.arange(9) * 0.1).astype(np.float32))


def test_arange_at_the_ends_of_int64():
    low, high = -2**63, 2**63 - 1
    got = call("aten::arange.start_out", low, high, 2**62, np.zeros(4, np.int64))
    assert got.tolist() == [low, low + 2**62, 0, 2**62]
    got = call("aten::arange.start_out", high, low, low, np.zeros(2, np.int64))
    assert got.tolist() == [high, -1]


X = np.zeros(3, np.float32)


@pytest.mark.parametrize("operator, arguments, reason, name", [
    ("full.out", [[4], 1, X], "sizes differ from those", None),
    ("full.out", [[-1], 1, X], "a size is out of range", None),
    ("full.out", [[3, 2**31], 1, X], "a size is out of range", None),
    ("full.out", [[1] * 17, 1, X], "more than 16", "NotSupported"),
    ("full.out", [[3], 1, X.astype(np.uint16)], "cannot be filled", "NotSupported"),
    ("full_like.out", [X[:2], 1, None, X], "sizes differ from those", None),
    ("zeros.out", [[], X], "sizes differ from those", None),
    ("scalar_tensor.out", [1, X], "sizes differ from those", None),
    ("fill.Scalar_out", [X[:1], 1, X], "sizes differ from those", None),
    ("fill.Tensor_out", [X, X[:1], X.copy()], "0-d tensor", None),
    ("fill.Tensor_out", [X, np.array(1, np.uint16), X.copy()], "0-d tensor", None),
    ("arange.out", [4, X], "sizes differ from those", None),
    ("arange.out", [-3, X], "does not lead", None),
    ("arange.out", [float("nan"), X], "does not lead", None),
    ("arange.out", [2**62, X], "does not lead", None),
    ("arange.start_out", [0, 3, 0, X], "does not lead", None),
    ("arange.start_out", [0, 3, -1, X], "does not lead", None),
    ("arange.start_out", [0, 3.0, 0, X], "does not lead", None),
    ("arange.start_out", [-2**63, 2**63 - 1, 1, X], "does not lead", None),
])
def test_rejections(operator, arguments, reason, name):
    with pytest.raises(KernelError, match=reason) as error:
        call(f"aten::{operator}", *arguments)
    assert (error.value.name, error.value.stage) == (name or "InvalidArgument", "check")
