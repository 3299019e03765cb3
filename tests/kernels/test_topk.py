"""Test topk: its choice among equal elements, a number as input, and its errors."""

import numpy as np
import pytest
from support.kernel_call import KernelError, call
from support.selected import hard_to_select, topk_indices

# Results of ExecuTorch's runtime: row, largest, sorted, indices
NAMED = [
    ("112300321133311130010202", True, True, [16, 3, 12, 11, 6, 10, 23, 21, 7]),
    ("333331200131232332312021", False, False, [23, 11, 9, 21, 8, 7, 5, 19, 14]),
    ("2012200330203102330003221020000132210222", False, True,
     [36, 6, 5, 1, 9, 11, 14, 18, 20, 25, 27, 30, 29, 19, 28, 35, 24, 2, 31, 13, 22, 23, 26, 10, 15, 34,
      4, 3, 33, 0, 37, 38, 39, 12, 16, 7, 21, 32, 17, 8]),
    ("13333023123222032031023222300022322121222230012121213002213102132", True, True, [1]),
    ("1001212202132232323303110331032210201001300301210300212302110011"
     "210330212303200100003003212023222212301030102330302323330112031310", False, True, [2, 1]),
    ("2220303020031130003102000322001000210111332232303131331311033311"
     "211212321202331121231331303030311012112110210213000022023200223330", True, True, [88, 90, 48]),
]


def named(row, k, largest, is_sorted=True):
    """Return the indices that topk returns; its values are the elements there."""
    values, indices = call("aten::topk.values", row, k, 0, largest, is_sorted, np.zeros(k, row.dtype),
                           np.zeros(k, np.int64))
    np.testing.assert_array_equal(values, row[indices])
    return indices.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64"])
@pytest.mark.parametrize("row, largest, is_sorted, indices", NAMED)
def test_equal_elements(row, largest, is_sorted, indices, dtype):
    row = np.array([int(digit) for digit in row], dtype)
    assert named(row, len(indices), largest, is_sorted) == indices
    assert topk_indices(row.tolist(), len(indices), largest, is_sorted) == indices


@pytest.mark.parametrize("n, k", [(300, 300), (300, 150), (1000, 500)])
@pytest.mark.parametrize("largest", [False, True])
def test_after_too_many_partitions_a_heap_is_used(n, k, largest):
    row, by_heap = np.array(hard_to_select(n, k)) // 2 * (-1 if largest else 1), []
    assert named(row, k, largest) == topk_indices(row.tolist(), k, largest, counts=by_heap)
    assert by_heap == ["select", "sort"]


@pytest.mark.parametrize("k, dtype", [(1, "int8"), (31, "float32"), (32, "int64"), (2000, "int16")])
def test_a_long_row(k, dtype):
    row = np.random.default_rng(k).integers(0, 9, 2000).astype(dtype)
    assert named(row, k, True) == topk_indices(row.tolist(), k)


@pytest.mark.parametrize("k", [0, 1])
def test_a_number(k):
    """PyTorch returns the number itself, for either k."""
    value, index = call("aten::topk.values", np.float32([2.5]).reshape(()), k, -1, True, True,
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
    ((X, 2, 1, True, True, VALUES, PLACES), "sizes differ from those"),
    ((X.astype(bool), 1, 1, True, True, VALUES.astype(bool), PLACES), "not compared"),
])
def test_rejections(arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call("aten::topk.values", *arguments)
    assert error.value.stage == "check"
