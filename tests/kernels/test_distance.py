"""Compare cdist and pdist with numpy."""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call

NORMS = [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")]


def norm(differences, p):
    sizes = np.abs(differences.astype(np.float64))
    if p in (0, np.inf):
        return (sizes != 0).sum(-1) if p == 0 else sizes.max(-1, initial=0)
    return (sizes**p).sum(-1) ** (1 / p)


def close(dtype):
    return {"rtol": 1e-6, "atol": 1e-7} if dtype == "float32" else {"rtol": 3e-15, "atol": 1e-15}


def random(*sizes):
    return np.random.default_rng(len(sizes)).integers(-4, 5, sizes).astype(np.float32) / 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("a, b", [((3, 4), (5, 4)), ((2, 3, 4), (5, 4)), ((2, 1, 3, 4), (3, 1, 4)),
                                  ((1, 3, 4), (2, 2, 4)), ((3, 0), (2, 0)), ((0, 4), (2, 4))])
def test_cdist(a, b, p, dtype):
    x, y = random(*a).astype(dtype), random(*b).astype(dtype)
    expected = norm(x[..., :, None, :] - y[..., None, :, :], p)
    result = call("aten::_cdist_forward.out", x, y, p, None, np.zeros(expected.shape, dtype))
    np.testing.assert_allclose(result, expected, **close(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("sizes", [(4, 3), (2, 1), (1, 3), (0, 3)])
def test_pdist(sizes, p, dtype):
    x = random(*sizes).astype(dtype)
    first, second = np.triu_indices(len(x), 1)
    expected = norm(x[first] - x[second], p)
    result = call("aten::_pdist_forward.out", x, p, np.zeros(expected.shape, dtype))
    np.testing.assert_allclose(result, expected, **close(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_nan_is_the_largest_difference(dtype):
    x = np.array([[1, np.nan, 0], [0, 0, 0]], dtype)
    assert np.isnan(call("aten::_pdist_forward.out", x, float("inf"), np.zeros(1, dtype)))


X, OUT = random(3, 4), np.zeros((3, 3), np.float32)


@pytest.mark.parametrize("arguments, reason", [
    ((X, X, -1.0, None, OUT), "p must not be negative"),
    ((X, X, float("nan"), None, OUT), "p must not be negative"),
    ((X, X[:, :3], 2.0, None, OUT), "rows of one length"),
    ((X, X[0], 2.0, None, OUT), "rows of one length"),
    ((random(2, 3, 4), random(3, 3, 4), 2.0, None, OUT), "the batches do not broadcast"),
    ((Tensor(X, (1, 0)), X, 2.0, None, OUT), "contiguous"),
    ((X.astype(int), X.astype(int), 2.0, None, OUT.astype(int)), "does not support this dtype"),
    ((X.astype(np.float64), X, 2.0, None, OUT), "dtype must be the input's"),
])
def test_rejections(arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call("aten::_cdist_forward.out", *arguments)
    assert error.value.stage == "check"
