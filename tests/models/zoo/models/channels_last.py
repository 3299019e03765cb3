"""Define fixtures of operators on images in dim order 0, 2, 3, 1; others are in `convolutions` and
`pooling`.

ExecuTorch refuses several of these programs of its own exporter, or gives wrong values.
"""

import torch
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


def _image(data: Data, *sizes: int) -> torch.Tensor:
    return data.floats(*sizes).to(memory_format=torch.channels_last)


@fixture
def add_channels_last(data: Data) -> Model:
    """Addition of two images."""
    image = _image(data, 1, 3, 2, 4)
    return Model(Function(lambda x, y: x + y), (image, _image(data, 1, 3, 2, 4)))


@fixture
def mul_channels_last_broadcast(data: Data) -> Model:
    """An image multiplied by one value a channel, and by one a column."""
    inputs = (_image(data, 1, 3, 2, 4), _image(data, 1, 3, 1, 1), data.floats(4))
    return Model(
        Function(lambda x, channel, column: (x * channel, x * column)),
        inputs,
        executorch_fails=True,
    )


@fixture
def batch_norm_2d_channels_last(data: Data) -> Model:
    """Batch norm."""
    return Model(nn.BatchNorm2d(3), (_image(data, 2, 3, 2, 4),), executorch_fails=True)


@fixture
def cat_channels_last(data: Data) -> Model:
    """aten::cat over the channels."""
    inputs = (_image(data, 1, 2, 3, 2), _image(data, 1, 3, 3, 2))
    return Model(Function(lambda x, y: torch.cat((x, y), 1)), inputs, executorch_fails=True)


@fixture
def mean_channels_last(data: Data) -> Model:
    """aten::mean over height and width, and over the channels."""
    return Model(
        Function(lambda x: (x.mean((2, 3)), x.mean((2, 3), keepdim=True), x.mean(1))),
        (_image(data, 2, 3, 2, 4),),
    )


@fixture
def softmax_channels_last(data: Data) -> Model:
    """aten::_softmax over the channels."""
    return Model(nn.Softmax(dim=1), (_image(data, 1, 3, 2, 4),), executorch_fails=True)


@fixture
def constant_pad_channels_last(data: Data) -> Model:
    """aten::constant_pad_nd at each side of height and width."""
    return Model(nn.ZeroPad2d((1, 2, 0, 1)), (_image(data, 1, 2, 3, 2),), executorch_fails=True)


@fixture
def permute_channels_last(data: Data) -> Model:
    """aten::permute_copy of a channels_last image."""
    return Model(
        Function(lambda x: x.permute(0, 2, 3, 1) * 2),
        (_image(data, 1, 3, 2, 4),),
        executorch_fails=True,
    )


@fixture
def slice_channels_last(data: Data) -> Model:
    """aten::slice_copy over the channels and over the width."""
    return Model(
        Function(lambda x: (x[:, 1:], x[..., ::2])),
        (_image(data, 1, 3, 2, 4),),
        executorch_fails=True,
    )


@fixture
def flatten_channels_last(data: Data) -> Model:
    """Flattened logically, then a linear layer."""
    return Model(
        nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)), (_image(data, 1, 3, 2, 2),)
    )


@fixture
def conv2d_depthwise_channels_last(data: Data) -> Model:
    """Depthwise Conv2d; its channels_last weight gets the dim order 0, 2, 1, 3."""
    conv = nn.Conv2d(5, 5, 3, padding=1, groups=5).to(memory_format=torch.channels_last)
    return Model(conv, (_image(data, 1, 5, 4, 3),), executorch_fails=True)
