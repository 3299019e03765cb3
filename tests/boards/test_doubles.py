"""Compare the arithmetic of doubles and floats in small native modules with this computer's."""

import ctypes
import operator
import subprocess
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).resolve().parents[2] / "port" / "natmod" / "doubles.c"
SIGN = 1 << 63
REALS = [0, 1, 2, 3, 0xFFFFFFFFFFFFF, 1 << 52, (1 << 52) + 1, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000,
         0x7FF8000000000000, 0x7FF0000000000001, *(np.array([1, 1.5, 2, 3, 1e-4, 1e38, 2.0**-126,
         2.0**-149, 2.0**-150, 2.0**-1022, 2.0**63, 2.0**64, 2.0**31, 1 + 2.0**-24, 1 + 3 * 2.0**-24,
         3.4028235677973366e38]).view(np.uint64).tolist())]
REALS += [bits | SIGN for bits in REALS]
PAIRS = {"dadd": operator.add, "dsub": operator.sub, "dmul": operator.mul, "ddiv": operator.truediv,
         "dcmpeq": operator.eq, "dcmplt": operator.lt, "dcmple": operator.le, "dcmpgt": operator.gt,
         "dcmpge": operator.ge}
N = 20_000


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("doubles") / "doubles.so"
    subprocess.run(["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC",
                    "-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan",
                    "-DPT_SMALL_DOUBLES", SOURCE, "-o", path], check=True)
    return ctypes.CDLL(path)


def function(library, name, given, result):
    found = getattr(library, f"__aeabi_{name}")
    found.argtypes, found.restype = given, result
    return found


def random_bits(rng, n, bits, exponent):
    """Draw the bits of numbers of all sizes. Every second one has an exponent close to that of the
    number before it, and many end in zeros or ones."""
    found = rng.integers(0, 1 << bits, n, np.uint64, endpoint=False)
    field = np.uint64((1 << (bits - 1)) - (1 << exponent))
    steps = rng.integers(0, 60, len(found[::2]), np.uint64)
    near = (found[::2] & field) + (steps << np.uint64(exponent))
    found[1::2] = (found[1::2] & ~field) | (near & field)[: len(found[1::2])]
    low = np.uint64((1 << (exponent - 3)) - 1)
    found[::5] &= ~low
    found[::7] |= low
    return found


def operands(rng, bits=64, exponent=52, listed=REALS):
    corners = np.array(listed, np.uint64)
    a, b = (grid.ravel() for grid in np.meshgrid(corners, corners))
    pairs = random_bits(rng, 2 * N, bits, exponent)
    return np.concatenate([a, pairs[::2]]), np.concatenate([b, pairs[1::2]])


def assert_same(found, wanted, given):
    """Compare the bits of numbers; all NaNs are equal."""
    differ = (found.view(np.uint64 if found.itemsize == 8 else np.uint32)
              != wanted.view(np.uint64 if found.itemsize == 8 else np.uint32))
    differ &= ~(np.isnan(found) & np.isnan(wanted))
    assert not differ.any(), [(hex(int(x[differ][0])), found[differ][0], wanted[differ][0])
                              for x in given]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PAIRS)
def test_doubles(library, name):
    a, b = operands(np.random.default_rng(1))
    wanted = PAIRS[name](a.view(np.float64), b.view(np.float64))
    compares = wanted.dtype == bool
    call = function(library, name, [ctypes.c_uint64] * 2, ctypes.c_int if compares else ctypes.c_uint64)
    found = [call(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    if compares:
        assert (np.array(found, bool) == wanted).all()
    else:
        assert_same(np.array(found, np.uint64).view(np.float64), wanted, (a, b))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PAIRS)
def test_floats(library, name):
    corners = np.array(REALS, np.uint64).view(np.float64).astype(np.float32).view(np.uint32)
    listed = [*corners.tolist(), 0x7FFFFF, 0x800000, 0x800001, 0x80000001]
    a, b = (x.astype(np.uint32) for x in operands(np.random.default_rng(2), 32, 23, listed))
    wanted = PAIRS[name](a.view(np.float32), b.view(np.float32))
    compares = wanted.dtype == bool
    call = function(library, "f" + name[1:], [ctypes.c_uint32] * 2,
                    ctypes.c_int if compares else ctypes.c_uint32)
    found = [call(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    if compares:
        assert (np.array(found, bool) == wanted).all()
    else:
        assert_same(np.array(found, np.uint32).view(np.float32), wanted, (a, b))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conversions(library):
    a, b = operands(np.random.default_rng(3))
    a = np.concatenate([a, b])
    reals = a.view(np.float64)
    to_single = function(library, "d2f", [ctypes.c_uint64], ctypes.c_uint32)
    singles = np.array([to_single(x) for x in a.tolist()], np.uint32)
    assert_same(singles.view(np.float32), reals.astype(np.float32), (a,))
    to_real = function(library, "f2d", [ctypes.c_uint32], ctypes.c_uint64)
    patterns = np.concatenate([singles, a.astype(np.uint32)])
    widened = np.array([to_real(x) for x in patterns.tolist()], np.uint64)
    assert_same(widened.view(np.float64), patterns.view(np.float32).astype(np.float64), (patterns,))
    for name, kind, limit in (("d2lz", ctypes.c_int64, 2.0**63), ("d2iz", ctypes.c_int32, 2.0**31)):
        to_int = function(library, name, [ctypes.c_uint64], kind)
        fits = np.abs(reals) < limit
        assert [to_int(x) for x in a[fits].tolist()] == [int(x) for x in reals[fits]]
        assert to_int(0x7FF0000000000000) == int(limit) - 1 and to_int(0x7FF8000000000000) == 0
        assert to_int(0xFFF0000000000000) == -int(limit)


@pytest.mark.parametrize("name, kind, dtype", [
    ("l2d", ctypes.c_int64, np.int64), ("ul2d", ctypes.c_uint64, np.uint64),
    ("i2d", ctypes.c_int32, np.int32), ("ui2d", ctypes.c_uint32, np.uint32),
    ("i2f", ctypes.c_int32, np.int32), ("ui2f", ctypes.c_uint32, np.uint32)])
def test_integers_as_numbers(library, name, kind, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    rng = np.random.default_rng(4)
    numbers = (rng.integers(0, 1 << bits, N, np.uint64, endpoint=False)
               >> rng.integers(0, bits, N, np.uint64)).astype(dtype)
    ends = [0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min]
    numbers = np.concatenate([numbers, np.array(ends, dtype)])
    is_double = name.endswith("d")
    call = function(library, name, [kind], ctypes.c_uint64 if is_double else ctypes.c_uint32)
    found = np.array([call(i) for i in numbers.tolist()], np.uint64 if is_double else np.uint32)
    kind = np.float64 if is_double else np.float32
    assert_same(found.view(kind), numbers.astype(kind), (numbers,))
