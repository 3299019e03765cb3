"""Make compiled methods as inputs: from the fixtures, with some words changed and correct checksums.

tests/hostile/fuzz/mutator.c does the same in C.
"""

import functools
import random
import struct

from picotorch import Error
from picotorch.compile import ptm_writer
from support import fixture_store

MAGIC = b"PTM5"
SIZE, RECORDS, SUMMED = 4, 8, 28  # positions in the header
CORE, OWN_CORE = 30, 0x80
EXTREMES = (0, 1, 2, 3, 4, 0x3F, 0x40, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF,
            0x80000000, 0xFFFFFFFF)


def word(data, position):
    return struct.unpack_from("<I", data, position)[0]


def with_sums(data):
    """Return the .ptm file with correct checksums, and other bytes unchanged."""
    size, records = (word(data, at) if len(data) > SUMMED else 0 for at in (SIZE, RECORDS))
    if data[:4] != MAGIC or not SUMMED <= records <= size <= len(data) or (records | size) % 4:
        return bytes(data)
    sums = ptm_writer.sums(data[SUMMED:records]) + ptm_writer.sums(data[records:size])
    return bytes(data[:12]) + struct.pack("<4I", *sums) + bytes(data[SUMMED:])


@functools.cache
def of_fixtures(largest):
    """Return (name, ptm) of the fixtures whose .ptm files have at most `largest` bytes, with packed
    weights."""
    found = []
    for fixture in fixture_store.load_all():
        if len(fixture.pte) > 3 * largest:
            continue
        try:
            ptm = ptm_writer.compile_ptm(fixture.pte, fixture.data, "cortex-m4").data
        except Error:  # operators or delegates that are missing
            continue
        if len(ptm) <= largest:
            found.append((fixture.name, ptm))
    return found


def of_programs():
    """Return (name, ptm) of programs that no exporter writes, with numbers and sizes that change."""
    from test_hostile_programs import PROGRAMS

    found = []
    for name, program in PROGRAMS.items():
        try:
            found.append((name, ptm_writer.compile_ptm(program).data))
        except Error:
            continue
    return found


def seeds(largest):
    return (data for _, data in [*of_fixtures(largest), *of_programs()])


def _end(data):
    """Return the end of the records, at most the end of the data."""
    return min(word(data, RECORDS), len(data)) // 4 * 4


def _other(rng, data, old):
    """Return another value for a word: a neighbour's, a reference like it, or an extreme."""
    choice = rng.randrange(8)
    if choice == 0:
        return rng.choice(EXTREMES)
    if choice == 1:
        return old + rng.choice((-16, -8, -4, -2, -1, 1, 2, 4, 8, 16))
    if choice == 2:
        return old ^ 1 << rng.randrange(32)
    if choice == 3:
        place = 8 * rng.randrange(4)
        return old & ~(0xFF << place) | rng.choice(EXTREMES[:10]) << place
    if choice == 4:
        return rng.randrange(64)
    words = struct.unpack_from(f"<{(_end(data) - SUMMED) // 4}I", data, SUMMED)
    like = [value for value in words if value >> 25 == old >> 25]
    return rng.choice(like or [old])


def mutated(data, rng):
    """Return a .ptm file with some words of its records changed, and correct checksums. A file without
    records is unchanged."""
    data = bytearray(data)
    if len(data) < SUMMED or _end(data) <= SUMMED:
        return bytes(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        position = rng.randrange(SUMMED, _end(data), 4)
        new = _other(rng, data, word(data, position))
        struct.pack_into("<I", data, position, new & 0xFFFFFFFF)
    return with_sums(data)


def mutations(ptm, count, seed):
    rng = random.Random(seed)
    return [mutated(ptm, rng) for _ in range(count)]
