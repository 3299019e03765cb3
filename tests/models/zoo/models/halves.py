"""float16 and bfloat16: networks, promotion, conversions, and tensors of 0 dims or elements."""

import torch
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 5), nn.Softmax(-1))


@fixture
def half_mlp(data: Data) -> Model:
    """Linear layers, ReLU and softmax in float16."""
    return Model(_mlp().half(), (data.floats(3, 16).half(),))


@fixture
def bfloat16_mlp(data: Data) -> Model:
    """Linear layers, ReLU and softmax in bfloat16."""
    return Model(_mlp().bfloat16(), (data.floats(3, 16).bfloat16(),))


def _convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 4, 3, stride=2, groups=4), nn.LayerNorm([3, 3]), nn.Hardtanh(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3), nn.LogSoftmax(-1))  # fmt: skip


@fixture
def half_convolutions(data: Data) -> Model:
    """Convolutions, batch norm, layer norm and pooling in float16."""
    return Model(_convolutions().half(), (data.floats(1, 2, 7, 7).half(),))


@fixture
def bfloat16_convolutions(data: Data) -> Model:
    """Convolutions, batch norm, layer norm and pooling in bfloat16."""
    return Model(_convolutions().bfloat16(), (data.floats(1, 2, 7, 7).bfloat16(),))


@fixture
def half_functions(data: Data) -> Model:
    """Functions, comparisons, reductions and copies in float16 and bfloat16."""

    def functions(x, y):
        return (
            torch.sigmoid(x),
            nn.functional.gelu(y),
            torch.exp(x) / (y.half() + 2),
            torch.where(x > 0, x, x * 0.3),
            y.clamp(-0.5, 0.25),
            x.mean(1),
            y.sum(0),
            x.argmax(1),
            y.amax(1, keepdim=True),
            torch.cat((x, x[:, 1:]), 1),
            y.t().contiguous(),
        )

    return Model(Function(functions), (data.floats(3, 4).half(), data.floats(3, 4).bfloat16()))


@fixture
def half_promotion(data: Data) -> Model:
    """float16 and bfloat16 with each other, with float32, float64, integers, bools and numbers."""
    return Model(
        Function(
            lambda h, b, f, d, n, t: (h + b, h * f, b - f, h * d, b + n, h + t, h * 0.1, b + 1, h > f)
        ),
        (
            data.floats(4).half(),
            data.floats(4).bfloat16(),
            data.floats(4),
            data.floats(4).double(),
            data.integers(4),
            data.booleans(4),
        ),
    )


@fixture
def half_casts(data: Data) -> Model:
    """float16 and bfloat16 from and to other dtypes."""
    return Model(
        Function(
            lambda h, b, f, n: (
                h.float(), b.float(), f.half(), f.bfloat16(), h.bfloat16(), b.half(), h.to(torch.int32),
                b.to(torch.uint8), n.half(), n.bfloat16(), h.bool(), b.double(),
            )  # fmt: skip
        ),
        (
            data.floats(4, low=0, high=200).half(),
            data.floats(4, low=0, high=200).bfloat16(),
            torch.tensor([1 / 3, 65519, 65520, 1e-7]),
            torch.tensor([2049, -3, 70000, 2**24 + 1]),
        ),
    )


@fixture
def half_special_sizes(data: Data) -> Model:
    """0-d and empty tensors of float16 and bfloat16."""
    return Model(
        Function(lambda x, y, e: (x + y, torch.relu(y), x.float(), e + x, torch.cat((e, e)), e.sum(1))),
        (data.floats().half(), data.floats().bfloat16(), data.floats(2, 0).half()),
    )
