"""Define oracles of complex numbers: Fourier transforms, from real tensors and back, and arithmetic.

Exact results are computed here from the parts, in their type, by PyTorch's formulas: numpy's own
products of complex64 differ in the last bit if the processor has a fused multiply-add.
"""

import numpy as np
from support.kernel_call import DTYPES as CODES
from support.pytorch_dtypes import DTYPES, result_dtype

from . import copies, elementwise, products, reductions  # noqa: F401  # which enter theirs first
from .copies import moved
from .sample import ORACLES, Sample, oracle

PARTS = {"complex64": "float32", "complex128": "float64"}
ERRORS = {"complex64": 2e-6, "complex128": 1e-14}  # relative to the largest result
NORMS = ("backward", "ortho", "forward")  # numpy's divisors of the transform: 0, 1 and 2


def normal(draw, shape, dtype):
    parts = [draw.normal(shape, PARTS[dtype]) for _ in range(2)]
    return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)


def lines(draw):
    """Draw sizes, mostly small, and some of the dims, in any order."""
    shape = list(draw.shape(minimum=1, maximum=4, smallest=1))
    dims = (draw.some(range(len(shape))) or [draw.int(0, len(shape) - 1)])[:3]
    if draw.chance():
        shape[dims[-1]] = draw.int(1, 70)
    for dim in range(len(shape)):
        if dim not in dims and draw.int(0, 9) == 0:
            shape[dim] = 0
    return shape, dims


def transformed(draw, dtype, x, dims, others, expected, **options):
    given = [dim - x.ndim if draw.chance() else dim for dim in dims]
    largest = np.abs(expected).max(initial=0)
    return Sample([draw.tensor(x), given, *others], expected, atol=ERRORS[dtype] * largest + 1e-30,
                  **options)


@oracle("aten::_fft_c2c.out")
def c2c(draw, operator):
    (shape, dims), dtype = lines(draw), draw.pick(*PARTS)
    x = normal(draw, shape, dtype)
    norm, forward = draw.int(0, 2), draw.chance()
    wide = x.astype("complex128")
    name = NORMS[norm if forward else 2 - norm]
    expected = (np.fft.fftn if forward else np.fft.ifftn)(wide, axes=dims, norm=name).astype(dtype)
    return transformed(draw, dtype, x, dims, [norm, forward], expected)


@oracle("aten::_fft_r2c.out")
def r2c(draw, operator):
    (shape, dims), dtype = lines(draw), draw.pick(*PARTS)
    x = draw.normal(shape, PARTS[dtype])
    norm, onesided = draw.int(0, 2), draw.chance()
    of = np.fft.rfftn if onesided else np.fft.fftn
    expected = of(x.astype("float64"), axes=dims, norm=NORMS[norm]).astype(dtype)
    return transformed(draw, dtype, x, dims, [norm, onesided], expected)


@oracle("aten::_fft_c2r.out")
def c2r(draw, operator):
    (shape, dims), dtype = lines(draw), draw.pick(*PARTS)
    real = draw.normal(shape, PARTS[dtype])
    x = np.fft.rfftn(real.astype("float64"), axes=dims).astype(dtype)
    norm, n = draw.int(0, 2), shape[dims[-1]]
    expected = np.fft.irfftn(x.astype("complex128"), [shape[dim] for dim in dims], dims,
                             norm=NORMS[2 - norm]).astype(PARTS[dtype])
    return transformed(draw, dtype, x, dims, [norm, n], expected)


@oracle("aten::view_as_real_copy.out")
def view_as_real(draw, operator):
    x = moved(draw, maximum=4, dtypes=PARTS)
    return Sample([draw.tensor(x)], np.stack([x.real, x.imag], -1))


@oracle("aten::view_as_complex_copy.out")
def view_as_complex(draw, operator):
    parts = draw.pick(*PARTS)
    x = normal(draw, draw.shape(maximum=4), parts)
    return Sample([draw.tensor(np.stack([x.real, x.imag], -1))], x)


@oracle("aten::_conj_copy.out", "aten::_conj_physical.out")
def conjugate(draw, operator):
    x = moved(draw, dtypes=PARTS)
    return Sample([draw.tensor(x)], np.conj(x))


@oracle("aten::complex.out", "aten::polar.out")
def from_two(draw, operator):
    shape, dtype = draw.shape(), draw.pick(*PARTS)
    a = draw.normal(shape, PARTS[dtype])
    b = draw.normal(draw.narrowed(shape), PARTS[dtype])
    if "polar" in operator:
        expected = a * np.exp(1j * b.astype("float64"))
        return Sample([draw.tensor(a), draw.tensor(b)], expected.astype(dtype), atol=ERRORS[dtype])
    return Sample([draw.tensor(a), draw.tensor(b)], (a + 1j * b).astype(dtype))


# ---- arithmetic


def mixed(*operators):
    """Register a function for one in four calls of operators that also have an oracle of real
    tensors."""
    def enter(function):
        for name in operators:
            def either(draw, operator, real=ORACLES[name]):
                return (function if draw.int(0, 3) == 0 else real)(draw, operator)

            ORACLES[name] = either
        return function

    return enter


def joined(re, im):
    whole = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), np.result_type(re, 1j))
    whole.real, whole.imag = re, im
    return whole


def operand(draw, shape, *dtypes):
    dtype = draw.pick(*dtypes)
    if dtype not in PARTS:
        return draw.values(shape, dtype)
    return joined(*(draw.values(shape, PARTS[dtype]) for _ in range(2)))


def times(x, y):
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def quotient(x, y):
    """Divide by Smith's method."""
    wide = np.abs(y[0]) >= np.abs(y[1])
    maximum, minimum = np.where(wide, *y), np.where(wide, *y[::-1])
    ratio = minimum / maximum
    scale = 1 / (maximum + minimum * ratio)
    re = np.where(wide, x[0] + x[1] * ratio, x[0] * ratio + x[1]) * scale
    im = np.where(wide, x[1] - x[0] * ratio, x[1] * ratio - x[0]) * scale
    zero = (y[0] == 0) & (y[1] == 0)
    return np.where(zero, x[0] / np.abs(y[0]), re), np.where(zero, x[1] / np.abs(y[1]), im)


def computed(name, x, y, alpha=1):
    """Compute an operator of two arrays, one of which may be a number."""
    arrays = [one for one in (x, y) if isinstance(one, np.ndarray)]
    dtype = result_dtype(*(one.real for one in arrays)) if len(arrays) == 2 else arrays[0].real.dtype
    a, b = ([np.asarray(part).astype(dtype) for part in (np.real(one), np.imag(one))]
            for one in (x, y))
    if name in ("eq", "ne"):
        equal = (a[0] == b[0]) & (a[1] == b[1])
        return np.asarray(equal if name == "eq" else ~equal)
    if name in ("mul", "div"):
        return joined(*(times if name == "mul" else quotient)(a, b))
    scaled = times([np.array(alpha if name == "add" else -alpha, dtype), np.array(0, dtype)], b)
    return joined(a[0] + scaled[0], a[1] + scaled[1])


TWO = ("add.out", "sub.out", "mul.out", "div.out", "eq.Tensor_out", "ne.Tensor_out")


@mixed(*(f"aten::{name}" for name in TWO))
def of_two(draw, operator):
    name, shape = operator[6:].split(".")[0], draw.shape()
    x = operand(draw, draw.narrowed(shape), *PARTS)
    y = operand(draw, draw.narrowed(shape), *PARTS, *DTYPES)
    x, y = (x, y) if draw.chance() else (y, x)
    more = [draw.pick(1, 1, 3, 0.5, -2)] if name in ("add", "sub") else []
    return Sample([draw.tensor(x), draw.tensor(y), *more], computed(name, x, y, *more))


@mixed(*(f"aten::{name}.Scalar_out" for name in ("add", "sub", "rsub", "mul", "div", "eq", "ne")))
def of_number(draw, operator):
    name, x = operator[6:].split(".")[0], operand(draw, draw.shape(), *PARTS)
    number = draw.pick(2, -3, 0, 0.5, True)
    more = [draw.pick(1, 1, 3, 0.5, -2)] if name in ("add", "sub", "rsub") else []
    pair = (number, x) if name == "rsub" else (x, number)
    return Sample([draw.tensor(x), number, *more], computed(name[-3:], *pair, *more))


@mixed("aten::neg.out")
def negated(draw, operator):
    x = operand(draw, draw.shape(), *PARTS)
    return Sample([draw.tensor(x)], joined(-x.real, -x.imag))


@mixed("aten::abs.out")
def sizes(draw, operator):
    x = operand(draw, draw.shape(), *PARTS)
    tiny = np.finfo(x.real.dtype).smallest_subnormal
    return Sample([draw.tensor(x)], np.asarray(np.hypot(x.real, x.imag)),
                  4 * np.finfo(x.real.dtype).eps, 2 * tiny)


@mixed("aten::_to_copy.out", "dim_order_ops::_to_dim_order_copy.out")
def converted(draw, operator):
    x, to = operand(draw, draw.shape(), *PARTS, *DTYPES), draw.pick(*PARTS)
    if x.dtype.kind == "c" and draw.chance():
        to = draw.pick("int16", "float32", "float64")
        x = x if to != "int16" else joined(*(draw.small(x.shape, x.real.dtype) for _ in range(2)))
    expected = x.astype(to) if x.dtype.kind == "c" and to in PARTS else np.real(x).astype(to)
    if "dim_order" not in operator:
        return Sample([draw.tensor(x), False, None], expected)
    order = draw.order(x.ndim)
    return Sample([draw.tensor(x), False, list(order)], expected, order=order)


@mixed("aten::sum.IntList_out", "aten::mean.out")
def reduced(draw, operator):
    shape, to = draw.shape(), draw.pick(*PARTS)
    x = np.asarray(draw.small(shape, "float32") + 1j * draw.small(shape, "float32"))
    x = x.astype(draw.pick(*PARTS))
    dims, keep = draw.some(range(x.ndim)), draw.chance()
    of = np.mean if "mean" in operator else np.sum
    expected = np.asarray(of(x.astype(to), axis=tuple(dims) or None, keepdims=keep))
    given = draw.pick(None, CODES[to]) if x.dtype == to else CODES[to]
    return Sample([draw.tensor(x), dims, keep, given], expected.astype(to), 1e-6 * ("mean" in operator))


@mixed("aten::mm.out", "aten::bmm.out")
def matrices(draw, operator):
    dtype, (m, k, n) = draw.pick(*PARTS), (draw.int(0, 6) for _ in range(3))
    batch = [draw.int(0, 3)] if "bmm" in operator else []
    a, b = normal(draw, (*batch, m, k), dtype), normal(draw, (*batch, k, n), dtype)
    return Sample([draw.contiguous(a), draw.contiguous(b)], np.asarray(a @ b), atol=20 * ERRORS[dtype],
                  order="contiguous")
