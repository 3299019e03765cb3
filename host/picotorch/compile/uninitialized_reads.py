"""Find the planned bytes that a method reads before it writes them, in its first run."""

from collections.abc import Iterable, Iterator, Sequence

from _picotorch_c import lib

from ..host.operators import CHANGED, NOT_FILLED, OUTPUTS, SCRATCH, WRITTEN, operator_signature
from .pool_records import CData, Loaded, is_call, memory_of, position_of

Area = tuple[int, int, int]  # memory, start, end


class Ranges:
    """Bytes of some memories, as ranges that neither overlap nor touch."""

    def __init__(self) -> None:
        self._of: dict[int, list[tuple[int, int]]] = {}  # by memory, sorted (start, end)

    def add(self, memory: int, start: int, end: int) -> None:
        """Add bytes of a memory, joined with the ranges that they touch."""
        kept = []
        for one in self._of.get(memory, []):
            if one[1] < start or end < one[0]:
                kept.append(one)
            else:
                start, end = min(start, one[0]), max(end, one[1])
        if start < end:
            self._of[memory] = sorted([*kept, (start, end)])

    def missing(self, memory: int, start: int, end: int) -> list[tuple[int, int]]:
        """Return the parts of a range that are missing here."""
        gaps = []
        for first, last in self._of.get(memory, []):
            if first < end and start < last:
                if start < first:
                    gaps.append((start, first))
                start = last
        return gaps if start >= end else [*gaps, (start, end)]

    def all(self) -> list[tuple[int, int, int]]:
        """Return (memory, start, end) of each range."""
        return [(memory, *one) for memory in sorted(self._of) for one in self._of[memory]]


def read_before_written(inputs: Iterable[Area],
                        instructions: Iterable[tuple[Sequence[Area], Sequence[Area]]]) -> Ranges:
    """Return the bytes that one run reads and has not written before.

    inputs: (memory, start, end) of tensors that are set before the run. instructions: (read, written)
    of each, lists of the same, in the order in which they run.
    """
    initialized, uninitialized = Ranges(), Ranges()
    for area in inputs:
        initialized.add(*area)
    for read, written in instructions:
        for memory, start, end in read:
            for gap in initialized.missing(memory, start, end):
                uninitialized.add(memory, *gap)
        for area in written:
            initialized.add(*area)
    return uninitialized


def is_dynamic(method: Loaded) -> bool:
    """Return True if the executed instructions, or the sizes of tensors, depend on data."""
    return any(one.op == lib.PT_OP_JUMP_FALSE for one, _ in method.instructions()) or any(
        method.tensors[one].flags & lib.PT_VALUE_DYNAMIC for one in method.used)


def io_areas(method: Loaded) -> tuple[list[Area], list[Area]]:
    """Return the areas in planned memory of inputs, and of outputs and mutable buffers."""
    refs = {value.index: one for one, value in method.tensors.items()}
    inputs, outputs = (areas(method, [refs[index] for index in indexes if index in refs])
                       for indexes in (method.entries(lib.PT_INPUTS),
                                       [*method.entries(lib.PT_OUTPUTS), *method.named]))
    return inputs, outputs


def zeros(method: Loaded) -> list[Area]:
    """Return the bytes that have to be zero. For a dynamic method these are all planned memory."""
    if is_dynamic(method):
        return [(lib.PT_MEMORY_PLANNED + i, 0, size)
                for i, size in enumerate(method.planned_sizes()) if size]
    inputs, outputs = io_areas(method)
    instructions = [(outputs, []), *reads_and_writes(method)]  # outputs can be read before a run
    return read_before_written(inputs, instructions).all()


def initial_values(method: Loaded) -> list[tuple[int, bytes]]:
    """Return (reference, bytes) of the tensors in planned memory that are not zero."""
    found: dict[int, bytes] = {}
    for value in (method.tensors[one] for one in method.used):
        data = method.bytes(value.data, method.nbytes(value)) if method.is_planned(value) else b""
        if any(data) and len(data) > len(found.get(value.data, b"")):
            found[value.data] = data
    return sorted(found.items())


def initial_areas(method: Loaded) -> list[Area]:
    """Return the areas of initial_values."""
    return [(memory_of(to), position_of(to), position_of(to) + len(data))
            for to, data in initial_values(method)]


def shared_state(method: Loaded) -> list[Area]:
    """Return the state in planned buffers that may be shared with other methods.

    The state is in all buffers except the first.
    """
    named = areas(method, [one for one, value in method.tensors.items() if value.index in method.named])
    return [area for area in (*named, *zeros(method), *initial_areas(method))
            if area[0] > lib.PT_MEMORY_PLANNED]


def areas(method: Loaded, references: list[int]) -> list[Area]:
    """Return the areas of the tensors in planned memory."""
    values = [method.tensors[one] for one in method.tensors_of(references)]
    found = [(memory_of(value.data), position_of(value.data), method.nbytes(value))
             for value in values if method.is_planned(value)]
    return [(memory, start, start + size) for memory, start, size in found]


def reads_and_writes(method: Loaded) -> Iterator[tuple[list[Area], list[Area]]]:
    """Yield for each instruction the areas of tensors that it reads, and that it writes."""
    for one, args in method.instructions_with_values():
        read, written = (args[:1], args[1:]) if not is_call(one) else _of_call(one, args)
        yield areas(method, read), areas(method, written)


def _of_call(call: CData, args: list[int]) -> tuple[list[int], list[int]]:
    """Return the arguments that a call reads, and the arguments that it writes."""
    letters = operator_signature(call.kernel)
    return ([arg for arg, letter in zip(args, letters, strict=True)
             if letter == CHANGED or letter not in WRITTEN + SCRATCH],
            [arg for arg, letter in zip(args, letters, strict=True)
             if letter in OUTPUTS and letter != NOT_FILLED])
