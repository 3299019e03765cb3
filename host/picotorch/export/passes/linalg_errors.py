"""Replace functions of torch.linalg that ExecuTorch cannot lower.

Functions without kernels become functions that have them. A function that raises an error, for a
singular matrix say, becomes an operator that returns the result and raises the error itself: torch
makes the error an operator without a result, which ExecuTorch cannot lower.

Importing it imports torch.
"""

import operator
from typing import Any, TypeAlias

import torch

_ATEN = torch.ops.aten
_RAISING = {  # by the function: the one with check_errors, whose first result counts
    _ATEN.inverse.default: _ATEN.linalg_inv_ex.default,
    _ATEN.linalg_inv.default: _ATEN.linalg_inv_ex.default,
    _ATEN.linalg_solve.default: _ATEN.linalg_solve_ex.default,
    _ATEN.linalg_cholesky.default: _ATEN.linalg_cholesky_ex.default,
}
_FACTORS = {  # their first two results count
    _ATEN.linalg_lu_factor.default: _ATEN.linalg_lu_factor_ex.default}

# The result of a step; NotImplemented, for which mypy has Any, leaves the function as it is
_Result: TypeAlias = torch.Tensor | Any


def take_apart(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Replace functions that have no kernels by others that have."""
    if not any(node.target in _STEPS for node in exported.graph.nodes):
        return exported
    return exported.run_decompositions(_STEPS)


def _power(matrix: torch.Tensor, n: int) -> _Result:
    """Return a negative power: a power of the inverse."""
    if n >= 0:
        return NotImplemented
    inverse, _ = _ATEN.linalg_inv_ex.default(matrix, check_errors=True)
    return torch.linalg.matrix_power(inverse, -n)


def _cholesky_solve(b: torch.Tensor, factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    lower = factor.mT if upper else factor
    return torch.linalg.solve_triangular(
        lower.mT, torch.linalg.solve_triangular(lower, b, upper=False), upper=True)


def _cholesky_inverse(factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    n = factor.shape[-1]
    return _cholesky_solve(torch.eye(n, dtype=factor.dtype).expand(factor.shape), factor, upper)


def _pinv(matrix: torch.Tensor, rcond: float | None = None, hermitian: bool = False) -> _Result:
    """Invert the singular values that are larger than rcond times the largest."""
    if matrix.numel() == 0:
        return NotImplemented
    if rcond is None:
        rcond = max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps
    if hermitian:
        values, left = torch.linalg.eigh(matrix)
        right = left.mT
    else:
        left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    sizes = values.abs()
    kept = torch.where(sizes > sizes.amax(-1, keepdim=True) * rcond, 1 / values, 0.0)
    return torch.matmul(right.mT * kept.unsqueeze(-2), left.mT)


def _pinv_of_rtol(matrix: torch.Tensor, *, atol: float | torch.Tensor | None = None,
                  rtol: float | torch.Tensor | None = None, hermitian: bool = False) -> _Result:
    if atol is not None or isinstance(rtol, torch.Tensor):
        return NotImplemented
    return _pinv(matrix, rtol, hermitian)


_STEPS = {
    _ATEN.linalg_matrix_power.default: _power, _ATEN.matrix_power.default: _power,
    _ATEN.cholesky_solve.default: _cholesky_solve, _ATEN.cholesky_inverse.default: _cholesky_inverse,
    _ATEN.linalg_pinv.default: _pinv, _ATEN.linalg_pinv.atol_rtol_float: _pinv_of_rtol,
    _ATEN.linalg_pinv.atol_rtol_tensor: _pinv_of_rtol,
    _ATEN.pinverse.default: _pinv}


def into_operators(module: torch.fx.GraphModule) -> None:
    """Replace these functions, in branches, too.

    Nodes keep their names, which are in a program's signature.
    """
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            _replace(part.graph)
            part.recompile()


def _replace(graph: torch.fx.Graph) -> None:
    for node in list(graph.nodes):
        checked = {**node.kwargs, "check_errors": True}
        if node.target in _FACTORS:
            node.target, node.kwargs = _FACTORS[node.target], checked
        elif node.target in _RAISING:
            with graph.inserting_before(node):
                result = graph.call_function(_RAISING[node.target], node.args, checked)
            result.meta = {key: value for key, value in node.meta.items() if key != "val"}
            node.target, node.args, node.kwargs = operator.getitem, (result, 0), {}
