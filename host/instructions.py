"""The instructions of a method, with the values that they name."""

import functools
from typing import NamedTuple

import _picotorch
from picotorch import MethodMeta, schema
from picotorch.errors import bad_program

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
    """All instructions of a method. Raises InvalidProgram, ValueError."""
    reader = values.reader
    names = [meta.operator_name(i) for i in range(meta.num_operators())]
    chains = reader.table(meta.plan, schema.EXECUTION_PLAN_CHAINS)
    found = []
    for chain in range(reader.length(chains)):
        vector = reader.table(reader.item(chains, chain), schema.CHAIN_INSTRUCTIONS)
        start = len(found)
        for i in range(reader.length(vector)):
            one = _instruction(start + i, meta, reader, reader.item(vector, i), names)
            found.append(one if one.destination is None else
                         one._replace(destination=start + one.destination))
    return found


def _instruction(index, meta, reader, position, names):
    kind = reader.u8(position, schema.INSTRUCTION_INSTR_ARGS_TYPE)
    call = reader.table(position, schema.INSTRUCTION_INSTR_ARGS)
    if kind == KERNEL_CALL:
        operator = reader.i32(call, schema.KERNEL_CALL_OP_INDEX)
        if not 0 <= operator < len(names):
            raise bad_program("there is no such operator", "operator", operator)
        arguments = _indexes(reader, reader.table(call, schema.KERNEL_CALL_ARGS))
        return Instruction(index, kind, names[operator], *_split(arguments, names[operator]))
    if kind == DELEGATE_CALL:
        name = meta.get_backend_name(reader.i32(call, schema.DELEGATE_CALL_DELEGATE_INDEX))
        arguments = _indexes(reader, reader.table(call, schema.DELEGATE_CALL_ARGS))
        return Instruction(index, kind, f"delegate {name}", arguments, [])
    if kind not in _CONTROL:
        return Instruction(index, kind, "none", [], [])
    first, second = reader.i32(call, 0), reader.i32(call, 1)
    if kind == JUMP_FALSE_CALL:
        return Instruction(index, kind, _CONTROL[kind], [first], [], second)
    outputs = [second] if kind == MOVE_CALL else []
    return Instruction(index, kind, _CONTROL[kind], [first], outputs)


def _indexes(reader, vector):
    return [reader.i32_item(vector, i) for i in range(reader.length(vector))]


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
