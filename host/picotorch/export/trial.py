"""Run the graph of an int8 program in floats, with any of its roundings to integers on or off.

Importing it imports torch.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeGuard

import torch

from . import graph_edits
from .lower_float import value_name


class Site(NamedTuple):
    """A rounding: of the value of a node, or of the weights of a user, for which value is None."""

    value: torch.fx.Node | None
    user: torch.fx.Node
    dequantizers: tuple[torch.fx.Node, ...]
    limits: tuple[float, float, float]  # lowest, highest, step

    def users(self) -> list[torch.fx.Node]:
        """Return the nodes that receive the rounded value."""
        return [user for one in self.dequantizers for user in one.users]


def is_quantization(node: Any, *names: str) -> TypeGuard[torch.fx.Node]:
    """Return True for an operator whose name begins so: "quantize", "dequantize"."""
    return isinstance(node, torch.fx.Node) and str(node.target).startswith(
        tuple(f"quantized_decomposed.{name}" for name in names))


class Trial:
    """A graph of floats, in which single values can be rounded.

    nodes: the nodes by value_name, without roundings. sites: the roundings. floats: the value of each
    node without any.
    """

    def __init__(self, graph: torch.fx.GraphModule, reference: torch.fx.GraphModule,
                 arguments: tuple[Any, ...]) -> None:
        self.graph, self.arguments = graph, torch.utils._pytree.tree_leaves(arguments)
        self.nodes = {value_name(node): node for node in graph.graph.nodes
                      if not is_quantization(node, "quantize", "dequantize")}
        self.weights = self._weights(reference)
        self.sites = self._sites()
        self.floats = self._run({}, frozenset())

    def _weights(self, reference: torch.fx.GraphModule) -> dict[torch.fx.Node, torch.Tensor]:
        """Return {dequantizer of weights: the weights in float}."""
        named = {node.name: node for node in reference.graph.nodes}
        found: dict[torch.fx.Node, torch.Tensor] = {}
        for node in self.graph.graph.nodes:
            same = named.get(node.name)
            for k, argument in enumerate(node.args):
                if (is_quantization(argument, "dequantize")
                        and not is_quantization(argument.args[0], "quantize")
                        and same is not None and k < len(same.args)
                        and getattr(same.args[k], "op", "") == "get_attr"):
                    found[argument] = graph_edits.constant(reference, same.args[k]).detach()
        return found

    def _sites(self) -> list[Site]:
        found: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        for node in self.graph.graph.nodes:
            if not is_quantization(node, "dequantize") or not node.users:
                continue
            if is_quantization(node.args[0], "quantize"):
                found.setdefault(node.args[0].args[0], []).append(node)
            elif node in self.weights:
                found.setdefault(node, []).append(node)
        return [Site(None if source in self.weights else source, next(iter(nodes[0].users)),
                     tuple(nodes), self._limits(nodes[0])) for source, nodes in found.items()]

    def _limits(self, node: torch.fx.Node) -> tuple[float, float, float]:
        step, zero_point, minimum, maximum = (
            graph_edits.constant(self.graph, one) if isinstance(one, torch.fx.Node) else one
            for one in _parameters(node))
        if isinstance(step, torch.Tensor):
            return (math.nan, math.nan, math.nan)
        return ((minimum - zero_point) * step, (maximum - zero_point) * step, step)

    def _run(self, values: dict[torch.fx.Node, Any],
             on: frozenset[torch.fx.Node]) -> dict[torch.fx.Node, Any]:
        one = _Interpreter(self, on)
        with torch.no_grad():
            one.run(*self.arguments, initial_env=dict(values))
        env: dict[torch.fx.Node, Any] = one.env
        return env

    def ancestors(self, nodes: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
        """Return these nodes and all that they depend on."""
        found, waiting = set(), list(nodes)
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += one.all_input_nodes
        return found

    def sites_of(self, node: torch.fx.Node) -> list[Site]:
        """Return the roundings that the value of a node depends on, its own among them."""
        leading = self.ancestors([node])
        return [site for site in self.sites
                if site.value is node or not leading.isdisjoint(site.dequantizers)]

    def noise(self, node: torch.fx.Node, sites: list[Site]) -> float:
        """Return the sum of the squared errors of a value by these roundings."""
        (rounded,) = self.values([node], sites)
        return float(((rounded.double() - self.floats[node].double()).nan_to_num() ** 2).sum())

    def values(self, nodes: Sequence[torch.fx.Node], sites: Iterable[Site]) -> list[torch.Tensor]:
        """Return the values of nodes with these roundings, their own among them."""
        own, stale = {site.value: site.dequantizers[0] for site in sites}, set[torch.fx.Node]()
        stale.update(one for site in sites for one in site.dequantizers)
        on = frozenset(stale)
        for one in self.graph.graph.nodes:
            if not stale.isdisjoint(one.all_input_nodes):
                stale.add(one)
        found = [own.get(node, node) for node in nodes]
        known = {one: value for one, value in self.floats.items() if one not in stale}
        ancestors = self.ancestors(found)
        known |= {one: None for one in self.graph.graph.nodes if one in stale and one not in ancestors}
        env = self._run(known, on)
        return [env[one] for one in found]

    def outputs(self) -> list[torch.fx.Node]:
        """Return the value of each output, before it is rounded."""
        found = []
        for node in self.graph.graph.output_node().all_input_nodes:
            if is_quantization(node, "dequantize") and is_quantization(node.args[0], "quantize"):
                node = node.args[0].args[0]
            found.append(node)
        return found


class _Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(self, trial: Trial, on: frozenset[torch.fx.Node]) -> None:
        super().__init__(trial.graph, garbage_collect_values=False)
        self.trial, self.on = trial, on

    def run_node(self, node: torch.fx.Node) -> Any:
        if is_quantization(node, "dequantize") and node not in self.on:
            if node in self.trial.weights:
                return self.trial.weights[node]
            if is_quantization(node.args[0], "quantize"):
                return self.env[node.args[0].args[0]]
        return super().run_node(node)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        schema = getattr(target, "_schema", None)
        if schema is not None and schema.is_mutable:  # the values of other runs stay as they are
            args = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, args)
        return super().call_function(target, args, kwargs)


def _parameters(node: torch.fx.Node) -> list[Any]:
    """Return (scale, zero point, lowest, highest integer); per channel, the first two are nodes."""
    numbers = list(node.args[1:])
    if is_quantization(node, "dequantize_per_channel"):
        del numbers[2]  # the axis
    return numbers[:4]
