"""Mutable buffers that several methods of a program use, as they do in ExecuTorch's runtime.

MemoryPlanningPass(share_mutable_buffers=True) puts them into a planned buffer after the first, at the
same offset in each method. The first holds what an execution computes: no two methods share it here.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

from picotorch import HierarchicalAllocator, MethodMeta, Program
from picotorch.host.twin import planned_sizes
from picotorch.host.values import TENSOR, Values

Buffer = tuple[int, int]  # which planned buffer, and its bytes
_Place: TypeAlias = tuple[int, int, int]  # offset, bytes and dtype of a tensor


def methods_that_share(program: Program, name: str) -> dict[str, HierarchicalAllocator]:
    """The planned buffers of method `name`, and of all that share some of them with it, or with one of
    these.

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


def _buffers(meta: MethodMeta) -> dict[Buffer, set[_Place]]:
    """The planned buffers of a method in order, with (offset, bytes, dtype) of their tensors. Loading
    refuses tensors in others."""
    sizes = planned_sizes(meta, {})
    found: dict[Buffer, set[_Place]] = {(i, size): set() for i, size in enumerate(sizes)}
    values = Values(meta.program, meta.plan)
    for value in range(len(values)):
        if values.kind(value) == TENSOR:
            info = values.tensor(value)
            i = info.planned_buffer
            if info.is_memory_planned() and 0 <= i < len(sizes):
                found[i, sizes[i]].add((info.offset, info.nbytes(), info.scalar_type()))
    return found


def _shared(methods: Iterable[dict[Buffer, set[_Place]]]) -> set[Buffer]:
    """Return the planned buffers after the first in which no two different tensors overlap."""
    tensors: dict[Buffer, set[_Place]] = {}
    for buffers in methods:
        for buffer, own in buffers.items():
            tensors.setdefault(buffer, set()).update(own)
    return {buffer for buffer, all_of_it in tensors.items()
            if buffer[0] > 0 and all_of_it and _apart(sorted(all_of_it))}


def _apart(tensors: list[_Place]) -> bool:
    return all(offset + nbytes <= following
               for (offset, nbytes, _), (following, *_) in pairwise(tensors))
