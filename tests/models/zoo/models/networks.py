"""Small whole networks."""

import torch
from models.zoo.registry import Data, Model, fixture
from torch import nn


@fixture
def mlp(data: Data) -> Model:
    """Perceptron with sigmoid, tanh and both kinds of gelu."""
    layers = [nn.Linear(6, 8), nn.Sigmoid(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)]
    layers += [nn.GELU(), nn.Linear(8, 8), nn.GELU(approximate="tanh"), nn.Linear(8, 3)]
    return Model(nn.Sequential(*layers), (data.floats(2, 6),))


@fixture
def conv1d_network(data: Data) -> Model:
    """1-d network: strided, dilated and grouped convolutions, batch norm, mean over time."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv1d(2, 8, 5, stride=2, padding=2),
                nn.BatchNorm1d(8),
                nn.ReLU(),
                nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=4),
                nn.ReLU(),
            )
            self.classifier = nn.Linear(8, 3)

        def forward(self, x):
            return torch.log_softmax(self.classifier(self.features(x).mean(dim=2)), dim=1)

    return Model(Network(), (data.floats(1, 2, 33),))


@fixture
def channels_last_network(data: Data) -> Model:
    """Convolutions, max pooling and a residual addition, all in dim order 0, 2, 3, 1."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.entry = nn.Conv2d(3, 6, 3, padding=1)
            self.pool = nn.MaxPool2d(2)
            self.depthwise = nn.Conv2d(6, 6, 3, padding=1, groups=6)
            self.average = nn.AvgPool2d(2)

        def forward(self, x):
            x = self.pool(torch.relu(self.entry(x)))
            return self.average(x + self.depthwise(x))

    image = data.floats(1, 3, 8, 8).to(memory_format=torch.channels_last)
    return Model(Network(), (image,))


@fixture
def attention(data: Data) -> Model:
    """Single-head scaled dot product attention with its projections."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(4, 4) for _ in range(3))

        def forward(self, x):
            scores = self.query(x) @ self.key(x).transpose(1, 2) / 2.0
            return torch.softmax(scores, dim=-1) @ self.value(x)

    return Model(Attention(), (data.floats(2, 3, 4),))
