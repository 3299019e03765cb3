"""Operators of torch.linalg, for which ExecuTorch has no kernels."""

import torch
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture
from torch import linalg


def positive_definite(data: Data, *sizes: int) -> torch.Tensor:
    """Return symmetric matrices with eigenvalues of at least 1."""
    a = data.floats(*sizes)
    return a @ a.mT + torch.eye(sizes[-1])


@fixture
def linear_equations(data: Data) -> Model:
    """The inverse of matrices, their determinants and factors, and linear equations with them."""

    def solve(a, b):
        return (*linalg.inv_ex(a), *linalg.solve_ex(a, b), linalg.solve_ex(a, b[0, :, 0])[0],
                linalg.det(a), *linalg.slogdet(a), *linalg.lu_factor_ex(a),
                linalg.solve_triangular(a, b, upper=True))

    a = data.floats(2, 4, 4) + 3 * torch.eye(4)
    return Model(Function(solve), (a, data.floats(2, 4, 3)), edge=NOT_CORE, executorch_fails=True)


@fixture
def matrix_factors(data: Data) -> Model:
    """Factors of matrices, in forms in which signs of vectors cancel each other."""

    def factor(a, wide):
        u, s, vh = linalg.svd(wide, full_matrices=False)
        values, vectors = linalg.eigh(a)
        return (*linalg.cholesky_ex(a), linalg.cholesky_ex(a, upper=True)[0], *linalg.qr(wide),
                linalg.svdvals(wide), u * s[..., None, :] @ vh, values,
                vectors * values[..., None, :] @ vectors.mT)

    return Model(
        Function(factor),
        (positive_definite(data, 2, 4, 4), data.floats(2, 3, 5)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def dynamic_equations(data: Data) -> Model:
    """Least squares, by the pseudo-inverse of as many rows as there are."""
    rows = torch.export.Dim("rows", min=4, max=9)

    def solve(a, b):
        u, s, vh = linalg.svd(a, full_matrices=False)
        return vh.mT @ ((u.mT @ b) / s[:, None])

    return Model(
        Function(solve),
        (data.floats(6, 3), data.floats(6, 1)),
        dynamic_shapes=({0: rows}, {0: rows}),
        further=tuple((data.floats(n, 3), data.floats(n, 1)) for n in (9, 4, 5)),
        edge=NOT_CORE,
        executorch_fails=True,
    )
