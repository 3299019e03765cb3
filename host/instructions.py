"""The instructions of a method, with the values that they name."""

import functools
from typing import NamedTuple

import _picotorch
from picotorch import MethodMeta
from picotorch.errors import INVALID_PROGRAM, fail

from . import program_schema as schema
from .values import Values

KERNEL_CALL = schema.INSTRUCTION_ARGUMENTS_KERNEL_CALL
DELEGATE_CALL = schema.INSTRUCTION_ARGUMENTS_DELEGATE_CALL
MOVE_CALL = schema.INSTRUCTION_ARGUMENTS_MOVE_CALL
JUMP_FALSE_CALL = schema.INSTRUCTION_ARGUMENTS_JUMP_FALSE_CALL
FREE_CALL = schema.INSTRUCTION_ARGUMENTS_FREE_CALL

_WRITTEN = "OWNA"  # letters of a signature
_CONTROL = {MOVE_CALL: "move", JUMP_FALSE_CALL: "jump if false", FREE_CALL: "free"}


class Instruction(NamedTuple):
    """index: place in the method. kind: InstructionArguments number. call: name of the operator or of
    what it does. arguments, outputs: indexes of values. destination: of a jump."""

    index: int
    kind: int
    call: str
    arguments: list[int]
    outputs: list[int]
    destination: int | None = None


def read_instructions(meta: MethodMeta, values: Values) -> list[Instruction]:
    """All instructions of a method. Raises InvalidProgram."""
    names = [meta.operator_name(i) for i in range(meta.num_operators())]
    return [_instruction(index, meta, names, *fields)
            for index, fields in enumerate(values.program.library.instructions(meta.plan))]


def _instruction(index, meta, names, kind, target, other, arguments):
    if kind == KERNEL_CALL:
        if not 0 <= target < len(names):
            raise fail(INVALID_PROGRAM, "there is no such operator", "operator", target)
        return Instruction(index, kind, names[target], *_split(arguments, names[target]))
    if kind == DELEGATE_CALL:
        return Instruction(index, kind, f"delegate {meta.get_backend_name(target)}", arguments, [])
    if kind not in _CONTROL:
        return Instruction(index, kind, "none", [], [])
    if kind == JUMP_FALSE_CALL:
        return Instruction(index, kind, _CONTROL[kind], [target], [], other)
    outputs = [other] if kind == MOVE_CALL else []
    return Instruction(index, kind, _CONTROL[kind], [target], outputs)


def _split(arguments, name):
    """(arguments, outputs). A program names the outputs once more behind the arguments."""
    signature = _signature(name)
    if signature is None:
        count = len(arguments) - 1 if arguments[-1:] == arguments[-2:-1] else len(arguments)
        return arguments[: count - 1], arguments[count - 1 : count]
    named = list(zip(arguments, signature, strict=False))
    return ([argument for argument, letter in named if letter not in _WRITTEN],
            [argument for argument, letter in named if letter in _WRITTEN])


@functools.cache
def _signature(name):
    """The letters of an operator that this build knows, see operators.def; else None."""
    for number in range(_picotorch.operator_count()):
        if _picotorch.operator_name(number) == name:
            return _picotorch.operator_signature(number)
    return None
