"""Fourier transforms and complex numbers."""

import torch
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture


def _complex(data: Data, *sizes: int) -> torch.Tensor:
    return torch.complex(data.floats(*sizes), data.floats(*sizes))


@fixture
def stft(data: Data) -> Model:
    """A short-time Fourier transform of 2 signals, reflected at its ends: as complex numbers, as real
    ones."""
    window = torch.hann_window(80)

    def transform(x):
        spectrum = torch.stft(x, 80, 40, 80, window, return_complex=True)
        return spectrum, torch.view_as_real(spectrum)

    return Model(Function(transform), (data.floats(2, 400),), edge=NOT_CORE)


@fixture
def rfft(data: Data) -> Model:
    """Transforms of real numbers and back: of an even, an odd and a prime number of points, each norm,
    over two dims."""
    def transform(x, y):
        return (torch.fft.rfft(x), torch.fft.rfft(x[:, :45], norm="ortho"), torch.fft.rfft(x[0, :23]),
                torch.fft.rfft2(x, norm="forward"), torch.fft.irfft(y), torch.fft.irfft(y, n=11),
                torch.fft.irfft2(y, norm="ortho"))

    return Model(Function(transform), (data.floats(6, 48), _complex(data, 4, 9)), edge=NOT_CORE)


@fixture
def complex_numbers(data: Data) -> Model:
    """Parts, conjugates and moves of complex numbers."""
    def compute(x):
        conjugate = torch.conj_physical(x)
        return (x.real, torch.view_as_real(x).sum(-1), torch.cat([x, conjugate]),
                conjugate.permute(1, 0), x[:, 1:3], x.expand(2, 3, 4))

    return Model(Function(compute), (_complex(data, 3, 4),), edge=NOT_CORE)


@fixture
def fft2(data: Data) -> Model:
    """FNet's mixing of tokens: the real part of transforms over two dims. ExecuTorch has no kernel for
    it."""
    return Model(
        Function(lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real),
        (data.floats(2, 12, 20),),
        edge=NOT_CORE,
        executorch_crashes=True,
    )


@fixture
def made_complex(data: Data) -> Model:
    """Complex numbers of their parts, and of size and angle; ExecuTorch has no kernels for them."""
    def compute(x, y):
        return (torch.complex(x, y), torch.polar(x, y),
                torch.view_as_complex(torch.stack([x, y], -1)),
                torch.fft.ifft(torch.complex(x, y)))

    return Model(Function(compute), (data.floats(3, 5), data.floats(3, 5)), edge=NOT_CORE,
                 executorch_crashes=True)


@fixture
def spectral_filter(data: Data) -> Model:
    """A filter layer: the spectrum of a signal times complex weights, and back; and its size."""
    weights = _complex(data, 25)

    def transform(x):
        spectrum = torch.fft.rfft(x, norm="ortho") * weights
        return torch.fft.irfft(spectrum, norm="ortho"), spectrum.abs()

    return Model(Function(transform), (data.floats(6, 48),), edge=NOT_CORE)


@fixture
def complex_arithmetic(data: Data) -> Model:
    """Arithmetic of complex numbers, with real ones and with plain numbers; sums and products of
    matrices. ExecuTorch has no kernels for some of it."""
    def compute(x, y, z):
        return (torch.add(x, y, alpha=2), x - z, x * y, x * z, x / y, y / 2.5, 3 - x, -x, x == y,
                x != x.mean(0), x.sum(-1), x @ y.permute(1, 0),
                torch.bmm(x.expand(2, 3, 4), y.permute(1, 0).expand(2, 4, 3).clone()),
                z.to(torch.complex64) + x.to(torch.complex128))

    return Model(Function(compute), (_complex(data, 3, 4), _complex(data, 3, 4), data.floats(3, 4)),
                 edge=NOT_CORE, executorch_crashes=True)
