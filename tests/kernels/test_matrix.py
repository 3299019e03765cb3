"""Compare matrix products with numpy: aten::mm, addmm, bmm, linear and dot."""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call

pytestmark = pytest.mark.check

DTYPES = [np.float32, np.float64, np.uint8, np.int8, np.int16, np.int32, np.int64]


def random(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def blank(shape, dtype):
    return np.full(shape, 77, dtype)


def wide(array):
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def assert_matches(got, expected):
    if got.dtype.kind == "f":
        tolerance = 1e-6 if got.dtype == np.float32 else 1e-14
        np.testing.assert_allclose(got, expected, rtol=10 * tolerance, atol=4 * tolerance)
    else:
        np.testing.assert_array_equal(got, expected.astype(got.dtype))




def test_addmm_with_fractions():
    a, b, add = np.float32([[1, 2]]), np.float32([[3], [4]]), np.float32([8])
    got = call("aten::addmm.out", add, a, b, 0.25, 0.5, blank((1, 1), np.float32))
    np.testing.assert_array_equal(got, [[7.5]])
    got = call("aten::addmm.out", add.astype(float), a.astype(float), b.astype(float), 0.25, 0.5,
               blank((1, 1), np.float64))
    np.testing.assert_array_equal(got, [[7.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_addmm_ignores_self_when_beta_is_0(dtype):
    a, b, add = np.ones((2, 3), dtype), np.ones((3, 2), dtype), np.array([np.nan, np.inf], dtype)
    got = call("aten::addmm.out", add, a, b, 0, 2, blank((2, 2), dtype))
    np.testing.assert_array_equal(got, np.full((2, 2), 6))


def test_linear_of_a_vector():
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    got = call("aten::linear.out", np.float32([1, 0, 2]), w, None, blank(4, np.float32))
    np.testing.assert_array_equal(got, w @ [1, 0, 2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 9])
def test_dot(dtype, n):
    rng = np.random.default_rng(n)
    a, b = random(rng, n, dtype), random(rng, n, dtype)
    assert_matches(call("aten::dot.out", a, b, blank((), dtype)), wide(a) @ wide(b))


F = np.ones((3, 3), np.float32)
V = np.ones(3, np.float32)
REFUSALS = [
    ("mm", (V, F, F), "InvalidArgument", "rank"),
    ("mm", (F, np.ones((2, 3), np.float32), F), "InvalidArgument", "fit together"),
    ("mm", (F.astype(bool), F, F), "NotSupported", "dtype"),
    ("mm", (F, F.astype(np.float64), F), "InvalidArgument", "one dtype"),
    ("mm", (F, F, F.astype(np.int32)), "InvalidArgument", "one dtype"),
    ("mm", (F, Tensor(F.copy(), (1, 0)), F), "NotSupported", "contiguous"),
    ("mm", (F, F, F[:2]), "InvalidArgument", "output"),
    ("bmm", (F[None], np.ones((2, 3, 3), np.float32), F[None]), "InvalidArgument", "batch"),
    ("bmm", (F, F, F), "InvalidArgument", "rank"),
    ("dot", (V, V[:2], V[0]), "InvalidArgument", "fit together"),
    ("dot", (V, V, V[:1]), "InvalidArgument", "output"),
    ("linear", (F, F[:, :2], None, F), "InvalidArgument", "weight"),
    ("linear", (F, V, None, F), "InvalidArgument", "weight"),
    ("linear", (np.float32(1), F, None, F), "InvalidArgument", "weight"),
    ("linear", (F, F, V[:2], F), "InvalidArgument", "bias"),
    ("linear", (F, F, V.astype(int), F), "InvalidArgument", "bias"),
    ("linear", (F, F, F, F), "InvalidArgument", "bias"),
    ("linear", (F, F.astype(int), None, F), "InvalidArgument", "one dtype"),
    ("linear", (F, F, None, F[None]), "InvalidArgument", "output"),
    ("addmm", (V[:2], F, F, 1, 1, F), "InvalidArgument", "broadcast"),
    ("addmm", (F[None], F, F, 1, 1, F), "InvalidArgument", "broadcast"),
    ("addmm", (V.astype(int), F, F, 1, 1, F), "InvalidArgument", "one dtype"),
    ("addmm", (V, F, F, 1, 1, F[:1]), "InvalidArgument", "output"),
    ("addmm", (V, V, F, 1, 1, F), "InvalidArgument", "rank"),
    ("addmm", (*[F.astype(int)] * 3, 0.5, 1, F.astype(int)), "InvalidArgument", "integers"),
    ("addmm", (*[F.astype(int)] * 3, 1, 2.0, F.astype(int)), "InvalidArgument", "integers"),
]


@pytest.mark.parametrize("operator, arguments, name, reason", REFUSALS)
def test_rejections(operator, arguments, name, reason):
    arguments = [np.array(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arguments]
    with pytest.raises(KernelError) as refusal:
        call(f"aten::{operator}.out", *arguments)
    assert (refusal.value.stage, refusal.value.name) == ("check", name)
    assert reason in refusal.value.reason


def test_huge_matrices_without_elements_need_no_time():
    n = 2**27
    tall, wide, nothing = (np.zeros(s, np.float32) for s in [(n, 0), (0, n), (0, 0)])
    assert call("aten::mm.out", tall, nothing, tall.copy()).shape == tall.shape
    assert call("aten::mm.out", nothing, wide, wide.copy()).shape == wide.shape
    one = np.zeros(1, np.float32)
    assert call("aten::addmm.out", one, tall, nothing, 1, 1, tall.copy()).shape == tall.shape
    assert call("aten::linear.out", nothing, tall, None, wide.copy()).shape == wide.shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_addmm_omits_a_term_with_factor_zero(dtype):
    numbers, none = np.full((2, 2), 3, dtype), np.full((2, 2), np.nan, dtype)
    out = blank((2, 2), dtype)
    assert (call("aten::addmm.out", numbers, none, none.copy(), 2, 0, out) == 6).all()
    assert (call("aten::addmm.out", none, numbers, numbers.copy(), 0, 2, out) == 36).all()
