"""Make a torch module of a function and the layers that it uses."""

from torch import nn


class Net(nn.Module):
    """forward(layers, *inputs), of these layers."""

    def __init__(self, forward, *layers):
        super().__init__()
        self.layers, self.compute = nn.ModuleList(layers), forward

    def forward(self, *inputs):
        return self.compute(self.layers, *inputs)
