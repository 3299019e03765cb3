"""Compute expected outputs: by ExecuTorch's own runtime, compared with eager PyTorch, or by the
Cortex-M dialect."""

import copy
import tempfile
from pathlib import Path

import torch
from executorch.runtime import Runtime
from models.zoo import cortex_m
from models.zoo.registry import Model

_MOVED = (torch.float8_e5m2, torch.float8_e4m3fn)
_TOLERANCES = {torch.float16: 2**-8, torch.bfloat16: 2**-5}


def run(model: Model, pte: bytes, data: bytes | None = None) -> list[list]:
    """Execute each run of the model, with a .ptd file. Return the outputs of each run, with tensors
    cloned.

    The outputs of a model for Cortex-M are the dialect's. Other outputs are ExecuTorch's, or PyTorch's
    if the model states that ExecuTorch fails. Raise AssertionError if the two disagree without this
    statement, or agree with it.
    """
    if model.cortex_m:
        return cortex_m.run(model)
    wanted = run_eager(model)
    if model.executorch_crashes:
        return wanted
    if not model.executorch_fails:
        outputs = _run_executorch(model, pte, data)
        _assert_close(outputs, wanted)
        return outputs
    try:
        _assert_close(_run_executorch(model, pte, data), wanted)
    except (AssertionError, RuntimeError):
        return wanted
    raise AssertionError("ExecuTorch agrees with PyTorch: executorch_fails is not true")


def _run_executorch(model: Model, pte: bytes, data: bytes | None) -> list[list]:
    with tempfile.TemporaryDirectory() as folder:
        path, data_path = Path(folder) / "model.pte", Path(folder) / "model.ptd"
        path.write_bytes(pte)
        if data is not None:
            data_path.write_bytes(data)
        program = Runtime.get().load_program(path, data_path=data_path if data else None)
        return _run_methods(model, program)


def _run_methods(model, program):
    loaded = {name: program.load_method(name)
              for name in [*model.methods(), *model.constant_methods]}
    return [
        [_detached(value) for value in loaded[name].execute(inputs)]
        for name, inputs in model.runs()
    ]


def run_eager(model: Model) -> list[list]:
    """Return PyTorch's outputs of each run, without oneDNN, whose gelu has an error of 1e-4."""
    modules = copy.deepcopy({name: module for name, (module, _) in model.methods().items()})
    for name, value in model.constant_methods.items():
        modules[name] = lambda value=value: value
    with torch.backends.mkldnn.flags(enabled=False):
        call = _differentiate if model.gradients else _call_eager
        return [call(modules[name], copy.deepcopy(inputs)) for name, inputs in model.runs()]


def _differentiate(module: torch.nn.Module, inputs: tuple) -> list:
    """Return the loss, its gradients by the parameters, and the parameters."""
    parameters = [*module.parameters()]
    loss = module(*inputs)
    return [_detached(value) for value in
            [loss, *torch.autograd.grad(loss, parameters), *parameters]]


def _call_eager(module: torch.nn.Module, inputs: tuple) -> list:
    """Return the inputs that were changed in place, then the outputs, in the exporter's order."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    versions = [tensor._version for tensor in tensors]
    with torch.no_grad():
        outputs = module(*inputs)
    changed = [
        tensor
        for tensor, version in zip(tensors, versions, strict=True)
        if tensor._version != version
    ]
    flat, _ = torch.utils._pytree.tree_flatten(outputs)
    return [_detached(value) for value in [*changed, *flat]]


def _assert_close(outputs: list[list], wanted: list[list]) -> None:
    """Assert that outputs are equal within 1e-5 of the value, or of the largest value of the tensor.

    The tolerance of float16 and bfloat16 is a few units in the last place. Values that are not computed
    are compared as bits.
    """
    for output, want in zip(sum(outputs, []), sum(wanted, []), strict=True):
        if getattr(want, "dtype", None) in _MOVED:
            assert output.dtype == want.dtype
            output, want = output.view(torch.uint8), want.view(torch.uint8)
        largest = 0.0
        if isinstance(want, str):
            assert output == want
            continue
        if isinstance(want, torch.Tensor) and want.is_floating_point() and want.isfinite().any():
            largest = float(want[want.isfinite()].abs().max())
        tolerance = _TOLERANCES.get(getattr(want, "dtype", None), 1e-5)
        torch.testing.assert_close(
            output, want, rtol=tolerance, atol=tolerance * largest, equal_nan=True
        )


def _detached(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
