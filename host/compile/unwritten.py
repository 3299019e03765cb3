"""Which bytes of planned memory a method reads before it has written them."""


class Ranges:
    """Bytes of some memories, as ranges that neither meet nor touch."""

    def __init__(self):
        self._of = {}  # memory -> sorted [(start, end)]

    def add(self, memory: int, start: int, end: int) -> None:
        kept = []
        for one in self._of.get(memory, []):
            if one[1] < start or end < one[0]:
                kept.append(one)
            else:
                start, end = min(start, one[0]), max(end, one[1])
        if start < end:
            self._of[memory] = sorted([*kept, (start, end)])

    def missing(self, memory: int, start: int, end: int) -> list[tuple[int, int]]:
        """Returns what of a range is not here."""
        gaps = []
        for first, last in self._of.get(memory, []):
            if first < end and start < last:
                if start < first:
                    gaps.append((start, first))
                start = last
        return gaps if start >= end else [*gaps, (start, end)]

    def all(self) -> list[tuple[int, int, int]]:
        """Returns (memory, start, end) of each range."""
        return [(memory, *one) for memory in sorted(self._of) for one in self._of[memory]]


def read_before_written(inputs, instructions) -> Ranges:
    """Returns the bytes that one run reads and has not written before.

    inputs: (memory, start, end) of tensors that are set before the run. instructions: (read, written)
    of each, lists of the same, in the order in which they run.
    """
    known, unwritten = Ranges(), Ranges()
    for place in inputs:
        known.add(*place)
    for read, written in instructions:
        for memory, start, end in read:
            for gap in known.missing(memory, start, end):
                unwritten.add(memory, *gap)
        for place in written:
            known.add(*place)
    return unwritten
