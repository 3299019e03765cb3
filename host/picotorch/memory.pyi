from collections.abc import Sequence

from _typeshed import ReadableBuffer, WriteableBuffer

BYTE: int
ALIGNMENT: int
LIMIT: int
BUSY: int

def buffer_size(buffer: ReadableBuffer, subject: str | None, index: int = -1) -> int: ...
def bytes_at(
    buffer: ReadableBuffer,
    offset: int,
    size: int,
    view: memoryview | None = None,
    writable: bool = True,
) -> memoryview: ...

class MemoryAllocator:
    buffer: WriteableBuffer
    name: str
    size: int
    used: int
    held: int
    def __init__(self, buffer: WriteableBuffer, name: str = "method pool") -> None: ...
    def check_size(self) -> None: ...
    @property
    def free(self) -> int: ...
    def allocate(self, size: int, alignment: int = ALIGNMENT) -> int: ...
    def reset(self, used: int = 0) -> None: ...

class HierarchicalAllocator:
    buffers: Sequence[WriteableBuffer]
    def __init__(self, buffers: Sequence[WriteableBuffer]) -> None: ...
    def __len__(self) -> int: ...
    def size(self, index: int) -> int: ...

class MemoryManager:
    method_allocator: MemoryAllocator
    planned_memory: HierarchicalAllocator
    temp_allocator: MemoryAllocator | None
    def __init__(
        self,
        method_allocator: MemoryAllocator,
        planned_memory: HierarchicalAllocator | None = None,
        temp_allocator: MemoryAllocator | None = None,
    ) -> None: ...
