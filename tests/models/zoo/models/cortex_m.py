"""Define fixtures that are quantized to int8, in ExecuTorch's dialect for Cortex-M."""

import numpy as np
import torch
from executorch.examples.models import mlperf_tiny
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn
from torch.nn import functional


def image(data: Data, *sizes: int) -> torch.Tensor:
    return data.floats(*sizes).to(memory_format=torch.channels_last)


def in_channels_last(module: nn.Module) -> nn.Module:
    return module.to(memory_format=torch.channels_last)


def integers(data: Data, *sizes: int) -> torch.Tensor:
    return data.integers(*sizes, low=-128, high=128, dtype=np.int8)


@fixture
def int8_convolutions(data: Data) -> Model:
    """3x3 of stride 2, grouped, 1x1, two depthwise, with max and average pooling and a linear layer."""
    module = nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(6, 8, 3, padding=1, groups=2, bias=False), nn.ReLU6(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU(),
        nn.Conv2d(8, 13, 1), nn.MaxPool2d(2),
        nn.Conv2d(13, 26, (3, 2), groups=13), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(26, 7),
    )  # fmt: skip
    return Model(in_channels_last(module), (image(data, 2, 3, 17, 15),), cortex_m="M4")


@fixture
def int8_transposed_convolution(data: Data) -> Model:
    """Transposed convolution after a convolution, with output padding."""
    module = nn.Sequential(
        nn.Conv2d(2, 5, 3, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(5, 3, 3, stride=2, padding=1, output_padding=1),
    )  # fmt: skip
    return Model(in_channels_last(module), (image(data, 1, 2, 5, 6),), cortex_m="M4")


@fixture
def int8_elementwise(data: Data) -> Model:
    """add, sub, mul, div, minimum and maximum of equal sizes."""

    def combine(x, y):
        return torch.minimum(x + y, x * y), torch.maximum(x - y, y / (x + 3))

    return Model(Function(combine), (data.floats(2, 9), data.floats(2, 9)), cortex_m="M4")


@fixture
def int8_activations(data: Data) -> Model:
    """sigmoid, tanh and silu, each by a table."""

    def activate(x):
        return torch.sigmoid(x), torch.tanh(x), functional.silu(x)

    return Model(Function(activate), (data.floats(3, 40, low=-6, high=6),), cortex_m="M4")


@fixture
def int8_attention(data: Data) -> Model:
    """Products of batches of matrices around a softmax, with a transposition."""

    def attend(query, key, value):
        return torch.softmax(query @ key.transpose(1, 2), -1) @ value

    inputs = tuple(data.floats(2, 5, 12) for _ in range(3))
    return Model(Function(attend), inputs, cortex_m="M4")


@fixture
def int8_pad(data: Data) -> Model:
    """Padding with a constant, in channels_last."""

    def pad(x):
        return functional.pad(x * 2, (1, 2, 0, 1), value=0.25)

    return Model(Function(pad), (image(data, 1, 3, 4, 5),), cortex_m="M4")


@fixture
def int8_linear_kernel_sum(data: Data) -> Model:
    """Linear layers as for a core with MVE: with sums of the weights instead of biases."""
    module = nn.Sequential(nn.Linear(33, 18), nn.ReLU(), nn.Linear(18, 5))
    return Model(module, (data.floats(3, 33),), cortex_m="M55")


@fixture
def int8_ds_cnn(data: Data) -> Model:
    """Keyword spotting of MLPerf Tiny, for Cortex-M4."""
    module = in_channels_last(mlperf_tiny.DSCNNKWS())
    return Model(module, (image(data, 1, 1, 49, 10),), cortex_m="M4")


@fixture
def int8_resnet8(data: Data) -> Model:
    """Image classification of MLPerf Tiny, for Cortex-M55."""
    module = in_channels_last(mlperf_tiny.ResNet8())
    return Model(module, (image(data, 1, 3, 32, 32),), cortex_m="M55")


@fixture
def int8_io_ds_cnn(data: Data) -> Model:
    """Keyword spotting of MLPerf Tiny with int8 input and output."""
    sizes = (1, 1, 49, 10)
    return Model(in_channels_last(mlperf_tiny.DSCNNKWS()),
                 (integers(data, *sizes).to(memory_format=torch.channels_last),),
                 calibration=((image(data, *sizes),),), cortex_m="M4")  # fmt: skip


@fixture
def int8_io_elementwise(data: Data) -> Model:
    """Two int8 inputs and two int8 outputs, each with its own scale and zero point."""

    def combine(x, y):
        return torch.maximum(x, y), x * y

    return Model(Function(combine), (integers(data, 3, 11), integers(data, 3, 11)), cortex_m="M4",
                 calibration=((data.floats(3, 11, low=-3, high=1), data.floats(3, 11)),))  # fmt: skip
