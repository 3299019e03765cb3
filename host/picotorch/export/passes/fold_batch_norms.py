"""Fold the batch norms of inference into the weights of the layer before them.

The layer is a convolution whose result has no other user, or a linear layer if the Cortex-M quantizer
follows. The quantizer would leave any other batch norm in float: those of images and sequences become
depthwise convolutions with kernels of one element, which have int8 kernels. One without running
statistics stays in float, since it computes them in each run.

If other layers use the same weights, these stay as they are, and the layer gets its own copy.

Importing it imports torch.
"""

import operator
from collections.abc import Iterable

import torch

from ..graph_edits import constant, new_constant

_ATEN = torch.ops.aten
CONVOLUTIONS = (
    _ATEN.conv1d.default, _ATEN.conv1d.padding, _ATEN.conv2d.default, _ATEN.conv2d.padding,
    _ATEN.conv3d.default, _ATEN.conv3d.padding)
_TRANSPOSED = (_ATEN.conv_transpose1d.default, _ATEN.conv_transpose2d.input)
_DECOMPOSED = _ATEN._native_batch_norm_legit_no_training.default
_WITHOUT_STATISTICS = _ATEN._native_batch_norm_legit.no_stats
_DEPTHWISE = {3: _ATEN.conv1d.default, 4: _ATEN.conv2d.default}  # by rank


def into_convolutions(graph: torch.fx.GraphModule) -> None:
    """Fold the batch norms behind convolutions into the weights of these."""
    for node in _found(graph):
        source = node.args[0]
        if (source.target in (*CONVOLUTIONS, *_TRANSPOSED) and len(source.users) == 1
                and _are_constants(source.args[1:3])):
            _into_convolution(graph, node, source)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def replace(graph: torch.fx.GraphModule) -> None:
    """Replace the batch norms that would stay in float or that would be folded into shared weights."""
    _name(graph)
    into_convolutions(graph)
    for node in _found(graph):
        source = node.args[0]
        if (source.target is _ATEN.linear.default and _rank(node) == 2
                and _are_constants(source.args[1:])):
            _into_linear(graph, node, source)
        elif _rank(node) in _DEPTHWISE:
            _as_convolution(graph, node)
    _keep_without_statistics(graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _keep_without_statistics(graph: torch.fx.GraphModule) -> None:
    """Give batch norms without running statistics the operator that the quantizer accepts."""
    for node in graph.graph.find_nodes(op="call_function", target=_ATEN.batch_norm.default):
        x, weight, bias, mean, _, is_training, momentum, eps, _ = node.args
        if is_training and mean is None:
            with graph.graph.inserting_before(node):
                norm = graph.graph.call_function(_WITHOUT_STATISTICS,
                                                 (x, weight, bias, True, momentum, eps))
            norm.meta = {"nn_module_stack": node.meta.get("nn_module_stack", {})}
            node.target, node.args = operator.getitem, (norm, 0)


def _name(graph: torch.fx.GraphModule) -> None:
    """Replace the decomposed batch_norm by one operator."""
    for node in graph.graph.find_nodes(op="call_function", target=_DECOMPOSED):
        *tensors, momentum, eps = node.args
        for first in list(node.users):  # what else it returns is empty
            first.target, first.args = _ATEN.batch_norm.default, (*tensors, False, momentum, eps, False)
    graph.graph.eliminate_dead_code()  # the norm has to be the only user of its input


def _found(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in graph.graph.find_nodes(op="call_function", target=_ATEN.batch_norm.default)
            if not node.args[5] and _are_constants(node.args[1:5])]


def _are_constants(nodes: Iterable[torch.fx.Node | None]) -> bool:
    return all(node is None or node.op == "get_attr" for node in nodes)


def _rank(node: torch.fx.Node) -> int:
    return int(node.meta["val"].dim())


def _scale_and_shift(graph: torch.fx.GraphModule,
                     node: torch.fx.Node) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scale and shift of y = x * scale + shift, a value for each channel.

    scale = weight / sqrt(variance + eps), shift = bias - mean * scale.
    """
    weight, bias = (None if one is None else constant(graph, one).detach() for one in node.args[1:3])
    mean, variance = (constant(graph, one).detach() for one in node.args[3:5])
    scale = torch.rsqrt(variance + node.args[7])
    scale = scale if weight is None else scale * weight
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias


def _as_convolution(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    scale, shift = _scale_and_shift(graph, node)
    channels, dims = scale.numel(), _rank(node) - 2
    kernels = new_constant(graph, node, f"_{node.name}_kernels",
                           scale.reshape(channels, 1, *dims * [1]))
    bias = new_constant(graph, node, f"_{node.name}_bias", shift)
    node.target = _DEPTHWISE[_rank(node)]
    node.args = (node.args[0], kernels, bias, dims * [1], dims * [0], dims * [1], channels)


def _into_linear(graph: torch.fx.GraphModule, node: torch.fx.Node, linear: torch.fx.Node) -> None:
    scale, shift = _scale_and_shift(graph, node)
    scaled = constant(graph, linear.args[1]).detach() * scale[:, None]
    if len(linear.args) > 2 and linear.args[2] is not None:
        shift = shift + constant(graph, linear.args[2]).detach() * scale
    weight = new_constant(graph, node, f"_{node.name}_weight", scaled)
    bias = new_constant(graph, node, f"_{node.name}_bias", shift)
    node.target, node.args = _ATEN.linear.default, (linear.args[0], weight, bias)


def _into_convolution(graph: torch.fx.GraphModule, node: torch.fx.Node,
                      convolution: torch.fx.Node) -> None:
    scale, shift = _scale_and_shift(graph, node)
    old = constant(graph, convolution.args[1]).detach()
    if convolution.target in _TRANSPOSED:  # (inputs, outputs of a group, ...)
        groups = convolution.args[6] if len(convolution.args) > 6 else 1
        scales = scale.reshape(groups, 1, -1, *(old.dim() - 2) * [1])
        scaled = (old.reshape(groups, -1, *old.shape[1:]) * scales).reshape(old.shape)
    else:
        scaled = old * scale.reshape(-1, *(old.dim() - 1) * [1])
    if len(convolution.args) > 2 and convolution.args[2] is not None:
        shift = shift + constant(graph, convolution.args[2]).detach() * scale
    weight = new_constant(graph, convolution, f"_{node.name}_weight", scaled)
    bias = new_constant(graph, convolution, f"_{node.name}_bias", shift)
    convolution.args = (convolution.args[0], weight, bias, *convolution.args[3:])
    node.replace_all_uses_with(convolution)
    graph.graph.erase_node(node)
