"""Lower an exported program to an int8 program by ExecuTorch's Cortex-M flow.

The flow is its quantizer, its edge configuration and its passes. Operators that the quantizer does not
support are decomposed first: cells of recurrent networks, attention.

Importing it imports torch, executorch and tosa-tools.
"""

import copy
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from executorch.backends.arm._passes import FoldAndAnnotateQParamsPass
from executorch.backends.arm.quantizer.arm_quantizer_utils import SharedQspecQuantizer
from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.passes import (
    ActivationFusionPass,
    AtenToCortexMPass,
    CortexMPassManager,
    DecomposeHardswishPass,
    passes_utils,
)
from executorch.backends.cortex_m.quantizer.pattern_checkers import CortexMSoftmaxCheck
from executorch.backends.cortex_m.quantizer.pattern_matcher import PatternMatcher
from executorch.backends.cortex_m.quantizer.quantization_configs import (
    INT8_PER_TENSOR_CONFIG,
    SOFTMAX_OUTPUT_FIXED_QSPEC,
)
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer, mark_node_as_annotated
from executorch.backends.cortex_m.target_config import CortexMTargetConfig
from executorch.backends.transforms.aten_to_dialect_pass import AtenToDialectPass, DialectNodeSpec
from executorch.backends.transforms.remove_getitem_op import RemoveGetItemPass
from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.pass_base import ExportPass, PassResult, ProxyValue
from torch._guards import detect_fake_mode
from torch.fx.traceback import NodeSource
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import (
    FixedQParamsQuantizationSpec,
    QuantizationSpec,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from picotorch.errors import INVALID_ARGUMENT, fail

from . import aliases, graph_edits, observer_names, observers, refusals
from .lower_float import Lowered, Quantized, finish, path_of, source_name, value_name
from .passes import (
    canonicalize,
    convolutions,
    data_movement,
    fit_biases,
    fold_batch_norms,
    fold_scales,
    fuse_recurrent,
    integer_operators,
    linalg_errors,
    masks,
    name_norms,
    sequences_as_images,
    slices,
    states,
)
from .progress import Each

_ATEN = torch.ops.aten

# Operators of PyTorch, in steps that the quantizer supports
_COMPOSITES = (
    _ATEN.gru_cell.default, _ATEN.lstm_cell.default, _ATEN.rnn_tanh_cell.default,
    _ATEN.rnn_relu_cell.default, _ATEN.gru.input, _ATEN.lstm.input, _ATEN.rnn_tanh.input,
    _ATEN.rnn_relu.input, _ATEN.scaled_dot_product_attention.default, _ATEN.channel_shuffle.default,
    _ATEN.einsum.default, _ATEN.glu.default, _ATEN.narrow.default, _ATEN.tensor_split.sections,
    _ATEN.tensor_split.indices, _ATEN.hsplit.int, _ATEN.vsplit.int, _ATEN.broadcast_to.default,
    _ATEN.expand_as.default, _ATEN.view_as.default, _ATEN.reshape_as.default, _ATEN.movedim.int,
    _ATEN.movedim.intlist, _ATEN.swapaxes.default, _ATEN.swapdims.default, _ATEN.mT.default,
    _ATEN.numpy_T.default)

# Operators that the quantizer supports under another name
_SAFE = {_ATEN.unsafe_split.Tensor: _ATEN.split.Tensor, _ATEN.unsafe_chunk.default: _ATEN.chunk.default,
         _ATEN.unsafe_split_with_sizes.default: _ATEN.split_with_sizes.default}

_EXTREMES = {_ATEN.max.dim: _ATEN.amax.default, _ATEN.min.dim: _ATEN.amin.default}

_HARDSIGMOIDS = (_ATEN.hardsigmoid.default, _ATEN.hardsigmoid_.default)

_AVERAGES = (_ATEN.avg_pool2d.default, _ATEN.adaptive_avg_pool2d.default)
_DIVISOR = 6  # the argument divisor_override of avg_pool2d

_MAX_REFUSED = 64  # nodes; each costs a quantization

_DROPOUTS = (_ATEN.dropout.default, _ATEN.dropout_.default, _ATEN.feature_dropout.default,
             _ATEN.alpha_dropout.default)
_ALIASES = (_ATEN.detach.default, _ATEN.alias.default, _ATEN.positive.default)  # of their input


def lower_int8(exported: torch.export.ExportedProgram, samples: Iterable[tuple[Any, ...]], core: str,
               fuse_rnn: bool = False, keep_float: Iterable[str] = (),
               observer: str = observer_names.DEFAULT, each: Each = iter) -> Lowered:
    """Quantize and lower a program by the ranges of samples (arguments of forward), for a core.

    core: "cortex-m4" for instance. Weights and buffers of the exported module stay as they are.
    fuse_rnn: recurrent layers compute with floats and int8 weights, an instruction each. keep_float:
    layers that stay in float, each the path of a module, with all in it, or the name of a value, as the
    report has them. observer: see observers. each(samples) yields the samples, and reports progress.

    The twin may reject the result, if it rejects an operator in float too. Raises InvalidArgument for a
    name that no layer has.
    """
    exported = _functional(exported)
    if fuse_rnn:
        exported = fuse_recurrent.fuse(exported)
    graph, samples = copy.deepcopy(exported.module(check_guards=False)), list(samples)
    graph_edits.inline_modes(graph)
    graph, kept = states.into_inputs(graph)
    samples = states.with_states(graph, samples, kept)
    graph_edits.fold_constants(graph)
    graph_edits.name_convolutions(graph)
    name_norms.name(graph)
    canonicalize.replace(graph)
    fold_scales.fold(graph)
    slices.replace(graph)
    fold_batch_norms.replace(graph)
    sequences_as_images.as_images(graph)
    if graph_edits.takes_images(graph):
        graph = graph_edits.in_channels_last(graph)
        samples = [tuple(map(graph_edits.in_channels_last, arguments)) for arguments in samples]
    _multiply_by_reciprocals(graph)
    _subtract_from_constants(graph)
    _take_extremes(graph)
    linalg_errors.into_operators(graph)
    _take_apart(graph)
    _drop_copies(graph)
    graph_edits.place_copies(graph, samples[0])
    graph = torch.export.export(graph, samples[0], strict=False).module(check_guards=False)
    graph_edits.fold_constants(graph)
    in_float: set[str] = set()  # names of nodes that no int8 program can compute
    first = None
    while True:
        try:
            return _lower(copy.deepcopy(graph), each, samples, core,
                          _Quantizer(samples, keep_float, in_float, observer), kept)
        except refusals.Refused as refused:
            first = first or refused
            found = refused.names - in_float
            if not found or len(in_float) >= _MAX_REFUSED:
                program = refused.lowered or first.lowered
                if program is not None:  # the twin refuses it once more, and the caller names the layer
                    return program
                try:
                    raise first.error from first.error.__cause__
                finally:
                    first = None  # no cycle of the error and this frame
            in_float |= found


def _lower(graph: torch.fx.GraphModule, each: Each, samples: list[tuple[Any, ...]], core: str,
           quantizer: "_Quantizer", kept: Sequence[states.State]) -> Lowered:
    """Lower a transformed graph.

    kept: the states, which are the last inputs and outputs of the graph.

    Raises Refused for an operator that the flow, or the twin, rejects.
    """
    prepared = prepare_pt2e(graph, quantizer)
    states.share_scales(prepared, len(kept))
    with torch.no_grad():
        for arguments in each(samples):
            prepared(*arguments)
    fit_biases.widen_scales(prepared)
    reference = _without_observers(copy.deepcopy(prepared))
    with refusals.of_nodes(reference):
        converted = convert_pt2e(prepared)
        fuse_recurrent.quantize_weights(converted)
        quantized = _quantization(converted)
        integers = integer_operators.into_operators(converted)
        edge = to_edge(_traced_to(integers, samples[0]),
                       compile_config=cortex_m_edge_compile_config())
        manager = CortexMPassManager(edge.exported_program(), _passes(),
                                     CortexMTargetConfig.from_target_string(core))
        edge._edge_programs["forward"] = manager.transform()
        data_movement.check(edge.exported_program().graph)
        states.into_buffers(edge.exported_program(), kept)
        lowered = finish(edge, states.into_module(reference, kept), quantized,
                         states.into_module(converted, kept))._replace(kept=quantizer.kept)
    refusals.check(lowered)
    return lowered


def _traced_to(graph: torch.fx.GraphModule, arguments: tuple[Any, ...]) -> torch.export.ExportedProgram:
    """Export a graph, and make its names the ones to which later graphs trace their nodes.

    The names in the exported program differ: torch.export derives them from the operators, and some
    operators are no longer the ones of the float graph.
    """
    for node in graph.graph.nodes:
        node.meta.pop("from_node", None)
    exported = torch.export.export(graph, arguments, strict=False)
    results = {(node.args[0].name, node.args[1]): node
               for node in graph.graph.find_nodes(op="call_function", target=operator.getitem)}
    for node in exported.graph.find_nodes(op="call_function", target=operator.getitem):
        # torch.export traces it to the operator with several results, and adds results without a user
        result = results.get((source_name(node.args[0]), node.args[1]))
        if result is not None:
            node.meta["from_node"] = [NodeSource(result)]
    return exported


def _named(graph: torch.fx.GraphModule, names: Iterable[str]) -> set[torch.fx.Node]:
    """Return the nodes that are, or are part of, the layers of these names."""
    found, nodes = set(), [node for node in graph.graph.nodes if node.op == "call_function"]
    for name in names:
        layers = {node for node in nodes if name in (node.name, value_name(node))
                  or (name and f"{path_of(node)}.".startswith(f"{name}."))}
        if not layers:
            paths = ", ".join(dict.fromkeys(path_of(node) or node.name for node in nodes))
            raise fail(INVALID_ARGUMENT, f"no layer {name!r}, there are {paths}", "keep_float")
        found |= layers
    return found


def _functional(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Give a separate result to operators that change in place a value with other users.

    Quantization would copy the value in between. Operators under torch.no_grad, which may change any
    view, get separate results too.
    """
    shared = any(_changes_shared(node) or graph_edits.is_mode(node) for node in exported.graph.nodes)
    return exported.run_decompositions({}) if shared else exported


def _changes_shared(node: torch.fx.Node) -> bool:
    """Return True for an operator that changes a value with other users, an input, or a buffer."""
    return any(len(value.users) > 1 or value.op == "placeholder" for value in aliases.changed_by(node))


def _drop_copies(graph: torch.fx.GraphModule) -> None:
    """Remove operators that return their input."""
    for node in list(graph.graph.nodes):
        if node.target in _ALIASES or node.target in _DROPOUTS and not node.args[2]:
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    graph.recompile()


def _multiply_by_reciprocals(graph: torch.fx.GraphModule) -> None:
    """Replace x / 3 by x * (1 / 3), which has an int8 kernel, where 1 / 3 is finite.

    Quotients of integers stay: 7 * (1 / 7) may be less than 1.
    """
    for node in graph.graph.nodes:
        if (node.target is _ATEN.div.Tensor and isinstance(node.args[1], int | float)
                and _is_float(node.args[0]) and node.args[1] and math.isfinite(1 / node.args[1])):
            node.target, node.args = _ATEN.mul.Tensor, (node.args[0], 1 / node.args[1])
    graph.recompile()


def _subtract_from_constants(graph: torch.fx.GraphModule) -> None:
    """Replace rsub, 1 - x, by a difference of tensors, which has an int8 kernel.

    Differences of integers stay, since they are integers.
    """
    for node in list(graph.graph.nodes):
        if node.target is _ATEN.rsub.Scalar and _is_float(node.args[0]):
            x, number, *alpha = node.args
            stored = graph_edits.new_constant(graph, node, f"_constant_of_{node.name}",
                                              torch.tensor(float(number)))
            node.target, node.args = _ATEN.sub.Tensor, (stored, x)
            node.kwargs = {**node.kwargs, **dict(zip(("alpha",), alpha, strict=False))}
    graph.recompile()


def _take_extremes(graph: torch.fx.GraphModule) -> None:
    """Replace x.max(1).values by x.amax([1]); ExecuTorch's own pass makes no list of the dim."""
    for node in list(graph.graph.nodes):
        if (node.op == "call_function" and node.target is operator.getitem and node.args[1] == 0
                and len(node.args[0].users) == 1 and node.args[0].target in _EXTREMES):
            found = node.args[0]
            source, dim, *keeps = found.args
            with graph.graph.inserting_before(node):
                node.replace_all_uses_with(graph.graph.call_function(
                    _EXTREMES[found.target], (source, [dim], *keeps), found.kwargs))
            graph.graph.erase_node(node)
            graph.graph.erase_node(found)
    graph.recompile()


def _take_apart(graph: torch.fx.GraphModule) -> None:
    """Put the steps of a composite operator in its place."""
    for node in list(graph.graph.nodes):
        if node.target in _COMPOSITES:
            _put_steps(graph, node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _put_steps(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    tensors = node.all_input_nodes
    steps = _Steps(node, tensors).graph_module()
    for step in [node for node in steps.graph.nodes if node.op == "call_function"]:
        step.target = _SAFE.get(step.target, step.target)
        step.meta["nn_module_stack"] = node.meta.get("nn_module_stack", {})
    results = graph_edits.insert_copies(graph, node, steps, tensors, f"_constant_of_{node.name}")
    if isinstance(node.meta["val"], torch.Tensor):
        node.replace_all_uses_with(results[0])
    for user in list(node.users):
        user.replace_all_uses_with(results[user.args[1]])
        graph.graph.erase_node(user)
    graph.graph.erase_node(node)


class _Steps(torch.nn.Module):  # type: ignore[misc]
    """A node's operator, with its tensors for inputs."""

    def __init__(self, node: torch.fx.Node, tensors: list[torch.fx.Node]) -> None:
        super().__init__()
        self.node, self.tensors = node, tensors

    def forward(self, *values: torch.Tensor) -> Any:
        inputs = dict(zip(self.tensors, values, strict=True))
        args, kwargs = torch.fx.node.map_arg((self.node.args, self.node.kwargs), inputs.__getitem__)
        if self.node.target is _ATEN.scaled_dot_product_attention.default:
            return _attention(*args, **kwargs)
        return self.node.target(*args, **kwargs)

    def graph_module(self) -> torch.fx.GraphModule:
        examples = tuple(torch.zeros(node.meta["val"].shape, dtype=node.meta["val"].dtype)
                         for node in self.tensors)
        exported = torch.export.export(self, examples, strict=False)
        decompositions = torch.export.default_decompositions()
        target = self.node.target
        table = {target: decompositions[target]} if target in decompositions else {}
        return exported.run_decompositions(table).module(check_guards=False)


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
               mask: torch.Tensor | None = None, dropout: float = 0.0, is_causal: bool = False,
               scale: float | None = None, enable_gqa: bool = False) -> torch.Tensor:
    """Compute softmax(query * key^T * scale + mask) * value."""
    if enable_gqa:  # repeat keys and values to the number of heads of queries
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], -3)
                      for one in (key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.where(mask, 0.0, -math.inf)
        scores = scores + mask
    weights = torch.softmax(scores, -1) if mask is None or is_causal else (
        _ATEN._safe_softmax(scores, -1))  # zeros for a row that is masked whole
    return torch.matmul(weights, value)


class _Softmax(CortexMSoftmaxCheck):  # type: ignore[misc]
    """Accept a softmax along any dim: picotorch's kernel computes it in any order of dims."""

    @classmethod
    def check_pattern(cls, pattern: list[torch.fx.Node]) -> bool:
        return True


class _Quantizer(CortexMQuantizer):  # type: ignore[misc]
    """Quantize operators on the result of softmax with its scale, which is fixed.

    ExecuTorch's quantizer quantizes it once more in between, and then rejects a product with integers
    on one side only.

    The nodes of masks.in_float stay in float, and so do operators that do not move integers:
    ExecuTorch's quantizer treats comparisons with numbers as such.
    """

    def __init__(self, samples: list[tuple[Any, ...]], keep_float: Iterable[str] = (),
                 refused: Iterable[str] = (), observer: str = observer_names.DEFAULT) -> None:
        """Create a quantizer.

        keep_float, observer: see lower_int8. refused: names of nodes that stay in float.
        """
        super().__init__()
        self.observer = observers.of(observer)
        self.samples, self.keep_float, self.refused = samples, keep_float, refused
        self.kept: frozenset[str] = frozenset()  # of Lowered
        self.quantizers[-1] = SharedQspecQuantizer(list(data_movement.MOVERS))
        for quantizer in self.quantizers[:-1]:
            matcher = quantizer.pattern_matcher
            matcher.support_dict = {pattern: check for pattern, check in matcher.support_dict.items()
                                    if pattern[-1] not in _HARDSIGMOIDS} | {
                (one,): _Softmax for one in (_ATEN.softmax.int, _ATEN._softmax.default)}

    def transform_for_annotation(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """Keep the sizes of weights as numbers; as symbols they would get into windows of pools."""
        mode = detect_fake_mode([node.meta.get("val") for node in model.graph.nodes])
        if mode is not None:
            mode.static_shapes = True
        manager = CortexMPassManager(None)
        manager.pass_list_transform_for_annotation = [
            type(one.__name__, (one,), {"ExportInterpreter": _WithConstants})
            for one in manager.pass_list_transform_for_annotation]
        return manager.transform_for_annotation(model)

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        in_float = masks.in_float(model, self.samples)
        requested = self._with_activations(model, _named(model, self.keep_float))
        kept = requested | self._with_activations(
            model, {node for node in model.graph.nodes if node.name in self.refused})
        in_float |= kept | {node for node in model.graph.nodes if _takes_no_floats(node)}
        requested |= _movers_between(model.graph, requested, in_float)
        kept |= _movers_between(model.graph, kept, in_float)
        self.kept = frozenset(value_name(node) for node in requested)
        in_float |= kept
        for node in in_float:
            is_int8_again = (node.target in masks.SOFTMAXES and node not in kept
                             and in_float.isdisjoint(node.users))
            spec = SOFTMAX_OUTPUT_FIXED_QSPEC if is_int8_again else None
            mark_node_as_annotated(node, {}, spec, False)
            node.meta[PatternMatcher.Q_PATTERN_MATCHED_KEY] = True
        _copy_averages(model, in_float)
        scaled = {pattern[-1] for quantizer in self.quantizers[:-1]
                  for pattern in quantizer.pattern_matcher.support_dict}
        for node, x in integer_operators.selected(model, in_float, scaled):
            spec = INT8_PER_TENSOR_CONFIG.get_input_act_qspec()
            mark_node_as_annotated(node, {x: spec}, spec, True)
            node.meta[PatternMatcher.Q_PATTERN_MATCHED_KEY] = True
        model = super().annotate(model)
        for node in model.graph.find_nodes(op="placeholder"):
            if node.users and kept.issuperset(node.users):
                mark_node_as_annotated(node, {}, None, False)
        outputs = getattr(model.graph.output_node().meta.get(Q_ANNOTATION_KEY), "input_qspec_map", {})
        for source in list(outputs):
            if source in in_float or _is_converted(source):
                del outputs[source]
        joints = _free_joints(model.graph)
        for node in model.graph.nodes:
            annotation = node.meta.get(Q_ANNOTATION_KEY)
            inputs = getattr(annotation, "input_qspec_map", {})
            for source, spec in inputs.items():
                if isinstance(spec, QuantizationSpec) and (source, node) not in joints:
                    inputs[source] = spec = _fixed_spec(source) or spec
                inputs[source] = observers.observed_by(spec, self.observer)
            if annotation is not None:
                annotation.output_qspec = observers.observed_by(annotation.output_qspec, self.observer)
        return model

    def _with_activations(self, model: torch.fx.GraphModule,
                          kept: set[torch.fx.Node]) -> set[torch.fx.Node]:
        """Return layers that stay in float, with the activations that int8 would fuse with them.

        By itself an activation would round its input, which a fused one does not.
        """
        pairs = {pattern[i:i + 2] for quantizer in self.quantizers[:-1]
                 for pattern in quantizer.pattern_matcher.support_dict for i in range(len(pattern) - 1)}
        for node in model.graph.nodes:
            source = node.args[0] if node.args else None
            if (isinstance(source, torch.fx.Node) and source in kept and len(source.users) == 1
                    and (source.target, node.target) in pairs):
                kept.add(node)
        return kept


def _movers_between(graph: torch.fx.Graph, kept: set[torch.fx.Node],
                    in_float: set[torch.fx.Node]) -> set[torch.fx.Node]:
    """Return the data movements between kept layers and others in float, inputs and outputs alone.

    With a scale they would round values that go from one layer in float to another, or to an output.
    """
    found, seen = set(), set(in_float)
    for first in graph.nodes:
        if first.target not in data_movement.MOVERS or first in seen:
            continue
        movers, ends, waiting = set(), set(), [first]
        while waiting:
            node = waiting.pop()
            if node.target not in data_movement.MOVERS or node in in_float:
                ends.add(node)
            elif node not in movers:
                movers.add(node)
                waiting += [other for other in (*node.all_input_nodes, *node.users)
                            if other.op == "call_function"]
        seen |= movers
        if ends <= in_float and not ends.isdisjoint(kept):
            found |= movers
    return found


def _is_float(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _takes_no_floats(node: torch.fx.Node) -> bool:
    """Return True for an operator on complex numbers or integers alone, which have no scale."""
    values = [one.meta.get("val") for one in node.all_input_nodes]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return node.op == "call_function" and (
        any(value.is_complex() for value in tensors)
        or (len(tensors) > 0 and not any(value.is_floating_point() for value in tensors)))


def _copy_averages(graph: torch.fx.GraphModule, in_float: set[torch.fx.Node]) -> None:
    """Copy the averages of pools that compute in float.

    An edge program states them as contiguous, and int8 layers require channels-last images.
    """
    for node in list(graph.graph.nodes):
        if node.target not in _AVERAGES or node.meta["val"].shape[1] == 1 or not (
                node in in_float or _has_other_windows(node)):
            continue
        users = [user for user in node.users
                 if user.kwargs.get("memory_format") is not torch.contiguous_format]
        if users:
            copy = graph_edits.call(graph, next(iter(users)), _ATEN.clone.default, node,
                                  memory_format=torch.channels_last)
            node.replace_all_uses_with(copy, users.__contains__)


def _has_other_windows(node: torch.fx.Node) -> bool:
    """Return True for averages that no int8 kernel computes."""
    if node.target is _ATEN.avg_pool2d.default:
        return node.args[_DIVISOR:] not in ((), (None,))
    return set(node.meta["val"].shape[2:]) != {1}


class _WithConstants(ExportPass.ExportInterpreter):  # type: ignore[misc]
    """Pass a constant to passes as the value of a node, as every other operand is passed.

    Without this a product with a constant fails.
    """

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ProxyValue:
        value, tracer = super().get_attr(target, args, kwargs), self.callback.tracer
        return ProxyValue(value, torch.fx.Proxy(tracer.create_arg(value), tracer))


def _is_converted(node: torch.fx.Node) -> bool:
    """Return True for floats made of booleans or integers, whose values a scale would change."""
    return node.target in (_ATEN.to.dtype, _ATEN._to_copy.default) and not (
        node.args[0].meta["val"].is_floating_point())


def _free_joints(graph: torch.fx.Graph) -> set[tuple[torch.fx.Node, torch.fx.Node]]:
    """Observe the results of cat on softmax and other tensors, which softmax's scale would clamp.

    Return the edges whose scale several tensors share.
    """
    # By the edge whose scale nodes share: the tensors that come to it from elsewhere
    sources: dict[tuple[torch.fx.Node, torch.fx.Node], set[torch.fx.Node]] = {}
    for node in graph.nodes:
        annotation = node.meta.get(Q_ANNOTATION_KEY)
        edge = getattr(getattr(annotation, "output_qspec", None), "edge_or_node", None)
        if isinstance(edge, tuple):
            sources.setdefault(edge, set()).update(
                source for source in annotation.input_qspec_map
                if getattr(getattr(source.meta.get(Q_ANNOTATION_KEY), "output_qspec", None),
                           "edge_or_node", None) != edge)
    for (source, node), others in sources.items():
        inputs = node.meta[Q_ANNOTATION_KEY].input_qspec_map
        if isinstance(inputs.get(source), FixedQParamsQuantizationSpec) and not all(
                _fixed_spec(other) == inputs[source] for other in others):
            inputs[source] = INT8_PER_TENSOR_CONFIG.get_input_act_qspec()
    return {edge for edge, others in sources.items() if len(others) > 1}


def _fixed_spec(node: torch.fx.Node) -> FixedQParamsQuantizationSpec | None:
    """Return the fixed scale and zero point of a node's result, None if they are not fixed."""
    spec = getattr(node.meta.get(Q_ANNOTATION_KEY), "output_qspec", None)
    if isinstance(spec, SharedQuantizationSpec) and isinstance(spec.edge_or_node, tuple):
        source, user = spec.edge_or_node
        spec = user.meta[Q_ANNOTATION_KEY].input_qspec_map.get(source)
    return spec if isinstance(spec, FixedQParamsQuantizationSpec) else None


def _without_observers(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    for node in list(graph.graph.nodes):
        if node.op == "call_module" and node.name.startswith("activation_post_process"):
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    graph.recompile()
    return graph


def _quantization(converted: torch.fx.GraphModule) -> Quantized:
    """Return {name of a value: {(scale, zero point) with which it is quantized}}."""
    found: Quantized = {}
    for node in converted.graph.nodes:
        if str(node.target).startswith("quantized_decomposed.quantize_per_tensor"):
            found.setdefault(node.args[0].name, set()).add((float(node.args[1]), int(node.args[2])))
    return found


def _passes() -> list[type[ExportPass]]:
    """Return the passes of ExecuTorch's manager.

    Between two of them PyTorch would infer int32 for a linear layer with a bias of int32, and reject
    its product with the int8 of another layer.
    """
    passes = list(CortexMPassManager.pass_list)
    passes.remove(DecomposeHardswishPass)
    passes[passes.index(RemoveGetItemPass)] = _DropIndices
    passes[passes.index(ActivationFusionPass)] = _ActivationFusion
    fold = passes.index(FoldAndAnnotateQParamsPass)
    passes[fold:fold + 1] = [data_movement.keep_to(_layers()), FoldAndAnnotateQParamsPass,
                             _BiasesAsInt8, _Tables]
    last = passes.index(AtenToCortexMPass)
    passes[last:last] = [convolutions.Convolutions, _BiasesAsInt32]
    return passes


def _layers() -> set[EdgeOpOverload]:
    """Return the operators that have an int8 kernel, or become part of one."""
    return {*AtenToCortexMPass._DIALECT_SUBSTITUTIONS, *ActivationFusionPass.TARGETS,
            *integer_operators.OPERATORS}


def _activation(node: torch.fx.Node, dialect_pass: AtenToDialectPass) -> DialectNodeSpec:
    """Replace the table of a function by ExecuTorch's operator."""
    return DialectNodeSpec(exir_ops.edge.cortex_m.quantized_activation.default, node.args)


class _Tables(AtenToDialectPass):  # type: ignore[misc]
    """Look functions up in their tables by ExecuTorch's operator, whose input has to be int8."""


_Tables.register_dialect_substitution(integer_operators.TABLE)(_activation)


class _DropIndices(ExportPass):  # type: ignore[misc]
    """Replace a max pool whose indices have no user by one without indices.

    ExecuTorch's pass rejects the others, for which there are kernels.
    """

    def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
        for node in list(graph_module.graph.nodes):
            if node.target is not exir_ops.edge.aten.max_pool2d_with_indices.default or [
                    (user.target, user.args[1]) for user in node.users] != [(operator.getitem, 0)]:
                continue
            (values,) = node.users
            values.target, values.args = exir_ops.edge.aten.max_pool2d.default, node.args
            values.meta = {**node.meta, "val": node.meta["val"][0]}
            graph_module.graph.erase_node(node)
        graph_module.recompile()
        return PassResult(graph_module, True)


class _ActivationFusion(ActivationFusionPass):  # type: ignore[misc]
    """Fuse an activation also if its output type has a wider range than the activation.

    Examples are the zero point of a relu that shares its parameters with other operands of cat, and a
    hardtanh whose range was rounded up. ExecuTorch would leave the layer before it without parameters,
    in float with int8 weights.
    """

    def _get_validated_qparams(self, node: torch.fx.Node,
                               input_node: torch.fx.Node) -> dict[str, Any] | None:
        found: dict[str, Any] | None = super()._get_validated_qparams(node, input_node)
        bounds = passes_utils.get_activation_bounds(node)
        if (found is not None or bounds is None or not node.meta.get("output_qparams")
                or not input_node.meta.get("input_qparams")):
            return found
        parameters = node.meta["output_qparams"][0]
        scale, zero_point, minimum, maximum = (parameters.scale, parameters.zp, parameters.qmin,
                                          parameters.qmax)
        if not isinstance(scale, float):
            return None
        limits = [limit if bound is None else
                  int(passes_utils.quantize_val(bound, scale, zero_point, minimum, maximum))
                  for bound, limit in zip(bounds, (minimum, maximum), strict=True)]
        return {**parameters._asdict(), "qmin": limits[0], "qmax": limits[1]}


class _Biases(ExportPass):  # type: ignore[misc]
    """Set the dtype of the biases of linear layers."""

    dtype: torch.dtype

    def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
        for node in graph_module.graph.nodes:
            if node.target is exir_ops.edge.aten.linear.default and len(node.args) > 2:
                bias = node.args[2]
                if bias is not None and bias.meta["val"].dtype in (torch.int8, torch.int32):
                    bias.meta["val"] = bias.meta["val"].to(self.dtype)
        return PassResult(graph_module, True)


class _BiasesAsInt8(_Biases):
    dtype = torch.int8


class _BiasesAsInt32(_Biases):
    dtype = torch.int32
