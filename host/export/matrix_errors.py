"""Functions of torch.linalg that raise an error, for a singular matrix say: as operators that give the
result and raise the error themselves.

ExecuTorch cannot lower what torch makes of them, where the error is an operator that gives nothing.

Importing it imports torch.
"""

import operator

import torch

_ATEN = torch.ops.aten
_RAISING = {  # by the function: what takes check_errors, whose first result is wanted
    _ATEN.inverse.default: _ATEN.linalg_inv_ex.default,
    _ATEN.linalg_inv.default: _ATEN.linalg_inv_ex.default,
    _ATEN.linalg_solve.default: _ATEN.linalg_solve_ex.default,
    _ATEN.linalg_cholesky.default: _ATEN.linalg_cholesky_ex.default,
}
_FACTORS = {  # its first two results are wanted
    _ATEN.linalg_lu_factor.default: _ATEN.linalg_lu_factor_ex.default}


def into_operators(module: torch.fx.GraphModule) -> None:
    """Replace these functions, in branches, too. Nodes keep their names, which a program's signature
    knows."""
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            _replace(part.graph)
            part.recompile()


def _replace(graph):
    for node in list(graph.nodes):
        checked = {**node.kwargs, "check_errors": True}
        if node.target in _FACTORS:
            node.target, node.kwargs = _FACTORS[node.target], checked
        elif node.target in _RAISING:
            with graph.inserting_before(node):
                result = graph.call_function(_RAISING[node.target], node.args, checked)
            result.meta = {key: value for key, value in node.meta.items() if key != "val"}
            node.target, node.args, node.kwargs = operator.getitem, (result, 0), {}
