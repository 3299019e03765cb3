"""Share mutable buffers among several methods of a program, as ExecuTorch's runtime does.

MemoryPlanningPass(share_mutable_buffers=True) puts them into a planned buffer after the first, at the
same offset in each method. The first has the values of an execution: no two methods share it here.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

from picotorch import HierarchicalAllocator, MethodMeta, Program
from picotorch.host.twin import planned_sizes
from picotorch.host.values import TENSOR, Values

Buffer = tuple[int, int]  # which planned buffer, and its bytes
_Placement: TypeAlias = tuple[int, int, int]  # offset, bytes and dtype of a tensor


def methods_that_share(program: Program, name: str) -> dict[str, HierarchicalAllocator]:
    """Return the planned buffers of method `name`, and of the methods that share some of them.

    Methods that share with one of these are included.

    Raises NotFound, InvalidProgram; NotSupported for buffers that no microcontroller has.
    """
    buffers = {name: _buffers(program.method_meta(name))}
    if len(buffers[name]) > 1:
        buffers |= {each: _buffers(program.method_meta(each)) for each in program.method_names}
    shared = _shared(buffers.values())
    joined, more = {name}, {name}
    while more:
        reached = shared & set().union(*(buffers[each] for each in joined))
        more = {each for each, own in buffers.items() if reached & own.keys()} - joined
        joined |= more
    memories = {buffer: bytearray(buffer[1]) for buffer in shared}
    return {each: HierarchicalAllocator([memories.get(buffer) or bytearray(buffer[1])
                                         for buffer in buffers[each]]) for each in joined}


def _buffers(meta: MethodMeta) -> dict[Buffer, set[_Placement]]:
    """Return the planned buffers of a method in order, with (offset, bytes, dtype) of their tensors.

    Loading rejects tensors in any other buffer.
    """
    sizes = planned_sizes(meta, {})
    found: dict[Buffer, set[_Placement]] = {(i, size): set() for i, size in enumerate(sizes)}
    values = Values(meta.program, meta.plan)
    for value in range(len(values)):
        if values.kind(value) == TENSOR:
            info = values.tensor(value)
            i = info.planned_buffer
            if info.is_memory_planned() and 0 <= i < len(sizes):
                found[i, sizes[i]].add((info.offset, info.nbytes(), info.scalar_type()))
    return found


def _shared(methods: Iterable[dict[Buffer, set[_Placement]]]) -> set[Buffer]:
    """Return the planned buffers after the first in which no two different tensors overlap."""
    tensors: dict[Buffer, set[_Placement]] = {}
    for buffers in methods:
        for buffer, own in buffers.items():
            tensors.setdefault(buffer, set()).update(own)
    return {buffer for buffer, all_of_it in tensors.items()
            if buffer[0] > 0 and all_of_it and _apart(sorted(all_of_it))}


def _apart(tensors: list[_Placement]) -> bool:
    return all(offset + nbytes <= following
               for (offset, nbytes, _), (following, *_) in pairwise(tensors))
