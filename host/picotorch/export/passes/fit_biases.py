"""Keep biases within int32.

A bias is stored with the product of the scales of the input and of the weights, which is tiny for a
channel that has (almost) no weights, as pruning and batch norms with small factors leave them.

Importing it imports torch.
"""

import torch

from ..graph_edits import constant

_ATEN = torch.ops.aten
_LAYERS = (_ATEN.linear.default, _ATEN.conv2d.default, _ATEN.conv_transpose2d.input)

# A bias uses at most this part of the 31 bits of a sum
_BITS = 28
_STEPS = 127.5  # of a scale, in the largest weight
_CUT = 2048  # an observer that cuts off rare values leaves at least this part of a range


def widen_scales(prepared: torch.fx.GraphModule) -> None:
    """Widen the ranges of weights that calibrated observers have seen until each bias fits."""
    for node in prepared.graph.nodes:
        if node.target not in _LAYERS or len(node.args) < 3 or node.args[2] is None:
            continue
        inputs, weights = (_observer(prepared, one) for one in node.args[:2])
        source = _source(node.args[2])
        if inputs is None or weights is None or source.op != "get_attr":
            continue
        bias = constant(prepared, source).detach().abs().to(torch.float64)
        if weights.max_val.numel() == 1:
            bias = bias.max().reshape(weights.max_val.shape)
        largest = torch.maximum(weights.max_val, -weights.min_val)
        # computing a scale is slow: test first with a smaller one
        if not hasattr(inputs, "max_val") or (largest < _min_weight(
                bias, (inputs.max_val - inputs.min_val) / _STEPS / _CUT)).any():
            scale, _ = inputs.calculate_qparams()
            minimum = _min_weight(bias, scale).to(weights.max_val).reshape(weights.max_val.shape)
            weights.max_val.copy_(torch.maximum(weights.max_val, minimum))


def _min_weight(bias: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the largest weight whose scale is wide enough for a bias."""
    return bias / (scale.double() * 2**_BITS) * _STEPS


def _observer(prepared: torch.fx.GraphModule, node: torch.fx.Node) -> torch.nn.Module | None:
    """Return the observer of a value, None if it has none."""
    if node.op != "call_module":
        return None
    observer = prepared.get_submodule(node.target)
    return observer if hasattr(observer, "calculate_qparams") else None


def _source(node: torch.fx.Node) -> torch.fx.Node:
    while node.op == "call_module":
        node = node.args[0]
    return node
