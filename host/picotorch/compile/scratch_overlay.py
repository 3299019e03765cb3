"""Find temp memory for calls in planned memory that is idle while they run.

Most calls leave a part of the planned memory unused: it contains none of their tensors, and no bytes
that are read later. A call whose temp memory fits there needs no other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from _picotorch_c import lib

from . import uninitialized_reads
from .pool_records import Loaded, is_call
from .uninitialized_reads import Area, Ranges

_ALIGNMENT = 8

Range = tuple[int, int, int]  # memory, position, bytes
_NOWHERE = (0, 0, 0)


@dataclass
class Temp:
    """The temp memory of a method.

    ranges: offsets for each instruction in planned memory; [] if planned memory does not help. bytes:
    the temp memory of the instructions that do not fit there.
    """

    bytes: int
    ranges: list[Range] = field(default_factory=list)


def find_temp(method: Loaded, others: Sequence[Loaded], kept: Sequence[Area] = ()) -> Temp:
    """Find temp memory for the instructions of a method.

    others: the same method, loaded with other options, which may need more. kept: state of other
    methods in planned buffers that they may share with this method.
    """
    scratch_sizes = [_scratch_sizes(one) for one in (method, *others)]
    needed, preferred = ([max(sizes) for sizes in zip(*kind, strict=True)]
                         for kind in zip(*scratch_sizes, strict=True))
    ranges = _idle_ranges(method, kept)
    maximum = max(one.record.scratch for one in (method, *others))
    minimum = max((need for need, idle in zip(needed, ranges, strict=True) if need > idle[2]),
                  default=0)
    # the remaining calls share this temp memory
    larger = [idle if min(max(need, wanted), idle[2]) > minimum else _NOWHERE
              for need, wanted, idle in zip(needed, preferred, ranges, strict=True)]
    return Temp(minimum, larger) if any(size for _, _, size in larger) else Temp(maximum)


def _scratch_sizes(method: Loaded) -> tuple[list[int], list[int]]:
    """Return the temp memory that each instruction needs, and the maximum that any core prefers.

    Both are in bytes.
    """
    c, needed, preferred = method.c, [], []
    before = c.scratch_needed, c.preferred_scratch, c.preferring_core
    lib.pt_start(c)
    for one, _ in method.instructions():
        c.scratch_needed = c.preferred_scratch = 0
        for core in (lib.PT_CORE_V6M, lib.PT_CORE_V7M, lib.PT_CORE_DSP):
            c.preferring_core = core
            lib.pt_check_instruction(c, c.position)
        needed.append(c.scratch_needed)
        preferred.append(c.preferred_scratch)
        c.instruction += 1
        c.position += 4 + 4 * one.n_args
    lib.pt_start(c)
    c.scratch_needed, c.preferred_scratch, c.preferring_core = before
    return needed, preferred


def _idle_ranges(method: Loaded, kept: Sequence[Area] = ()) -> list[Range]:
    """Return the largest part of planned memory that is idle during each instruction.

    The result is empty for a method whose instructions or sizes depend on data.
    """
    rows = list(method.instructions_with_values())
    if method.variables or uninitialized_reads.is_dynamic(method):
        return [_NOWHERE] * len(rows)
    sizes = {lib.PT_MEMORY_PLANNED + i: size for i, size in enumerate(method.planned_sizes())}
    rows_areas = [uninitialized_reads.areas(method, args) for _, args in rows]
    inputs, initial = uninitialized_reads.io_areas(method)
    initial = [*initial, *uninitialized_reads.zeros(method), *uninitialized_reads.initial_areas(method),
               *kept]
    ranges = busy(inputs, initial, list(uninitialized_reads.reads_and_writes(method)))
    found = []
    for (one, _), areas, live in zip(rows, rows_areas, ranges, strict=True):
        for area in areas:
            live.add(*area)
        found.append(largest_gap(sizes, live) if is_call(one) else _NOWHERE)
    return found


def busy(inputs: Sequence[Area], initial: Sequence[Area],
         steps: Sequence[tuple[list[Area], list[Area]]]) -> list[Ranges]:
    """Return the bytes that are busy during each instruction.

    Busy bytes are read or written by the instruction, or are read later, in this run or in another.
    steps: the reads and writes of each instruction, in the order of execution. initial: bytes that are
    set before the first run, or read after any run. Inputs that no instruction overwrites keep their
    values for the next run.
    """
    written, kept = _ranges([area for _, areas in steps for area in areas]), _ranges(initial)
    for memory, start, end in inputs:
        for gap in written.missing(memory, start, end):
            kept.add(memory, *gap)
    found, live = [], kept
    for read, wrote in reversed(steps):
        found.append(_ranges([*live.all(), *read, *wrote]))
        overwritten = _ranges(wrote)
        before = [(memory, *gap) for memory, start, end in live.all()
                  for gap in overwritten.missing(memory, start, end)]
        live = _ranges([*before, *read, *kept.all()])
    return found[::-1]


def _ranges(areas: Iterable[Area]) -> Ranges:
    found = Ranges()
    for area in areas:
        found.add(*area)
    return found


def largest_gap(sizes: dict[int, int], used: Ranges) -> Range:
    """Return the largest unused range of memories of some sizes, starting at a multiple of 8."""
    largest = _NOWHERE
    for memory, size in sizes.items():
        for start, end in used.missing(memory, 0, size):
            start = -(-start // _ALIGNMENT) * _ALIGNMENT
            if end - start > largest[2]:
                largest = memory, start, end - start
    return largest
