"""Every fixture on the twin and on the boards: against ExecuTorch's outputs, and one against the other."""

import functools

import fixture_store
import numpy as np
import pytest
from picotorch import BufferDataLoader, Program
from picotorch.host.job import Job
from picotorch.host.tensors import from_stored, to_stored
from picotorch.schema import KERNEL_TYPES_TENSOR
from targets import BOARDS, HOST, aligned, run_script

TOLERANCE = 1e-5  # of the largest magnitude of an output

# What this build refuses to load, with NotSupported, and why.
NOT_SUPPORTED = {}

FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()}
every_fixture = pytest.mark.parametrize("name", FIXTURES)


def constant(value):
    if value is None:
        return "none"
    return f"bool:{int(value)}" if value.dtype == bool else f"int:{int(value)}"


def metas(fixture):
    program = Program.load(BufferDataLoader(aligned(fixture.pte)))
    return {name: program.method_meta(name) for name in fixture.methods}


def job_of(fixture):
    job = Job({"model": fixture.pte})
    settings = {"methods": ",".join(fixture.methods)}
    signatures = metas(fixture)
    for number, run in enumerate(fixture.runs):
        settings[f"run{number}"] = run.method
        meta = signatures[run.method]
        for i, value in enumerate(run.inputs):
            if meta.input_tag(i) == KERNEL_TYPES_TENSOR:
                order = meta.input_tensor_meta(i).dim_order()
                job.add(f"in{number}_{i}", to_stored(value, order))
            else:
                settings[f"input{number}_{i}"] = constant(value)
    job.add_settings("settings", settings)
    return job


@functools.cache
def on_host(name):
    return run_script("fixture.py", job_of(FIXTURES[name]), HOST)


def outputs(fixture, number, result):
    """The outputs of a run as arrays; None for a value that is no tensor."""
    meta = metas(fixture)[fixture.runs[number].method]
    return [from_stored(result.files[f"out{number}_{i}"], meta.output_tensor_meta(i))
            if meta.output_tag(i) == KERNEL_TYPES_TENSOR else None
            for i in range(meta.num_outputs())]


def assert_close(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind != "f":
        assert (actual == expected).all()
        return
    finite = np.isfinite(expected)
    assert np.array_equal(actual[~finite], expected[~finite], equal_nan=True)
    if finite.any():
        largest = np.abs(expected[finite], dtype=np.float64).max()
        difference = np.abs(actual[finite].astype(np.float64) - expected[finite]).max()
        assert difference <= TOLERANCE * largest, f"{difference:g} of {largest:g}"


def runs_there_are(fixture):
    refused = {line.split()[1] for line in on_host(fixture.name).lines
               if line.startswith("load ") and not line.endswith(" ok")}
    return [i for i, run in enumerate(fixture.runs) if run.method not in refused]


@every_fixture
def test_loads_or_is_refused(name):
    fixture = FIXTURES[name]
    loads = [line for line in on_host(name).lines if line.startswith("load ")]
    assert len(loads) == len(fixture.methods)
    if name in NOT_SUPPORTED:
        assert all(f" NotSupported (0x10): {NOT_SUPPORTED[name]}" in line for line in loads), loads
        return
    for line in loads:
        method = fixture.methods[line.split()[1]]
        missing = [word for word in fixture.refused if word in method["operators"]]
        if missing:
            assert f"OperatorMissing (0x14): no kernel for: {', '.join(missing)};" in line
        else:
            assert line.endswith(" ok"), line


@every_fixture
def test_outputs_are_those_of_executorch(name):
    fixture = FIXTURES[name]
    result = on_host(name)
    for number in runs_there_are(fixture):
        assert f"run {number} ok" in result.lines
        run = fixture.runs[number]
        for i, (actual, expected) in enumerate(
                zip(outputs(fixture, number, result), run.expected, strict=True)):
            if actual is None:
                assert f"output {number} {i} {expected.item()}" in result.lines
            else:
                assert_close(run.sampled(actual), expected)


@every_fixture
def test_execution_leaves_the_pool_as_it_was_loaded(name):
    files = on_host(name).files
    for path in files:
        if path.startswith("pool_") and not path.endswith("_after"):
            assert files[path] == files[path + "_after"]


@pytest.mark.parametrize("board", BOARDS)
@every_fixture
def test_board_gives_the_same_bytes_as_the_twin(name, board):
    """Lines, pools and outputs; the script itself asserts that no heap was allocated."""
    wanted = on_host(name)
    result = run_script("fixture.py", job_of(FIXTURES[name]), board)
    assert result.lines == wanted.lines
    assert sorted(result.files) == sorted(wanted.files)
    different = [path for path in wanted.files if wanted.files[path] != result.files[path]]
    assert not different
