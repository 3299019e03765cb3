"""Define fixtures of memory: planned buffers in several memories, unplanned inputs and outputs,
alignments."""

import torch
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


class _InMemories(MemoryPlanningPass):
    """A pass that gives the tensors of operators the memory ids 1 to `count` in turn."""

    def __init__(self, count: int, **arguments) -> None:
        super().__init__(**arguments)
        self._count = count

    def run(self, graph_module, graph_signature=None):
        made = 0
        for node in graph_module.graph.nodes:
            spec = node.meta.get("spec")
            if node.op == "call_function" and isinstance(spec, TensorSpec):
                spec.mem_id = made % self._count + 1
                made += 1
        return super().run(graph_module, graph_signature)


def _convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 2, 3), nn.Tanh(), nn.AvgPool2d(2)
    )


def _planned(data: Data, count: int, **arguments) -> Model:
    return Model(
        _convolutions(),
        (data.floats(1, 2, 6, 6),),
        backend=lambda: {"memory_planning_pass": _InMemories(count, **arguments)},
    )


@fixture
def planned_in_two(data: Data) -> Model:
    """Two planned buffers, which a board may have in different memories."""
    return _planned(data, 2)


@fixture
def planned_in_three(data: Data) -> Model:
    """Three planned buffers, with unplanned inputs and outputs."""
    return _planned(data, 3, alloc_graph_input=False, alloc_graph_output=False)


class _State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2.0


@fixture
def planned_state(data: Data) -> Model:
    """A mutable buffer in a planned buffer of its own."""
    values = tuple((data.floats(2),) for _ in range(3))
    return Model(
        _State(),
        values[0],
        further=values[1:],
        backend=lambda: {"memory_planning_pass": MemoryPlanningPass(share_mutable_buffers=True)},
    )


def _mixed(x, y, flags):
    """Return outputs of several dtypes. x changes in place, and y is an unchanged output."""
    x.mul_(2.0)
    return y + 1, y, ~flags


def _unplanned(data: Data, executorch_fails: bool = False, **arguments) -> Model:
    return Model(
        Function(_mixed),
        (data.floats(3), data.integers(5), data.booleans(7)),
        further=((data.floats(3), data.integers(5), data.booleans(7)),),
        backend=lambda: {"memory_planning_pass": MemoryPlanningPass(**arguments)},
        executorch_fails=executorch_fails,
    )


@fixture
def mixed_planned(data: Data) -> Model:
    """Inputs and outputs of several dtypes, all planned."""
    return _unplanned(data)


@fixture
def mixed_unplanned_inputs(data: Data) -> Model:
    """The same with unplanned inputs: one is mutated, one is an output.

    ExecuTorch's Python runtime gives such outputs memory of their own, which holds zeros.
    """
    return _unplanned(data, True, alloc_graph_input=False)


@fixture
def mixed_unplanned_outputs(data: Data) -> Model:
    """The same with unplanned outputs."""
    return _unplanned(data, True, alloc_graph_output=False)


@fixture
def mixed_unplanned(data: Data) -> Model:
    """The same with nothing planned but what lies between."""
    return _unplanned(data, True, alloc_graph_input=False, alloc_graph_output=False)


def _aligned(data: Data, segments: int, constants: int) -> Model:
    return Model(
        nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2)),
        (data.floats(1, 3),),
        backend=lambda: {
            "segment_alignment": segments,
            "constant_tensor_alignment": constants,
        },
    )


@fixture
def aligned_8(data: Data) -> Model:
    """Segments and constants aligned to 8 bytes."""
    return _aligned(data, 8, 8)


@fixture
def aligned_16(data: Data) -> Model:
    """Segments and constants aligned to 16 bytes."""
    return _aligned(data, 16, 16)


@fixture
def aligned_128(data: Data) -> Model:
    """Segments aligned to 64 bytes, constants to 128."""
    return _aligned(data, 64, 128)


@fixture
def unplanned_state(data: Data) -> Model:
    """A mutable buffer that the program leaves unplanned: the caller provides its memory.

    ExecuTorch's Python runtime cannot, and ends.
    """
    values = tuple((data.floats(2),) for _ in range(3))
    return Model(
        _State(),
        values[0],
        further=values[1:],
        backend=lambda: {
            "memory_planning_pass": MemoryPlanningPass(alloc_mutable_buffers=False),
            "emit_mutable_buffer_names": True,
        },
        executorch_crashes=True,
    )
