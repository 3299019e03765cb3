"""Replace convolutions and pooling over sequences by those over images of height 1.

A sequence (batch, channels, length) becomes an image (batch, channels, 1, length). The operators over
images have int8 kernels and compute the same numbers.

Importing it imports torch.
"""

import operator
from typing import Any

import torch

from .. import graph_edits

_ATEN = torch.ops.aten
_HEIGHT = 2  # the further dim of an image
_SEQUENCE_DIMS = 3

# Operators over sequences: the one over images, and the arguments that get an item for the height
_OVER_IMAGES = {
    _ATEN.conv1d.default: (_ATEN.conv2d.default, {3: 1, 4: 0, 5: 1}),
    _ATEN.conv_transpose1d.default: (_ATEN.conv_transpose2d.input, {3: 1, 4: 0, 5: 0, 7: 1}),
    _ATEN.max_pool1d.default: (_ATEN.max_pool2d.default, {1: 1, 2: 1, 3: 0, 4: 1}),
    _ATEN.avg_pool1d.default: (_ATEN.avg_pool2d.default, {1: 1, 2: 1, 3: 0}),
}

# Operators that compute each element of their result from the same element of one or two tensors
ELEMENTWISE = (
    _ATEN.relu.default, _ATEN.relu_.default, _ATEN.relu6.default, _ATEN.hardtanh.default,
    _ATEN.hardtanh_.default, _ATEN.hardswish.default, _ATEN.hardswish_.default,
    _ATEN.hardsigmoid.default, _ATEN.hardsigmoid_.default, _ATEN.clamp.default, _ATEN.silu.default,
    _ATEN.sigmoid.default, _ATEN.tanh.default, _ATEN.leaky_relu.default, _ATEN.gelu.default,
    _ATEN.elu.default, _ATEN.dropout.default, _ATEN.add.Tensor, _ATEN.add_.Tensor, _ATEN.sub.Tensor,
    _ATEN.mul.Tensor, _ATEN.mul_.Tensor, _ATEN.div.Tensor)


# Operators that move elements along a dim: the position of the dim among the arguments
_MOVES = {
    _ATEN.cat.default: 1, _ATEN.slice.Tensor: 1, _ATEN.narrow.default: 1, _ATEN.split.Tensor: 2,
    _ATEN.split_with_sizes.default: 2, _ATEN.chunk.default: 2}
_PADS = (_ATEN.pad.default, _ATEN.constant_pad_nd.default)
_IMAGE_DIM = {0: 0, 1: 1, 2: 3, -1: -1, -2: 1, -3: 0}  # of a sequence's dim


def as_images(graph: torch.fx.GraphModule) -> None:
    """Replace the operators over sequences.

    Between them, elementwise operators and operators that pad, split or join work on images, too.
    Results with other users are views of (batch, channels, length).
    """
    if not any(node.target in _OVER_IMAGES for node in graph.graph.nodes):
        return
    for node in list(graph.graph.nodes):
        if node.target is _ATEN.mean.dim:
            _average(graph.graph, node)
    _Images(graph).replace()
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _average(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Replace the mean over a sequence's length by an average over one window."""
    x, dims, keepdim = [*node.args, False][:3]
    value = x.meta["val"]
    if value.dim() != _SEQUENCE_DIMS or list(dims or ()) not in ([-1], [_SEQUENCE_DIMS - 1]):
        return
    with graph.inserting_before(node):
        average = graph.call_function(_ATEN.avg_pool1d.default, (x, [value.shape[-1]]))
    average.meta = {**node.meta, "val": value[..., :1]}
    if keepdim:
        node.replace_all_uses_with(average)
    else:
        node.target, node.args, node.kwargs = _ATEN.squeeze.dim, (average, _SEQUENCE_DIMS - 1), {}


def _is_constant_pad(node: torch.fx.Node) -> bool:
    mode = node.args[2] if len(node.args) > 2 else node.kwargs.get("mode", "constant")
    return node.target is _ATEN.constant_pad_nd.default or mode == "constant"


class _Images:
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.graph = graph
        self.images: dict[torch.fx.Node, torch.fx.Node] = {}  # sequence -> its image
        # Sequences that an image replaces
        self.replaced: set[torch.fx.Node] = set()
        self.weights: dict[str, str] = {}  # target of a weight -> name of the weight over images

    def replace(self) -> None:
        for node in list(self.graph.graph.nodes):
            with self.graph.graph.inserting_before(node):
                if node.target in _OVER_IMAGES and self._is_replaceable(node):
                    self.images[node] = self._over_images(node)
                elif node.target in ELEMENTWISE and self._takes_images(node):
                    self.images[node] = self._call(
                        node, node.target, [self.images.get(one, one) for one in node.args])
                elif node.target in _MOVES and self._are_images(node):
                    self.images[node] = self._moved(node)
                elif node.target in _PADS and self._are_images(node) and _is_constant_pad(node):
                    self.images[node] = self._padded(node)
                elif node.target is operator.getitem and node.args[0] in self.replaced:
                    self.images[node] = self._call(
                        node, node.target, [self.images[node.args[0]], node.args[1]])
                else:
                    continue
                self.replaced.add(node)
        for sequence, image in list(self.images.items()):
            if sequence in self.replaced:
                self._replace_uses(sequence, image)

    def _is_replaceable(self, node: torch.fx.Node) -> bool:
        """Return False for a convolution with computed weights, and for samples without a batch."""
        weights = node.args[1:2] if "conv" in str(node.target) else ()
        return node.args[0].meta["val"].dim() == _SEQUENCE_DIMS and all(
            weight.op == "get_attr" for weight in weights)

    def _takes_images(self, node: torch.fx.Node) -> bool:
        tensors = node.all_input_nodes
        return all(one in self.images and one.meta["val"].shape == node.meta["val"].shape
                   for one in tensors) and not node.kwargs.get("out")

    def _are_images(self, node: torch.fx.Node) -> bool:
        """Return True if all tensors are sequences of which there are images."""
        return all(one in self.images and one.meta["val"].dim() == _SEQUENCE_DIMS
                   for one in node.all_input_nodes)

    def _moved(self, node: torch.fx.Node) -> torch.fx.Node:
        args, position = list(node.args), _MOVES[node.target]
        args[0] = torch.fx.node.map_arg(args[0], self.images.__getitem__)
        kwargs = dict(node.kwargs)
        if position < len(args):
            args[position] = _IMAGE_DIM[args[position]]
        elif "dim" in kwargs:
            kwargs["dim"] = _IMAGE_DIM[kwargs["dim"]]
        return self._call(node, node.target, args, kwargs)

    def _padded(self, node: torch.fx.Node) -> torch.fx.Node:
        x, pads, *rest = node.args
        length, others = list(pads[:2]), list(pads[2:])  # of the last dim first
        return self._call(node, node.target, [
            self.images[x], [*length, 0, 0, *others] if others else length, *rest])

    def _over_images(self, node: torch.fx.Node) -> torch.fx.Node:
        target, firsts = _OVER_IMAGES[node.target]
        args = list(node.args)
        args[0] = self._image_of(args[0], node)
        if "conv" in str(node.target):
            args[1] = self._weight_of(args[1])
        for position, first in firsts.items():
            if position < len(args) and args[position] != []:
                value = args[position]
                args[position] = [first, *(value if isinstance(value, list | tuple) else [value])]
        return self._call(node, target, args)

    def _image_of(self, sequence: torch.fx.Node, user: torch.fx.Node) -> torch.fx.Node:
        if sequence not in self.images:
            self.images[sequence] = self._call(
                sequence, _ATEN.unsqueeze.default, [sequence, _HEIGHT], {},
                user.meta.get("nn_module_stack", {}))
        return self.images[sequence]

    def _weight_of(self, node: torch.fx.Node) -> torch.fx.Node:
        """Make a weight (outputs, inputs, 1, width) from one of (outputs, inputs, width)."""
        if node.target not in self.weights:
            weight = graph_edits.constant(self.graph, node)
            self.weights[node.target] = graph_edits.add_buffer(
                self.graph, f"_image_{len(self.weights)}_of_weight", weight.detach().unsqueeze(_HEIGHT))
        image = self.graph.graph.get_attr(self.weights[node.target])
        image.meta["val"] = node.meta["val"].unsqueeze(_HEIGHT) if "val" in node.meta else None
        return image

    def _call(self, node: torch.fx.Node, target: torch._ops.OpOverload, args: list[Any],
              kwargs: dict[str, Any] | None = None,
              stack: dict[str, Any] | None = None) -> torch.fx.Node:
        """Make the node that computes `node` on an image."""
        call = self.graph.graph.call_function(target, tuple(args),
                                              node.kwargs if kwargs is None else kwargs)
        call.meta["nn_module_stack"] = node.meta.get("nn_module_stack", {}) if stack is None else stack
        call.meta["val"] = torch.utils._pytree.tree_map(lambda one: one.unsqueeze(_HEIGHT),
                                                        node.meta["val"])
        return call

    def _replace_uses(self, sequence: torch.fx.Node, image: torch.fx.Node) -> None:
        """Give a view of the image to users of the sequence that were not replaced."""
        users = [user for user in sequence.users if user not in self.replaced]
        if not users or not isinstance(sequence.meta["val"], torch.Tensor):
            return
        with self.graph.graph.inserting_after(image):
            view = self.graph.graph.call_function(_ATEN.squeeze.dim, (image, _HEIGHT))
        view.meta = {"nn_module_stack": sequence.meta.get("nn_module_stack", {}),
                     "val": sequence.meta["val"]}
        for user in users:
            user.replace_input_with(sequence, view)
