"""Batch norms of inference, before the Cortex-M quantizer sees them: it takes those behind a
convolution. Behind a linear layer they go into its weights; any other one of images or sequences
becomes a depthwise convolution with kernels of one element, which has an int8 kernel.

Importing it imports torch.
"""

import torch

_ATEN = torch.ops.aten
_CONVOLUTIONS = (
    _ATEN.conv1d.default, _ATEN.conv1d.padding, _ATEN.conv2d.default, _ATEN.conv2d.padding,
    _ATEN.conv_transpose1d.default, _ATEN.conv_transpose2d.input)
_DEPTHWISE = {3: _ATEN.conv1d.default, 4: _ATEN.conv2d.default}  # by rank


def replace(graph: torch.fx.GraphModule) -> None:
    """Replace the batch norms that the quantizer would leave in float."""
    for node in list(graph.graph.nodes):
        if node.target is _ATEN.batch_norm.default and not node.args[5]:
            source = node.args[0]
            alone = len(source.users) == 1
            if source.target is _ATEN.linear.default and alone and _rank(node) == 2:
                _into_linear(graph, node, source)
            elif _rank(node) in _DEPTHWISE and not (source.target in _CONVOLUTIONS and alone):
                _as_convolution(graph, node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _rank(node):
    return node.meta["val"].dim()


def _scale_and_shift(graph, node):
    """y = x * scale + shift, a value for each channel: weight / sqrt(variance + eps), and
    bias - mean * scale."""
    weight, bias, mean, variance = (None if one is None else _value(graph, one)
                                    for one in node.args[1:5])
    scale = torch.rsqrt(variance + node.args[7])
    scale = scale if weight is None else scale * weight
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias


def _value(graph, node):
    value = graph
    for name in node.target.split("."):
        value = getattr(value, name)
    return value.detach()


def _constant(graph, name, value, like):
    graph.register_buffer(name, value.contiguous())
    constant = graph.graph.get_attr(name)
    constant.meta = {"val": value} | {"nn_module_stack": like.meta.get("nn_module_stack", {})}
    return constant


def _as_convolution(graph, node):
    scale, shift = _scale_and_shift(graph, node)
    channels, dims = scale.numel(), _rank(node) - 2
    with graph.graph.inserting_before(node):
        kernels = scale.reshape(channels, 1, *dims * [1])
        kernels = _constant(graph, f"_{node.name}_kernels", kernels, node)
        bias = _constant(graph, f"_{node.name}_bias", shift, node)
    node.target = _DEPTHWISE[_rank(node)]
    node.args = (node.args[0], kernels, bias, dims * [1], dims * [0], dims * [1], channels)


def _into_linear(graph, node, linear):
    scale, shift = _scale_and_shift(graph, node)
    weight = _value(graph, linear.args[1]) * scale[:, None]
    if len(linear.args) > 2 and linear.args[2] is not None:
        shift = shift + _value(graph, linear.args[2]) * scale
    with graph.graph.inserting_before(node):
        weight = _constant(graph, f"_{node.name}_weight", weight, node)
        bias = _constant(graph, f"_{node.name}_bias", shift, node)
    node.target, node.args = _ATEN.linear.default, (linear.args[0], weight, bias)
