"""The models of the public bug report and of ExecuTorch's tutorial."""

from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


class SimpleConv(nn.Module):
    """Convolution 3x3 and relu, as in ExecuTorch's export tutorial."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, channels, kernel_size=3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.conv(x))


@fixture
def softmax_2x2(data: Data) -> Model:
    """Softmax over the rows of a 2x2 matrix."""
    return Model(nn.Softmax(dim=0), (data.floats(2, 2),), further=((data.floats(2, 2) * 100,),))


@fixture
def linear_5(data: Data) -> Model:
    """Linear layer, 5 features to 5."""
    return Model(nn.Linear(5, 5), (data.floats(1, 5),))


@fixture
def add_1(data: Data) -> Model:
    """x + x, one element."""
    return Model(Function(lambda x: x + x), (data.floats(1),))


@fixture
def add_5(data: Data) -> Model:
    """(x + x) + 3: two additions, the second with a constant that is converted at run time."""
    return Model(Function(lambda x: x + x + 3), (data.floats(5),))


@fixture
def add2_5(data: Data) -> Model:
    """x + y, five elements."""
    return Model(Function(lambda x, y: x + y), (data.floats(5), data.floats(5)))


@fixture
def simple_conv(data: Data) -> Model:
    """The tutorial's SimpleConv with 8 channels and a 16x16 image."""
    return Model(SimpleConv(8), (data.floats(1, 3, 16, 16),))


@fixture
def simple_conv_256(data: Data) -> Model:
    """The tutorial's SimpleConv: 16 channels, a 256x256 image."""
    return Model(SimpleConv(16), (data.floats(1, 3, 256, 256),), stride=997, recipe=True)


@fixture
def planned_1785600(data: Data) -> Model:
    """Relu whose planned buffer has the size in the public report, 1,785,600 bytes."""
    return Model(nn.ReLU(), (data.floats(3, 240, 310),), stride=997, recipe=True)
