"""Where the planned tensors of a method lie, and from which instruction to which."""

import bisect
import dataclasses
from collections import defaultdict

from picotorch import MethodMeta

from ..instructions import read_instructions
from ..values import Values

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
    for tensor, (first, last) in uses.items():
        memory, offset = values.planned(tensor)
        if memory < 0:
            continue
        info = values.tensor(tensor)
        made_by = written.get(tensor, SCRATCH)
        if first < 0:
            made_by = INPUT
        elif made_by != first and (tensor in written or info.name()):  # read before it is written
            first, last, made_by = -1, len(instructions), STATE
        yield Box(memory, offset, info.nbytes(), first, last, made_by, [tensor])


def _uses(meta, values, instructions):
    """The first and the last instruction that uses a tensor, and the first that writes it, by the
    tensor's index. Each list is looked into once, however many instructions name it."""
    named, written = {}, {}

    def name(value, step):
        named[value] = (named.get(value, (step,))[0], step)

    for i in range(meta.num_inputs()):
        name(meta.input_value(i), -1)
    for instruction in instructions:
        for value in (*instruction.arguments, *instruction.outputs):
            name(value, instruction.index)
        for value in instruction.outputs:
            written.setdefault(value, instruction.index)
    for i in range(meta.num_outputs()):
        name(meta.output_value(i), len(instructions))
    return _of_tensors(values, named, written)


def _of_tensors(values, named, written):
    """The same of tensors as of the values that are one or a list of them."""
    uses, first_written = {}, {}
    for value, (first, last) in named.items():
        for tensor in values.tensors(value):
            before = uses.get(tensor, (first, last))
            uses[tensor] = (min(first, before[0]), max(last, before[1]))
            if value in written:
                first_written[tensor] = min(written[value], first_written.get(tensor, last))
    return uses, first_written


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


def live_bytes(boxes: list[Box]) -> list[tuple[int, int]]:
    """(instruction, bytes of one buffer that hold a tensor from it on), in order; shared ones count
    once."""
    begin, end = defaultdict(list), defaultdict(list)
    for box in boxes:
        begin[box.first].append(box)
        end[box.last + 1].append(box)
    covered, live = _Covered(boxes), []
    for instruction in sorted({*begin, *end}):
        for box in begin[instruction]:
            covered.count(box, 1)
        for box in end[instruction]:
            covered.count(box, -1)
        live.append((instruction, covered.nbytes()))
    return live


class _Covered:
    """How many bytes lie under boxes that come and go: a segment tree over the boxes' edges. To count a
    box takes the logarithm of their number."""

    def __init__(self, boxes):
        self.edges = sorted({edge for box in boxes for edge in (box.offset, box.offset + box.nbytes)})
        self.leaves = max(len(self.edges) - 1, 1)
        self.boxes = [0] * (2 * self.leaves)  # that cover all of a node, and not all of its parent
        self.covered = [0] * (2 * self.leaves)
        self.sizes = [0] * (2 * self.leaves)
        for i in range(len(self.edges) - 1):
            self.sizes[self.leaves + i] = self.edges[i + 1] - self.edges[i]
        for node in range(self.leaves - 1, 0, -1):
            self.sizes[node] = self.sizes[2 * node] + self.sizes[2 * node + 1]

    def nbytes(self):
        return self.covered[1]

    def count(self, box, change):
        """Counts a box that comes (change 1) or goes (-1)."""
        first = bisect.bisect_left(self.edges, box.offset) + self.leaves
        behind = bisect.bisect_left(self.edges, box.offset + box.nbytes) + self.leaves
        left, right = first, behind
        while left < right:
            if left & 1:
                self._cover(left, change)
                left += 1
            if right & 1:
                right -= 1
                self._cover(right, change)
            left, right = left >> 1, right >> 1
        for node in (first, behind - 1):
            while node > 1:
                node >>= 1
                self._cover(node, 0)

    def _cover(self, node, change):
        self.boxes[node] += change
        if self.boxes[node]:
            self.covered[node] = self.sizes[node]
        elif node < self.leaves:
            self.covered[node] = self.covered[2 * node] + self.covered[2 * node + 1]
        else:
            self.covered[node] = 0
