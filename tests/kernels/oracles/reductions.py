"""Define oracles of reductions, and of operators along one dim: softmax, cumulated sums, sort."""

import numpy as np
from support.kernel_call import DTYPES as CODES
from support.pytorch_dtypes import DTYPES, INTEGRAL
from support.selected import topk_indices
from test_softmax import log_softmax, softmax

from .sample import Sample, oracle

FLOATING = ["float32", "float64"]


def reduced(draw, dtypes, smallest=0, odd=True):
    """Draw x, the dims of the argument, axes for numpy, and keepdim."""
    shape, dtype = draw.shape(smallest=smallest), draw.pick(*dtypes)
    x = draw.values(shape, dtype) if odd else draw.small(shape, dtype)
    axes = draw.some(range(len(shape)))
    dims = [axis - len(shape) if draw.chance() else axis for axis in axes] or draw.pick(None, [])
    return x, dims, tuple(axes) or tuple(range(len(shape))), draw.chance()


@oracle("aten::sum.IntList_out")
def sums(draw, operator):
    x, dims, axes, keep = reduced(draw, DTYPES, odd=False)
    to = draw.pick(None, "int64", "int32", "float32", "float64")
    dtype = to or (x.dtype if x.dtype.kind == "f" else "int64")
    expected = x.astype(dtype).sum(axis=axes, keepdims=keep, dtype=dtype)
    return Sample([draw.tensor(x), dims, keep, CODES.get(to)], np.asarray(expected))


@oracle("aten::mean.out", "aten::mean.dtype_out")
def mean(draw, operator):
    x, dims, axes, keep = reduced(draw, DTYPES, odd=False)
    dtype = str(x.dtype) if x.dtype.kind == "f" else draw.pick("float32", "float64")
    given = CODES[dtype] if x.dtype.kind != "f" else draw.pick(None, CODES[dtype])
    if "dtype_out" in operator:
        return Sample([draw.tensor(x), given], np.asarray(x.mean(dtype=dtype)), 1e-6)
    expected = np.asarray(x.astype(dtype).mean(axis=axes, keepdims=keep, dtype=dtype))
    return Sample([draw.tensor(x), dims, keep, given], expected, 1e-6)


@oracle("aten::prod.out", "aten::prod.int_out")
def products(draw, operator):
    x = draw.small(draw.shape(minimum=1), draw.pick(*DTYPES))
    to = draw.pick(None, None, "int64", "float32")
    dtype = to or (str(x.dtype) if x.dtype.kind == "f" else "int64")
    wide, code = x.astype(dtype), CODES.get(to)
    if "int_out" not in operator:
        return Sample([draw.tensor(x), code], np.asarray(wide.prod(dtype=dtype)), 1e-5)
    dim, keep = draw.dim(x.ndim), draw.chance()
    expected = np.asarray(wide.prod(axis=dim, keepdims=keep, dtype=dtype))
    return Sample([draw.tensor(x), dim, keep, code], expected, 1e-5)


def variances(x, axes, keep, correction):
    n = np.prod([x.shape[axis] for axis in axes], dtype=int)
    over = {"axis": axes, "keepdims": keep, "dtype": "float64"}
    square = x.var(**over) * n
    return np.asarray(square / max(n - correction, 0)).astype(x.dtype), x.mean(**over).astype(x.dtype)


@oracle("aten::var.out", "aten::var.correction_out", "aten::var_mean.correction_out")
def var(draw, operator):
    x, dims, axes, keep = reduced(draw, FLOATING, smallest=1, odd=False)
    if operator == "aten::var.out":
        unbiased = draw.chance()
        expected = variances(x, axes, keep, int(unbiased))[0]
        return Sample([draw.tensor(x), dims, unbiased, keep], expected, 1e-5, 1e-6)
    correction = draw.pick(None, 0, 1, 2, 0.5)
    expected, means = variances(x, axes, keep, 1 if correction is None else correction)
    if "mean" in operator:
        expected = [expected, np.asarray(means)]
    return Sample([draw.tensor(x), dims, correction, keep], expected, 1e-5, 1e-6)


@oracle("aten::any.all_out", "aten::any.out", "aten::any.dims_out")
def any_of(draw, operator):
    x, dims, axes, keep = reduced(draw, DTYPES)
    x = np.where(draw.random.random(x.shape) < 0.7, x.dtype.type(0), x)
    to = draw.pick("bool", "uint8")
    if "all" in operator:
        return Sample([draw.tensor(x)], np.asarray(x.any()).astype(to))
    if "dims" not in operator:
        dims = draw.dim(x.ndim)
        axes = dims if x.ndim else ()
    elif dims == []:
        axes = ()
    return Sample([draw.tensor(x), dims, keep], np.asarray(x.any(axis=axes, keepdims=keep)).astype(to))


@oracle("aten::amax.out", "aten::amin.out")
def extrema(draw, operator):
    x, dims, axes, keep = reduced(draw, DTYPES, smallest=1)
    function = np.max if "amax" in operator else np.min
    return Sample([draw.tensor(x), dims or [], keep], np.asarray(function(x, axis=axes, keepdims=keep)))


@oracle("aten::max.unary_out", "aten::min.unary_out")
def extremum(draw, operator):
    x = draw.values(draw.shape(smallest=1), draw.pick(*DTYPES))
    return Sample([draw.tensor(x)], np.asarray(np.max(x) if "max" in operator else np.min(x)))


@oracle("aten::max.dim_max", "aten::min.dim_min", "aten::argmax.out", "aten::argmin.out")
def places_of_extrema(draw, operator):
    """Find the first of equal elements. A NaN is both the largest and the smallest."""
    x = draw.values(draw.shape(minimum=1, smallest=1), draw.pick(*DTYPES))
    dim, keep, largest = draw.dim(x.ndim), draw.chance(), "max" in operator
    function, value = (np.argmax, np.max) if largest else (np.argmin, np.min)
    if "arg" in operator and draw.chance():
        return Sample([draw.tensor(x), None, False], np.asarray(function(x)).astype("int64"))
    places = np.asarray(function(x, axis=dim, keepdims=keep)).astype("int64")
    expected = [np.asarray(value(x, axis=dim, keepdims=keep)), places]
    return Sample([draw.tensor(x), dim, keep], places if "arg" in operator else expected)


@oracle("aten::_softmax.out", "aten::_log_softmax.out")
def softmaxes(draw, operator):
    x = draw.normal(draw.shape(minimum=1, smallest=1), draw.pick("float32", "float64"))
    x = np.asarray(x * x.dtype.type(5))
    dim = draw.dim(x.ndim)
    function = log_softmax if "log" in operator else softmax
    tolerances = (2e-14, 1e-15) if x.dtype == "float64" else (2e-6, 1e-6)
    return Sample([draw.tensor(x), dim, False], function(x, dim).astype(x.dtype), *tolerances)


@oracle("aten::cumsum.out", "aten::cumprod.out")
def cumulated(draw, operator):
    given = x = draw.small(draw.shape(minimum=1), draw.pick(*DTYPES))
    to = draw.pick(None, "float32") if str(x.dtype) in INTEGRAL else None
    dtype = to or (x.dtype if x.dtype.kind == "f" else "int64")
    dim = draw.dim(x.ndim)
    if dtype == "float32": # in float64, as in PyTorch
        x = x.astype("float64")
    function = np.cumprod if "prod" in operator else np.cumsum
    expected = function(x, dim, dtype="float64" if dtype == "float32" else dtype).astype(dtype)
    return Sample([draw.tensor(given), dim, CODES.get(to)], expected)


@oracle("aten::logcumsumexp.out")
def logcumsumexp(draw, operator):
    x = draw.normal(draw.shape(minimum=1), draw.pick("float16", "float32", "float64")) * 9
    x = np.where(x > 12, draw.pick(-np.inf, 3), x).astype(x.dtype)
    dim = draw.dim(x.ndim)
    with np.errstate(all="ignore"):
        expected = np.logaddexp.accumulate(x.astype("float64"), dim).astype(x.dtype)
    precision = {"float16": 1e-3, "float32": 2e-6, "float64": 1e-14}[str(x.dtype)]
    return Sample([draw.tensor(x), dim], expected, precision, precision)


@oracle("aten::histc.out")
def histc(draw, operator):
    """Draw numbers that float32 can represent, in bins whose ends it can represent, too."""
    x = draw.small(draw.shape(), draw.pick("float16", "float32", "float64")) / 2
    x = np.where(x == 2, np.nan, x).astype(x.dtype)
    low, bins = draw.pick(-1, -1.0, -9), draw.pick(1, 2, 4, 8)
    high = low + draw.pick(1, 2.0, 8)
    if x.size and draw.chance():
        x = np.nan_to_num(x, nan=1)
        low = high = draw.pick(0, 0.5)
        ends = (x.min(), x.max()) if x.min() < x.max() else (x.min() - 1, x.max() + 1)
    else:
        ends = low, high
    kept = x[(x >= ends[0]) & (x <= ends[1])].astype("float32")
    places = (kept - np.float32(ends[0])) * np.float32(bins) / np.float32(ends[1] - ends[0])
    counts = np.bincount(np.minimum(places.astype(int), bins - 1), minlength=bins)
    return Sample([draw.tensor(x), bins, low, high], counts.astype(x.dtype))


def ordered(draw, dtypes, smallest=0, longest=0):
    """Draw x with some NaN, a dim, and a function that returns the indices of the order along the dim.
    With `longest`, x may also have 2 rows of up to that many elements."""
    shape = draw.shape(minimum=1, smallest=smallest)
    if longest and draw.chance():
        shape = 2, draw.int(smallest, longest)
    x = draw.small(shape, draw.pick(*dtypes))
    if x.dtype.kind == "f":
        x = np.where(x == 4, np.nan, x).astype(x.dtype)
    dim = draw.dim(x.ndim)
    keys = np.nan_to_num(x, nan=9) if x.dtype.kind == "f" else x.astype("int64")
    return x, dim, lambda descending: np.argsort(-keys if descending else keys, dim, kind="stable")


@oracle("aten::topk.values")
def topk(draw, operator):
    """Select the same ones of equal elements as ExecuTorch. A NaN is above all."""
    x, dim, _ = ordered(draw, ["float32", "float64", "int8", "uint8", "int64"], longest=90)
    k, largest, is_sorted = draw.int(0, x.shape[dim]), draw.chance(), draw.chance()
    places = np.zeros([k if d == dim % x.ndim else n for d, n in enumerate(x.shape)], np.int64)
    if places.size:
        places, = along(lambda lane: [topk_indices(lane.tolist(), k, largest, is_sorted)], x, dim)
    expected = [np.take_along_axis(x, places, dim), places]
    return Sample([draw.tensor(x), k, dim, largest, is_sorted], expected)


@oracle("aten::sort.values", "aten::sort.values_stable")
def sort(draw, operator):
    x, dim, order = ordered(draw, DTYPES)
    descending = draw.chance()
    places = order(descending)
    stable = [draw.pick(None, False, True)] if "stable" in operator else []
    expected = [np.take_along_axis(x, places, dim), places]
    return Sample([draw.tensor(x), *stable, dim, descending], expected)


def along(function, x, dim):
    """Apply a function to each lane along the dim, and return an array for each of its results."""
    lanes = np.moveaxis(x, dim, -1)
    found = [function(lane) for lane in lanes.reshape(-1, lanes.shape[-1])]
    return [np.moveaxis(np.array(one).reshape(*lanes.shape[:-1], -1), -1, dim)
            for one in zip(*found, strict=True)]


@oracle("aten::mode.values")
def mode(draw, operator):
    """Find the first of the longest runs of equal elements, and the last index in this run. Up to 16
    elements are sorted by insertion: each is moved before larger ones, and a NaN never moves."""
    def last(lane):
        order = [] if len(lane) <= 16 else np.argsort(lane, kind="stable").tolist()
        for i in range(len(lane) - len(order)):
            to = i
            if order and lane[i] < lane[order[0]]:
                to = 0
            while to > 0 and lane[i] < lane[order[to - 1]]:
                to -= 1
            order.insert(to, i)
        run, maximum = 0, (0, None)
        for before, i in zip([order[0], *order], order, strict=False):
            run = run + 1 if lane[i] == lane[before] else 1
            maximum = max(maximum, (run, i), key=lambda one: one[0])
        return [maximum[1]],

    x, dim, _ = ordered(draw, DTYPES, smallest=1)
    keep, (places,) = draw.chance(), along(last, x, dim)
    expected = [np.take_along_axis(x, places, dim), places]
    if not keep:
        expected = [one.squeeze(dim) for one in expected]
    return Sample([draw.tensor(x), dim, keep], expected)


@oracle("aten::cummax.out", "aten::cummin.out")
def cumulated_extrema(draw, operator):
    """Find the last of equal elements. A NaN is above all and below all."""
    def places(lane):
        best, found = 0, []
        for i, one in enumerate(lane):
            further = one >= lane[best] if "max" in operator else one <= lane[best]
            best = i if one != one or further else best
            found.append(best)
        return found,

    x, dim, _ = ordered(draw, DTYPES, smallest=1)
    found, = along(places, x, dim)
    return Sample([draw.tensor(x), dim], [np.take_along_axis(x, found, dim), found])


@oracle("aten::bincount.out")
def bincount(draw, operator):
    """Add weights as float64, unless they are float32. numpy adds all weights as float64."""
    x = draw.random.integers(0, 9, draw.int(0, 12)).astype(draw.pick("uint8", "int8", "int32", "int64"))
    dtype, minimum = draw.pick(None, "bool", "int32", "float16", "float32", "float64"), draw.int(0, 12)
    weights = None if dtype is None else draw.small(x.shape, dtype)
    counts = np.bincount(x, weights, minimum)
    if weights is not None:
        counts = counts.astype("float32" if dtype == "float32" else "float64")
    return Sample([x, weights, minimum], counts)


@oracle("aten::kthvalue.values", "aten::median.dim_values")
def kth(draw, operator):
    """Select the lower of two medians, or the first NaN."""
    x, dim, order = ordered(draw, DTYPES, smallest=1)
    n, keep, median = x.shape[dim], draw.chance(), "median" in operator
    k = (n + 1) // 2 if median else draw.int(1, n)
    places = order(False).take([k - 1], dim)
    if median and x.dtype.kind == "f":
        odd = np.isnan(x)
        places = np.where(odd.any(dim, keepdims=True), odd.argmax(dim, keepdims=True), places)
    expected = [np.take_along_axis(x, places, dim), places]
    if not keep:
        expected = [one.squeeze(dim) for one in expected]
    return Sample([draw.tensor(x), *([] if median else [k]), dim, keep], expected)


@oracle("aten::median.out")
def median(draw, operator):
    x = draw.small(draw.shape(smallest=1), draw.pick(*DTYPES))
    if x.dtype.kind == "f" and draw.chance():
        x = np.where(x == 4, np.nan, x).astype(x.dtype)
    place = (x.size - 1) // 2
    odd = x.dtype.kind == "f" and np.isnan(x).any()
    expected = np.asarray(np.nan if odd else np.sort(x, axis=None)[place]).astype(x.dtype)
    return Sample([draw.tensor(x)], expected)
