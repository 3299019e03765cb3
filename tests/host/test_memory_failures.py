"""Memories that are too small, missing, misaligned or read-only: the right error, nothing written
beside them, and a load with enough memory on the same objects works. On the twin and on the boards."""

import functools

import _picotorch
import fixture_store
import numpy as np
import programs
import pytest
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
)
from picotorch.host.tensors import to_stored
from targets import BOARDS, HOST, aligned, on_boards, run_script

FIXTURES = ("add_1", "cat", "ds_cnn", "linear_5", "planned_1785600", "split")
MODELS = (*FIXTURES, "two_buffers")
METHOD_BYTES = 28  # the first record in a pool
every_model = pytest.mark.parametrize("name", MODELS)


@functools.cache
def model(name):
    return programs.two_buffers() if name == "two_buffers" else fixture_store.load(name).pte


@functools.cache
def meta(name):
    return Program.load(BufferDataLoader(aligned(model(name)))).method_meta("forward")


def inputs(name):
    if name == "two_buffers":
        return [np.array([-1, 2, -3, 4], np.float32).tobytes()]
    return [to_stored(value, meta(name).input_tensor_meta(i).dim_order())
            for i, value in enumerate(fixture_store.load(name).runs[0].inputs)]


@functools.cache
def planned_sizes(name):
    return [meta(name).memory_planned_buffer_size(i)
            for i in range(meta(name).num_memory_planned_buffers())]


def run_cases(name, cases, target):
    sections = {f"in{i}": data for i, data in enumerate(inputs(name))}
    sections |= {"model": model(name), "method": b"forward", "cases": "\n".join(cases).encode(),
                 "readonly": bytes(max(planned_sizes(name)))}
    return run_script("memory_failures.py", sections, target)


@functools.cache
def pool_bytes(name):
    """Bytes of method pool that the model needs."""
    return int(run_cases(name, ["pool -1 0"], HOST).lines[0].removeprefix("needs "))


def pool_expectation(name, size):
    return (f"pool {size} 0",
            "MemoryAllocationFailed (0x21): method pool: "
            f"{pool_bytes(name)}B requested, {size}B available; make it larger")


def misaligned(memory, subject, shifts):
    return [(f"{memory} -1 {shift}",
             f"InvalidArgument (0x12): {subject}: does not start at a multiple of 8 bytes; align it")
            for shift in shifts]


def planned_expectations(name):
    expected = []
    for i, needed in enumerate(planned_sizes(name)):
        subject = f"planned buffer {i}"
        for size in sorted({0, 8, 1024, needed // 2, needed - 1} - {needed}):
            if size < needed:
                expected.append((f"planned{i} {size} 0",
                                 f"MemoryAllocationFailed (0x21): {subject}: {needed}B requested, "
                                 f"{size}B available; make it larger"))
        expected += misaligned(f"planned{i}", subject, (1, 2, 4))
        expected.append((f"readonly_planned{i} 0 0",
                         f"InvalidArgument (0x12): {subject}: cannot be written; "
                         "hand over memory that can be"))
        expected.append((f"missing{i} 0 0",
                         f"InvalidArgument (0x12): {subject}: {needed}B requested, 0B available: "
                         "is missing; hand over one buffer for each that the method needs"))
    return expected


def expectations(name):
    """(case, error) for every way in which a memory does not do."""
    needed = pool_bytes(name)
    sizes = sorted({0, 4, METHOD_BYTES, needed // 2, needed - 8, needed - 4, needed - 1})
    return [
        *[pool_expectation(name, size) for size in sizes],
        *misaligned("pool", "method pool", (1, 2, 4)),
        ("readonly_pool 0 0", "InvalidArgument (0x12): method pool: cannot be written; "
                              "hand over memory that can be"),
        *planned_expectations(name),
        *misaligned("temp", "temp memory", (1, 2, 4)),
        (f"pool {needed} 0", "ok"),
        ("temp 0 0", "ok"),
        ("noalloc 0 0", "ok"),
    ]


@pytest.mark.parametrize(("name", "target"), [*((name, HOST) for name in MODELS), *on_boards(MODELS)])
def test_each_failure_is_named_and_leaves_everything_usable(name, target):
    expected = expectations(name)
    result = run_cases(name, [case for case, _ in expected], target)
    assert result.lines[1:] == [f"{case} -> {error}" for case, error in expected]


@every_model
def test_every_size_of_the_pool_that_is_too_small(name):
    needed = pool_bytes(name)
    sizes = sorted({*range(0, needed, 4), *range(needed - 3, needed)})
    result = run_cases(name, [f"pool {size} 0" for size in sizes], HOST)
    assert result.lines[1:] == [" -> ".join(pool_expectation(name, size)) for size in sizes]


def test_the_public_report_is_refused_with_both_figures():
    result = run_cases("planned_1785600", ["planned0 1024 0"], BOARDS[0])
    assert "planned buffer 0: 1785600B requested, 1024B available" in result.lines[1]


@pytest.mark.parametrize("name", FIXTURES)
def test_the_outputs_of_the_loads_that_follow_are_those_of_executorch(name):
    """The script compares every later run with its first; the first is compared here."""
    run = fixture_store.load(name).runs[0]
    files = run_cases(name, ["pool 0 0"], HOST).files
    for i, expected in enumerate(run.expected):
        actual = run.sampled(np.frombuffer(files[f"out{i}"], expected.dtype))
        np.testing.assert_allclose(actual, expected.reshape(-1), rtol=1e-5,
                                   atol=1e-5 * np.abs(expected).max())


# ---- temp memory, which no kernel of this build asks for: a check that asks is put between


class Asking(_picotorch.Context):
    """A context in which every instruction asks for 640 bytes of scratch."""

    def check(self, position):
        code = super().check(position)
        self._c.scratch_needed = 640
        return code


def method_that_asks(monkeypatch, temp):
    monkeypatch.setattr(_picotorch, "Context", Asking)
    planned = HierarchicalAllocator([aligned(size) for size in planned_sizes("linear_5")])
    return Method(MemoryManager(MemoryAllocator(aligned(4096)), planned, temp))


@pytest.mark.parametrize("size", [None, 0, 636, 639])
def test_temp_memory_that_is_absent_or_too_small(monkeypatch, size):
    temp = None if size is None else MemoryAllocator(aligned(size), "temp memory")
    method = method_that_asks(monkeypatch, temp)
    program = Program.load(BufferDataLoader(aligned(model("linear_5"))))
    with pytest.raises(Error) as caught:
        method.load(program)
    assert str(caught.value) == (
        f"MemoryAllocationFailed (0x21): temp memory: 640B requested, {size or 0}B available; "
        "hand over a temp allocator of that size")
    assert not method.is_loaded() and method.manager.method_allocator.used == 0
    method.manager.temp_allocator = MemoryAllocator(aligned(640), "temp memory")
    method.load(program)
    assert method.memory_report()["temp"] == {"used": 640, "size": 640}
