"""Oracles of what reads or writes where indices and masks point."""

import numpy as np

from .copies import moved
from .sample import Sample, oracle

ADDED = ("float32", "float64", "int8", "int16", "int32", "int64")


def indices(draw, size, shape, negative=False):
    low = -size if negative else 0
    dtype = draw.pick("int64", "int32")
    return np.asarray(draw.random.integers(low, max(size, 1), tuple(shape))).astype(dtype)


@oracle("aten::embedding.out")
def embedding(draw, operator):
    weight = draw.values((draw.int(1, 9), draw.int(0, 5)), draw.pick(*ADDED))
    index = indices(draw, len(weight), draw.shape(most=3))
    return Sample([draw.contiguous(weight), draw.contiguous(index), -1, False, False], weight[index],
                  order="contiguous")


@oracle("aten::index_select.out")
def index_select(draw, operator):
    x = moved(draw, least=1, smallest=1)
    dim = draw.dim(x.ndim)
    index = indices(draw, x.shape[dim], (draw.int(0, 4),))
    return Sample([draw.tensor(x), dim, index], x.take(index, dim))


@oracle("aten::gather.out")
def gather(draw, operator):
    x = moved(draw, least=1, smallest=1)
    dim = draw.dim(x.ndim)
    shape = [draw.int(1, size) for size in x.shape]
    shape[dim] = draw.int(0, 4)
    index = indices(draw, x.shape[dim], shape)
    part = x[tuple(slice(None) if d == dim % x.ndim else slice(n) for d, n in enumerate(shape))]
    expected = np.take_along_axis(part, index.astype("int64"), dim)
    return Sample([draw.tensor(x), dim, draw.tensor(index), False], expected, order="contiguous")


def scattered(draw):
    """x, dim, and an index with no more places than x in any other dim."""
    x = draw.small(draw.shape(least=1, smallest=1, most=4), draw.pick(*ADDED))
    dim = draw.dim(x.ndim)
    shape = [draw.int(1, n) for n in x.shape]
    shape[dim] = draw.int(0, 5)
    return x, dim, indices(draw, x.shape[dim], shape)


@oracle("aten::scatter.src_out", "aten::scatter.value_out", "aten::scatter_add.out")
def scatter(draw, operator):
    """The last of equal indices in memory stays."""
    x, dim, index = scattered(draw)
    expected, source = x.copy(), draw.small([n + 1 for n in index.shape], x.dtype)
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = index[place]
        if "add" in operator:
            expected[tuple(to)] += source[place]
        else:
            expected[tuple(to)] = 3 if "value" in operator else source[place]
    what = 3 if "value" in operator else draw.tensor(source)
    index = draw.contiguous(index) if "src_out" in operator else draw.tensor(index)
    return Sample([draw.tensor(x), dim, index, what], expected)


def picks_of(draw, shape):
    """Indices of some dims: integers that broadcast, a mask, None; one at least is not None."""
    picks, dim, masks = [], 0, draw.chance()
    common = [draw.int(1, 3) for _ in range(draw.int(0, 2))]
    before = draw.int(0, len(shape) - 1)
    for _ in range(before):
        picks.append(None)
        dim += 1
    if masks:
        dims = draw.int(1, len(shape) - dim)
        return [*picks, draw.values(shape[dim : dim + dims], "bool")]
    while dim < len(shape) and (len(picks) == before or draw.chance()):
        own = draw.narrowed(common)
        skips = len(picks) > before and draw.int(0, 3) == 0
        picks.append(None if skips else indices(draw, shape[dim], own, negative=True))
        dim += 1
    return picks


def in_numpy(picks):
    return tuple(slice(None) if pick is None else pick for pick in picks)


def contiguous(draw, picks):
    return [None if pick is None else draw.contiguous(pick) for pick in picks]


@oracle("aten::index.Tensor_out")
def index(draw, operator):
    x = moved(draw, least=1, smallest=1, most=4)
    picks = picks_of(draw, x.shape)
    return Sample([draw.tensor(x), contiguous(draw, picks)], np.array(x[in_numpy(picks)]))


@oracle("aten::index_put.out", "aten::index_put_")
def index_put(draw, operator):
    """Where several are put at one place, all are the same, or they are added."""
    x = draw.small(draw.shape(least=1, smallest=1, most=4), draw.pick(*ADDED))
    picks, adds = picks_of(draw, x.shape), draw.chance()
    own, expected = draw.narrowed(np.shape(x[in_numpy(picks)])), x.copy()
    given = draw.small(own, x.dtype) if adds else np.full(own, 55, x.dtype)
    if adds:
        np.add.at(expected, in_numpy(picks), given)
    else:
        expected[in_numpy(picks)] = given
    return Sample([draw.tensor(x), contiguous(draw, picks), draw.tensor(given), adds], expected,
                  in_place=operator[-1] == "_")


def masked(draw):
    shape = draw.shape(smallest=1)
    return (draw.values(draw.narrowed(shape), draw.pick(*ADDED)),
            draw.values(draw.narrowed(shape), "bool"))


@oracle("aten::masked_select.out")
def masked_select(draw, operator):
    x, mask = masked(draw)
    whole, spread = np.broadcast_arrays(x, mask)
    return Sample([draw.tensor(x), draw.tensor(mask)], np.array(whole[spread]))


@oracle("aten::masked_scatter.out")
def masked_scatter(draw, operator):
    x, mask = masked(draw)
    whole, spread = np.broadcast_arrays(x, mask)
    source, expected = draw.values((int(spread.sum()) + 1,), x.dtype), whole.copy()
    expected[spread] = source[:-1]
    return Sample([draw.tensor(x), draw.tensor(mask), source], expected)


@oracle("aten::nonzero.out")
def nonzero(draw, operator):
    x = draw.small(draw.shape(), draw.pick("bool", *ADDED))
    expected = np.argwhere(x) if x.ndim else np.zeros((int(x != 0), 0), "int64")
    return Sample([draw.tensor(x)], expected)


@oracle("aten::repeat_interleave.Tensor_out")
def repeat_interleave(draw, operator):
    repeats = draw.random.integers(0, 4, draw.int(0, 5)).astype(draw.pick("int32", "int64"))
    expected = np.repeat(np.arange(len(repeats), dtype=repeats.dtype), repeats)
    return Sample([repeats, draw.pick(None, len(expected))], expected)
