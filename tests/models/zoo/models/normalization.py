"""Batch, layer and group norm."""

from models.zoo.registry import Data, Model, fixture
from torch import nn


@fixture
def batch_norm_2d(data: Data) -> Model:
    """Batch norm of an image, not folded into a convolution."""
    return Model(nn.BatchNorm2d(3), (data.floats(2, 3, 4, 4),))


@fixture
def batch_norm_2d_no_affine(data: Data) -> Model:
    """Batch norm without weight and bias."""
    return Model(nn.BatchNorm2d(3, affine=False, eps=1e-3), (data.floats(1, 3, 4, 4),))


@fixture
def batch_norm_1d(data: Data) -> Model:
    """Batch norm of features, and of a sequence."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(5)

        def forward(self, x, sequence):
            return self.norm(x), self.norm(sequence)

    return Model(Both(), (data.floats(3, 5), data.floats(2, 5, 4)))


@fixture
def layer_norm(data: Data) -> Model:
    """Layer norm over the last dim."""
    return Model(nn.LayerNorm(6), (data.floats(2, 3, 6),))


@fixture
def layer_norm_2d(data: Data) -> Model:
    """Layer norm over the last two dims, without weight and bias."""
    return Model(nn.LayerNorm((3, 4), elementwise_affine=False), (data.floats(2, 3, 4),))


@fixture
def group_norm(data: Data) -> Model:
    """Group norm, two groups."""
    return Model(nn.GroupNorm(2, 4), (data.floats(2, 4, 3),))
