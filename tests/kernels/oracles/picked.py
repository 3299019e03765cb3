"""Define oracles of operators that read or write by indices and masks."""

import itertools

import numpy as np
from support.pytorch_dtypes import DTYPES

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
    index = indices(draw, len(weight), draw.shape(maximum=3))
    return Sample([draw.contiguous(weight), draw.contiguous(index), -1, False, False], weight[index],
                  order="contiguous")


def bag_of(rows, mode, dtype):
    """Return the sum, mean or maximum of rows, computed in the dtype; float16 is computed in
    float32."""
    dtype = np.float32 if dtype == np.float16 else dtype
    if mode == 2 and len(rows):
        return rows.max(0)
    total = np.zeros(rows.shape[1], dtype)
    for row in rows:
        total += row
    return total / dtype(len(rows)) if mode == 1 and len(rows) else total


@oracle("aten::_embedding_bag.out", "aten::_embedding_bag_forward_only.out")
def embedding_bag(draw, operator):
    """Draw bags of rows, some of them empty, and omit rows of padding. Only the first output is
    written."""
    dtype = np.dtype(draw.pick("float16", "float32", "float64")).type
    weight = draw.normal((draw.int(1, 9), draw.int(0, 5)), dtype)
    index = indices(draw, len(weight), (draw.int(0, 9),))
    ends = np.sort([draw.int(0, len(index)) for _ in range(draw.int(0, 4))]).astype(index.dtype)
    mode, padding, last = draw.int(0, 2), draw.pick(-1, draw.int(0, 9)), draw.chance()
    offsets = np.concatenate([[0], ends, [len(index)] if last else []])
    offsets = offsets.astype(draw.pick("int32", "int64"))
    wide = weight.astype(np.float32) if dtype == np.float16 else weight
    factors = draw.normal((len(index),), dtype) if mode == 0 and draw.chance() else None
    rows = wide[index] if factors is None else wide[index] * factors[:, None].astype(wide.dtype)
    kept, edges = index != padding, [0, *ends, len(index)]
    bags = [bag_of(rows[a:b][kept[a:b]], mode, dtype) for a, b in itertools.pairwise(edges)]
    fast = mode == 0 and padding < 0 and dtype != np.float64
    others = [(0 if fast else len(index),), offsets.shape if "only" in operator else (len(bags),),
              (len(bags), weight.shape[1]) if mode == 2 else (len(bags),)]
    expected = [np.array(bags, wide.dtype).reshape(len(bags), -1).astype(dtype),
                *(np.full(shape, 77, "int64") for shape in others)]
    return Sample([draw.contiguous(weight), draw.contiguous(index), offsets, draw.chance(), mode,
                   draw.chance(), factors, last, padding], expected, order="contiguous")


@oracle("aten::index_select.out")
def index_select(draw, operator):
    x = moved(draw, minimum=1, smallest=1)
    dim = draw.dim(x.ndim)
    index = indices(draw, x.shape[dim], (draw.int(0, 4),))
    return Sample([draw.tensor(x), dim, index], x.take(index, dim))


@oracle("aten::gather.out")
def gather(draw, operator):
    x = moved(draw, minimum=1, smallest=1)
    dim = draw.dim(x.ndim)
    shape = [draw.int(1, size) for size in x.shape]
    shape[dim] = draw.int(0, 4)
    index = indices(draw, x.shape[dim], shape)
    part = x[tuple(slice(None) if d == dim % x.ndim else slice(n) for d, n in enumerate(shape))]
    expected = np.take_along_axis(part, index.astype("int64"), dim)
    x, index = squeezed(draw, x), squeezed(draw, index)
    return Sample([draw.tensor(x), dim, draw.tensor(index), False], expected.reshape(index.shape),
                  order="contiguous")


def squeezed(draw, x):
    """Remove the dim from some arrays of one element in one dim."""
    return x.reshape(()) if x.shape == (1,) and draw.chance() else x


def scattered(draw):
    """Draw x, dim, and an index with no more places than x in any other dim."""
    x = draw.small(draw.shape(minimum=1, smallest=1, maximum=4), draw.pick(*ADDED))
    dim = draw.dim(x.ndim)
    shape = [draw.int(1, n) for n in x.shape]
    shape[dim] = draw.int(0, 5)
    return x, dim, indices(draw, x.shape[dim], shape)


@oracle("aten::scatter.src_out", "aten::scatter.value_out", "aten::scatter_add.out")
def scatter(draw, operator):
    """Keep the value of the last of equal indices in memory order."""
    x, dim, index = scattered(draw)
    expected, source = x.copy(), draw.small([n + draw.int(0, 1) for n in index.shape], x.dtype)
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = index[place]
        if "add" in operator:
            expected[tuple(to)] += source[place]
        else:
            expected[tuple(to)] = 3 if "value" in operator else source[place]
    x, index, source = squeezed(draw, x), squeezed(draw, index), squeezed(draw, source)
    expected = expected.reshape(x.shape)
    what = 3 if "value" in operator else draw.tensor(source)
    index = draw.contiguous(index) if "src_out" in operator else draw.tensor(index)
    return Sample([draw.tensor(x), dim, index, what], expected)


def reduced_into(x, dim, index, source, reduce, include_self):
    """Return x with elements of the source reduced into the places that the index names."""
    places = {}
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = index[place]
        places.setdefault(tuple(to), []).append(source[place])
    expected = x.copy()
    for to, values in places.items():
        values = np.array([*([x[to]] if include_self else []), *values])
        if reduce == "mean":
            mean = values.astype("float64").sum() / len(values)
            expected[to] = mean if x.dtype.kind == "f" else np.floor(mean)
        else:
            expected[to] = {"sum": np.add, "prod": np.multiply, "amax": np.maximum,
                            "amin": np.minimum}[reduce].reduce(values, dtype=x.dtype)
    return expected


@oracle("aten::scatter_reduce.two_out")
def scatter_reduce(draw, operator):
    x, dim, index = scattered(draw)
    source = draw.small([n + 1 for n in index.shape], x.dtype)
    reduce = draw.pick("sum", "prod", "mean", "amax", "amin")
    include_self = draw.chance()
    expected = reduced_into(x, dim, index, source, reduce, include_self)
    x, index, source = squeezed(draw, x), squeezed(draw, index), squeezed(draw, source)
    expected = expected.reshape(x.shape)
    return Sample([draw.tensor(x), dim, draw.tensor(index), draw.tensor(source), reduce,
                   include_self], expected, rtol=1e-6 if reduce == "mean" else 0)


@oracle("aten::isin.Tensor_Tensor_out")
def isin(draw, operator):
    x = draw.small(draw.shape(), draw.pick(*DTYPES))
    among = draw.small(draw.shape(), draw.pick(*DTYPES))
    inverts = draw.chance()
    return Sample([draw.tensor(x), draw.tensor(among), draw.chance(), inverts],
                  np.asarray(np.isin(x, among, invert=inverts)))


@oracle("aten::searchsorted.Tensor_out")
def searchsorted(draw, operator):
    """Draw one sequence for all, or one for each lane."""
    x = draw.small(draw.shape(minimum=1), draw.pick("float32", "float64", "int8", "int64"))
    shape = (draw.int(0, 7),) if draw.chance() else (*x.shape[:-1], draw.int(0, 7))
    sequence = np.sort(draw.small(shape, x.dtype))
    narrow, right = draw.chance(), draw.chance()
    side = draw.pick(None, "right") if right else draw.pick(None, "left")
    expected = np.zeros(x.shape, "int32" if narrow else "int64")
    for place in np.ndindex(*x.shape):
        own = sequence if sequence.ndim == 1 else sequence[place[:-1]]
        expected[place] = np.searchsorted(own, x[place], "right" if right else "left")
    return Sample([draw.tensor(sequence), draw.tensor(x), narrow, right, side, None], expected)


@oracle("aten::bucketize.Tensor_out")
def bucketize(draw, operator):
    x = draw.small(draw.shape(), draw.pick("float32", "float64", "int8", "int64"))
    boundaries = np.sort(draw.small((draw.int(0, 7),), x.dtype))
    narrow, right = draw.chance(), draw.chance()
    places = np.searchsorted(boundaries, x, "right" if right else "left")
    return Sample([draw.tensor(x), draw.tensor(boundaries), narrow, right],
                  np.asarray(places).astype("int32" if narrow else "int64"))


@oracle("aten::tril_indices.out", "aten::triu_indices.out")
def triangles(draw, operator):
    rows, columns, offset = draw.int(0, 7), draw.int(0, 7), draw.int(-9, 9)
    triangle = np.tri(rows, columns, offset - ("triu" in operator), dtype=bool)
    places = np.argwhere(~triangle if "triu" in operator else triangle).T
    return Sample([rows, columns, offset], places.reshape(2, -1).astype(draw.pick("int32", "int64")))


def picks_of(draw, shape):
    """Draw indices of some dims: integers that broadcast, a mask, or None. At least one is not None."""
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
    x = moved(draw, minimum=1, smallest=1, maximum=4)
    picks = picks_of(draw, x.shape)
    return Sample([draw.tensor(x), contiguous(draw, picks)], np.array(x[in_numpy(picks)]))


@oracle("aten::index_put.out", "aten::index_put_")
def index_put(draw, operator):
    """Put elements. Elements with the same index are equal, or they are added."""
    x = draw.small(draw.shape(minimum=1, smallest=1, maximum=4), draw.pick(*ADDED))
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


@oracle("aten::_unique2.out")
def unique(draw, operator):
    """Return sorted results in any case. Each NaN is unequal to all others."""
    x = draw.small(draw.shape(), draw.pick("bool", "uint8", "int64", "float16", "float32", "float64"))
    if x.dtype.kind == "f":
        x = np.where(x == 4, np.nan, x).astype(x.dtype)
    inverts, counts = draw.chance(), draw.chance()
    found, inverse, numbers = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    inverse = inverse.reshape(x.shape).astype("int64") if inverts else np.zeros(0, "int64")
    numbers = numbers.astype("int64") if counts else np.zeros(0, "int64")
    return Sample([draw.contiguous(x), draw.chance(), inverts, counts], [found, inverse, numbers],
                  order="contiguous")


@oracle("aten::unique_consecutive.out")
def unique_consecutive(draw, operator):
    """Compare slices along a dim, with an inverse and counts in any case. Each NaN is unequal to all
    others."""
    dtype = draw.pick("bool", "uint8", "int64", "float16", "float32", "float64")
    x = draw.small(draw.shape(minimum=1, smallest=1), dtype)
    x = (np.where(x == 4, np.nan, x // 2) if x.dtype.kind == "f" else x // 2).astype(dtype)
    dim = draw.pick(None, draw.dim(x.ndim))
    inverts, counts = draw.chance(), draw.chance()
    slices = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    differ = [True, *(slices[1:] != slices[:-1]).any(1)]
    found = x.ravel()[differ] if dim is None else x.compress(differ, dim)
    inverse = np.cumsum(differ) - 1
    numbers = np.bincount(inverse) if counts or dim is not None else np.zeros(0, "int64")
    if dim is None:
        inverse = inverse.reshape(x.shape) if inverts else np.zeros(0, "int64")
    return Sample([draw.contiguous(x), inverts, counts, dim], [found, inverse, numbers],
                  order="contiguous")


@oracle("aten::nonzero.out")
def nonzero(draw, operator):
    x = draw.small(draw.shape(), draw.pick("bool", *ADDED))
    expected = np.argwhere(x) if x.ndim else np.zeros((int(x != 0), 0), "int64")
    return Sample([draw.tensor(x)], expected)


@oracle("aten::nonzero_static.out")
def nonzero_static(draw, operator):
    x = draw.small(draw.shape(), draw.pick("bool", *ADDED))
    found = np.argwhere(x) if x.ndim else np.zeros((int(x != 0), 0), "int64")
    size, fill = draw.int(0, 9), draw.pick(-1, 0, 7)
    rest = np.full((max(size - len(found), 0), x.ndim), fill, "int64")
    return Sample([draw.tensor(x), size, fill], np.concatenate([found[:size], rest]))


@oracle("aten::repeat_interleave.Tensor_out")
def repeat_interleave(draw, operator):
    repeats = draw.random.integers(0, 4, draw.int(0, 5)).astype(draw.pick("int32", "int64"))
    expected = np.repeat(np.arange(len(repeats), dtype=repeats.dtype), repeats)
    return Sample([repeats, draw.pick(None, len(expected))], expected)
