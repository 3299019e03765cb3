"""3-d convolutions and pools, for which ExecuTorch has no kernels."""

import torch
import torch.nn.functional as F
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture
from torch import nn
from torch.export import Dim


@fixture
def conv3d(data: Data) -> Model:
    """A small network on volumes: strides, dilation, groups, batch normalization, pools."""
    model = nn.Sequential(
        nn.Conv3d(2, 4, (3, 3, 5), stride=(1, 2, 2), padding=(1, 1, 2), bias=False),
        nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
        nn.Conv3d(4, 4, 3, padding=(2, 1, 1), dilation=(2, 1, 1), groups=4), nn.Conv3d(4, 6, 1),
        nn.ReLU(), nn.AvgPool3d((2, 1, 1)), nn.AdaptiveAvgPool3d((2, 1, 2)), nn.Flatten(),
        nn.Linear(24, 3))
    return Model(model, (data.floats(2, 2, 6, 12, 16),), executorch_crashes=True)


@fixture
def conv_transpose3d(data: Data) -> Model:
    """Volumes to fewer places and back, by transposed convolutions with groups and output padding."""
    model = nn.Sequential(
        nn.Conv3d(1, 4, 3, stride=2, padding=1), nn.ReLU(),
        nn.ConvTranspose3d(4, 6, (2, 3, 3), stride=2, padding=(0, 1, 1), output_padding=(0, 1, 1),
                           groups=2), nn.ReLU(),
        nn.ConvTranspose3d(6, 1, 3, padding=(2, 1, 1), dilation=(2, 1, 1), bias=False))
    return Model(model, (data.floats(1, 1, 6, 8, 10),), executorch_crashes=True)


@fixture
def conv3d_channels_last(data: Data) -> Model:
    """A 3-d convolution and its pool in dim order 0, 2, 3, 4, 1."""
    model = nn.Sequential(nn.Conv3d(3, 4, 3, padding=1), nn.MaxPool3d(2))
    volume = data.floats(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d)
    return Model(model.to(memory_format=torch.channels_last_3d), (volume,), executorch_crashes=True)


@fixture
def conv3d_dynamic(data: Data) -> Model:
    """A clip of 4 to 8 frames, and a batch of up to 4."""
    model = nn.Sequential(nn.Conv3d(2, 3, 3, padding=(0, 1, 1)), nn.ReLU(), nn.AdaptiveAvgPool3d(1),
                          nn.Flatten())
    return Model(model, (data.floats(2, 2, 5, 4, 6),),
                 dynamic_shapes=({0: Dim("n", min=1, max=4), 2: Dim("frames", min=4, max=8)},),
                 further=tuple((data.floats(n, 2, frames, 4, 6),)
                               for n, frames in ((1, 8), (4, 4), (2, 6))),
                 executorch_crashes=True)


@fixture
def pool3d(data: Data) -> Model:
    """Pools over volumes: padding counted and not, ceil_mode, a divisor, dilation, without a batch."""
    def pool(x):
        return (F.avg_pool3d(x, 3, 2, 1), F.avg_pool3d(x, 3, 2, 1, True, False),
                F.avg_pool3d(x[0], (2, 1, 3), divisor_override=5),
                F.max_pool3d(x, (2, 3, 2), (1, 2, 3), (1, 1, 0), ceil_mode=True),
                F.max_pool3d(x[1], 2, 1, dilation=(3, 1, 2)), F.adaptive_avg_pool3d(x, (3, 2, 4)))

    return Model(Function(pool), (data.floats(2, 3, 5, 6, 7),), executorch_crashes=True)


@fixture
def max_pool3d_indices(data: Data) -> Model:
    """Max pools with their indices, the first of equals and the last NaN; adaptive ones over two and
    three dims."""
    values = data.floats(1, 2, 4, 4, 6)
    values[0, 0, 1, 2, 3] = values[0, 0, 1, 3, 2] = float("nan")

    def pool(x):
        return (*F.max_pool3d(x, 2, return_indices=True),
                *F.adaptive_max_pool3d(x, (2, 3, 4), return_indices=True),
                *F.adaptive_max_pool2d(x[0], (3, 4), return_indices=True))

    return Model(Function(pool), (values,), further=((torch.ones(1, 2, 4, 4, 6),),), edge=NOT_CORE,
                 executorch_crashes=True)
