"""Test malformed files, over 1,000, of every kind: each is rejected by name, in bounded time, on the
twin with the compiler's sanitizers. Files that ExecuTorch accepts by contract run.

malformed.py defines the kinds and their files.
"""

import collections
import dataclasses
import functools
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from picotorch import register_backend
from picotorch.run.job import Job
from picotorch.schema import ERROR_NAMES
from support import exercise, figures, fixture_store, malformed, malformed_calls, sanitized
from support.targets import HOST, run_script
from support.tiers import SWEPT_BOARDS

pytestmark = pytest.mark.thorough

TIMEOUT = 300.0  # seconds for all the files of a group
SECONDS = 2.0  # processor time for one file; most need a few milliseconds

malformed.load_kinds()


@dataclasses.dataclass
class Report:
    """Results of a group. results: (kind, label, outcome, seconds) of each file. digest: of the bytes
    of the files. error: the last output of a process that died, and its file."""

    results: list[tuple]
    digest: str
    error: str


def run_group(group):
    command = [sys.executable, Path(malformed.__file__), group]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT,
                           env=sanitized.environment() or os.environ)
    *lines, last = ended.stdout.splitlines() or [""]
    results = []
    for line in lines:
        label, result = line.split("\t")
        kind, outcome, seconds = json.loads(result)
        results.append((kind, json.loads(label), outcome, seconds))
    return Report(results, last, f"{last}: {ended.stderr[-3000:]}" if ended.returncode else "")


@pytest.mark.reliability
@pytest.mark.parametrize("group", malformed.GROUPS)
def test_each_is_rejected_by_name_or_accepted_by_contract(group):
    report = run_group(group)
    wrong = [result for result in report.results
             if result[2] not in malformed.KINDS[result[0]].outcomes]
    slow = [result for result in report.results if result[3] > SECONDS]
    record(group, report, wrong, slow)
    assert (report.error, wrong, slow) == ("", [], [])
    assert list(dict.fromkeys(kind for kind, *_ in report.results)) == malformed.of_group(group)
    assert report.digest == digest_of(group), "other files than in another process"


def record(group, report, wrong, slow):
    kinds = collections.Counter(kind for kind, *_ in report.results)
    outcomes = collections.Counter(outcome for _, _, outcome, _ in report.results)
    accepted = sum(outcomes.pop(name, 0) for name in ("ok", "EndOfMethod"))
    refused = {name: count for name, count in outcomes.items() if name in ERROR_NAMES.values()}
    figures.record("malformed", group, files=len(report.results), kinds=dict(kinds), refused=refused,
                   accepted_by_contract=accepted if group == "contract" else 0,
                   crashed=int(report.error != ""), hung=len(slow), wrong=len(wrong),
                   largest_seconds=max((seconds for *_, seconds in report.results), default=0))


def digest_of(group):
    digest = hashlib.sha256()
    for kind in malformed.of_group(group):
        for file in malformed.files(kind):
            digest.update(file.data + b"".join(file.files))
    return digest.hexdigest()


@functools.cache
def counts():
    """Count the files by kind and fixture, including files that became a .bpte or an example call."""
    return collections.Counter((kind, file.label.split(":")[0])
                               for kind in malformed.KINDS for file in malformed.files(kind))


def test_the_undamaged_program_runs():
    """This shows that the single change is rejected, not the rewriting of the file."""
    of_calls = malformed.of_group("calls")
    names = {name for kind, name in counts() if kind not in of_calls}
    names.remove("none_input")  # None is a value that the caller sets
    fixtures = [fixture for fixture in fixture_store.load_all() if fixture.name in names]
    assert len(fixtures) > 30
    for fixture in fixtures:
        part = malformed.parts(fixture.name)
        for backend in fixture.backends:
            register_backend(backend, exercise.Curious())
        for data in (fixture.pte, part.together(), part.grown(b"")):
            outcome = exercise.outcome(data, fixture.data, thorough=False)
            assert outcome == "ok", fixture.name


def test_the_calls_that_are_changed_fit():
    signatures = malformed_calls.signatures()
    assert len(signatures) > 100
    for signature in signatures:
        source, operator, part, *_ = malformed_calls.prepared(signature)
        outcome = exercise.outcome(part.data, thorough=False)
        # with inputs of zeros, some files are rejected during the run
        assert outcome in ("ok", "InvalidArgument", "InvalidType"), (source, operator)


def test_there_are_many_of_every_kind():
    assert {kind for kind, _ in counts()} == set(malformed.KINDS)
    assert sum(count for (kind, _), count in counts().items() if malformed.KINDS[kind].errors) > 1500


# ---- on a board

MANY_ON = "mps2-an386"
OF_A_KIND = {True: 5, False: 2}  # files of a kind, on this and on each other board
AT_ONCE = 45  # files in a run; a board's heap has room for their names
LARGEST = 20000  # bytes
NOT_ON_BOARDS = ("bundled",)  # only the host reads these
# Limits of the instructions for one file, from its first byte to the error: a constant, and a number
# for each byte
INSTRUCTIONS, PER_BYTE = 8_000_000, 1000
MORE = {"endless loop": 2_000_000_000,  # 10,000,000 instructions of the program
        "jumps to and fro across many instructions": 30_000_000}  # loading follows jumps so far


def chosen(count):
    """Select `count` files of every kind, from its first to its last."""
    found = []
    for kind in malformed.KINDS:
        if malformed.KINDS[kind].group not in NOT_ON_BOARDS:
            small = [file for file in malformed.files(kind) if len(file.data) <= LARGEST]
            few = 1 if kind == "endless loop" else count  # a second or more each
            found += small[:: max(len(small) // few, 1)][:few]
    return found


def job(files):
    sections = {"backends": ",".join(sorted({name for file in files for name in file.backends}))}
    sections = {name: text.encode() for name, text in sections.items() if text}
    for i, file in enumerate(files):
        sections[f"model{i}"] = file.data
        sections |= {f"data{i}_{k}": data for k, data in enumerate(file.files)}
    return Job(sections)


@pytest.mark.reliability
@pytest.mark.parametrize("board", SWEPT_BOARDS)
def test_a_board_reports_the_same(board):
    files = chosen(OF_A_KIND[board == MANY_ON])
    assert len(files) >= 200
    assert {file.kind for file in files} == {
        name for name, kind in malformed.KINDS.items() if kind.group not in NOT_ON_BOARDS}
    outcomes, crashed, wrong, slow, maximum = collections.Counter(), [], [], [], 0
    for start in range(0, len(files), AT_ONCE):
        part = files[start : start + AT_ONCE]
        wanted = run_script("damaged.py", job(part), HOST).lines
        try:
            found = run_script("damaged.py", job(part), board)
        except AssertionError as error:
            crashed.append(str(error)[-2000:])
            continue
        instructions = np.frombuffer(found.files["instructions"], "<u4").tolist()
        assert len(found.lines) == len(wanted) == len(part)
        for file, *lines, count in zip(part, wanted, found.lines, instructions, strict=True):
            outcome = lines[1].split()[1]
            outcomes[outcome] += 1
            if lines[0] != lines[1] or outcome not in malformed.KINDS[file.kind].outcomes:
                wrong.append((file.label, *lines))
            if count > bound(file):
                slow.append((file.label, count))
            maximum = max(maximum, 0 if file.kind in MORE else count)
    accepted = outcomes.pop("ok", 0)
    figures.record("malformed_on_boards", board, files=len(files), refused=dict(outcomes),
                   accepted_by_contract=accepted, crashed=len(crashed), hung=len(slow),
                   wrong=len(wrong), largest_instructions=maximum)
    assert (crashed, wrong, slow) == ([], [], [])


def bound(file):
    """Return the maximum of instructions that a board may need for a file."""
    nbytes = len(file.data) + sum(map(len, file.files))
    return MORE.get(file.kind, INSTRUCTIONS) + PER_BYTE * nbytes
