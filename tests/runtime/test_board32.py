"""Test the MicroPython module at 32 bits with sanitizers: scripts of the boards, fixtures and untrusted
files print the twin's lines."""

import sys
from pathlib import Path

import numpy as np
import pytest
import test_event_tracer
import test_misuse
import test_values
from picotorch.run.job import Job
from support import board32, damage, fixture_store
from support.fixture_jobs import job_of, script_of
from support.targets import HOST, SCRIPTS, run_script

pytestmark = pytest.mark.thorough

FUZZ = Path(__file__).resolve().parents[1] / "hostile" / "fuzz"
sys.path.append(str(FUZZ))

import library  # noqa: E402
from replay import inputs  # noqa: E402

SECTIONS = {"values.py": test_values.sections, "misuse.py": test_misuse.sections,
            "tracing.py": test_event_tracer.sections}
LARGEST = 20000  # bytes of a fixture's program
AT_ONCE = 50  # programs; the heap has room for their names
FIXTURES = [fixture for fixture in fixture_store.load_all()
            if len(fixture.pte) <= LARGEST and fixture.runs and not fixture.backends]


@pytest.mark.parametrize("script", SECTIONS)
def test_every_call_ends_as_expected(script):
    lines = board32.run_script(script, SECTIONS[script]()).lines
    assert lines == (SCRIPTS / script).with_suffix(".exp").read_text().splitlines()


@pytest.mark.parametrize("name", [fixture.name for fixture in FIXTURES])
def test_fixtures_have_the_outputs_of_the_twin(name):
    fixture = fixture_store.load(name)
    script = script_of("fixture.py", [fixture])
    found = board32.run_script(script, job_of(fixture))
    wanted = run_script(script, job_of(fixture), HOST)
    for key in (key for key in wanted.files if key.startswith("out")):
        files = found.files[key], wanted.files[key]
        if files[0] != files[1]:  # the sign of a computed NaN depends on the processor
            run, i = key.removeprefix("out").split("_")
            dtype = fixture.runs[int(run)].expected[int(i)].dtype
            np.testing.assert_array_equal(*(np.frombuffer(file, dtype) for file in files))


def test_kept_programs_end_as_on_the_twin():
    programs = [data for name in library.OTHERS
                for _, data in inputs(FUZZ / "corpus" / f"{name}.tgz")
                if data[4:8] == library.IDENTIFIERS[0]]
    for start in range(0, len(programs), AT_ONCE):
        named = {f"model{i}": data for i, data in enumerate(programs[start : start + AT_ONCE])}
        wanted = run_script("damaged.py", Job(dict(named)), HOST).lines
        lines = board32.run_script("damaged.py", Job(dict(named))).lines
        # an int of more than 30 bits is read with the heap unlocked
        assert [(line, other) for line, other in zip(lines, wanted, strict=True)
                if not damage.ends_alike(line, other) and "heap unlocked" not in line] == []
