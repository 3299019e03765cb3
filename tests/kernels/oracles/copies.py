"""Define oracles of operators that move elements: copies, views, parts, arrangements, and operators
that make tensors."""

import functools

import numpy as np
from support.kernel_call import Tensor
from support.pytorch_dtypes import DTYPES, category, promote

from .sample import Sample, oracle

# The dtypes include dtypes without arithmetic
MOVED = [*DTYPES, "float16", "uint16", "uint32", "uint64", "complex64", "complex128"]
FAR = (-2**63, 2**63 - 1, -2**31, 2**31)


def moved(draw, minimum=0, smallest=0, maximum=5, dtypes=MOVED):
    """Draw elements of any bits (bools are 0 or 1). A 0-d result is an array, too."""
    shape, dtype = draw.shape(minimum, maximum, smallest), np.dtype(draw.pick(*dtypes))
    if dtype.kind == "b":
        return draw.values(shape, dtype)
    data = draw.random.integers(0, 256, (*shape, dtype.itemsize)).astype("uint8")
    return np.asarray(data.view(dtype).reshape(shape))


def along(x, dim):
    return (slice(None),) * (dim % x.ndim)


@oracle("aten::clone.out", "aten::alias_copy.out", "aten::detach_copy.out",
        "aten::lift_fresh_copy.out", "et_copy::_d2h_copy.out", "et_copy::_h2d_copy.out")
def clone(draw, operator):
    x = moved(draw)
    return Sample([draw.tensor(x), *([None] if operator == "aten::clone.out" else [])], x)


@oracle("dim_order_ops::_clone_dim_order.out", "dim_order_ops::_to_dim_order_copy.out")
def to_dim_order(draw, operator):
    x = moved(draw)
    order = draw.order(x.ndim)
    return Sample([draw.tensor(x), False, list(order)], x, order=order)


def converted(x, to):
    """Convert x; floats only if the dtype can represent them."""
    return np.asarray(x != 0 if to == "bool" else x.astype(to))


@oracle("aten::_to_copy.out")
def to_copy(draw, operator):
    x = draw.small(draw.shape(), draw.pick(*DTYPES))
    to = draw.pick(*DTYPES)
    x = np.asarray(np.abs(x) if to == "uint8" else x)
    x = np.asarray(x * 0.75, x.dtype) if x.dtype.kind == "f" else x
    return Sample([draw.tensor(x), False, None], converted(x, to))


@oracle("aten::copy.out", "aten::copy_")
def copy(draw, operator):
    x = moved(draw, dtypes=DTYPES)
    src = draw.small(draw.narrowed(x.shape), draw.pick(*DTYPES))
    src = np.asarray(np.abs(src))
    expected = np.array(np.broadcast_to(converted(src, str(x.dtype)), x.shape))
    return Sample([draw.tensor(x), draw.tensor(src), False], expected, in_place=operator[-1] == "_")


@oracle("aten::expand_copy.out")
def expand(draw, operator):
    x = moved(draw, maximum=4)
    sizes = [draw.int(0, 4) if n == 1 else n for n in x.shape]
    new = [draw.int(0, 3) for _ in range(draw.int(0, 2))]
    expected = np.array(np.broadcast_to(x, [*new, *sizes]))
    kept = [-1 if n == m and draw.chance() else m for n, m in zip(x.shape, sizes, strict=True)]
    return Sample([draw.tensor(x), [*new, *kept], False], expected)


@oracle("aten::view_copy.out", "executorch_prim::et_view.default")
def view(draw, operator):
    x = moved(draw)
    sizes = draw.shuffled(x.shape)
    if len(sizes) > 1 and draw.chance():
        sizes = [int(np.prod(sizes[:2])), *sizes[2:]]
    expected = x.reshape(sizes)
    if sizes and x.size and draw.chance():
        sizes[draw.int(0, len(sizes) - 1)] = -1
    x = draw.contiguous(x)
    if "view_copy" in operator:
        return Sample([x, sizes], expected, order="contiguous")
    return Sample([x, sizes, Tensor(expected, alias=x, shift=x.shift)], expected, in_place=True)


@oracle("aten::unsqueeze_copy.out")
def unsqueeze(draw, operator):
    x = moved(draw)
    dim = draw.int(-x.ndim - 1, x.ndim)
    return Sample([draw.tensor(x), dim], np.expand_dims(x, dim))


@oracle("aten::squeeze_copy.dim_out", "aten::squeeze_copy.dims_out")
def squeeze(draw, operator):
    shape = [1 if draw.chance() else n for n in draw.shape(minimum=1)]
    x = draw.values(shape, draw.pick(*DTYPES))
    dims = [draw.dim(x.ndim)] if "dim_out" in operator else draw.some(range(x.ndim))
    expected = x.squeeze(tuple(d for d in dims if shape[d] == 1))
    return Sample([draw.tensor(x), dims[0] if "dim_out" in operator else dims], expected)


def slices(draw, x):
    """Draw dim, start, end and step, and return them with the part of x that they select."""
    dim, step = draw.dim(x.ndim), draw.pick(1, 1, 2, 3, 2**63 - 1)
    start, end = (draw.pick(None, draw.int(-8, 8), draw.pick(*FAR)) for _ in range(2))
    return [dim, start, end, step], (*along(x, dim), slice(start, end, step))


@oracle("aten::slice_copy.Tensor_out", "aten::slice_scatter.out")
def sliced(draw, operator):
    x = moved(draw, minimum=1)
    given, part = slices(draw, x)
    if "copy" in operator:
        return Sample([draw.tensor(x), *given], np.array(x[part]))
    expected, src = x.copy(), np.array(x[part])
    src = src[..., ::-1].copy()
    expected[part] = src
    return Sample([draw.tensor(x), draw.tensor(src), *given], expected)


@oracle("aten::narrow_copy.out")
def narrow(draw, operator):
    x = moved(draw, minimum=1)
    dim = draw.dim(x.ndim)
    length = draw.int(0, x.shape[dim])
    start = draw.int(0, x.shape[dim] - length)
    return Sample([draw.tensor(x), dim, start, length],
                  x[(*along(x, dim), slice(start, start + length))])


@oracle("aten::select_copy.int_out", "aten::select_scatter.out")
def select(draw, operator):
    x = moved(draw, minimum=1, smallest=1)
    dim = draw.dim(x.ndim)
    index = draw.int(-x.shape[dim], x.shape[dim] - 1)
    part = np.asarray(x.take(index, dim))
    if "copy" in operator:
        return Sample([draw.tensor(x), dim, index], part)
    expected, src = x.copy(), np.asarray(part[::-1] if part.ndim else part)
    expected[(*along(x, dim), index)] = src
    return Sample([draw.tensor(x), draw.tensor(src), dim, index], expected)


@oracle("aten::split_copy.Tensor_out", "aten::split_with_sizes_copy.out",
        "aten::unbind_copy.int_out")
def split(draw, operator):
    x = moved(draw, minimum=1, smallest=1)
    dim = draw.dim(x.ndim)
    n = x.shape[dim]
    if "unbind" in operator:
        return Sample([draw.tensor(x), dim], [[np.asarray(x.take(i, dim)) for i in range(n)]])
    if "with_sizes" in operator:
        cuts = sorted(draw.int(0, n) for _ in range(draw.int(0, 3)))
        parts = np.split(x, cuts, dim)
        given = [part.shape[dim] for part in parts]
    else:
        given = draw.int(1, n + 1)
        parts = np.split(x, range(given, n, given), dim)
    return Sample([draw.tensor(x), given, dim], [parts])


@oracle("aten::cat.out")
def cat(draw, operator):
    dtypes = draw.pick([draw.pick(*MOVED)], DTYPES)
    shape = list(draw.shape(minimum=1))
    dim, parts = draw.dim(len(shape)), []
    for _ in range(draw.int(1, 4)):
        shape[dim] = draw.int(0, 4)
        if len(dtypes) == 1:
            parts.append(np.ones(shape, dtypes[0]) * np.asarray(len(parts) + 1, dtypes[0]))
        else:
            parts.append(np.asarray(np.abs(draw.small(shape, draw.pick(*dtypes)))))
    dtype = widest(parts)
    expected = np.concatenate([converted(part, dtype) for part in parts], dim)
    parts.insert(draw.int(0, 1), np.zeros(0, parts[0].dtype))  # skipped, whatever the rank
    return Sample([[draw.tensor(part) for part in parts], dim], expected)


def widest(arrays):
    dtypes = {str(array.dtype) for array in arrays}
    return functools.reduce(promote, dtypes) if len(dtypes) > 1 else dtypes.pop()


@oracle("aten::stack.out")
def stack(draw, operator):
    first = moved(draw, dtypes=DTYPES)
    parts = [first, *(draw.values(first.shape, first.dtype) for _ in range(draw.int(0, 3)))]
    dim = draw.int(-first.ndim - 1, first.ndim)
    return Sample([[draw.tensor(part) for part in parts], dim], np.stack(parts, dim))


@oracle("aten::repeat.out")
def repeat(draw, operator):
    x = moved(draw, maximum=4)
    repeats = [draw.int(0, 3) for _ in range(x.ndim + draw.int(0, 2))]
    return Sample([draw.tensor(x), repeats], np.tile(x, repeats))


@oracle("aten::constant_pad_nd.out")
def constant_pad(draw, operator):
    x = moved(draw, dtypes=DTYPES)
    widths, pad = [(0, 0)] * x.ndim, []
    for d in reversed(range(draw.int(0, x.ndim), x.ndim)):
        before = draw.int(-x.shape[d], 3)
        widths[d] = before, draw.int(-x.shape[d] - min(before, 0), 3)
        pad += widths[d]
    cut = tuple(slice(max(-b, 0), n + min(e, 0)) for n, (b, e) in zip(x.shape, widths, strict=True))
    added = [(max(b, 0), max(e, 0)) for b, e in widths]
    expected = np.pad(x[cut], added, constant_values=1) if x.ndim else x
    return Sample([draw.tensor(x), pad, draw.pick(1, 1.0)], np.asarray(expected, x.dtype))


@oracle("aten::flip.out")
def flip(draw, operator):
    x = moved(draw)
    dims = draw.some(range(x.ndim))
    return Sample([draw.tensor(x), [d - x.ndim if draw.chance() else d for d in dims]],
                  np.flip(x, dims))


@oracle("aten::tril.out")
def tril(draw, operator):
    x = moved(draw, minimum=2, dtypes=DTYPES)
    diagonal = draw.pick(draw.int(-7, 7), draw.int(-7, 7), *FAR)
    return Sample([draw.tensor(x), diagonal], np.tril(x, max(min(diagonal, 99), -99)))


@oracle("aten::permute_copy.out", "aten::transpose_copy.int_out", "aten::t_copy.out")
def permute(draw, operator):
    if "t_copy" in operator:
        x = moved(draw, maximum=2)
        return Sample([draw.tensor(x)], x.T)
    x = moved(draw, minimum=1, maximum=6)
    if "transpose" in operator:
        a, b = draw.dim(x.ndim), draw.dim(x.ndim)
        return Sample([draw.tensor(x), a, b], np.swapaxes(x, a, b))
    dims = [d - x.ndim if draw.chance() else d for d in draw.shuffled(range(x.ndim))]
    return Sample([draw.tensor(x), dims], x.transpose(dims))


@oracle("aten::as_strided_copy.out")
def as_strided(draw, operator):
    x = moved(draw, smallest=1)
    sizes = [draw.int(0, 4) for _ in range(draw.int(0, 3))]
    strides, room = [], x.size - 1
    for n in sizes:
        strides.append(draw.int(0, room // max(n - 1, 1)))
        room -= strides[-1] * max(n - 1, 0)
    offset = draw.int(0, room)
    places = np.full(sizes, offset)
    for d, stride in enumerate(strides):
        places = places + (np.arange(sizes[d]) * stride).reshape([-1 if i == d else 1 for i in
                                                                  range(len(sizes))])
    given = offset if offset or draw.chance() else None
    return Sample([draw.contiguous(x), sizes, strides, given], np.asarray(x.ravel()[places]),
                  order="contiguous")


@oracle("aten::roll.out")
def roll(draw, operator):
    x = moved(draw)
    if x.ndim == 0 or draw.chance():
        shift = draw.pick(draw.int(-9, 9), 2**40)
        return Sample([draw.contiguous(x), [shift], []], np.roll(x, shift % max(x.size, 1)),
                      order="contiguous")
    dims = [draw.dim(x.ndim) for _ in range(draw.int(1, 3))]
    shifts = [draw.int(-9, 9) for _ in dims]
    return Sample([draw.tensor(x), shifts, dims], np.roll(x, shifts, dims))


@oracle("aten::diagonal_copy.out")
def diagonal(draw, operator):
    x = moved(draw, minimum=2)
    first, second = draw.shuffled(range(x.ndim))[:2]
    offset = draw.int(-6, 6)
    return Sample([draw.tensor(x), offset, first, second - x.ndim],
                  np.array(np.diagonal(x, offset, first, second)))


@oracle("aten::unfold_copy.out")
def unfold(draw, operator):
    x = moved(draw, minimum=1, smallest=1, maximum=4)
    dim, step = draw.dim(x.ndim), draw.int(1, 4)
    size = draw.int(0, x.shape[dim])
    starts = range(0, x.shape[dim] - size + 1, step)
    windows = [np.moveaxis(x.take(range(i, i + size), dim), dim, -1) for i in starts]
    return Sample([draw.tensor(x), dim, size, step], np.stack(windows, dim % x.ndim))


@oracle("aten::pixel_shuffle.out", "aten::pixel_unshuffle.out")
def pixels(draw, operator):
    outer, r = [draw.int(0, 2) for _ in range(draw.int(0, 2))], draw.int(1, 3)
    channels, height, width = (draw.int(1, 4) for _ in range(3))
    x, n = draw.values([*outer, channels, r, r, height, width], draw.pick(*DTYPES)), len(outer)
    many = x.reshape(*outer, channels * r * r, height, width)
    large = x.transpose([*range(n), n, n + 3, n + 1, n + 4, n + 2]).reshape(
        *outer, channels, height * r, width * r)
    x, expected = (large, many) if "unshuffle" in operator else (many, large)
    return Sample([draw.tensor(x), r], expected)


@oracle(*(f"aten::{kind}_pad{dims}d.out" for kind in ("reflection", "replication")
          for dims in (1, 2, 3)))
def pads_of_edges(draw, operator):
    dims, reflects = int(operator[-6]), "reflection" in operator
    shape = [draw.int(1, 4) for _ in range(dims + draw.int(1, 2))]
    x = draw.values(shape, draw.pick(*DTYPES))
    pads, cuts = [(0, 0)] * (x.ndim - dims), draw.chance()
    for n in shape[-dims:]:
        maximum = n - 1 if reflects else 3
        before = draw.int(1 - n - maximum if cuts else 0, maximum)
        pads.append((before, draw.int(1 - n - before if cuts else 0, maximum)))
    expected = np.pad(x, [(max(before, 0), max(after, 0)) for before, after in pads],
                      "reflect" if reflects else "edge")
    expected = expected[tuple(slice(max(-before, 0), size - max(-after, 0))
                              for size, (before, after) in zip(expected.shape, pads, strict=True))]
    return Sample([draw.tensor(x), [p for pair in pads[: -dims - 1 : -1] for p in pair]], expected)


# ---- made of numbers


@oracle("aten::full.out", "aten::full_like.out", "aten::fill.Scalar_out", "aten::fill.Tensor_out",
        "aten::zeros.out", "aten::ones.out", "aten::empty.out", "dim_order_ops::_empty_dim_order.out",
        "aten::scalar_tensor.out")
def filled(draw, operator):
    name = operator.partition("::")[2].split("_out")[0].removesuffix(".out")
    shape, dtype = () if name == "scalar_tensor" else draw.shape(), draw.pick(*DTYPES)
    value = draw.pick(0, 1, 100, 2.5, True)
    if name in ("zeros", "empty", "_empty_dim_order", "ones"):
        value = int(name == "ones")
        given = [list(shape), *([None] if "empty" in name else [])]
        order = "contiguous" if "empty" in name else "any"
        return Sample(given, np.full(shape, value, dtype), order=order)
    expected = np.asarray(np.full(shape, value).astype(dtype))
    x = draw.tensor(draw.values(shape, dtype))
    given = {"full": [list(shape), value], "full_like": [x, value, None], "fill.Scalar": [x, value],
             "fill.Tensor": [x, np.array(value)], "scalar_tensor": [value]}[name]
    return Sample(given, expected)


@oracle("aten::arange.out", "aten::arange.start_out")
def arange(draw, operator):
    dtype = draw.pick(*(d for d in DTYPES if d != "bool"))
    if "start" not in operator:
        end = draw.int(0, 9)
        end = float(end) if draw.chance() else end
        return Sample([end], np.arange(end).astype(dtype))
    start, step = draw.int(0, 9), draw.pick(1, 2, 3, -1, -2)
    end = start + step * draw.int(0, 6) + draw.pick(0, 0, step // abs(step))
    if category(dtype) < category("float32"):
        end = end if step > 0 else max(end, 0)
    elif draw.chance():
        start, end, step = start / 4, end / 4, step / 4
    return Sample([start, end, step], np.arange(start, end, step).astype(dtype))
