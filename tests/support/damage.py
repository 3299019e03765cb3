"""Damage a fixture's program in every way of a kind and run the results on the twin.

    python damage.py flips add_1

The kinds data_truncations and data_flips damage the fixture's .ptd file instead.

Prints a JSON object: the number of runs by error ("ok": none), and the runs that ended otherwise or
took too long. tests/hostile/test_damage.py runs it in a process of its own, which may crash.
"""

import collections
import faulthandler
import json
import sys
import time
import traceback
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from picotorch import register_backend  # noqa: E402
from support import fixture_store  # noqa: E402
from support.exercise import Curious, outcome  # noqa: E402

SECONDS = 5.0  # maximum for one program
once = partial(outcome, thorough=False)


def truncations(data):
    """Yield the data cut off at every length up to 128, and around every multiple of 64."""
    lengths = set(range(min(len(data), 128)))
    for end in range(128, len(data) + 1, 64):
        lengths.update(range(end - 1, end + 2))
    for length in sorted(lengths):
        if length < len(data):
            yield f"{length} bytes", data[:length]


def flips(data):
    """Yield the data with every byte of header and tables changed: a low bit, the sign bit or all bits
    inverted, and zero."""
    end = int.from_bytes(data[16:24], "little") if data[8:12] == b"eh00" else len(data)
    if data[8:12] == b"FH01":  # up to the segments
        end = int.from_bytes(data[32:40], "little")
    for position in range(end):
        for name, value in (("^01", data[position] ^ 1), ("^80", data[position] ^ 0x80),
                            ("^ff", data[position] ^ 0xFF), ("=0", 0)):
            if value != data[position]:
                yield (f"byte {position} {name}",
                       data[:position] + bytes([value]) + data[position + 1 :])


def try_all(programs, outcome=once):
    """Return (counts by outcome, failures) of (label, data) pairs."""
    counts, wrong = collections.Counter(), []
    for label, data in programs:
        start = time.process_time()
        try:
            counts[outcome(data)] += 1
        except Exception:
            wrong.append(f"{label}: {traceback.format_exc(limit=-4)}")
        if time.process_time() - start > SECONDS:
            wrong.append(f"{label}: {time.process_time() - start:.1f} s")
    return counts, wrong


def main():
    faulthandler.enable()
    kind, name = sys.argv[1:]
    fixture = fixture_store.load(name)
    for backend in fixture.backends:
        register_backend(backend, Curious())
    damaged = {"truncations": truncations, "flips": flips}[kind.removeprefix("data_")]
    if kind.startswith("data_"):
        first, *others = fixture.data
        counts, wrong = try_all(damaged(first), lambda file: once(fixture.pte, [file, *others]))
    else:
        counts, wrong = try_all(damaged(fixture.pte), lambda pte: once(pte, fixture.data))
    print(json.dumps({"counts": counts, "wrong": wrong}))


def ends_alike(line, on_twin):
    """Return True if damaged.py prints the same for a file at 32 bits and on the twin. A size above 128
    MiB is an error only at 32 bits, so the twin then rejects the file for its next fault."""
    number = line.split(" ")[0]
    refused = on_twin.startswith((f"{number} InvalidProgram", f"{number} NotSupported"))
    return line == on_twin or ("is too large" in line and refused)


if __name__ == "__main__":
    main()
