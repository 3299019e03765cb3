"""Compare architectures of transformers and timm with ExecuTorch's runtime, and some on a board. The
tests run in an environment with these packages, such as the environment of `make architectures`."""

import importlib.util

import pytest

for package in ("torch", "executorch", "timm", "transformers"):
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed (make architectures)", allow_module_level=True)

from architectures import agreement  # noqa: E402
from conformance.cases import Bench  # noqa: E402

BENCH = Bench(lambda stage: None, lambda: "")


def test_there_are_enough():
    assert len(agreement.ARCHITECTURES) >= 60
    assert len(agreement.ON_BOARD) >= 10
    assert set(agreement.ON_BOARD) <= set(agreement.ARCHITECTURES)


@pytest.mark.parametrize("name", agreement.ARCHITECTURES)
def test_agrees(name):
    found = agreement.examine(name, "architectures", BENCH)
    assert (found["status"], found["message"]) == ("same", "")
    assert found["difference"] <= agreement.BOUND
    assert found["boards"] == [agreement.BOARD] * (name in agreement.ON_BOARD)


def test_a_difference_is_found():
    pte, inputs = agreement.export("timm: mixer")
    (theirs, _), (ours, _) = BENCH.outputs(pte, [("forward", inputs)])
    assert agreement.compare(pte, inputs, theirs[0]).agree
    theirs[0][0][0, 0] += 2e-5 * theirs[0][0].abs().max()
    found = agreement.compare(pte, inputs, theirs[0])
    assert not found.agree and found.reference.difference > agreement.BOUND
