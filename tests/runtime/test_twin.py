"""Test a run on the twin: the fixtures' outputs, the memories' sizes, the log, the errors."""

import gc
import weakref

import numpy as np
import pytest
from picotorch import Error, errors
from picotorch.host import twin
from picotorch.host.request import Request, Usage
from picotorch.module import load_with_exact_memories
from picotorch.schema import ERROR_NAMES
from support import fixture_store
from support.fixture_store import NOT_SUPPORTED, assert_close

pytestmark = pytest.mark.check

FIXTURES = fixture_store.load_all()
RUNS = [fixture for fixture in FIXTURES
        if not fixture.refused and not fixture.backends and fixture.name not in NOT_SUPPORTED]


def request(fixture, run=None, **settings):
    run = run or fixture.runs[0]
    return Request(fixture.pte, fixture.name, run.inputs, run.method, temp_size=1 << 20,
                   data=fixture.data, **settings)


def run_fixture(name, **settings):
    return twin.run(request(fixture_store.load(name), **settings))


@pytest.mark.parametrize("fixture", RUNS, ids=lambda fixture: fixture.name)
def test_outputs_are_those_of_executorch(fixture):
    run = fixture.runs[0]
    result = twin.run(request(fixture, run))
    assert (result.status, result.message) == ("ok", "")
    assert len(result.outputs) == len(run.expected)
    signatures = fixture.methods[run.method]["outputs"]
    for output, wanted, signature in zip(result.outputs, run.expected, signatures, strict=True):
        assert_close(run.sampled(output), wanted, signature.get("dtype"))


@pytest.mark.parametrize("fixture", [f for f in FIXTURES if f.refused or f.backends],
                         ids=lambda f: f.name)
def test_all_that_is_missing_is_named(fixture):
    lacking = {*fixture.refused, *fixture.backends}
    run = next(run for run in fixture.runs
               if lacking & {*fixture.methods[run.method]["operators"],
                             *fixture.methods[run.method]["backends"]})
    result = twin.run(request(fixture, run))
    delegated = fixture.methods[run.method]["backends"]
    assert result.status == ("NotFound" if delegated else "OperatorMissing")
    for name in lacking:
        assert name in result.message


@pytest.mark.parametrize("name", NOT_SUPPORTED)
def test_unsupported_features_are_rejected_by_name(name):
    result = twin.run(request(fixture_store.load(name)))
    assert result.status == "NotSupported"
    assert result.message.startswith(NOT_SUPPORTED[name])


def test_memories_have_requested_sizes():
    fixture = fixture_store.load("ds_cnn")
    need = fixture.methods["forward"]["planned_buffers"][0]
    exact = twin.run(request(fixture))
    assert exact.planned == [Usage(need, need)]
    result = twin.run(request(fixture, pool_size=exact.method_pool.used,
                              planned_sizes={0: need + 100}))
    assert result.status == "ok"
    assert result.method_pool == Usage(exact.method_pool.used, exact.method_pool.used)
    assert result.planned == [Usage(need, need + 100)]
    assert result.temp.size == 1 << 20


def test_pool_does_not_depend_on_its_size():
    fixture = fixture_store.load("resnet8")
    large = twin.run(request(fixture, pool_size=100_000))
    small = twin.run(request(fixture, pool_size=large.method_pool.used))
    assert len(small.pool) == small.method_pool.used
    assert small.pool == large.pool


def test_pool_one_byte_too_small():
    fixture = fixture_store.load("ds_cnn")
    need = twin.run(request(fixture)).method_pool.used
    result = twin.run(request(fixture, pool_size=need - 1))
    assert (result.code, result.status) == (0x21, "MemoryAllocationFailed")
    assert f"method pool: {need}B requested, {need - 1}B available" in result.message
    assert result.method_pool is None and result.outputs == [] and result.pool == b""


def test_planned_buffer_of_the_public_report():
    result = run_fixture("planned_1785600", planned_sizes={0: 1024})
    assert result.status == "MemoryAllocationFailed"
    assert result.message.startswith(
        "planned buffer 0: 1785600B requested, 1024B available; make it larger")


def test_planned_buffer_that_there_is_not():
    result = run_fixture("add_1", planned_sizes={3: 64})
    assert result.status == "InvalidArgument"
    assert result.message == "planned buffer 3: the method has 1, counted from 0; name one of them"


def test_method_that_there_is_not():
    fixture = fixture_store.load("two_methods")
    result = twin.run(Request(fixture.pte, "m", [], "nix"))
    assert result.status == "NotFound"
    assert "decode" in result.message and "encode" in result.message


@pytest.mark.parametrize("inputs, words", [
    ([], "1 expected, 0 given"),
    ([np.zeros(5, np.float64)], "dtype float32 expected, float64 given"),
    ([np.zeros((5, 1), np.float32)], "sizes [5] expected, [5, 1] given"),
    ([np.zeros(4, np.float32)], "sizes [5] expected, [4] given"),
    ([[[1.0], [1.0, 2.0]]], "cannot become an array"),
])
def test_inputs_that_do_not_fit_the_method(inputs, words):
    result = twin.run(Request(fixture_store.load("add_5").pte, "add_5", inputs))
    assert result.status in ("InvalidArgument", "InvalidType", "NotSupported")
    assert words in result.message
    assert result.outputs == []


def test_a_buffer_that_was_rejected_is_not_kept():
    fixture = fixture_store.load("add_1")
    method = load_with_exact_memories(twin.open_program(fixture.pte), "forward")
    array = np.zeros(3, np.uint8)
    kept = weakref.ref(array)
    with pytest.raises(Error):
        method.set_input(array, 0)
    del array
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("size", range(0, 936, 13))
def test_truncated_file(size):
    fixture = fixture_store.load("add_1")
    result = twin.run(Request(fixture.pte[:size], "add_1", fixture.runs[0].inputs))
    assert result.status == "InvalidProgram"


def test_flipped_bytes_lead_to_a_result_or_a_named_error():
    fixture = fixture_store.load("add_5")
    generator = np.random.default_rng(1)
    for _ in range(300):
        data = bytearray(fixture.pte)
        data[generator.integers(len(data))] ^= 1 << generator.integers(8)
        result = twin.run(Request(bytes(data), "add_5", fixture.runs[0].inputs))
        assert result.code in ERROR_NAMES


def test_planned_buffers_of_absurd_size_are_not_made():
    fixture = fixture_store.load("add_1")
    result = twin.run(request(fixture, planned_sizes={0: (1 << 30) + 1}))
    assert result.status == "MemoryAllocationFailed"


@pytest.mark.parametrize("index, value, fits", [
    (1, 3, True), (1, 4, False), (2, 0.5, True), (2, 0.50009, True), (2, 0.5002, False),
    (2, np.inf, False), (2, np.nan, False), (3, True, True), (3, False, False),
    (1, np.full(2, 3), False), (2, np.full(2, 0.5), False),
])
def test_numbers_are_those_of_the_program(index, value, fits):
    fixture = fixture_store.load("scalar_inputs")
    inputs = list(fixture.runs[0].inputs)
    inputs[index] = value
    result = twin.run(Request(fixture.pte, fixture.name, inputs))
    assert result.status == ("ok" if fits else "InvalidArgument")
    method = load_with_exact_memories(twin.open_program(fixture.pte), "forward")
    if fits:
        method.set_input(value, index)
    else:
        with pytest.raises(Error, match=f"InvalidArgument .* input {index}:"):
            method.set_input(value, index)


def test_log_has_the_lines_of_the_arm_runner():
    log = run_fixture("add_1", pool_size=1024).log
    wanted = [
        "Model PTE file loaded. Size: 936 bytes.",
        "Model buffer loaded, has 1 methods",
        "Running method forward",
        "Setup Method allocator pool. Size: 1024 bytes.",
        "Setting up planned buffer 0, size 32.",
        "Setup temp allocator pool. Size: 1048576 bytes.",
        "Loading method.",
        "Method 'forward' loaded.",
        "Preparing inputs...",
        "Input prepared.",
        "Starting the model execution...",
        "Model executed successfully.",
        "model_pte_program_size:    936 bytes.",
    ]
    assert log[: len(wanted)] == ["I [picotorch] " + line for line in wanted]
    pool = next(line for line in log if "method_allocator_used" in line)
    used = run_fixture("add_1").method_pool.used
    assert pool.split(":", 1)[1].split() == (
        f"{used} / 1024 free: {1024 - used} ( used: {100 * used // 1024} % )".split())
    assert log[-1].startswith("Output[0][0]: (float) ")


def test_log_of_a_failed_load():
    log = run_fixture("add_1", pool_size=0).log
    assert log[-1] == ("E [picotorch] Loading of method forward failed with status 0x21 "
                       "(MemoryAllocationFailed)")


def test_log_shows_the_first_elements_of_a_large_output():
    log = run_fixture("simple_conv").log
    assert sum(line.startswith("Output[0][") for line in log) == 16
    assert log[-1].endswith(" more")


def test_log_shows_elements_by_dtype():
    log = run_fixture("integer_tensors").log
    kinds = ["byte", "char", "short", "int", "long", "bool"]
    for i, kind in enumerate(kinds):
        assert any(line.startswith(f"Output[{i}][0]: ({kind}) ") for line in log)
    assert any(line.endswith((") true", ") false")) for line in log)


@pytest.mark.parametrize("requested", [-1, 0, 8])
@pytest.mark.parametrize("available", [-1, 0, 4])
def test_bytes_that_are_unknown_are_not_printed(requested, available):
    message = str(errors.fail(errors.MEMORY_ALLOCATION_FAILED, "", "heap", requested=requested,
                              available=available))
    sizes = {"requested": requested, "available": available if requested >= 0 else -1}
    assert "-1" not in message
    for word, size in sizes.items():
        assert (f"{size}B {word}" in message) == (size >= 0)
