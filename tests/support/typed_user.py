"""Use picotorch as a user's program does. `make lint` checks this file with mypy, since all of
picotorch has types."""

from pathlib import Path

import numpy as np
import picotorch
from picotorch import (
    BufferDataLoader,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Module,
    Program,
    from_blob,
)
from picotorch.runtime import Runtime


def memories_of(meta: picotorch.MethodMeta) -> MemoryManager:
    sizes = [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]
    planned = HierarchicalAllocator([bytearray(size) for size in sizes])
    return MemoryManager(MemoryAllocator(bytearray(4096)), planned)


def run(path: Path, x: np.ndarray) -> list[float]:
    program = Program.load(BufferDataLoader(path.read_bytes()))
    method = Method(memories_of(program.method_meta("forward")))
    try:
        method.load(program, "forward")
        method.set_input(x, 0)
        method.execute()
    except picotorch.Error as error:
        raise SystemExit(error.message) from None
    tensor: picotorch.Tensor = method.get_output(0)
    assert tensor.numpy().shape == tensor.sizes()
    return list(tensor.data)


def run_simply(path: Path) -> None:
    scale = from_blob(bytearray(8), [2], "Float")
    print(Module(str(path)).forward(scale), np.asarray(scale), scale.tolist())
    print(Runtime.get().load_program(path).load_method("forward"))
