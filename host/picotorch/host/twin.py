"""Run a program on the twin: the loader of the boards under CPython, in memories of requested sizes."""

from collections.abc import Sequence
from typing import Any

from _picotorch import CORES, PREFERRING_CORES
from _picotorch_c import ffi, lib

from picotorch import schema
from picotorch.data import DataMap, FlatTensorDataMap, MergedDataMap
from picotorch.errors import INVALID_ARGUMENT, MEMORY_ALLOCATION_FAILED, Error, fail
from picotorch.memory import LIMIT, HierarchicalAllocator, MemoryAllocator, MemoryManager
from picotorch.method import Method
from picotorch.method_meta import MethodMeta
from picotorch.program import BufferDataLoader, Program
from picotorch.tensor import Tensor, ValueList
from picotorch.tracer import EventTracer

from .aligned import aligned, aligned_copy
from .inputs import checked_inputs
from .request import HOST_MEMORY, Event, Request, Result, Usage, read_events
from .runner_log import log_of
from .tensors import as_tensor, from_stored, output_array

BOARD = "host"

_LARGEST = 8 * LIMIT  # bytes of all planned buffers
_TENSOR = schema.KERNEL_TYPES_TENSOR


def open_program(model: Any) -> Program:
    """Return the verified program of a .pte or .ptm file's bytes; of a .ptm file its data, too."""
    program = Program.load(BufferDataLoader(aligned_copy(model)))
    if is_ptm(model):
        program.library.check_data()
    return program


def is_ptm(model: Any) -> bool:
    """Return whether the bytes are a .ptm file of picotorch compile, of this or another version."""
    return bytes(model[:3]) == int(lib.PT_PTM_MAGIC).to_bytes(4, "little")[:3]


def runs_on(model: bytes, core: int) -> bool:
    """Return False for a .ptm file without the weights that this core, PT_CORE_..., needs."""
    if not is_ptm(model):
        return True
    made_for = _core_of(model)
    own: int = lib.PT_PTM_OWN_CORE
    return not made_for & own or made_for & ~own == core


def has_packed(model: bytes, core: str) -> bool:
    """Return whether a .ptm file has weights packed for the loops of a core, as board.toml names it."""
    return is_ptm(model) and core in CORES and _core_of(model) & ~lib.PT_PTM_OWN_CORE == CORES[core]


def _core_of(ptm: bytes) -> int:
    return int(ffi.cast("pt_ptm_header *", ffi.from_buffer(ptm)).core)


def open_data(files: Sequence[bytes]) -> FlatTensorDataMap | MergedDataMap | None:
    """Return the data map of some .ptd files' bytes; None without any."""
    maps = [FlatTensorDataMap.load(BufferDataLoader(aligned_copy(file))) for file in files]
    return MergedDataMap.load(maps) if len(maps) > 1 else maps[0] if maps else None


def run(request: Request) -> Result:
    """Load and execute the method. An Error of the runtime is part of the result."""
    result = Result(model=request.name, method=request.method, board=BOARD)
    try:
        _run(request, result)
    except Error as error:
        result.set_error(error)
    result.log = log_of(request, result)
    return result


def _run(request: Request, result: Result) -> None:
    program, data_map = open_program(request.model), open_data(request.data)
    meta = program.method_meta(request.method)
    manager = _memories(meta, request)
    method = Method(manager, max(meta.num_outputs(), 1), meta.num_backends(),
                    meta.max_delegate_arguments())
    tracer = EventTracer(bytearray(EventTracer.nbytes(meta))) if request.executions else None
    if request.core is not None:
        pack_for(method, request.core)
    method.library.threads = request.threads
    result.began_load = True
    method.load(program, request.method, request.pack_weights, data_map, tracer)
    _report(method, request, result)
    if tracer is not None:
        method.library.unpack_once(aligned(HOST_MEMORY))
    set_inputs(method, meta, checked_inputs(meta, request.inputs))
    attach_outputs(method, meta)
    method.execute()
    result.pool = _pool(method, request)  # where dynamic sizes and variables have changed
    if tracer is not None:
        result.events = _measure(method, meta, tracer, request)
    result.outputs = outputs(method, meta)
    for values in request.further:
        set_inputs(method, meta, checked_inputs(meta, values))
        method.execute()
        result.further.append(outputs(method, meta))


def pack_for(method: Method, core: str | None) -> None:
    """Let load pack weights for the kernels of a core, as board.toml names it.

    The preferred temp memory becomes the core's.
    """
    method.library.core = PREFERRING_CORES.get(core, 0)


def preferred_temp(method: Method, core: str | None, pack_weights: bool = False,
                data_map: DataMap | None = None) -> int:
    """Return the bytes of temp memory that a loaded method prefers on a core. Loads it again."""
    program, name = method.method_meta().program, method.name
    method.unload()
    pack_for(method, core)
    method.load(program, name, pack_weights, data_map)
    return int(method.memory_report()["temp"]["preferred"])


def min_temp(method: Method, pack_weights: bool = False, data_map: DataMap | None = None) -> int:
    """Return the minimum bytes of temp memory with which a method can be loaded.

    Loads it again, with none if that works.
    """
    program, name = method.method_meta().program, method.name
    method.unload()
    method.manager.temp_allocator = None
    try:
        method.load(program, name, pack_weights, data_map)
    except Error as error:
        if error.subject != "temp memory":
            raise
        return error.requested
    return 0


def _memories(meta: MethodMeta, request: Request) -> MemoryManager:
    """Return the memories of a run; each starts at a multiple of 16 bytes."""
    planned = [aligned(size) for size in planned_sizes(meta, request.planned_sizes)]
    for memory in planned if request.planned_fill else ():
        memory[:] = bytes([request.planned_fill]) * len(memory)
    return MemoryManager(
        MemoryAllocator(aligned(request.pool_size or 0)),
        HierarchicalAllocator(planned),
        MemoryAllocator(aligned(request.temp_size or 0), "temp memory"))


def planned_sizes(meta: MethodMeta, requested: dict[int, int]) -> list[int]:
    """Return the bytes of each planned buffer: as requested, else as the method needs.

    Raises InvalidArgument.
    """
    count = meta.num_memory_planned_buffers()
    for index in requested:
        if not 0 <= index < count:
            raise fail(INVALID_ARGUMENT, f"the method has {count}, counted from 0",
                       "planned buffer", index, remedy="name one of them")
    sizes, left = [], _LARGEST
    for i in range(count):
        sizes.append(requested.get(i, meta.memory_planned_buffer_size(i)))
        if sizes[i] > left:
            raise fail(MEMORY_ALLOCATION_FAILED, "", "planned buffer", i, sizes[i], left,
                       "the twin has no more")
        left -= sizes[i]
    return sizes


def _measure(method: Method, meta: MethodMeta, tracer: EventTracer,
             request: Request) -> list[list[Event]]:
    """Return the events of as many executions, each measured by itself with the inputs set again.

    The one before has warmed caches.
    """
    measured = []
    for _ in range(request.executions):
        set_inputs(method, meta, checked_inputs(meta, request.inputs))
        tracer.reset()
        method.execute()
        measured.append(read_events(tracer.buffer))
    return measured


def _report(method: Method, request: Request, result: Result) -> None:
    report = method.memory_report()
    result.method_pool = Usage(**report["method_pool"])
    result.planned = [Usage(**usage) for usage in report["planned"]]
    result.temp = Usage(report["temp"]["used"], report["temp"]["size"])
    result.packed = report["packed"]
    result.pool = _pool(method, request)


def _pool(method: Method, request: Request) -> bytes:
    """Return the bytes of the pool that equal a board's: of the requested core, or of any core."""
    pool = method.manager.method_allocator
    left_out = method.memory_report()["packed"] if request.core is None else 0
    return bytes(memoryview(pool.buffer)[: pool.used - left_out])


def set_inputs(method: Method, meta: MethodMeta, inputs: list[Any]) -> None:
    """Set checked inputs; the method refers to the memory of inputs that it uses in place."""
    for i, value in enumerate(inputs):
        if meta.input_tag(i) == _TENSOR:
            method.set_input(as_tensor(value, meta.input_tensor_meta(i)), i)
        else:
            method.set_input(value, i)


def attach_outputs(method: Method, meta: MethodMeta) -> None:
    """Allocate memory for the outputs and mutable buffers that the program leaves unplanned.

    The method refers to it.
    """
    for i in meta.unplanned_outputs():
        method.set_output_data_ptr(aligned(meta.output_tensor_meta(i).nbytes()), i)
    for info in meta.unplanned_attributes():
        method.set_attribute_data_ptr(aligned(info.nbytes()), info.name())


def outputs(method: Method, meta: MethodMeta) -> list[Any]:
    """Return the outputs: new arrays of the logical sizes, numbers as arrays without dims.

    Raises NotSupported for a list that makes no array.
    """
    return [output_array(output(method, meta, i), i) for i in range(method.outputs_size())]


def output(method: Method, meta: MethodMeta, index: int) -> Any:
    """Return a tensor as a new array of the logical sizes; all else as Python has it."""
    value = method.get_output(index)
    if meta.output_tag(index) == _TENSOR:
        return from_stored(value.data, meta.output_tensor_meta(index), value.sizes())
    return _plain(value)


def _plain(output: Any) -> Any:
    """Return an output; a tensor as a list of its elements, a list as a list of such values."""
    if isinstance(output, ValueList):
        return [_plain(output[i]) for i in range(len(output))]
    return list(output.data) if isinstance(output, Tensor) else output
