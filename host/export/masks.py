"""Find what int8 cannot state beside other values: masks of attention, whose values are infinite or lie
far outside the range of the scores that they meet.

The scale that these values lead to makes one integer of all scores, and a limit of int8 in their place
is a score as any other. What they meet stays in float until a softmax, or the like, has made them 0.

Importing it imports torch.
"""

import math
from collections.abc import Iterable

import torch

from .movers import MOVERS

_ATEN = torch.ops.aten

# Whoever uses such a constant means no measured value
_SENTINEL = 1e4
_SPREAD, _GAP = 2e-3, 100  # of sentinels, relative; between them and all other values, a factor

# Softmax gives a score less than 1/256, a step of its int8 result, where a mask takes off this much
_MASK = 16

SOFTMAXES = (_ATEN.softmax.int, _ATEN._softmax.default, _ATEN._safe_softmax.default)
_EXPONENTIALS = (*SOFTMAXES, _ATEN.log_softmax.int, _ATEN._log_softmax.default, _ATEN.logsumexp.default)

_FILLS = (_ATEN.masked_fill.Scalar, _ATEN.masked_fill_.Scalar, _ATEN.where.ScalarSelf,
          _ATEN.where.ScalarOther, _ATEN.where.Scalar, _ATEN.full.default, _ATEN.full_like.default,
          _ATEN.fill.Scalar, _ATEN.fill_.Scalar, _ATEN.scalar_tensor.default,
          _ATEN.index_fill.int_Scalar)
_ARITHMETIC = (
    _ATEN.add.Tensor, _ATEN.add_.Tensor, _ATEN.add.Scalar, _ATEN.sub.Tensor, _ATEN.sub_.Tensor,
    _ATEN.sub.Scalar, _ATEN.rsub.Scalar, _ATEN.rsub.Tensor, _ATEN.mul.Tensor, _ATEN.mul_.Tensor,
    _ATEN.mul.Scalar, _ATEN.div.Tensor, _ATEN.div_.Tensor, _ATEN.div.Scalar, _ATEN.neg.default)

# Operators whose result has sentinels where an argument has. The largest of a row has none, as a rule
_EXTREMES = (_ATEN.amax.default, _ATEN.amin.default, _ATEN.max.dim, _ATEN.min.dim)
_CARRIERS = frozenset((
    *(one for one in MOVERS if one not in _EXTREMES), *_FILLS, *_ARITHMETIC,
    _ATEN.masked_fill.Tensor, _ATEN.masked_fill_.Tensor,
    _ATEN.where.self, _ATEN.to.dtype, _ATEN._to_copy.default, _ATEN.masked_scatter.default,
    _ATEN.baddbmm.default, _ATEN.addmm.default, _ATEN.triu.default, _ATEN.tril.default,
    _ATEN.abs.default, _ATEN.slice_scatter.default, _ATEN.select_scatter.default,
    _ATEN.copy.default))


def in_float(graph: torch.fx.GraphModule, samples: Iterable[tuple]) -> set[torch.fx.Node]:
    """Return the nodes that take or give sentinels, by the constants of a graph and the values that
    these samples (arguments) lead to."""
    observer = _Observer(graph)
    for arguments in samples:
        with torch.no_grad():
            observer.run(*torch.utils._pytree.tree_leaves(arguments))
    values, nodes = observer.values, list(graph.graph.nodes)
    found = _carried(nodes, {node for node in nodes if _is_source(node, values, _SENTINEL)})
    scores = _scores(nodes)
    masks = {node for node in scores if _is_source(node, values, _MASK)}
    found |= _carried(nodes, masks) & scores
    found |= {node for node in nodes if node.op == "call_function" and node in values
              and values[node].has_sentinels()}
    return found | {user for node in found for user in node.users if user.op == "call_function"}


class _Values:
    """The values that a node gives, of all samples."""

    def __init__(self):
        self.is_finite, self.has_nan = True, False
        self.lowest, self.highest = math.inf, -math.inf
        self.sentinels = (math.inf, -math.inf)  # magnitudes of those that are large
        self.rest = -math.inf  # and the largest of the others

    def add(self, value):
        value = value.detach().double()
        finite = torch.isfinite(value)
        self.has_nan |= bool(value.isnan().any())
        self.is_finite &= bool(finite.all())
        value = value[finite]
        if value.numel():
            self.lowest = min(self.lowest, value.min().item())
            self.highest = max(self.highest, value.max().item())
            value = value.abs()
            large, rest = value[value >= _SENTINEL], value[value < _SENTINEL]
            if large.numel():
                least, most = self.sentinels
                self.sentinels = min(least, large.min().item()), max(most, large.max().item())
            if rest.numel():
                self.rest = max(self.rest, rest.max().item())

    def has_sentinels(self):
        """Return True for infinite values, and for one large value and others far below it."""
        least, most = self.sentinels
        is_one = least <= most and most - least <= _SPREAD * most
        return not self.is_finite or (is_one and 0 <= self.rest * _GAP < least)

    def is_mask(self):
        """Return True for numbers that can only be meant to be added to scores."""
        return self.highest == 0 and self.lowest <= -_MASK


class _Observer(torch.fx.Interpreter):
    def __init__(self, graph):
        super().__init__(graph)
        self.values = {}

    def run_node(self, node):
        result = super().run_node(node)
        if isinstance(result, torch.Tensor) and result.is_floating_point() and node.op != "output":
            self.values.setdefault(node, _Values()).add(result)
        return result


def _is_source(node, values, size):
    """Return True for constants of at least this size, operators with such a number, and inputs that
    are masks."""
    if node.op == "call_function":
        return node.target in _FILLS + _ARITHMETIC and any(
            isinstance(one, int | float) and not abs(one) < size for one in node.args)
    if node not in values:
        return False
    found = values[node]
    if node.op == "placeholder":
        return not found.has_nan and (found.has_sentinels() or (size == _MASK and found.is_mask()))
    is_large = max(abs(found.lowest), abs(found.highest)) >= size and found.lowest <= found.highest
    return node.op == "get_attr" and (not found.is_finite or is_large)


def _carried(nodes, sources):
    found = set(sources)
    for node in nodes:
        if node.target in _CARRIERS and not found.isdisjoint(node.all_input_nodes):
            found.add(node)
    return found


def _scores(nodes):
    """Return what the scores of all softmaxes are carried from."""
    found = set()
    for node in reversed(nodes):
        if node.target in _EXPONENTIALS or (node in found and node.target in _CARRIERS):
            found.update(node.all_input_nodes)
    return found
