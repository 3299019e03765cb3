"""Test Fourier transforms: error bounds, sizes, memory, and errors.

numpy.fft in float64 is the reference; tests/kernels/oracles/complexes.py makes random calls.
"""

import re

import numpy as np
import pytest
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Program,
)
from picotorch.host.tensors import as_tensor
from support.fixture_store import assert_close, load
from support.kernel_call import KernelError, Tensor, call
from support.targets import aligned

SMOOTH = sorted({2**i * 3**j * 5**k for i in range(13) for j in range(4) for k in range(4)
                 if 2**i * 3**j * 5**k <= 4096})
PRIMES = [7, 11, 13, 31, 127, 509, 1021]


def complex_noise(seed, *sizes):
    random = np.random.default_rng(seed)
    return (random.normal(size=sizes) + 1j * random.normal(size=sizes)).astype("complex64")


def error(given, wanted):
    return np.abs(given - wanted).max() / np.abs(wanted).max()


def c2c(x, dims=(-1,), norm=0, forward=True):
    return call("aten::_fft_c2c.out", x, list(dims), norm, forward, np.zeros_like(x))


def r2c(x, norm=0):
    out = np.zeros((*x.shape[:-1], x.shape[-1] // 2 + 1), np.result_type(x.dtype, 1j))
    return call("aten::_fft_r2c.out", x, [x.ndim - 1], norm, True, out)


def c2r(x, n, norm=2):
    out = np.zeros((*x.shape[:-1], n), x.real.dtype)
    return call("aten::_fft_c2r.out", x, [x.ndim - 1], norm, n, out)


@pytest.mark.parametrize(("sizes", "bound"), [(SMOOTH, 5e-7), (PRIMES, 2e-6)], ids=["smooth", "prime"])
def test_error_of_float32(sizes, bound):
    for n in sizes:
        x = complex_noise(n, 4, n)
        wide = x.astype("complex128")
        assert error(c2c(x), np.fft.fft(wide)) < bound, n
        assert error(c2c(x, norm=2, forward=False), np.fft.ifft(wide)) < bound, n
        assert error(r2c(x.real), np.fft.rfft(wide.real)) < bound, n
        half = np.fft.rfft(wide.real)
        assert error(c2r(half.astype("complex64"), n), wide.real) < bound, n


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 64, 96, 100, 1009])
def test_error_of_float64(n):
    x = complex_noise(n, 2, n).astype("complex128")
    assert error(c2c(x), np.fft.fft(x)) < 1e-14
    assert error(r2c(x.real), np.fft.rfft(x.real)) < 1e-14
    assert error(c2r(np.fft.rfft(x.real), n), x.real) < 1e-14


def test_one_point_is_itself():
    x = complex_noise(1, 3, 1)
    assert (c2c(x) == x).all()
    assert (r2c(x.real)[:, 0] == x.real[:, 0]).all()
    assert (c2r(x, 1) == x.real).all()


def test_imaginary_parts_that_a_real_signal_cannot_have_do_not_count():
    x = np.fft.rfft(np.arange(8.0)).astype("complex64")
    odd = x.copy()
    odd[[0, -1]] += 5j
    assert (c2r(odd, 8) == c2r(x, 8)).all()


def test_coefficients_beyond_those_needed_do_not_count():
    x = np.fft.rfft(np.arange(8.0)).astype("complex64")
    assert (c2r(np.append(x, np.complex64(9 + 9j)), 8) == c2r(x, 8)).all()


def test_other_dims_may_be_empty():
    x = np.zeros((0, 8), "complex64")
    assert c2c(x).shape == (0, 8)


def test_a_transform_may_be_in_place_but_for_its_first_pass():
    x = complex_noise(2, 4, 6)
    out = Tensor(np.zeros_like(x), (1, 0))
    given = call("aten::_fft_c2c.out", Tensor(x, (1, 0)), [0, 1], 0, True, out)
    assert error(given, np.fft.fft2(x)) < 1e-6


Z, REAL = complex_noise(3, 3, 8), complex_noise(3, 3, 8).real
DTYPES, POINTS = "no such transform of these dtypes", "a transform must have a point"
COEFFICIENTS = ("last_dim_size must be at least 1, and the input have last_dim_size / 2 + 1 "
                "coefficients")
SIZES = "the output's sizes differ from those computed from the inputs"


@pytest.mark.parametrize(("operator", "arguments", "name", "reason"), [
    ("_fft_c2c", (Z, [], 0, True, Z), "InvalidArgument", "a transform must have a dim"),
    ("_fft_c2c", (Z, [1, -1], 0, True, Z), "InvalidArgument", "a dim is named twice"),
    ("_fft_c2c", (Z, [2], 0, True, Z), "InvalidArgument", "dim is out of range"),
    ("_fft_c2c", (Z[0, 0], [0], 0, True, Z[0, 0]), "InvalidArgument", "a transform must have a dim"),
    ("_fft_c2c", (Z, [1], 3, True, Z), "InvalidArgument", "normalization must be 0, 1 or 2"),
    ("_fft_c2c", (Z, [1], -1, True, Z), "InvalidArgument", "normalization must be 0, 1 or 2"),
    ("_fft_c2c", (Z, [1], 0, True, Z[:, :7]), "InvalidArgument", SIZES),
    ("_fft_c2c", (Z[:, :0], [1], 0, True, Z[:, :0]), "InvalidArgument", POINTS),
    ("_fft_c2c", (REAL, [1], 0, True, Z), "NotSupported", DTYPES),
    ("_fft_c2c", (Z, [1], 0, True, Z.astype("complex128")), "NotSupported", DTYPES),
    ("_fft_r2c", (REAL, [1], 0, True, Z), "InvalidArgument", SIZES),
    ("_fft_r2c", (REAL, [1], 0, False, Z[:, :5]), "InvalidArgument", SIZES),
    ("_fft_r2c", (Z, [1], 0, True, Z[:, :5]), "NotSupported", DTYPES),
    ("_fft_r2c", (REAL.astype("float16"), [1], 0, True, Z[:, :5]), "NotSupported", DTYPES),
    ("_fft_c2r", (Z, [1], 0, 0, REAL[:, :0]), "InvalidArgument", COEFFICIENTS),
    ("_fft_c2r", (Z, [1], 0, 16, np.zeros((3, 16), "float32")), "InvalidArgument", COEFFICIENTS),
    ("_fft_c2r", (Z, [1], 0, 7, REAL), "InvalidArgument", SIZES),
    ("_fft_c2r", (Z, [1], 0, 8, REAL.astype("float64")), "NotSupported", DTYPES),
    ("_conj_physical", (REAL, REAL), "NotSupported", "the tensors must be of one complex dtype"),
    ("_conj_physical", (Z, Z.astype("complex128")), "NotSupported",
     "the tensors must be of one complex dtype"),
    ("view_as_real_copy", (REAL, np.zeros((3, 8, 2), "float32")), "InvalidArgument",
     "the dtypes must be a complex one and that of its parts"),
    ("view_as_real_copy", (Z, np.zeros((3, 8, 2))), "InvalidArgument",
     "the dtypes must be a complex one and that of its parts"),
    ("view_as_real_copy", (Z.reshape(*[1] * 15, 24), np.zeros((*[1] * 15, 24), "float32")),
     "NotSupported", "more than 16 dims"),
    ("view_as_complex_copy", (REAL, Z), "InvalidArgument", "the last dim must have size 2"),
    ("view_as_complex_copy", (REAL[0, 0], Z[0, 0]), "InvalidArgument", "the last dim must have size 2"),
    ("complex", (REAL, REAL[:, :7], Z), "InvalidArgument",
     "the sizes of the operands do not broadcast"),
    ("complex", (REAL, REAL.astype("float64"), Z), "InvalidArgument",
     "the dtypes must be a complex one and that of its parts"),
    ("polar", (REAL.astype("int32"), REAL, Z), "InvalidArgument",
     "the dtypes must be a complex one and that of its parts"),
])
def test_is_rejected(operator, arguments, name, reason):
    arguments = [np.asarray(a) if isinstance(a, np.generic) else a for a in arguments]
    with pytest.raises(KernelError) as error:
        call(f"aten::{operator}.out", *arguments)
    assert (error.value.name, error.value.stage, error.value.reason) == (name, "check", reason)


@pytest.mark.parametrize("name", ["rfft", "stft"])
def test_too_little_temp_memory_is_named(name):
    fixture = load(name)
    program = Program.load(BufferDataLoader(aligned(fixture.pte)))
    meta = program.method_meta("forward")
    planned = HierarchicalAllocator([aligned(meta.memory_planned_buffer_size(i))
                                     for i in range(meta.num_memory_planned_buffers())])

    def loaded(temp):
        manager = MemoryManager(MemoryAllocator(aligned(16384)), planned,
                                MemoryAllocator(aligned(temp), "temp memory"))
        return program.load_method("forward", manager)

    named = r"^MemoryAllocationFailed .*temp memory: (\d+)B requested, 8B available"
    with pytest.raises(Error, match=named) as error:
        loaded(8)
    needed = int(re.match(named, str(error.value))[1])
    with pytest.raises(Error, match="MemoryAllocationFailed"):
        loaded(needed - 1)
    method = loaded(needed)
    for _ in range(2):
        for i, value in enumerate(fixture.runs[0].inputs):
            method.set_input(as_tensor(value, meta.input_tensor_meta(i)), i)
        method.execute()
        assert_close(method.get_output(0).numpy(), fixture.runs[0].expected[0], "complex64")
