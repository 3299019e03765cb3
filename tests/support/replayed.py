"""Replay inputs in the library without Python, tests/hostile/fuzz/library.c. gcc builds it with
sanitizers for 64 and for 32 bits."""

import functools
import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from picotorch.firmware import ports, selective

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "library"
WIDTHS = (64, 32)
FLAGS = {64: [], 32: ["-m32"]}
TIMEOUT = 600  # seconds


@dataclass(frozen=True)
class Result:
    """The result for one input. digest: the digest of all values that the library returned."""

    methods: int
    loaded: int
    executed: int
    refused: int
    first: int  # error code
    digest: str


@functools.cache
def has_sanitizers(bits):
    """Return True if gcc links programs of this width with its sanitizers."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["gcc", *FLAGS[bits], "-fsanitize=address,undefined", "-x", "c", "-", "-o",
                   Path(folder) / "empty"]
        return subprocess.run(command, input="int main(void) { return 0; }", text=True,
                              capture_output=True).returncode == 0


@functools.cache
def build(bits):
    """Build the program. Skip the test if the compiler cannot make it."""
    if not has_sanitizers(bits):
        pytest.skip(f"gcc has no sanitizers for {bits} bits here (Debian: gcc-multilib)")
    with selective.locked(BUILD / str(bits)):
        command = ["make", "-s", "-j2", "-C", ROOT / "tests/hostile/fuzz", "CC=gcc", f"BITS={bits}",
                   "replay"]
        made = subprocess.run(command, capture_output=True, text=True, env=ports.environment())
        assert made.returncode == 0, made.stderr
    return BUILD / str(bits) / "replay"


def run(bits, named):
    """Return the results of (name, input) pairs, in their order."""
    program = build(bits)
    with tempfile.NamedTemporaryFile() as pack:
        for _, data in named:
            pack.write(struct.pack("<I", len(data)) + data)
        pack.flush()
        ended = subprocess.run([program, pack.name], capture_output=True, text=True, timeout=TIMEOUT,
                               env=os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"})
    rows = [line.split() for line in ended.stdout.splitlines()]
    results = [Result(*map(int, row[:5]), row[5]) for row in rows]
    assert ended.returncode == 0, (
        f"{bits} bits, {named[len(results)][0] if len(results) < len(named) else 'at the end'}: "
        f"{ended.stderr[:3000]}")
    assert len(results) == len(named)
    return results
