"""Run 100,000 inferences of a model with state, with loads, failures and unloads in between. The bytes
on the twin and on a board are the same, and no memory grows."""

import os

import pytest
from picotorch.run.job import Job
from support import figures, fixture_store
from support.faulty import faulty
from support.targets import HOST, run_script

pytestmark = pytest.mark.thorough

BOARD = "mps2-an386"
PARTS, INFERENCES = 4, 25_000
ON_BOARD, EVERY = 1000, 250
FIXTURE = "gru_stateful"


def run(part, target, count):
    fixture = fixture_store.load(FIXTURE)
    job = Job({"model": fixture.pte, "broken": fixture.pte[:1000], "faulty": faulty(),
               "inputs": b"".join(each.inputs[0].tobytes() for each in fixture.runs)})
    job.add_settings("settings", {"seed": 7 + part, "count": count, "every": EVERY})
    return run_script("long_run.py", job, target).lines


def open_files():
    return len(os.listdir("/proc/self/fd"))


def events(lines):
    """Return the count of each event."""
    return {name: int(number) for name, number in
            (line.split(": ") for line in lines if not line[0].isdigit())}


@pytest.mark.reliability
@pytest.mark.parametrize("part", range(PARTS))
def test_many_inferences_on_the_twin(part):
    files = open_files()
    lines = run(part, HOST, INFERENCES)
    assert open_files() == files
    found = events(lines)
    figures.record("long_run", f"twin_{part}", inferences=INFERENCES, events=found)
    assert min(found.values()) > INFERENCES / 1000, found


@pytest.mark.reliability
def test_the_first_inferences_on_a_board_equal_the_twin():
    lines = run(0, BOARD, ON_BOARD)
    assert sum(line[0].isdigit() for line in lines) == ON_BOARD // EVERY
    assert lines == run(0, HOST, ON_BOARD)
    found = events(lines)
    figures.record("long_run", BOARD, inferences=ON_BOARD, events=found)
    assert min(found.values()) > 0, found
