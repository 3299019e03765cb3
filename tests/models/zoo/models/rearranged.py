"""Operators that write, copy, repeat or resample by indices, masks, edges or positions."""

import torch
import torch.nn.functional as F
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture


@fixture
def index_put(data: Data) -> Model:
    """aten::index_put with rows, with indices around a dim, added up, and with a mask."""

    def put(x, index, rows, mask):
        first, second, third = x.clone(), x.clone(), x.clone()
        first[index] = rows
        second[:, index] = rows[:, :1].T
        third[mask] = 0.5
        return first, second, third, x.index_put((index,), rows, accumulate=True)

    return Model(
        Function(put),
        (
            data.floats(3, 4),
            torch.tensor([2, 0]),
            data.floats(2, 4),
            data.booleans(3, 4),
        ),
    )


@fixture
def scatter(data: Data) -> Model:
    """aten::scatter of elements and of a number, aten::scatter_add."""
    return Model(
        Function(
            lambda x, index, source: (
                x.scatter(1, index, source),
                x.scatter(0, index, 0.5),
                x.scatter_add(0, index, source),
            )
        ),
        (data.floats(3, 4), torch.tensor([[0, 1, 2], [2, 0, 1]]), data.floats(2, 3)),
    )


@fixture
def masked_scatter(data: Data) -> Model:
    """aten::masked_scatter with a mask that is broadcast."""
    return Model(
        Function(lambda x, mask, source: x.masked_scatter(mask, source)),
        (data.floats(2, 3), data.booleans(3), data.floats(6)),
    )


@fixture
def edge_pads(data: Data) -> Model:
    """Pads of edges in one to three dims, reflected and repeated."""
    return Model(
        Function(
            lambda x, y: (
                F.pad(x, (2, 1), mode="reflect"),
                F.pad(x, (1, 1, 0, 2), mode="reflect"),
                F.pad(y, (1, 0, 0, 1, 1, 1), mode="reflect"),
                F.pad(x, (2, 1), mode="replicate"),
                F.pad(x, (1, 1, 0, 2), mode="replicate"),
                F.pad(y, (1, 0, 0, 1, 1, 1), mode="replicate"),
            )
        ),
        (data.floats(2, 3, 4), data.floats(1, 2, 3, 2)),
    )


@fixture
def pixels(data: Data) -> Model:
    """aten::pixel_shuffle and aten::pixel_unshuffle."""
    return Model(
        Function(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2))),
        (data.floats(1, 4, 2, 4),),
    )


@fixture
def strided(data: Data) -> Model:
    """aten::roll over dims and over all elements, aten::diagonal_copy."""
    return Model(
        Function(lambda x: (x.roll((1, -1), (0, 1)), x.roll(5), x.diagonal(1) + 0.0)),
        (data.floats(3, 5),),
    )


@fixture
def upsample(data: Data) -> Model:
    """Nearest and bilinear upsampling, by sizes and by factors, corners aligned or not."""
    return Model(
        Function(
            lambda x: (
                F.interpolate(x, scale_factor=2),
                F.interpolate(x, (5, 3)),
                F.interpolate(x, scale_factor=1.5, mode="bilinear"),
                F.interpolate(x, (5, 7), mode="bilinear", align_corners=True),
            )
        ),
        (data.floats(1, 2, 3, 4),),
    )


@fixture
def antialias(data: Data) -> Model:
    """Antialiased resizing to less than a half, and to more."""
    return Model(
        Function(
            lambda x: tuple(
                F.interpolate(x, size, mode="bilinear", antialias=True, align_corners=align)
                for size, align in [((5, 4), False), ((24, 7), False), ((3, 20), True)]
            )
        ),
        (data.floats(1, 3, 16, 18),),
        edge=NOT_CORE,
    )


@fixture
def grid_sample(data: Data) -> Model:
    """aten::grid_sampler_2d with every interpolation and padding."""
    modes = [("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection")]
    return Model(
        Function(
            lambda image, grid: tuple(
                F.grid_sample(image, grid, mode, padding, align_corners=mode == "nearest")
                for mode, padding in modes
            )
        ),
        (data.floats(1, 2, 3, 4), data.floats(1, 2, 3, 2, low=-1.5, high=1.5)),
    )


@fixture
def distances(data: Data) -> Model:
    """aten::_cdist_forward and aten::_pdist_forward with several norms."""
    return Model(
        Function(
            lambda x, y: (
                torch.cdist(x, y),
                torch.cdist(x, y, p=1.0),
                torch.cdist(x, y, p=float("inf")),
                torch.pdist(x, p=3.0),
            )
        ),
        (data.floats(3, 4), data.floats(2, 4)),
    )


@fixture
def topk(data: Data) -> Model:
    """aten::topk of the greatest and the least."""
    return Model(
        Function(lambda x: (*x.topk(2), *x.topk(3, 0, largest=False))), (data.floats(3, 5),)
    )


@fixture
def sort(data: Data) -> Model:
    """aten::sort both ways, stable and not, and argsort, which ExecuTorch has no kernels for."""
    return Model(
        Function(
            lambda x, n: (
                *x.sort(1),
                *x.sort(0, descending=True),
                *n.sort(stable=True),
                x.argsort(descending=True),
            )
        ),
        (data.floats(3, 5), data.integers(2, 9)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def scatter_reduce(data: Data) -> Model:
    """aten::scatter_reduce of each kind, which ExecuTorch has no kernel for."""

    def reduce(x, index, source):
        kinds = ("sum", "prod", "mean", "amax", "amin")
        return tuple(
            x.scatter_reduce(0, index, source, kind, include_self=kind != "mean") for kind in kinds
        )

    return Model(
        Function(reduce),
        (data.floats(4, 3), data.integers(5, 3, low=0, high=4), data.floats(5, 3)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def searches(data: Data) -> Model:
    """aten::searchsorted and aten::isin, which ExecuTorch has no kernels for."""
    return Model(
        Function(
            lambda s, x, n: (
                torch.searchsorted(s, x),
                torch.searchsorted(s, x, right=True, out_int32=True),
                torch.isin(n, n[0]),
            )
        ),
        (data.floats(7).sort().values, data.floats(2, 5), data.integers(3, 4)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def counted(data: Data) -> Model:
    """aten::bucketize, aten::histc, aten::logcumsumexp and aten::round to decimals, which ExecuTorch
    has no kernels for."""
    return Model(
        Function(
            lambda s, x: (
                torch.bucketize(x, s),
                torch.histc(x, 5, -1, 1),
                torch.logcumsumexp(x, 1),
                x.round(decimals=2),
                (x * 100).round(decimals=-1),
            )
        ),
        (data.floats(7).sort().values, data.floats(2, 5)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def embedding_bag(data: Data) -> Model:
    """Sums, weighted ones too, means and maxima of rows, which ExecuTorch has no kernel for."""

    class Bags(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sums, self.means, self.maxima = (
                torch.nn.EmbeddingBag(9, 4, mode=mode, padding_idx=padding)
                for mode, padding in (("sum", None), ("mean", 2), ("max", None))
            )

        def forward(self, rows, starts, factors):
            return (
                self.sums(rows, starts, factors),
                self.means(rows, starts),
                self.maxima(rows, starts),
                self.sums(rows.reshape(2, 4)),
            )

    return Model(
        Bags(),
        (data.integers(8, low=0, high=9), torch.tensor([0, 3, 3, 5]), data.floats(8)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def unique(data: Data) -> Model:
    """Different numbers, how often each comes, and which each element is: aten::_unique2, which
    ExecuTorch has no kernel for."""
    return Model(
        Function(lambda x: torch.unique(x, return_inverse=True, return_counts=True)),
        (data.integers(4, 5, low=0, high=9),),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def unique_consecutive(data: Data) -> Model:
    """Numbers, and rows, that differ from those before: aten::unique_consecutive, which ExecuTorch
    has no kernel for."""

    def parts(x, rows):
        numbers = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
        return *numbers, torch.unique_consecutive(rows, dim=0)

    return Model(
        Function(parts),
        (data.integers(3, 8, low=0, high=2), data.integers(9, 2, low=0, high=2)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def bincount(data: Data) -> Model:
    """Count each of the numbers below 9, and add up weights: aten::bincount, which
    ExecuTorch has no kernel for. The exporter wants a bound."""

    def counts(x, weights):
        found = torch.bincount(x), torch.bincount(x, weights, 9)
        for one in found:
            torch._check(one.shape[0] <= 9)
        return found

    return Model(
        Function(counts),
        (data.integers(20, low=0, high=9), data.floats(20)),
        edge=NOT_CORE,
        executorch_fails=True,
    )


@fixture
def triangles(data: Data) -> Model:
    """aten::tril_indices and aten::triu_indices, which ExecuTorch has no kernels for."""

    def pairs(x):
        row, column = torch.tril_indices(4, 4, -1)
        upper = torch.triu_indices(4, 4)
        return x[row, column], x[upper[0], upper[1]]

    return Model(Function(pairs), (data.floats(4, 4),), edge=NOT_CORE, executorch_fails=True)
