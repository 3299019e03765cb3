"""Run the library without Python at 64 and at 32 bits, with gcc's sanitizers: fixtures, malformed files
and the fuzzers' corpus. Neither width has a finding, and both have the same errors, records in the pool
and outputs."""

import sys
from pathlib import Path

import pytest
from support import figures, fixture_store, malformed, replayed

pytestmark = pytest.mark.thorough  # the test builds the library twice

FUZZ = Path(__file__).resolve().parents[1] / "hostile" / "fuzz"
sys.path.append(str(FUZZ))

import library  # noqa: E402
from replay import inputs  # noqa: E402

malformed.load_kinds()
CORPORA = sorted(path.stem for path in (FUZZ / "corpus").glob("*.tgz"))
# Fixtures whose memories are larger than the replay's, or that have no kernel
NOT_LOADED = {"missing_operators", "planned_1785600", "simple_conv_256"}
# Fixtures that exceed the time limit of the replay
NOT_EXECUTED = NOT_LOADED | {"mobilenet_v1_025", "resnet8"}


def replay(subject, named):
    """Return the results at 64 bits, and assert that the results at 32 bits are equal."""
    wide, narrow = (replayed.run(bits, named) for bits in replayed.WIDTHS)
    different = [(name, a, b) for (name, _), a, b in zip(named, wide, narrow, strict=True) if a != b]
    figures.record("sanitized_library", subject, inputs=len(named), different=len(different),
                   executions=sum(result.executed for result in wide))
    assert different == []
    return wide


@pytest.mark.reliability
def test_fixtures_run():
    fixtures = fixture_store.load_all()
    results = replay("fixtures", [(fixture.name, library.joined(fixture.pte, fixture.data))
                                  for fixture in fixtures])
    names = [fixture.name for fixture in fixtures]
    loaded = {name for name, result in zip(names, results, strict=True) if result.loaded}
    executed = {name for name, result in zip(names, results, strict=True) if result.executed}
    assert set(names) - loaded <= NOT_LOADED
    assert set(names) - executed <= NOT_EXECUTED


@pytest.mark.reliability
@pytest.mark.parametrize("group", [group for group in malformed.GROUPS if group != "bundled"])
def test_malformed_files_do_no_harm(group):
    named = [(file.label, library.joined(file.data, file.files))
             for kind in malformed.of_group(group) for file in malformed.files(kind)]
    replay(group, named)


@pytest.mark.reliability
@pytest.mark.parametrize("archive", CORPORA)
def test_kept_inputs_do_no_harm(archive):
    named = [(name, data) for name, data in inputs(FUZZ / "corpus" / f"{archive}.tgz")
             if data[4:8] in library.IDENTIFIERS]
    replay(f"corpus_{archive}", named)


def test_a_wrong_access_is_seen():
    """The program reads one byte too many of this input."""
    for bits in replayed.WIDTHS:
        replayed.build(bits)
        with pytest.raises(AssertionError, match="overflow"):
            replayed.run(bits, [("wrong", b"\0\0\0\0WRNG")])
