"""Find the names of the inputs and outputs of methods in a program.

The names are the keys of keyword arguments and of dicts, and the fields of dataclasses. They are in the
trees that torch.export flattened, which ExecutionPlan's container_meta_type stores. ExecuTorch stores
no name of a positional argument.
"""

import json
import re
from typing import Any

from ..host import program_schema as slots

_CALLS = ("set", "resize", "sizes")  # suffixes of an input's or output's functions
_LONGEST = 100  # characters of a name: files can repeat long keys without end


def of_program(model: bytes) -> dict[str, tuple[list[str], list[str]]]:
    """Return {method: (names of its inputs, names of its outputs)} of a verified program.

    An input or output without a name has "". The list is empty if the program has no names.
    """
    from ..run.tables import Tables  # imports flatbuffers, which few commands need

    tables = Tables(model)
    plans = tables.table(tables.root(), slots.PROGRAM_EXECUTION_PLAN)
    found = {}
    for plan in (tables.item(plans, i) for i in range(tables.length(plans))):
        trees = tables.table(plan, slots.EXECUTION_PLAN_CONTAINER_META_TYPE)
        inputs, outputs = (
            _names(tables.text(trees, slot)) if trees else [] for slot in
            (slots.CONTAINER_METADATA_ENCODED_INP_STR, slots.CONTAINER_METADATA_ENCODED_OUT_STR))
        found[tables.text(plan, slots.EXECUTION_PLAN_NAME)] = inputs, outputs
    return found


def _names(text: str) -> list[str]:
    """Return the names of the leaves of a tree: keys on the way from its root, joined by "_".

    A name is "" if it has more than _LONGEST characters. The list is empty if the text is not a tree.
    """
    found: list[str] = []
    try:
        _, tree = json.loads(text)
        _add_names(tree, "", found)
        return found
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def _add_names(tree: dict[str, Any], name: str, found: list[str]) -> None:
    if tree["type"] is None:
        found.append(name if len(name) <= _LONGEST else "")
        return
    children = tree["children_spec"]
    keys = _keys(tree["context"])
    if not isinstance(keys, list) or len(keys) != len(children):  # a sequence
        keys = [str(i) if name else "" for i in range(len(children))]
    for key, child in zip(keys, children, strict=True):
        _add_names(child, "_".join(filter(None, (name, str(key))))[: _LONGEST + 1], found)


def _keys(context: Any) -> Any:
    """Return the keys of a dict or the fields of a dataclass, and another value for a sequence."""
    if isinstance(context, dict):  # a defaultdict stores a dict as context
        return context["dict_context"]
    try:
        keys = json.loads(context)
    except ValueError:  # the name of a namedtuple
        return None
    is_dataclass = isinstance(keys, list) and len(keys) == 2 and isinstance(keys[0], list)
    return keys[0] if is_dataclass else keys  # the second list names the fields that are None


def identifiers(names: list[str], count: int) -> list[str]:
    """Name each of `count` inputs or outputs for C, by its name or its index.

    The index is used without a name, or if functions or macros of two inputs or outputs would have the
    same name.
    """
    found = [str(i) for i in range(count)]
    if len(names) != count:
        return found
    used = {name for index in found for name in _own(index)}
    for i, name in enumerate(names):
        name = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")
        own = _own(name)
        if name and not name.isdigit() and not own & used:
            found[i] = name
            used |= own
    return found


def _own(name: str) -> set[str]:
    return {name.upper(), *(f"{name}_{call}".upper() for call in _CALLS)}
