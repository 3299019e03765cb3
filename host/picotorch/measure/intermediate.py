"""Record the results of each instruction of an execution on the twin, the same bytes as on a board."""

from collections.abc import Iterator, Sequence
from typing import Any

from picotorch import Method, MethodMeta
from picotorch.errors import INVALID_ARGUMENT, MEMORY_ALLOCATION_FAILED, NOT_SUPPORTED, fail
from picotorch.memory import LIMIT
from picotorch.module import load_with_exact_memories

from ..host.inputs import checked_inputs
from ..host.instructions import KERNEL_CALL, Instruction
from ..host.request import Request
from ..host.twin import open_data, open_program, set_inputs
from ..host.values import TENSOR, Values
from .etdump import Computed, Execution, Stored

_ALIGNMENT = 64  # as in ExecuTorch's buffers
_MAX_STEPS = 1_000_000  # instructions of an execution: seconds
_PRIM = "executorch_prim::"  # ExecuTorch does not keep what these compute


class DebugBuffer:
    """Tensors one behind the other, each at a multiple of 64 bytes, `size` bytes at most."""

    def __init__(self, size: int) -> None:
        if size < 0:
            raise fail(INVALID_ARGUMENT, "is negative", "debug_buffer_size",
                       remedy="give a number of bytes, 0 for none")
        self.size = size
        self.data = bytearray()

    def store(self, dtype: int, sizes: Sequence[int], dim_order: Sequence[int],
              data: bytes | memoryview) -> Stored:
        """Store a tensor. Raises MemoryAllocationFailed if it does not fit."""
        # not at 0, which readers of ETDumps treat as no offset
        offset = max(1, -(-len(self.data) // _ALIGNMENT)) * _ALIGNMENT
        needed = offset + len(data)
        if needed > self.size:
            raise fail(MEMORY_ALLOCATION_FAILED, "", "debug buffer", -1, needed, self.size,
                       "give a larger debug_buffer_size")
        self.data += bytes(offset - len(self.data)) + data
        return Stored(dtype, list(sizes), _strides(sizes, dim_order), offset)


def with_values(executions: list[Execution], request: Request) -> tuple[list[Execution], bytes]:
    """Return the executions with the twin's values for the first one, and the debug buffer.

    Raises the Error of the run, MemoryAllocationFailed above the twin's limit.
    """
    program = open_program(request.model)
    method = load_with_exact_memories(program, request.method, data_map=open_data(request.data))
    meta = method.method_meta()
    set_inputs(method, meta, checked_inputs(meta, request.inputs))
    buffer = DebugBuffer(LIMIT)
    found = execute(method, executions[0].instructions, Values(program, meta.plan), buffer)
    return [Execution(one.instructions, one.events, *found) for one in executions], bytes(buffer.data)


def _strides(sizes: Sequence[int], dim_order: Sequence[int]) -> list[int]:
    """Return the elements from one index of a dim to the next."""
    strides, step = [0] * len(sizes), 1
    for dim in reversed(dim_order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return strides


def execute(method: Method, instructions: list[Instruction], values: Values,
            buffer: DebugBuffer) -> tuple[list[Computed], list[Stored]]:
    """Execute the method, one instruction after the other.

    Returns the results of the kernels, in that order, and the outputs of the method that are tensors.
    Raises the errors of step and of the buffer, NotSupported for more than a million instructions.
    """
    library = method.library
    computed: list[Computed] = []
    method.reset_execution()
    try:
        for _ in range(_MAX_STEPS):
            if (index := library.instruction()) >= len(instructions):
                break
            method.step()
            computed += _computed(library, instructions[index], values, buffer)
        else:
            raise fail(NOT_SUPPORTED, f"recording more than {_MAX_STEPS:,} instructions",
                       "debug buffer", remedy="leave debug_buffer_size 0")
    finally:
        method.reset_execution()
    return computed, _outputs(method, method.method_meta(), buffer)


def _computed(library: Any, instruction: Instruction, values: Values,
              buffer: DebugBuffer) -> Iterator[Computed]:
    if instruction.kind != KERNEL_CALL or instruction.call.startswith(_PRIM):
        return
    for value in instruction.outputs:
        tensors = [buffer.store(*library.tensor(i)) for i in values.tensors(value)]
        if tensors:
            yield Computed(instruction.index, tensors, values.kind(value) != TENSOR)


def _outputs(method: Method, meta: MethodMeta, buffer: DebugBuffer) -> list[Stored]:
    tensors = [method.get_output(i) for i in range(meta.num_outputs()) if meta.output_tag(i) == TENSOR]
    return [buffer.store(tensor.scalar_type(), tensor.sizes(), tensor.dim_order(),
                         memoryview(tensor.data).cast("B")) for tensor in tensors]
