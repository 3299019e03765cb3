"""Where the planned tensors of a method lie, and from which instruction to which."""

import dataclasses

from picotorch import MethodMeta

from .instructions import read_instructions
from .values import Values


@dataclasses.dataclass
class Box:
    """Bytes of a planned buffer that hold one tensor, or several that share them.

    first, last: instructions that use it; -1 for what lives before the first (inputs, state), as many
    as there are instructions for what lives behind the last (outputs, state). made_by: instruction
    that writes it first; None for inputs and state.
    """

    buffer: int
    offset: int
    nbytes: int
    first: int
    last: int
    made_by: int | None
    values: list[int]

    def meets(self, other: "Box") -> bool:
        """True when an instruction uses both."""
        return self.first <= other.last and other.first <= self.last

    def join(self, other: "Box") -> None:
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.values += other.values


def lifetimes(meta: MethodMeta) -> list[Box]:
    """The boxes of all tensors that lie in planned memory and that an instruction, an input or an
    output names, by buffer and first use. Raises InvalidProgram, ValueError."""
    values = Values(meta.program, meta.plan)
    boxes = [box for box in _boxes(meta, values) if box.nbytes]
    return _joined(sorted(boxes, key=lambda box: (box.buffer, box.first, box.offset)))


def _boxes(meta, values):
    instructions = read_instructions(meta, values)
    end = len(instructions)
    inputs = {t for i in range(meta.num_inputs()) for t in values.tensors(meta.input_value(i))}
    outputs = {t for i in range(meta.num_outputs()) for t in values.tensors(meta.output_value(i))}
    uses, made_by = {i: [-1] for i in inputs}, dict.fromkeys(inputs)
    for instruction in instructions:
        for kind in ("arguments", "outputs"):
            for value in getattr(instruction, kind):
                for tensor in values.tensors(value):
                    uses.setdefault(tensor, []).append(instruction.index)
                    made_by.setdefault(tensor, instruction.index if kind == "outputs" else None)
    for tensor in outputs:
        uses.setdefault(tensor, []).append(end)
        made_by.setdefault(tensor, None)
    for tensor, found in uses.items():
        memory, offset = values.planned(tensor)
        if memory < 0:
            continue
        state = made_by[tensor] is None and tensor not in inputs
        first, last = (-1, end) if state else (found[0], found[-1])
        yield Box(memory, offset, values.tensor(tensor).nbytes(), first, last, made_by[tensor],
                  [tensor])


def _joined(boxes):
    """Tensors of just the same bytes that an instruction uses together are one box."""
    found = {}
    for box in boxes:
        same = found.setdefault((box.buffer, box.offset, box.nbytes), [])
        if same and same[-1].meets(box):
            same[-1].join(box)
        else:
            same.append(box)
    return [box for same in found.values() for box in same]


def live_bytes(boxes: list[Box], instruction: int) -> int:
    """Bytes of one buffer that hold a tensor while the instruction runs; shared ones count once."""
    total = end = 0
    for box in sorted(boxes, key=lambda box: box.offset):
        if box.first <= instruction <= box.last:
            total += max(0, box.offset + box.nbytes - max(end, box.offset))
            end = max(end, box.offset + box.nbytes)
    return total
