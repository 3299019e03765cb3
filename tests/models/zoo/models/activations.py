"""Define fixtures of activations, with values where they bend, saturate or are not finite."""

import torch
import torch.nn.functional as F
from models.zoo.registry import Data, Function, Model, fixture

_EDGES = torch.tensor(
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        0.0,
        -0.0,
        -3.0,
        3.0,
        6.0,
        -1.0,
        1.0,
        1e-30,
        -1e-30,
        88.0,
        -88.0,
        1e30,
        -1e30,
    ]
)


def _activation(data: Data, function, edges: torch.Tensor = _EDGES) -> Model:
    """Apply the function to ordinary values, then to edge cases."""
    return Model(Function(function), (data.floats(16, low=-8, high=8),), further=((edges,),))


@fixture
def relu(data: Data) -> Model:
    """aten::relu."""
    return _activation(data, torch.relu)


@fixture
def sigmoid(data: Data) -> Model:
    """aten::sigmoid."""
    return _activation(data, torch.sigmoid)


@fixture
def tanh(data: Data) -> Model:
    """aten::tanh."""
    return _activation(data, torch.tanh)


@fixture
def gelu(data: Data) -> Model:
    """aten::gelu, exact."""
    return _activation(data, F.gelu, _EDGES.nan_to_num(2.0, 2.0, -2.0))


@fixture
def gelu_infinite(data: Data) -> Model:
    """aten::gelu, exact, of infinities and NaN."""
    return Model(Function(F.gelu), (_EDGES[:8].clone(),))


@fixture
def gelu_tanh(data: Data) -> Model:
    """aten::gelu, approximated with tanh."""
    return _activation(data, lambda x: F.gelu(x, approximate="tanh"))


@fixture
def relu6(data: Data) -> Model:
    """aten::hardtanh with the bounds of relu6."""
    return _activation(data, F.relu6)


@fixture
def hardtanh(data: Data) -> Model:
    """aten::hardtanh with fractional bounds."""
    return _activation(data, lambda x: F.hardtanh(x, -1.5, 2.5))


@fixture
def hardswish(data: Data) -> Model:
    """hardswish, as the exporter decomposes it."""
    return _activation(data, F.hardswish)


@fixture
def hardsigmoid(data: Data) -> Model:
    """hardsigmoid, as the exporter decomposes it."""
    return _activation(data, F.hardsigmoid)


@fixture
def leaky_relu(data: Data) -> Model:
    """aten::leaky_relu."""
    return _activation(data, lambda x: F.leaky_relu(x, 0.1))


@fixture
def elu(data: Data) -> Model:
    """aten::elu."""
    return _activation(data, lambda x: F.elu(x, 0.7))


@fixture
def silu(data: Data) -> Model:
    """silu, as the exporter decomposes it."""
    return _activation(data, F.silu)


@fixture
def clamp(data: Data) -> Model:
    """aten::clamp with both bounds, with one bound, and of integers."""
    return Model(
        Function(
            lambda x, n: (x.clamp(-1.5, 2), x.clamp(min=0.5), x.clamp(max=-0.5), n.clamp(-3, 4))
        ),
        (data.floats(8, low=-4, high=4), data.integers(8)),
        further=((_EDGES[:8].clone(), data.integers(8)),),
    )


@fixture
def softmax_dims(data: Data) -> Model:
    """aten::_softmax over the first, a middle and the last dim of three."""
    return Model(
        Function(lambda x: (torch.softmax(x, 0), torch.softmax(x, 1), torch.softmax(x, -1))),
        (data.floats(2, 3, 5, low=-5, high=5),),
    )


@fixture
def log_softmax(data: Data) -> Model:
    """aten::_log_softmax over the first and the last dim."""
    return Model(
        Function(lambda x: (torch.log_softmax(x, 0), torch.log_softmax(x, -1))),
        (data.floats(3, 5, low=-5, high=5),),
        further=((data.floats(3, 5, low=-200, high=200),),),
    )


@fixture
def angles(data: Data) -> Model:
    """tan and the inverses of the trigonometric functions."""
    return Model(
        Function(lambda x, y: (x.tan(), x.asin(), x.acos(), x.atan(), torch.atan2(x, y))),
        (data.floats(9), data.floats(9)),
    )


@fixture
def hyperbolic(data: Data) -> Model:
    """Hyperbolic functions and their inverses."""
    return Model(
        Function(lambda x: (x.sinh(), x.cosh(), x.asinh(), (x.abs() + 1).acosh(), x.atanh())),
        (data.floats(9),),
    )


@fixture
def gates(data: Data) -> Model:
    """aten::glu over two dims, aten::logit with and without eps."""
    return Model(
        Function(lambda x: (F.glu(x), F.glu(x, 0), x.abs().logit(), x.logit(0.25))),
        (data.floats(2, 4),),
    )
