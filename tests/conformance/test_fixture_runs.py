"""Run every fixture on the twin and on the boards: compare the twin with ExecuTorch's outputs, and each
board with the twin."""

import ast
import re

import pytest
from picotorch import Error
from picotorch.boards.boards import load_board
from picotorch.errors import MEMORY_ALLOCATION_FAILED
from picotorch.host.request import Request
from picotorch.host.tensors import from_stored
from picotorch.measure.stack import execute_bound, read_bounds
from picotorch.run import emulator, running
from picotorch.schema import KERNEL_TYPES_TENSOR
from support import budgets, figures
from support.fixture_jobs import metas
from support.fixture_runs import FIXTURES, on_host, run_on, with_one_nan, without_stack
from support.fixture_store import NOT_SUPPORTED, assert_close
from support.targets import TOO_LARGE
from support.tiers import OF_EACH_KIND, fixtures_on_boards

pytestmark = pytest.mark.check

WRITE_NUMBERS = ("aten::sym_size.int", "aten::sym_numel", "aten::_local_scalar_dense")
every_fixture = pytest.mark.parametrize("name", FIXTURES)


def outputs(fixture, number, result):
    """Return the outputs of a run as arrays, None for a value that is not a tensor."""
    meta = metas(fixture)[fixture.runs[number].method]
    return [output(result, number, i, meta.output_tensor_meta(i))
            if meta.output_tag(i) == KERNEL_TYPES_TENSOR else None
            for i in range(meta.num_outputs())]


def output(result, number, i, info):
    start = f"sizes {number} {i} "
    sizes = [ast.literal_eval(line.removeprefix(start)) for line in result.lines
             if line.startswith(start)]
    assert len(sizes) == info.is_dynamic()
    return from_stored(result.files[f"out{number}_{i}"], info, *sizes)


def refusal(fixture, method):
    """Return the error of loading a method without its operators or backend; None if it lacks none."""
    entry = fixture.methods[method]
    operators = [name for name in fixture.refused if name in entry["operators"]]
    backends = [name for name in fixture.refused if name in entry["backends"]]
    if backends:
        return f"NotFound (0x20): no backend of this name: {', '.join(backends)};"
    if operators:
        return f"OperatorMissing (0x14): no kernel for: {', '.join(operators)};"
    return None


@every_fixture
def test_loads_or_is_rejected(name):
    fixture = FIXTURES[name]
    lines = on_host(name).lines
    if name in NOT_SUPPORTED:
        message = f" NotSupported (0x10): {NOT_SUPPORTED[name]}"
        assert any(message in line for line in lines), lines
        return
    for method in fixture.methods:
        wanted = refusal(fixture, method)
        if wanted is None:
            assert f"load {method} ok" in lines
        else:
            assert any(line.startswith(f"load {method} {wanted}") for line in lines), lines


@every_fixture
def test_outputs_are_those_of_executorch(name):
    fixture = FIXTURES[name]
    result = on_host(name)
    for number, run in enumerate(fixture.runs):
        if name in NOT_SUPPORTED or refusal(fixture, run.method):
            assert f"run {number} ok" not in result.lines
            continue
        assert f"run {number} ok" in result.lines
        for i, (actual, expected) in enumerate(
                zip(outputs(fixture, number, result), run.expected, strict=True)):
            if actual is None:
                wanted = None if expected is None else expected.item()
                assert f"output {number} {i} {wanted}" in result.lines
            else:
                signature = fixture.methods[run.method]["outputs"][i]
                assert_close(run.sampled(actual), expected, signature["dtype"])


def is_static(fixture):
    """Return True if the fixture has no sizes and no numbers that change."""
    return not any(value.get("dynamic") for method in fixture.methods.values()
                   for value in (*method["inputs"], *method["outputs"])) and not any(
        name.startswith("executorch_prim::") or name in WRITE_NUMBERS
        for method in fixture.methods.values() for name in method["operators"])


@pytest.mark.parametrize("name", [name for name in FIXTURES if is_static(FIXTURES[name])])
def test_execution_leaves_the_pool_as_it_was_loaded(name):
    """A delegate may change its own part of the pool."""
    if "ExecutorBackend" in FIXTURES[name].backends:
        return
    files = on_host(name).files
    for path in files:
        if path.startswith("pool_") and not path.endswith("_after"):
            assert files[path] == files[path + "_after"]


def measured_stack(result, phase):
    """Return {method: maximum of the bytes of stack} that load or execute used on a board."""
    found = {}
    for line in result.lines:
        match = re.match(rf"stack {phase} (\S+) (\d+)$", line)
        if match:
            found[match[1]] = max(found.get(match[1], 0), int(match[2]))
    return found


def check_stack(fixture, board, result):
    """Compare the stack with the bounds: of load, and of execute by the method's kernels. Backends in
    Python have no bound."""
    if fixture.backends or fixture.name in NOT_SUPPORTED:
        return
    bounds = read_bounds(emulator.firmware_path(load_board(board)))
    load, execute = measured_stack(result, "load"), measured_stack(result, "execute")
    bound = {method: execute_bound(bounds, fixture.methods[method]["operators"]) for method in execute}
    budgets.check("stack.load", max(load.values()))
    assert [method for method in execute if execute[method] > bound[method]] == []
    shares = [100 * execute[method] // bound[method] for method in execute]
    figures.record("stack", f"{board}_{fixture.name}", models=1, largest_load=max(load.values()),
                   largest_execute=max(execute.values(), default=0),
                   largest_share=max(shares, default=0))


def test_each_kind_is_there():
    assert set(OF_EACH_KIND) <= set(FIXTURES)


@pytest.mark.reliability
@pytest.mark.parametrize(("name", "board"), fixtures_on_boards(FIXTURES))
def test_board_outputs_equal_the_twin_to_the_byte(name, board):
    """The test compares lines, pools and outputs. The script itself asserts that no heap was
    allocated."""
    fixture = FIXTURES[name]
    on_board = run_on(board, name)
    assert without_stack(on_board.lines) == without_stack(on_host(name).lines)
    wanted, files = with_one_nan(fixture, on_host(name)), with_one_nan(fixture, on_board)
    assert sorted(files) == sorted(wanted)
    assert [path for path in wanted if wanted[path] != files[path]] == []
    check_stack(fixture, board, on_board)


@pytest.mark.parametrize(("board", "name"), [(b, name) for b in TOO_LARGE for name in TOO_LARGE[b]])
def test_a_model_that_does_not_fit_a_board_is_rejected(board, name):
    run = FIXTURES[name].runs[0]
    try:
        result = running.run(Request(FIXTURES[name].pte, name, run.inputs, run.method, pool_size=None,
                                     temp_size=None), board)
        code, message = result.code, result.message
    except Error as error:
        code, message = error.code, error.message
    assert code == MEMORY_ALLOCATION_FAILED
    assert re.search(r"\d+B requested, \d+B available|\d+B of job, \d+B available", message)
