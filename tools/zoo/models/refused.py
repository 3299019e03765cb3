"""Programs that picotorch is to refuse, with the names of all that it lacks."""

import torch
import torch.nn.functional as F
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from torch import nn

from zoo.registry import Data, Function, Model, fixture


@fixture(refused=("aten::_cdist_forward.out", "aten::grid_sampler_2d.out"))
def missing_operators(data: Data) -> Model:
    """Two operators without a kernel, between two that have one."""
    return Model(
        Function(
            lambda x, y, grid, image: (
                torch.cdist(torch.relu(x), y) + 1,
                F.grid_sample(image, grid, align_corners=False),
            )
        ),
        (data.floats(2, 3), data.floats(4, 3), data.floats(1, 2, 2, 2), data.floats(1, 1, 3, 3)),
    )


@fixture(refused=("aten::_cdist_forward.out",))
def missing_in_one_method(data: Data) -> Model:
    """A method that runs beside one with an operator without a kernel."""
    return Model(
        {"forward": Function(torch.relu), "distance": Function(torch.cdist)},
        {"forward": (data.floats(2, 3),), "distance": (data.floats(2, 3), data.floats(4, 3))},
    )


@fixture(refused=("XnnpackBackend",))
def delegated(data: Data) -> Model:
    """A linear layer handed to XNNPACK: the method needs a backend."""
    return Model(nn.Linear(3, 2), (data.floats(1, 3),), partitioner=XnnpackPartitioner)
