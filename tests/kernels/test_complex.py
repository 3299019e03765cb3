"""Test the arithmetic of complex tensors: infinities and NaN, ranges, dtypes, boards, and errors.

tests/kernels/oracles/complexes.py makes random calls.
"""

import numpy as np
import pytest
from picotorch.host.operators import FEATURES, feature_kernels, needed_features, supported_operators
from picotorch.host.twin import open_program
from support.board_call import BOARDS, Case, assert_same
from support.fixture_store import load
from support.kernel_call import KernelError, Tensor, call
from support.programs import call as instruction
from support.programs import plan, program, tensor

INF, NAN = np.inf, np.nan
COMPLEX_HALF, COMPLEX_DOUBLE = 8, 10


def numbers(*parts, dtype="float32"):
    """Return an array of complex numbers from pairs of parts."""
    return np.array(parts, dtype).view(np.result_type(dtype, 1j))[:, 0]


def noise(seed, *sizes, dtype="complex64"):
    random = np.random.default_rng(seed)
    return (random.normal(size=sizes) + 1j * random.normal(size=sizes)).astype(dtype)


def out(*sizes, dtype="complex64"):
    return np.zeros(sizes, dtype)


ODD = numbers((INF, 1), (1, INF), (NAN, 1), (0, -0.0), (-0.0, -0.0))


@pytest.mark.parametrize("value", [0, 0.0, False])
def test_padding_with_zeros(value):
    """A Fourier transform pads its input in this way."""
    x = noise(4, 2, 3)
    padded = call("aten::constant_pad_nd.out", x, [-1, 2, 0, 1], value, out(3, 4) + (7 + 7j))
    np.testing.assert_array_equal(padded, np.pad(x[:, 1:], ((0, 1), (0, 2))))
    with pytest.raises(KernelError, match="complex ones only with 0"):
        call("aten::constant_pad_nd.out", x, [0, 1], 1, out(2, 4))


@pytest.mark.parametrize(("operator", "arguments", "expected"), [
    ("add.out", (ODD, ODD, 2), [(INF, NAN), (NAN, INF), (NAN, NAN), (0, 0), (0, -0.0)]),
    ("sub.out", (ODD, ODD, 2), [(NAN, NAN), (NAN, NAN), (NAN, NAN), (0, 0), (0, 0)]),
    ("add.Scalar_out", (ODD, 1, 1), [(INF, 1), (2, INF), (NAN, 1), (1, 0), (1, 0)]),
    ("rsub.Scalar_out", (ODD, 1, 1), [(-INF, NAN), (NAN, -INF), (NAN, NAN), (1, 0), (1, 0)]),
    ("mul.Scalar_out", (ODD, 2), [(INF, NAN), (NAN, INF), (NAN, NAN), (0, 0), (0, -0.0)]),
    ("div.Scalar_out", (ODD, 2), [(INF, NAN), (NAN, INF), (NAN, NAN), (0, -0.0), (-0.0, 0)]),
    ("div.Scalar_out", (numbers((0, 0), (1, 0), (0, 1)), 0), [(NAN, NAN), (INF, NAN), (NAN, INF)]),
    ("div.out", (numbers((2**126, 2**126), (2**-126, 2**-126), (INF, INF)),
                 numbers((2**126, 2**126), (2**-126, 2**-126), (1, 1))), [(1, 0), (1, 0), (INF, NAN)]),
    ("neg.out", (ODD,), [(-INF, -1), (-1, -INF), (NAN, -1), (-0.0, 0), (0, 0)]),
])
def test_odd_numbers_are_pytorchs(operator, arguments, expected):
    """PyTorch 2.13 computed the expected numbers."""
    given = call(f"aten::{operator}", *arguments, out(len(expected))).view("float32")
    wanted = np.array(expected, "float32").ravel()
    np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize(("dtype", "large", "tiny"),
                         [("float32", 1e38, 1e-44), ("float64", 1e308, 5e-324)])
def test_a_size_neither_overflows_nor_vanishes(dtype, large, tiny):
    parts = [(large, large), (tiny, 0), (0, tiny), (3, -4), (large, tiny), (0, 0), (0.75e-30, 1e-30)]
    x = numbers(*parts, dtype=dtype)
    given = call("aten::abs.out", x, out(len(parts), dtype=dtype))
    np.testing.assert_allclose(given, np.hypot(x.real, x.imag), 2 * np.finfo(dtype).eps)
    odd = numbers((INF, NAN), (NAN, -INF), (NAN, 1), (1, NAN), (3 * large, 3 * large), dtype=dtype)
    given = call("aten::abs.out", odd, out(5, dtype=dtype))
    np.testing.assert_array_equal(given, [INF, INF, NAN, NAN, INF])


def halves(x):
    """Return complex32 with the values of an array."""
    bits = np.stack([x.real, x.imag], -1).astype("float16").view("uint32")[..., 0]
    return Tensor(bits, dtype=COMPLEX_HALF)


def of_halves(bits):
    parts = bits[..., None].view("float16").astype("float32")
    return parts[..., 0] + 1j * parts[..., 1]


@pytest.mark.parametrize(("operator", "more", "function"), [
    ("mul.out", (), lambda x, y: x * y), ("add.out", (1,), lambda x, y: x + y),
    ("bmm.out", (), lambda x, y: x @ y)])
def test_complex32_is_rounded_once(operator, more, function):
    x, y = (of_halves(halves(noise(seed, 2, 3, 3)).array) for seed in (1, 2))
    given = of_halves(call(f"aten::{operator}", halves(x), halves(y), *more, halves(out(2, 3, 3))))
    np.testing.assert_allclose(given, function(x, y), 1e-3, 1e-3)


def test_sizes_and_sums_of_complex32():
    x = of_halves(halves(noise(3, 4, 5)).array)
    sizes = call("aten::abs.out", halves(x), out(4, 5, dtype="float16"))
    np.testing.assert_array_equal(sizes, np.abs(x).astype("float16"))
    total = call("aten::sum.IntList_out", halves(x), [0], False, None, halves(out(5)))
    np.testing.assert_allclose(of_halves(total), x.sum(0), 2e-3)


def test_a_long_inner_dim_is_summed_in_pieces():
    a, b = noise(4, 1, 10_000), noise(5, 10_000, 2)
    np.testing.assert_allclose(call("aten::mm.out", a, b, out(1, 2)), a @ b, 1e-3)


Z, REAL = noise(6, 3, 4), noise(6, 3, 4).real
DTYPE = "the operator does not support this dtype"
CAST = "the result cannot be cast to the output's dtype"
SIZES = "the output's sizes differ from those computed from the inputs"


@pytest.mark.parametrize(("operator", "arguments", "name", "reason"), [
    ("add.out", (Z, REAL, 1, REAL), "InvalidArgument", CAST),
    ("add.out", (REAL, REAL, 1, Z), "NotSupported", DTYPE),
    ("mul.out", (Z, Z[:2], Z), "InvalidArgument", "the sizes of the operands do not broadcast"),
    ("mul.out", (Z, Z, Z[:2]), "InvalidArgument", SIZES),
    ("div.out", (Z, Tensor(REAL.view("uint32"), dtype=28), Z), "NotSupported", DTYPE),
    ("eq.Tensor_out", (Z, Z, Z), "NotSupported", DTYPE),
    ("neg.out", (Z, REAL), "InvalidArgument", CAST),
    ("neg.out", (REAL, Z), "NotSupported", DTYPE),
    ("abs.out", (Z, Z), "InvalidArgument", CAST),
    ("abs.out", (Z, REAL.astype("int32")), "InvalidArgument", CAST),
    ("_to_copy.out", (Z, False, None, REAL.astype("bool")), "InvalidArgument", CAST),
    ("sum.IntList_out", (Z, [0], False, None, out(4, dtype="float32")), "NotSupported", DTYPE),
    ("sum.IntList_out", (REAL, [0], False, None, out(4)), "NotSupported", DTYPE),
    ("sum.IntList_out", (Z, [0], False, 10, out(4)), "InvalidArgument",
     "the output must have the given dtype"),
    ("sum.IntList_out", (Z, [2], False, None, out(4)), "InvalidArgument", "dim is out of range"),
    ("sum.IntList_out", (Z, [0], True, None, out(4)), "InvalidArgument", SIZES),
    ("mean.out", (Z.reshape(*[1] * 14, 3, 4), [0], True, None, Z.reshape(*[1] * 14, 3, 4)),
     "NotSupported", "more than 15 dims"),
    ("mm.out", (Z, REAL.T.copy(), out(3, 3)), "InvalidArgument", "a matrix product needs one dtype"),
    ("mm.out", (Z, Tensor(Z.T.copy(), (1, 0)), out(3, 3)), "NotSupported",
     "a matrix product needs contiguous tensors"),
    ("mm.out", (Z, Z, out(3, 4)), "InvalidArgument", "the operands' sizes do not fit together"),
    ("mm.out", (Z[0], Z, out(4)), "InvalidArgument", "the operands have the wrong rank"),
    ("bmm.out", (out(2, 3, 4), out(3, 4, 3), out(2, 3, 3)), "InvalidArgument",
     "the operands' sizes do not fit together"),
])
def test_is_rejected(operator, arguments, name, reason):
    with pytest.raises(KernelError) as error:
        call(f"aten::{operator}", *arguments)
    assert (error.value.name, error.value.stage, error.value.reason) == (name, "check", reason)


def test_the_dim_order_of_a_conversion_must_be_the_outputs():
    with pytest.raises(KernelError, match="the output must have the given dim order"):
        call("dim_order_ops::_to_dim_order_copy.out", REAL, False, [1, 0], out(3, 4))


def board_cases():
    for dtype, real in (("complex64", "float32"), ("complex128", "float64")):
        x, y = noise(7, 3, 4, dtype=dtype), noise(8, 3, 4, dtype=dtype)
        empty = out(3, 4, dtype=dtype)
        turned = Tensor(y, (1, 0))
        yield Case("aten::add.out", x, turned, 0.5, empty)
        yield Case("aten::sub.out", x, y[:1], 1, Tensor(empty, (1, 0)))
        yield Case("aten::rsub.Scalar_out", x, 3, 1, empty)
        yield Case("aten::mul.out", x, y.real, empty)
        yield Case("aten::mul.out", x, np.arange(4), empty)
        yield Case("aten::div.out", x, y, empty)
        yield Case("aten::div.Scalar_out", x, 0.3, empty)
        yield Case("aten::eq.Tensor_out", x, x, out(3, 4, dtype="bool"))
        yield Case("aten::neg.out", x, empty)
        yield Case("aten::abs.out", x * 10.0**np.arange(-45, 35, 20).astype(real),
                   out(3, 4, dtype=real))
        yield Case("aten::_to_copy.out", x, False, None, out(3, 4, dtype="complex64"))
        yield Case("aten::sum.IntList_out", x, [1], True, None, out(3, 1, dtype=dtype))
        yield Case("aten::mean.out", x, [0], False, None, out(4, dtype=dtype))
        yield Case("aten::mm.out", x, y.reshape(4, 3), out(3, 3, dtype=dtype))
        yield Case("aten::bmm.out", x.reshape(2, 3, 2), y.reshape(2, 2, 3), out(2, 3, 3, dtype=dtype))
        yield Case("aten::mul.out", halves(x), halves(y), halves(empty))
        yield Case("aten::add.out", x, y.real, 1, y.real)


@pytest.mark.parametrize("board", BOARDS)
def test_board_results_equal_the_twin(board):
    cases = list(board_cases())
    assert sum(case.on_twin().error is not None for case in cases) == 2
    assert_same(board, cases)


# ---- the feature


def test_a_kernel_of_a_feature_stands_for_one_that_an_operator_has():
    symbols = {operator.symbol for operator in supported_operators().values()}
    replaced = feature_kernels()
    assert replaced.keys() == FEATURES.keys() and len(replaced["float64"]) == 13
    assert len(replaced["complex"]) == 21
    assert all(symbols.issuperset(others) for others in replaced.values())


@pytest.mark.parametrize(("name", "has"), [("spectral_filter", True), ("rfft", True), ("mlp", False),
                                           ("int8_ds_cnn", False)])
def test_models_with_complex_tensors_need_it(name, has):
    assert ("complex" in needed_features({name: open_program(load(name).pte)})) is has


@pytest.mark.parametrize("dims", [None, [], [0], [-1]], ids=str)
@pytest.mark.parametrize("operator", ["aten::sum.IntList_out", "aten::mean.out"])
def test_one_number_without_dims_is_its_own_sum(operator, dims):
    result = call(operator, np.array(3 + 4j, np.complex64), dims, False, None, out())
    assert result == np.complex64(3 + 4j)


def test_complex128_needs_functions_of_float64():
    number = {"val": ("Int", {"int_val": 0})}
    values = [tensor([4], 0, dtype=COMPLEX_DOUBLE), tensor([4], 64, dtype=COMPLEX_DOUBLE),
              {"val": ("IntList", {"items": [3]})}, number, {"val": ("Bool", {"bool_val": True})}]
    transform = instruction(0, 0, 2, 3, 4, 1, 1)
    pte = program(plan(values, [transform], ["aten::_fft_c2c.out"], [0], [1], [128]))
    assert needed_features({"model": open_program(pte)}) >= {"complex", "float64"}
