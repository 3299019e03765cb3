"""Every fixture with every size of every memory, from nothing to enough: the right error, nothing
written beside the memories, and a load with enough of them on the same objects works. All sizes on the
twin; on the boards those at which the outcome changes, with the twin's lines."""

import functools
import os

import figures
import fixture_jobs
import fixture_store
import pytest
from fixture_jobs import metas
from picotorch.host.boards import load_board
from picotorch.host.job import Job
from targets import BOARDS, HOST, on_boards, run_script

FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()}
EVENT_BYTES = 16
RUNS_AFTER = 1024  # refusals
# `make reliability` tries all sizes; without it one in so many of large memories is left out.
ALL_SIZES = os.environ.get("PICOTORCH_SWEEP") == "all"
STEP = 4  # bytes
MOST_PLANNED = 16384  # sizes of a planned buffer
PREPARED_STEP = 4 if ALL_SIZES else 512  # loading takes longest where kernels prepare weights
PART_BYTES = 2_000_000  # of planned memory that a test tries all sizes of
# The one with the most and the one with the least memory; `make reliability` takes all boards.
SWEPT_BOARDS = BOARDS if ALL_SIZES else ("mps2-an386", "netduinoplus2")
# What a boot of a board gets
MOST_FIXTURES = 24
ROOM = 0.9  # of the memory for jobs, which holds the script, too
SMALL_POOL = 65536


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
    """The lines of the outcomes, and what was counted."""
    counts = [line.split() for line in lines if line.startswith("tried ")]
    return ([line for line in lines if not line.startswith("tried ")],
            {key: int(count) for _, key, count in counts})


def planned_sizes(meta):
    return [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]


def is_refused(fixture, method):
    entry = fixture.methods[method]
    return any(name in (*entry["operators"], *entry["backends"]) for name in fixture.refused)


def check_steps(fixture, lines):
    """What loading asks for, of all methods, beside what the program says of itself."""
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
        for pool in (steps[method, "pool"], steps[method, "prepared"]):
            assert pool == sorted(set(pool)) and pool[0] > 0
        assert steps[method, "prepared"][: len(steps[method, "pool"])] == steps[method, "pool"]


def planned_step(fixture):
    largest = max(sum(planned_sizes(meta)) for meta in metas(fixture).values())
    return STEP if ALL_SIZES else STEP * -(-largest // (STEP * MOST_PLANNED))


def parts():
    """(fixture, "k/n") of all tests of the twin."""
    for name, fixture in FIXTURES.items():
        largest = max(sum(planned_sizes(meta)) for meta in metas(fixture).values())
        count = 1 + largest // PART_BYTES if ALL_SIZES else 1
        yield from ((name, f"{k}/{count}") for k in range(count))


@pytest.mark.reliability
@pytest.mark.parametrize(("name", "share"), list(parts()))
def test_every_size_of_every_memory(name, share):
    fixture = FIXTURES[name]
    result = run([fixture], HOST, step=STEP, planned=planned_step(fixture), prepare=PREPARED_STEP,
                 runs=RUNS_AFTER, share=share)
    lines, tried = split(result.lines)
    figures.record("memory", f"{name}_{share.replace('/', '_')}", **tried)
    check_steps(fixture, lines)


def batches(board):
    """Names of fixtures, as many as a board can take at a time."""
    room = ROOM * load_board(board).job.size
    batch, size, has_backends = [], 0, False
    for name in [name for name, other in on_boards(FIXTURES) if other == board]:
        needed = len(fixture_jobs.job_of(FIXTURES[name]).to_bytes())
        backends = bool(FIXTURES[name].backends)
        if batch and (len(batch) == MOST_FIXTURES or size + needed > room
                      or backends != has_backends):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(name)
        size += needed
        has_backends = backends
    yield tuple(batch)


@functools.cache
def outcomes(batch, target, prepare):
    """Of the sizes at which they change."""
    settings = {"prepare": 0} if prepare else {}
    return split(run([FIXTURES[name] for name in batch], target, step=0, planned=0, runs=0,
                     **settings).lines)


@pytest.mark.reliability
@pytest.mark.parametrize(("board", "batch"),
                         [(board, batch) for board in SWEPT_BOARDS for batch in batches(board)],
                         ids=lambda value: value if isinstance(value, str) else value[0])
def test_every_outcome_on_a_board(board, batch):
    prepare = load_board(board).arenas["pool"].size > SMALL_POOL
    lines, tried = outcomes(batch, board, prepare)
    figures.record("memory_boards", f"{board}_{batch[0]}", **tried)
    assert (lines, tried) == outcomes(batch, HOST, prepare)


def test_a_write_beside_the_memories_ends_a_script():
    """Beside what was taken, or to where a null pointer leads; a board would fault there."""
    for write, message in [("beside", "guard bytes in memory pool were written"),
                           ("null", "the bytes at address 0 were written")]:
        with pytest.raises(AssertionError, match=message):
            run_script("stray_writes.py", {"write": write.encode()}, HOST)
    assert run_script("stray_writes.py", {"write": b"null"}, SWEPT_BOARDS[0]).lines == ["is read-only"]
    assert run_script("stray_writes.py", {"write": b"none"}, SWEPT_BOARDS[0]).lines == []
