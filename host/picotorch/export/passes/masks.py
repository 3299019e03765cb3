"""Find the values that int8 cannot represent beside others.

Masks of attention have values that are infinite or lie far outside the range of the scores that they
meet. The scale for these values makes one integer of all scores, and a limit of int8 in their place is
a score as any other. Such scores stay in float until a softmax, or the like, has made the masked ones
0. The same holds for probabilities that are masked and then divided by their sum: the division removes
masked ones only if nothing was rounded before.

A value that equals a number in float may not be a multiple of the scale, and rounding makes other
values equal: operands of comparisons for equality stay in float. An operator that selects among tensors
gives all of them one scale, even if it selects nothing of the widest.

Importing it imports torch.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .data_movement import MOVERS

_ATEN = torch.ops.aten

# Whoever uses such a constant means no measured value
_SENTINEL = 1e4
_SPREAD, _GAP = 2e-3, 100  # of sentinels, relative; between them and all other values, a factor

# Softmax returns less than 1/256, a step of its int8 result, if a mask subtracts this much
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
_FACTORS = (_ATEN.mul.Tensor, _ATEN.mul_.Tensor, _ATEN.mul.Scalar)
WITH_NUMBERS = _FILLS + _ARITHMETIC

# Operators whose result has sentinels where an argument has. The largest of a row has none, as a rule
_EXTREMES = (_ATEN.amax.default, _ATEN.amin.default, _ATEN.max.dim, _ATEN.min.dim)
# Operators whose operands get one scale, while the result may have a narrower range
CHOICES = (_ATEN.where.self, _ATEN.minimum.default, _ATEN.maximum.default, _ATEN.clamp.Tensor)
_WIDER = 2  # a bit of precision lost
_SHIFTS = (_ATEN.add.Tensor, _ATEN.add_.Tensor, _ATEN.sub.Tensor, _ATEN.sub_.Tensor)

_EQUALITIES = (_ATEN.eq.Scalar, _ATEN.ne.Scalar, _ATEN.eq.Tensor, _ATEN.ne.Tensor,
               _ATEN.logical_not.default)
_CASTS = (_ATEN.to.dtype, _ATEN._to_copy.default)
_PRODUCTS = (_ATEN.matmul.default, _ATEN.bmm.default, _ATEN.baddbmm.default, _ATEN.einsum.default)
_SUMS = (_ATEN.sum.dim_IntList, _ATEN.sum.default, _ATEN.linalg_vector_norm.default)
CARRIERS = frozenset((
    *(one for one in MOVERS if one not in _EXTREMES), *_FILLS, *_ARITHMETIC,
    _ATEN.masked_fill.Tensor, _ATEN.masked_fill_.Tensor,
    _ATEN.where.self, _ATEN.to.dtype, _ATEN._to_copy.default, _ATEN.masked_scatter.default,
    _ATEN.baddbmm.default, _ATEN.addmm.default, _ATEN.triu.default, _ATEN.tril.default,
    _ATEN.abs.default, _ATEN.slice_scatter.default, _ATEN.select_scatter.default,
    _ATEN.copy.default))


def in_float(graph: torch.fx.GraphModule, samples: Iterable[tuple[Any, ...]]) -> set[torch.fx.Node]:
    """Return the nodes that are to compute in float.

    They are found by the constants of a graph and the values of samples (arguments). Each uses or
    returns sentinels, compares for equality, divides masked probabilities by their sum, selects from
    tensors of unlike ranges, or adds a number far from the values.
    """
    observer = _Observer(graph)
    for arguments in samples:
        with torch.no_grad():
            observer.run(*torch.utils._pytree.tree_leaves(arguments))
    values, nodes = observer.values, list(graph.graph.nodes)
    sentinels = {node for node in nodes if _is_source(node, values, _SENTINEL)}
    found = _carried(nodes, sentinels) | _multiplied(nodes, sentinels)
    scores = _scores(nodes)
    masks = {node for node in scores if _is_source(node, values, _MASK)}
    found |= _carried(nodes, masks) & scores
    found |= {node for node in nodes if node.op == "call_function" and node in values
              and values[node].has_sentinels()}
    found |= {user for node in found for user in node.users if user.op == "call_function"}
    return found.union(*(rule(node) for node in nodes for rule in (_compared, _normalized))) | {
        node for node in nodes if (node.target in CHOICES and _is_cut_off(node, values))
        or (node.target in _SHIFTS and _is_shifted_far(node, values))}


def _multiplied(nodes: list[torch.fx.Node], sentinels: set[torch.fx.Node]) -> set[torch.fx.Node]:
    """Return what leads to a factor of a sentinel, as 1 - mask does in (1 - mask) * -10000.

    The product magnifies what rounding leaves of it, and the samples may have no masked element.
    """
    products = [node for node in nodes if node.target in _FACTORS and (
        node in sentinels or not sentinels.isdisjoint(node.all_input_nodes))]
    return {one for node in products for factor in node.all_input_nodes if factor not in sentinels
            for one in _sources(factor, lambda _: False)}


def _sources(node: torch.fx.Node, is_last: Callable[[torch.fx.Node], bool]) -> set[torch.fx.Node]:
    """Return the sources of a value: calls, and behind carriers the nodes for which is_last is true."""
    found, waiting = set(), [node]
    while waiting:
        one = waiting.pop()
        if one not in found and (one.target in CARRIERS or is_last(one)):
            found.add(one)
            waiting += one.all_input_nodes if one.target in CARRIERS else []
    return found


def _compared(node: torch.fx.Node) -> set[torch.fx.Node]:
    """Return a comparison for equality with a constant, and what leads to its operand.

    Layers with weights stay int8: their results are equal to numbers by chance only.
    """
    if node.target in _CASTS:
        if node.meta["val"].dtype is not torch.bool:
            return set()
    elif node.target not in _EQUALITIES:
        return set()
    operands = [one for one in node.all_input_nodes if one.op != "get_attr"]
    if len(operands) != 1 or not _is_float(operands[0]):
        return set()
    return {node} | _sources(operands[0], lambda one: one.target in _PRODUCTS)


def _normalized(node: torch.fx.Node) -> set[torch.fx.Node]:
    """Return the nodes from a softmax through a mask to a division by its sum."""
    if node.target is not _ATEN.div.Tensor or len(node.all_input_nodes) != 2:
        return set()
    numbers = _sources(node.args[0], lambda one: one.target in SOFTMAXES)
    divisor = _sources(node.args[1], lambda one: one.target in _SUMS)
    sums = {one for one in divisor if one.target in _SUMS and one.args[0] in numbers}
    if not sums or not any(one.target in SOFTMAXES for one in numbers):
        return set()
    return {node} | numbers | divisor


def _is_float(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _is_cut_off(node: torch.fx.Node, values: "dict[torch.fx.Node, _Values]") -> bool:
    """Return True if an operand of a choice has a range that the result does not need.

    Another operand would lose precision by this range. A choice between a tensor and numbers has no
    scale but the ones of the tensor and of the result.
    """
    operands = [one for one in node.all_input_nodes if one in values]
    if node not in values or sum(not _is_number(one) for one in operands) < 2:
        return False
    lowest = min(0, *(values[one].lowest for one in operands))
    highest = max(0, *(values[one].highest for one in operands))
    return highest - lowest > _WIDER * max(values[node].width(), min(
        (values[one].width() for one in operands if one.op != "get_attr"), default=math.inf))


def _is_number(node: torch.fx.Node) -> bool:
    return node.op == "get_attr" and bool(node.meta["val"].numel() == 1)


def _is_shifted_far(node: torch.fx.Node, values: "dict[torch.fx.Node, _Values]") -> bool:
    """Return True for a sum with a constant that needs a much wider range than the other operand.

    An operator that subtracts the constant (of one element) again would find little left.
    """
    constants = [one for one in node.all_input_nodes if _is_number(one)]
    others = [one for one in node.all_input_nodes if one not in constants and one in values]
    return len(constants) == len(others) == 1 and node in values and (
        values[node].width() > _WIDER * values[others[0]].width())


class _Values:
    """The values of a node for all samples."""

    def __init__(self) -> None:
        self.is_finite, self.has_nan = True, False
        self.lowest, self.highest = math.inf, -math.inf
        self.sentinels = (math.inf, -math.inf)  # magnitudes of the large ones
        self.rest = -math.inf  # and the largest of the others

    def add(self, value: torch.Tensor) -> None:
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
                minimum, maximum = self.sentinels
                self.sentinels = min(minimum, large.min().item()), max(maximum, large.max().item())
            if rest.numel():
                self.rest = max(self.rest, rest.max().item())

    def width(self) -> float:
        """Return the width of the range, which has 0 in it."""
        return max(self.highest, 0) - min(self.lowest, 0)

    def has_sentinels(self) -> bool:
        """Return True for infinite values, and for one large value and others far below it."""
        minimum, maximum = self.sentinels
        is_one = minimum <= maximum and maximum - minimum <= _SPREAD * maximum
        return not self.is_finite or (is_one and 0 <= self.rest * _GAP < minimum)

    def is_mask(self) -> bool:
        """Return True for numbers that can only be meant to be added to scores."""
        return self.highest == 0 and self.lowest <= -_MASK


class _Observer(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__(graph)
        self.values: dict[torch.fx.Node, _Values] = {}

    def run_node(self, node: torch.fx.Node) -> Any:
        result = super().run_node(node)
        if isinstance(result, torch.Tensor) and result.is_floating_point() and node.op != "output":
            self.values.setdefault(node, _Values()).add(result)
        return result


def _is_source(node: torch.fx.Node, values: dict[torch.fx.Node, _Values], size: float) -> bool:
    """Return True for constants of at least this size, operators with one, and masks as inputs."""
    if node.op == "call_function":
        return node.target in WITH_NUMBERS and any(
            isinstance(one, int | float) and not abs(one) < size for one in node.args)
    if node not in values:
        return False
    found = values[node]
    if node.op == "placeholder":
        return not found.has_nan and (found.has_sentinels() or (size == _MASK and found.is_mask()))
    is_large = max(abs(found.lowest), abs(found.highest)) >= size and found.lowest <= found.highest
    return node.op == "get_attr" and (not found.is_finite or is_large)


def _carried(nodes: list[torch.fx.Node], sources: set[torch.fx.Node]) -> set[torch.fx.Node]:
    found = set(sources)
    for node in nodes:
        if node.target in CARRIERS and not found.isdisjoint(node.all_input_nodes):
            found.add(node)
    return found


def _scores(nodes: list[torch.fx.Node]) -> set[torch.fx.Node]:
    """Return the sources of the scores of all softmaxes."""
    found = set()
    for node in reversed(nodes):
        if node.target in _EXPONENTIALS or (node in found and node.target in CARRIERS):
            found.update(node.all_input_nodes)
    return found
