"""Edit a float graph before the Cortex-M quantizer reads it.

Convolutions get the names that the quantizer matches, constants replace the operators that make them,
and each operator gets the dim order that it requires.

Importing it imports torch.
"""

import operator
from collections.abc import Sequence
from typing import Any

import torch
from executorch.exir.dialects._ops import ops as exir_ops

_ATEN = torch.ops.aten
COPY = exir_ops.edge.dim_order_ops._clone_dim_order.default
_IMAGE_DIMS = 4

# Operators on images (batch, channels, height, width), which the Cortex-M flow needs channels last
_IMAGE_OPERATORS = (
    _ATEN.conv2d.default, _ATEN.conv2d.padding, _ATEN.conv_transpose2d.input, _ATEN.avg_pool2d.default,
    _ATEN.max_pool2d.default, _ATEN.adaptive_avg_pool2d.default)

# Operators that need images to be contiguous: normalizations, linear layers, products of matrices, and
# operators whose results have another rank
_CONTIGUOUS_OPERATORS = (
    _ATEN.linear.default, _ATEN.instance_norm.default, _ATEN.layer_norm.default,
    _ATEN.rms_norm.default, _ATEN.matmul.default, _ATEN.bmm.default, _ATEN.stack.default)
ROI_ALIGN = "torchvision.roi_align.default"  # another one, which not every torch has

# Operators that reshape elements in their order: they need contiguous images
_VIEWS = (
    _ATEN.view.default, _ATEN.reshape.default, _ATEN.flatten.using_ints, _ATEN.unflatten.int,
    _ATEN.squeeze.default, _ATEN.squeeze.dim, _ATEN.squeeze.dims, _ATEN.unsqueeze.default,
    _ATEN.pixel_shuffle.default, _ATEN.pixel_unshuffle.default, _ATEN.channel_shuffle.default)

# Operators whose results a program copies, to be contiguous
_PERMUTATIONS = (_ATEN.permute.default, _ATEN.transpose.int)
_PARTS = (
    _ATEN.slice.Tensor, _ATEN.select.int, _ATEN.unbind.int, _ATEN.split.Tensor,
    _ATEN.split_with_sizes.default, _ATEN.split.sizes, _ATEN.chunk.default, _ATEN.unsafe_chunk.default,
    _ATEN.roll.default, _ATEN.expand.default, _ATEN.stft.default, _ATEN.stft.center)

# Operators whose int8 results are contiguous
_EXTREMES = (_ATEN.minimum.default, _ATEN.maximum.default)

# Operators on several tensors of one dim order
_JOINTS = (
    _ATEN.add.Tensor, _ATEN.add_.Tensor, _ATEN.sub.Tensor, _ATEN.mul.Tensor, _ATEN.mul_.Tensor,
    _ATEN.div.Tensor, _ATEN.cat.default, _ATEN.minimum.default, _ATEN.maximum.default)

# Operators with int8 kernels for two tensors of equal sizes
_PAIRS = (
    _ATEN.add.Tensor, _ATEN.add_.Tensor, _ATEN.sub.Tensor, _ATEN.mul.Tensor, _ATEN.mul_.Tensor)

_LARGEST_CONSTANT = 4096  # bytes that a folded result may have
_TENSORS = ("Tensor", "List[Tensor]")  # types of results that may be folded


def inline_modes(graph: torch.fx.GraphModule) -> None:
    """Inline the subgraphs of torch.no_grad and torch.enable_grad."""
    while nodes := [node for node in graph.graph.nodes if is_mode(node)]:
        for node in nodes:
            inner = getattr(graph, node.args[1].target)
            results = insert_copies(graph, node, inner, node.args[2:], f"_{node.name}")
            for user in list(node.users):
                user.replace_all_uses_with(results[user.args[1]])
                graph.graph.erase_node(user)
            graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def is_mode(node: torch.fx.Node) -> bool:
    """Return True for a call of a subgraph of torch.no_grad or torch.enable_grad."""
    return node.op == "call_function" and str(node.target) == "wrap_with_set_grad_enabled"


def insert_copies(graph: torch.fx.GraphModule, node: torch.fx.Node, inner: torch.fx.GraphModule,
                  arguments: Sequence[Any], name: str) -> list[torch.fx.Node]:
    """Insert the operators of another graph before a node; return their results.

    arguments: for its inputs. name: the first part of the names of its constants and subgraphs.
    """
    copies = dict(zip(inner.graph.find_nodes(op="placeholder"), arguments, strict=True))
    with graph.graph.inserting_before(node):
        for one in inner.graph.nodes:
            if one.op == "get_attr":
                value = constant(inner, one)
                copies[one] = graph.graph.get_attr(add_buffer(graph, f"{name}_{one.name}", value))
                copies[one].meta = dict(one.meta)
            elif one.op == "call_function":
                copies[one] = graph.graph.node_copy(one, copies.__getitem__)
    (results,) = inner.graph.output_node().args
    return [copies[result] for result in results]


def name_convolutions(graph: torch.fx.GraphModule) -> None:
    """Replace aten.convolution, which TorchScript leads to, by conv1d, conv2d or conv_transpose2d."""
    for node in graph.graph.nodes:
        if node.target not in (_ATEN.convolution.default, _ATEN._convolution.default):
            continue
        x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = node.args[:9]
        dims = weight.meta["val"].dim()
        if transposed and dims == _IMAGE_DIMS:
            node.target = _ATEN.conv_transpose2d.input
            node.args = (x, weight, bias, stride, padding, output_padding, groups, dilation)
        elif not transposed and dims in (_IMAGE_DIMS - 1, _IMAGE_DIMS):
            node.target = _ATEN.conv2d.default if dims == _IMAGE_DIMS else _ATEN.conv1d.default
            node.args = (x, weight, bias, stride, padding, dilation, groups)
    graph.recompile()


def call(graph: torch.fx.GraphModule, node: torch.fx.Node, target: torch._ops.OpOverload, *args: Any,
         **options: Any) -> torch.fx.Node:
    """Insert a call before a node, for the same module."""
    with graph.graph.inserting_before(node):
        made = graph.graph.call_function(target, args, options)
    values = torch.fx.node.map_arg(args, lambda one: one.meta["val"])
    made.meta = {"val": target(*values, **options),
                 "nn_module_stack": node.meta.get("nn_module_stack", {})}
    return made


def copy_as(graph: torch.fx.Graph, value: torch.fx.Node, like: torch.Tensor) -> torch.fx.Node:
    """Insert a copy of a value at the end of an edge graph, in the dim order of another tensor."""
    with graph.inserting_before(graph.output_node()):
        copy = graph.call_function(COPY, (value,), {"dim_order": list(like.dim_order())})
    copy.meta = {**value.meta, "val": torch.empty_like(like)}
    return copy


# ---- constants


def fold_constants(graph: torch.fx.GraphModule) -> None:
    """Compute the values that depend on parameters, buffers and numbers alone.

    Examples are the weights of weight_norm, positions, and the first state of a recurrent layer. The
    quantizer accepts constants; it leaves the results of operators in float. Random values, and large
    results of small inputs, are still computed in each run.
    """
    values: dict[torch.fx.Node, Any] = {}
    limits: dict[torch.fx.Node, int] = {}
    for node in graph.graph.nodes:
        if not _is_folded(node, values):
            continue
        with torch.no_grad():
            value = node.target(*_values_of(graph, node.args, values),
                                **_values_of(graph, node.kwargs, values))
        limit = sum(limits[one] if one in limits else constant(graph, one).nbytes
                    for one in node.all_input_nodes)
        if _nbytes(value) <= max(limit, _LARGEST_CONSTANT):
            values[node], limits[node] = value, limit
    values = _without_changed(graph, values)
    for node, value in values.items():
        if not isinstance(value, torch.Tensor) or all(user in values for user in node.users):
            continue
        name = add_buffer(graph, f"_constant_{node.name}", value.detach().clone())
        with graph.graph.inserting_before(node):
            folded = graph.graph.get_attr(name)
        folded.meta = dict(node.meta)
        node.replace_all_uses_with(folded, lambda user: user not in values)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _without_changed(graph: torch.fx.GraphModule,
                     values: dict[torch.fx.Node, Any]) -> dict[torch.fx.Node, Any]:
    """Remove values that an operator changes in place, and values computed from them."""
    def bytes_of(node: torch.fx.Node) -> set[int]:
        return _storages(values[node] if node in values else constant(graph, node))

    changed = set()
    for node in graph.graph.nodes:
        if any(_changes(user) for user in node.users) and (
                node in values or _is_tensor(graph.graph, node)):
            changed |= bytes_of(node)
    kept: dict[torch.fx.Node, Any] = {}
    for node, value in values.items():
        sources = [one for one in node.all_input_nodes if one not in kept]
        if not (_storages(value) & changed or any(
                one in values or bytes_of(one) & changed for one in sources)):
            kept[node] = value
    return kept


def _storages(value: Any) -> set[int]:
    return {one.untyped_storage().data_ptr() for one in torch.utils._pytree.tree_leaves(value)
            if isinstance(one, torch.Tensor) and one.numel()}


def _nbytes(value: Any) -> int:
    return sum(one.nbytes for one in torch.utils._pytree.tree_leaves(value))


def _is_folded(node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> bool:
    if node.target is operator.getitem:
        return node.args[0] in values
    return (isinstance(node.target, torch._ops.OpOverload) and not _changes(node)
            and not _is_random(node) and all(one in values or _is_tensor(node.graph, one)
                                             for one in node.all_input_nodes)
            and all(str(one.type) in _TENSORS for one in node.target._schema.returns)
            and len(node.target._schema.returns) > 0)


def _is_tensor(graph: torch.fx.Graph, node: torch.fx.Node) -> bool:
    return node.op == "get_attr" and isinstance(constant(graph.owning_module, node), torch.Tensor)


def _values_of(graph: torch.fx.GraphModule, arguments: Any, values: dict[torch.fx.Node, Any]) -> Any:
    return torch.fx.node.map_arg(
        arguments, lambda node: values[node] if node in values else constant(graph, node))


def add_buffer(graph: torch.fx.GraphModule, name: str, value: torch.Tensor | torch.nn.Module) -> str:
    """Register a constant or a subgraph by this name, or by another if it exists; return the name."""
    while hasattr(graph, name):
        name += "_"
    if isinstance(value, torch.nn.Module):
        graph.add_module(name, value)
    else:
        graph.register_buffer(name, value)
    return name


def new_constant(graph: torch.fx.GraphModule, node: torch.fx.Node, name: str,
                 value: torch.Tensor) -> torch.fx.Node:
    """Insert a constant before a node, for the same module."""
    value = value.contiguous()
    with graph.graph.inserting_before(node):
        made = graph.graph.get_attr(add_buffer(graph, name, value))
    made.meta = {"val": value, "nn_module_stack": node.meta.get("nn_module_stack", {})}
    return made


def constant(graph: torch.fx.GraphModule, node: torch.fx.Node) -> torch.Tensor:
    """Return the weight or buffer that a get_attr node names."""
    value: Any = graph
    for name in node.target.split("."):
        value = getattr(value, name)
    return value


def _changes(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _is_random(node: torch.fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in node.target.tags


# ---- dim orders


def in_channels_last(value: Any) -> Any:
    """Return a module or tensor with images (batch, channels, height, width) stored channels last."""
    with torch.no_grad():  # TorchScript's parameters are buffers with gradients
        if isinstance(value, torch.nn.Module):
            return value._apply(in_channels_last)  # to() refuses buffers of 5 dims
        if getattr(value, "ndim", 0) == _IMAGE_DIMS:
            return value.to(memory_format=torch.channels_last)
        return value


def takes_images(graph: torch.fx.GraphModule) -> bool:
    """Return True for a graph with convolutions or pooling over height and width."""
    return any(node.target in _IMAGE_OPERATORS for node in graph.graph.nodes)


def place_copies(graph: torch.fx.GraphModule, arguments: tuple[Any, ...]) -> None:
    """Insert copies where an operator needs another dim order than its input has with these arguments.

    Convolutions and pooling need channels last. Normalizations, linear layers, products of matrices,
    stacks and views need contiguous inputs. A view is inserted where two tensors with as many elements
    differ in rank.
    """
    with torch.no_grad():
        _Copies(graph).run(*torch.utils._pytree.tree_leaves(arguments))
    graph.recompile()


def _is_copied(node: torch.fx.Node) -> bool:
    """Return True for a view that a program copies to be contiguous: of a part, or in another order."""
    return node.target in _PERMUTATIONS or isinstance(node.target, torch._ops.OpOverload) and (
        node.target in _PARTS)


def _contiguous(value: Any) -> Any:
    """Return a copy with the strides of a contiguous tensor, in dims of size 1 also."""
    if isinstance(value, list | tuple):
        return type(value)(map(_contiguous, value))
    if not isinstance(value, torch.Tensor):
        return value
    return value.clone(memory_format=torch.contiguous_format)


class _Copies(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.copies: dict[tuple[torch.fx.Node, torch.memory_format], torch.fx.Node] = {}

    def run_node(self, node: torch.fx.Node) -> Any:
        if node.target is _ATEN.view.default and node.args[0].target in _PERMUTATIONS:
            node.target = _ATEN.reshape.default  # PyTorch does not copy what it permutes
        if node.target in _IMAGE_OPERATORS:
            self._copy(node, node.args[0], torch.channels_last)
            if node.target is _ATEN.conv2d.default:
                self._define_dim_order(node)
        elif (node.target in _CONTIGUOUS_OPERATORS or str(node.target) == ROI_ALIGN
              or node.target in _VIEWS):
            for source in node.all_input_nodes:
                self._copy(node, source, torch.contiguous_format)
        elif node.target is _ATEN.mean.dim and self._is_over_image(node):
            self._copy(node, node.args[0], torch.channels_last)
        elif node.target in _JOINTS and (self._has_gate(node) or not all(
                map(self._is_contiguous, node.all_input_nodes))):
            for source in node.all_input_nodes:
                self._copy(node, source, torch.channels_last)
        elif node.target in _PAIRS:
            self._match_ranks(node)
            self._expand_constant(node)
        result = super().run_node(node)
        if node.target in _IMAGE_OPERATORS and isinstance(result, torch.Tensor) and result.shape[1] > 1:
            return result.contiguous(memory_format=torch.channels_last)  # as all int8 kernels return it
        if _is_copied(node) or node.target in _VIEWS or node.target in _EXTREMES:
            return _contiguous(result)
        return result

    def _match_ranks(self, node: torch.fx.Node) -> None:
        """Give a state of (1, batch, features) and features of (batch, features) the same sizes.

        Tensors that broadcast one another, as in an outer product, stay as they are.
        """
        values = [self.env.get(source) for source in node.args[:2]]
        if not all(isinstance(value, torch.Tensor) for value in values):
            return
        (small, value), (_, like) = sorted(zip(node.args, values, strict=False),
                                           key=lambda pair: pair[1].dim())
        if value.shape == like.shape:
            return
        if value.numel() == like.numel() == torch.broadcast_shapes(value.shape, like.shape).numel():
            with node.graph.inserting_before(node):
                view = node.graph.call_function(_ATEN.reshape.default, (small, list(like.shape)))
            view.meta["nn_module_stack"] = node.meta.get("nn_module_stack", {})
            self.env[view] = value.reshape(like.shape)
            node.replace_input_with(small, view)

    def _define_dim_order(self, node: torch.fx.Node) -> None:
        """Enlarge a kernel of 1x1 over one contiguous channel by rows of zeros to 3x1.

        The strides of such an input and such a weight are those of either dim order. PyTorch then
        returns a contiguous output, for which the quantizer has no int8 convolution.
        """
        x, weight = (self.env[source] for source in node.args[:2])
        if (weight.shape[0] == 1 or weight.shape[1:] != (1, 1, 1) or x.dim_order()[1] != 1
                or node.args[1].op != "get_attr"):
            return
        taller = torch.zeros(weight.shape[0], 1, 3, 1)
        taller[:, :, 1] = weight.detach()[:, :, 0]
        made = new_constant(self.module, node, f"_taller_weight_of_{node.name}",
                            taller.to(memory_format=torch.channels_last))
        self.env[made] = made.meta["val"]
        padding = node.args[4] if len(node.args) > 4 else [0, 0]
        args = [*node.args, *(None, [1, 1], None)[len(node.args) - 2:]]  # up to bias, stride, padding
        node.args = (node.args[0], made, *args[2:4], [padding[0] + 1, padding[-1]], *args[5:])

    def _expand_constant(self, node: torch.fx.Node) -> None:
        """Store a constant in the sizes of the other operand, unless int8 kernels broadcast it."""
        for constant_of, other in (node.args[:2], node.args[1::-1]):
            if not isinstance(other, torch.fx.Node) or getattr(constant_of, "op", "") != "get_attr":
                continue
            value, like = self.env[constant_of], self.env[other]
            is_gate = like.dim() == _IMAGE_DIMS and value.shape[-2:] == (1, 1)
            if (1 < value.numel() < like.numel() <= _LARGEST_CONSTANT and not is_gate
                    and torch.broadcast_shapes(value.shape, like.shape) == like.shape):
                made = new_constant(self.module, node, f"_expanded_{constant_of.name}",
                                    value.detach().expand_as(like))
                self.env[made] = made.meta["val"]
                node.replace_input_with(constant_of, made)

    def _is_over_image(self, node: torch.fx.Node) -> bool:
        """Return True for a mean over height and width, which becomes an average pool."""
        return self._is_image(node.args[0]) and {
            dim % _IMAGE_DIMS for dim in node.args[1] or ()} == {2, 3}

    def _has_gate(self, node: torch.fx.Node) -> bool:
        """Return True for an image and one number a channel, which int8 kernels broadcast."""
        shapes = {tuple(self.env[one].shape) for one in node.all_input_nodes if self._is_image(one)}
        return len(shapes) == 2 and any(
            shape[1] > 1 and shape[2:] == (1, 1) for shape in shapes)

    def _is_image(self, node: torch.fx.Node) -> bool:
        value = self.env[node]
        return isinstance(value, torch.Tensor) and value.dim() == _IMAGE_DIMS

    def _is_contiguous(self, node: torch.fx.Node) -> bool:
        return not self._is_image(node) or self.env[node].is_contiguous()

    def _copy(self, node: torch.fx.Node, source: torch.fx.Node,
              memory_format: torch.memory_format) -> None:
        if not self._is_image(source):
            return
        if self.env[source].shape[1] == 1:  # both orders in one, which ExecuTorch states as contiguous
            memory_format = torch.contiguous_format
        if self.env[source].is_contiguous(memory_format=memory_format):
            return
        copy = self.copies.get((source, memory_format))
        if copy is None:
            with node.graph.inserting_before(node):
                copy = node.graph.call_function(_ATEN.clone.default, (source,),
                                                {"memory_format": memory_format})
            copy.meta["nn_module_stack"] = node.meta.get("nn_module_stack", {})
            self.env[copy] = self.env[source].clone(memory_format=memory_format)
            self.copies[source, memory_format] = copy
        node.replace_input_with(source, copy)
