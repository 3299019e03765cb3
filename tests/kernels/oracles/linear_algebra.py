"""Define oracles of inverses, linear equations, determinants and factors of matrices.

Factors whose signs or order are arbitrary are multiplied: the result is the matrix, or the identity.
"""

import dataclasses

import numpy as np
from support.kernel_call import call

from .sample import Sample, oracle

UNIT = {"float32": 2e-5, "float64": 2e-13}


@dataclasses.dataclass
class Factors(Sample):
    """A sample whose outputs are factors. `expected` has the shapes of the outputs; `multiplied`
    returns pairs of arrays that are nearly equal."""

    multiplied: object = None

    def check(self, operator, draw):
        given = call(operator, *self.arguments, *self.outputs(draw))
        for one, other in self.multiplied(*given):
            np.testing.assert_allclose(one, other, 0, self.atol)


def drawn(draw, square=False):
    """Draw a batch of matrices; square ones are far from singular."""
    dtype = draw.pick("float32", "float64")
    batch = tuple(draw.int(0, 3) for _ in range(draw.int(0, 2)))
    rows = draw.int(0, 7)
    columns = rows if square else draw.int(0, 7)
    a = draw.random.uniform(-1, 1, (*batch, rows, columns))
    if square:
        a = a + np.eye(rows) * draw.pick(5, -5)
    return a.astype(dtype)


def turned(a):
    return np.swapaxes(a, -1, -2)


def close(arguments, expected, dtype, scale=1):
    unit = UNIT[np.dtype(dtype).name] * scale
    return Sample(arguments, expected, unit, unit)


def infos(a):
    return np.zeros(a.shape[:-2], "int32")


def factored(a):
    """Return L and U in one matrix, and pivots, in the format of LAPACK."""
    lu = a.astype(float)
    rows, columns = a.shape[-2:]
    pivots = np.zeros((*a.shape[:-2], min(rows, columns)), "int32")
    for place in np.ndindex(*a.shape[:-2]):
        one = lu[place]
        for k in range(min(rows, columns)):
            pivot = k + int(np.abs(one[k:, k]).argmax())
            pivots[(*place, k)] = pivot + 1
            one[[k, pivot]] = one[[pivot, k]]
            one[k + 1 :, k] /= one[k, k]
            one[k + 1 :, k + 1 :] -= np.outer(one[k + 1 :, k], one[k, k + 1 :])
    return lu.astype(a.dtype), pivots


@oracle("aten::linalg_inv_ex.inverse")
def inverse(draw, operator):
    a = drawn(draw, True)
    return close([draw.tensor(a), draw.chance()], [np.linalg.inv(a), infos(a)], a.dtype)


@oracle("aten::_linalg_solve_ex.result")
def solve(draw, operator):
    """Draw a matrix on either side, a vector for each matrix, or one vector for all."""
    a = drawn(draw, True)
    batch, n, kind = draw.narrowed(a.shape[:-2]), a.shape[-1], draw.pick("left", "right", "own", "one")
    left, k = kind != "right", draw.int(0, 4)
    shape = {"left": (*batch, n, k), "right": (*batch, k, n), "own": a.shape[:-1], "one": (n,)}[kind]
    b = draw.random.uniform(-1, 1, shape).astype(a.dtype)
    if kind == "left" and shape == a.shape[:-1]:
        kind = "own"
    if kind == "right" and (len(shape) == 1 or shape == a.shape[:-1]):
        return solve(draw, operator)
    inverse = np.linalg.inv(a.astype(float))
    if kind in ("own", "one"):
        expected = (inverse @ b[..., None])[..., 0]
    else:
        expected = inverse @ b if left else b @ inverse
    return close([draw.tensor(a), draw.tensor(b), left, draw.chance()],
                 [expected.astype(a.dtype), *factored(a), infos(a)], a.dtype)


@oracle("aten::_linalg_det.result", "aten::_linalg_slogdet.sign")
def determinant(draw, operator):
    a = drawn(draw, True)
    given = draw.tensor(a)
    contiguous = given.dim_order == tuple(range(a.ndim))
    expected = np.linalg.slogdet(a) if "slog" in operator else [np.linalg.det(a)]
    expected = [np.asarray(one, a.dtype) for one in expected]
    return close([given], [*expected, *factored(turned(a) if contiguous else a)], a.dtype)


@oracle("aten::linalg_lu_factor_ex.out")
def lu_factor(draw, operator):
    a = drawn(draw)
    return close([draw.tensor(a), True, draw.chance()], [*factored(a), infos(a)], a.dtype, 100)


@oracle("aten::linalg_cholesky_ex.L")
def cholesky(draw, operator):
    """Read one triangle; the other one is NaN."""
    a, upper = drawn(draw, True), draw.chance()
    positive = (a @ turned(a)).astype(float)
    expected = np.linalg.cholesky(positive) if a.size else positive
    other = np.triu(np.full(a.shape, np.nan), 1)
    given = np.where(np.isnan(other), other, positive).astype(a.dtype)
    expected = expected.astype(a.dtype)
    return close([draw.tensor(turned(given) if upper else given), upper, draw.chance()],
                 [turned(expected) if upper else expected, infos(a)], a.dtype)


@oracle("aten::linalg_solve_triangular.out")
def solve_triangular(draw, operator):
    a, upper, left, unit = drawn(draw, True), draw.chance(), draw.chance(), draw.chance()
    n, k, batch = a.shape[-1], draw.int(0, 4), draw.narrowed(a.shape[:-2])
    b = draw.random.uniform(-1, 1, (*batch, *((n, k) if left else (k, n)))).astype(a.dtype)
    triangle = (np.triu if upper else np.tril)(a).astype(float)
    if unit:
        triangle += np.eye(n) * (1 - triangle)
    inverse = np.linalg.inv(triangle)
    expected = inverse @ b if left else b @ inverse
    return close([draw.tensor(a), draw.tensor(b), upper, left, unit], expected.astype(a.dtype), a.dtype,
                 20)


@oracle("aten::linalg_qr.out")
def qr(draw, operator):
    a, mode = drawn(draw), draw.pick("reduced", "complete", "r")
    rows, columns = a.shape[-2:]
    inner = rows if mode == "complete" else min(rows, columns)
    q = np.zeros((*a.shape[:-2], rows, inner) if mode != "r" else (0,), a.dtype)
    r = np.zeros((*a.shape[:-2], inner, columns), a.dtype)

    def multiplied(q, r):
        yield r, np.triu(r)
        yield (turned(r) @ r, turned(a) @ a) if mode == "r" else (q @ r, a)
        if mode != "r":
            yield turned(q) @ q, identities(a, inner)

    return Factors([draw.tensor(a), mode], [q, r], atol=UNIT[a.dtype.name], multiplied=multiplied)


def identities(a, n):
    return np.broadcast_to(np.eye(n), (*a.shape[:-2], n, n))


@oracle("aten::_linalg_svd.U")
def svd(draw, operator):
    """Draw columns that may depend on each other, or be 0."""
    a, full, vectors = drawn(draw), draw.chance(), draw.chance()
    if a.shape[-1] > 2 and draw.chance():
        a[..., 1] = a[..., 0] * 2
        a[..., 2] = 0
    (rows, columns), fewer, batch = a.shape[-2:], min(a.shape[-2:]), a.shape[:-2]
    left, right = (rows, columns) if full else (fewer, fewer)
    s = np.linalg.svd(a, compute_uv=False) if a.size else np.zeros((*batch, fewer), a.dtype)
    u = np.zeros((*batch, rows, left) if vectors else (0,), a.dtype)
    vh = np.zeros((*batch, right, columns) if vectors else (0,), a.dtype)

    def multiplied(u, found, vh):
        yield found, s
        if vectors:
            yield u[..., :fewer] * found[..., None, :] @ vh[..., :fewer, :], a
            yield turned(u) @ u, identities(a, left)
            yield vh @ turned(vh), identities(a, right)

    return Factors([draw.tensor(a), full, vectors, None], [u, s, vh], atol=UNIT[a.dtype.name],
                   multiplied=multiplied)


@oracle("aten::_linalg_eigh.eigenvalues")
def eigh(draw, operator):
    """Read one triangle; the other one is NaN. Eigenvalues may be equal."""
    a, upper, vectors = drawn(draw, True), draw.chance(), draw.chance()
    a = (a + turned(a)) * np.asarray(draw.pick(1, 0), a.dtype)
    n = a.shape[-1]
    values = np.linalg.eigvalsh(a)
    given = np.where(np.tri(n, k=-1, dtype=bool).T, np.nan, a).astype(a.dtype)
    shapes = [values, np.zeros(a.shape if vectors else (0,), a.dtype)]

    def multiplied(found, v):
        yield found, values
        if vectors:
            yield v * found[..., None, :] @ turned(v), a
            yield turned(v) @ v, identities(a, n)

    return Factors([draw.tensor(turned(given) if upper else given),
                    draw.pick("U", "u") if upper else draw.pick("L", "l"), vectors], shapes,
                   atol=UNIT[a.dtype.name], multiplied=multiplied)
