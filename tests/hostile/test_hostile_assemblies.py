"""Run programs of calls that no exporter would write, on the twin with the compiler's sanitizers, and
on a board. The board's outcome is the twin's."""

import functools

import pytest
from picotorch.run.job import Job
from support import hostile_runs
from support.flatbuffer_builder import build
from support.hostile_calls import Draw, random_data
from support.hostile_programs import LENGTH, Assembly
from support.targets import HOST, run_script

pytestmark = pytest.mark.thorough

PARTS, PROGRAMS = 4, 500  # programs in each part
VIEW_PARTS = 1
BOARD, BOARD_PROGRAMS = "mps2-an386", 60


@pytest.mark.reliability
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_are_rejected_or_run(part):
    outcomes = hostile_runs.outcomes("hostile_programs.py", "assembled", "programs", part, PROGRAMS)
    assert outcomes["ok"] > 0 and sum(outcomes.values()) == PROGRAMS


@pytest.mark.reliability
@pytest.mark.parametrize("part", range(VIEW_PARTS))
def test_random_views_are_rejected_or_run(part):
    outcomes = hostile_runs.outcomes("hostile_views.py", "views", "programs", part, 4 * PROGRAMS)
    assert outcomes["ok"] > 0 and sum(outcomes.values()) == 4 * PROGRAMS


@functools.cache
def sections():
    """Return programs without jumps, which may take 10,000,000 instructions, and without delegates."""
    found = {}
    for seed in range(10 * BOARD_PROGRAMS):
        one = Assembly(Draw(random_data(seed, LENGTH)))
        kinds = {kind for kind, _ in one.instructions}
        if not kinds & {"JumpFalseCall", "DelegateCall"} and len(found) < BOARD_PROGRAMS:
            program = one.program()
            program["execution_plan"][0] |= {"delegates": []}
            found[f"model{len(found)}"] = build(program)
    return Job(found)


def test_a_board_reports_the_same():
    wanted = run_script("damaged.py", sections(), HOST).lines
    assert len(wanted) == BOARD_PROGRAMS
    assert run_script("damaged.py", sections(), BOARD).lines == wanted
