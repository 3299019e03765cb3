"""Test calls in the wrong order, with the wrong index or the wrong buffer, on the twin and on the
boards. Each has its error, nothing is allocated, and later calls work."""

import pytest
from support import fixture_store
from support.targets import HOST, SCRIPT_BOARDS, SCRIPTS, run_script

pytestmark = pytest.mark.check

PROGRAMS = ("add2_5", "amax_amin", "embedding", "two_methods", "unplanned_input", "unplanned_io")


@pytest.mark.parametrize("target", (HOST, *SCRIPT_BOARDS))
def test_every_call_ends_as_expected(target):
    sections = {name: fixture_store.load(name).pte for name in PROGRAMS}
    result = run_script("states.py", sections, target)
    assert result.lines == (SCRIPTS / "states.exp").read_text().splitlines()
