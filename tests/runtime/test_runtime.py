"""Test picotorch.runtime: the interface of executorch.runtime."""

import importlib.util
import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from picotorch import Error
from picotorch.runtime import Runtime, Verification
from support import fixture_store
from support.fixture_store import assert_close
from support.programs import call as instruction
from support.programs import plan, relu_plan, tensor
from support.programs import program as built

pytestmark = pytest.mark.check

NAMES = ["add2_5", "argmax_argmin", "channels_last_network", "constant_output", "counter", "ds_cnn",
         "same_output_twice", "shared_buffer", "two_methods", "unplanned_input", "unplanned_io",
         "zero_dim"]


def load(name, method="forward"):
    return Runtime.get().load_program(fixture_store.load(name).path).load_method(method)


def error_of(call, *arguments, **named):
    with pytest.raises(Error) as caught:
        call(*arguments, **named)
    return caught.value


@pytest.mark.parametrize("name", NAMES)
def test_runs_follow_one_another_on_the_same_methods(name):
    fixture = fixture_store.load(name)
    program = Runtime.get().load_program(fixture.path)
    for run in fixture.runs:
        outputs = program.load_method(run.method).execute(run.inputs)
        assert isinstance(outputs, list) and len(outputs) == len(run.expected)
        signatures = fixture.methods[run.method]["outputs"]
        for output, wanted, signature in zip(outputs, run.expected, signatures, strict=True):
            assert_close(run.sampled(output), wanted, signature.get("dtype"))


def test_a_method_that_is_first_used_later_finds_the_state_that_it_shares():
    program = Runtime.get().load_program(fixture_store.load("shared_buffer").path)
    ones = np.ones(3, np.float32)
    program.load_method("add").execute([ones])
    (output,) = program.load_method("multiply").execute([3 * ones])
    assert output.tolist() == [4, 4, 4]
    (output,) = program.load_method("add").execute([ones])
    assert output.tolist() == [4, 4, 4]


def test_another_load_of_the_program_has_a_state_of_its_own():
    ones = np.ones(3, np.float32)
    path = fixture_store.load("shared_buffer").path
    outputs = [Runtime.get().load_program(path).load_method("add").execute([ones]) for _ in range(2)]
    assert [output.tolist() for (output,) in outputs] == [[1, 1, 1]] * 2


def adds(name, buffers, sizes):
    """Return a method that adds its input to the begin of the first planned buffer, and uses the other
    buffers, too."""
    one, no = {"val": ("Int", {"int_val": 1})}, {"val": ("Bool", {"bool_val": False})}
    values = [tensor([4], 0), tensor([4], 0, buffers[0]), tensor([4], 16), one, no,
              *(tensor([4], 0, other) for other in buffers[1:])]
    return plan(values, [instruction(0, 1, 0, 3, 2, 2), instruction(1, 1, 2, 4, 1)],
                ["aten::add.out", "aten::copy_"], [0], [2], sizes) | {"name": name}


def counts(program, *names):
    ones = np.ones(4, np.float32)
    return [program.load_method(name).execute([ones])[0][0] for name in names]


def test_a_method_may_use_a_part_of_the_shared_state():
    both = adds("both", [2], [64, 32])
    both["values"].append(tensor([4], 16, 2))
    program = Runtime.get().load_program(built(both, adds("one", [2], [64, 32])))
    assert counts(program, "both", "one", "both") == [1, 2, 3]


def test_methods_share_through_others():
    """a and c have no buffer in common, but each shares a buffer with b."""
    methods = adds("a", [2], [64, 16, 0]), adds("b", [2, 3], [64, 16, 16]), adds("c", [3], [64, 0, 16])
    program = Runtime.get().load_program(built(*methods))
    b = program.load_method("b")
    assert counts(program, "b", "a", "c", "b") == [1, 2, 1, 3]
    assert program.load_method("b") is b


def test_a_buffer_whose_places_are_used_twice_is_not_shared():
    halves = adds("halves", [2], [64, 16])
    halves["values"].append(tensor([2], 8, 2))
    program = Runtime.get().load_program(built(halves, adds("whole", [2], [64, 16])))
    assert counts(program, "halves", "whole", "halves") == [1, 1, 2]


@pytest.mark.parametrize("memory_id", [0, 2, 0xFFFFFFFF])
def test_planned_buffers_that_there_are_not_are_an_error(memory_id):
    method = relu_plan() | {"values": [tensor([4], 0, memory_id=memory_id), tensor([4], 16)]}
    program = Runtime.get().load_program(built(method))
    assert "lies outside the planned buffers" in str(error_of(program.load_method, "forward"))


@pytest.mark.parametrize("seed", [None, 1.5, "1"], ids=str)
def test_a_seed_is_an_integer(seed):
    assert error_of(load("random_numbers").manual_seed, seed).name == "InvalidType"


@pytest.mark.parametrize("as_source", [
    str, Path, lambda path: path.read_bytes(), lambda path: bytearray(path.read_bytes()),
    lambda path: io.BytesIO(path.read_bytes()),
], ids=["str", "Path", "bytes", "bytearray", "file object"])
@pytest.mark.parametrize("verification", Verification)
def test_sources_of_a_program(as_source, verification):
    program = Runtime.get().load_program(as_source(fixture_store.load("two_methods").path),
                                         verification=verification)
    assert program.method_names == {"decode", "encode"}
    assert program.metadata("encode").name() == "encode"


def test_a_file_object_that_cannot_be_read(tmp_path):
    closed = io.BytesIO(b"")
    closed.close()
    with open(tmp_path / "written", "wb") as written:
        for source in (closed, written):
            error = error_of(Runtime.get().load_program, source)
            assert error.name == "AccessFailed" and "binary mode" in str(error)


@pytest.mark.parametrize("recorded", [{}, {"enable_etdump": True, "debug_buffer_size": 1 << 24}],
                         ids=["plain", "recorded"])
def test_threads_execute_one_after_the_other(recorded):
    run = fixture_store.load("mlp").runs[0]
    method = Runtime.get().load_program(fixture_store.load("mlp").path,
                                        **recorded).load_method("forward")
    inputs = [[x + i for x in run.inputs] for i in range(4)]
    expected = [method.execute(some)[0].tobytes() for some in inputs]

    def execute(i):
        return {method.execute(inputs[i])[0].tobytes() for _ in range(100)}

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(execute, range(4))) == [{one} for one in expected]


def test_metadata():
    method = load("channels_last_network")
    meta = method.metadata
    info = meta.input_tensor_meta(0)
    assert (meta.name(), meta.num_inputs(), meta.num_outputs()) == ("forward", 1, 1)
    assert (info.sizes(), info.dtype(), info.nbytes()) == ((1, 3, 8, 8), 6, 768)
    assert info.is_memory_planned() is True
    assert repr(info) == ("TensorInfo(sizes=[1, 3, 8, 8], dtype=Float, is_memory_planned=True, "
                          "nbytes=768)")
    assert error_of(meta.input_tensor_meta, 1).name == "InvalidArgument"
    assert error_of(meta.output_tensor_meta, -1).name == "InvalidArgument"


def test_a_bundled_program_is_one():
    path = Path(__file__).parents[1] / "models/bundled/passing.bpte"
    for source in (path, path.read_bytes()):
        program = Runtime.get().load_program(source)
        assert program.load_method("forward").metadata.num_inputs() > 0
    assert error_of(Runtime.get().load_program, path.read_bytes()[:99]).name == "InvalidProgram"


def test_registries():
    runtime = Runtime.get()
    assert runtime is Runtime.get()
    names = runtime.operator_registry.operator_names
    assert {"aten::add.out", "aten::convolution.out"} <= names
    assert "aten::_upsample_bicubic2d_aa.out" not in names
    assert runtime.backend_registry.registered_backend_names == []
    assert not runtime.backend_registry.is_available("XnnpackBackend")


def test_methods_are_loaded_once():
    program = Runtime.get().load_program(fixture_store.load("add_1").path)
    assert program.load_method("forward") is program.load_method("forward")


def test_outputs_are_the_callers():
    method = load("add_1")
    first = method.execute([np.array([1], np.float32)])
    method.execute([np.array([5], np.float32)])
    assert first[0] == 2


# ---- errors


@pytest.mark.parametrize("inputs, name, words", [
    ([], "InvalidArgument", "2 expected, 0 given"),
    ([np.zeros(5, np.float32)], "InvalidArgument", "2 expected, 1 given"),
    ([np.zeros(5), np.zeros(5)], "InvalidArgument", "input 0: dtype float32 expected"),
    ([np.zeros(5, np.float32), np.zeros(4, np.float32)], "NotSupported",
     "input 1: sizes [5] expected, [4] given"),
    ([np.zeros(5, np.float32), np.zeros(10, np.float32)[::2]], "InvalidArgument",
     "input 1: is not contiguous"),
    ([np.zeros(5, np.float32), "text"], "InvalidArgument", "input 1: dtype float32 expected"),
    ([np.zeros(5, np.float32), [[1], [1, 2]]], "InvalidType", "input 1: cannot become an array"),
    (7, "InvalidType", "inputs"),
    (np.zeros((2, 5), np.float32), "InvalidType", "inputs"),
])
def test_inputs_that_do_not_fit(inputs, name, words):
    method = load("add2_5")
    error = error_of(method.execute, inputs)
    assert error.name == name
    assert words in error.message
    ones = np.ones(5, np.float32)
    assert (method.execute([ones, ones])[0] == 2).all()


def test_channels_last_inputs_may_lie_in_either_order():
    fixture = fixture_store.load("channels_last_network")
    (given,) = fixture.runs[0].inputs
    in_memory = np.ascontiguousarray(given.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert not in_memory.flags.c_contiguous
    method = load("channels_last_network")
    one = method.execute([np.ascontiguousarray(given)])[0]
    assert method.execute([in_memory])[0].tobytes() == one.tobytes()


@pytest.mark.parametrize("source, name", [
    ("/nix/model.pte", "AccessFailed"),
    (Path(__file__).parent, "AccessFailed"),
    (b"", "InvalidProgram"),
    (b"not a program at all", "InvalidProgram"),
    (3, "InvalidType"),
])
def test_sources_that_are_no_program(source, name):
    assert error_of(Runtime.get().load_program, source).name == name


def test_missing_methods_and_operators():
    program = Runtime.get().load_program(fixture_store.load("add_1").path)
    assert error_of(program.load_method, "nix").name == "NotFound"
    assert error_of(program.metadata, "nix").name == "NotFound"
    error = error_of(load, "missing_operators")
    assert error.name == "OperatorMissing"
    assert "aten::_upsample_bicubic2d_aa.out" in error.message
    assert "aten::lgamma.out" in error.message


@pytest.mark.parametrize("name", ["external_weights", "external_two_files", "external_state"])
def test_external_data(name):
    fixture = fixture_store.load(name)
    paths = fixture.data_paths
    program = Runtime.get().load_program(
        fixture.path, data_path=paths[0] if len(paths) == 1 else paths)
    outputs = program.load_method("forward").execute(fixture.runs[0].inputs)
    for output, expected in zip(outputs, fixture.runs[0].expected, strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_external_data_that_is_not_there():
    fixture = fixture_store.load("external_two_files")
    load = Runtime.get().load_program
    assert error_of(load, fixture.path, data_path="x.ptd").name == "AccessFailed"
    assert error_of(load, fixture.path, data_path=fixture.path).name == "NotFound"
    assert error_of(load(fixture.path).load_method, "forward").name == "InvalidState"
    partly = load(fixture.path, data_path=fixture.data_paths[0])
    assert error_of(partly.load_method, "forward").name == "NotFound"


def test_nothing_is_recorded_without_request():
    path = fixture_store.load("add_1").path
    program = Runtime.get().load_program(path, debug_buffer_size=1000)
    assert error_of(program.write_etdump_result_to_file, "a", "b").name == "InvalidState"


# ---- torch

needs_torch = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs torch")


def as_array(tensor):
    import torch

    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    return tensor.numpy()


@needs_torch
@pytest.mark.parametrize("name", ["any_all", "argmax_argmin", "bfloat16_mlp", "complex_numbers",
                                  "empty_tensors", "mlp", "zero_dim"])
def test_outputs_are_tensors_of_torch_where_an_input_is_one(name):
    import torch

    run = fixture_store.load(name).runs[0]
    method = load(name, run.method)
    arrays = method.execute(run.inputs)
    is_bfloat16 = [method.metadata.input_tensor_meta(i).dtype() == 15 for i in range(len(run.inputs))]
    inputs = [torch.from_numpy(value).view(torch.bfloat16) if half else torch.from_numpy(value)
              for value, half in zip(run.inputs, is_bfloat16, strict=True)]
    for outputs in (method.execute(inputs), method.execute(run.inputs, torch=True)):
        assert all(isinstance(output, torch.Tensor) for output in outputs)
        for output, array in zip(outputs, arrays, strict=True):
            np.testing.assert_array_equal(as_array(output), array)
            assert output.shape == array.shape
    assert all(isinstance(output, np.ndarray) for output in method.execute(inputs, torch=False))
    assert any(output.dtype == torch.bfloat16 for output in outputs) == (name == "bfloat16_mlp")


def test_requested_tensors_of_torch_need_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    method = load("mlp")
    inputs = fixture_store.load("mlp").runs[0].inputs
    error = error_of(method.execute, inputs, torch=True)
    assert error.name == "NotFound" and "torch" in str(error)
    assert error_of(method.execute, inputs, torch="yes").name == "InvalidType"
