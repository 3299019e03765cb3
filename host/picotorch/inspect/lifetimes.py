"""Find the planned tensors of a method: their memory, and their first and last instruction."""

import bisect
import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from picotorch import MethodMeta

from ..host.instructions import JUMP_FALSE_CALL, Instruction, filled_by, read_instructions, scratch_of
from ..host.values import Values

INPUT, STATE, SCRATCH = "input", "state", "scratch"


_Event: TypeAlias = tuple[int, int]  # instruction, kind
_Use: TypeAlias = tuple[int, int, int]  # instruction, kind, tensor


@dataclasses.dataclass
class Box:
    """Bytes of a planned buffer with one tensor, or several that share them.

    first, last: instructions that use it; -1 if it lives before the first (inputs, state), the number
    of instructions if it lives behind the last (outputs, state). made_by: instruction that writes it
    first, or INPUT, STATE, SCRATCH.
    """

    buffer: int
    offset: int
    nbytes: int
    first: int
    last: int
    made_by: int | str
    values: list[int]

    def meets(self, other: "Box") -> bool:
        """Return True when an instruction uses both."""
        return self.first <= other.last and other.first <= self.last

    def join(self, other: "Box") -> None:
        """Extend the box to the use of another one of the same bytes."""
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.values += other.values


def lifetimes(meta: MethodMeta) -> list[Box]:
    """Return the boxes of all planned tensors that something names, by buffer and first use.

    An instruction, an input or an output names them. Raises InvalidProgram, ValueError.
    """
    values = Values(meta.program, meta.plan)
    boxes = [box for box in _boxes(meta, values) if box.nbytes]
    return _joined(sorted(boxes, key=lambda box: (box.buffer, box.first, box.offset)))


def _boxes(meta: MethodMeta, values: Values) -> Iterator[Box]:
    instructions = read_instructions(meta, values)
    has_jumps = any(one.kind == JUMP_FALSE_CALL for one in instructions)
    for (memory, offset, nbytes), events in _by_location(
            _events(meta, values, instructions), values, has_jumps):
        writers = {tensor for _, kind, tensor in events if kind != _READ}
        step, kind, tensor = events[0]
        is_state = tensor in writers or values.tensor(tensor).name()
        if is_state and kind == _READ and step >= 0:  # read before it is written
            yield Box(memory, offset, nbytes, -1, len(instructions), STATE, [tensor])
            continue
        for content in _contents(events, has_jumps):
            first, kind, _ = content[0]
            made_by = SCRATCH if kind == _SCRATCH else first
            if kind == _READ:
                made_by = INPUT if first < 0 else SCRATCH
            yield Box(memory, offset, nbytes, first, content[-1][0], made_by,
                      list(dict.fromkeys(tensor for _, _, tensor in content)))


_READ, _FILLED, _CHANGED, _SCRATCH = range(4)  # in the order in which an instruction does them


def _by_location(events: dict[int, list[_Event]], values: Values,
                 has_jumps: bool) -> Iterator[tuple[tuple[int, int, int], list[_Use]]]:
    """Yield (planned buffer, offset, bytes) and its events, (instruction, kind, tensor).

    In a .ptm file tensors of several layers are one, and views give one place several tensors: a write
    of all bytes begins another content. With jumps the order is unknown: each tensor is by itself.
    """
    found: dict[tuple[tuple[int, int, int], int | None], list[_Use]] = defaultdict(list)
    for tensor, those in events.items():
        memory, offset = values.planned(tensor)
        if memory >= 0:
            location = (memory, offset, values.tensor(tensor).nbytes())
            found[location, tensor if has_jumps else None] += [(*one, tensor) for one in those]
    for (location, _), uses in found.items():
        yield location, sorted(uses)


def _contents(events: list[_Use], has_jumps: bool) -> list[list[_Use]]:
    """Split the events of a place at each write of all its bytes."""
    contents: list[list[_Use]] = []
    for event in events:
        if not contents or event[1] in (_FILLED, _SCRATCH) and not has_jumps:
            contents.append([])
        contents[-1].append(event)
    return contents


def _events(meta: MethodMeta, values: Values,
            instructions: list[Instruction]) -> dict[int, list[_Event]]:
    """Return the events of each tensor, (instruction, kind) in order, by the tensor's index."""
    named: dict[int, list[_Event]] = defaultdict(list)  # by value: a tensor or a list of them
    for i in range(meta.num_inputs()):
        named[meta.input_value(i)].append((-1, _READ))
    for one in instructions:
        scratch = scratch_of(one)
        for value in one.arguments:
            named[value].append((one.index, _SCRATCH if value in scratch else _READ))
        filled = filled_by(one)
        for value in one.outputs:
            named[value].append((one.index, _FILLED if value in filled else _CHANGED))
    for i in range(meta.num_outputs()):
        named[meta.output_value(i)].append((len(instructions), _READ))
    return _of_tensors(values, named)


def _of_tensors(values: Values, named: dict[int, list[_Event]]) -> dict[int, list[_Event]]:
    """Return the events of tensors from the events of values, which are tensors or lists.

    Each list is looked into once, however many instructions name it: of these the first and the last
    count.
    """
    found: dict[int, list[_Event]] = defaultdict(list)
    for value, events in named.items():
        tensors = values.tensors(value)
        if tensors != [value]:
            events = list(dict.fromkeys((events[0], events[-1])))
        for tensor in tensors:
            found[tensor] += events
    return {tensor: sorted(events) for tensor, events in found.items()}


def _joined(boxes: Iterable[Box]) -> list[Box]:
    """Join tensors that are one box.

    They have just the same bytes and an instruction uses them together, or one is a view, which no
    instruction writes, of the other.
    """
    found: dict[tuple[int, int, int], list[Box]] = {}
    for box in boxes:
        same = found.setdefault((box.buffer, box.offset, box.nbytes), [])
        if same and (same[-1].meets(box) or box.made_by == SCRATCH):
            same[-1].join(box)
        else:
            same.append(box)
    return [box for same in found.values() for box in same]


def live_bytes(boxes: list[Box]) -> list[tuple[int, int]]:
    """Return (instruction, live bytes of one buffer from it on), in order; shared bytes count once."""
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
    """Count the bytes under boxes that come and go: a segment tree over the boxes' edges.

    The cost of a box is the logarithm of their number.
    """

    def __init__(self, boxes: list[Box]) -> None:
        self.edges = sorted({edge for box in boxes for edge in (box.offset, box.offset + box.nbytes)})
        self.leaves = max(len(self.edges) - 1, 1)
        self.boxes = [0] * (2 * self.leaves)  # that cover all of a node, and not all of its parent
        self.covered = [0] * (2 * self.leaves)
        self.sizes = [0] * (2 * self.leaves)
        for i in range(len(self.edges) - 1):
            self.sizes[self.leaves + i] = self.edges[i + 1] - self.edges[i]
        for node in range(self.leaves - 1, 0, -1):
            self.sizes[node] = self.sizes[2 * node] + self.sizes[2 * node + 1]

    def nbytes(self) -> int:
        return self.covered[1]

    def count(self, box: Box, change: int) -> None:
        """Count a box that comes (change 1) or goes (-1)."""
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

    def _cover(self, node: int, change: int) -> None:
        self.boxes[node] += change
        if self.boxes[node]:
            self.covered[node] = self.sizes[node]
        elif node < self.leaves:
            self.covered[node] = self.covered[2 * node] + self.covered[2 * node + 1]
        else:
            self.covered[node] = 0
