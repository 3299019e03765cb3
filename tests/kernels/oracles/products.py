"""Define oracles of matrix products, convolutions, distances, and operators on pictures."""

import numpy as np
from support.kernel_call import Tensor
from test_convolution import CHANNELS_LAST, backward_reference, reference
from test_distance import norm
from test_grid_sampler import sample
from test_matrix import DTYPES, random, wide
from test_pooling import avg_pool, count_windows, greatest, max_pool, windows
from test_upsample import antialiased, antialiased_bytes, bilinear, bilinear_cut, nearest

from .sample import Sample, oracle


def close(arguments, expected, dtype, order="contiguous"):
    """Return a sample with the tolerance of some roundings of a sum. Integers wrap around."""
    if np.dtype(dtype).kind != "f":
        return Sample(arguments, np.asarray(expected).astype(dtype), order=order)
    unit = 1e-6 if dtype == "float32" else 1e-14
    return Sample(arguments, np.asarray(expected).astype(dtype), 10 * unit, 8 * unit, order=order)


def factors(draw, *batch):
    m, k, n = (draw.int(0, 19) for _ in range(3))
    dtype = np.dtype(draw.pick(*DTYPES)).name
    return (random(draw.random, (*batch, m, k), dtype), random(draw.random, (*batch, k, n), dtype),
            dtype)


@oracle("aten::mm.out", "aten::bmm.out")
def products(draw, operator):
    a, b, dtype = factors(draw, *([draw.int(0, 3)] if "bmm" in operator else []))
    return close([draw.contiguous(a), draw.contiguous(b)], wide(a) @ wide(b), dtype)


@oracle("aten::addmm.out")
def addmm(draw, operator):
    a, b, dtype = factors(draw)
    added = random(draw.random, draw.narrowed((len(a), b.shape[1])), dtype)
    beta, alpha = draw.pick(1, 0, -3), draw.pick(1, 2)
    return close([draw.contiguous(x) for x in (added, a, b)] + [beta, alpha],
                 beta * wide(added) + alpha * (wide(a) @ wide(b)), dtype)


@oracle("aten::linear.out")
def linear(draw, operator):
    x, w, dtype = factors(draw, *[draw.int(0, 3) for _ in range(draw.int(0, 2))])
    w = random(draw.random, (w.shape[-1], x.shape[-1]), dtype)
    bias = random(draw.random, len(w), dtype) if draw.chance() else None
    expected = wide(x) @ wide(w).T + (0 if bias is None else wide(bias))
    return close([draw.contiguous(x), draw.contiguous(w), bias], expected, dtype)


@oracle("aten::dot.out")
def dot(draw, operator):
    n, dtype = draw.int(0, 20), np.dtype(draw.pick(*DTYPES)).name
    a, b = (random(draw.random, n, dtype) for _ in range(2))
    return close([a, b], wide(a) @ wide(b), dtype)


@oracle("aten::convolution.out")
def convolution(draw, operator, dims=None):
    dims, transposed, groups = dims or draw.int(1, 3), draw.chance(), draw.pick(1, 1, 2, 3)

    def each(low, high):
        return [draw.int(low, high) for _ in range(dims)]

    c_in, c_out = draw.int(1, 5), draw.int(1, 9)
    kernel, stride, dilation, padding = each(1, 4), each(1, 3), each(1, 3), each(0, 3)
    size = [draw.int(max(1, d * (k - 1) + 1 - 2 * p), 11 if dims < 3 else 10)
            for d, k, p in zip(dilation, kernel, padding, strict=True)]
    extra = [0] * dims
    if transposed:
        extra = [draw.int(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)]
        padding = [min(p, ((i - 1) * s + d * (k - 1)) // 2) for p, i, s, d, k in
                   zip(padding, size, stride, dilation, kernel, strict=True)]
    dtype = draw.pick("float32", "float32", "float32", "float64", "int8", "int32", "int64")
    x = random(draw.random, (draw.int(1, 2), c_in * groups, *size), dtype)
    shape = (c_in * groups, c_out) if transposed else (c_out * groups, c_in)
    w = random(draw.random, (*shape, *kernel), dtype)
    bias = random(draw.random, c_out * groups, dtype) if draw.chance() else None
    given = stride, padding, dilation, transposed, extra, groups
    expected = reference(x, w, bias, *given)
    orders = [draw.pick(None, CHANNELS_LAST[dims], draw.order(2 + dims)) for _ in range(2)]
    return close([draw.tensor(x, orders[0] or tuple(range(2 + dims))),
                  draw.tensor(w, orders[1] or tuple(range(2 + dims))), bias,
                  *given], expected, dtype, order="any")


@oracle("aten::convolution_backward.out")
def convolution_backward(draw, operator):
    forward = convolution(draw, "aten::convolution.out", draw.int(1, 2))
    x, w, _, stride, padding, dilation, transposed, extra, groups = forward.arguments
    dtype = draw.pick("float32", "float32", "float64")
    x, w = (Tensor(random(draw.random, each.array.shape, dtype), each.dim_order,
                   shift=8 * draw.int(0, 1)) for each in (x, w))
    grad = random(draw.random, forward.expected.shape, dtype)
    expected = backward_reference(grad, x.array, w.array, stride, padding, dilation, transposed, groups)
    near = {"float32": (1e-5, 1e-4), "float64": (1e-13, 1e-12)}[dtype]
    sizes = draw.pick(None, [grad.shape[1]])
    return Sample([draw.tensor(grad), x, w, sizes, stride, padding, dilation, transposed, extra, groups,
                   [True] * 3], [one.astype(dtype) for one in expected], *near)


@oracle("aten::_cdist_forward.out", "aten::_pdist_forward.out")
def distances(draw, operator):
    p, n = draw.pick(0.0, 0.5, 1.0, 2.0, 3.0, float("inf")), draw.int(0, 5)
    near = {"float32": {"rtol": 2e-6, "atol": 1e-7}, "float64": {"rtol": 4e-15, "atol": 1e-15}}
    rows, columns, dtype = draw.int(0, 6), draw.int(0, 6), draw.pick("float32", "float64")
    x = draw.small((rows, n), dtype) / np.array(4, dtype)
    if "pdist" in operator:
        first, second = np.triu_indices(rows, 1)
        expected = norm(x[first] - x[second], p)
        return Sample([x, p], np.asarray(expected, dtype), **near[dtype], order="contiguous")
    batch = [draw.int(1, 3) for _ in range(draw.int(0, 2))]
    x, y = (draw.small((*draw.narrowed(batch), m, n), dtype) / np.array(4, dtype)
            for m in (rows, columns))
    expected = norm(x[..., :, None, :] - y[..., None, :, :], p)
    return Sample([x, y, p, None], np.asarray(expected, dtype), **near[dtype], order="contiguous")


# ---- pictures


def ptm_order(draw, rank, dims=2):
    """Draw the contiguous or the channels last dim order."""
    channel = rank - dims - 1
    return draw.pick(tuple(range(rank)), (*range(channel), *range(channel + 1, rank), channel))


def image(draw, dtypes=("float32", "float64"), ranks=(3, 4), dims=2):
    rank = draw.pick(*ranks)
    shape = [draw.int(1, 3) for _ in range(rank - dims)] + [draw.int(1, 9 if dims == 2 else 6)
                                                            for _ in range(dims)]
    dtype = draw.pick(*dtypes)
    x = np.asarray(draw.random.normal(size=shape) * 9)
    x = (abs(x) * 9 if dtype == "uint8" else x).astype(dtype)
    return x, draw.tensor(x, ptm_order(draw, rank, dims))


def pooled(draw, operator, dtypes=("float32", "float64")):
    """Draw the spatial dims of a pooling, an input, and an order of its output."""
    dims = 3 if "pool3d" in operator else 2
    x, given = image(draw, dtypes, (dims + 1, dims + 2), dims)
    return dims, x, given, ptm_order(draw, x.ndim, dims)


def window(draw, x, dilated, dims=2):
    """Draw kernel, stride, padding, dilation and ceil mode, so that each window has a tap inside the
    input."""
    ceil, each = draw.chance(), []
    for size in x.shape[-dims:]:
        kernel, stride = draw.int(1, min(4, size)), draw.int(1, 4)
        padding = draw.int(0, kernel // 2)
        reach = (size + 2 * padding - 1) // max(kernel - 1, 1)
        each.append((kernel, stride, padding, draw.int(1, max(1, min(4, reach))) if dilated else 1))
    given = [list(values) for values in zip(*each, strict=True)]
    if any(not all(taps) for _, *taps in windows(x.shape, *given, ceil)):
        given[2:] = [0] * dims, [1] * dims
        ceil = False
    assert all(count_windows(*v, ceil) > 0 for v in zip(x.shape[-dims:], *given, strict=True))
    return given, ceil


@oracle("aten::avg_pool2d.out", "aten::avg_pool3d.out")
def average(draw, operator):
    dims, x, given, order = pooled(draw, operator)
    (kernel, stride, padding, _), ceil = window(draw, x, False, dims)
    count_pad, divisor = draw.chance(), draw.pick(None, 3, -5)
    expected = avg_pool(x, kernel, stride, padding, ceil, count_pad, divisor)
    return Sample([given, kernel, stride, padding, ceil, count_pad, divisor], expected, 1e-5, 1e-5,
                  order)


@oracle("aten::max_pool2d_with_indices.out", "aten::max_pool3d_with_indices.out")
def maximum(draw, operator):
    dims, x, given, order = pooled(draw, operator, ("float32", "float64", "int8", "uint8", "int64"))
    (kernel, stride, padding, dilation), ceil = window(draw, x, True, dims)
    expected = max_pool(x, kernel, stride, padding, dilation, ceil)
    return Sample([given, kernel, stride, padding, dilation, ceil], list(expected), order=order)


@oracle("aten::max_pool2d_with_indices_backward.grad_input")
def maximum_backward(draw, operator):
    x, given = image(draw)
    (kernel, stride, padding, dilation), ceil = window(draw, x, True)
    out, indices = max_pool(x, kernel, stride, padding, dilation, ceil)
    grad, expected = draw.small(out.shape, x.dtype), np.zeros_like(x)
    flat = expected.reshape(-1, x.shape[-2] * x.shape[-1])
    for plane, (places, values) in enumerate(zip(indices.reshape(len(flat), -1),
                                                 grad.reshape(len(flat), -1), strict=True)):
        np.add.at(flat[plane], places, values)
    order = ptm_order(draw, x.ndim)
    return Sample([draw.tensor(grad, order), given, kernel, stride, padding, dilation, ceil,
                   draw.tensor(indices, order)], expected)


@oracle(*(f"aten::{name}{dims}d.out" for name in ("_adaptive_avg_pool", "adaptive_max_pool")
          for dims in (2, 3)))
def adaptive(draw, operator):
    dims, x, given, order = pooled(draw, operator)
    size = [draw.int(1, 11 if dims == 2 else 7) for _ in range(dims)]
    expected = np.zeros((*x.shape[:-dims], *size), x.dtype)
    indices = np.zeros(expected.shape, np.int64)
    for at in np.ndindex(*size):
        taps = [range(i * n // s, -(-(i + 1) * n // s))
                for i, n, s in zip(at, x.shape[-dims:], size, strict=True)]
        if "max" in operator:
            expected[..., *at], indices[..., *at] = greatest(x, taps)
        else:
            expected[..., *at] = x[..., *np.ix_(*taps)].mean(tuple(range(-dims, 0)))
    if "max" in operator:
        return Sample([given, size], [expected, indices], order=order)
    return Sample([given, size], expected, 1e-5, 1e-5, order)


def resized(draw, x):
    """Draw sizes or factors in the format of the operator's arguments."""
    if draw.chance():
        return [draw.int(1, 12), draw.int(1, 12)], None
    return None, [draw.pick(2.0, 1.5, 3.7, 1.0, 1.15), draw.pick(2.0, 1.5, 3.7, 1.0)]


@oracle("aten::upsample_nearest2d.vec_out", "aten::upsample_bilinear2d.vec_out")
def upsample(draw, operator):
    near = "nearest" in operator
    x, given = image(draw, ("float32", "float64", "int8", "int16"), ranks=(4,))
    sizes, scales = resized(draw, x)
    order = ptm_order(draw, 4)
    if near:
        return Sample([given, sizes, scales], nearest(x, sizes, scales), order=order)
    align = draw.chance()
    if x.dtype.kind == "i":
        return Sample([given, sizes, align, scales], bilinear_cut(x, sizes, scales, align), order=order)
    expected = np.asarray(bilinear(x, sizes, scales, align), x.dtype)
    return Sample([given, sizes, align, scales], expected, 1e-5, 3e-5, order)


@oracle("aten::_upsample_bilinear2d_aa.out")
def antialias(draw, operator):
    x, given = image(draw, ("float32", "float64", "uint8"), ranks=(4,))
    sizes, align = [draw.int(1, 14), draw.int(1, 14)], draw.chance()
    factors = [None, None]
    if x.dtype == "uint8":
        return Sample([given, sizes, align, *factors], antialiased_bytes(x, sizes, align),
                      order=ptm_order(draw, 4))
    if draw.chance():
        factors = [draw.pick(2.0, 1.5, 0.7, 0.3, 1.0), draw.pick(2.0, 1.15, 0.5, None)]
        sizes = [max(1, int(n * (factor or 1))) for n, factor in
                 zip(x.shape[2:], factors, strict=True)]
    expected = antialiased(x, sizes, align, factors).astype(x.dtype)
    near = 4e-6 if x.dtype == "float32" else 1e-14
    return Sample([given, sizes, align, *factors], expected, near, 9 * near, ptm_order(draw, 4))


@oracle("aten::grid_sampler_2d.out")
def grid_sampler(draw, operator):
    x, given = image(draw, ranks=(4,))
    sizes = [draw.int(1, 3), draw.int(1, 3)]
    grid = (draw.random.integers(-250, 250, (len(x), *sizes, 2)) / 125).astype(x.dtype)
    mode, padding, align = draw.int(0, 2), draw.int(0, 2), draw.chance()
    expected = np.zeros((*x.shape[:2], *sizes), x.dtype)
    near = {"float32": (1e-4, 1e-3), "float64": (1e-11, 1e-11)}[x.dtype.name]
    for n, c, i, j in np.ndindex(*expected.shape):
        at = grid[n, i, j]
        expected[n, c, i, j] = sample(x[n, c].astype("float64"), at[1], at[0], mode, padding, align)
    return Sample([given, grid, mode, padding, align], expected, *near, ptm_order(draw, 4))
