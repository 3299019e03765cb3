"""Plan a method's memory again: the offset of each tensor in one planned buffer, by its lifetime.

The old plan shows which values share memory on purpose: a value that is read before it was written sees
bytes of others (a view, a piece of a concatenation). Such values keep their relative offsets and move
as one block. Nothing else of the old plan is kept.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

Extent = tuple[int, int]  # offset and bytes of a value


@dataclass
class Step:
    """One instruction's reads and writes of planned values, which are named by any numbers.

    Its reads come before its writes. The contents of `scratch` are of no use before and after it.
    """

    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    scratch: list[int] = field(default_factory=list)


@dataclass
class Block:
    """Values that stay together; `start` and `end` are the first and last step that needs them."""

    values: list[int]
    low: int
    high: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Return the bytes of the block."""
        return self.high - self.low


class _Lives:
    """Blocks of values, grown while the steps are followed in the old plan."""

    def __init__(self, extents: dict[int, Extent]) -> None:
        self.extents = extents
        self.block: dict[int, Block] = {}
        extent = max((offset + size for offset, size in extents.values()), default=0)
        self.owner = np.full(extent, -1, np.int64)  # the value that wrote a byte last

    def _bytes(self, value: int) -> np.ndarray:
        offset, size = self.extents[value]
        return self.owner[offset : offset + size]

    def touch(self, value: int, step: int) -> Block:
        offset, size = self.extents[value]
        if value not in self.block:
            self.block[value] = Block([value], offset, offset + size, step, step)
        block = self.block[value]
        block.start, block.end = min(block.start, step), max(block.end, step)
        return block

    def join(self, one: int, other: int) -> None:
        """Make one block of the blocks of two values."""
        kept, gone = self.block[one], self.block[other]
        if kept is not gone:
            kept.values += gone.values
            kept.low, kept.high = min(kept.low, gone.low), max(kept.high, gone.high)
            kept.start, kept.end = min(kept.start, gone.start), max(kept.end, gone.end)
            self.block.update(dict.fromkeys(gone.values, kept))

    def write(self, value: int, step: int) -> None:
        self.touch(value, step)
        self._bytes(value)[:] = value

    def read(self, value: int, step: int, last: int) -> None:
        """Note a read. Bytes without a writer keep their contents from one execution to the next."""
        owners = set(np.unique(self._bytes(value)).tolist())
        self.touch(value, step)
        if -1 in owners:
            self.touch(value, -1)
            self.touch(value, last)
        for owner in owners - {-1, value}:
            self.join(value, owner)

    def overlaps(self, one: int, other: int) -> bool:
        (low, size), (start, length) = self.extents[one], self.extents[other]
        return low < start + length and start < low + size


def _follow(lives: _Lives, step: Step, number: int, last: int) -> None:
    for value in step.reads:
        lives.read(value, number, last)
    for value in [*step.writes, *step.scratch]:
        lives.write(value, number)
    for value in step.writes:  # an operator may rely on an output in the place of an input
        for other in step.reads:
            if lives.overlaps(value, other):
                lives.join(value, other)


def _first(steps: list[Step], value: int) -> int:
    return next(i for i, step in enumerate(steps) if value in step.writes)


def _last(steps: list[Step], value: int) -> int:
    return max(i for i, step in enumerate(steps) if value in step.reads)


def _check_alone(lives: _Lives, value: int, steps: list[Step]) -> None:
    """Raise ValueError if a step writes to the bytes of a value of the same block."""
    together = set(lives.block[value].values)
    for step in steps:
        for other in together.intersection([*step.writes, *step.scratch]):
            if lives.overlaps(value, other):
                raise ValueError(f"value {value} shares memory with value {other}")


def find_blocks(extents: dict[int, Extent], inputs: Iterable[int], steps: list[Step],
                outputs: Iterable[int], always: Iterable[int] = (),
                early: Iterable[int] = (), late: Iterable[int] = ()) -> list[Block]:
    """Find the blocks of a method.

    `extents` is the old plan of one buffer; the values in `always` keep their contents from one
    execution to the next.

    `early` and `late` are values that live longer than in the old plan: from the start although a step
    writes them, to the end although a step was the last to read them. Raises ValueError if others of
    the same block would overwrite them.
    """
    lives, last, inputs, outputs = _Lives(extents), len(steps), list(inputs), list(outputs)
    for value in always:
        lives.write(value, -1)
        lives.touch(value, last)
    for _ in range(2):  # an execution may read what the one before it wrote
        for value in inputs:
            lives.write(value, -1)
        for number, step in enumerate(steps):
            _follow(lives, step, number, last)
        for value in outputs:
            lives.read(value, last, last)
    for value in early:
        _check_alone(lives, value, steps[: _first(steps, value)])
        lives.touch(value, -1)
    for value in late:
        _check_alone(lives, value, steps[_last(steps, value) + 1 :])
        lives.touch(value, last)
    return list({id(block): block for block in lives.block.values()}.values())


def _place(blocks: list[Block], alignment: int) -> tuple[dict[int, int], int]:
    """Return ({index of a block: offset}, bytes in all); each block is as low as possible."""
    placed: list[tuple[int, Block]] = []
    extent = 0
    for block in blocks:
        offset = 0
        for start, other in sorted(placed, key=lambda row: row[0]):
            if other.start > block.end or other.end < block.start:
                continue
            if start >= offset + block.size:
                break
            offset = max(offset, -(-(start + other.size) // alignment) * alignment)
        placed.append((offset, block))
        extent = max(extent, offset + block.size)
    return {id(block): offset for offset, block in placed}, extent


_ORDERS: tuple[Callable[[Block], tuple[int, int]], ...] = (
    lambda block: (-block.size, block.start),
    lambda block: (-block.size * (block.end - block.start + 1), block.start),
    lambda block: (block.start, -block.size),
    lambda block: (block.start - block.end, -block.size),
)


def plan(extents: dict[int, Extent], blocks: list[Block], alignment: int) -> tuple[dict[int, int], int]:
    """Return ({value: offset}, bytes of the buffer).

    Blocks that are needed at a common step share no byte.
    """
    best, extent = min((_place(sorted(blocks, key=order), alignment) for order in _ORDERS),
                       key=lambda placed: placed[1])
    offsets = {value: best[id(block)] + extents[value][0] - block.low
               for block in blocks for value in block.values}
    return offsets, -(-extent // alignment) * alignment


def minimum(blocks: list[Block], alignment: int) -> int:
    """Return the bytes that live at the same time: no plan needs fewer."""
    steps = range(-1, 1 + max((block.end for block in blocks), default=0))
    return max((sum(-(-block.size // alignment) * alignment for block in blocks
                    if block.start <= step <= block.end) for step in steps), default=0)
