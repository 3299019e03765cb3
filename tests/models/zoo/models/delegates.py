"""Programs whose parts are delegated to the demonstration backends of ExecuTorch, and to one of ours.

ExecuTorch's Python runtime has none of these backends, so the expected outputs are PyTorch's. The
tests define the backends in tests/on_board/backends.py.
"""

import torch
from executorch.exir.backend.test.backend_with_preprocess_all_demo import (
    BackendWithPreprocessAllPartitioner,
)
from executorch.exir.backend.test.demos.rpc.executor_backend_partitioner import (
    ExecutorBackendPartitioner,
)
from executorch.exir.backend.test.op_partitioner_demo import (
    AddMulPartitionerDemo,
    AllNodesPartitionerDemo,
)
from models.zoo.integer_backend import IntegerPartitioner
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


def _demo(a, x, b):
    y = torch.relu(torch.mm(a, x) + b)
    return torch.mm(y, x) + b


def _matrices(data: Data) -> tuple:
    """Return matrices of whole numbers, so that all arithmetic is exact."""
    return tuple(data.integers(2, 2).float() for _ in range(3))


def _delegated(module, inputs, partitioner, **fields) -> Model:
    return Model(module, inputs, partitioner=partitioner, executorch_fails=True, **fields)


@fixture
def delegate_demo(data: Data) -> Model:
    """BackendWithCompilerDemo: two delegates, a kernel between them; their data in segments."""
    inputs = _matrices(data)
    return _delegated(
        Function(_demo), inputs, AddMulPartitionerDemo, further=(_matrices(data),)
    )


@fixture
def delegate_inline(data: Data) -> Model:
    """As delegate_demo, with the delegates' data in the program's tables."""
    inputs = _matrices(data)
    return _delegated(
        Function(_demo),
        inputs,
        AddMulPartitionerDemo,
        backend=lambda: {"extract_delegate_segments": False},
    )


@fixture
def delegate_in_branches(data: Data) -> Model:
    """torch.cond with a delegate in each branch."""

    def branch(flag, a, x, b):
        return torch.cond(
            flag, lambda a, x, b: torch.mm(a, x) + b, lambda a, x, b: torch.mm(x, a), (a, x, b)
        )

    inputs = _matrices(data)
    return _delegated(
        Function(branch),
        (torch.tensor(True), *inputs),
        AddMulPartitionerDemo,
        further=((torch.tensor(False), *inputs),),
    )


@fixture
def delegate_two_backends(data: Data) -> Model:
    """Sines and additions for one backend, cosines and subtractions for another."""
    return _delegated(
        Function(lambda x, y: torch.cos(torch.sin(x) + y) - y),
        (data.floats(3), data.floats(3)),
        BackendWithPreprocessAllPartitioner,
    )


@fixture
def delegate_executor(data: Data) -> Model:
    """ExecutorBackend: the delegate's data is a program of its own, with constants."""
    return _delegated(
        nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 3)),
        (data.floats(2, 4),),
        AllNodesPartitionerDemo,
    )


@fixture
def delegate_nested(data: Data) -> Model:
    """ExecutorBackend around BackendWithCompilerDemo: a delegate in the program of a delegate."""
    return _delegated(
        Function(lambda a, x, b: torch.mm(x - b, x) + b),
        _matrices(data),
        lambda: [AddMulPartitionerDemo(), ExecutorBackendPartitioner()],
    )


class Scaled(nn.Module):
    """A module that computes x * scale + offset twice, with a kernel in between."""

    def __init__(self, scale: torch.Tensor, offset: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale)
        self.register_buffer("offset", offset)

    def forward(self, x):
        y = torch.neg(x * self.scale + self.offset)
        return y * self.scale + x


@fixture
def delegate_named_data(data: Data) -> Model:
    """A backend for integers whose constants are named data, one of them of two delegates."""
    scale, offset, x, y = (data.integers(5, low=-90, high=91).int() for _ in range(4))
    return _delegated(
        Scaled(scale, offset), (x,), lambda: IntegerPartitioner(5), further=((y,),)
    )
