"""Define programs that picotorch export makes from TorchScript."""

import torch
from models.zoo.registry import Data, Model, fixture
from torch import nn


class Branch(nn.Module):
    """The module of PyTorch's tutorial "Loading a TorchScript Model in C++", with branches of one
    shape."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 3))
        self.bias = nn.Parameter(torch.zeros(4, 1))

    def forward(self, x):
        if x.sum() > 0:
            output = self.weight.mv(x)
        else:
            output = self.bias[:, 0] + x.sum()
        return output


@fixture
def torchscript_branch(data: Data) -> Model:
    """A scripted module whose `if` became a JumpFalse; runs take both ways."""
    x = data.floats(3).abs()
    return Model(Branch(), (x,), further=((-x,), (x * 0,), (x * 2,)), torchscript=True)
