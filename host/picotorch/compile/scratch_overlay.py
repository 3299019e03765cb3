"""Find temp memory for calls in planned memory that is idle while they run.

Most calls leave a part of the planned memory unused: no tensor of theirs lies there, and nothing that
is read later. A call whose temp memory fits there needs none beside it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from _picotorch_c import lib

from . import uninitialized_reads
from .pool_records import Loaded, is_call
from .uninitialized_reads import Area, Ranges

_ALIGNMENT = 8

Place = tuple[int, int, int]  # memory, position, bytes
_NOWHERE = (0, 0, 0)


@dataclass
class Temp:
    """places: of each instruction in planned memory; [] where these gain nothing. bytes: what those
    need that find too little there."""

    bytes: int
    places: list[Place] = field(default_factory=list)


def find_temp(method: Loaded, others: Sequence[Loaded], kept: Sequence[Area] = ()) -> Temp:
    """Return where the instructions of a method find temp memory. others: the same method, loaded in
    another way, which may need more. kept: state of other methods in planned buffers that they may
    share with this one."""
    wants = [_wants(one) for one in (method, *others)]
    asked, preferred = ([max(sizes) for sizes in zip(*kind, strict=True)]
                     for kind in zip(*wants, strict=True))
    places = _places(method, kept)
    maximum = max(one.record.scratch for one in (method, *others))
    minimum = max((need for need, place in zip(asked, places, strict=True) if need > place[2]),
                  default=0)
    # other calls have as much of the temp memory
    larger = [place if min(max(need, wish), place[2]) > minimum else _NOWHERE
              for need, wish, place in zip(asked, preferred, places, strict=True)]
    return Temp(minimum, larger) if any(size for _, _, size in larger) else Temp(maximum)


def _wants(method: Loaded) -> tuple[list[int], list[int]]:
    """Bytes of temp memory that each instruction needs, and those with which it is at its best on any
    core."""
    c, asked, preferred = method.c, [], []
    before = c.scratch_needed, c.preferred_scratch, c.preferring_core
    lib.pt_start(c)
    for one, _ in method.instructions():
        c.scratch_needed = c.preferred_scratch = 0
        for core in (lib.PT_CORE_V6M, lib.PT_CORE_V7M, lib.PT_CORE_DSP):
            c.preferring_core = core
            lib.pt_check_instruction(c, c.position)
        asked.append(c.scratch_needed)
        preferred.append(c.preferred_scratch)
        c.instruction += 1
        c.position += 4 + 4 * one.n_args
    lib.pt_start(c)
    c.scratch_needed, c.preferred_scratch, c.preferring_core = before
    return asked, preferred


def _places(method: Loaded, kept: Sequence[Area] = ()) -> list[Place]:
    """Return the largest part of planned memory that is idle during each instruction; none for a method
    whose instructions or sizes depend on data."""
    rows = list(method.instructions_with_values())
    if method.variables or uninitialized_reads.is_dynamic(method):
        return [_NOWHERE] * len(rows)
    sizes = {lib.PT_MEMORY_PLANNED + i: size for i, size in enumerate(method.planned_sizes())}
    taken = [uninitialized_reads.areas(method, args) for _, args in rows]
    inputs, given = uninitialized_reads.ends(method)
    given = [*given, *uninitialized_reads.zeros(method), *uninitialized_reads.initial_areas(method),
             *kept]
    ranges = busy(inputs, given, list(uninitialized_reads.reads_and_writes(method)))
    found = []
    for (one, _), areas, live in zip(rows, taken, ranges, strict=True):
        for area in areas:
            live.add(*area)
        found.append(largest_gap(sizes, live) if is_call(one) else _NOWHERE)
    return found


def busy(inputs: Sequence[Area], given: Sequence[Area],
         steps: Sequence[tuple[list[Area], list[Area]]]) -> list[Ranges]:
    """Return for each instruction the bytes that it reads or writes, or that are read behind it, in
    this run or in another.

    steps: what each reads, and what it writes, in the order in which they run. given: what is there
    before the first run, or looked at behind any. Inputs that no instruction writes over keep their
    values for the next run.
    """
    written, kept = _ranges([area for _, areas in steps for area in areas]), _ranges(given)
    for memory, start, end in inputs:
        for gap in written.missing(memory, start, end):
            kept.add(memory, *gap)
    found, live = [], kept
    for read, wrote in reversed(steps):
        found.append(_ranges([*live.all(), *read, *wrote]))
        taken = _ranges(wrote)
        before = [(memory, *gap) for memory, start, end in live.all()
                  for gap in taken.missing(memory, start, end)]
        live = _ranges([*before, *read, *kept.all()])
    return found[::-1]


def _ranges(areas: Iterable[Area]) -> Ranges:
    found = Ranges()
    for area in areas:
        found.add(*area)
    return found


def largest_gap(sizes: dict[int, int], taken: Ranges) -> Place:
    """Return the largest range of memories of some sizes that is not taken, from a multiple of 8 on."""
    largest = _NOWHERE
    for memory, size in sizes.items():
        for start, end in taken.missing(memory, 0, size):
            start = -(-start // _ALIGNMENT) * _ALIGNMENT
            if end - start > largest[2]:
                largest = memory, start, end - start
    return largest
