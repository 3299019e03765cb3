"""Define five small networks for int8 programs of picotorch export. Each function returns (module,
example inputs). Their weights are PyTorch's initial ones, from a fixed seed.

    cd tests/models/export
    picotorch export networks.py:cnn --quantize calibration/cnn.npz
"""

import torch
from torch import nn
from torch.nn import functional


class Cnn(nn.Module):
    """Convolutions and a classifier: 1x16x16 -> 10 scores."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.classifier = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm1(self.conv1(x))), 2)
        x = functional.max_pool2d(functional.relu(self.norm2(self.conv2(x))), 2)
        return self.classifier(x.flatten(1))


class GruStep(nn.Module):
    """One step of a recurrent network: features and the hidden state -> scores and the next state."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(16, 32), nn.Linear(32, 4)

    def forward(self, x, hidden):
        hidden = self.cell(x, hidden)
        return self.out(hidden), hidden


class Transformer(nn.Module):
    """A block of a transformer: 8 tokens of 32 features."""

    def __init__(self, features=32, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.qkv, self.projection = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.up, self.down = nn.Linear(features, 2 * features), nn.Linear(2 * features, features)

    def forward(self, x):
        batch, tokens, features = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, tokens, 3, self.heads, features // self.heads)
        attended = functional.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4).unbind())
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, tokens, features))
        return x + self.down(functional.relu(self.up(self.norm2(x))))


def _separable(inputs, outputs, stride):
    return (nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), nn.BatchNorm2d(inputs),
            nn.ReLU(), nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


def _seeded(make):
    torch.manual_seed(0)
    return make().eval()


def cnn():
    return _seeded(Cnn), torch.zeros(1, 1, 16, 16)


def mlp():
    def make():
        return nn.Sequential(nn.Linear(196, 64), nn.ReLU(), nn.Linear(64, 32), nn.Tanh(),
                             nn.Linear(32, 10))

    return _seeded(make), torch.zeros(1, 196)


def gru_step():
    return _seeded(GruStep), (torch.zeros(1, 16), torch.zeros(1, 32))


def transformer():
    return _seeded(Transformer), torch.zeros(1, 8, 32)


def depthwise():
    def make():
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
            *_separable(8, 16, 1), *_separable(16, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(32, 5))

    return _seeded(make), torch.zeros(1, 3, 24, 24)
