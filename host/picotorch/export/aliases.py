"""Find the values of a graph that operators change in place.

It reads the schemas of operators, and does not import torch.
"""

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.fx import Node


def changed_by(node: "Node") -> "Iterator[Node]":
    """Yield the values that an operator changes: arguments, and values that these are views of."""
    for argument in _arguments(node, is_write=True):
        value: Node | None = argument
        while value is not None:
            yield value
            value = next(iter(_arguments(value, is_write=False)), None)


def _arguments(node: "Node", is_write: bool) -> "list[Node]":
    """Return the arguments that an operator changes, or else the ones that its result is a view of."""
    if node.target is operator.getitem:  # of a list of views
        return [] if is_write else [node.args[0]]
    schema = getattr(node.target, "_schema", None)
    return [value for argument, value in zip(schema.arguments, node.args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write == is_write
            and hasattr(value, "users")] if schema else []
