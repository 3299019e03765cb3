"""Test inverses, linear equations, determinants and factors of matrices: singular, empty, large and odd
matrices, and errors.

tests/kernels/oracles/linear_algebra.py makes random calls.
"""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call

DTYPES = ["float32", "float64"]
NAN, INF = float("nan"), float("inf")


def blank(*sizes, dtype="float32"):
    return np.full(sizes, 77, dtype)


def infos(*batch):
    return blank(*batch, dtype="int32")


def inverse(a, raises=False):
    return call("aten::linalg_inv_ex.inverse", a, raises, np.zeros_like(a), infos(*a.shape[:-2]))


def factors(a):
    return np.zeros_like(a), infos(*a.shape[:-1])


def solve(a, b, left=True, raises=False):
    return call("aten::_linalg_solve_ex.result", a, b, left, raises, np.zeros_like(b), *factors(a),
                infos(*a.shape[:-2]))[0]


def det(a):
    return call("aten::_linalg_det.result", a, blank(*a.shape[:-2], dtype=a.dtype), *factors(a))[0]


def slogdet(a):
    number = blank(*a.shape[:-2], dtype=a.dtype)
    return call("aten::_linalg_slogdet.sign", a, number, number.copy(), *factors(a))[:2]


def lu_factor(a, pivot=True, raises=False):
    pivots = infos(*a.shape[:-2], min(a.shape[-2:]))
    return call("aten::linalg_lu_factor_ex.out", a, pivot, raises, np.zeros_like(a), pivots,
                infos(*a.shape[:-2]))


def cholesky(a, upper=False, raises=False):
    return call("aten::linalg_cholesky_ex.L", a, upper, raises, np.zeros_like(a), infos(*a.shape[:-2]))


def triangular(a, b, upper=True, left=True, unit=False):
    return call("aten::linalg_solve_triangular.out", a, b, upper, left, unit, np.zeros_like(b))


def qr(a, mode="reduced"):
    rows, columns = a.shape[-2:]
    inner = rows if mode == "complete" else min(rows, columns)
    return call("aten::linalg_qr.out", a, mode, blank(*a.shape[:-1], inner, dtype=a.dtype),
                blank(*a.shape[:-2], inner, columns, dtype=a.dtype))


def svd(a, full=False):
    rows, columns = a.shape[-2:]
    fewer, batch = min(rows, columns), a.shape[:-2]
    left, right = (rows, columns) if full else (fewer, fewer)
    return call("aten::_linalg_svd.U", a, full, True, None, blank(*batch, rows, left, dtype=a.dtype),
                blank(*batch, fewer, dtype=a.dtype), blank(*batch, right, columns, dtype=a.dtype))


def eigh(a, uplo="L"):
    return call("aten::_linalg_eigh.eigenvalues", a, uplo, True, blank(*a.shape[:-1], dtype=a.dtype),
                np.zeros_like(a))


def turned(a):
    return np.swapaxes(a, -1, -2)


def random(*sizes, dtype="float32"):
    return np.random.default_rng(sizes).normal(size=sizes).astype(dtype)


def assert_near(one, other, ulps, size=1):
    """Assert that the difference is at most `ulps` units of the last place of `size`."""
    bound = ulps * size * np.finfo(one.dtype).eps
    np.testing.assert_allclose(one.astype(float), other, 0, bound)


# ---- singular matrices: torch's results, by the first pivot that is 0

SINGULAR = [([[0, 1], [0, 1]], 1), ([[0, 0], [1, 1]], 2), ([[1, 2], [2, 4]], 2), ([[0]], 1),
            ([[1, 0, 0], [0, 0, 0], [0, 0, 1]], 2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("a, info", SINGULAR)
def test_a_singular_matrix_has_an_info(a, info, dtype):
    a = np.array(a, dtype)
    found, given = inverse(a)
    assert given == info
    assert not np.isfinite(found).all()
    assert lu_factor(a)[2] == info
    assert det(a) == 0
    sign, logarithm = slogdet(a)
    assert (sign, logarithm) == (0, -INF)


def test_an_info_for_each_matrix():
    a = np.float32([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)])
    found, given = inverse(a)
    assert given.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(found[[0, 2]], [np.eye(2), np.eye(2) / 2])


@pytest.mark.parametrize("operation, words", [
    (lambda a: inverse(a, True), "singular"),
    (lambda a: solve(a, a, raises=True), "singular"),
    (lambda a: lu_factor(a, raises=True), "singular"),
    (lambda a: cholesky(a, raises=True), "not positive definite"),
])
def test_singular_matrices_are_errors_where_the_caller_wants_it(operation, words):
    operation(np.eye(2, dtype=np.float32))
    with pytest.raises(KernelError, match=f"^InvalidArgument in run: a matrix is {words}$"):
        operation(np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("a, info", [
    ([[4, 2, 6], [2, 1, 7], [6, 7, 9]], 2), ([[0]], 1), ([[-1]], 1), ([[NAN]], 1),
    ([[1, 0, 0], [0, 1, 0], [0, 0, -2]], 3)])
def test_a_matrix_that_is_not_positive_definite_has_an_info(a, info, upper):
    found, given = cholesky(np.float32(a), upper)
    assert given == info
    other = np.tril(found, -1) if upper else np.triu(found, 1)
    assert not other.any()


def test_the_columns_before_are_factored():
    found, _ = cholesky(np.float32([[4, 2, 6], [2, 1, 7], [6, 7, 9]]))
    np.testing.assert_array_equal(found, [[2, 0, 0], [1, 0, 0], [3, 7, 9]])


def test_a_triangle_with_a_zero_on_its_diagonal():
    a, b = np.float32([[1, 2], [0, 0]]), np.float32([[1], [1]])
    np.testing.assert_array_equal(triangular(a, b), [[-INF], [INF]])
    np.testing.assert_array_equal(triangular(a, b, unit=True), [[-1], [1]])


# ---- exact results

def test_pivots_and_factors():
    lu, pivots, info = lu_factor(np.float32([[1, 2, 4], [4, 8, 12], [2, 8, 2]]))
    np.testing.assert_array_equal(lu, [[4, 8, 12], [0.5, 4, -4], [0.25, 0, 1]])
    assert (pivots.tolist(), info) == ([2, 3, 3], 0)


def test_determinants():
    a = np.float32([[[0, 1], [1, 0]], [[2, 0], [0, 3]]])
    np.testing.assert_array_equal(det(a), [-1, 6])
    sign, logarithm = slogdet(a)
    assert sign.tolist() == [-1, 1]
    np.testing.assert_allclose(logarithm, np.log([1, 6]), 1e-6)


def test_the_logarithm_of_a_determinant_beyond_float32():
    sign, logarithm = slogdet(np.float32(-1e30 * np.eye(3)))
    assert sign == -1
    np.testing.assert_allclose(logarithm, 90 * np.log(10), 1e-6)


def test_signs_of_a_factor_r():
    """The signs are LAPACK's: opposite to the diagonal, except if all elements below are 0."""
    q, r = qr(np.float32([[3, 1], [4, 1]]))
    np.testing.assert_allclose(r, [[-5, -1.4], [0, -0.2]], 1e-5)
    np.testing.assert_allclose(q @ r, [[3, 1], [4, 1]], 1e-5)
    q, r = qr(np.float32([[3, 1], [0, -2]]))
    np.testing.assert_array_equal(q, np.eye(2))
    np.testing.assert_array_equal(r, [[3, 1], [0, -2]])


def test_diagonal_matrices_are_exact():
    a = np.float32(np.diag([3, 1e-10, 7, 0, 1e10]))
    u, s, vh = svd(a)
    assert s.tolist() == np.float32([1e10, 7, 3, 1e-10, 0]).tolist()
    values, vectors = eigh(-a)
    assert values.tolist() == np.float32([-1e10, -7, -3, -1e-10, 0]).tolist()
    np.testing.assert_array_equal(np.abs(vectors), np.eye(5)[[4, 2, 0, 1, 3]].T)


def test_one_vector_for_all_matrices_and_one_for_each():
    a = np.float32([np.eye(2), 2 * np.eye(2)])
    for b in (np.float32([1, 2]), np.float32([[1, 2], [1, 2]])):
        result = blank(2, 2)
        found = call("aten::_linalg_solve_ex.result", a, b, True, False, result, *factors(a), infos(2))
        np.testing.assert_array_equal(found[0], [[1, 2], [0.5, 1]])


# ---- empty matrices

@pytest.mark.parametrize("batch", [(), (2,), (0,), (0, 3)])
@pytest.mark.parametrize("n", [0, 2])
def test_empty_matrices_and_batches(batch, n):
    a = np.broadcast_to(np.eye(n, dtype=np.float32), (*batch, n, n)).copy()
    np.testing.assert_array_equal(det(a), np.ones(batch))
    sign, logarithm = slogdet(a)
    np.testing.assert_array_equal(sign, np.ones(batch))
    np.testing.assert_array_equal(logarithm, np.zeros(batch))
    for found, info in (inverse(a), cholesky(a)):
        np.testing.assert_array_equal(found, a)
        np.testing.assert_array_equal(info, np.zeros(batch))
    np.testing.assert_array_equal(solve(a, a), a)
    np.testing.assert_array_equal(triangular(a, a), a)
    np.testing.assert_array_equal(eigh(a)[0], np.ones((*batch, n)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (1,)])
def test_a_matrix_has_factors_where_there_is_nothing_to_solve(batch, dtype):
    a = np.broadcast_to(np.array([[0, 2], [4, 1]], dtype), (*batch, 2, 2)).copy()
    result, lu, pivots, info = call(
        "aten::_linalg_solve_ex.result", a, blank(0, 2, 3, dtype=dtype), True, False,
        blank(0, 2, 3, dtype=dtype), *factors(a), infos(*batch))
    assert result.shape == (0, 2, 3)
    np.testing.assert_array_equal(lu, np.broadcast_to([[4, 1], [0, 2]], lu.shape))
    np.testing.assert_array_equal(pivots, np.broadcast_to([2, 2], pivots.shape))
    np.testing.assert_array_equal(info, np.zeros(batch))
    with pytest.raises(KernelError, match="a matrix is singular"):
        call("aten::_linalg_solve_ex.result", 0 * a, blank(0, 2, 3, dtype=dtype), True, True,
             blank(0, 2, 3, dtype=dtype), *factors(a), infos(*batch))


@pytest.mark.parametrize("rows, columns", [(3, 0), (0, 3), (0, 0)])
def test_orthogonal_factors_of_nothing_are_identities(rows, columns):
    a = np.zeros((2, rows, columns), np.float32)
    u, s, vh = svd(a, full=True)
    q, _ = qr(a, "complete")
    np.testing.assert_array_equal(u, [np.eye(rows)] * 2)
    np.testing.assert_array_equal(q, [np.eye(rows)] * 2)
    np.testing.assert_array_equal(vh, [np.eye(columns)] * 2)
    assert s.shape == (2, 0)


# ---- large and ill-conditioned matrices

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [16, 64])
def test_large_matrices(n, dtype):
    """The residuals are in ulps of the largest norm, as LAPACK's, with some tolerance."""
    a = random(n, n, dtype=dtype)
    size = np.linalg.norm(a, 2)
    found, info = inverse(a)
    assert info == 0
    assert_near(a @ found, np.eye(n), 4, size * np.linalg.norm(found, 2))
    b = random(n, 3, dtype=dtype)
    x = solve(a, b)
    assert_near(a @ x, b, 4, size * np.linalg.norm(x, 2))
    x = solve(a, b.T.copy(), left=False)
    assert_near(x @ a, b.T, 4, size * np.linalg.norm(x, 2))
    positive = a @ a.T + np.eye(n, dtype=dtype)
    factor, info = cholesky(positive)
    assert info == 0
    assert_near(factor @ factor.T, positive, 4, size**2)
    q, r = qr(a)
    assert_near(q @ r, a, 8, size)
    assert_near(q.T @ q, np.eye(n), 16)
    u, s, vh = svd(a)
    assert_near(s, np.linalg.svd(a.astype(float), compute_uv=False), 8, size)
    assert_near((u * s) @ vh, a, 8, size)
    assert_near(u.T @ u, np.eye(n), 16)
    assert_near(vh @ vh.T, np.eye(n), 16)
    symmetric = a + a.T
    values, vectors = eigh(symmetric)
    assert_near(values, np.linalg.eigvalsh(symmetric.astype(float)), 16, 2 * size)
    assert_near((vectors * values) @ vectors.T, symmetric, 8, 2 * size)
    assert_near(vectors.T @ vectors, np.eye(n), 16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ill_conditioned_matrices(dtype):
    """For Hilbert's matrices the solution has a large unavoidable error, but a small residual."""
    n = 12
    a = (1 / (np.arange(n)[:, None] + np.arange(n) + 1)).astype(dtype)
    b = a.sum(1, keepdims=True)
    x = solve(a, b)
    assert_near(a @ x, b, 8, np.linalg.norm(x))
    u, s, vh = svd(a)
    assert_near((u * s) @ vh, a, 8)
    assert_near(u.T @ u, np.eye(n), 16)
    assert_near(vh @ vh.T, np.eye(n), 16)
    q, r = qr(a)
    assert_near(q @ r, a, 8)
    assert_near(q.T @ q, np.eye(n), 8)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("a", [
    np.zeros((4, 3)), np.ones((5, 3)), np.ones((3, 5)), np.outer(range(6), range(4)),
    np.tri(9) @ np.diag([1, 0, 0, 2, 0, 1, 0, 0, 3]), np.float64([[1e-30, 1], [1e-30, 1]])])
def test_vectors_are_orthonormal_where_singular_values_are_0(a, full):
    a = np.float32(a)
    u, s, vh = svd(a, full)
    n = len(s)
    assert_near((u[:, :n] * s) @ vh[:n], a, 16, max(s[0], 1e-30))
    assert_near(u.T @ u, np.eye(u.shape[1]), 16)
    assert_near(vh @ vh.T, np.eye(len(vh)), 16)
    assert (np.diff(s) <= 0).all()


@pytest.mark.parametrize("scale", [2.0**-140, 2.0**-120, 2.0**125])
def test_numbers_whose_squares_overflow_or_vanish(scale):
    """The results scale with the matrix, except for roundings of subnormal numbers."""
    a = np.float32([[1, 0.5, 0.25], [0.5, 1, 0.75], [0.25, 0.75, 1]])
    small = np.float32(a * np.float32(scale))
    bound = max(scale * 1e-6, 2.0**-146)
    for s, wanted in ((svd(small)[1], svd(a)[1]), (eigh(small)[0], eigh(a)[0])):
        np.testing.assert_allclose(s, wanted.astype(float) * scale, 0, bound)
    q, r = qr(small)
    np.testing.assert_allclose(q.astype(float) @ r, small, 0, 4 * bound)


# ---- NaN and infinities

@pytest.mark.parametrize("odd", [NAN, INF, -INF])
@pytest.mark.parametrize("operation", [svd, eigh])
def test_a_number_that_is_not_finite_is_an_error(odd, operation):
    """PyTorch's svd and eigh raise an error, too."""
    a = np.eye(3, dtype=np.float32)
    a[2, 1] = odd
    with pytest.raises(KernelError, match="^InvalidArgument in run: a matrix has an infinity or"):
        operation(a)


def test_eigenvalues_come_from_one_triangle():
    a = np.float32([[1, NAN], [2, 1]])
    np.testing.assert_allclose(eigh(a)[0], [-1, 3], 1e-6)
    np.testing.assert_allclose(eigh(a.T.copy(), "U")[0], [-1, 3], 1e-6)


def test_the_others_return_a_nan_for_a_nan():
    a = random(8, 8)
    a[3, 3] = NAN
    found, info = inverse(a)
    assert info == 0
    for result in (found, solve(a, a), det(a), slogdet(a)[0], lu_factor(a)[0], qr(a)[0]):
        assert np.isnan(result).any()


def test_an_infinite_pivot():
    found, info = inverse(np.float32([[INF, 0], [0, 2]]))
    assert info == 0
    np.testing.assert_array_equal(found, [[0, 0], [0, 0.5]])
    assert np.isnan(qr(np.float32([[INF, 1], [1, INF]]))[0]).any()


# ---- errors

SQUARE, WIDE, VECTOR = np.eye(2, dtype=np.float32), random(2, 3), random(2)


@pytest.mark.parametrize("operation", [
    lambda: inverse(WIDE), lambda: det(WIDE), lambda: cholesky(WIDE), lambda: eigh(WIDE),
    lambda: solve(WIDE, WIDE), lambda: triangular(WIDE, WIDE)])
def test_matrices_that_are_not_square(operation):
    with pytest.raises(KernelError, match="^InvalidArgument in check: the matrices must be square$"):
        operation()


@pytest.mark.parametrize("operation", [
    lambda: call("aten::linalg_qr.out", VECTOR, "r", blank(0), blank(2)),
    lambda: call("aten::linalg_inv_ex.inverse", VECTOR, False, blank(2), infos())])
def test_vectors_are_no_matrices(operation):
    with pytest.raises(KernelError, match="^InvalidArgument in check: a matrix must have two dims$"):
        operation()


@pytest.mark.parametrize("operation", [
    lambda: solve(SQUARE, VECTOR, left=False), lambda: solve(SQUARE, random(3, 2)),
    lambda: solve(SQUARE, random(2, 3), left=False), lambda: solve(SQUARE, SQUARE.astype(float)),
    lambda: triangular(SQUARE, random(3, 2)), lambda: triangular(SQUARE, random(2, 3), left=False),
    lambda: triangular(SQUARE, VECTOR)])
def test_operands_that_do_not_fit(operation):
    with pytest.raises(KernelError, match="^InvalidArgument in check: the operands do not fit"):
        operation()


@pytest.mark.parametrize("operation", [solve, triangular])
def test_batches_that_do_not_broadcast(operation):
    with pytest.raises(KernelError, match="^InvalidArgument in check: the operands do not broadcast$"):
        operation(np.float32([SQUARE] * 2), random(3, 2, 2))


def test_words_that_are_none():
    with pytest.raises(KernelError, match="mode must be reduced, complete or r"):
        qr(WIDE, "full")
    with pytest.raises(KernelError, match="UPLO must be L or U"):
        eigh(SQUARE, "lower")


def test_factors_without_pivoting():
    with pytest.raises(KernelError, match="^NotSupported in check: factors without pivoting$"):
        lu_factor(SQUARE, pivot=False)


def test_outputs_of_another_dtype():
    with pytest.raises(KernelError, match="^InvalidArgument in check: an output has another dtype$"):
        call("aten::linalg_inv_ex.inverse", SQUARE, False, SQUARE.astype(float), infos())
    with pytest.raises(KernelError, match="^InvalidArgument in check: an output has another dtype$"):
        call("aten::linalg_inv_ex.inverse", SQUARE, False, SQUARE, blank())


def test_a_matrix_that_scratch_does_not_hold():
    a = np.zeros((1, 5800, 0), np.float32)
    with pytest.raises(KernelError, match="^NotSupported in check: a matrix is too large$"):
        call("aten::_linalg_svd.U", a, True, True, None, np.zeros((1, 5800, 5800), np.float32),
             np.zeros((1, 0), np.float32), np.zeros((1, 0, 0), np.float32))


def test_outputs_in_the_order_of_columns():
    """The exporter writes outputs in this order, which is LAPACK's."""
    a = random(4, 4) + 4 * np.eye(4, dtype=np.float32)
    found, _ = call("aten::linalg_inv_ex.inverse", a, False, Tensor(np.zeros_like(a), (1, 0)), infos())
    np.testing.assert_array_equal(found, inverse(a)[0])
