"""Write an ETDump: times and results of executions, for the Inspector of executorch.devtools.

    Inspector(etdump_path="out.etdp",
              source_time_scale=TimeScale.CYCLES, target_time_scale=TimeScale.CYCLES)

These scales are for the counts of a board. The default scales are for the twin, whose ticks are
nanoseconds. The format is etdump_schema_flatcc.fbs, size-prefixed, with the file identifier ED00.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import flatbuffers

from ..host.instructions import (
    DELEGATE_CALL,
    FREE_CALL,
    JUMP_FALSE_CALL,
    KERNEL_CALL,
    MOVE_CALL,
    Instruction,
)
from ..host.request import Event

_BLOCK = "Execute"
_IDENTIFIER = b"ED00"
# Slots of the tables
_DUMP_RUNS = 1
_RUN_NAME, _RUN_EVENTS = 0, 3
_EVENT_PROFILE, _EVENT_DEBUG = 0, 2
_NAME, _INSTRUCTION, _START, _END = 0, 2, 6, 7  # of a ProfileEvent
_NO_INSTRUCTION = -1
_CHAIN, _DEBUG_INSTRUCTION, _ENTRY = 0, 1, 2  # of a DebugEvent
_NO_CHAIN = 2**64 - 1
_TYPE, _TENSOR, _TENSORS, _OUTPUT = 0, 1, 2, 7  # of a Value
_IS_TENSOR, _IS_TENSOR_LIST = 5, 6  # ValueTypes
# What ExecuTorch calls the execution of an instruction that is no kernel call
_CALLS = {DELEGATE_CALL: "DELEGATE_CALL", JUMP_FALSE_CALL: "JF_CALL", MOVE_CALL: "MOVE_CALL",
          FREE_CALL: "FREE_CALL"}


class Stored(NamedTuple):
    """A tensor in a debug buffer: its ScalarType, sizes, strides in elements, and first byte there."""

    dtype: int
    sizes: list[int]
    strides: list[int]
    offset: int


class Computed(NamedTuple):
    """The results of an instruction, by its index: the tensors of one output, which may be a list."""

    instruction: int
    tensors: list[Stored]
    is_list: bool


class Execution(NamedTuple):
    """One execution.

    It has the method's instructions, the events of the loop's end and of each instruction, and if
    recorded the results of the instructions and the outputs of the method.
    """

    instructions: list[Instruction]
    events: list[Event]
    computed: Sequence[Computed] = ()
    outputs: Sequence[Stored] = ()


def to_bytes(executions: list[Execution]) -> bytes:
    """Return an ETDump with a block for each execution.

    An instruction that ran several times is one event, as long as all its calls.
    """
    builder = flatbuffers.Builder(1024)
    runs, start = [], 0
    for execution in executions:
        run, start = _run(builder, execution, start)
        runs.append(run)
    vector = _vector(builder, runs)
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(_DUMP_RUNS, vector, 0)
    builder.FinishSizePrefixed(_end(builder), _IDENTIFIER)
    return bytes(builder.Output())


def _run(builder: flatbuffers.Builder, execution: Execution, start: int) -> tuple[int, int]:
    """Return (run, time at its end)."""
    found, now = [], start
    computed = {index: list(values) for index, values in itertools.groupby(
        sorted(execution.computed, key=lambda one: one.instruction), lambda one: one.instruction)}
    for instruction, event in zip(execution.instructions, execution.events[1:], strict=True):
        for value in computed.get(instruction.index, ()):
            found.append(_debug_event(builder, value))
        if event.calls:
            end = now + event.ticks
            for name in _names(instruction):
                found.append(_event(builder, name, instruction.index, now, end))
            now = end
    now += execution.events[0].ticks
    found.append(_event(builder, "Method::execute", _NO_INSTRUCTION, start, now))
    for tensor in execution.outputs:
        found.append(_debug_event(builder, Computed(0, [tensor], False), is_output=True))
    events, name = _vector(builder, found), builder.CreateSharedString(_BLOCK)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(_RUN_NAME, name, 0)
    builder.PrependUOffsetTRelativeSlot(_RUN_EVENTS, events, 0)
    return _end(builder), now


def _end(builder: flatbuffers.Builder) -> int:
    """Finish a table; return its offset."""
    offset: int = builder.EndObject()
    return offset


def _names(instruction: Instruction) -> tuple[str, ...]:
    """Return ExecuTorch's names of the events: the call of a kernel is one event inside another."""
    if instruction.kind == KERNEL_CALL:
        return "native_call_" + instruction.call.split("::")[-1], "OPERATOR_CALL"
    return (_CALLS.get(instruction.kind, instruction.call),)


def _event(builder: flatbuffers.Builder, name: str, instruction: int, start: int, end: int) -> int:
    name = builder.CreateSharedString(name)
    builder.StartObject(8)
    builder.PrependUint64Slot(_START, start, 0)
    builder.PrependUint64Slot(_END, end, 0)
    builder.PrependUOffsetTRelativeSlot(_NAME, name, 0)
    builder.PrependInt32Slot(_INSTRUCTION, instruction, _NO_INSTRUCTION)
    profile = _end(builder)
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(_EVENT_PROFILE, profile, 0)
    return _end(builder)


def _debug_event(builder: flatbuffers.Builder, computed: Computed, is_output: bool = False) -> int:
    tensors = [_tensor(builder, tensor) for tensor in computed.tensors]
    if computed.is_list:
        vector = _vector(builder, tensors)
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, vector, 0)
        tensors = [_end(builder)]
    output = _true(builder) if is_output else 0
    builder.StartObject(8)
    builder.PrependInt8Slot(_TYPE, _IS_TENSOR_LIST if computed.is_list else _IS_TENSOR, 0)
    builder.PrependUOffsetTRelativeSlot(_TENSORS if computed.is_list else _TENSOR, tensors[0], 0)
    builder.PrependUOffsetTRelativeSlot(_OUTPUT, output, 0)
    entry = _end(builder)
    builder.StartObject(6)
    builder.PrependUint64Slot(_CHAIN, _NO_CHAIN if is_output else 0, 0)
    builder.PrependInt32Slot(_DEBUG_INSTRUCTION, computed.instruction, _NO_INSTRUCTION)
    builder.PrependUOffsetTRelativeSlot(_ENTRY, entry, 0)
    debug = _end(builder)
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(_EVENT_DEBUG, debug, 0)
    return _end(builder)


def _true(builder: flatbuffers.Builder) -> int:
    builder.StartObject(1)
    builder.PrependBoolSlot(0, True, False)
    return _end(builder)


def _tensor(builder: flatbuffers.Builder, tensor: Stored) -> int:
    sizes, strides = (_longs(builder, numbers) for numbers in (tensor.sizes, tensor.strides))
    builder.StartObject(4)
    builder.PrependInt64Slot(3, tensor.offset, 0)
    builder.PrependUOffsetTRelativeSlot(1, sizes, 0)
    builder.PrependUOffsetTRelativeSlot(2, strides, 0)
    builder.PrependInt8Slot(0, tensor.dtype, -1)  # written for uint8, too, which is 0
    return _end(builder)


def _longs(builder: flatbuffers.Builder, numbers: Sequence[int]) -> int:
    builder.StartVector(8, len(numbers), 8)
    for number in reversed(numbers):
        builder.PrependInt64(number)
    offset: int = builder.EndVector()
    return offset


def _vector(builder: flatbuffers.Builder, tables: Sequence[int]) -> int:
    builder.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        builder.PrependUOffsetTRelative(table)
    offset: int = builder.EndVector()
    return offset
