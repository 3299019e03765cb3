"""Replace operators that repeat or exchange parts of a tensor by slices that cat joins.

These are pads that repeat elements, and rolls. Slices, flips and cat move int8 integers as they are.

Importing it imports torch.
"""

from collections.abc import Iterator
from typing import Any

import torch

from ..graph_edits import call

_ATEN = torch.ops.aten
_MOST_COPIES = 16  # of an edge, each a tensor of cat


def replace(graph: torch.fx.GraphModule) -> None:
    """Replace the pads and rolls of a graph whose nodes have values of example inputs."""
    for node in list(graph.graph.nodes):
        if node.target is _ATEN.pad.default and len(node.args) > 2 and node.args[2] in _PARTS:
            _replace(graph, node, _PARTS[node.args[2]], list(_pads(node)))
        elif node.target is _ATEN.roll.default and len(node.args) > 2 and node.args[2]:
            _replace(graph, node, _rolled, list(zip(node.args[2], node.args[1], strict=True)))
    graph.recompile()


def _pads(node: torch.fx.Node) -> Iterator[tuple[int, int, int]]:
    """Yield (dim, elements before, elements after), from the last dim on."""
    for i, (before, after) in enumerate(zip(node.args[1][::2], node.args[1][1::2], strict=True)):
        yield node.meta["val"].dim() - 1 - i, before, after


def _replace(graph: torch.fx.GraphModule, node: torch.fx.Node, parts_of: Any,
             arguments: list[tuple[int, ...]]) -> None:
    sizes = node.args[0].meta["val"].shape
    parts = {dim % len(sizes): parts_of(sizes[dim], *numbers) for dim, *numbers in arguments}
    if len(parts) < len(arguments) or any(one is None for one in parts.values()):
        return
    result = call(graph, node, _ATEN.clone.default, node.args[0],  # slices of an image are contiguous
                  memory_format=torch.contiguous_format)
    for dim, of_dim in parts.items():
        joined = [_part(graph, node, result, dim, *one) for one in of_dim]
        result = call(graph, node, _ATEN.cat.default, joined, dim) if len(joined) > 1 else joined[0]
    node.replace_all_uses_with(result)
    graph.graph.erase_node(node)


def _part(graph: torch.fx.GraphModule, node: torch.fx.Node, x: torch.fx.Node, dim: int, start: int,
          end: int, is_flipped: bool = False) -> torch.fx.Node:
    if (start, end) != (0, x.meta["val"].shape[dim]):
        x = call(graph, node, _ATEN.slice.Tensor, x, dim, start, end)
    return call(graph, node, _ATEN.flip.default, x, [dim]) if is_flipped else x


# ---- parts of a dim: (start, end) or (start, end, flipped); None if it is left as it is


def _circular(size: int, before: int, after: int) -> list[tuple[Any, ...]]:
    """Pad one dim. Negative numbers crop it first."""
    first, last = max(-before, 0), size + min(after, 0)
    parts = ((last - before, last), (first, last), (first, first + after))
    return [(start, end) for start, end in parts if end > start]


def _reflected(size: int, before: int, after: int) -> list[tuple[Any, ...]] | None:
    if before < 0 or after < 0:
        return None
    parts = ((1, 1 + before, before > 1), (0, size), (size - 1 - after, size - 1, after > 1))
    return [one for one in parts if one[1] > one[0]]


def _replicated(size: int, before: int, after: int) -> list[tuple[Any, ...]] | None:
    if before < 0 or after < 0 or before + after > _MOST_COPIES:
        return None
    return [*before * [(0, 1)], (0, size), *after * [(size - 1, size)]]


def _rolled(size: int, shift: int) -> list[tuple[Any, ...]]:
    start = size - shift % size if size else 0
    return [(start, size), (0, start)] if start < size else [(0, size)]


_PARTS = {"circular": _circular, "reflect": _reflected, "replicate": _replicated}
