"""Test every fixture with every size of every memory, from nothing to enough. Each size has the right
error, nothing is written outside the memories, and a later load of the same objects with enough memory
works. The twin runs all sizes. The boards run the sizes at which the outcome changes, and print the
twin's lines."""

import functools

import numpy as np
import pytest
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
    from_blob,
)
from picotorch.boards.boards import load_board
from picotorch.errors import MEMORY_ALLOCATION_FAILED
from picotorch.host.tensors import from_stored, to_stored
from picotorch.run.job import Job
from support import figures, fixture_jobs, fixture_store, programs
from support.fixture_jobs import metas
from support.flatbuffer_builder import int_value
from support.programs import tensor
from support.targets import HOST, SCRIPT_BOARDS, aligned, on_boards, run_script
from support.tiers import SWEEP

pytestmark = pytest.mark.thorough

FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()}
EVENT_BYTES = 16
RUNS_AFTER = 1024  # refusals
# `make reliability` tries all sizes. Without it, only every n-th size of large memories is tried.
STEP = 4  # bytes
MAX_PLANNED = 16384  # sizes of a planned buffer
PACKED_STEP = 4 if SWEEP else 512  # loading takes longest if kernels pack weights
PART_BYTES = 2_000_000  # planned memory of which a test tries all sizes
# `make reliability` runs on all boards whose heap has room for the script.
SWEPT_BOARDS = SCRIPT_BOARDS if SWEEP else ("mps2-an386",)
# The fixtures for one boot of a board
MAX_FIXTURES = 24
ROOM = 0.9  # maximum part of the memory for jobs, which also has the script


def job_of(fixtures, **settings):
    job = Job()
    for number, fixture in enumerate(fixtures):
        fixture_jobs.add_fixture(job, fixture, f"{number}/")
    job.add_settings("sweep", {"fixtures": len(fixtures), **settings})
    return job


def run(fixtures, target, **settings):
    script = fixture_jobs.script_of("memory_failures.py", fixtures)
    return run_script(script, job_of(fixtures, **settings), target)


def split(lines):
    """Return the lines of the outcomes, and the counts."""
    counts = [line.split() for line in lines if line.startswith("tried ")]
    return ([line for line in lines if not line.startswith("tried ")],
            {key: int(count) for _, key, count in counts})


def planned_sizes(meta):
    return [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]


def is_refused(fixture, method):
    entry = fixture.methods[method]
    return any(name in (*entry["operators"], *entry["backends"]) for name in fixture.refused)


def check_steps(fixture, lines):
    """Compare the memory that loading takes, for all methods, with the program's own description."""
    steps = {tuple(line.split()[:2]): [int(word) for word in line.split()[2:]] for line in lines
             if not any(is_refused(fixture, method) and line.startswith(method)
                        for method in fixture.methods)}
    for method, meta in metas(fixture).items():
        if is_refused(fixture, method):
            continue
        for i, size in enumerate(planned_sizes(meta)):
            assert steps[method, f"planned{i}"] == ([size] if size else [])
        assert steps[method, "tracer"] == [(meta.num_instructions() + 1) * EVENT_BYTES]
        assert len(steps[method, "temp"]) <= 1
        for pool in (steps[method, "pool"], steps[method, "packed"]):
            assert pool == sorted(set(pool)) and pool[0] > 0
        assert steps[method, "packed"][: len(steps[method, "pool"])] == steps[method, "pool"]


def planned_step(fixture):
    largest = max(sum(planned_sizes(meta)) for meta in metas(fixture).values())
    return STEP if SWEEP else STEP * -(-largest // (STEP * MAX_PLANNED))


def parts():
    """Yield (fixture, "k/n") of all tests of the twin."""
    for name, fixture in FIXTURES.items():
        largest = max(sum(planned_sizes(meta)) for meta in metas(fixture).values())
        count = 1 + largest // PART_BYTES if SWEEP else 1
        yield from ((name, f"{k}/{count}") for k in range(count))


@pytest.mark.reliability
@pytest.mark.parametrize(("name", "share"), list(parts()))
def test_every_size_of_every_memory(name, share):
    fixture = FIXTURES[name]
    part = f"{name}_{share.replace('/', '_')}"
    figures.record("memory", part, wrong=1)  # until the script, which judges, has ended
    result = run([fixture], HOST, step=STEP, planned=planned_step(fixture), pack_weights=PACKED_STEP,
                 runs=RUNS_AFTER, share=share)
    lines, tried = split(result.lines)
    check_steps(fixture, lines)
    figures.record("memory", part, wrong=0, **tried)


def batches(board):
    """Yield names of fixtures, as many as a board can run in one boot."""
    room = ROOM * load_board(board).job.size
    batch, size, has_backends = [], 0, False
    for name in [name for name, other in on_boards(FIXTURES) if other == board]:
        needed = len(fixture_jobs.job_of(FIXTURES[name]).to_bytes())
        backends = bool(FIXTURES[name].backends)
        if batch and (len(batch) == MAX_FIXTURES or size + needed > room
                      or backends != has_backends):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(name)
        size += needed
        has_backends = backends
    yield tuple(batch)


@functools.cache
def outcomes(batch, target):
    """Return the outcomes at the sizes where they change."""
    fixtures = [FIXTURES[name] for name in batch]
    return split(run(fixtures, target, step=0, planned=0, pack_weights=0, runs=0).lines)


@pytest.mark.reliability
@pytest.mark.parametrize(("board", "batch"),
                         [(board, batch) for board in SWEPT_BOARDS for batch in batches(board)],
                         ids=lambda value: value if isinstance(value, str) else value[0])
def test_every_outcome_on_a_board(board, batch):
    part = f"{board}_{batch[0]}"
    figures.record("memory_boards", part, wrong=1)  # until the test compared board and twin
    lines, tried = outcomes(batch, board)
    assert (lines, tried) == outcomes(batch, HOST)
    figures.record("memory_boards", part, wrong=0, **tried)


# ---- requests at other times than load


def half_addmm(temp):
    """Load out = self + x @ w, of halves. x is 2 by up to 8, of which 4 fit w. With 8 the product is
    rejected before it requests scratch memory, so load does not plan for it."""
    half = 5
    values = [tensor([3], 0, dtype=half), tensor([2, 8], 16, dtype=half, shape_dynamism=1),
              tensor([4, 3], 48, dtype=half), int_value(1), tensor([2, 3], 80, dtype=half)]
    made = programs.program(programs.plan(values, [programs.call(0, 0, 1, 2, 3, 3, 4, 4)],
                                          ["aten::addmm.out"], [0, 1, 2], [4], [96]))
    manager = MemoryManager(MemoryAllocator(aligned(512)), HierarchicalAllocator([aligned(96)]), temp)
    method = Program.load(BufferDataLoader(aligned(made))).load_method("forward", manager)
    ones = np.ones(16, np.float16)
    method.set_input(ones[:3], 0)
    method.set_input(from_blob(ones[:8].view(np.uint16), [2, 4], "Half"), 1)
    method.set_input(ones[:12], 2)
    return method


@pytest.mark.parametrize("size", [None, *range(0, 12, 4), 9, 10, 11])
def test_temp_memory_that_only_an_execution_requests(size):
    region = aligned(128)
    region[:] = b"\xA5" * 128
    temp = None if size is None else MemoryAllocator(region[64 : 64 + size], "temp memory")
    method = half_addmm(temp)
    before = bytes(method.manager.planned_memory.buffers[0])
    for run in (method.execute, method.step, method.execute):
        with pytest.raises(Error) as caught:
            run()
        assert str(caught.value) == (
            f"MemoryAllocationFailed (0x21): instruction 0: 12B requested, {size or 0}B available: "
            "aten::addmm.out: needs more temp memory for these sizes than is available; "
            "pass more temp memory")
    assert bytes(method.manager.planned_memory.buffers[0]) == before
    assert bytes(region) == b"\xA5" * 128
    method.unload()


def test_temp_memory_that_an_execution_requests_and_gets():
    method = half_addmm(MemoryAllocator(aligned(12), "temp memory"))
    method.execute()
    assert list(np.array(method.get_output(0).data, np.uint16).view(np.float16)) == [5] * 6


# ---- a loaded method beside one that does not fit


STATEFUL = ("counter", "counter_initialized", "gru_stateful", "kv_cache", "kv_cache_indexed",
            "lstm_stateful", "shifted_cache")


@pytest.mark.reliability
@pytest.mark.parametrize("name", STATEFUL)
def test_a_method_keeps_its_state_while_others_fail_to_load_behind_it(name):
    """Before each run of the method, another method tries every smaller pool size in the same pool."""
    fixture = FIXTURES[name]
    program = Program.load(BufferDataLoader(aligned(fixture.pte)))
    (method_name,) = fixture.methods
    meta = program.method_meta(method_name)
    pool = MemoryAllocator(aligned(16384))
    planned = [[aligned(size) for size in planned_sizes(meta)] for _ in range(2)]
    temp = MemoryAllocator(aligned(4096), "temp memory")
    first, second = [Method(MemoryManager(pool, HierarchicalAllocator(buffers), temp))
                     for buffers in planned]
    first.load(program, method_name)
    used, wrong = pool.used, 0
    second.load(program, method_name)
    needed = pool.used - (used + 7 & -8)
    second.unload()
    sizes = range(0, used + needed + 7 & -8, 4)
    for run in fixture.runs:
        kept = [bytes(buffer) for buffer in (pool.buffer[:used], *planned[0])]
        for size in sizes:
            pool.size = size
            with pytest.raises(Error) as caught:
                second.load(program, method_name)
            wrong += caught.value.code != MEMORY_ALLOCATION_FAILED or pool.used != used
        pool.size = len(pool.buffer)
        assert kept == [bytes(buffer) for buffer in (pool.buffer[:used], *planned[0])]
        check_run(first, meta, fixture, run)
    figures.record("memory_beside", name, sizes=len(sizes) * len(fixture.runs), wrong=wrong,
                   runs=len(fixture.runs))
    assert wrong == 0


def check_run(method, meta, fixture, run):
    for i, value in enumerate(run.inputs):
        method.set_input(to_stored(value, meta.input_tensor_meta(i).dim_order()), i)
    method.execute()
    for i, expected in enumerate(run.expected):
        info = meta.output_tensor_meta(i)
        actual = from_stored(bytes(method.get_output(i).data), info)
        fixture_store.assert_close(actual, expected, fixture.methods[run.method]["outputs"][i]["dtype"])


# ---- the check of the bytes outside the memories


def test_a_write_beside_the_memories_ends_a_script():
    """The write is behind an allocated memory, or at the target of a null pointer, where a board would
    fault."""
    for write, message in [("beside", "guard bytes in memory pool were written"),
                           ("null", "the bytes at address 0 were written")]:
        with pytest.raises(AssertionError, match=message):
            run_script("stray_writes.py", {"write": write.encode()}, HOST)
    assert run_script("stray_writes.py", {"write": b"null"}, SWEPT_BOARDS[0]).lines == ["is read-only"]
    assert run_script("stray_writes.py", {"write": b"none"}, SWEPT_BOARDS[0]).lines == []
