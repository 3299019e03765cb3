"""Provide the interface of executorch.extension.pybindings.portable_lib, ExecuTorch's older one.

    from picotorch.runtime.portable_lib import _load_for_executorch
    outputs = _load_for_executorch("model.pte").forward([x])

Outputs are new tensors of torch, if torch is installed, else numpy arrays: clone_outputs has no effect.
Errors are the ones of picotorch.runtime. Bundled programs are programs here; picotorch run uses their
inputs.
"""

import importlib.util
import os
from os import PathLike
from pathlib import Path
from typing import Any

from picotorch.errors import INVALID_ARGUMENT, INVALID_STATE, fail, need
from picotorch.host.files import read_file

from . import Method, MethodMeta, Program, Runtime, TensorInfo, Verification, opened
from .exceptions import RuntimeFailure, raises

__all__ = ["BundledModule", "ExecuTorchMethod", "ExecuTorchModule", "ExecuTorchProgram", "MethodMeta",
           "TensorInfo", "Verification", "_get_operator_names", "_get_registered_backend_names",
           "_is_available", "_load_bundled_program_from_buffer", "_load_for_executorch",
           "_load_for_executorch_from_buffer", "_load_for_executorch_from_bundled_program",
           "_load_program", "_load_program_from_buffer"]


def _execute(method: Method, inputs: Any) -> list[Any]:
    return method.execute(inputs, torch=_has_torch())


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


class _Loaded:
    def __init__(self, program: Program) -> None:
        self._program = program

    def method_meta(self, method_name: str) -> MethodMeta:
        return self._program.metadata(method_name)

    def has_etdump(self) -> bool:
        return self._program.is_recorded

    def write_etdump_result_to_file(self, path: str, debug_buffer_path: str | None = None) -> None:
        self._program.write_etdump_result_to_file(path, debug_buffer_path or os.devnull)


class ExecuTorchModule(_Loaded):
    """Made by _load_for_executorch: a program whose methods are loaded when they are first run."""

    def method_names(self) -> list[str]:
        """Return the names of the methods."""
        return list(self._program.ordered_names)

    @raises(RuntimeFailure)
    def run_method(self, method_name: str, inputs: Any = (),
                   clone_outputs: bool = True) -> list[Any]:
        """Execute a method; return the list of its outputs. clone_outputs has no effect."""
        self._program.metadata(method_name)  # of an unknown one a RuntimeError
        return _execute(self._program.load_method(method_name), inputs)

    def forward(self, inputs: Any = (), clone_outputs: bool = True) -> list[Any]:
        """Execute the method "forward"; return the list of its outputs."""
        return self.run_method("forward", inputs)

    __call__ = forward


class ExecuTorchMethod:
    """Made by ExecuTorchProgram.load_method."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self._inputs: Any = ()
        self._outputs: list[Any] | None = None

    def set_inputs(self, inputs: Any) -> None:
        """Check inputs, and keep them for execute."""
        self._method.checked(inputs)
        self._inputs = inputs

    def execute(self) -> None:
        """Execute the method with the inputs that were set."""
        self._outputs = _execute(self._method, self._inputs)

    @raises(RuntimeFailure)
    def get_outputs(self, clone_outputs: bool = True) -> list[Any]:
        """Return the outputs of the last execution. Raises RuntimeError before execute."""
        if self._outputs is None:
            raise fail(INVALID_STATE, "has not been executed", "method", remedy="call execute first")
        return list(self._outputs)

    def call(self, inputs: Any = (), clone_outputs: bool = True) -> list[Any]:
        """Set inputs, execute, and return the outputs, as one step if threads share the method."""
        self.set_inputs(inputs)
        outputs = _execute(self._method, inputs)
        self._outputs = outputs
        return list(outputs)

    __call__ = call

    def method_meta(self) -> MethodMeta:
        """Return the MethodMeta of the method."""
        return self._method.metadata

    def get_attribute(self, name: str) -> Any:
        """Return the values of a mutable buffer whose name the program has. Raises NotFound."""
        return self._method.get_attribute(name, torch=_has_torch())


class ExecuTorchProgram(_Loaded):
    """Made by _load_program."""

    def num_methods(self) -> int:
        """Return the number of methods."""
        return len(self._program.ordered_names)

    @raises(RuntimeFailure)
    def get_method_name(self, method_index: int) -> str:
        """Return the name of a method. Raises RuntimeError for an index out of range."""
        need(method_index, int, "method_index")
        if not 0 <= method_index < self.num_methods():
            raise fail(INVALID_ARGUMENT, f"the program has {self.num_methods()} methods", "method",
                       method_index, remedy="count from 0")
        return self._program.ordered_names[method_index]

    @raises(RuntimeFailure)
    def load_method(self, method_name: str) -> ExecuTorchMethod:
        """Load a method. Raises RuntimeError for an unknown name."""
        self._program.metadata(method_name)
        return ExecuTorchMethod(self._program.load_method(method_name))


def _load_for_executorch(
        program_path: str | PathLike[str], data_path: str | PathLike[str] | None = None,
        enable_etdump: bool = False, debug_buffer_size: int = 0,
        program_verification: Verification = Verification.InternalConsistency) -> ExecuTorchModule:
    return ExecuTorchModule(_open(program_path, data_path, enable_etdump, debug_buffer_size,
                                  program_verification))


@raises(RuntimeFailure)
def _load_for_executorch_from_buffer(
        buffer: bytes, data_map_buffer: bytes | None = None, enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        program_verification: Verification = Verification.InternalConsistency) -> ExecuTorchModule:
    files = [] if data_map_buffer is None else [data_map_buffer]
    return ExecuTorchModule(opened(buffer, files, Verification[program_verification.name],
                                   enable_etdump, debug_buffer_size))


class BundledModule:
    """Made by _load_bundled_program_from_buffer: the bytes of a .bpte file."""

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer


def _load_bundled_program_from_buffer(buffer: bytes, non_const_pool_size: int = 0) -> BundledModule:
    """Store the bytes of a .bpte file. non_const_pool_size has no effect: memories have exact sizes."""
    return BundledModule(buffer)


@raises(RuntimeFailure)
def _load_for_executorch_from_bundled_program(
        module: BundledModule, data_map_buffer: bytes | str | PathLike[str] | None = None,
        enable_etdump: bool = False, debug_buffer_size: int = 0) -> ExecuTorchModule:
    """Load the program of a bundled program.

    data_map_buffer: the bytes of a .ptd file, or its path.
    """
    if isinstance(data_map_buffer, str | PathLike):
        data_map_buffer = read_file(Path(data_map_buffer))
    return _load_for_executorch_from_buffer(module.buffer, data_map_buffer, enable_etdump,
                                            debug_buffer_size)


def _load_program(path: str | PathLike[str], enable_etdump: bool = False, debug_buffer_size: int = 0,
                  program_verification: Verification = Verification.Minimal,
                  data_path: str | PathLike[str] | None = None) -> ExecuTorchProgram:
    return ExecuTorchProgram(_open(path, data_path, enable_etdump, debug_buffer_size,
                                   program_verification))


_load_program_from_buffer = _load_program


@raises(RuntimeFailure)
def _open(program: str | PathLike[str] | bytes, data_path: str | PathLike[str] | None,
          is_recorded: bool, debug_buffer_size: int, verification: Verification) -> Program:
    found = program if isinstance(program, bytes | bytearray) else read_file(Path(program))
    files = [] if data_path is None else [read_file(Path(data_path))]
    return opened(found, files, Verification[verification.name], is_recorded, debug_buffer_size)


def _get_operator_names() -> list[str]:
    return sorted(Runtime.get().operator_registry.operator_names)


def _get_registered_backend_names() -> list[str]:
    return Runtime.get().backend_registry.registered_backend_names


def _is_available(backend_name: str) -> bool:
    return Runtime.get().backend_registry.is_available(backend_name)
