"""Define modules for test_torchscript.py, which TorchScript compiles from this file."""

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions, and an addition of the input."""

    def __init__(self, width_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or width_in != width:
            self.shortcut = nn.Sequential(nn.Conv2d(width_in, width, 1, stride, bias=False),
                                          nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet18 of the paper for 1000 classes; images may be smaller than 224x224."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        widths = (64, 64, 128, 256, 512)
        blocks = []
        for i in range(1, 5):
            blocks += [Block(widths[i - 1], widths[i], 1 if i == 1 else 2),
                       Block(widths[i], widths[i], 1)]
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(512, 1000)

    def forward(self, x):
        return self.classify(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class MyModule(nn.Module):
    """The module of PyTorch's tutorial "Loading a TorchScript Model in C++"."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3, 4))

    def forward(self, input):
        if input.sum() > 0:
            output = self.weight.mv(input)
        else:
            output = self.weight + input
        return output


class DifferentSizes(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            output = torch.cat([x, x])
        else:
            output = x + 1
        return output


class DifferentDtypes(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            output = x > 0
        else:
            output = x + 1
        return output


class While(nn.Module):
    def forward(self, x):
        while x.sum() < 10.0:
            x = x + 1
        return x


class Print(nn.Module):
    def forward(self, x):
        print(x)
        return x + 1


class Numbers(nn.Module):
    def forward(self, x, count: int, y):
        return x * count + y
