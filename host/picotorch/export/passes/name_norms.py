"""Name the normalizations that a module computes step by step: layer_norm and rms_norm.

    x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight

The int8 operators then compute them whole: a square or a variance in int8 would be far off.

Importing it imports torch.
"""

from typing import Any, NamedTuple

import torch

from ..graph_edits import call

_ATEN = torch.ops.aten
_CASTS = (_ATEN.to.dtype, _ATEN._to_copy.default, _ATEN.type_as.default)
_IMAGE_DIMS = 4


class _Root(NamedTuple):
    """sqrt(mean square + epsilon), or its inverse."""

    source: torch.fx.Node
    dim: int
    of_variance: bool  # the mean square of the source without its mean
    epsilon: float
    is_inverse: bool


def name(graph: torch.fx.GraphModule) -> None:
    """Replace the steps of normalizations over the last dim, or over the channels of images."""
    _drop_casts(graph)
    for node in list(graph.graph.nodes):
        _name(graph, node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _drop_casts(graph: torch.fx.GraphModule) -> None:
    """Drop conversions to the dtype that a tensor has."""
    for node in list(graph.graph.nodes):
        if node.target in _CASTS and node.meta["val"].dtype == node.args[0].meta["val"].dtype and (
                "memory_format" not in node.kwargs):
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)


def _name(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    found = _division(node)
    if found is None:
        return
    x, root = found
    mean = _centered(x)
    subtracts = mean is not None and mean[1] == root.dim
    source = mean[0] if mean is not None and subtracts else x
    rank = node.meta["val"].dim()
    is_last = root.dim == rank - 1
    if not is_last and not (root.dim == 1 and rank == _IMAGE_DIMS):
        return
    last, weight = _with_constant(node, _ATEN.mul.Tensor, root.dim)
    bias = None
    if subtracts:
        last, bias = _with_constant(last, _ATEN.add.Tensor, root.dim)
    size = [node.meta["val"].shape[root.dim]]
    weight, bias = (one and _flat(graph, last, one, size) for one in (weight, bias))
    if not is_last:
        source = call(graph, last, _ATEN.permute.default, source, [0, 2, 3, 1])
    made = (call(graph, last, _ATEN.layer_norm.default, source, size, weight, bias, root.epsilon)
            if subtracts else
            call(graph, last, _ATEN.rms_norm.default, source, size, weight, root.epsilon))
    if not is_last:
        made = call(graph, last, _ATEN.permute.default, made, [0, 3, 1, 2])
    last.replace_all_uses_with(made)


def _flat(graph: torch.fx.GraphModule, node: torch.fx.Node, values: torch.fx.Node,
          size: list[int]) -> torch.fx.Node:
    return call(graph, node, _ATEN.reshape.default, values, size)


def _division(node: torch.fx.Node) -> tuple[torch.fx.Node, _Root] | None:
    """Return x and the root of x / root, where the root is of the squares of x."""
    if node.target is _ATEN.div.Tensor:
        pairs = [(node.args[0], node.args[1], False)]
    elif node.target is _ATEN.mul.Tensor:
        pairs = [(node.args[0], node.args[1], True), (node.args[1], node.args[0], True)]
    else:
        return None
    for x, factor, is_inverse in pairs:
        root = _root(factor) if isinstance(x, torch.fx.Node) else None
        if root is not None and root.is_inverse == is_inverse:
            mean = _centered(x)
            if (mean is not None and root.source is mean[0] and root.dim == mean[1]
                    if root.of_variance else _are_same(root.source, x)):
                return x, root
    return None


def _are_same(one: torch.fx.Node, other: torch.fx.Node) -> bool:
    """Return True for one difference, or for two of the same operands."""
    return one is other or one.target is other.target is _ATEN.sub.Tensor and (
        one.args == other.args and one.kwargs == other.kwargs)


def _root(node: Any) -> _Root | None:
    """Return the root of a mean square if an operand is one, None for another node or a number."""
    if not isinstance(node, torch.fx.Node):
        return None
    if node.target is _ATEN.rsqrt.default:
        is_inverse = True
    elif node.target is _ATEN.sqrt.default or (
            node.target is _ATEN.pow.Tensor_Scalar and node.args[1] == 1 / 2):
        is_inverse = False
    elif node.target is _ATEN.pow.Tensor_Scalar and node.args[1] == -1 / 2:
        is_inverse = True
    else:
        return None
    total = node.args[0]
    if total.target is not _ATEN.add.Tensor or total.kwargs or not isinstance(
            total.args[1], int | float):
        return None
    square, epsilon = total.args
    found = _mean_square(square)
    return found and _Root(*found, float(epsilon), is_inverse)


def _mean_square(node: torch.fx.Node) -> tuple[torch.fx.Node, int, bool] | None:
    """Return the source and the dim of mean(x^2), or of a variance."""
    if node.target in (_ATEN.var.correction, _ATEN.var.dim):
        is_whole = (node.args[2:] == (False, True) if node.target is _ATEN.var.dim else
                    node.kwargs.get("correction") == 0 and node.kwargs.get("keepdim"))
        if not is_whole:
            return None
        dim = _only(node.args[1] if len(node.args) > 1 else None, node)
        return None if dim is None else (node.args[0], dim, True)
    averaged = _mean(node)
    if averaged is None:
        return None
    square, dim = averaged
    if square.target is _ATEN.pow.Tensor_Scalar and square.args[1] == 2:
        return square.args[0], dim, False
    if square.target is _ATEN.square.default or (
            square.target is _ATEN.mul.Tensor and square.args[0] is square.args[1]):
        return square.args[0], dim, False
    return None


def _mean(node: torch.fx.Node) -> tuple[torch.fx.Node, int] | None:
    """Return the source and the dim of a mean over one dim that it keeps."""
    if node.target is not _ATEN.mean.dim or node.kwargs or node.args[2:] != (True,):
        return None
    dim = _only(node.args[1] if len(node.args) > 1 else None, node)
    return None if dim is None else (node.args[0], dim)


def _only(dims: list[int] | None, node: torch.fx.Node) -> int | None:
    return dims[0] % node.meta["val"].dim() if dims is not None and len(dims) == 1 else None


def _centered(node: torch.fx.Node) -> tuple[torch.fx.Node, int] | None:
    """Return x and the dim of x - mean(x)."""
    if node.target is not _ATEN.sub.Tensor or node.kwargs or not isinstance(
            node.args[1], torch.fx.Node):
        return None
    found = _mean(node.args[1])
    return found if found is not None and found[0] is node.args[0] else None


def _with_constant(node: torch.fx.Node, target: torch._ops.OpOverload,
                   dim: int) -> tuple[torch.fx.Node, torch.fx.Node | None]:
    """Return the product or sum of a node and a constant along a dim, and the constant, else None."""
    if len(node.users) != 1:
        return node, None
    (user,) = node.users
    others = [one for one in user.all_input_nodes if one is not node]
    if user.target is not target or user.kwargs or len(others) != 1 or others[0].op != "get_attr":
        return node, None
    values, rank = others[0].meta["val"], node.meta["val"].dim()
    shape = (rank - values.dim()) * (1,) + tuple(values.shape)
    size = node.meta["val"].shape[dim]
    is_along = len(shape) == rank and values.numel() == size == shape[dim]
    return (user, others[0]) if is_along else (node, None)
