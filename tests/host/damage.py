"""Damages a fixture's program in every way of a kind and runs what comes of it on the twin.

    python damage.py flips add_1

The kinds data_truncations and data_flips damage the fixture's .ptd file instead.

Prints a JSON object: how many ended with which error ("ok": none), and what ended otherwise or took
too long. tests/host/test_damage.py runs it in a process of its own, which may crash.
"""

import collections
import faulthandler
import json
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import fixture_store  # noqa: E402
import numpy as np  # noqa: E402
from picotorch import (  # noqa: E402
    Backend,
    BufferDataLoader,
    Error,
    FlatTensorDataMap,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    MergedDataMap,
    Method,
    Program,
    Tensor,
    register_backend,
)
from picotorch.schema import KERNEL_TYPES_TENSOR  # noqa: E402

SECONDS = 5.0  # for one program
POOL = 1 << 16  # bytes
LARGEST_MEMORY = 1 << 20  # bytes of any buffer that a damaged program gets


def truncations(data):
    """Every length up to 128, and around every multiple of 64."""
    lengths = set(range(min(len(data), 128)))
    for end in range(128, len(data) + 1, 64):
        lengths.update(range(end - 1, end + 2))
    for length in sorted(lengths):
        if length < len(data):
            yield f"{length} bytes", data[:length]


def flips(data):
    """Every byte of header and tables: a low bit, the sign bit and all bits turned over, and zero."""
    end = int.from_bytes(data[16:24], "little") if data[8:12] == b"eh00" else len(data)
    if data[8:12] == b"FH01":  # up to the segments
        end = int.from_bytes(data[32:40], "little")
    for position in range(end):
        for name, value in (("^01", data[position] ^ 1), ("^80", data[position] ^ 0x80),
                            ("^ff", data[position] ^ 0xFF), ("=0", 0)):
            if value != data[position]:
                yield (f"byte {position} {name}",
                       data[:position] + bytes([value]) + data[position + 1 :])


def memory(size):
    """Zeros; no byte more than asked for, so that a sanitizer sees the first one beside them."""
    return np.zeros(min(size, LARGEST_MEMORY), np.uint8).data


def exactly(data):
    found = memory(len(data))
    found[:] = data
    return found


def describe(meta):
    """Asks a method for all that it says of itself."""
    for i in range(meta.num_inputs()):
        meta.input_value(i)
        if meta.input_tag(i) == KERNEL_TYPES_TENSOR:
            repr(meta.input_tensor_meta(i))
    for i in range(meta.num_outputs()):
        meta.output_value(i)
        if meta.output_tag(i) == KERNEL_TYPES_TENSOR:
            repr(meta.output_tensor_meta(i))
    for i in range(meta.num_attributes()):
        repr(meta.attribute_tensor_meta(i))
    for i in range(meta.num_backends()):
        meta.get_backend_name(i)
    repr(meta)
    meta.missing_operators()


class Curious(Backend):
    """Reads all that it is given, allocates, and writes to every tensor that can be written."""

    def init(self, context, processed, compile_specs):
        bytes(processed.data())
        for i in range(len(compile_specs)):
            repr(compile_specs[i])
        compile_specs.get("elements")
        named = context.get_named_data_map()
        for i in range(named.get_num_keys()):
            bytes(named.get_data(named.get_key(i)))
        context.get_runtime_allocator().allocate(24)
        return len(processed.data())

    def execute(self, context, handle, args):
        for value in args:
            if isinstance(value, Tensor) and not value.data.readonly:
                value.data.cast("B")[:] = bytes(value.data.nbytes)


def execute(program, name, data_map):
    meta = program.method_meta(name)
    describe(meta)
    planned = [memory(meta.memory_planned_buffer_size(i))
               for i in range(meta.num_memory_planned_buffers())]
    method = Method(MemoryManager(MemoryAllocator(memory(POOL)), HierarchicalAllocator(planned),
                                  MemoryAllocator(memory(8192), "temp memory")),
                    meta.num_outputs())
    method.load(program, name, data_map=data_map)
    for i in range(meta.num_inputs()):
        if meta.input_tag(i) == KERNEL_TYPES_TENSOR:
            method.set_input(memory(meta.input_tensor_meta(i).nbytes()), i)
    for i in range(meta.num_outputs()):
        if meta.output_tag(i) == KERNEL_TYPES_TENSOR:
            info = meta.output_tensor_meta(i)
            if not info.is_memory_planned() and not info.is_constant():
                method.set_output_data_ptr(memory(info.nbytes()), i)
    method.execute()
    method.get_outputs()


def outcome(data, files=()):
    """Loads and executes every method of a program with its .ptd files: the name of the first Error, or
    "ok"."""
    try:
        maps = [FlatTensorDataMap.load(BufferDataLoader(exactly(file))) for file in files]
        repr(maps)
        data_map = MergedDataMap.load(maps) if maps else None
        program = Program.load(BufferDataLoader(exactly(data)))
        repr(program)
        for name in program.method_names:
            execute(program, name, data_map)
    except Error as error:
        assert str(error)
        return error.name
    return "ok"


def try_all(programs, outcome=outcome):
    """(counts by outcome, what went wrong) of (label, data) pairs."""
    counts, wrong = collections.Counter(), []
    for label, data in programs:
        start = time.monotonic()
        try:
            counts[outcome(data)] += 1
        except Exception:
            wrong.append(f"{label}: {traceback.format_exc(limit=-4)}")
        if time.monotonic() - start > SECONDS:
            wrong.append(f"{label}: {time.monotonic() - start:.1f} s")
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
        counts, wrong = try_all(damaged(first), lambda file: outcome(fixture.pte, [file, *others]))
    else:
        counts, wrong = try_all(damaged(fixture.pte), lambda pte: outcome(pte, fixture.data))
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    main()
