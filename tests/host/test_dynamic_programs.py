"""Use exported programs of dynamic sizes in the host's tools: runtime, inspect, parity."""

import numpy as np
import pytest
from picotorch import Error
from picotorch.runtime import Runtime
from support import fixture_store
from support.fixture_store import assert_close

BOARD = "mps2-an386"


def load(name):
    fixture = fixture_store.load(name)
    return fixture, Runtime.get().load_program(fixture.path).load_method("forward")


@pytest.mark.parametrize("name", ["dynamic_two_dims", "dynamic_image", "symbolic_sizes",
                                  "map_over_some_rows", "cond_on_a_size"])
def test_the_runtime_accepts_all_sizes(name):
    fixture, method = load(name)
    for run in fixture.runs:
        for found, wanted in zip(method.execute(run.inputs), run.expected, strict=True):
            assert_close(found, wanted, wanted.dtype.name)


@pytest.mark.parametrize("shape", [(9, 6), (54, 1), (8,), (1, 8, 6)])
def test_sizes_above_the_bound_are_not_supported(shape):
    _, method = load("dynamic_two_dims")
    with pytest.raises(Error, match=r"NotSupported \(0x10\): input 0: sizes .* as \[8, 6\] at most"):
        method.execute([np.zeros(shape, np.float32), np.zeros(6, np.float32)])


def test_sizes_that_do_not_go_together_are_an_error_of_the_kernel():
    _, method = load("dynamic_two_dims")
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): instruction 0: aten::add.out"):
        method.execute([np.zeros((4, 3), np.float32), np.zeros(5, np.float32)])
    outputs = method.execute([np.zeros((4, 3), np.float32), np.zeros(3, np.float32)])
    assert [output.shape for output in outputs] == [(6,), (6, 4), (4, 1)]


def test_inspect_shows_bounds_and_variables(call):
    status, text, _ = call("inspect", fixture_store.load("symbolic_sizes").path)
    assert status == 0
    assert "input 0   Float up to [8, 6]       192" in text
    assert "aten::expand_copy.out                  %13, [%4, 3, %6], False" in text
    assert "%45      executorch_prim::et_view.default       %2, [%4, %6, 1]" in text


def test_a_board_runs_other_sizes_as_the_twin(call, tmp_path):
    fixture = fixture_store.load("dynamic_two_dims")
    inputs = tmp_path / "in.npz"
    np.savez(inputs, **{f"in{i}": value for i, value in enumerate(fixture.runs[3].inputs)})
    status, text, _ = call("parity", fixture.path, "--inputs", inputs, "--board", BOARD)
    assert status == 0
    assert f"{BOARD} and the twin, outputs: 3 identical to the bit" in text
    assert "method pool: 468 bytes identical" in text
