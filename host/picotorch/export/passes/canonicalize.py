"""Replace operators by equivalents that the Cortex-M quantizer supports.

Importing it imports torch.
"""

from typing import Any

import torch

from ..graph_edits import call, constant, new_constant, takes_images
from .sequences_as_images import ELEMENTWISE

_ATEN = torch.ops.aten
_IMAGE_DIMS = 4
_POOL_DEFAULTS: tuple[Any, ...] = ([], 0, 1, False)  # of a max pool, behind its kernel
_DEFAULTS: tuple[Any, ...] = (None, 1, "valid", 1, 1)  # of a convolution, behind its weight

_PADDINGS = {_ATEN.conv1d.padding: _ATEN.conv1d.default, _ATEN.conv2d.padding: _ATEN.conv2d.default}

# Operators over (batch, channels, ...): the rank of their inputs
_BATCHED = {
    _ATEN.conv1d.default: 3, _ATEN.conv_transpose1d.default: 3, _ATEN.max_pool1d.default: 3,
    _ATEN.avg_pool1d.default: 3, _ATEN.adaptive_avg_pool1d.default: 3, _ATEN.conv2d.default: 4,
    _ATEN.conv_transpose2d.input: 4, _ATEN.max_pool2d.default: 4, _ATEN.avg_pool2d.default: 4,
    _ATEN.adaptive_avg_pool2d.default: 4}

_ADAPTIVE = {
    _ATEN.adaptive_avg_pool1d.default: _ATEN.avg_pool1d.default,
    _ATEN.adaptive_avg_pool2d.default: _ATEN.avg_pool2d.default}
_ADAPTIVE_MAXIMA = {
    _ATEN.adaptive_max_pool1d.default: _ATEN.max_pool1d.default,
    _ATEN.adaptive_max_pool2d.default: _ATEN.max_pool2d.default}

# Max pools with the argument ceil_mode, for which the int8 operator has no shape
_CEILING = (_ATEN.max_pool1d.default, _ATEN.max_pool2d.default)

# Operators with a constant for a second operand: the operator with its inverse
_INVERSES = {_ATEN.sub.Tensor: (_ATEN.add.Tensor, torch.neg),
             _ATEN.div.Tensor: (_ATEN.mul.Tensor, torch.reciprocal)}

_PRODUCTS = (_ATEN.mm.default, _ATEN.matmul.default)
_RANDOM_SLOPES = (_ATEN.rrelu.default, _ATEN.rrelu_.default)
_RANDOM_SLOPE_DEFAULTS = (1 / 8, 1 / 3, False)  # lower, upper, training


def replace(graph: torch.fx.GraphModule) -> None:
    """Replace operators by equivalents that the Cortex-M quantizer supports.

    These are paddings that are words, samples without a batch, adaptive pools with windows of one size,
    ceil_mode of max pools, means over the height or the width of images, products with a constant
    matrix, instance norms, leaky ReLUs whose slope is random in training, and differences and quotients
    with a constant.
    """
    has_images = takes_images(graph)
    for node in list(graph.graph.nodes):
        if node.target in _PADDINGS:
            _state_padding(graph, node)
        if node.target in _BATCHED:
            _add_batch(graph, node)
        elif node.target in ELEMENTWISE:
            _keep_batch(graph, node)
        if node.target in _ADAPTIVE:
            _state_windows(node)
        elif node.target in _CEILING:
            _state_floor(graph, node)
        elif node.target in _ADAPTIVE_MAXIMA:
            _state_largest_windows(graph, node)
        elif node.target is _ATEN.mean.dim and has_images:
            _pool_mean(graph, node)
        elif node.target in _PRODUCTS:
            _multiply(graph, node)
        elif node.target is _ATEN.addmm.default:
            _multiply_and_add(graph, node)
        elif node.target is _ATEN.instance_norm.default:
            _group_channels(node)
        elif node.target in _RANDOM_SLOPES:
            _state_slope(node)
        elif node.target in _INVERSES:
            _invert_constant(graph, node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _invert_constant(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Replace x - c by x + (-c), and x / c by x * (1 / c), where all numbers stay finite."""
    target, inverse = _INVERSES[node.target]
    if len(node.args) != 2 or node.kwargs or getattr(node.args[1], "op", "") != "get_attr":
        return
    x, value = node.args[0], constant(graph, node.args[1]).detach()
    inverted = inverse(value)
    if x.meta["val"].is_floating_point() and value.is_floating_point() and inverted.isfinite().all():
        made = new_constant(graph, node, f"_inverse_for_{node.name}", inverted)
        node.target, node.args = target, (x, made)


def _state_padding(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Replace "same" and "valid" by numbers of zeros; pad the input if the two sides differ."""
    arguments = [*node.args, *_DEFAULTS[len(node.args) - 2:]]
    x, weight, bias, stride, padding, dilation, groups = arguments
    dims = weight.meta["val"].dim() - 2
    stride, dilation = (_each(one, dims) for one in (stride, dilation))
    zeros = [d * (size - 1) if padding == "same" else 0
             for d, size in zip(dilation, weight.meta["val"].shape[2:], strict=True)]
    if any(one % 2 for one in zeros):
        sides = [side for one in reversed(zeros) for side in (one // 2, one - one // 2)]
        x, zeros = call(graph, node, _ATEN.pad.default, x, sides), dims * [0]
    node.target = _PADDINGS[node.target]
    node.args = (x, weight, bias, stride, [one // 2 for one in zeros], dilation, groups)


def _each(value: Any, dims: int) -> list[Any]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * dims if len(values) == 1 else values


def _add_batch(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    x = node.args[0]
    if x.meta["val"].dim() != _BATCHED[node.target] - 1:
        return
    x = _batch_of(x) or call(graph, node, _ATEN.unsqueeze.default, x, 0)
    batched = call(graph, node, node.target, x, *node.args[1:])
    node.target, node.args = _ATEN.squeeze.dim, (batched, 0)
    if batched.target in _ADAPTIVE:
        _state_windows(batched)
    elif batched.target in _CEILING:
        _state_floor(graph, batched)


def _keep_batch(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Compute elementwise with the batch of 1 of the layer before, so that the next layer has it."""
    batches, shape = {one: _batch_of(one) for one in node.all_input_nodes}, node.meta["val"].shape
    if all(batches.values()) and all(one.meta["val"].shape == shape for one in batches):
        batched = call(graph, node, node.target, *(batches.get(one, one) for one in node.args),
                       **node.kwargs)
        node.target, node.args, node.kwargs = _ATEN.squeeze.dim, (batched, 0), {}


def _batch_of(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the value that a node drops the batch from, None if it does not."""
    if node.target is not _ATEN.squeeze.dim or node.args[1] != 0:
        return None
    x: torch.fx.Node = node.args[0]
    return x if x.meta["val"].dim() > node.meta["val"].dim() else None


def _windows(node: torch.fx.Node) -> list[int] | None:
    """Return the sizes of the windows of an adaptive pool, None if they are not all equal."""
    sizes, counts = node.args[0].meta["val"].shape, node.args[1]
    sizes, counts = sizes[-len(counts):], [
        size if count is None else count for size, count in zip(
            sizes[-len(counts):], counts, strict=True)]
    if not all(counts) or any(size % count for size, count in zip(sizes, counts, strict=True)):
        return None
    return [size // count for size, count in zip(sizes, counts, strict=True)]


def _state_windows(node: torch.fx.Node) -> None:
    windows = _windows(node)
    if windows and set(node.args[1]) != {1}:
        node.target, node.args = _ADAPTIVE[node.target], (node.args[0], windows, windows)


def _state_floor(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Leave ceil_mode out.

    If it adds a window, which reaches beyond the image, repeat the last row or column: the window has
    it already, so that its maximum stays.
    """
    arguments = [*node.args, *_POOL_DEFAULTS[len(node.args) - 2:]]
    x, kernel, stride, padding, dilation, ceil_mode = arguments
    dims = x.meta["val"].dim() - 2
    kernel, stride, padding, dilation = (
        _each(one, dims) for one in (kernel, stride or kernel, padding, dilation))
    if not ceil_mode or set(dilation) != {1}:
        return
    for dim in range(-dims, 0):
        size, windows = x.meta["val"].shape[dim], node.meta["val"].shape[dim]
        lacking = (windows - 1) * stride[dim] + kernel[dim] - size - 2 * padding[dim]
        if lacking > 0:
            last = call(graph, node, _ATEN.slice.Tensor, x, dim, size - 1, size)
            x = call(graph, node, _ATEN.cat.default, [x, *lacking * [last]], dim)
    node.args = (x, kernel, stride, padding, dilation, False)


def _state_largest_windows(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Replace an adaptive max pool whose indices have no user."""
    windows = _windows(node)
    if not windows or any(user.args[1] != 0 for user in node.users):
        return
    for values in list(node.users):
        values.target = _ADAPTIVE_MAXIMA[node.target]
        values.args = (node.args[0], windows, windows)


def _pool_mean(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Replace the mean over height or width of an image by an average over one window."""
    x, dims, keepdim = [*node.args, False][:3]
    value = x.meta["val"]
    if value.dim() != _IMAGE_DIMS or node.kwargs:
        return
    dims = [dim % _IMAGE_DIMS for dim in dims or ()]
    if len(dims) != 1 or dims[0] < 2:
        return
    windows = [value.shape[2], 1] if dims[0] == 2 else [1, value.shape[3]]
    if keepdim:
        node.target, node.args = _ATEN.avg_pool2d.default, (x, windows, windows)
    else:
        pooled = call(graph, node, _ATEN.avg_pool2d.default, x, windows, windows)
        node.target, node.args = _ATEN.squeeze.dim, (pooled, dims[0])


def _multiply(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Replace a product with a constant matrix by a linear layer.

    A constant first factor, as the adjacency matrix of a graph network, multiplies the transposed
    activations. A product of two matrices becomes a product of batches of one.
    """
    x, matrix = node.args
    if matrix.op == "get_attr" and matrix.meta["val"].dim() == 2 and x.op != "get_attr":
        node.target, node.args = _ATEN.linear.default, (x, _transposed(graph, node, matrix))
    elif x.op == "get_attr" and x.meta["val"].dim() == 2 <= matrix.meta["val"].dim() and (
            matrix.op != "get_attr"):
        columns = call(graph, node, _ATEN.transpose.int, matrix, -2, -1)
        product = call(graph, node, _ATEN.linear.default, columns, x)
        node.target, node.args = _ATEN.transpose.int, (product, -2, -1)
    elif x.meta["val"].dim() == matrix.meta["val"].dim() == 2:
        x, matrix = (call(graph, node, _ATEN.unsqueeze.default, one, 0) for one in (x, matrix))
        product = call(graph, node, _ATEN.bmm.default, x, matrix)
        node.target, node.args = _ATEN.squeeze.dim, (product, 0)


def _multiply_and_add(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    bias, x, matrix = node.args
    if (matrix.op == bias.op == "get_attr" and bias.meta["val"].dim() == 1 and not node.kwargs
            and bias.meta["val"].shape[0] == matrix.meta["val"].shape[1]):
        node.target, node.args = _ATEN.linear.default, (x, _transposed(graph, node, matrix), bias)


def _transposed(graph: torch.fx.GraphModule, node: torch.fx.Node,
                matrix: torch.fx.Node) -> torch.fx.Node:
    value = constant(graph, matrix).detach().t()
    return new_constant(graph, node, f"_transposed_of_{node.name}", value)


def _group_channels(node: torch.fx.Node) -> None:
    """Replace an instance norm by a group norm with a group for each channel."""
    x, weight, bias, _, _, uses_input, _, epsilon = node.args[:8]
    if uses_input:
        node.target = _ATEN.group_norm.default
        node.args = (x, x.meta["val"].shape[1], weight, bias, epsilon)


def _state_slope(node: torch.fx.Node) -> None:
    """Replace an RReLU outside training by the leaky ReLU of its mean slope."""
    x, lower, upper, training = [*node.args, *_RANDOM_SLOPE_DEFAULTS[len(node.args) - 1:]][:4]
    if not training:
        node.target, node.args, node.kwargs = _ATEN.leaky_relu.default, (x, (lower + upper) / 2), {}
