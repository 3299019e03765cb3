"""Compute operators between integers by integers: functions of one element, and normalizations.

A function becomes a table of its 256 values, a normalization an operator of picotorch. The quantizer
calls `selected` to find them; after calibration `into_operators` replaces them.

Importing it imports torch.
"""

import math
from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np
import torch
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.dialects.edge._ops import EdgeOpOverload

from .. import norm_parameters
from ..graph_edits import add_buffer, constant
from . import masks
from .data_movement import MOVERS, is_marked

_ATEN, _QUANTIZED = torch.ops.aten, torch.ops.quantized_decomposed
_IMAGE_DIMS = 4

_LIBRARY = torch.library.Library("picotorch", "FRAGMENT")
_SCHEMAS = {
    "table": "Tensor input, Tensor table",
    "quantized_layer_norm": "Tensor input, Tensor weight, Tensor bias, bool subtract_mean, "
                            "int input_zero_point, int epsilon, int shift",
    "quantized_group_norm": "Tensor input, Tensor weight, Tensor bias, int groups, int epsilon, "
                            "int shift"}
for _name, _schema in _SCHEMAS.items():
    _LIBRARY.define(f"{_name}({_schema}) -> Tensor")
    _LIBRARY.define(f"{_name}.out({_schema}, *, Tensor(a!) out) -> Tensor(a!)")
    torch.library.register_fake(f"picotorch::{_name}", lambda x, *_: torch.empty_like(x), lib=_LIBRARY)
_PICOTORCH = torch.ops.picotorch

TABLE: EdgeOpOverload = exir_ops.edge.picotorch.table.default
OPERATORS: tuple[EdgeOpOverload, ...] = (
    TABLE, exir_ops.edge.picotorch.quantized_layer_norm.default,
    exir_ops.edge.picotorch.quantized_group_norm.default)


def _overloads(names: str, overload: str = "default") -> frozenset[torch._ops.OpOverload]:
    """Return operators of aten by name, and the ones that change their input in place."""
    packets = (getattr(_ATEN, name + end, None) for name in names.split() for end in ("", "_"))
    return frozenset(getattr(packet, overload) for packet in packets if hasattr(packet, overload))


# Functions that are tables even if they compute with floats before: a table is much faster
_TABLES = _overloads("sigmoid tanh silu gelu log log2 log10 log1p sqrt rsqrt hardswish hardsigmoid "
                     "leaky_relu abs neg sin cos erf")

# Functions that compute an element from one, and numbers. Exponentials and functions with poles are
# missing if they have a float kernel: int8 keeps little of their small values, on which a quotient or a
# sum may depend
_FUNCTIONS = _TABLES | _overloads(
    "acos acosh asin asinh atan atanh celu ceil clamp_max clamp_min deg2rad digamma elu erfc erfinv "
    "exp2 floor frac hardshrink hardtanh i0 lgamma log_sigmoid logit mish nan_to_num rad2deg relu "
    "relu6 round selu sgn sign sinc softplus softshrink special_erfcx special_log_ndtr square "
    "threshold trunc"
) | _overloads("pow", "Tensor_Scalar") | _overloads("remainder fmod copysign", "Scalar")

# Operators of which all operands but one may be numbers
_WITH_NUMBERS = _overloads("add sub mul div maximum minimum remainder fmod pow copysign prelu atan2 "
                           "hypot", "Tensor") | _overloads("maximum minimum prelu atan2 hypot") | (
    _overloads("remainder fmod", "Tensor") | _overloads("pow", "Tensor_Tensor")
    | _overloads("clamp", "Tensor"))

# Operators that with some operands are reciprocals or exponentials
_QUOTIENTS = _overloads("div", "Tensor")
_POWERS = _overloads("pow", "Tensor_Scalar") | _overloads("pow", "Tensor_Tensor")

# Operators between a divisor and the values that it is computed from, beside the functions
_INTO_DIVISORS = masks.CARRIERS | {_ATEN.sum.dim_IntList, _ATEN.sum.default, _ATEN.mean.dim}

# Arguments from the weight on: weight, bias and epsilon, or weight and epsilon
_DEFAULTS: tuple[Any, ...] = (None, None, 1e-5)
_RMS_DEFAULTS: tuple[Any, ...] = (None, None)

_NORMS = (_ATEN.layer_norm.default, _ATEN.rms_norm.default, _ATEN.group_norm.default)


# ---- before calibration


def selected(graph: torch.fx.GraphModule, in_float: Container[torch.fx.Node],
             scaled: Container[torch._ops.OpOverload]) -> list[tuple[torch.fx.Node, torch.fx.Node]]:
    """Return the operators that compute with integers, each with its input.

    Their input and their result need a scale. A number costs a table only where its operand has a
    scale anyway, and so do a normalization and a function whose float kernel is fast enough; the result
    of a function must have a user with a scale, and must not be part of a divisor. in_float: nodes that
    compute with floats. scaled: other operators that get scales.
    """
    found: dict[torch.fx.Node, torch.fx.Node] = {}
    has_scale: set[torch.fx.Node] = set()
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            has_scale.add(node)
        elif node.op != "call_function" or node in in_float:
            continue
        else:
            x = _operand(graph, node)
            if x is not None:
                if x in has_scale or node.target in _TABLES:
                    found[node] = x
                    has_scale.add(node)
            elif node.target in MOVERS:
                if has_scale.issuperset(node.all_input_nodes):
                    has_scale.add(node)
            elif node.target in scaled:
                has_scale.add(node)
    divisors = _divisors(graph)
    for node in reversed(list(found)):
        if node.target in _FUNCTIONS - _TABLES and (
                node in divisors or not _is_used_as_integers(node, has_scale)):
            has_scale.discard(node)
            del found[node]
    return list(found.items())


def _is_used_as_integers(node: torch.fx.Node, has_scale: Container[torch.fx.Node]) -> bool:
    return any(user in has_scale or user.op == "output" for user in node.users)


def _divisors(graph: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Return the divisors, and the values that they are computed from by functions and sums."""
    found = set()
    for node in reversed(graph.graph.nodes):
        if node.target in _QUOTIENTS and isinstance(node.args[1], torch.fx.Node):
            found.add(node.args[1])
        if node in found and node.target in _INTO_DIVISORS | _FUNCTIONS:
            found.update(node.all_input_nodes)
    return found


def _operand(graph: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the input of a function or a normalization that integers can compute, else None."""
    if node.target in _NORMS:
        x: torch.fx.Node = node.args[0]
        return x if _is_float(x) and _normalized_size(node) <= norm_parameters.MAX_SIZE and all(
            one.op == "get_attr" for one in node.all_input_nodes if one is not x) else None
    if node.target not in _FUNCTIONS | _WITH_NUMBERS:
        return None
    if node.target in MOVERS and len(node.all_input_nodes) == 1:
        return None  # it keeps the scale, or is fused with the layer before
    if _is_reciprocal_or_exponential(graph, node):
        return None
    others = [one for one in node.all_input_nodes if not _is_number(graph, one)]
    if len(others) != 1 or not _is_float(others[0]) or not _is_float(node):
        return None
    return others[0] if others[0].meta["val"].shape == node.meta["val"].shape and (
        sum(one is others[0] for one in node.args) == 1) else None


def _is_reciprocal_or_exponential(graph: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    """Return True for a number divided by x, a number to the power of x, and a negative power."""
    if node.target not in _QUOTIENTS | _POWERS:
        return False
    by = node.args[1]
    if isinstance(by, torch.fx.Node):
        if not _is_number(graph, by):
            return True
        by = constant(graph, by).item()
    return node.target in _POWERS and by < 0


def _is_number(graph: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    return node.op == "get_attr" and _is_float(node) and constant(graph, node).numel() == 1


def _is_float(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _normalized_size(node: torch.fx.Node) -> int:
    """Return the number of elements that are normalized together."""
    if node.target is _ATEN.group_norm.default:
        return int(math.prod(node.meta["val"].shape[1:]) // node.args[1])
    return int(math.prod(node.args[1]))


# ---- after calibration


def into_operators(converted: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a copy of a converted graph with these operators, between the scales of the integers."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.output(graph.graph_copy(converted.graph, copies))
    graph.output_node().meta = dict(converted.graph.output_node().meta)
    module = torch.fx.GraphModule(converted, graph)
    for node in list(module.graph.nodes):
        made = _REPLACEMENTS.get(node.target)
        if made is not None:
            ends = _scales(node) if is_marked(node) else None
            if ends is not None:
                made(module, node, *ends)
            elif node.target is _ATEN.group_norm.default:
                _make_contiguous(module, node)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


_Scale = tuple[float, int]  # and zero point


def _scales(node: torch.fx.Node) -> tuple[torch.fx.Node, _Scale, _Scale] | None:
    """Return the input of an operator, and the scales of input and result; None if one has none."""
    sources = [one for one in node.all_input_nodes
               if one.target is _QUANTIZED.dequantize_per_tensor.default]
    results = {user.args[1:] for user in node.users
               if user.target is _QUANTIZED.quantize_per_tensor.default}
    if len(sources) != 1 or len(results) != 1 or any(
            user.target is not _QUANTIZED.quantize_per_tensor.default for user in node.users):
        return None
    (result,) = results
    source = sources[0]
    if torch.int8 not in source.args or torch.int8 not in result:
        return None
    return source, (float(source.args[1]), int(source.args[2])), (float(result[0]), int(result[1]))


def _make_table(graph: torch.fx.GraphModule, node: torch.fx.Node, source: torch.fx.Node,
                of_source: _Scale, of_result: _Scale) -> None:
    """Round the values of a function for all int8 numbers, halves away from zero."""
    x = (torch.arange(-128, 128, dtype=torch.float64) - of_source[1]) * of_source[0]
    others = [one for one in node.all_input_nodes if one is not source]
    if any(one.op != "get_attr" or constant(graph, one).numel() != 1 for one in others):
        return
    values = {source: x, **{one: constant(graph, one).detach().double().reshape(()) for one in others}}
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    with torch.no_grad():
        y = node.target(*args, **kwargs) / of_result[0]
    y = (y.sign() * (y.abs() + 0.5).floor()).nan_to_num(0.0) + of_result[1]
    table = add_buffer(graph, f"_table_of_{node.name}", y.clamp(-128, 127).to(torch.int8))
    _replace(graph, node, _PICOTORCH.table.default, (source,), [table])


def _make_layer_norm(graph: torch.fx.GraphModule, node: torch.fx.Node, source: torch.fx.Node,
                     of_source: _Scale, of_result: _Scale) -> None:
    subtracts = node.target is _ATEN.layer_norm.default
    defaults = _DEFAULTS if subtracts else _RMS_DEFAULTS
    arguments = [*node.args[1:], *defaults[len(node.args) - 2:]]
    shape, weight = arguments[:2]
    bias, epsilon = arguments[2:4] if subtracts else (None, arguments[2])
    epsilon = torch.finfo(torch.float32).eps if epsilon is None else epsilon
    found = norm_parameters.compute(
        _values(graph, weight, shape, 1.0), _values(graph, bias, shape, 0.0), math.prod(shape), epsilon,
        of_source[0], *of_result)
    _replace(graph, node, _PICOTORCH.quantized_layer_norm.default, (source,),
             _stored(graph, node, found), (subtracts, of_source[1], found.epsilon, found.shift))


def _make_group_norm(graph: torch.fx.GraphModule, node: torch.fx.Node, source: torch.fx.Node,
                     of_source: _Scale, of_result: _Scale) -> None:
    groups, weight, bias, epsilon = [*node.args[1:], *_DEFAULTS[len(node.args) - 2:]][:4]
    shape = node.meta["val"].shape
    found = norm_parameters.compute(
        _values(graph, weight, shape[1:2], 1.0), _values(graph, bias, shape[1:2], 0.0),
        math.prod(shape[1:]) // groups, epsilon, of_source[0], *of_result)
    _replace(graph, node, _PICOTORCH.quantized_group_norm.default, (source,),
             _stored(graph, node, found), (groups, found.epsilon, found.shift))


def _values(graph: torch.fx.GraphModule, node: torch.fx.Node | None, shape: Iterable[int],
            missing: float) -> np.ndarray:
    """Return the numbers of a weight or bias in one dim."""
    if node is None:
        return np.full(math.prod(shape), missing)
    values: np.ndarray = constant(graph, node).detach().double().reshape(-1).numpy()
    return values


def _stored(graph: torch.fx.GraphModule, node: torch.fx.Node,
            found: norm_parameters.Parameters) -> list[str]:
    return [add_buffer(graph, f"_{name}_of_{node.name}", torch.from_numpy(getattr(found, name)))
            for name in ("weight", "bias")]


def _replace(graph: torch.fx.GraphModule, node: torch.fx.Node, target: torch._ops.OpOverload,
             inputs: tuple[Any, ...], buffers: list[str], numbers: tuple[Any, ...] = ()) -> None:
    with graph.graph.inserting_before(node):
        stored = tuple(graph.graph.get_attr(name) for name in buffers)
    node.target, node.args, node.kwargs = target, (*inputs, *stored, *numbers), {}


def _make_contiguous(graph: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Copy images that are channels last for a group norm in float, and copy its result back."""
    x, value = node.args[0], node.meta["val"]
    if value.dim() != _IMAGE_DIMS or value.is_contiguous():
        return
    users = list(node.users)
    with graph.graph.inserting_before(node):
        before = graph.graph.call_function(_ATEN.clone.default, (x,),
                                           {"memory_format": torch.contiguous_format})
    with graph.graph.inserting_after(node):
        after = graph.graph.call_function(_ATEN.clone.default, (node,),
                                          {"memory_format": torch.channels_last})
    node.replace_input_with(x, before)
    node.replace_all_uses_with(after, users.__contains__)


_REPLACEMENTS: dict[Any, Callable[..., None]] = {
    **dict.fromkeys(_FUNCTIONS | _WITH_NUMBERS, _make_table),
    _ATEN.layer_norm.default: _make_layer_norm, _ATEN.rms_norm.default: _make_layer_norm,
    _ATEN.group_norm.default: _make_group_norm}
