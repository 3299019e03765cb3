"""topk of a number, and what it refuses."""

import numpy as np
import pytest
from support.kernel_call import KernelError, call


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
    ((X, 2, 1, True, True, VALUES, PLACES), "sizes differ from those"),
    ((X.astype(bool), 1, 1, True, True, VALUES.astype(bool), PLACES), "not compared"),
])
def test_refusals(arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call("aten::topk.values", *arguments)
    assert error.value.stage == "check"
