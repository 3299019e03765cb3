"""Writes an ETDump: what executions took, for the Inspector of executorch.devtools.

    Inspector(etdump_path="out.etdp",
              source_time_scale=TimeScale.CYCLES, target_time_scale=TimeScale.CYCLES)

for the counts of a board; for the twin, whose ticks are nanoseconds, with the scales it has by itself.
The format: etdump_schema_flatcc.fbs, file identifier ED00, with its size in front.
"""

from typing import NamedTuple

import flatbuffers

from ..instructions import (
    DELEGATE_CALL,
    FREE_CALL,
    JUMP_FALSE_CALL,
    KERNEL_CALL,
    MOVE_CALL,
    Instruction,
)
from ..run.request import Event

_BLOCK = "Execute"
_IDENTIFIER = b"ED00"
# Slots of the tables
_DUMP_RUNS = 1
_RUN_NAME, _RUN_EVENTS = 0, 3
_EVENT_PROFILE = 0
_NAME, _INSTRUCTION, _START, _END = 0, 2, 6, 7  # of a ProfileEvent
_NO_INSTRUCTION = -1
# What ExecuTorch calls the execution of an instruction that is no kernel call
_CALLS = {DELEGATE_CALL: "DELEGATE_CALL", JUMP_FALSE_CALL: "JF_CALL", MOVE_CALL: "MOVE_CALL",
          FREE_CALL: "FREE_CALL"}


class Execution(NamedTuple):
    """One execution: the method's instructions, and the events of the loop's end and of each."""

    instructions: list[Instruction]
    events: list[Event]


def to_bytes(executions: list[Execution]) -> bytes:
    """An ETDump with a block for each execution. An instruction that ran several times is one event,
    as long as all its calls."""
    builder = flatbuffers.Builder(1024)
    runs, start = [], 0
    for execution in executions:
        run, start = _run(builder, execution, start)
        runs.append(run)
    vector = _vector(builder, runs)
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(_DUMP_RUNS, vector, 0)
    builder.FinishSizePrefixed(builder.EndObject(), _IDENTIFIER)
    return bytes(builder.Output())


def _run(builder, execution, start):
    """(run, time at its end)"""
    found, now = [], start
    for instruction, event in zip(execution.instructions, execution.events[1:], strict=True):
        if event.calls:
            end = now + event.ticks
            for name in _names(instruction):
                found.append(_event(builder, name, instruction.index, now, end))
            now = end
    now += execution.events[0].ticks
    found.append(_event(builder, "Method::execute", _NO_INSTRUCTION, start, now))
    events, name = _vector(builder, found), builder.CreateSharedString(_BLOCK)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(_RUN_NAME, name, 0)
    builder.PrependUOffsetTRelativeSlot(_RUN_EVENTS, events, 0)
    return builder.EndObject(), now


def _names(instruction):
    """ExecuTorch's: of a kernel's call there is an event around another."""
    if instruction.kind == KERNEL_CALL:
        return "native_call_" + instruction.call.split("::")[-1], "OPERATOR_CALL"
    return (_CALLS.get(instruction.kind, instruction.call),)


def _event(builder, name, instruction, start, end):
    name = builder.CreateSharedString(name)
    builder.StartObject(8)
    builder.PrependUint64Slot(_START, start, 0)
    builder.PrependUint64Slot(_END, end, 0)
    builder.PrependUOffsetTRelativeSlot(_NAME, name, 0)
    builder.PrependInt32Slot(_INSTRUCTION, instruction, _NO_INSTRUCTION)
    profile = builder.EndObject()
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(_EVENT_PROFILE, profile, 0)
    return builder.EndObject()


def _vector(builder, tables):
    builder.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        builder.PrependUOffsetTRelative(table)
    return builder.EndVector()
