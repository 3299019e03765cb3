"""Run bundled programs against their own test sets, on the twin and on a board; reject damaged ones."""

import json
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from picotorch import Error
from picotorch.run import bundled, bundled_schema
from picotorch.run.verifying import verify
from support.calling import assert_error, assert_usage
from support.targets import BOARDS

FOLDER = Path(__file__).resolve().parents[1] / "models" / "bundled"
PASSING, FAILING = FOLDER / "passing.bpte", FOLDER / "failing.bpte"
TARGETS = ("host", *BOARDS)
# The result of ExecuTorch's runtime for each set; tests/models/export_bundled.py prints it
EXECUTORCH = {PASSING: {"forward": [True, True, True], "scale": [True]},
              FAILING: {"forward": [True, False, False, True]}}


# ---- run


@pytest.mark.parametrize("board", TARGETS)
@pytest.mark.parametrize("path", EXECUTORCH, ids=lambda path: path.stem)
def test_verdicts_are_executorchs(call, path, board):
    memories = ("--pool-size", 8192, "--temp-size", 4096)  # the memories of the smallest board
    status, out, _ = call("run", path, "--board", board, "--json", *memories)
    entry = json.loads(out)
    verdicts = {method["method"]: [case["passed"] for case in method["test_sets"]]
                for method in entry["methods"]}
    assert verdicts == EXECUTORCH[path]
    assert entry["passed"] == all(map(all, verdicts.values())) == (status == 0)
    assert (entry["board"], entry["rtol"], entry["atol"]) == (board, 1e-5, 1e-8)


def test_a_line_for_each_set(call):
    status, out, error = call("run", PASSING)
    assert (status, error) == (0, "")
    lines = [line for line in out.splitlines() if "Test_result" in line]
    assert lines == [f"I [picotorch] TEST: BundleIO index[{i}] Test_result: PASS"
                     for i in (0, 1, 2, 0)]


def test_a_mismatch_reports_position_and_difference(call):
    status, out, error = call("run", FAILING)
    assert (status, error) == (1, "")
    assert "E [picotorch] TEST: BundleIO index[1] Test_result: FAIL" in out
    assert "E [picotorch] output 0 [0, 1, 2, 1]: 0.83664375" in out
    assert "1 of 18 elements differ, by up to 0.25 (rtol 1e-05, atol 1e-08)" in out
    assert "NotSupported (0x10): the set has no expected outputs" in out


def test_tolerances(call):
    verdicts = [case["passed"] for case in json.loads(
        call("run", FAILING, "--atol", 0.2501, "--json")[1])["methods"][0]["test_sets"]]
    assert verdicts == [True, True, False, True]
    assert call("run", PASSING, "--rtol", 0, "--atol", 0)[0] == 1
    assert_usage(call("run", PASSING, "--rtol", -1), "--rtol")


def test_one_method(call):
    entry = json.loads(call("run", PASSING, "--method", "scale", "--json")[1])
    assert [method["method"] for method in entry["methods"]] == ["scale"]
    assert_error(call("run", FAILING, "--method", "scale"), "InvalidArgument",
                 "scale: no test set is bundled for it; there are some for forward")
    assert_error(call("run", FAILING, "--method", "nix"), "InvalidArgument", "nix")


def test_a_load_that_fails_fails_every_set(call):
    assert_error(call("run", PASSING, "--planned-size", "0=16"), "MemoryAllocationFailed",
                 "planned buffer 0", "--planned-size")
    status, out, error = call("run", PASSING, "--planned-size", "0=16", "--json")
    assert (status, error) == (1, "")
    (method, _) = json.loads(out)["methods"]
    assert method["error"]["name"] == "MemoryAllocationFailed"
    cases = method["test_sets"]
    assert [case["passed"] for case in cases] == [False, False, False]
    assert "MemoryAllocationFailed (0x21): planned buffer 0" in cases[2]["message"]


def test_inputs_of_ones_own_run_the_program_inside(call, tmp_path):
    np.savez(tmp_path / "in.npz", in0=np.zeros((1, 2, 5, 4), np.float32))
    status, out, _ = call("run", PASSING, "--inputs", tmp_path / "in.npz")
    assert status == 0 and "forward on host: ok" in out and "Test_result" not in out
    assert_usage(call("run", PASSING, "--outputs", tmp_path / "out.npz"), "--inputs")
    assert_usage(call("run", PASSING, "--sizes", "0=1"), "--sizes is for random inputs")


@pytest.mark.parametrize("command", ["inspect", "size", "parity"])
def test_other_commands_use_the_program_inside(call, command):
    assert call(command, PASSING)[0] == 0


def test_inspect_lists_the_test_sets(call):
    _, out, _ = call("inspect", PASSING)
    assert "4 test sets" in out
    assert "Int [1, 3], Int 3, Double 0.5, Bool True" in out
    sets = json.loads(call("inspect", PASSING, "--json")[1])["test_sets"]
    assert [(case["method"], case["index"]) for case in sets] == [
        ("forward", 0), ("forward", 1), ("forward", 2), ("scale", 0)]
    assert sets[3]["inputs"][1:] == [{"type": "Int", "value": 3}, {"type": "Double", "value": 0.5},
                                     {"type": "Bool", "value": True}]


# ---- comparison


def case_of(*arrays):
    types = {"float32": 6, "float16": 5, "int32": 3}
    return bundled.Case("forward", 0, [], [bundled.BundledTensor(
        types[array.dtype.name], array.shape, tuple(range(array.ndim)), array.tobytes())
        for array in arrays])


@pytest.mark.parametrize("wanted, output, passed", [
    (1.0, 1.000009, True), (1.0, 1.0001, False), (0.0, 1e-8, True), (0.0, 1e-7, False),
    (np.nan, np.nan, True), (np.nan, 1.0, False), (np.inf, np.inf, True), (np.inf, -np.inf, False),
    (np.nan, np.inf, False), (1.0, np.inf, False), (1.0, 3e38, False)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_close_floats(wanted, output, passed, dtype):
    if dtype == np.float16:
        output = output if passed or abs(output) > 1e38 else output + 0.01
    with np.errstate(over="ignore"):
        outputs = [np.array([0, output]).astype(dtype)]
    verdict = verify(case_of(np.array([0, wanted], dtype)), outputs, 1e-5, 1e-8)
    assert verdict.passed is bool(passed)


def test_integers_have_to_be_the_same():
    wanted, other = np.array([[1, 2]], np.int32), np.array([[1, 3]], np.int32)
    assert verify(case_of(wanted), [wanted], 1, 1).passed
    verdict = verify(case_of(wanted), [other], 1, 1)
    assert verdict.message == "output 0 [0, 1]: 2 expected, 3 given; 1 of 2 elements differ"


def test_types_sizes_and_numbers_of_outputs():
    wanted = np.ones((2, 3), np.float32)
    for output in (np.ones((3, 2), np.float32), np.ones((2, 3), np.int32)):
        verdict = verify(case_of(wanted), [output], 1, 1)
        assert not verdict.passed and verdict.max_absolute_error is None
        assert verdict.message.startswith("output 0: float32 [2, 3] expected, ")
    assert "2 outputs are expected, the method has 1" in verify(
        case_of(wanted, wanted), [wanted], 1, 1).message
    number = bundled.Case("forward", 0, [], [3])
    assert "NotSupported (0x10)" in verify(number, [wanted], 1, 1).message


# ---- files that no exporter writes


def build(program=b"x" * 8, method="forward", tensor=None, values=1, kind=1, suites=1):
    """Build a .bpte with one set, whose only input is given `values` times."""
    builder = flatbuffers.Builder()
    sizes, data, order = tensor or ((2,), bytes(8), (0,))

    def vector(size, items, prepend):
        builder.StartVector(size, len(items), size)
        for item in reversed(items):
            prepend(item)
        return builder.EndVector()

    def table(*fields):
        """Return a table. fields: (slot, prepend, value)"""
        builder.StartObject(4)
        for slot, prepend, value in fields:
            prepend(slot, value, None)
        return builder.EndObject()

    relative = builder.PrependUOffsetTRelativeSlot
    data = builder.CreateByteVector(data)
    order = builder.CreateByteVector(bytes(order))
    sizes = vector(4, sizes, builder.PrependInt32)
    member = table((0, builder.PrependInt8Slot, 6), (1, relative, sizes), (2, relative, data),
                   (3, relative, order))
    value = table((0, builder.PrependUint8Slot, kind), (1, relative, member))
    inputs = vector(4, [value] * values, builder.PrependUOffsetTRelative)
    cases = vector(4, [table((0, relative, inputs))], builder.PrependUOffsetTRelative)
    name = builder.CreateString(method)
    suite = table((0, relative, name), (1, relative, cases))
    all_suites = vector(4, [suite] * suites, builder.PrependUOffsetTRelative)
    content = builder.CreateByteVector(program)
    builder.Finish(table((1, relative, all_suites), (2, relative, content)),
                   file_identifier=bundled_schema.FILE_IDENTIFIER)
    return bytes(builder.Output())


def test_files_of_the_builder_can_be_read():
    bundle = bundled.read(build())
    assert (bytes(bundle.program), bundle.methods()) == (b"x" * 8, ["forward"])
    assert bundle.sets[0].inputs[0].array().tolist() == [0, 0]


@pytest.mark.parametrize("name, changes", {
    "InvalidProgram (0x23): bundled program: a tensor [3] of Float has 8B of data":
        {"tensor": ((3,), bytes(8), (0,))},
    "InvalidProgram (0x23): bundled program: a tensor [65536, 65536, 65536, 65536] of Float has":
        {"tensor": ((65536,) * 4, bytes(8), (0, 1, 2, 3))},
    "InvalidProgram (0x23): bundled program: a tensor [-1]": {"tensor": ((-1,), bytes(8), (0,))},
    "InvalidProgram (0x23): bundled program: a dim order": {"tensor": ((1, 2), bytes(8), (0, 0))},
    "NotSupported (0x10): tensors of more than 16 dims":
        {"tensor": ((1,) * 17, bytes(8), range(17))},
    "NotSupported (0x10): bundled program: values of type 5": {"kind": 5},
    "InvalidProgram (0x23): bundled program: refers to more tables":
        {"values": 2000, "suites": 2000},
    "InvalidProgram (0x23): bundled program: refers to more tables and bytes":
        {"tensor": ((2000,), bytes(8000), (0,)), "values": 20},
}.items())
def test_rejected(name, changes):
    with pytest.raises(Error) as caught:
        bundled.read(build(**changes))
    assert str(caught.value).startswith(name)


def test_a_broken_program_inside(call, tmp_path):
    path = tmp_path / "broken.bpte"
    path.write_bytes(build())
    for command in ("run", "inspect", "size", "parity"):
        assert_error(call(command, path), "InvalidProgram", "(0x23)")
    path.write_bytes(PASSING.read_bytes()[:100])
    assert_error(call("run", path), "InvalidProgram", "(0x23)")
    path.write_bytes(build(suites=0, program=bytes(bundled.read(PASSING.read_bytes()).program)))
    assert_error(call("run", path), "InvalidArgument", "no test set is bundled")


def damaged(data):
    """Yield the data cut off at some lengths, and with single bytes changed."""
    for length in range(0, len(data), 97):
        yield data[:length]
    for position in range(0, len(data), 4):
        for mask, at in ((0x80, position + 1), (0xFF, position)):
            yield data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def test_damaged_files_are_read_or_rejected():
    for data in damaged(PASSING.read_bytes()):
        try:
            for case in bundled.read(data).sets:
                for value in [*case.inputs, *case.expected]:
                    if isinstance(value, bundled.BundledTensor):
                        value.array()
        except Error as error:
            assert error.name in ("InvalidProgram", "NotSupported")
