"""Where the planned tensors of a method lie, and from which instruction to which."""

import dataclasses

from picotorch import MethodMeta

from .instructions import read_instructions
from .values import Values

INPUT, STATE, SCRATCH = "input", "state", "scratch"


@dataclasses.dataclass
class Box:
    """Bytes of a planned buffer that hold one tensor, or several that share them.

    first, last: instructions that use it; -1 for what lives before the first (inputs, state), as many
    as there are instructions for what lives behind the last (outputs, state). made_by: instruction
    that writes it first, or INPUT, STATE, SCRATCH.
    """

    buffer: int
    offset: int
    nbytes: int
    first: int
    last: int
    made_by: int | str
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
    uses, written = _uses(meta, values, instructions)
    for tensor, found in uses.items():
        memory, offset = values.planned(tensor)
        if memory < 0:
            continue
        info = values.tensor(tensor)
        first, last, made_by = found[0], found[-1], written.get(tensor, SCRATCH)
        if first < 0:
            made_by = INPUT
        elif made_by != first and (tensor in written or info.name()):  # read before it is written
            first, last, made_by = -1, len(instructions), STATE
        yield Box(memory, offset, info.nbytes(), first, last, made_by, [tensor])


def _uses(meta, values, instructions):
    """The instructions that use a tensor, and the first that writes it, by the tensor's index."""
    uses, written = {}, {}

    def use(value, place):
        for tensor in values.tensors(value):
            uses.setdefault(tensor, []).append(place)
            yield tensor

    for i in range(meta.num_inputs()):
        list(use(meta.input_value(i), -1))
    for instruction in instructions:
        for value in instruction.arguments:
            list(use(value, instruction.index))
        for value in instruction.outputs:
            for tensor in use(value, instruction.index):
                written.setdefault(tensor, instruction.index)
    for i in range(meta.num_outputs()):
        list(use(meta.output_value(i), len(instructions)))
    return uses, written


def _joined(boxes):
    """Tensors of just the same bytes that an instruction uses together are one box, and a view, which
    no instruction writes, is one with what lay there before."""
    found = {}
    for box in boxes:
        same = found.setdefault((box.buffer, box.offset, box.nbytes), [])
        if same and (same[-1].meets(box) or box.made_by == SCRATCH):
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
