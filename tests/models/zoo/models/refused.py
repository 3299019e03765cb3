"""Programs that picotorch rejects, with the names of everything that it lacks."""

import torch
import torch.nn.functional as F
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture
from torch import nn


def antialiased(image: torch.Tensor) -> torch.Tensor:
    return F.interpolate(image, (2, 2), mode="bicubic", antialias=True)


@fixture(refused=("aten::lgamma.out", "aten::_upsample_bicubic2d_aa.out"))
def missing_operators(data: Data) -> Model:
    """Two operators without a kernel, between two that have one."""
    return Model(
        Function(lambda x, image: (torch.relu(x) + torch.lgamma(x), antialiased(image) + 1)),
        (data.floats(2, 3), data.floats(1, 1, 3, 3)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture(refused=("aten::_upsample_bicubic2d_aa.out",))
def missing_in_one_method(data: Data) -> Model:
    """A method that runs beside one with an operator without a kernel."""
    return Model(
        {"forward": Function(torch.relu), "resize": Function(antialiased)},
        {"forward": (data.floats(2, 3),), "resize": (data.floats(1, 1, 3, 3),)},
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture(refused=("XnnpackBackend",))
def delegated(data: Data) -> Model:
    """A linear layer handed to XNNPACK: the method needs a backend."""
    return Model(nn.Linear(3, 2), (data.floats(1, 3),), partitioner=XnnpackPartitioner)
