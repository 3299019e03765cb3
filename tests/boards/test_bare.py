"""Test the firmware without MicroPython: outputs, pools and errors are the twin's."""

import dataclasses
import json
import re

import numpy as np
import pytest
from picotorch import Error
from picotorch.boards.boards import full_board_names
from picotorch.firmware import selective
from picotorch.host.elf import flash_bytes
from picotorch.host.program_schema import KERNEL_TYPES_DOUBLE, KERNEL_TYPES_INT
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.run import running
from picotorch.run.parity import same_bits
from support import budgets, fixture_store
from support.calling import assert_error, assert_usage
from support.targets import TOO_LARGE
from support.tiers import mostly_thorough

BOARD = "mps2-an386"
FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()}
NO_DELEGATES = [name for name, fixture in FIXTURES.items() if not any(
    method["backends"] for method in fixture.methods.values())]
# One fixture of each kind: float, integer, dynamic, data files, state, loops, lists and strings.
A_FEW = ("add_1", "int8_ds_cnn", "dynamic_two_dims", "external_two_files", "external_state",
         "control_flow", "constant_methods")


def requests(fixture):
    """Yield a request for each method that runs, with all its runs."""
    for method in {run.method: None for run in fixture.runs}:
        inputs = [run.inputs for run in fixture.runs if run.method == method]
        yield Request(fixture.pte, fixture.name, inputs[0], method, data=fixture.data,
                      further=inputs[1:], bare=True)


def small(request, board):
    """Return the request with exactly as much memory as it uses."""
    needs = running.run(request, running.HOST)
    return dataclasses.replace(request, pool_size=needs.method_pool.used,
                               temp_size=needs.temp.used) if needs.code == 0 else request


def assert_same(request, board):
    twin, result = running.run(request, running.HOST), running.run(request, board)
    assert (result.code, result.message) == (twin.code, twin.message)
    assert result.pool == twin.pool
    executions = [(twin.outputs, result.outputs), *zip(twin.further, result.further, strict=True)]
    for wanted, given in executions[:1]:
        assert [same_bits(a, b) for a, b in zip(wanted, given, strict=True)] == [True] * len(wanted)
    for wanted, given in executions[1:]:  # tensors only
        for a, b in zip(wanted, given, strict=True):
            assert b.dtype == object or same_bits(a, b)
    return result


@pytest.mark.parametrize("name", mostly_thorough(NO_DELEGATES))
def test_board_outputs_equal_the_twin(name):
    for request in requests(FIXTURES[name]):
        assert_same(request, BOARD)


@pytest.mark.thorough
@pytest.mark.parametrize("board", [board for board in full_board_names() if board != BOARD])
@pytest.mark.parametrize("name", A_FEW)
def test_every_board_does(name, board):
    if name in TOO_LARGE.get(board, ()):
        pytest.skip("too large for the board")
    for request in requests(FIXTURES[name]):
        assert_same(small(request, board), board)


# ---- failures


def assert_same_error(request, *parts):
    result = assert_same(request, BOARD)
    assert result.code and all(part in result.message for part in parts), result.message


def request_of(name, **changes):
    return dataclasses.replace(next(requests(FIXTURES[name])), further=[], **changes)


def test_a_pool_that_is_too_small_by_a_byte_is_named():
    needed = running.run(request_of("int8_ds_cnn"), running.HOST).method_pool.used
    assert_same_error(request_of("int8_ds_cnn", pool_size=needed - 1),
                      f"method pool: {needed}B requested, {needed - 1}B available")
    assert_same(request_of("int8_ds_cnn", pool_size=needed), BOARD)


def test_other_memories_that_are_too_small_are_named():
    assert_same_error(request_of("antialias", temp_size=8), "temp memory: 136B requested, 8B available")
    assert_same_error(request_of("add_1", planned_sizes={0: 24}), "planned buffer 0", "24B available")


def test_int8_kernels_do_with_less_temp_memory():
    for temp_size in (0, 8):
        assert_same(request_of("int8_ds_cnn", temp_size=temp_size), BOARD)


def test_a_memory_that_the_board_has_not_is_named():
    result = running.run(request_of("add_1", pool_size=1 << 24), BOARD)
    assert result.message == ("method pool: 16777216B requested, 1048576B available; the board has no "
                              "more in arena pool, which is in its memory ram")


def test_files_that_are_missing_or_others_are_named():
    assert_same_error(request_of("external_two_files", data=[]), "external tensor")
    assert_same_error(request_of("external_two_files", data=FIXTURES["external_two_files"].data[:1]),
                      "no data file has this key")
    assert_same_error(request_of("external_two_files", data=[b"no data file, but long enough" * 3]),
                      "data file")


def test_a_method_that_there_is_not_is_named():
    assert_same_error(request_of("add_1", method="backward"), "backward", "the program has forward")


def numbers_of(request):
    """List the inputs that are floats and ints instead of tensors."""
    meta = open_program(request.model).method_meta(request.method)
    return [i for i in range(meta.num_inputs())
            if meta.input_tag(i) in (KERNEL_TYPES_INT, KERNEL_TYPES_DOUBLE)]


def test_another_number_than_the_program_was_exported_with_is_rejected():
    refused = 0
    for name in NO_DELEGATES:
        for i in numbers_of(request_of(name)):
            request = request_of(name)
            request.inputs = list(request.inputs)
            request.inputs[i] = request.inputs[i] + 1
            result = running.run(request, BOARD)  # the twin compares before it calls the library
            assert f"input {i}: is not the value that the program was exported with" in result.message
            refused += 1
    assert refused > 1


@pytest.mark.parametrize("name", ["delegate_demo", "missing_operators"])
def test_a_missing_feature_is_named(name):
    fixture = FIXTURES[name]
    method = next(iter(fixture.methods))
    assert_same_error(Request(fixture.pte, name, fixture.runs[0].inputs if fixture.runs else [],
                              method, bare=True), "no ")


def outcome(request, board):
    """Return (code, message)."""
    try:
        result = running.run(request, board)
        return result.code, result.message
    except Error as error:
        return error.code, error.message


def test_damage_is_found_as_on_the_twin():
    """The test changes one byte at a time, spread over the tables of a program."""
    fixture, random = FIXTURES["add_1"], np.random.default_rng(0)
    codes = set()
    for at in random.choice(len(fixture.pte), 40, replace=False):
        damaged = bytearray(fixture.pte)
        damaged[at] ^= 1 << random.integers(8)
        request = request_of("add_1", model=bytes(damaged))
        wanted = outcome(request, running.HOST)
        assert outcome(request, BOARD) == wanted, at
        codes.add(wanted[0])
    assert 0 in codes and len(codes) > 1


# ---- the command line, and programs for one model


def test_it_is_of_a_board(call):
    assert_usage(call("run", FIXTURES["add_1"].path, "--bare"), "--board")


def test_a_bare_run_reports_its_memory_and_time(call):
    status, out, _ = call("run", FIXTURES["int8_ds_cnn"].path, "--board", BOARD, "--bare", "--json")
    entry = json.loads(out)
    assert status == 0 and entry["heap_bytes_allocated"] is None
    counts = entry["instructions"]
    for phase in "load", "set_inputs", "get_outputs":
        budgets.check(f"bare.{phase}", counts[phase])
    assert 0 < entry["stack"]["load"] < 2048


def test_its_log_is_that_of_the_twin(call):
    """The twin does not count instructions, so the test omits them."""
    sizes = ("--pool-size", "64K", "--temp-size", "64K")
    logs = [call("run", FIXTURES["add_1"].path, *where, *sizes)[1].split("\n\n")[0].splitlines()
            for where in ([], ["--board", BOARD, "--bare"])]
    assert [line for line in logs[1] if "Instructions" not in line] == logs[0]


def test_profile_and_parity_run_it(call):
    path = FIXTURES["int8_ds_cnn"].path
    status, out, _ = call("profile", path, "--board", BOARD, "--bare", "--json")
    assert status == 0 and json.loads(out)["total"] > 1_000_000
    status, out, _ = call("parity", path, "--board", BOARD, "--bare", "--json")
    assert status == 0 and json.loads(out)["boards"][0]["first_differing_pool_byte"] is None


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    """Return (path, entry) of the firmware for int8_ds_cnn."""
    model = FIXTURES["int8_ds_cnn"].path
    output = tmp_path_factory.mktemp("bare") / "fw.elf"
    return output, selective.build(BOARD, {str(model): open_program(model.read_bytes())}, output, True)


def test_a_firmware_of_one_model_runs_as_the_full_one(selected):
    assert selected[1].flash == flash_bytes(selected[0])
    budgets.check("bare.flash_of_one_model", selected[1].flash)
    assert_same(request_of("int8_ds_cnn", firmware=selected[0]), BOARD)


def test_a_firmware_of_one_model_names_all_missing_operators(call, selected):
    assert_error(call("run", FIXTURES["ds_cnn"].path, "--board", BOARD, "--firmware", selected[0]),
                 "OperatorMissing", "no kernel for: aten::convolution.out, ", "aten::addmm.out")


def test_a_firmware_of_one_model_links_no_heap_and_no_stdio(selected):
    text = selected[0].with_suffix(".map").read_text()
    members = set(re.findall(r"\((lib_a-\w+)\.o\)", text.split("Memory Configuration")[0]))
    assert members <= {"lib_a-memcmp"}


def test_a_firmware_with_micropython_is_not_bare(call, tmp_path):
    (tmp_path / "fw.elf").write_bytes(b"mps2-an386 with cortex-m4\0")
    assert_error(call("run", FIXTURES["add_1"].path, "--board", BOARD, "--bare", "--firmware",
                      tmp_path / "fw.elf"), "InvalidArgument", "has MicroPython in it")
