"""Operators that move, select, join or make elements."""

import torch
import torch.nn.functional as F
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


@fixture
def cat(data: Data) -> Model:
    """aten::cat over the first and the last dim, with an empty tensor and of mixed dtypes."""
    return Model(
        Function(
            lambda x, y, n: (
                torch.cat((x, y), 0),
                torch.cat((x, x, x[:, :1]), -1),
                torch.cat((x, n), 0),
                torch.cat((x, torch.zeros(0)), 0),
            )
        ),
        (data.floats(2, 3), data.floats(1, 3), data.integers(2, 3)),
    )


@fixture
def stack(data: Data) -> Model:
    """aten::stack at the first and the last dim."""
    return Model(
        Function(lambda x, y: (torch.stack((x, y)), torch.stack((x, y, x), -1))),
        (data.floats(2, 3), data.floats(2, 3)),
    )


@fixture
def split(data: Data) -> Model:
    """aten::split into equal parts with a rest, and into given sizes."""
    return Model(
        Function(lambda x: (*torch.split(x, 2, 1), *torch.split(x, [1, 3, 1], 1))),
        (data.floats(2, 5),),
    )


@fixture
def unbind(data: Data) -> Model:
    """aten::unbind over the middle dim."""
    return Model(Function(lambda x: torch.unbind(x, 1)), (data.floats(2, 3, 2),))


@fixture
def constant_pad(data: Data) -> Model:
    """aten::constant_pad_nd, different at each side, and of integers."""
    return Model(
        Function(
            lambda x, n: (
                F.pad(x, (1, 2, 0, 1), value=0.5),
                F.pad(x, (0, 0, 1, 1)),
                F.pad(n, (2, 0), value=7),
            )
        ),
        (data.floats(1, 2, 3), data.integers(3)),
    )


@fixture
def constant_pad_negative(data: Data) -> Model:
    """aten::constant_pad_nd that cuts at one side; ExecuTorch refuses it."""
    return Model(Function(lambda x: F.pad(x, (-1, 1))), (data.floats(2, 3),), executorch_fails=True)


@fixture
def permute(data: Data) -> Model:
    """aten::permute_copy and aten::transpose_copy, negative dims included."""
    return Model(
        Function(
            lambda x: (
                x.permute(2, 0, 1),
                x.permute(0, -1, 1),
                x.transpose(0, 2),
                x.transpose(-1, 1),
            )
        ),
        (data.floats(2, 3, 4),),
    )


@fixture
def view(data: Data) -> Model:
    """Views, flatten and reshape, computed from and of, with a -1."""
    return Model(
        Function(
            lambda x: (x.view(6, 4) + 1, (x * 2).reshape(2, -1), torch.flatten(x + x, 1).neg())
        ),
        (data.floats(2, 3, 4),),
    )


@fixture
def squeeze(data: Data) -> Model:
    """aten::squeeze_copy of one and of several dims, aten::unsqueeze_copy."""
    return Model(
        Function(lambda x: (x.squeeze(1), x.squeeze((1, 3)), x.unsqueeze(0), x.unsqueeze(-1))),
        (data.floats(2, 1, 3, 1),),
    )


@fixture
def expand(data: Data) -> Model:
    """aten::expand_copy, with a new dim and -1, and aten::repeat."""
    return Model(
        Function(lambda x: (x.expand(2, 3, 4), x.expand(-1, 4), x.repeat(2, 1, 2))),
        (data.floats(3, 1),),
    )


@fixture
def select(data: Data) -> Model:
    """aten::select_copy over each dim, from the end too."""
    return Model(Function(lambda x: (x[1], x[:, -1], x[..., 2])), (data.floats(2, 3, 4),))


@fixture
def slices(data: Data) -> Model:
    """aten::slice_copy with start, end, step and ends beyond the size."""
    return Model(
        Function(lambda x: (x[1:], x[:, 1:-1], x[:, ::2], x[:, 3:100], x[:, 4:2])),
        (data.floats(3, 5),),
    )


@fixture
def flip(data: Data) -> Model:
    """aten::flip over one and two dims."""
    return Model(Function(lambda x: (x.flip(0), x.flip(0, 2))), (data.floats(2, 2, 3),))


@fixture
def embedding(data: Data) -> Model:
    """aten::embedding."""
    return Model(nn.Embedding(7, 3), (data.integers(2, 2, low=0, high=7),))


@fixture
def index_select(data: Data) -> Model:
    """aten::index_select over each dim."""
    return Model(
        Function(lambda x, index: (x.index_select(0, index), x.index_select(1, index))),
        (data.floats(3, 4), data.integers(2, low=0, high=3)),
    )


@fixture
def fill(data: Data) -> Model:
    """aten::full, full_like and arange, made at run time."""
    return Model(
        Function(
            lambda x: (
                x + torch.full((3,), 2.5),
                torch.full_like(x, -1.0),
                torch.zeros_like(x) + x,
                x * torch.arange(3),
                torch.ones(2, dtype=torch.int32),
            )
        ),
        (data.floats(2, 3),),
    )


@fixture
def clone(data: Data) -> Model:
    """Copies with and without a change of dtype and of dim order."""
    return Model(
        Function(
            lambda x: (
                x.clone(),
                x.to(torch.int32),
                x.to(torch.float64),
                x > 0,
                x.to(memory_format=torch.channels_last).relu(),
                x.to(memory_format=torch.channels_last).contiguous(),
            )
        ),
        (data.floats(1, 2, 2, 3, low=-9, high=9),),
    )
