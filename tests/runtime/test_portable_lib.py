"""picotorch.runtime.portable_lib: the interface of executorch.extension.pybindings.portable_lib."""

import importlib.util
import inspect

import numpy as np
import pytest
from picotorch import Error
from picotorch.runtime import Verification, portable_lib
from support import fixture_store
from support.fixture_store import assert_close

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


def test_what_is_recorded(tmp_path):
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


def test_its_calls_take_what_those_of_executorch_take():
    lib = pytest.importorskip("executorch.extension.pybindings.portable_lib")
    for name in portable_lib.__all__:
        assert hasattr(lib, name), name
    for name in ("_load_for_executorch", "_load_for_executorch_from_buffer", "_load_program"):
        documented = getattr(lib, name).__doc__.partition("->")[0]
        for parameter in inspect.signature(getattr(portable_lib, name)).parameters:
            assert f"{parameter}:" in documented
