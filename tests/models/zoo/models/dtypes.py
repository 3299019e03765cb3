"""Inputs and outputs other than a contiguous float tensor of one or more dims."""

import torch
from models.zoo.registry import Data, Function, Model, fixture


@fixture
def integer_tensors(data: Data) -> Model:
    """uint8, int8, int16, int32, int64 and bool tensors in and out."""
    dtypes = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    inputs = tuple(data.integers(3, low=0, high=50).to(dtype) for dtype in dtypes)
    return Model(
        Function(
            lambda u8, i8, i16, i32, i64, b: (u8 + 1, i8 * 2, i16 - 3, i32 + i32, i64 * i64, ~b)
        ),
        (*inputs, data.booleans(3)),
    )


@fixture
def double_tensors(data: Data) -> Model:
    """float64 arithmetic, and float64 with float32."""
    return Model(Function(lambda x, d: (d + d, x * d)), (data.floats(3), data.floats(3).double()))


@fixture
def casts(data: Data) -> Model:
    """Conversions between float, integer and bool."""
    return Model(
        Function(
            lambda x, n, b: (
                x.to(torch.int64),
                x.to(torch.uint8),
                n.float(),
                n.bool(),
                b.float(),
                b.int(),
            )
        ),
        (data.floats(4, low=0, high=200), data.integers(4, dtype="int32"), data.booleans(4)),
    )


@fixture
def zero_dim(data: Data) -> Model:
    """0-d tensors in and out."""
    return Model(
        Function(lambda x, y: (x + y, torch.relu(x), x * 2, (x + y).sum())),
        (data.floats(), data.floats()),
    )


@fixture
def empty_tensors(data: Data) -> Model:
    """Tensors without elements in and out."""
    return Model(
        Function(
            lambda x, y: (x + 1, torch.relu(x), torch.mm(x, y), x.sum(), torch.cat((x, x), 1))
        ),
        (data.floats(0, 3), data.floats(3, 2)),
    )


@fixture
def rank_8(data: Data) -> Model:
    """A tensor of eight dims, broadcast."""
    return Model(
        Function(lambda x, y: x + y),
        (data.floats(1, 2, 1, 2, 1, 2, 1, 2), data.floats(2, 1, 2, 1, 1, 1, 2, 1)),
    )
