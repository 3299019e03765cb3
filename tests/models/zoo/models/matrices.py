"""Matrix products."""

import torch
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


@fixture
def mm(data: Data) -> Model:
    """aten::mm."""
    return Model(Function(torch.mm), (data.floats(3, 4), data.floats(4, 5)))


@fixture
def bmm(data: Data) -> Model:
    """aten::bmm."""
    return Model(Function(torch.bmm), (data.floats(2, 3, 4), data.floats(2, 4, 5)))


@fixture
def addmm(data: Data) -> Model:
    """aten::addmm with alpha and beta, and the bias broadcast from each side."""
    return Model(
        Function(
            lambda m, a, b, row, column: (
                torch.addmm(m, a, b, beta=0.5, alpha=2),
                torch.addmm(row, a, b),
                torch.addmm(column, a, b),
            )
        ),
        (
            data.floats(3, 5),
            data.floats(3, 4),
            data.floats(4, 5),
            data.floats(5),
            data.floats(3, 1),
        ),
    )


@fixture
def linear_no_bias(data: Data) -> Model:
    """Linear layer without bias."""
    return Model(nn.Linear(4, 3, bias=False), (data.floats(2, 4),))


@fixture
def linear_remainders(data: Data) -> Model:
    """Linear layer of 13 features to 11, three rows: nothing is a multiple of a block."""
    return Model(nn.Linear(13, 11), (data.floats(3, 13),))


@fixture
def linear_3d(data: Data) -> Model:
    """Linear layer of a 3-d input."""
    return Model(nn.Linear(4, 3), (data.floats(2, 3, 4),))
