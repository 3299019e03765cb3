"""Define fixtures of the variants of aten::convolution. Shapes are not square and not symmetric, so
that a confusion of axes is detected."""

import torch
from models.zoo.registry import Data, Model, fixture
from torch import nn


@fixture
def conv2d_stride(data: Data) -> Model:
    """Conv2d with stride 2x3 and padding 1x2, two images."""
    return Model(
        nn.Conv2d(3, 4, (3, 5), stride=(2, 3), padding=(1, 2)), (data.floats(2, 3, 9, 11),)
    )


@fixture
def conv2d_dilation(data: Data) -> Model:
    """Conv2d with dilation 2x3."""
    return Model(
        nn.Conv2d(2, 3, (3, 2), padding=(2, 1), dilation=(2, 3)), (data.floats(1, 2, 8, 7),)
    )


@fixture
def conv2d_groups(data: Data) -> Model:
    """Conv2d with 2 groups and dilation, no bias."""
    return Model(
        nn.Conv2d(4, 6, 3, padding=2, dilation=2, groups=2, bias=False), (data.floats(1, 4, 7, 6),)
    )


@fixture
def conv2d_depthwise(data: Data) -> Model:
    """Depthwise Conv2d, strided, two outputs a channel."""
    return Model(nn.Conv2d(3, 6, 3, stride=2, padding=1, groups=3), (data.floats(1, 3, 8, 7),))


@fixture
def conv2d_depthwise_3x3(data: Data) -> Model:
    """Depthwise 3x3 Conv2d with padding, one output a channel."""
    return Model(nn.Conv2d(5, 5, 3, padding=1, groups=5, bias=False), (data.floats(1, 5, 6, 7),))


@fixture
def conv2d_pointwise(data: Data) -> Model:
    """1x1 Conv2d; sizes that are no multiples of 4."""
    return Model(nn.Conv2d(7, 5, 1), (data.floats(1, 7, 3, 3),))


@fixture
def conv2d_remainders(data: Data) -> Model:
    """Conv2d of 9 channels to 13, of a 7x5 image: nothing is a multiple of a block."""
    return Model(nn.Conv2d(9, 13, 3, padding=1), (data.floats(1, 9, 7, 5),))


@fixture
def conv2d_channels_last(data: Data) -> Model:
    """Conv2d, plain and depthwise, in dim order 0, 2, 3, 1."""
    plain = nn.Conv2d(3, 5, 3, stride=2, padding=1).to(memory_format=torch.channels_last)
    image = data.floats(2, 3, 9, 8).to(memory_format=torch.channels_last)
    return Model(nn.Sequential(plain, nn.Conv2d(5, 5, 3, groups=5)), (image,))


@fixture
def conv1d(data: Data) -> Model:
    """Conv1d, stride 2."""
    return Model(nn.Conv1d(3, 4, 5, stride=2, padding=2), (data.floats(2, 3, 13),))


@fixture
def conv1d_groups(data: Data) -> Model:
    """Conv1d with groups and dilation, no bias."""
    return Model(
        nn.Conv1d(4, 4, 3, padding=3, dilation=3, groups=2, bias=False), (data.floats(1, 4, 11),)
    )


@fixture
def conv_transpose2d(data: Data) -> Model:
    """Transposed Conv2d: stride, padding and output padding, each different by axis."""
    return Model(
        nn.ConvTranspose2d(3, 2, (3, 4), stride=(2, 3), padding=(1, 2), output_padding=(1, 2)),
        (data.floats(2, 3, 4, 5),),
    )


@fixture
def conv_transpose2d_groups(data: Data) -> Model:
    """Transposed Conv2d with groups and dilation, no bias."""
    return Model(
        nn.ConvTranspose2d(4, 6, 3, stride=2, dilation=2, groups=2, bias=False),
        (data.floats(1, 4, 3, 4),),
    )


@fixture
def conv_transpose1d(data: Data) -> Model:
    """Transposed Conv1d: stride, padding, output padding."""
    return Model(
        nn.ConvTranspose1d(3, 4, 4, stride=3, padding=1, output_padding=2), (data.floats(2, 3, 5),)
    )


@fixture
def conv_transpose1d_groups(data: Data) -> Model:
    """Transposed Conv1d with groups and dilation."""
    return Model(nn.ConvTranspose1d(4, 4, 3, dilation=2, groups=4), (data.floats(1, 4, 5),))
