"""Oracles of complex numbers: Fourier transforms, and from real tensors and back."""

import numpy as np

from .copies import moved
from .sample import Sample, oracle

PARTS = {"complex64": "float32", "complex128": "float64"}
ERRORS = {"complex64": 2e-6, "complex128": 1e-14}  # for each of the largest result
NORMS = ("backward", "ortho", "forward")  # by what numpy divides the transform: 0, 1 and 2


def normal(draw, shape, dtype):
    parts = [draw.normal(shape, PARTS[dtype]) for _ in range(2)]
    return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)


def lines(draw):
    """Sizes, mostly small, and some of the dims, in any order."""
    shape = list(draw.shape(least=1, most=4, smallest=1))
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
    x = moved(draw, most=4, dtypes=PARTS)
    return Sample([draw.tensor(x)], np.stack([x.real, x.imag], -1))


@oracle("aten::view_as_complex_copy.out")
def view_as_complex(draw, operator):
    parts = draw.pick(*PARTS)
    x = normal(draw, draw.shape(most=4), parts)
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
