"""Fuse recurrent layers into the operators picotorch::gru and picotorch::lstm.

An operator computes one direction of one layer over all steps. ExecuTorch's exporter writes it as it
writes the operators of aten.

Importing it imports torch, and registers the operators.
"""

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from ..graph_edits import add_buffer, constant

_ATEN = torch.ops.aten

_LIBRARY = torch.library.Library("picotorch", "DEF")
_LAYER = ("Tensor input, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, "
          "Tensor? scale_ih, Tensor? scale_hh, bool batch_first, bool reverse, bool sequence, ")

# Positions of arguments
_WEIGHT_IH, _WEIGHT_HH, _BATCH_FIRST, _REVERSE, _SEQUENCE, _HX = 1, 2, 7, 8, 9, 10
_SCALES_OF = 4  # offset from the arguments of the weights
_LIBRARY.define(f"gru({_LAYER}Tensor? hx) -> (Tensor output, Tensor h_n)")
_LIBRARY.define(f"gru.out({_LAYER}Tensor? hx, *, Tensor(a!) output, Tensor(b!) h_n) -> "
                "(Tensor(a!) output, Tensor(b!) h_n)")
_LIBRARY.define(f"lstm({_LAYER}Tensor? hx, Tensor? cx) -> (Tensor output, Tensor h_n, Tensor c_n)")
_LIBRARY.define(f"lstm.out({_LAYER}Tensor? hx, Tensor? cx, *, Tensor(a!) output, Tensor(b!) h_n, "
                "Tensor(c!) c_n) -> (Tensor(a!) output, Tensor(b!) h_n, Tensor(c!) c_n)")
_PICOTORCH = torch.ops.picotorch

# Operators that reshape a tensor, or select a part of it
_VIEWS = (_ATEN.select.int, _ATEN.unsqueeze.default, _ATEN.view.default, _ATEN.reshape.default)
_ZEROS = (_ATEN.zeros.default, _ATEN.new_zeros.default, _ATEN.zeros_like.default)


# ---- the operators. input: (batch, steps, size) if batch_first, else (steps, batch, size); output: the
# same of the states, without steps if not sequence; states: (batch, hidden size), zeros for None.
# Weights are int8 if there are scales, one for each row.


def _gru(*arguments: Any) -> tuple[torch.Tensor, ...]:
    return _layer(_ATEN.gru.input, *arguments)


def _lstm(*arguments: Any) -> tuple[torch.Tensor, ...]:
    return _layer(_ATEN.lstm.input, *arguments)


def _layer(layer: torch._ops.OpOverload, inputs: torch.Tensor, weight_ih: torch.Tensor,
           weight_hh: torch.Tensor, bias_ih: torch.Tensor | None, bias_hh: torch.Tensor | None,
           scale_ih: torch.Tensor | None, scale_hh: torch.Tensor | None, batch_first: bool,
           reverse: bool, sequence: bool, *states: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """Compute a layer as PyTorch does."""
    time = 1 if batch_first else 0
    weights = [weight if scale is None else weight * scale[:, None]
               for weight, scale in ((weight_ih, scale_ih), (weight_hh, scale_hh))]
    zeros = inputs.new_zeros(len(weight_ih))
    biases = [zeros if bias is None else bias for bias in (bias_ih, bias_hh)]
    first = inputs.new_zeros(inputs.shape[1 - time], weight_hh.shape[1])
    begin = [(first if state is None else state)[None] for state in states]
    inputs = inputs.flip(time) if reverse else inputs
    output, *end = layer(inputs, begin[0] if len(begin) == 1 else begin, [*weights, *biases], True, 1,
                         0.0, False, False, batch_first)
    output = output.flip(time) if reverse else output
    return (output if sequence else output.narrow(time, 0, 0).clone(), *(state[0] for state in end))


def _shapes(inputs: torch.Tensor, weight_ih: torch.Tensor, weight_hh: torch.Tensor,
            bias_ih: torch.Tensor | None, bias_hh: torch.Tensor | None, scale_ih: torch.Tensor | None,
            scale_hh: torch.Tensor | None, batch_first: bool, reverse: bool, sequence: bool,
            *states: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    batch, steps = inputs.shape[:2] if batch_first else (inputs.shape[1], inputs.shape[0])
    steps, hidden = steps if sequence else 0, weight_hh.shape[1]
    output = inputs.new_empty((batch, steps, hidden) if batch_first else (steps, batch, hidden))
    return (output, *(inputs.new_empty(batch, hidden) for _ in states))


for _name, _function in (("gru", _gru), ("lstm", _lstm)):
    _LIBRARY.impl(_name, _function, "CPU")
    torch.library.register_fake(f"picotorch::{_name}", _shapes, lib=_LIBRARY)


# ---- in place of PyTorch's


# The results of what is in place of an operator; NotImplemented, for which mypy has Any, leaves it
_Results: TypeAlias = tuple[torch.Tensor, ...] | Any


def fuse(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Put these operators in the place of GRU, LSTM and their cells, where they are float32."""
    if not any(node.target in _FUSED for node in exported.graph.nodes):
        return exported
    exported = exported.run_decompositions(_FUSED)
    graph = exported.graph_module.graph
    for node in graph.nodes:
        if node.target in (_PICOTORCH.gru.default, _PICOTORCH.lstm.default):
            _begin_with_zeros(node)
            _drop_sequence(node)
    graph.eliminate_dead_code()
    exported.graph_module.recompile()
    return exported


def _fuse_gru(inputs: torch.Tensor, state: torch.Tensor, *options: Any) -> _Results:
    return _fuse_layers(_PICOTORCH.gru, inputs, [state], *options)


def _fuse_lstm(inputs: torch.Tensor, states: Sequence[torch.Tensor], *options: Any) -> _Results:
    return _fuse_layers(_PICOTORCH.lstm, inputs, states, *options)


def _fuse_layers(fused: torch._ops.OpOverloadPacket, inputs: torch.Tensor,
                 states: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor], has_biases: bool,
                 layers: int, dropout: float, train: bool, bidirectional: bool,
                 batch_first: bool) -> _Results:
    """Return the output and the last states, each direction of each layer by one operator."""
    directions, each = 2 if bidirectional else 1, 4 if has_biases else 2
    drops, projects = train and dropout, len(parameters) != layers * directions * each
    if drops or projects or inputs.dtype != torch.float32:
        return NotImplemented
    last = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            own = [*parameters[i * each : (i + 1) * each], *([] if has_biases else [None, None])]
            first = (state.view(state.shape[1:]) if layers * directions == 1 else state.select(0, i)
                     for state in states)
            output, *own_states = fused(inputs, *own, None, None, batch_first, direction == 1, True,
                                        *first)
            outputs.append(output)
            last.append(own_states)
        inputs = torch.cat(outputs, -1) if bidirectional else outputs[0]
    states = [state[0].view(1, *state[0].shape) if len(last) == 1 else torch.stack(state)
              for state in zip(*last, strict=True)]
    return inputs, *states


def _fuse_gru_cell(inputs: torch.Tensor, state: torch.Tensor, weight_ih: torch.Tensor,
                   weight_hh: torch.Tensor, bias_ih: torch.Tensor | None = None,
                   bias_hh: torch.Tensor | None = None) -> torch.Tensor | Any:
    if inputs.dtype != torch.float32:
        return NotImplemented
    return _PICOTORCH.gru(inputs.view(1, *inputs.shape), weight_ih, weight_hh, bias_ih, bias_hh, None,
                          None, False, False, False, state)[1]


def _fuse_lstm_cell(inputs: torch.Tensor, states: Sequence[torch.Tensor], weight_ih: torch.Tensor,
                    weight_hh: torch.Tensor, bias_ih: torch.Tensor | None = None,
                    bias_hh: torch.Tensor | None = None) -> _Results:
    if inputs.dtype != torch.float32:
        return NotImplemented
    _, *end = _PICOTORCH.lstm(inputs.view(1, *inputs.shape), weight_ih, weight_hh, bias_ih, bias_hh,
                              None, None, False, False, False, *states)
    return tuple(end)


_FUSED = {_ATEN.gru.input: _fuse_gru, _ATEN.lstm.input: _fuse_lstm,
          _ATEN.gru_cell.default: _fuse_gru_cell, _ATEN.lstm_cell.default: _fuse_lstm_cell}


def quantize_weights(graph: torch.fx.GraphModule) -> None:
    """Make the weights of these operators int8, with a scale for each row.

    Weights that are inputs or results of forward stay float32.
    """
    for node in graph.graph.nodes:
        if node.target in (_PICOTORCH.gru.default, _PICOTORCH.lstm.default):
            for i in (_WEIGHT_IH, _WEIGHT_HH):
                if node.args[i].op != "get_attr":
                    continue
                weight = constant(graph, node.args[i]).detach()
                scale = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
                with graph.graph.inserting_before(node):
                    for position, name, value in (
                            (i, "weight", (weight / scale[:, None]).round().to(torch.int8)),
                            (i + _SCALES_OF, "scale", scale)):
                        stored = add_buffer(graph, f"_{name}_{i}_of_{node.name}", value)
                        node.update_arg(position, graph.graph.get_attr(stored))
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _begin_with_zeros(node: torch.fx.Node) -> None:
    """Remove initial states of zeros."""
    for i in range(_HX, len(node.args)):
        state = node.args[i]
        while state.target in _VIEWS:
            state = state.args[0]
        if state.target in _ZEROS:
            node.update_arg(i, None)


def _drop_sequence(node: torch.fx.Node) -> None:
    """Use the last state for the last step of the output; remove an output without a user."""
    results = {user.args[1]: user for user in node.users}
    if 0 in results and not node.args[_REVERSE]:
        time = 1 if node.args[_BATCH_FIRST] else 0
        for user in list(results[0].users):
            if user.target is _ATEN.select.int and user.args[1:] in ((time, -1), (time - 3, -1)):
                with node.graph.inserting_before(user):
                    last = node.graph.call_function(operator.getitem, (node, 1))
                last.meta = dict(user.meta)
                user.replace_all_uses_with(last)
                node.graph.erase_node(user)
    if 0 not in results or not results[0].users:
        node.update_arg(_SEQUENCE, False)
