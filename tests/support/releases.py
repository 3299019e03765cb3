"""Run the programs of each release of ExecuTorch, and compare the outputs with the release's own.

    outcome("1.2.0/int8_pad")      # "equal", "close" or "rejected"
    table()                        # the outcomes of all programs, as docs/operators.md has them
"""

import functools

from picotorch.compile import ptm_writer
from picotorch.host.tensors import from_stored
from support import fixture_store
from support.fixture_jobs import job_of, metas, script_of
from support.fixture_store import assert_close
from support.targets import HOST, run_script

FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_releases()}
RELEASES = sorted({name.partition("/")[0] for name in FIXTURES})
PROGRAMS = sorted({name.partition("/")[2] for name in FIXTURES})
# Programs that their own release cannot run either, and the error
REFUSED = {
    "1.0.1/int8_add": "instruction 2: cortex_m::quantized_add.out: scaled as in ExecuTorch 1.0, where "
                      "sums saturate; export the program again with ExecuTorch 1.1 or later",
    "1.2.0/int8_pad": "instruction 1: cortex_m::pad.out: the dim orders of in and out must both be "
                      "contiguous or channels_last, unlike in ExecuTorch 1.2; export the program again "
                      "with 1.3 or later",
}


class Compiled:
    """A fixture whose program is its .ptm file."""

    data = ()

    def __init__(self, fixture):
        self._fixture = fixture
        self.pte = ptm_writer.compile_ptm(fixture.pte, fixture.data).data

    def __getattr__(self, name):
        return getattr(self._fixture, name)


@functools.cache
def run(name, target=HOST, compiled=False):
    """Run a program on a target; return lines and files."""
    fixture = Compiled(FIXTURES[name]) if compiled else FIXTURES[name]
    return run_script(script_of("fixture.py", [fixture]), job_of(fixture), target)


def outcome(name):
    """Return the outcome on the twin: "equal" in the Cortex-M dialect, "close" in float, or "rejected".

    Raise AssertionError if an output differs.
    """
    fixture, result = FIXTURES[name], run(name)
    if result.lines[0].startswith("load forward NotSupported"):
        return "rejected"
    for number, one in enumerate(fixture.runs):
        assert f"run {number} ok" in result.lines, result.lines
        for i, expected in enumerate(one.expected):
            info = metas(fixture)[one.method].output_tensor_meta(i)
            actual = from_stored(result.files[f"out{number}_{i}"], info)
            assert_close(actual, expected, info.dtype)
            if is_dialect(name):
                assert (actual == expected).all(), f"{name}: output {i}"
    return "equal" if is_dialect(name) else "close"


def is_dialect(name):
    """Return True for a program in the Cortex-M dialect, whose outputs are exact."""
    return FIXTURES[name].entry["reference"] == "dialect"


def table():
    """Return the outcomes by program and release, in Markdown."""
    rows = [["program", *RELEASES], ["---"] * (len(RELEASES) + 1)]
    rows += [[f"`{program}`", *(outcome(f"{release}/{program}") if f"{release}/{program}" in FIXTURES
                                else "" for release in RELEASES)] for program in PROGRAMS]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
