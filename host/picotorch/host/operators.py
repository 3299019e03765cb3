"""The operators that picotorch knows, and those that programs need."""

import functools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import _picotorch
from _picotorch_c import ffi, lib

from picotorch.data import DataMap
from picotorch.errors import OPERATOR_MISSING, Error, fail
from picotorch.method_meta import MethodMeta
from picotorch.module import load_with_exact_memories
from picotorch.program import Program
from picotorch.tensor import TensorInfo

from . import program_schema as schema
from .sources import ROOT
from .tensors import numpy_dtype
from .twin import is_image

# What a build may be without beside operators, and the switch that leaves it out: .ptm or .pte files,
# mathematical functions of float64, arithmetic of complex numbers, 3-d convolutions, and forms of
# convolutions.
FEATURES = {"images": "PT_NO_IMAGES", "programs": "PT_NO_PROGRAMS", "float64": "PT_NO_FLOAT64",
            "complex": "PT_NO_COMPLEX", "volumes": "PT_NO_VOLUMES", "winograd": "PT_NO_WINOGRAD",
            "pointwise": "PT_NO_POINTWISE", "neighbours": "PT_NO_NEIGHBOURS"}
FEATURE_TITLES = {"images": ".ptm files", "programs": ".pte files", "float64": "float64 functions",
                  "complex": "complex arithmetic", "volumes": "3-d convolutions"}
WIDE_FORMS = {"winograd": lib.PT_WIDE_WINOGRAD, "pointwise": lib.PT_WIDE_POINTWISE,
              "neighbours": lib.PT_WIDE_NEIGHBOURS}
_REGISTRY = ROOT / "kernels" / "core" / "registry"
LIST = _REGISTRY / "operators.def"
FEATURE_KERNELS = _REGISTRY / "feature_kernels.h"
_COMPLEX = (8, 9, 10)  # scalar types

OUTPUTS = "OoWCE"  # letters of a signature, see operators.def: tensors, or lists of them
WRITTEN = OUTPUTS + "NA"  # all results
CHANGED, NOT_FILLED, SCRATCH = "C", "E", "X"

_ENTRY = re.compile(r'^PT_(RARE_)?OPERATOR\((\d+), "([^"]+)", (\w+), "(\w*)", "([\w ]*)"\)$',
                    re.MULTILINE)


@dataclass(frozen=True)
class Operator:
    """An operator that picotorch knows: its number, its kernel `pt_<symbol>`, a letter of the signature
    and a name for each argument, its line in the list. is_rare: builds with all kernels and little room
    leave it out."""

    number: int
    name: str
    symbol: str
    signature: str
    arguments: tuple[str, ...]
    line: str
    is_rare: bool = False


def known_operators() -> dict[str, Operator]:
    """Return all operators by name, in the order of their numbers."""
    found = [Operator(int(match[2]), match[3], match[4], match[5], tuple(match[6].split()), match[0],
                      match[1] is not None)
             for match in _ENTRY.finditer(LIST.read_text())]
    return {operator.name: operator for operator in sorted(found, key=lambda one: one.number)}


def common_operators() -> set[str]:
    """Return the names of all but the rare ones."""
    return {name for name, operator in known_operators().items() if not operator.is_rare}


def built_operators() -> dict[str, int]:
    """The numbers of the operators that this build has a kernel for, by their names."""
    names = [ffi.string(lib.pt_operator_name(i)).decode() for i in range(lib.pt_operator_count())]
    return {name: number for number, name in enumerate(names) if name}


def operator_signature(number: int) -> str:
    """A letter for each argument of an operator, see operators.def."""
    signature: str = ffi.string(lib.pt_operator_signature(number)).decode()
    return signature


@functools.cache
def feature_kernels() -> dict[str, dict[str, str]]:
    """Return by feature the symbols of the kernels that it replaces, and of their replacements."""
    text = FEATURE_KERNELS.read_text()
    blocks = dict(re.findall(r"(?s)#ifndef (\w+)\n(.*?)#endif", text))
    return {name: dict(re.findall(r"#define pt_(\w+) pt_(\w+)", blocks.get(switch, "")))
            for name, switch in FEATURES.items()}


def _tensors(programs: dict[str, Program]) -> Iterator[TensorInfo]:
    """Yield all tensors of all methods of the programs."""
    for program in programs.values():
        library = program.library
        for plan in range(len(program.method_names)):
            for i in range(library.count(plan, _picotorch.VALUES)):
                if library.item(plan, _picotorch.VALUES, i)[1] == schema.KERNEL_TYPES_TENSOR:
                    yield TensorInfo(library.tensor(plan, _picotorch.VALUES, i))


def has_float64(programs: dict[str, Program]) -> bool:
    """True where a method of these programs computes float64; scales of quantization are constants."""
    return any(numpy_dtype(tensor) in ("float64", "complex128") and not tensor.is_constant()
               for tensor in _tensors(programs))


def has_volumes(program: Program) -> bool:
    """True where a method of the program has a 3-d convolution."""
    library = program.library
    for number in range(len(program.method_names)):
        meta, plan = MethodMeta(program, number), library.plan(number)
        walk = ffi.new("pt_plan_walk *", lib.pt_plan_walk_start(plan))
        convolutions = [i for i in range(meta.num_operators())
                        if meta.operator_name(i) == "aten::convolution.out"]
        while convolutions and lib.pt_plan_walk_next(walk):
            if walk.kind == schema.INSTRUCTION_ARGUMENTS_KERNEL_CALL and walk.target in convolutions:
                image = lib.pt_plan_walk_argument(walk, 0)
                if len(TensorInfo(library.tensor(number, _picotorch.VALUES, image)).sizes()) == 5:
                    return True
    return False


def needed_operators(programs: dict[str, Program]) -> list[str]:
    """The operators of all methods of the programs, sorted. `programs` is by file name.

    Raises OperatorMissing with all that no build has a kernel for.
    """
    needed: set[str] = set()
    missing: list[str] = []
    for name, program in programs.items():
        for meta in (program.method_meta(method) for method in program.method_names):
            needed.update(meta.operator_name(i) for i in range(meta.num_operators()))
            missing += [f"{operator} ({name})" for operator in meta.missing_operators()]
    if missing:
        raise fail(OPERATOR_MISSING, "no kernel for: " + ", ".join(dict.fromkeys(missing)),
                   remedy="change these models or leave them out")
    return sorted(needed)


def in_words(operators: Collection[str], features: Collection[str]) -> list[str]:
    """Kernels and features that something lacks."""
    return [*([f"kernels for {', '.join(sorted(operators))}"] if operators else []),
            *(FEATURE_TITLES[name] for name in sorted(features))]


def needed_features(programs: dict[str, Program]) -> set[str]:
    """Select the FEATURES of a firmware for the programs; it takes .pte files in any case."""
    features = {"programs"}.union(*map(wide_forms, programs.values()))
    if any(is_image(program.loader.buffer) for program in programs.values()):
        features.add("images")
    if has_float64(programs):
        features.add("float64")
    if any(tensor.scalar_type() in _COMPLEX for tensor in _tensors(programs)):
        features.add("complex")
    if any(map(has_volumes, programs.values())):
        features.add("volumes")
    return features


def wide_forms(program: Program, data_map: DataMap | None = None) -> set[str]:
    """The forms of convolutions that a program gains by where their scratch is there. All where that is
    not known, since external data or a backend is missing."""
    forms = 0
    try:
        for name in program.method_names:
            forms |= load_with_exact_memories(program, name, False, data_map).library.wide_forms()
    except Error:
        return set(WIDE_FORMS)
    return {name for name, form in WIDE_FORMS.items() if forms >> form & 1}
