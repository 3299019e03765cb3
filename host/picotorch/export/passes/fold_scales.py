"""Fold factors and addends of channels into the weights of the layer before them.

A layer scale, or a bias beside a convolution, is a constant with a value for each channel. The layer is
a convolution or a linear layer whose result has no other user. A large addend, as a mask has, would
widen the range of the layer: it stays an operator. Behind another layer a constant of images gets four
dims, with which the int8 kernels of products and sums take it.

Importing it imports torch.
"""

import torch

from ..graph_edits import constant, new_constant, takes_images
from .fold_batch_norms import CONVOLUTIONS

_ATEN = torch.ops.aten
_PRODUCTS = (_ATEN.mul.Tensor, _ATEN.mul_.Tensor)
_SUMS = (_ATEN.add.Tensor, _ATEN.add_.Tensor)
_IMAGE_DIMS = 4
_MAX_SHIFT = 16  # a larger addend may be a mask, which masks.py finds in an operator of its own


def fold(graph: torch.fx.GraphModule) -> None:
    """Fold products and sums with a constant for each channel into the layer before."""
    has_images = takes_images(graph)
    for node in list(graph.graph.nodes):
        pair = _operands(node)
        if pair is None:
            continue
        layer, values = pair
        rank = node.meta["val"].dim()
        if layer.target is _ATEN.linear.default:
            dim = rank - 1
        elif layer.target in CONVOLUTIONS or has_images and rank == _IMAGE_DIMS:
            dim = 1
        else:
            continue
        if not _is_of_dim(values.meta["val"], node.meta["val"], dim):
            continue
        channels = constant(graph, values).detach().reshape(-1)
        if _is_foldable(layer) and (node.target in _PRODUCTS or channels.abs().max() <= _MAX_SHIFT):
            _fold(graph, node, layer, channels)
        elif dim == 1 and rank == _IMAGE_DIMS:
            node.replace_input_with(values, new_constant(
                graph, node, f"_{node.name}_of_channels", channels.reshape(1, -1, 1, 1)))
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _operands(node: torch.fx.Node) -> tuple[torch.fx.Node, torch.fx.Node] | None:
    """Return the operand and the constant of a product or sum, None for another node."""
    if node.target not in _PRODUCTS + _SUMS or node.kwargs or len(node.all_input_nodes) != 2:
        return None
    x, values = node.args
    if x.op == "get_attr":
        x, values = values, x
    is_pair = (x.op == "call_function" and values.op == "get_attr"
               and x.meta["val"].shape == node.meta["val"].shape
               and x.meta["val"].dtype == values.meta["val"].dtype)
    return (x, values) if is_pair else None


def _is_of_dim(values: torch.Tensor, result: torch.Tensor, dim: int) -> bool:
    """Return True if `values` has one value for each channel of `dim`, and there are several."""
    shape = (result.dim() - values.dim()) * (1,) + tuple(values.shape)
    return bool(values.numel() == result.shape[dim] == shape[dim] > 1)


def _is_foldable(layer: torch.fx.Node) -> bool:
    return (layer.target in (_ATEN.linear.default, *CONVOLUTIONS) and len(layer.users) == 1
            and all(one is None or one.op == "get_attr" for one in layer.args[1:3]))


def _fold(graph: torch.fx.GraphModule, node: torch.fx.Node, layer: torch.fx.Node,
          values: torch.Tensor) -> None:
    weight = constant(graph, layer.args[1]).detach()
    bias = layer.args[2] if len(layer.args) > 2 else None
    shift = torch.zeros_like(values) if bias is None else constant(graph, bias).detach()
    if node.target in _PRODUCTS:
        weight = weight * values.reshape(-1, *(weight.dim() - 1) * [1])
        shift = shift * values
    else:
        shift = shift + values
    layer.args = (layer.args[0], new_constant(graph, layer, f"_{node.name}_weight", weight),
                  new_constant(graph, layer, f"_{node.name}_bias", shift), *layer.args[3:])
    node.replace_all_uses_with(layer)
    graph.graph.erase_node(node)
