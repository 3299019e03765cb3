"""Mutable buffers that several methods of a program use, as they do in ExecuTorch's runtime.

MemoryPlanningPass(share_mutable_buffers=True) puts them into a planned buffer after the first, at the
same place in each method. The first holds what an execution computes: no two methods share it here.
"""

from picotorch import HierarchicalAllocator, MethodMeta, Program
from picotorch.host.twin import planned_sizes
from picotorch.host.values import TENSOR, Values


def methods_that_share(program: Program, name: str) -> dict[str, HierarchicalAllocator]:
    """The planned buffers of method `name`, and of each that shares some of them.

    Raises NotFound, InvalidProgram; NotSupported for buffers that no microcontroller has.
    """
    shared = _after_the_first(_layouts(program.method_meta(name)))
    memories: dict[tuple, bytearray] = {}
    found = {}
    for each in dict.fromkeys((name, *(program.method_names if shared else ()))):
        layouts = _layouts(program.method_meta(each))
        if each == name or shared & _after_the_first(layouts):
            found[each] = HierarchicalAllocator([
                memories.setdefault(layout if layout in shared else (each, i), bytearray(layout[1]))
                for i, layout in enumerate(layouts)])
    return found


def _after_the_first(layouts):
    return {layout for layout in layouts[1:] if layout[2]}


def _layouts(meta: MethodMeta) -> list[tuple]:
    """(index, bytes, places and dtypes of its tensors) of each planned buffer."""
    sizes = planned_sizes(meta, {})
    tensors: list[set] = [set() for _ in sizes]
    values = Values(meta.program, meta.plan)
    for value in range(len(values)):
        if values.kind(value) == TENSOR:
            info = values.tensor(value)
            if info.is_memory_planned():
                tensors[info.planned_buffer].add((info.offset, info.nbytes(), info.scalar_type()))
    return [(i, size, frozenset(tensors[i])) for i, size in enumerate(sizes)]
