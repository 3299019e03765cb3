"""Pooling."""

import torch
import torch.nn.functional as F
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


@fixture
def max_pool2d(data: Data) -> Model:
    """Max pooling, 2x2."""
    return Model(nn.MaxPool2d(2), (data.floats(1, 2, 6, 7),))


@fixture
def max_pool2d_padding(data: Data) -> Model:
    """Max pooling with padding, stride, dilation and ceil_mode, of negative values."""
    pool = nn.MaxPool2d((3, 2), stride=(2, 3), padding=(1, 1), dilation=(1, 2), ceil_mode=True)
    return Model(pool, (data.floats(2, 2, 8, 9, low=-9, high=-1),))


@fixture
def max_pool2d_indices(data: Data) -> Model:
    """Max pooling that returns the indices, the first of equals."""
    return Model(
        Function(lambda x: F.max_pool2d(x, 2, return_indices=True)),
        (data.floats(1, 2, 4, 4),),
        further=((torch.ones(1, 2, 4, 4),),),
    )


@fixture
def max_pool2d_nan(data: Data) -> Model:
    """Max pooling where NaN wins, and its index; ExecuTorch skips NaN."""
    values = data.floats(1, 2, 4, 4)
    values[0, 0, 1, 2] = float("nan")
    return Model(
        Function(lambda x: F.max_pool2d(x, 2, return_indices=True)),
        (values,),
        executorch_fails=True,
    )


@fixture
def max_pool2d_channels_last(data: Data) -> Model:
    """Max pooling in dim order 0, 2, 3, 1."""
    image = data.floats(1, 3, 6, 6).to(memory_format=torch.channels_last)
    return Model(nn.MaxPool2d(3, stride=2, padding=1), (image,))


@fixture
def avg_pool2d(data: Data) -> Model:
    """Average pooling, 2x3."""
    return Model(nn.AvgPool2d((2, 3)), (data.floats(1, 2, 6, 7),))


@fixture
def avg_pool2d_padding(data: Data) -> Model:
    """Average pooling with padding, counted and not counted, and with ceil_mode."""
    return Model(
        Function(
            lambda x: (
                F.avg_pool2d(x, 3, 2, 1),
                F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
                F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
                F.avg_pool2d(x, (2, 3), (2, 2), (1, 1), ceil_mode=True, count_include_pad=False),
                F.avg_pool2d(x, 2, divisor_override=3),
            )
        ),
        (data.floats(1, 2, 6, 8),),
    )


@fixture
def avg_pool2d_channels_last(data: Data) -> Model:
    """Average pooling in dim order 0, 2, 3, 1."""
    image = data.floats(1, 3, 6, 6).to(memory_format=torch.channels_last)
    return Model(nn.AvgPool2d(3, stride=2, padding=1), (image,))


@fixture
def adaptive_avg_pool2d(data: Data) -> Model:
    """Adaptive average pooling to 1x1 and to 3x2."""
    return Model(
        Function(lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 2)))),
        (data.floats(1, 2, 7, 5),),
    )


@fixture
def pool1d(data: Data) -> Model:
    """Max and average pooling of a sequence, as the exporter decomposes them."""
    return Model(
        Function(lambda x: (F.max_pool1d(x, 3, 2, 1), F.avg_pool1d(x, 3, 2, 1))),
        (data.floats(1, 2, 9),),
    )
