"""Make the buffers that forward updates inputs and outputs, and buffers again after quantization.

The quantizer reads a buffer as a constant. As an input and an output a state is quantized like every
other value; with one scale for both, the program keeps the integers from step to step.

Importing it imports torch.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import executorch.backends.cortex_m.ops.operators  # noqa: F401, registers the operators
import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torchao.quantization.pt2e.observer import FixedQParamsObserver

from ..graph_edits import call, constant, copy_as

_ATEN = torch.ops.aten
_QUANTIZE = exir_ops.edge.cortex_m.quantize_per_tensor.default
_DEQUANTIZE = exir_ops.edge.cortex_m.dequantize_per_tensor.default
_PARAMETERS = slice(1, 5)  # the arguments scale, zero point, minimum and maximum of both operators

Arguments: TypeAlias = tuple[Any, ...]


class State(NamedTuple):
    """A buffer that forward updates: its name, and its value before the first run."""

    name: str
    initial: torch.Tensor


def into_inputs(graph: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list[State]]:
    """Replace buffers that a functional graph updates by inputs, and updates by outputs.

    The new inputs come after the others, as the new outputs do, in one order.
    """
    updates = graph.graph.find_nodes(op="call_function", target=_ATEN.copy_.default)
    updates = [node for node in updates if node.args[0].op == "get_attr"]
    if not updates:
        return graph, []
    states, values = [], []
    inputs = graph.graph.find_nodes(op="placeholder")
    outer = len(inputs)
    for node in updates:
        buffer, value = node.args[:2]
        if value.op != "call_function":  # another state, or an input
            value = call(graph, graph.graph.output_node(), _ATEN.clone.default, value)
        states.append(State(buffer.target, constant(graph, buffer).detach().clone()))
        values.append(value)
        with graph.graph.inserting_after(inputs[-1] if inputs else next(iter(graph.graph.nodes))):
            inputs.append(graph.graph.placeholder(f"state_{buffer.name}"))
        inputs[-1].meta = dict(buffer.meta)
        node.replace_all_uses_with(value)
        graph.graph.erase_node(node)
        for other in graph.graph.find_nodes(op="get_attr"):
            if other.target == buffer.target:
                other.replace_all_uses_with(inputs[-1])
                graph.graph.erase_node(other)
    for node in graph.graph.find_nodes(op="call_function", target=_ATEN.clone.default):
        if node.args[0] in inputs[outer:] and node not in values:
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    output = graph.graph.output_node()
    output.args = ((*torch.utils._pytree.tree_leaves(output.args[0]), *values),)
    graph.graph.set_codegen(torch.fx.graph.CodeGen())
    return torch.fx.GraphModule(graph, graph.graph), states


def with_states(graph: torch.fx.GraphModule, samples: Iterable[Arguments],
                states: Sequence[State]) -> list[Arguments]:
    """Return the samples with the states in which the graph runs them, one after the other."""
    found, values = [], [state.initial for state in states]
    for arguments in samples:
        found.append((*torch.utils._pytree.tree_leaves(arguments), *values))
        if states:
            with torch.no_grad():
                values = [value.clone() for value in graph(*found[-1])[-len(states):]]
    return found


def share_scales(prepared: torch.fx.GraphModule, count: int) -> None:
    """Let one observer see a state as an input and as an output.

    A fixed scale of only one of the two, of softmax for instance, remains; the state is a float then.
    """
    for state, value in _pairs(prepared, count):
        observers = [node for node in state.users if node.op == "call_module"]
        if value.op != "call_module" or not observers:
            continue
        made = prepared.get_submodule(value.target)
        for node in observers:
            seen = prepared.get_submodule(node.target)
            if type(seen) is type(made) and not isinstance(made, FixedQParamsObserver):
                seen.__dict__ = made.__dict__  # observers of biases refer to this object, too


def into_buffers(program: torch.export.ExportedProgram, states: Sequence[State]) -> None:
    """Make the last inputs and outputs of an edge program the buffers that they were.

    A state that is quantized with the scale of its update is a buffer of int8.
    """
    if not states:
        return
    graph, signature = program.graph, program.graph_signature
    output = graph.output_node()
    results = list(output.args[0])
    outer = len(results) - len(states)
    updates = []
    for state, (node, value) in zip(states, _pairs(program.graph_module, len(states)), strict=True):
        initial = state.initial
        users = list(node.users)
        parameters = {tuple(user.args[_PARAMETERS]) for user in users if user.target is _QUANTIZE}
        if (len(parameters) == 1 and all(user.target is _QUANTIZE for user in users)
                and value.target is _DEQUANTIZE and tuple(value.args[_PARAMETERS]) in parameters):
            scale, zero_point, minimum, maximum = parameters.pop()
            initial = torch.clamp(torch.round(initial / scale) + zero_point, minimum, maximum)
            initial = initial.to(torch.int8)
            value = value.args[0]
            for user in users:
                user.replace_all_uses_with(node)
                graph.erase_node(user)
            node.meta = {**node.meta, "val": node.meta["val"].to(torch.int8)}
        if value.meta["val"].dim_order() != node.meta["val"].dim_order():  # slices are contiguous
            value = copy_as(graph, value, node.meta["val"])
        names = [spec.arg.name for spec in signature.input_specs]
        signature.input_specs[names.index(node.name)] = InputSpec(
            InputKind.BUFFER, TensorArgument(node.name), state.name, persistent=True)
        program.state_dict[state.name] = initial
        updates.append(value)
    output.args = ((*updates, *results[:outer]),)
    signature.output_specs[:] = [
        *(OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(value.name), state.name)
          for state, value in zip(states, updates, strict=True)), *signature.output_specs[:outer]]
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def into_module(graph: torch.fx.GraphModule, states: Sequence[State]) -> torch.fx.GraphModule:
    """Return the graph with its last inputs and outputs as buffers, which each call updates."""
    if not states:
        return graph
    output = graph.graph.output_node()
    for k, (state, (node, value)) in enumerate(zip(states, _pairs(graph, len(states)), strict=True)):
        name = f"_state_{k}"
        graph.register_buffer(name, state.initial.clone())
        with graph.graph.inserting_before(node):
            buffer = graph.graph.get_attr(name)
        buffer.meta = dict(node.meta)
        node.replace_all_uses_with(buffer)
        graph.graph.erase_node(node)
        with graph.graph.inserting_before(output):
            graph.graph.call_function(_ATEN.copy_.default, (buffer, value))
    output.args = (output.args[0][:-len(states)],)
    graph.graph.set_codegen(torch.fx.graph.CodeGen())
    graph.recompile()
    return graph


def _pairs(graph: torch.fx.GraphModule, count: int) -> list[tuple[torch.fx.Node, torch.fx.Node]]:
    """Return the last inputs, each with the output that replaces it in the next run."""
    if not count:
        return []
    inputs = graph.graph.find_nodes(op="placeholder")[-count:]
    (outputs,) = graph.graph.output_node().args
    return list(zip(inputs, outputs[-count:], strict=True))
