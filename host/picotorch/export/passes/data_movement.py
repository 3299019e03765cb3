"""Find the operators that int8 computes on stored integers without the scales.

They move elements, or compare elements of one scale. Every other operator has a kernel of the Cortex-M
flow that reads the scales, or computes in float.

Importing it imports torch and executorch.
"""

import operator
from collections.abc import Iterable
from typing import Any

import torch
from executorch.backends.arm._passes.fuse_constant_ops_pass import ComputeConstantOpsAOTPass
from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo
from executorch.backends.arm.constants import DQ_OPS, Q_OPS
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.pass_base import ExportPass, PassResult

from picotorch.errors import NOT_SUPPORTED, fail

_ATEN = torch.ops.aten

# Operators of a graph before lowering, whose inputs and results share one scale
MOVERS: tuple[Any, ...] = (
    _ATEN.clone.default, _ATEN.lift_fresh_copy.default, _ATEN.detach_.default, _ATEN.alias.default,
    _ATEN.alias_copy.default, _ATEN.copy_.default, _ATEN.detach_copy.default,
    _ATEN.unfold_copy.default, _ATEN.unbind.int, _ATEN.minimum.default, _ATEN.maximum.default,
    _ATEN.min.dim, _ATEN.max.dim, _ATEN.amin.default, _ATEN.amax.default, _ATEN.permute.default,
    _ATEN.permute_copy.default, _ATEN.transpose.int, _ATEN.transpose_copy.int, _ATEN.t_copy.default,
    _ATEN.t.default, _ATEN.repeat.default, _ATEN.repeat_interleave.self_int,
    _ATEN.expand_copy.default, _ATEN.expand.default, _ATEN.select.int, _ATEN.select_copy.int,
    _ATEN.slice.Tensor, _ATEN.slice_copy.Tensor, _ATEN.split.Tensor, _ATEN.split_with_sizes.default,
    _ATEN.split_copy.Tensor, _ATEN.tile.default, _ATEN.flip.default, _ATEN.index_select.default,
    _ATEN.index_put.default, _ATEN.index_put_.default, _ATEN.index_copy.default,
    _ATEN.index_copy_.default, _ATEN.contiguous.default, _ATEN.as_strided_copy.default,
    _ATEN.pixel_shuffle.default, _ATEN.pixel_unshuffle.default, _ATEN.cat.default,
    _ATEN.concat.default, _ATEN.concatenate.default, _ATEN.stack.default, _ATEN.dropout.default,
    _ATEN.dropout_.default, _ATEN.chunk.default, _ATEN.index.Tensor, _ATEN.gather.default,
    operator.getitem, _ATEN.squeeze.default, _ATEN.squeeze_copy.default, _ATEN.squeeze_copy.dim,
    _ATEN.squeeze.dim, _ATEN.squeeze.dims, _ATEN.squeeze_.dim, _ATEN.unsqueeze.default,
    _ATEN.unsqueeze_copy.default, _ATEN.reshape.default, _ATEN.view.default,
    _ATEN.view_copy.default, _ATEN._unsafe_view.default, _ATEN.unflatten.int,
    _ATEN.flatten.using_ints, _ATEN.pad.default, _ATEN.constant_pad_nd.default, _ATEN.clamp.default,
    _ATEN.clamp.Tensor, _ATEN.hardtanh.default, _ATEN.hardtanh_.default, _ATEN.relu.default,
    _ATEN.relu_.default, _ATEN.where.self, _ATEN.upsample_nearest2d.vec,
    _ATEN.upsample_nearest1d.vec, _ATEN.upsample_nearest2d.default, _ATEN.upsample_nearest1d.default)

# The same, and what they become, as an edge program names them
_NAMES = frozenset(
    {name for one in MOVERS if isinstance(one, torch._ops.OpOverload)
     for name in (one._schema.name, f"{one._schema.name.rstrip('_')}_copy")}
    | {"dim_order_ops::_clone_dim_order", "aten::max_pool2d", "aten::max_pool2d_with_indices",
       "aten::roll", "aten::repeat_interleave"})

# Operators without inputs. ExecuTorch's pass would state their values as integers, and not change them
_MAKERS = ComputeConstantOpsAOTPass.targeted_ops
_FULL, _LIKE = exir_ops.edge.aten.full.default, exir_ops.edge.aten.full_like.default

_WEIGHTED = (exir_ops.edge.aten.linear.default, exir_ops.edge.aten.convolution.default)


def keep_to(layers: Iterable[EdgeOpOverload]) -> type[ExportPass]:
    """Return a pass that leaves in float the operators that would compute with stored integers.

    The pass keeps operators that move integers of one scale, and `layers`: operators of an edge program
    with all their scales.
    """

    class _KeepTo(ExportPass):  # type: ignore[misc]
        def __init__(self, exported_program: torch.export.ExportedProgram) -> None:
            super().__init__()
            self.exported_program = exported_program

        def call(self, module: torch.fx.GraphModule) -> PassResult:
            for joined in _joined(module.graph):
                if not _is_whole(joined, set(layers), self.exported_program.graph_signature):
                    for node in joined:
                        node.meta["custom"] = node.meta["custom"] | {
                            ArmAnnotationInfo.CUSTOM_META_KEY: ArmAnnotationInfo(quantized=False)}
            for node in list(module.graph.nodes):
                if node.target is _LIKE:
                    node.target, node.args = _FULL, (list(node.meta["val"].shape), node.args[1])
                    node.kwargs = {"dtype": node.meta["val"].dtype}
                if node.target in _MAKERS and any(user.target in Q_OPS for user in node.users):
                    _part_from_users(module.graph, node)
            module.graph.eliminate_dead_code()
            module.recompile()
            return PassResult(module, True)

    return _KeepTo


def is_marked(node: torch.fx.Node) -> bool:
    """Return True for an operator that the quantizer gave scales."""
    mark = node.meta.get("custom", {}).get(ArmAnnotationInfo.CUSTOM_META_KEY)
    return (node.op == "call_function" and node.target not in (*Q_OPS, *DQ_OPS)
            and mark is not None and ArmAnnotationInfo(mark).quantized)


def _joined(graph: torch.fx.Graph) -> list[set[torch.fx.Node]]:
    """Return the sets of nodes, without a quantizer in between, that ExecuTorch makes integer."""
    found, seen = [], set()
    for node in graph.nodes:
        joined, waiting = set(), [node] if is_marked(node) and node not in seen else []
        while waiting:
            one = waiting.pop()
            if one not in joined:
                joined.add(one)
                waiting += [near for near in (*one.all_input_nodes, *one.users) if is_marked(near)]
        seen |= joined
        if joined:
            found.append(joined)
    return found


def _is_whole(joined: set[torch.fx.Node], layers: set[EdgeOpOverload],
              signature: torch.export.ExportGraphSignature) -> bool:
    """Return True if integers come in and go out everywhere; for movers, of one scale."""
    parameters = set()
    for node in joined:
        if not (_moves(node) or node.target in layers):
            return False
        if node.target in _WEIGHTED and not _is_constant(node.args[1], signature):
            return False
        for source in node.all_input_nodes:
            if source.target in DQ_OPS:
                parameters.add(source.args[1:])
            elif source not in joined and _is_float(source):
                return False
        for user in node.users:
            if user.target in Q_OPS:
                parameters.add(user.args[1:])
            elif user not in joined and _is_float(node):
                return False
    return len(parameters) == 1 or not all(map(_moves, joined))


def _moves(node: torch.fx.Node) -> bool:
    return node.target is operator.getitem or getattr(
        getattr(node.target, "_schema", None), "name", None) in _NAMES


def _is_float(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _is_constant(node: torch.fx.Node, signature: torch.export.ExportGraphSignature) -> bool:
    """Return True for the integers of a weight that is stored in the program."""
    return node.target in DQ_OPS and node.args[0].name not in signature.user_inputs and (
        node.args[0].op == "placeholder")


def _part_from_users(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Insert a view between an operator and the operator that quantizes its result."""
    with graph.inserting_after(node):
        view = graph.call_function(exir_ops.edge.aten.view_copy.default,
                                   (node, list(node.meta["val"].shape)))
    view.meta = {key: value for key, value in node.meta.items() if key != "custom"}
    node.replace_all_uses_with(view, lambda user: user is not view)


def check(graph: torch.fx.Graph) -> None:
    """Raise NotSupported if an operator of an edge program computes with stored integers as values."""
    stored: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name = getattr(getattr(node.target, "_schema", None), "name", "")
        has_kernel = name.startswith(
            ("cortex_m::", "quantized_decomposed::", "picotorch::quantized_"))
        takes = not stored.isdisjoint(node.all_input_nodes)
        if takes and not has_kernel and not _moves(node):
            raise fail(NOT_SUPPORTED, f"{name} has no int8 kernel, and its input is int8", "module",
                       remedy="write it with other operators, or export it without --quantize")
        if "::dequantize" not in name and (has_kernel or takes):
            stored.add(node)
