"""Test truncated and damaged programs: each works or ends with a named Error, in bounded time. They run
on the twin with the compiler's sanitizers; some of them run on the boards."""

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from picotorch.run.job import Job
from support import damage, figures, fixture_store, sanitized
from support.targets import HOST, run_script
from support.tiers import SWEEP, SWEPT_BOARDS

pytestmark = pytest.mark.thorough

TIMEOUT = 300.0  # seconds for all the damage of a kind to one program
TRUNCATED = ("add_1", "cat", "ds_cnn", "dynamic_batch", "inline_constants", "linear_5",
             "several_chains", "two_methods", "wide_alignment")
# make test-rest runs one of each kind
SOME = ("add_1", "delegate_named_data", "dynamic_batch", "inline_constants", "several_chains")
FLIPPED = ("add_1", "conv2d_depthwise", "delegate_named_data", "dynamic_batch", "embedding",
           "inline_constants", "linear_5", "max_pool2d", "several_chains", "slices", "split",
           "unplanned_io")
STEP = 17  # the distance of two damaged programs that run on a board


def test_the_compiler_has_sanitizers():
    if sanitized.environment() is None:
        pytest.skip("gcc has no libasan here: the tests of this file run without sanitizers")


@pytest.mark.reliability
@pytest.mark.parametrize(("kind", "name"),
                         [(kind, name)
                          for kind, names in (("truncations", TRUNCATED), ("flips", FLIPPED))
                          for name in names if SWEEP or name in SOME])
def test_a_damaged_program_works_or_is_rejected(kind, name):
    command = [sys.executable, Path(damage.__file__), kind, name]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT,
                           env=sanitized.environment() or os.environ)
    report = json.loads(ended.stdout or '{"counts": {}, "wrong": []}')
    counts = collections.Counter(report["counts"])
    figures.record("damage", f"{kind}_{name}", files=counts.total(), wrong=len(report["wrong"]),
                   crashed=int(ended.returncode != 0), accepted=counts.pop("ok", 0), refused=counts)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert report["wrong"] == []
    assert counts["InvalidProgram"] > 100


def test_a_truncated_program_never_loads():
    data = fixture_store.load("add_1").pte
    counts, wrong = damage.try_all(damage.truncations(data))
    assert (list(counts), wrong) == (["InvalidProgram"], [])


@pytest.mark.reliability
@pytest.mark.parametrize("board", SWEPT_BOARDS)
@pytest.mark.parametrize("name", ["add_1", "linear_5"])
def test_a_board_reports_the_same_for_damaged_programs(name, board):
    data = fixture_store.load(name).pte
    programs = [*list(damage.flips(data))[::STEP], *list(damage.truncations(data))[::STEP]]
    for part in (programs[::2], programs[1::2]):  # the heap has room for the names of half of them
        job = Job({f"model{i}": program for i, (_, program) in enumerate(part)})
        wanted = run_script("damaged.py", Job(dict(job._sections)), HOST)
        lines = run_script("damaged.py", job, board).lines
        assert [pair for pair in zip(lines, wanted.lines, strict=True)
                if not damage.ends_alike(*pair)] == []
        assert len(wanted.lines) == len(part)
