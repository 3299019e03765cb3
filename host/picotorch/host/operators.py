"""List the operators that picotorch supports, and the ones that programs need."""

import functools
from collections.abc import Collection, Iterable, Iterator

import _picotorch
from _picotorch_c import ffi, lib

from picotorch.data import DataMap
from picotorch.errors import OPERATOR_MISSING, Error, fail
from picotorch.method_meta import MethodMeta
from picotorch.module import load_with_exact_memories
from picotorch.program import Program
from picotorch.tensor import TensorInfo

from . import program_schema as schema
from .operator_list import Operator, read_operators
from .sources import ROOT
from .tensors import numpy_dtype
from .twin import is_ptm

# Features that a build may lack, and the switch that leaves each out: .ptm or .pte files, mathematical
# functions of float64, complex tensors, 3-d convolutions and pools, and variants of convolutions.
FEATURES = {"images": "PT_NO_PTM", "programs": "PT_NO_PROGRAMS", "float64": "PT_NO_FLOAT64",
            "complex": "PT_NO_COMPLEX", "volumes": "PT_NO_VOLUMES", "winograd": "PT_NO_WINOGRAD",
            "pointwise": "PT_NO_POINTWISE", "im2row": "PT_NO_IM2ROW"}
FEATURE_TITLES = {"images": ".ptm files", "programs": ".pte files", "float64": "float64 functions",
                  "complex": "complex arithmetic", "volumes": "3-d convolutions"}
CONV_VARIANTS = {"winograd": lib.PT_VARIANT_WINOGRAD, "pointwise": lib.PT_VARIANT_POINTWISE,
              "im2row": lib.PT_VARIANT_IM2ROW}
LIST = ROOT / "kernels" / "core" / "registry" / "operators.def"
_COMPLEX = (8, 9, 10)  # scalar types

OUTPUTS = "OoWCE"  # letters of a signature, see operators.def: tensors, or lists of them
WRITTEN = OUTPUTS + "NA"  # all results
CHANGED, NOT_FILLED, SCRATCH = "C", "E", "Xx"

def supported_operators() -> dict[str, Operator]:
    """Return all operators by name, in the order of their numbers."""
    found, _ = read_operators(LIST.read_text())
    return {operator.name: operator for operator in sorted(found, key=lambda one: one.number)}


def common_operators() -> set[str]:
    """Return the names of all operators outside kernels/extra."""
    return {name for name, operator in supported_operators().items() if not operator.subject}


@functools.cache
def built_operators() -> dict[str, int]:
    """Return the numbers of the operators that this build has a kernel for, by their names."""
    names = [ffi.string(lib.pt_operator_name(i)).decode() for i in range(lib.pt_operator_count())]
    return {name: number for number, name in enumerate(names) if name}


def operator_signature(number: int) -> str:
    """Return a letter for each argument of an operator, see operators.def."""
    signature: str = ffi.string(lib.pt_operator_signature(number)).decode()
    return signature


def operator_form(number: int, n_args: int) -> str:
    """Return a letter for each argument of a call in a .pte file, which has n_args with the result.

    An unknown form has the letters of the operator's signature.
    """
    form = lib.pt_operator_form(number, n_args, ffi.new("uint32_t *"))
    return ffi.string(form).decode().replace("-", "") if form else operator_signature(number)


@functools.cache
def feature_kernels() -> dict[str, dict[str, str]]:
    """Return by feature the symbols of the kernels that it replaces, and of their replacements."""
    return {name: {operator.symbol: operator.others[name] for operator in supported_operators().values()
                   if name in operator.others} for name in FEATURES}


def _tensors(programs: dict[str, Program]) -> Iterator[TensorInfo]:
    """Yield all tensors of all methods of the programs."""
    for program in programs.values():
        library = program.library
        for plan in range(program.num_methods()):
            for i in range(library.count(plan, _picotorch.VALUES)):
                if library.item(plan, _picotorch.VALUES, i)[1] == schema.KERNEL_TYPES_TENSOR:
                    yield TensorInfo(library.tensor(plan, _picotorch.VALUES, i))


def has_float64(programs: dict[str, Program]) -> bool:
    """Return whether a method of these programs computes float64; scales are constants."""
    return any(numpy_dtype(tensor) in ("float64", "complex128") and not tensor.is_constant()
               for tensor in _tensors(programs))


def has_volumes(program: Program) -> bool:
    """Return True where a method of the program has a 3-d convolution."""
    library = program.library
    for number, meta in enumerate(methods_of(program)):
        described = library.method_meta(number)
        # The walk points into `described`, which must live as long.
        walk = ffi.new("pt_instruction_walk *", lib.pt_instruction_walk_start(described))
        convolutions = [i for i in range(meta.num_operators())
                        if meta.operator_name(i) == "aten::convolution.out"]
        while convolutions and lib.pt_instruction_walk_next(walk):
            if walk.kind == schema.INSTRUCTION_ARGUMENTS_KERNEL_CALL and walk.target in convolutions:
                image = lib.pt_instruction_walk_argument(walk, 0)
                if len(TensorInfo(library.tensor(number, _picotorch.VALUES, image)).sizes()) == 5:
                    return True
    return False


def needed_operators(programs: dict[str, Program]) -> list[str]:
    """Return the operators of all methods of the programs, sorted. `programs` is by file name.

    Raises OperatorMissing with all that no build has a kernel for.
    """
    needed: set[str] = set()
    missing: list[str] = []
    for name, program in programs.items():
        for meta in methods_of(program):
            needed.update(meta.operator_name(i) for i in range(meta.num_operators()))
            missing += [f"{operator} ({name})" for operator in meta.missing_operators()]
    if missing:
        raise fail(OPERATOR_MISSING, "no kernel for: " + ", ".join(dict.fromkeys(missing)),
                   remedy="change these models or leave them out")
    return sorted(needed)


def methods_of(program: Program) -> list[MethodMeta]:
    """Return the metadata of all methods by their numbers.

    A name may have been changed to be printed, and finds no method then.
    """
    return [MethodMeta(program, i) for i in range(program.num_methods())]


def subjects_of(names: Iterable[str]) -> set[str]:
    """Return the folders of kernels/extra that these operators are in."""
    supported = supported_operators()
    return {subject for name in names if name in supported and (subject := supported[name].subject)}


def in_words(operators: Collection[str], features: Collection[str]) -> list[str]:
    """Describe missing kernels and features in words."""
    return [*([f"kernels for {', '.join(sorted(operators))}"] if operators else []),
            *(FEATURE_TITLES[name] for name in sorted(features))]


def needed_features(programs: dict[str, Program]) -> set[str]:
    """Select the FEATURES of a firmware for the programs; it runs .pte files in any case."""
    features = {"programs"}.union(*map(conv_variants, programs.values()))
    features |= subjects_of(meta.operator_name(i) for program in programs.values()
                            for meta in methods_of(program)
                            for i in range(meta.num_operators())).intersection(FEATURES)
    if any(is_ptm(program.loader.buffer) for program in programs.values()):
        features.add("images")
    if has_float64(programs):
        features.add("float64")
    if any(tensor.scalar_type() in _COMPLEX for tensor in _tensors(programs)):
        features.add("complex")
    if any(map(has_volumes, programs.values())):
        features.add("volumes")
    return features


def conv_variants(program: Program, data_map: DataMap | None = None) -> set[str]:
    """Return the variants of convolutions that speed up a program if their scratch is available.

    All variants if this is unknown, since external data or a backend is missing.
    """
    mask = 0
    try:
        for meta in methods_of(program):
            method = load_with_exact_memories(program, meta.name(), False, data_map)
            mask |= method.library.conv_variants()
    except Error:
        return set(CONV_VARIANTS)
    return {name for name, bit in CONV_VARIANTS.items() if mask >> bit & 1}
