"""Test picotorch.runtime in place of executorch.runtime: the same exceptions, and ExecuTorch's own
tests."""

import contextlib
import importlib.util
import io
import types
import unittest

import numpy as np
import pytest
from picotorch import Error, runtime
from support import fixture_store

pytestmark = pytest.mark.check

MODEL = fixture_store.load("two_methods")
METHOD = "decode"
needs_executorch = pytest.mark.skipif(not importlib.util.find_spec("executorch"),
                                      reason="needs executorch")


def load(api, data=None, **options):
    return api.Runtime.get().load_program(MODEL.path.read_bytes() if data is None else data, **options)


def meta(api):
    return load(api).metadata(METHOD)


def execute(api, inputs):
    return load(api).load_method(METHOD).execute(inputs)


def closed(data):
    file = io.BytesIO(data)
    file.close()
    return file


# Failing calls, and their exceptions
CALLS = {
    "no such method": (KeyError, lambda api: load(api).load_method("nix")),
    "no method like that": (TypeError, lambda api: load(api).load_method([])),
    "no such metadata": (RuntimeError, lambda api: load(api).metadata("nix")),
    "metadata of a number": (TypeError, lambda api: load(api).metadata(3)),
    "input index": (IndexError, lambda api: meta(api).input_tensor_meta(9)),
    "output index": (IndexError, lambda api: meta(api).output_tensor_meta(9)),
    "attribute index": (IndexError, lambda api: meta(api).attribute_tensor_meta(9)),
    "index of another type": (TypeError, lambda api: meta(api).input_tensor_meta("a")),
    "no program": (RuntimeError, lambda api: load(api, b"junk" * 20)),
    "no bytes": (RuntimeError, lambda api: load(api, b"")),
    "half a program": (RuntimeError, lambda api: load(api, MODEL.path.read_bytes()[:999])),
    "no file": (RuntimeError, lambda api: load(api, "/nix/model.pte")),
    "a folder": (RuntimeError, lambda api: load(api, MODEL.path.parent)),
    "a number as source": (TypeError, lambda api: load(api, 3)),
    "a text file": (TypeError, lambda api: load(api, io.StringIO("text"))),
    "a closed file": (ValueError, lambda api: load(api, closed(b""))),
    "verification": (TypeError, lambda api: load(api, verification=3)),
    "debug buffer": (TypeError, lambda api: load(api, debug_buffer_size="1")),
    "no data file": (RuntimeError, lambda api: load(api, data_path="/nix/weights.ptd")),
    "no inputs": (RuntimeError, lambda api: execute(api, [])),
    "objects as inputs": (RuntimeError, lambda api: execute(api, [object(), object()])),
    "inputs that are a number": (TypeError, lambda api: execute(api, 3)),
    "inputs that are a dict": (TypeError, lambda api: execute(api, {})),
    "nothing recorded": (RuntimeError, lambda api: load(api).write_etdump_result_to_file("a", "b")),
    "backend name": (TypeError, lambda api: api.Runtime.get().backend_registry.is_available(3)),
}


@pytest.mark.parametrize("builtin, call", CALLS.values(), ids=CALLS)
def test_errors_are_builtin_exceptions_too(builtin, call):
    with pytest.raises(Error) as caught:
        call(runtime)
    assert isinstance(caught.value, builtin)
    assert str(caught.value).startswith(caught.value.name)
    kind = {KeyError: "UnknownName", TypeError: "WrongType", RuntimeError: "RuntimeFailure",
            IndexError: "WrongIndex", ValueError: "WrongState"}[builtin]
    assert repr(caught.value) == f"<{kind} {caught.value}>"
    others = {KeyError, TypeError, RuntimeError, IndexError, ValueError} - {builtin}
    assert not isinstance(caught.value, tuple(others))


@needs_executorch
@pytest.mark.parametrize("builtin, call", CALLS.values(), ids=CALLS)
def test_executorch_raises_the_same(builtin, call):
    import executorch.runtime

    with pytest.raises(Exception) as caught:
        call(executorch.runtime)
    assert type(caught.value) is builtin


def test_errors_of_a_kernel_and_a_missing_kernel():
    program = load(runtime, fixture_store.load("missing_operators").path)
    with pytest.raises(RuntimeError, match="OperatorMissing"):
        program.load_method("forward")
    run = fixture_store.load("embedding").runs[0]
    program = load(runtime, fixture_store.load("embedding").path)
    with pytest.raises(RuntimeError, match="instruction"):
        program.load_method("forward").execute([np.full_like(x, 1 << 20) for x in run.inputs])


def test_outside_the_runtime_an_error_is_an_error_only():
    import picotorch

    with pytest.raises(Error) as caught:
        picotorch.Module("/nix/model.pte")
    assert type(caught.value) is Error


@needs_executorch
def test_verification_of_executorch_is_accepted():
    from executorch.runtime import Verification

    for verification in (Verification.Minimal, Verification.InternalConsistency):
        assert load(runtime, verification=verification).method_names == {"decode", "encode"}


@needs_executorch
def test_remedies_for_tensors_of_torch():
    import torch

    def message(x):
        with pytest.raises(RuntimeError) as caught:
            method.execute([x, torch.ones(5)])
        return str(caught.value)

    method = load(runtime, fixture_store.load("add2_5").path).load_method("forward")
    assert ".contiguous()" in message(torch.ones(10)[::2])
    for dtype in (torch.int64, torch.bfloat16):
        assert ".to(torch.float32)" in message(torch.ones(5, dtype=dtype))


# ---- ExecuTorch's own tests


def own_tests():
    """Return the tests of executorch.runtime in the package, without those of XNNPACK's programs."""
    folder = importlib.util.find_spec("executorch.runtime").submodule_search_locations[0]
    found = unittest.TestSuite()
    for name in ("test_runtime", "test_runtime_etdump_gen"):
        with open(f"{folder}/test/{name}.py") as file:
            text = file.read()
        assert "from executorch.runtime import" in text
        module = types.ModuleType(name)
        exec(text.replace("from executorch.runtime import", "from picotorch.runtime import"),
             module.__dict__)
        found.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    return [test for cases in found for test in cases]


@needs_executorch
def test_executorch_own_tests_pass_with_the_import_changed():
    tests = own_tests()
    assert len(tests) >= 7
    result = unittest.TestResult()
    unittest.TestSuite(tests).run(result)
    assert not result.errors + result.failures, result
    assert not result.skipped


@needs_executorch
def test_executorch_own_tests_of_its_bindings_pass():
    """The test excludes tests that also fail with ExecuTorch's own runtime, or that need a device."""
    folder = importlib.util.find_spec("executorch.extension.pybindings").submodule_search_locations[0]
    with open(f"{folder}/test/test_pybindings.py") as file:
        text = file.read()
    old = "from executorch.extension.pybindings import portable_lib as runtime"
    assert old in text
    module = types.ModuleType("test_pybindings")
    exec(text.replace(old, "from picotorch.runtime import portable_lib as runtime"), module.__dict__)
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()):
        unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    failed = {test.id().split(".")[-1] for test, _ in result.errors + result.failures}
    assert result.testsRun > 35
    assert failed <= {"test_quantized_ops", "test_method_quantized_ops",
                      "test_program_loads_when_one_method_is_device_planned"}, result
