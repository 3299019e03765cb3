"""Pass inputs with sizes other than the program's to every interface of the host."""

import numpy as np
import pytest
from picotorch import Error, Module
from picotorch.host.request import Request
from picotorch.run import running
from picotorch.runtime import Runtime
from support import fixture_store

pytestmark = pytest.mark.check

FIXTURE = fixture_store.load("symbolic_sizes")
BOARDS = ("mps2-an386", "mps2-an385-m0plus")
every_run = pytest.mark.parametrize("run", FIXTURE.runs)


def assert_same(outputs, run):
    for output, expected in zip(outputs, run.expected, strict=True):
        assert (output.dtype, output.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(output, expected, rtol=1e-5)


def test_the_sizes_of_the_runs_differ():
    assert len({run.inputs[0].shape for run in FIXTURE.runs}) == len(FIXTURE.runs)


def test_runtime_accepts_arrays_of_any_sizes_within_the_bound():
    method = Runtime.get().load_program(FIXTURE.pte).load_method("forward")
    for run in FIXTURE.runs:
        assert_same(method.execute(run.inputs), run)


@every_run
@pytest.mark.parametrize("board", ["host", *BOARDS])
def test_a_request_accepts_dynamic_inputs(board, run):
    first = FIXTURE.runs[0]
    request = Request(FIXTURE.pte, FIXTURE.name, first.inputs, further=[run.inputs])
    result = running.run(request, board)
    assert result.message == ""
    assert_same(result.outputs, first)
    assert_same(result.further[0], run)


@pytest.mark.parametrize(("sizes", "message"), [
    ((9, 6), r"NotSupported \(0x10\): input 0: sizes \[9, 6\] given; give 2 sizes, of as many elements "
             r"as \[8, 6\] at most"),
    ((6,), r"NotSupported"),
    ((2, 3, 1), r"NotSupported"),
])
def test_sizes_above_the_bound_and_other_ranks_are_not_supported(sizes, message):
    method = Runtime.get().load_program(FIXTURE.pte).load_method("forward")
    with pytest.raises(Error, match=message):
        method.execute([np.zeros(sizes, np.float32)])


def test_methods_of_a_module_share_their_state_if_they_are_to():
    fixture = fixture_store.load("shared_buffer")
    module = Module(fixture.path.__fspath__(), share_memory_arenas=True)
    for run in fixture.runs:
        (output,) = module.execute(run.method, [np.ascontiguousarray(a) for a in run.inputs])
        np.testing.assert_allclose(np.array(output.data), run.expected[0].reshape(-1), rtol=1e-5)


def test_methods_of_a_module_have_a_state_of_their_own_otherwise():
    fixture = fixture_store.load("shared_buffer")
    module = Module(fixture.path.__fspath__())
    one = np.ones(3, np.float32)
    module.execute("add", [one])
    (output,) = module.execute("multiply", [one])
    assert list(output.data) == [1, 1, 1]
