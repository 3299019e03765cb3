"""Models of training: gradients, and random numbers."""

import torch
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture
from torch import nn


@fixture
def training_step(data: Data) -> Model:
    """The loss of a small CNN and its gradients: the exporter's joint graph, which gives the
    parameters, too. The first convolution gives no gradient of its input. ExecuTorch 1.5.1 adds the
    gradient of the pooling to what its memory holds."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.entry = nn.Conv2d(1, 4, 3, padding=1)
            self.pool = nn.MaxPool2d(2)
            self.grouped = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
            self.classifier = nn.Linear(6 * 2 * 2, 3)
            self.loss = nn.CrossEntropyLoss()

        def forward(self, x, labels):
            x = self.pool(torch.relu(self.entry(x)))
            x = torch.relu(self.grouped(x))
            return self.loss(self.classifier(x.flatten(1)), labels)

    return Model(Network(), (data.floats(2, 1, 8, 8), data.integers(2, low=0, high=3)), gradients=True,
                 executorch_fails=True)


@fixture
def random_numbers(data: Data) -> Model:
    """Check properties of all random numbers: of rand, randn and a dropout in training.
    ExecuTorch 1.5.1 does not scale what dropout keeps."""
    def compute(x):
        dropped, mask = torch.ops.aten.native_dropout(x, 0.25, True)
        uniform, normal = torch.rand(5, 7), torch.randn(5, 7)
        return ((uniform >= 0) & (uniform < 1), normal * normal < 64,
                torch.where(mask, dropped - x / 0.75, dropped).abs() < 1e-6)

    return Model(Function(compute), (data.floats(4, 6),), executorch_fails=True)


@fixture
def random_integers(data: Data) -> Model:
    """Check properties of randint, randperm and random numbers in the sizes of a tensor."""
    def compute(x):
        numbers, order = torch.randint(-3, 4, (5, 7)), torch.randperm(9)
        likes = torch.rand_like(x), torch.randn_like(x)
        return ((numbers >= -3) & (numbers < 4), torch.randint(5, (6,)) < 5, order.sort().values,
                (likes[0] >= 0) & (likes[0] < 1), likes[1] * likes[1] < 64)

    return Model(Function(compute), (data.floats(4, 6),), edge=NOT_CORE, executorch_fails=True)
