"""Check that the committed fixtures are complete, small, and agree with their index."""

import hashlib
import math

import numpy as np
import pytest
from support import fixture_store

FIXTURES = fixture_store.load_all()


@pytest.fixture(params=FIXTURES, ids=lambda fixture: fixture.name)
def stored(request) -> fixture_store.Fixture:
    return request.param


def test_program_is_the_indexed_one(stored):
    assert len(stored.pte) == stored.entry["pte_bytes"]
    assert hashlib.sha256(stored.pte).hexdigest() == stored.entry["sha256"]
    assert stored.pte[4:8] == b"ET12"


def has_sizes(shape, wanted):
    """Return True for the sizes of a signature, or for at most as many elements if the sizes are
    dynamic."""
    if wanted.get("dynamic"):
        return len(shape) == len(wanted["sizes"]) and math.prod(shape) <= math.prod(wanted["sizes"])
    return list(shape) == wanted["sizes"]


def test_inputs_have_the_signature_of_the_method(stored):
    for run in stored.runs:
        signature = stored.methods[run.method]["inputs"]
        assert len(run.inputs) == len(signature)
        for array, wanted in zip(run.inputs, signature, strict=True):
            if wanted["type"] == "Tensor":
                assert array.dtype == fixture_store.stored_dtype(wanted["dtype"])
                assert has_sizes(array.shape, wanted)
            else:
                assert array == wanted["value"]


def test_outputs_have_the_signature_of_the_method(stored):
    for run in stored.runs:
        signature = stored.methods[run.method]["outputs"]
        assert len(run.expected) == len(signature)
        for array, wanted in zip(run.expected, signature, strict=True):
            if wanted["type"] != "Tensor":
                assert wanted.get("dynamic") or array == wanted["value"]
                continue
            whole = np.empty(wanted["sizes"], fixture_store.stored_dtype(wanted["dtype"]))
            assert array.dtype == whole.dtype
            assert has_sizes(array.shape, wanted) or array.shape == run.sampled(whole).shape
            assert array.nbytes <= wanted["nbytes"]


def test_every_file_is_in_the_index():
    listed = {fixture_store.FOLDER / "fixtures.json"}
    for fixture in FIXTURES:
        listed.update([fixture.path, *fixture.data_paths])
        for run in fixture.runs:
            names = (run.entry["expected"], run.entry.get("inputs"))
            listed.update(fixture.path.parent / name for name in names if name)
    assert listed == {path for path in fixture_store.FOLDER.rglob("*") if path.is_file()}


def test_fixtures_are_small():
    paths = fixture_store.FOLDER.rglob("*")
    assert sum(path.stat().st_size for path in paths if path.is_file()) < 4.7e6
