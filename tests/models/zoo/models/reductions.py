"""Reductions over dims."""

import torch
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture


@fixture
def mean(data: Data) -> Model:
    """aten::mean over one dim, several, kept, negative, and all."""
    return Model(
        Function(
            lambda x: (
                x.mean(1),
                x.mean((2, 3)),
                x.mean((-1, -2), keepdim=True),
                x.mean((0, 2)),
                x.mean(),
            )
        ),
        (data.floats(2, 3, 4, 5),),
    )


@fixture
def sum_dims(data: Data) -> Model:
    """aten::sum of floats over dims, of integers (to int64) and of booleans."""
    return Model(
        Function(
            lambda x, n, b: (x.sum(0), x.sum((1, 2), keepdim=True), x.sum(), n.sum(0), b.sum())
        ),
        (data.floats(2, 3, 4), data.integers(2, 3, dtype="int32"), data.booleans(2, 3)),
    )


@fixture
def amax_amin(data: Data) -> Model:
    """aten::amax and aten::amin over dims, kept or not."""
    return Model(
        Function(lambda x: (x.amax(1), x.amax((0, 2), keepdim=True), x.amin(-1), x.amin((0, 1)))),
        (data.floats(2, 3, 4),),
    )


@fixture
def argmax_argmin(data: Data) -> Model:
    """aten::argmax and aten::argmin over a dim, kept, and over all; the first of equals."""
    values = torch.tensor([[1.0, 3.0, 3.0], [2.0, float("nan"), 0.0]])
    return Model(
        Function(lambda x: (x.argmax(1), x.argmax(0, keepdim=True), x.argmax(), x.argmin(1))),
        (data.floats(2, 3),),
        further=((values,),),
    )


@fixture
def max_dim(data: Data) -> Model:
    """aten::max and aten::min over a dim: values and indices."""
    return Model(
        Function(lambda x: (*torch.max(x, 1), *torch.min(x, 0, keepdim=True))),
        (data.floats(3, 4),),
    )


@fixture
def variance(data: Data) -> Model:
    """aten::var with and without Bessel's correction."""
    return Model(
        Function(lambda x: (x.var(1), x.var((0, 2), correction=0, keepdim=True))),
        (data.floats(2, 3, 4),),
    )


@fixture
def any_all(data: Data) -> Model:
    """aten::any over all elements and over a dim."""
    return Model(
        Function(lambda b: (b.any(), b.any(1), b.all(0))),
        (data.booleans(3, 4),),
    )


@fixture
def cumsum(data: Data) -> Model:
    """aten::cumsum over each dim."""
    return Model(Function(lambda x: (x.cumsum(0), x.cumsum(1))), (data.floats(3, 4),))


@fixture
def cumprod(data: Data) -> Model:
    """aten::cumprod over a dim of floats and of integers, which ExecuTorch has no kernel for."""
    return Model(
        Function(lambda x, n: (x.cumprod(0), n.cumprod(1))),
        (data.floats(3, 4), data.integers(2, 5, dtype="int32")),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def medians(data: Data) -> Model:
    """aten::median, aten::median.dim and aten::kthvalue, which ExecuTorch has no kernels for."""
    return Model(
        Function(lambda x: (x.median(), *x.median(1), *x.kthvalue(2, 0, keepdim=True))),
        (data.floats(4, 6),),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def modes(data: Data) -> Model:
    """aten::mode, aten::cummax and aten::cummin, which ExecuTorch has no kernels for."""
    return Model(
        Function(lambda x, n: (*n.mode(1), *x.cummax(0), *n.cummin(-1))),
        (data.floats(4, 6), data.integers(3, 8, low=0, high=4)),
        edge=NOT_CORE,
        executorch_fails=True,
    )
