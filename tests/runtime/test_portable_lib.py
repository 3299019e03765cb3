"""Test picotorch.runtime.portable_lib: the interface of
executorch.extension.pybindings.portable_lib."""

import importlib.util
import inspect

import numpy as np
import pytest
from picotorch import Error
from picotorch.runtime import Runtime, Verification, portable_lib
from support import fixture_store
from support.fixture_store import assert_close

pytestmark = pytest.mark.check

TORCH = importlib.util.find_spec("torch") is not None


def assert_outputs(fixture, run, outputs):
    signatures = fixture.methods[run.method]["outputs"]
    assert isinstance(outputs, list) and len(outputs) == len(run.expected)
    for output, wanted, signature in zip(outputs, run.expected, signatures, strict=True):
        assert_close(run.sampled(np.asarray(output)), wanted, signature.get("dtype"))


def inputs_of(run):
    if not TORCH:
        return run.inputs
    import torch

    return [torch.from_numpy(value) for value in run.inputs]


@pytest.mark.parametrize("name", ["add2_5", "ds_cnn", "two_methods", "shared_buffer"])
def test_a_module_from_a_file_and_from_bytes(name):
    fixture = fixture_store.load(name)
    modules = [portable_lib._load_for_executorch(str(fixture.path)),
               portable_lib._load_for_executorch_from_buffer(fixture.path.read_bytes())]
    for module in modules:
        assert set(module.method_names()) == set(fixture.methods) and not module.has_etdump()
        for run in fixture.runs:
            assert_outputs(fixture, run, module.run_method(run.method, inputs_of(run)))


def test_forward_and_a_call_are_the_same():
    fixture = fixture_store.load("add2_5")
    run = fixture.runs[0]
    module = portable_lib._load_for_executorch(fixture.path)
    for call in (module, module.forward):
        assert_outputs(fixture, run, call(inputs_of(run), clone_outputs=False))
    assert module.method_meta("forward").num_inputs() == len(run.inputs)


def test_outputs_are_tensors_of_torch_where_it_is_installed():
    outputs = portable_lib._load_for_executorch(fixture_store.load("constant_output").path).forward(
        fixture_store.load("constant_output").runs[0].inputs)
    assert {type(output).__module__ for output in outputs} == {"torch" if TORCH else "numpy"}


def test_a_program_and_its_method():
    fixture = fixture_store.load("two_methods")
    run = fixture.runs[0]
    for source in (fixture.path, fixture.path.read_bytes()):
        program = portable_lib._load_program_from_buffer(
            source, program_verification=Verification.InternalConsistency)
        names = [program.get_method_name(i) for i in range(program.num_methods())]
        assert set(names) == set(fixture.methods)
        method = program.load_method(run.method)
        with pytest.raises(RuntimeError, match="has not been executed"):
            method.get_outputs()
        method.set_inputs(inputs_of(run))
        method.execute()
        assert_outputs(fixture, run, method.get_outputs())
        assert_outputs(fixture, run, method(inputs_of(run)))
        assert method.method_meta().name() == run.method


def test_external_data():
    fixture = fixture_store.load("external_weights")
    run, data = fixture.runs[0], fixture.data_paths[0]
    for module in (portable_lib._load_for_executorch(fixture.path, data),
                   portable_lib._load_for_executorch_from_buffer(fixture.path.read_bytes(),
                                                                 data.read_bytes())):
        assert_outputs(fixture, run, module.forward(inputs_of(run)))


def test_recorded_events(tmp_path):
    fixture = fixture_store.load("add2_5")
    module = portable_lib._load_for_executorch(fixture.path, enable_etdump=True)
    module.forward(inputs_of(fixture.runs[0]))
    assert module.has_etdump()
    module.write_etdump_result_to_file(str(tmp_path / "a.etdp"))
    assert (tmp_path / "a.etdp").stat().st_size > 100


def test_failures_are_runtime_errors():
    module = portable_lib._load_for_executorch(fixture_store.load("add2_5").path)
    program = portable_lib._load_program(fixture_store.load("add2_5").path)
    for call in (lambda: module.run_method("backward", []), lambda: program.load_method("backward"),
                 lambda: module.forward([]), lambda: portable_lib._load_for_executorch("no.pte"),
                 lambda: portable_lib._load_for_executorch_from_buffer(b"no program")):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert isinstance(caught.value, Error)


def test_registries():
    assert "aten::add.out" in portable_lib._get_operator_names()
    assert portable_lib._get_registered_backend_names() == []
    assert portable_lib._is_available("XnnpackBackend") is False


def test_its_calls_have_the_arguments_of_executorch():
    lib = pytest.importorskip("executorch.extension.pybindings.portable_lib")
    for name in portable_lib.__all__:
        assert hasattr(lib, name), name
    for name in ("_load_for_executorch", "_load_for_executorch_from_buffer", "_load_program"):
        documented = getattr(lib, name).__doc__.partition("->")[0]
        for parameter in inspect.signature(getattr(portable_lib, name)).parameters:
            assert f"{parameter}:" in documented


# ---- used as in ExecuTorch's own tests


@pytest.mark.skipif(not TORCH, reason="needs torch")
@pytest.mark.parametrize("call", {
    "module": lambda path, x: portable_lib._load_for_executorch(path)(x),
    "forward": lambda path, x: portable_lib._load_for_executorch(path).forward(x),
    "run_method": lambda path, x: portable_lib._load_for_executorch(path).run_method("forward", x),
    "method": lambda path, x: portable_lib._load_program(path).load_method("forward")(x),
    "call": lambda path, x: portable_lib._load_program(path).load_method("forward").call(x),
    "runtime": lambda path, x: Runtime.get().load_program(path).load_method("forward").execute(x),
}.items(), ids=lambda item: item[0])
def test_a_single_input_needs_no_list(call):
    fixture = fixture_store.load("ds_cnn")
    run = fixture.runs[0]
    assert_outputs(fixture, run, call[1](fixture.path, inputs_of(run)[0]))


def test_the_repr_of_a_method_has_its_tensors():
    info = "TensorInfo(sizes=[5], dtype=Float, is_memory_planned=True, nbytes=20)"
    meta = portable_lib._load_program(fixture_store.load("add2_5").path).method_meta("forward")
    assert repr(meta) == (f"MethodMeta(name='forward', num_inputs=2, input_tensor_meta=['{info}', "
                          f"'{info}'], num_outputs=1, output_tensor_meta=['{info}'])")
    for fixture in fixture_store.load_all():
        program = portable_lib._load_program(fixture.path)
        for name in fixture.methods:
            assert repr(program.method_meta(name)).startswith(f"MethodMeta(name={name!r}, num_inputs=")


def test_the_state_of_a_method_by_name():
    fixture = fixture_store.load("external_state")
    program = portable_lib._load_program(fixture.path, data_path=fixture.data_paths[0])
    method = program.load_method("forward")
    before = np.asarray(method.get_attribute("total"))
    method(inputs_of(fixture.runs[0]))
    assert before.shape == np.asarray(method.get_attribute("total")).shape
    assert not np.array_equal(before, np.asarray(method.get_attribute("total")))
    with pytest.raises(RuntimeError, match="NotFound.*nix"):
        method.get_attribute("nix")


def test_the_index_of_a_method():
    program = portable_lib._load_program(fixture_store.load("two_methods").path)
    for index in (2, -1, 1 << 40):
        with pytest.raises(RuntimeError, match="the program has 2 methods"):
            program.get_method_name(index)
    with pytest.raises(TypeError):
        program.get_method_name("forward")


def test_inputs_are_checked_when_they_are_set():
    method = portable_lib._load_program(fixture_store.load("add2_5").path).load_method("forward")
    for inputs in ([], [np.ones(5, np.float32)], [np.ones(4, np.float32)] * 2, [object()] * 2):
        with pytest.raises(RuntimeError):
            method.set_inputs(inputs)


@pytest.mark.skipif(not TORCH, reason="needs torch")
def test_a_tensor_without_data_is_named():
    import torch

    module = portable_lib._load_for_executorch(fixture_store.load("add2_5").path)
    with pytest.raises(RuntimeError, match="input 0: .*is on device meta, and only CPU and CUDA"):
        module.forward([torch.ones(5, device="meta"), torch.ones(5)])


@pytest.mark.parametrize("data", [b"", b"short", b"invalid" * 40], ids=["empty", "short", "invalid"])
def test_a_wrong_data_map_fails_when_it_is_needed(data, tmp_path):
    fixture = fixture_store.load("external_weights")
    (tmp_path / "a.ptd").write_bytes(data)
    for module in (portable_lib._load_for_executorch_from_buffer(fixture.path.read_bytes(), data),
                   portable_lib._load_for_executorch(fixture.path, tmp_path / "a.ptd")):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="data file"):
                module.forward(inputs_of(fixture.runs[0]))
    with pytest.raises(RuntimeError, match="data file"):
        Runtime.get().load_program(fixture.path, data_path=tmp_path / "a.ptd")


def test_a_bundled_program():
    fixture = fixture_store.load("external_weights")
    module = portable_lib._load_bundled_program_from_buffer(fixture.path.read_bytes())
    for data in (fixture.data_paths[0], fixture.data_paths[0].read_bytes()):
        loaded = portable_lib._load_for_executorch_from_bundled_program(module, data)
        assert_outputs(fixture, fixture.runs[0], loaded.forward(inputs_of(fixture.runs[0])))
    with pytest.raises(RuntimeError):
        portable_lib._load_for_executorch_from_bundled_program(module).forward(
            inputs_of(fixture.runs[0]))
