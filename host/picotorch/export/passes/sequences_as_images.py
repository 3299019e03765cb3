"""Replace convolutions and pooling over sequences by those over images of height 1.

A sequence (batch, channels, length) becomes an image (batch, channels, 1, length). The operators over
images have int8 kernels and compute the same numbers.

Importing it imports torch.
"""

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


def as_images(graph: torch.fx.GraphModule) -> None:
    """Replace the operators over sequences; elementwise operators between them work on images, too.

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
        call.meta["val"] = node.meta["val"].unsqueeze(_HEIGHT)
        return call

    def _replace_uses(self, sequence: torch.fx.Node, image: torch.fx.Node) -> None:
        """Give a view of the image to users of the sequence that were not replaced."""
        users = [user for user in sequence.users if user not in self.replaced]
        if not users:
            return
        with self.graph.graph.inserting_after(image):
            view = self.graph.graph.call_function(_ATEN.squeeze.dim, (image, _HEIGHT))
        view.meta = {"nn_module_stack": sequence.meta.get("nn_module_stack", {}),
                     "val": sequence.meta["val"]}
        for user in users:
            user.replace_input_with(sequence, view)
