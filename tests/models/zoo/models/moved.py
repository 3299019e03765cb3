"""Tensors that are only moved: of dtypes without arithmetic, of sixteen dims, of unusual dim orders."""

import torch
from models.zoo.registry import Data, Function, Model, fixture


@fixture
def moved_dtypes(data: Data) -> Model:
    """uint16, uint32 and float8: inputs that are outputs, clones, views and parts."""
    bits = data.integers(2, 6, low=0, high=120)
    return Model(
        Function(
            lambda a, b, c, d: (
                a.clone(), b.view(3, 4), b[:, 1:4], c.unsqueeze(0), d.clone(), a,
            )  # fmt: skip
        ),
        (
            bits.to(torch.uint16),
            bits.to(torch.uint32),
            bits.to(torch.uint8).view(torch.float8_e5m2),
            bits.to(torch.uint8).view(torch.float8_e4m3fn),
        ),
        edge={"_check_ir_validity": False, "_skip_dim_order": True},
    )


@fixture
def rank_16(data: Data) -> Model:
    """Sixteen dims: broadcast, permuted, summed, viewed."""
    return Model(
        Function(
            lambda x, y: (
                x + y, x.permute(*range(15, -1, -1)) * 2, x.sum((1, 15)), y.reshape(2, 2, 2, 2),
                torch.relu(x),
            )  # fmt: skip
        ),
        (data.floats(*[1, 2] * 8), data.floats(*[2, 1, 1, 1] * 4)),
    )


@fixture
def dim_orders(data: Data) -> Model:
    """Inputs and outputs whose dims lie in memory in orders of their own."""
    return Model(
        Function(lambda x, y, z: (x + y, torch.relu(x), z * 2, torch.sigmoid(z))),
        (
            data.floats(4, 2, 3).permute(1, 2, 0),
            data.floats(4, 2, 3).permute(1, 2, 0),
            data.floats(3, 5, 2, 4).permute(3, 0, 2, 1),
        ),
        executorch_fails=True,  # its Python API accepts only contiguous and channels-last inputs
    )
