"""Read kernels/core/registry/operators.def. Tools load this file by its path, without picotorch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_ENTRY = re.compile(r'(?:PT_EXTRA\((?P<subject>[A-Z]\w+), )?PT_'
                    r'(?:OPERATOR\(|EXTENDED_OPERATOR\((?P<feature>[A-Z]\w+), (?P<other>\w+), )'
                    r'(?P<number>\d+), "(?P<name>[\w:.]+)", (?P<symbol>\w+), "(?P<signature>\w*)", '
                    r'"(?P<arguments>[\w ]*)"\)(?(subject)\))')


@dataclass(frozen=True)
class Operator:
    """An operator that picotorch supports.

    It has a number, the symbol of its kernel `pt_<symbol>`, a letter of the signature and a name for
    each argument, and its line in the list. subject: the folder of kernels/extra, which few models
    need, or None. others: the symbol of the kernel in its place in builds with a feature.
    """

    number: int
    name: str
    symbol: str
    signature: str
    arguments: tuple[str, ...]
    line: str
    subject: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)


def read_operators(text: str) -> tuple[list[Operator], list[str]]:
    """Return the operators in the order of their lines, and the lines that are no entry or comment."""
    operators, others = [], []
    for line in text.splitlines():
        match = _ENTRY.fullmatch(line)
        if match:
            operators.append(_operator(match))
        elif line and not line.startswith("//"):
            others.append(line)
    return operators, others


def _operator(match: re.Match[str]) -> Operator:
    subject, feature = match["subject"], match["feature"]
    return Operator(int(match["number"]), match["name"], match["symbol"], match["signature"],
                    tuple(match["arguments"].split()), match[0], subject and subject.lower(),
                    {feature.lower(): match["other"]} if feature else {})
