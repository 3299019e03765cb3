"""Fuzz the library in C alone: library.c uses programs, compiled methods and .ptd files of any bytes,
without Python.

.ptd files may follow a program. The inputs include those of the other targets, and the findings at 64
and at 32 bits. library32 is this target at 32 bits.
"""

import struct
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS / "hostile")]

import ptms  # noqa: E402
from replay import inputs  # noqa: E402
from support import fixture_store  # noqa: E402
from support.flatbuffer_builder import FLAT_TENSOR, SCHEMA  # noqa: E402

BITS = 64  # the bits of a pointer
MAX_LENGTH = 8192
SECONDS = 20
CORPUS = "library"  # name of the stored corpus
OTHERS = ("assembled", "file", "operators")
IDENTIFIERS = [schema["file_identifier"].encode() for schema in (SCHEMA, FLAT_TENSOR)]


def joined(program, files=()):
    """Return an input of a program and its .ptd files."""
    return program + b"".join(file + struct.pack("<I", len(file)) + b"+ptd" for file in files)


def seeds():
    """Yield fixtures, their .ptm files, and the stored corpora of the other targets."""
    for fixture in fixture_store.load_all():
        yield joined(fixture.pte, fixture.data)
    yield from ptms.seeds(MAX_LENGTH)
    for name in OTHERS:
        for _, data in inputs(TESTS / "hostile" / "fuzz" / "corpus" / f"{name}.tgz"):
            if data[4:8] in IDENTIFIERS or data[:4] == ptms.MAGIC:
                yield data
