"""Read kernels/core/registry/operators.def. Tools load this file by its path, without picotorch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_ENTRY = re.compile(r'(?:PT_EXTRA\((?P<subject>[A-Z]\w+), )?PT_'
                    r'(?:OPERATOR\(|EXTENDED_OPERATOR\((?P<feature>[A-Z]\w+), (?P<other>\w+), )'
                    r'(?P<number>\d+), "(?P<name>[\w:.]+)", (?P<symbol>\w+), "(?P<signature>\w*)", '
                    r'"(?P<arguments>[\w ]*)"\)(?(subject)\))')
_FORM = re.compile(r'PT_FORM\((?P<number>\d+), "(?P<signature>[\w-]+)", "(?P<releases>[\w. ]+)"\)')


@dataclass(frozen=True)
class Form:
    """A form of an operator with fewer arguments, which earlier releases of ExecuTorch export.

    signature: with - for each argument that it lacks.
    """

    signature: str
    releases: str

    @property
    def n_args(self) -> int:
        """Return the number of its arguments, the returned value not included."""
        return len(self.signature.replace("-", ""))


@dataclass(frozen=True)
class Operator:
    """An operator that picotorch supports.

    It has a number, the symbol of its kernel `pt_<symbol>`, a letter of the signature and a name for
    each argument, and its line in the list, with the lines of its forms. subject: the folder of
    kernels/extra, which few models need, or None. others: the symbol of the kernel in its place in
    builds with a feature.
    """

    number: int
    name: str
    symbol: str
    signature: str
    arguments: tuple[str, ...]
    line: str
    subject: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    forms: tuple[Form, ...] = ()

    def arguments_in(self, n_args: int) -> tuple[str, ...]:
        """Return the names of the arguments of a call with n_args, the returned value not included."""
        for form in self.forms:
            if form.n_args == n_args:
                return tuple(name for name, letter in zip(self.arguments, form.signature, strict=True)
                             if letter != "-")
        return self.arguments


def read_operators(text: str) -> tuple[list[Operator], list[str]]:
    """Return the operators in the order of their lines, and the lines that are no entry or comment."""
    operators: list[Operator] = []
    others: list[str] = []
    for line in text.splitlines():
        match, form = _ENTRY.fullmatch(line), _FORM.fullmatch(line)
        if match:
            operators.append(_operator(match))
        elif form and operators and operators[-1].number == int(form["number"]):
            operators[-1] = _with_form(operators[-1], form)
        elif line and not line.startswith("//"):
            others.append(line)
    return operators, others


def _with_form(operator: Operator, match: re.Match[str]) -> Operator:
    form = Form(match["signature"], match["releases"])
    return replace(operator, line=f"{operator.line}\n{match[0]}", forms=(*operator.forms, form))


def _operator(match: re.Match[str]) -> Operator:
    subject, feature = match["subject"], match["feature"]
    return Operator(int(match["number"]), match["name"], match["symbol"], match["signature"],
                    tuple(match["arguments"].split()), match[0], subject and subject.lower(),
                    {feature.lower(): match["other"]} if feature else {})
