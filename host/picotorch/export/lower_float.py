"""Lower an exported program to the bytes of a float32 program, with functions for int8, too.

Importing it imports torch and executorch, which is slow.
"""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, memory, to_edge
from executorch.exir._serialize._program import PTEFile
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.passes import constant_prop_pass
from torch._prims_common import is_contiguous_or_false
from torch.export.graph_signature import TensorArgument
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree

from . import arrays, graph_edits
from .passes import fold_batch_norms, fuse_recurrent, linalg_errors

_ATEN = torch.ops.aten

# Operators whose kernels need contiguous tensors, or that are decomposed as if they did
_CONTIGUOUS_OPERATORS = (
    _ATEN.linear.default, _ATEN.layer_norm.default, _ATEN.group_norm.default, _ATEN.cdist.default,
    _ATEN.embedding.default, _ATEN.masked_scatter.default, _ATEN.pixel_shuffle.default,
    _ATEN.pixel_unshuffle.default, _ATEN._unique2.default, _ATEN.unique_consecutive.default)

# Results of functions such as max, whose types ExecuTorch cannot write
for _kind in torch.return_types.all_return_types:
    _pytree.SUPPORTED_SERIALIZED_TYPES[_kind] = _pytree.SUPPORTED_SERIALIZED_TYPES[_kind]._replace(
        serialized_type_name=f"torch.return_types.{_kind.__name__}")

# The order in memory of tensors that are channels last, by the number of dims
_CHANNELS_LAST = {4: ((0, 2, 3, 1),), 5: ((0, 2, 3, 4, 1),)}

# Never computed ahead of time: their results are larger than their inputs
_MAKERS = (exir_ops.edge.aten.full.default, exir_ops.edge.aten.expand_copy.default)

Parameters: TypeAlias = tuple[float, int]  # scale and zero point
Quantized: TypeAlias = dict[str, set[Parameters]]  # by the name of a value, what it is quantized with


class Part(NamedTuple):
    """The values that an instruction computes.

    module: path of its module, "" for the outermost. values: by output, the name of the corresponding
    value in the float graph, as value_name returns it, "" for none. scale, zero_point: of outputs of
    integers. node: name of the node of the float graph that it helps to compute.
    """

    module: str
    values: tuple[str, ...]
    scale: float | None = None
    zero_point: int = 0
    node: str = ""

    @property
    def value(self) -> str:
        """Return the name of the first value, "" without any."""
        return next(filter(None, self.values), "")


class Lowered(NamedTuple):
    """A lowered program. program: the bytes of a .pte. emitted: the same before serialization.

    parts: by the index of the instruction. reference: the float graph that `parts` names values of.
    fake_quantized: the same graph, in which quantized values are rounded to integers and are floats
    again; None for a float32 program. kept: names of the values of layers that keep_float names, with
    the activations and the moved data that stay in float because of these layers.
    """

    program: bytes
    emitted: PTEFile
    parts: dict[int, Part]
    reference: torch.fx.GraphModule
    fake_quantized: torch.fx.GraphModule | None = None
    kept: frozenset[str] = frozenset()


# ---- float32


# Without gradients: else the copy of a new state to a buffer is refused
@torch.no_grad()  # type: ignore[untyped-decorator]
def lower_float(exported: torch.export.ExportedProgram, fuse_rnn: bool = False) -> Lowered:
    """Lower with ExecuTorch's portable operators.

    fuse_rnn: recurrent layers are one instruction each. Linear layers stay linear layers, and results
    of constants alone become constants.
    """
    exported = _with_batch_norms_in_convolutions(with_plain_strides(exported))
    exported = linalg_errors.take_apart(exported)
    linalg_errors.into_operators(exported.graph_module)
    _place_copies(exported.graph_module)
    if fuse_rnn:
        exported = fuse_recurrent.fuse(exported)
    reference = exported.module(check_guards=False)
    config = EdgeCompileConfig(preserve_ops=[_ATEN.linear.default], _check_ir_validity=False)
    edge = to_edge(traced_from(exported), compile_config=config)
    return finish(edge, reference, {})


def with_plain_strides(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Copy inputs, parameters, buffers and constants that are neither contiguous nor channels last.

    ExecuTorch rejects the strides of views, and strides of numpy's arrays: 0 in dims of one element.
    """
    signature = exported.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers,
             **signature.inputs_to_lifted_tensor_constants}
    for node in exported.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or _has_plain_strides(value):
            continue
        node.meta["val"] = value.new_empty(value.shape)
        for kept in (exported.state_dict, exported.constants):
            if names.get(node.name) in kept:
                old = kept[names[node.name]]
                new = old.detach().new_empty(old.shape).copy_(old.detach())
                kept[names[node.name]] = (torch.nn.Parameter(new, old.requires_grad)
                                          if isinstance(old, torch.nn.Parameter) else new)
    return exported


def _has_plain_strides(value: torch.Tensor) -> bool:
    return any(_has_order(value, order)
               for order in (range(value.ndim), *_CHANNELS_LAST.get(value.ndim, ())))


def _has_order(value: torch.Tensor, order: Sequence[int]) -> bool:
    """Return True if the strides are the default ones with the dims in this order in memory."""
    stride = 1
    for dim in reversed(order):
        if not statically_known_true(value.stride(dim) == stride):
            return False
        stride = stride * torch.sym_max(value.shape[dim], 1)
    return True


def _with_batch_norms_in_convolutions(exported: torch.export.ExportedProgram
                                      ) -> torch.export.ExportedProgram:
    if (exported.range_constraints or exported.example_inputs is None
            or _ATEN.batch_norm.default not in {node.target for node in exported.graph.nodes}):
        return exported
    graph = exported.module(check_guards=False)
    fold_batch_norms.into_convolutions(graph)
    arguments, keywords = exported.example_inputs
    return torch.export.export(graph, arguments, keywords, strict=False)


def _place_copies(module: torch.fx.GraphModule) -> None:
    """Insert contiguous copies before operators that need them, in branches, too."""
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            permuted = _permuted(part.graph)
            for node in list(part.graph.nodes):
                if node.target in _CONTIGUOUS_OPERATORS or str(node.target) == graph_edits.ROI_ALIGN:
                    for source in node.all_input_nodes:
                        if source in permuted:
                            _copy(part.graph, node, source)
            part.recompile()


def _permuted(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """Return the nodes of tensors that are not contiguous in the program either.

    Its views are contiguous copies, and so are the values that it computes from them.
    """
    found: set[torch.fx.Node] = set()
    for node in graph.nodes:
        value = node.meta.get("val")
        is_permuted = isinstance(value, torch.Tensor) and not is_contiguous_or_false(value)
        if _makes_permuted(node) or is_permuted and (
                node.op != "call_function"
                or not found.isdisjoint(node.all_input_nodes) and not _is_view(node.target)):
            found.add(node)
    return found


def _makes_permuted(node: torch.fx.Node) -> bool:
    """Return True for an operator whose results may be permuted, whatever its inputs are."""
    return "linalg" in str(node.target) or any(
        isinstance(one, torch.memory_format) for one in (*node.args, *node.kwargs.values()))


def _is_view(target: Any) -> bool:
    return getattr(target, "overloadpacket", None) not in (_ATEN.to, _ATEN.detach) and any(
        one.alias_info and not one.alias_info.is_write
        for one in getattr(getattr(target, "_schema", None), "returns", ()))


def _copy(graph: torch.fx.Graph, node: torch.fx.Node, source: torch.fx.Node) -> None:
    value = source.meta.get("val")
    if isinstance(value, torch.Tensor) and not is_contiguous_or_false(value):
        options = {"memory_format": torch.contiguous_format}
        with graph.inserting_before(node):
            copy = graph.call_function(_ATEN.clone.default, (source,), options)
        copy.meta = {**node.meta, "val": value.clone(**options)}
        node.replace_input_with(source, copy)


def traced_from(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Make the names in this program's graph the ones to which later graphs trace their nodes."""
    for node in exported.graph.nodes:
        node.meta.pop("from_node", None)
    return exported


# ---- what PyTorch computes


def value_name(node: torch.fx.Node) -> str:
    """Return the name of a node's value: "topk[1]" for the second of several results, else "add"."""
    if node.target is operator.getitem:
        return f"{value_name(node.args[0])}[{node.args[1]}]"
    return str(node.name)


def path_of(node: torch.fx.Node) -> str:
    """Return the path of the module that a node comes from, "" for the outermost."""
    stack = node.meta.get("nn_module_stack") or {"": ("", None)}
    return str(next(reversed(stack.values()))[0])


def float_values(graph: torch.fx.GraphModule, arguments: tuple[Any, ...],
                 names: set[str]) -> dict[str, np.ndarray]:
    """Return {name: array} of the tensors of these names that a graph of floats computes."""
    found = {}

    class Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: torch.fx.Node) -> Any:
            value = super().run_node(node)
            name = value_name(node)
            if name in names and isinstance(value, torch.Tensor) and value.numel():
                found[name] = arrays.numbers(value).copy()
            return value

    flat = torch.utils._pytree.tree_leaves(arguments)
    with torch.no_grad():
        Interpreter(graph).run(*flat)
    return found


# ---- after


def finish(edge: EdgeProgramManager, reference: torch.fx.GraphModule, quantized: Quantized,
           fake_quantized: torch.fx.GraphModule | None = None) -> Lowered:
    """Lower the edge program.

    quantized: {name of a value: {(scale, zero point)}}. fake_quantized: see Lowered.
    """
    program = edge.exported_program()
    program = constant_prop_pass.constant_prop_pass(program, _too_large(program))
    edge._edge_programs["forward"] = program
    _copy_old_states(program)
    _keep_initial_values(program)
    parts, named = {}, {node.name: node for node in reference.graph.nodes}
    for number, node in enumerate(program.graph.nodes, 1):
        node.meta["debug_handle"] = number
        if node.op == "call_function":
            parts[number] = _part(node, named, quantized)
    executable = edge.to_executorch()
    by_instruction = executable.debug_handle_map["forward"]
    executable.executorch_program.named_data = []  # as in a program that is read from a file
    emitted = PTEFile(executable.executorch_program,
                      mutable_data=executable._emitter_output.mutable_data)
    return Lowered(bytes(executable.buffer), emitted,
                   {i: parts[handle] for i, handle in by_instruction.items() if handle in parts},
                   reference, fake_quantized)


def _copy_old_states(program: torch.export.ExportedProgram) -> None:
    """Copy each output that is the state before the run: an output of forward, or another state.

    ExecuTorch updates states at the end of a run, one after the other; without a copy such an output
    has the new state.
    """
    signature, output = program.graph_signature, program.graph.output_node()
    updated = set(signature.buffers_to_mutate.values())
    old = {node: signature.inputs_to_buffers[node.name]
           for node in program.graph.find_nodes(op="placeholder")
           if signature.inputs_to_buffers.get(node.name) in updated}
    for node in old:  # forward worked on a copy, see module_state.assigned_in_place
        for user in list(node.users):
            if (user.target is graph_edits.COPY
                    and user.meta["val"].dim_order() == node.meta["val"].dim_order()):
                user.replace_all_uses_with(node)
                program.graph.erase_node(user)
    results = list(output.args[0])
    for i, (node, spec) in enumerate(zip(results, signature.output_specs, strict=True)):
        root = node
        while isinstance(root, torch.fx.Node) and "_copy.default" in str(root.target):
            root = root.args[0]
        if root not in old or (root is node and spec.target == old[root]):
            continue
        results[i] = graph_edits.copy_as(program.graph, node, node.meta["val"])
        spec.arg = TensorArgument(results[i].name)
    output.args = (tuple(results),)
    program.graph_module.recompile()


def _keep_initial_values(program: torch.export.ExportedProgram) -> None:
    """Mark the buffers that forward updates, so that ExecuTorch writes their values.

    Runtimes start a buffer without one at zero.
    """
    signature = program.graph_signature
    updated = set(signature.buffers_to_mutate.values())
    values = dict(program.named_buffers())
    for node in program.graph.find_nodes(op="placeholder"):
        name = signature.inputs_to_buffers.get(node.name)
        if name in updated and not _is_zero(values[name]):
            node.meta["et_init_buffer"] = True


def _is_zero(tensor: torch.Tensor) -> bool:
    """Return True where every bit is zero, which -0.0 is not."""
    return not tensor.detach().contiguous().flatten().view(torch.uint8).any()


def _too_large(program: torch.export.ExportedProgram) -> set[Any]:
    """Return the targets whose results would enlarge the program if they were folded."""
    skipped = set(_MAKERS) | set(constant_prop_pass._DEFAULT_SKIP_TARGETS)
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target is not memory.alloc:
            operands = sum(_nbytes(argument) for argument in node.all_input_nodes)
            if _nbytes(node) > max(operands, 1024):
                skipped.add(node.target)
    return skipped


def _nbytes(node: torch.fx.Node) -> int:
    value = node.meta.get("val")
    values = value if isinstance(value, list | tuple) else [value]
    return sum(value.numel() * value.element_size() for value in values
               if isinstance(value, torch.Tensor) and all(isinstance(n, int) for n in value.shape))


def _part(node: torch.fx.Node, named: dict[str, torch.fx.Node], quantized: Quantized) -> Part:
    """Return the Part of an instruction.

    named: {name: node} of the float graph.
    """
    module, values = path_of(node), _values(node, named)
    found = node.meta.get("output_qparams")
    if not found:
        return Part(module, tuple(value_name(value) if value else "" for value in values),
                    node=source_name(node))
    parameters = float(found[0].scale), int(found[0].zp)
    return Part(module, tuple(_with_activation(value, parameters, quantized) for value in values),
                *parameters, source_name(node))


def _values(node: torch.fx.Node, named: dict[str, torch.fx.Node]) -> tuple[torch.fx.Node | None, ...]:
    """Return the node of the float graph for each output, None without one."""
    if not isinstance(node.meta.get("val"), list | tuple):
        return (_value(node, named),)
    found: list[torch.fx.Node | None] = [None] * len(node.meta["val"])
    for user in node.users:
        if user.target is operator.getitem:
            found[user.args[1]] = _value(user, named)
    return tuple(found)


def _value(node: torch.fx.Node, named: dict[str, torch.fx.Node]) -> torch.fx.Node | None:
    """Return the node of the float graph that a node computes, or helps to compute.

    For an operator with several results it is the result that the users of the node use, or None if
    they use none or several.
    """
    source = named.get(source_name(node))
    if source is None or not _has_results(source):
        return source
    found = {result for user in node.users for result in _used_results(node, user, source, named)}
    return found.pop() if len(found) == 1 else None


def _has_results(node: torch.fx.Node) -> bool:
    return any(user.target is operator.getitem for user in node.users)


def _used_results(node: torch.fx.Node, user: torch.fx.Node, source: torch.fx.Node,
                  named: dict[str, torch.fx.Node]) -> set[torch.fx.Node]:
    """Return the results of `source`, in the float graph, that this user of the node may read."""
    name = source_name(user)
    if name == source.name:  # the node is a step of the operator
        return set()
    same = named.get(name) if user.op != "output" else next(
        (one for one in named.values() if one.op == "output"), None)
    if same is None:  # a step of the lowering, a quantization for instance
        return {result for further in user.users
                for result in _used_results(user, further, source, named)}
    theirs, ours = _tensors_of(same), _tensors_of(user)
    if user.op == "output":  # states that the program keeps come before the outputs
        ours = ours[len(ours) - len(theirs):]
    if len(theirs) == len(ours):
        pairs = zip(ours, theirs, strict=True)
        return {result for one, result in pairs if one is node and _is_result(result, source)}
    results = {result for result in theirs if _is_result(result, source)}
    return results if len(results) == 1 else set()


def _is_result(node: torch.fx.Node, source: torch.fx.Node) -> bool:
    return node.target is operator.getitem and node.args[0] is source


def _tensors_of(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the input nodes of a node, in order; a repeated one is listed twice."""
    found: list[torch.fx.Node] = []
    torch.fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def source_name(node: torch.fx.Node) -> str:
    """Return the name in the graph before lowering of the node that a node computes, or helps to."""
    name: str = node.name
    sources = node.meta.get("from_node")
    while sources:
        name, sources = sources[-1].name, sources[-1].from_node
    return name


def _with_activation(node: torch.fx.Node | None, parameters: Parameters, quantized: Quantized) -> str:
    """Return the name of the first value from this one on that has this quantization.

    It is an activation that was fused with the value.
    """
    while node is not None:
        if parameters in quantized.get(node.name, ()):
            return value_name(node)
        node = next(iter(node.users)) if len(node.users) == 1 else None
    return ""
