"""The operators that picotorch knows, and those that programs need."""

import re
from dataclasses import dataclass
from pathlib import Path

from _picotorch_c import ffi, lib
from picotorch import Program
from picotorch.errors import OPERATOR_MISSING, fail

LIST = Path(__file__).resolve().parent.parent / "kernels" / "core" / "operators.def"

_ENTRY = re.compile(r'^PT_OPERATOR\((\d+), "([^"]+)", (\w+), "(\w*)", "([\w ]*)"\)$', re.MULTILINE)


@dataclass(frozen=True)
class Operator:
    """An operator that picotorch knows: its number, its kernel `pt_<symbol>`, a letter of the signature
    and a name for each argument, its line in the list."""

    number: int
    name: str
    symbol: str
    signature: str
    arguments: tuple[str, ...]
    line: str


def known_operators() -> dict[str, Operator]:
    """All of them by name, in the order of their numbers."""
    found = [Operator(int(match[1]), match[2], match[3], match[4], tuple(match[5].split()), match[0])
             for match in _ENTRY.finditer(LIST.read_text())]
    return {operator.name: operator for operator in sorted(found, key=lambda one: one.number)}


def built_operators() -> dict[str, int]:
    """The numbers of the operators that this build has a kernel for, by their names."""
    names = [ffi.string(lib.pt_operator_name(i)).decode() for i in range(lib.pt_operator_count())]
    return {name: number for number, name in enumerate(names) if name}


def operator_signature(number: int) -> str:
    """A letter for each argument of an operator, see operators.def."""
    return ffi.string(lib.pt_operator_signature(number)).decode()


def needed_operators(programs: dict[str, Program]) -> list[str]:
    """The operators of all methods of the programs, sorted. `programs` is by file name.

    Raises OperatorMissing with all that no build has a kernel for.
    """
    needed, missing = set(), []
    for name, program in programs.items():
        for meta in (program.method_meta(method) for method in program.method_names):
            needed.update(meta.operator_name(i) for i in range(meta.num_operators()))
            missing += [f"{operator} ({name})" for operator in meta.missing_operators()]
    if missing:
        raise fail(OPERATOR_MISSING, "no kernel for: " + ", ".join(dict.fromkeys(missing)),
                   remedy="change these models or leave them out")
    return sorted(needed)
