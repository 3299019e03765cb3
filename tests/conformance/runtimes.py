"""Run a program in either of the two runtimes, and return torch tensors and numbers."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from executorch.runtime import Runtime
from picotorch import runtime
from picotorch.host.tensors import BFLOAT16, COMPLEX_HALF

# numpy lacks these dtypes, so arrays have their bits. By ScalarType: the dtype and integers of its
# size.
_BITS = {BFLOAT16: (torch.bfloat16, torch.int16, np.uint16),
         COMPLEX_HALF: (torch.complex32, torch.int32, np.uint32),
         23: (torch.float8_e5m2, torch.uint8, np.uint8),
         24: (torch.float8_e4m3fn, torch.uint8, np.uint8)}


def run_executorch(pte: bytes, runs: list, data: bytes | None = None) -> list[list]:
    """Return the outputs of each run. runs: (method, inputs); methods stay loaded between runs."""
    with tempfile.TemporaryDirectory() as folder:
        path, data_path = Path(folder) / "model.pte", Path(folder) / "model.ptd"
        path.write_bytes(pte)
        if data is not None:
            data_path.write_bytes(data)
        program = Runtime.get().load_program(path, data_path=data_path if data is not None else None)
        loaded = {name: program.load_method(name) for name, _ in runs}
        return [[_detached(value) for value in loaded[name].execute(inputs)] for name, inputs in runs]


def _detached(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def run_picotorch(pte: bytes, runs: list, data: bytes | None = None) -> list[list]:
    """Return the outputs of each run on the twin. Raises picotorch.Error."""
    with tempfile.TemporaryDirectory() as folder:
        data_path = None
        if data is not None:
            data_path = Path(folder) / "model.ptd"
            data_path.write_bytes(data)
        program = runtime.Runtime.get().load_program(pte, data_path=data_path)
    loaded = {name: program.load_method(name) for name, _ in runs}
    return [_run(loaded[name], inputs) for name, inputs in runs]


def _run(method, inputs):
    outputs = method.execute([_array(value) for value in inputs])
    return [_tensor(value, method.metadata, i) for i, value in enumerate(outputs)]


def _array(value):
    if isinstance(value, list | tuple):
        return [_array(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    for dtype, integer, array in _BITS.values():
        if value.dtype == dtype:
            return value.view(integer).numpy().view(array)
    return value.numpy()


def _tensor(value, metadata, i):
    if isinstance(value, list):
        return [_tensor(item, metadata, i) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    if metadata.output_tensor_meta(i).dtype() in _BITS:
        dtype, integer, _ = _BITS[metadata.output_tensor_meta(i).dtype()]
        return torch.from_numpy(value.copy()).view(integer).view(dtype)
    return torch.from_numpy(value.copy())
