"""Provide the interface of executorch.runtime, with tensors of torch or numpy arrays.

    from picotorch.runtime import Runtime, Verification
    program = Runtime.get().load_program("model.pte")
    outputs = program.load_method("forward").execute([x])

Outputs are tensors of torch if an input is one, else numpy arrays. numpy has no bfloat16: such an
output is an array of its bits (uint16), which from_bfloat16 makes float32; such an input is the same
(to_bfloat16), or an array of ml_dtypes.

Every error is a picotorch.Error with ExecuTorch's code and name, and also the builtin exception that
ExecuTorch's runtime raises: KeyError from load_method for an unknown method, IndexError for an index,
TypeError for an argument of the wrong type, ValueError for a closed file object, else RuntimeError.
"""

import enum
import functools
import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import picotorch
from picotorch.data import DataMap
from picotorch.errors import (
    ACCESS_FAILED,
    INVALID_ARGUMENT,
    INVALID_STATE,
    INVALID_TYPE,
    fail,
    need,
)
from picotorch.host.aligned import aligned_copy
from picotorch.host.files import read_file, write
from picotorch.host.inputs import checked_inputs
from picotorch.host.instructions import read_instructions
from picotorch.host.request import read_events
from picotorch.host.tensors import as_torch, from_bfloat16, from_stored, is_torch, to_bfloat16
from picotorch.host.twin import open_data, output, set_inputs
from picotorch.host.values import TENSOR, Values
from picotorch.measure import etdump, intermediate
from picotorch.measure.etdump import Execution
from picotorch.memory import buffer_size
from picotorch.module import alone, load_with_exact_memories
from picotorch.run import bundled

from .exceptions import RuntimeFailure, UnknownName, WrongState, raises
from .metadata import MethodMeta, TensorInfo
from .registry import BackendRegistry, OperatorRegistry
from .shared_state import methods_that_share

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["BackendRegistry", "Method", "MethodMeta", "OperatorRegistry", "Program", "Runtime",
           "TensorInfo", "Verification", "from_bfloat16", "to_bfloat16"]


class Verification(enum.Enum):
    """The checks of a program when it is loaded."""

    Minimal = picotorch.MINIMAL
    InternalConsistency = picotorch.STRICT


class Method:
    """A loaded method. Made by Program.load_method."""

    def __init__(self, method: picotorch.Method, lock: AbstractContextManager[Any], calls: list[object],
                 trace: "Trace | None" = None) -> None:
        self._method = method
        self._meta = method.method_meta()
        self._lock = lock
        self._trace = trace
        self._calls = calls

    @raises(RuntimeFailure)
    def execute(self, inputs: Any, *, torch: bool | None = None) -> list[Any]:
        """Return the outputs for these inputs: new arrays, numbers, bools and None.

        torch: return tensors of torch; by default, if an input is a tensor of torch. inputs: a list or
        tuple, or a single tensor of torch.

        An input is an array of the program's dtype and sizes (or others within the bound, of a dynamic
        input) whose elements lie in C order or in the program's dim order, or the number with which the
        program was exported. Raises InvalidArgument, InvalidType, NotSupported for other sizes, and the
        errors of kernels. Threads execute the methods of a program one after the other. Raises
        InvalidState if a signal handler or a backend calls the method that is executing, or one that
        shares mutable buffers with it.
        """
        if not isinstance(torch, bool | None):
            raise fail(INVALID_TYPE, "is neither None nor a bool", "torch", remedy="leave it out")
        checked = self.checked(inputs)
        if torch is None:
            torch = is_torch(inputs) or any(map(is_torch, inputs))
        with self._lock:
            return alone(self._calls, "method", "is executing; call it afterwards", self._execute,
                         checked, torch)

    def _execute(self, inputs: list[Any], torch: bool) -> list[Any]:
        set_inputs(self._method, self._meta, inputs)
        if self._trace is None:
            self._method.execute()
        else:
            self._trace.execute(self._method)
        return [self._output(i, torch) for i in range(self._meta.num_outputs())]

    @raises(RuntimeFailure)
    def checked(self, inputs: Any) -> list[Any]:
        """Return the inputs as arrays and numbers. Raises what execute raises for other inputs."""
        if is_torch(inputs):
            inputs = [inputs]
        if not isinstance(inputs, Sequence) or isinstance(inputs, str | bytes | bytearray | memoryview):
            raise fail(INVALID_TYPE, "are not a list or tuple", "inputs", remedy="give a list of them")
        checked = checked_inputs(self._meta, inputs)
        self._check_contiguous(checked, inputs)
        return checked

    @raises(RuntimeFailure)
    def get_attribute(self, name: str, *, torch: bool = False) -> Any:
        """Return the present values of the parameter or buffer of this fully qualified name.

        They are a new array, or a tensor of torch. Raises NotFound if the program has no such name.
        """
        need(name, str, "name")
        with self._lock:
            found = self._method.get_attribute(name)
            info = next(info for info in map(self._meta.attribute_tensor_meta,
                                             range(self._meta.num_attributes())) if info.name() == name)
            array = from_stored(found.data, info, found.sizes())
        return as_torch(array, info.scalar_type()) if torch else array

    def _output(self, i: int, torch: bool) -> Any:
        value = output(self._method, self._meta, i)
        if torch and self._meta.output_tag(i) == TENSOR:
            return as_torch(value, self._meta.output_tensor_meta(i).scalar_type())
        return value

    def _check_contiguous(self, checked: list[Any], inputs: Sequence[Any]) -> None:
        for i, array in enumerate(checked):
            if self._meta.input_tag(i) != TENSOR:
                continue
            in_memory = array.transpose(self._meta.input_tensor_meta(i).dim_order())
            if not (array.flags.c_contiguous or in_memory.flags.c_contiguous):
                raise fail(INVALID_ARGUMENT, "is not contiguous", "input", i,
                           remedy="give its .contiguous()" if is_torch(inputs[i]) else
                           "give numpy.ascontiguousarray of it")

    @raises(RuntimeFailure)
    def manual_seed(self, seed: int) -> None:
        """Restart the random numbers with the low 32 bits of a seed."""
        need(seed, int, "seed")
        with self._lock:
            self._method.library.seed(seed)

    @property
    def metadata(self) -> MethodMeta:
        """Return the MethodMeta of the method."""
        return MethodMeta(self._meta)

    def __repr__(self) -> str:
        return repr(self._method)


class Record:
    """The record of a program's executions, and the buffer for results of instructions, if any."""

    def __init__(self, debug_buffer_size: int) -> None:
        self.executions: list[Execution] = []
        self.buffer = intermediate.DebugBuffer(debug_buffer_size) if debug_buffer_size else None


class Trace:
    """Add the times and values of each execution of a method to the record of the program."""

    def __init__(self, meta: picotorch.MethodMeta, record: Record) -> None:
        self.tracer = picotorch.EventTracer(bytearray(picotorch.EventTracer.nbytes(meta)))
        self._values = Values(meta.program, meta.plan)
        self._instructions = read_instructions(meta, self._values)
        self._record = record

    def execute(self, method: picotorch.Method) -> None:
        self.tracer.reset()
        buffer = self._record.buffer
        found: tuple[Any, ...] = ()
        try:
            if buffer is None:
                method.execute()
            else:
                found = intermediate.execute(method, self._instructions, self._values, buffer)
        finally:
            events = read_events(self.tracer.buffer)
            self._record.executions.append(Execution(self._instructions, events, *found))


class Program:
    """A program. Made by Runtime.load_program. Keeps the methods that it loaded, and their state."""

    def __init__(self, program: picotorch.Program, files: Sequence[bytes] = (),
                 record: Record | None = None, threads: int = 1) -> None:
        self._program = program
        self._threads = threads
        self._files = files
        self._methods: dict[str, Method] = {}
        self._record = record
        self._lock = threading.RLock()  # methods may share buffers, and they share the record

    @functools.cached_property
    @raises(RuntimeFailure)
    def data_map(self) -> DataMap | None:
        """Return the data map of the .ptd files.

        Raises InvalidArgument, NotFound, InvalidExternalData.
        """
        return open_data(self._files)

    @property
    def method_names(self) -> set[str]:
        """Return the names of the methods."""
        return set(self.ordered_names)

    @property
    def ordered_names(self) -> list[str]:
        """Return the names of the methods in the order of the file."""
        return self._program.method_names

    @property
    def is_recorded(self) -> bool:
        """Return True if executions are recorded for an ETDump."""
        return self._record is not None

    @raises(RuntimeFailure)
    def load_method(self, name: str) -> Method:
        """Return the method, in memories of exactly the bytes that it needs.

        Methods that were exported to share mutable buffers are loaded together, and share them. Raises
        NotFound, OperatorMissing, NotSupported, InvalidProgram, InvalidExternalData.
        """
        need(name, str, "name")
        with self._lock:
            if name not in self._methods:
                with raises(UnknownName):
                    self._program.method_meta(name)
                calls: list[object] = []  # running
                self._methods |= {each: self._load(each, planned, calls)
                                  for each, planned in methods_that_share(self._program, name).items()}
            return self._methods[name]

    def _load(self, name: str, planned: picotorch.HierarchicalAllocator, calls: list[object]) -> Method:
        meta = self._program.method_meta(name)
        trace = None if self._record is None else Trace(meta, self._record)
        method = load_with_exact_memories(
            self._program, name, data_map=self.data_map, planned=planned,
            event_tracer=None if trace is None else trace.tracer)
        method.library.threads = self._threads
        return Method(method, self._lock, calls, trace)

    @raises(RuntimeFailure)
    def metadata(self, method_name: str) -> MethodMeta:
        """Describe a method without loading it. Raises NotFound."""
        return MethodMeta(self._program.method_meta(method_name))

    @raises(RuntimeFailure)
    def write_etdump_result_to_file(self, etdump_path: str, debug_buffer_path: str) -> None:
        """Write the times of the instructions of all executions as an ETDump.

        It is for executorch.devtools, in nanoseconds. With a debug buffer the results of the
        instructions are included.

        Raises InvalidState, AccessFailed.
        """
        if self._record is None:
            raise fail(INVALID_STATE, "nothing is recorded", "etdump",
                       remedy="load the program with enable_etdump=True")
        paths = _path(etdump_path, "etdump_path"), _path(debug_buffer_path, "debug_buffer_path")
        write(paths[0], etdump.to_bytes(self._record.executions))
        if self._record.buffer is not None:
            write(paths[1], bytes(self._record.buffer.data))

    def __repr__(self) -> str:
        return repr(self._program)


class Runtime:
    """The runtime. Runtime.get() returns the only one."""

    def __init__(self) -> None:
        self.backend_registry = BackendRegistry()
        self.operator_registry = OperatorRegistry()

    @staticmethod
    @functools.lru_cache(maxsize=1)
    def get() -> "Runtime":
        """Return the only Runtime."""
        return Runtime()

    @raises(RuntimeFailure)
    def load_program(
        self,
        data: bytes | bytearray | BinaryIO | Path | str,
        *,
        verification: Verification = Verification.InternalConsistency,
        enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        data_path: Path | str | Sequence[Path | str] | None = None,
        threads: int = 1,
    ) -> Program:
        """Load a program from the path, bytes or file object of a .pte or .bpte file.

        data_path: the .ptd file of its external tensors, or several.

        enable_etdump: record the time of each execution for write_etdump_result_to_file, and in
        debug_buffer_size bytes the result of each instruction: execute raises MemoryAllocationFailed if
        they are too few. threads: number of threads that share the large layers of an execution; the
        outputs have the same bytes for any number. Raises AccessFailed, InvalidProgram,
        InvalidArgument; for a .ptd file NotFound, InvalidExternalData.
        """
        verification = _verification(verification)
        need(debug_buffer_size, int, "debug_buffer_size")
        need(threads, int, "threads")
        if threads < 1:
            raise fail(INVALID_ARGUMENT, "are less than 1", "threads", remedy="give 1 or more")
        found = _read(data)
        if not isinstance(data_path, list | tuple):
            paths = [] if data_path is None else [data_path]
        else:
            paths = list(data_path)
        files = [read_file(_path(path, "data_path")) for path in paths]
        program = opened(found, files, verification, enable_etdump is True, debug_buffer_size, threads)
        program.data_map  # noqa: B018 -- opened now, for its errors
        return program


def opened(found: "ReadableBuffer", files: list[bytes], verification: Verification, is_recorded: bool,
           debug_buffer_size: int, threads: int = 1) -> Program:
    """Return the program of these bytes, with the .ptd files that load_method opens."""
    record = Record(debug_buffer_size)
    buffer_size(found, "program")
    loader = picotorch.BufferDataLoader(aligned_copy(bundled.program_of(bytes(found))))
    return Program(picotorch.Program.load(loader, verification.value), files,
                   record if is_recorded else None, threads)


def _verification(value: Any) -> Verification:
    """Convert ExecuTorch's enum, which has the same names."""
    name = getattr(value, "name", None)
    if not isinstance(name, str) or name not in Verification.__members__:
        raise fail(INVALID_TYPE, "has the wrong type", "verification",
                   remedy="give one of Verification")
    return Verification[name]


def _path(value: Any, subject: str) -> Path:
    """Return a path. Raises InvalidType for another value, InvalidArgument for an impossible path."""
    if not isinstance(value, str | PathLike) or isinstance(os.fspath(value), bytes):
        raise fail(INVALID_TYPE, "has the wrong type", subject, remedy="give a str or a Path")
    path = Path(value)
    try:
        if b"\0" in os.fsencode(path):
            raise ValueError
    except ValueError:
        raise fail(INVALID_ARGUMENT, "is no path", subject, remedy="check the path") from None
    return path


def _read(data: Any) -> "ReadableBuffer":
    if isinstance(data, str | PathLike):
        return read_file(_path(data, "program"))
    if isinstance(data, bytes | bytearray | memoryview):
        return data
    try:
        found = data.read() if callable(getattr(data, "read", None)) else None
    except (OSError, ValueError) as error:  # of one that is closed, or opened for writing
        with raises(WrongState if isinstance(error, ValueError) else RuntimeFailure):
            raise fail(ACCESS_FAILED, str(error), "program",
                       remedy="open it in binary mode") from None
    if isinstance(found, bytes | bytearray | memoryview):
        return found
    raise fail(INVALID_TYPE, f"has the wrong type, {type(data).__name__}", "program",
               remedy="give a path, bytes or a file object opened in binary mode")
