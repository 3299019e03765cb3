"""Expected outputs: ExecuTorch's own runtime, checked against eager PyTorch."""

import copy

import torch
from executorch.runtime import Runtime

from zoo.registry import Model


def run(model: Model, pte: bytes) -> list[list]:
    """Execute each run of the model; the outputs of each, tensors cloned.

    Raises AssertionError where ExecuTorch and eager PyTorch disagree: such a program would be
    a bad reference.
    """
    program = Runtime.get().load_program(pte)
    eager = {name: copy.deepcopy(module) for name, (module, _) in model.methods().items()}
    loaded = {name: program.load_method(name) for name in eager}
    results = []
    for name, inputs in model.runs():
        outputs = [_detached(value) for value in loaded[name].execute(inputs)]
        with torch.no_grad():
            wanted = _flatten(eager[name](*copy.deepcopy(inputs)))
        _assert_close(outputs, wanted)
        results.append(outputs)
    return results


def _assert_close(outputs: list, wanted: list) -> None:
    """Equal within 1e-5 of the value, or of the largest value of the tensor."""
    for output, want in zip(outputs, wanted, strict=True):
        largest = 0.0
        if isinstance(want, torch.Tensor) and want.is_floating_point() and want.isfinite().any():
            largest = float(want[want.isfinite()].abs().max())
        torch.testing.assert_close(output, want, rtol=1e-5, atol=1e-5 * largest, equal_nan=True)


def _detached(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _flatten(outputs) -> list:
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
