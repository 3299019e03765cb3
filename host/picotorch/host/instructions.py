"""List the instructions of a method, with their values."""

from typing import Any, NamedTuple

from _picotorch_c import ffi, lib

from picotorch.errors import INVALID_PROGRAM, fail
from picotorch.method_meta import MethodMeta

from . import program_schema as schema
from .operators import (
    CHANGED,
    NOT_FILLED,
    SCRATCH,
    WRITTEN,
    built_operators,
    operator_form,
    operator_signature,
)
from .twin import is_ptm
from .values import Values

KERNEL_CALL = schema.INSTRUCTION_ARGUMENTS_KERNEL_CALL
DELEGATE_CALL = schema.INSTRUCTION_ARGUMENTS_DELEGATE_CALL
MOVE_CALL = schema.INSTRUCTION_ARGUMENTS_MOVE_CALL
JUMP_FALSE_CALL = schema.INSTRUCTION_ARGUMENTS_JUMP_FALSE_CALL
FREE_CALL = schema.INSTRUCTION_ARGUMENTS_FREE_CALL

_CONTROL = {MOVE_CALL: "move", JUMP_FALSE_CALL: "jump if false", FREE_CALL: "free"}


class Instruction(NamedTuple):
    """An instruction. index: its position in the method.

    kind: InstructionArguments number. call: name of the operator or of the control flow. arguments,
    outputs: indexes of values. destination: of a jump. letters: of arguments and outputs, see
    operators.def; None without a kernel in this build.
    """

    index: int  # type: ignore[assignment]  # which hides index() of a tuple
    kind: int
    call: str
    arguments: list[int]
    outputs: list[int]
    destination: int | None = None
    letters: str | None = None


def read_instructions(meta: MethodMeta, values: Values) -> list[Instruction]:
    """Return all instructions of a method. Raises InvalidProgram."""
    names = [meta.operator_name(i) for i in range(meta.num_operators())]
    method, found = values.program.library.method_meta(meta.plan), []
    walk = ffi.new("pt_instruction_walk *", lib.pt_instruction_walk_start(method))
    while lib.pt_instruction_walk_next(walk):
        found.append(_instruction(meta, names, walk))
    if walk.bad:
        raise fail(INVALID_PROGRAM, "a part lies outside the file")
    return found


def _instruction(meta: MethodMeta, names: list[str], walk: Any) -> Instruction:
    index, kind, target, other = walk.index, walk.kind, walk.target, walk.other
    arguments = [lib.pt_instruction_walk_argument(walk, k) for k in range(walk.n_args)]
    if kind == KERNEL_CALL:
        if not 0 <= target < len(names):
            raise fail(INVALID_PROGRAM, "there is no such operator", "operator", target)
        letters = _letters(names[target], walk.n_args, is_ptm(meta.program.loader.buffer))
        return Instruction(index, kind, names[target], *_split(arguments, letters), letters=letters)
    if kind == DELEGATE_CALL:
        return Instruction(index, kind, f"delegate {meta.get_backend_name(target)}", arguments, [])
    if kind not in _CONTROL:
        return Instruction(index, kind, "none", [], [])
    if kind == JUMP_FALSE_CALL:
        return Instruction(index, kind, _CONTROL[kind], [target], [], walk.first + other)
    outputs = [other] if kind == MOVE_CALL else []
    return Instruction(index, kind, _CONTROL[kind], [target], outputs)


def filled_by(instruction: Instruction) -> list[int]:
    """Return the outputs whose bytes it writes completely, views included."""
    letters = [letter for letter in instruction.letters or "" if letter in WRITTEN]
    letters += "O" * (len(instruction.outputs) - len(letters))
    return [value for value, letter in zip(instruction.outputs, letters, strict=False)
            if letter not in (CHANGED, NOT_FILLED)]


def scratch_of(instruction: Instruction) -> list[int]:
    """Return the arguments that it writes and that are no outputs."""
    letters = [letter for letter in instruction.letters or "" if letter not in WRITTEN]
    return [value for value, letter in zip(instruction.arguments, letters, strict=False)
            if letter in SCRATCH]


def _letters(name: str, n_args: int, in_ptm: bool) -> str | None:
    """Return the letters of a call's arguments; None for an operator of another build."""
    number = built_operators().get(name)
    if number is None:
        return None
    return operator_signature(number) if in_ptm else operator_form(number, n_args)


def _split(arguments: list[int], letters: str | None) -> tuple[list[int], list[int]]:
    """Return (arguments, outputs). A program names the outputs once more behind the arguments."""
    if letters is None:
        count = len(arguments) - 1 if arguments[-1:] == arguments[-2:-1] else len(arguments)
        return arguments[: count - 1], arguments[count - 1 : count]
    named = list(zip(arguments, letters, strict=False))
    return ([argument for argument, letter in named if letter not in WRITTEN],
            [argument for argument, letter in named if letter in WRITTEN])
