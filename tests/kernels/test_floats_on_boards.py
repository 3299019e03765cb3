"""Test float32 convolutions, matrix products and rows: the bits of every core equal the twin's."""

import numpy as np
import pytest
import test_float_math
from support.board_call import BOARDS, Case, assert_same, call_on_board
from support.kernel_call import Tensor
from test_convolution import BACKWARD, CHANNELS_LAST, OPERATOR, out_size, random

# The board with vectors, which treat subnormal numbers as 0.
HELIUM = "mps3-an547"


def convolution(x, w, bias, stride, padding, dilation, groups=1, transposed=False,
                orders=(None, None, None)):
    dims = x.ndim - 2
    channels = w.shape[1] * groups if transposed else w.shape[0]
    sizes = [out_size(*each) for each in zip(x.shape[2:], w.shape[2:], stride, padding, dilation,
                                             [transposed] * dims, [0] * dims, strict=True)]
    out = np.zeros((x.shape[0], channels, *sizes), np.float32)
    given = [Tensor(a, order) for a, order in zip((x, w, out), orders, strict=True)]
    return Case(OPERATOR, given[0], given[1], bias, stride, padding, dilation, transposed,
                [0] * dims, groups, given[2])


def random_convolution(rng, dims=None, widest=20):
    """Return a convolution of any geometry, with channels and widths around the sizes of blocks."""
    dims = dims or int(rng.choice([1, 2, 2, 2]))

    def each(*choices):
        return [int(i) for i in rng.choice(choices, dims)]

    groups, transposed = int(rng.choice([1, 1, 1, 2, 5])), bool(rng.random() < 0.1)
    c_in, c_out = (int(i) for i in rng.integers(1, 9, 2))
    if rng.random() < 0.3:  # depthwise
        groups, c_in, c_out = int(rng.integers(1, 14)), int(rng.choice([1, 1, 2])), 1
    kernel = each(1, 3) if rng.random() < 0.5 else each(1, 2, 3, 4, 5)
    if rng.random() < 0.5:
        kernel = [kernel[0]] * dims
    stride, dilation, padding = each(1, 1, 2, 3), each(1, 1, 1, 2), each(0, 1, 1, 2)
    size = [max(int(n), d * (k - 1) + 1 - 2 * p)
            for n, d, k, p in zip(rng.integers(1, widest, dims), dilation, kernel, padding,
                                  strict=True)]
    if transposed:
        padding = [min(p, ((i - 1) * s + d * (k - 1)) // 2) for p, i, s, d, k in
                   zip(padding, size, stride, dilation, kernel, strict=True)]
    shape = (c_in * groups, c_out) if transposed else (c_out * groups, c_in)
    orders = [CHANNELS_LAST[dims] if rng.random() < 0.3 else None for _ in range(3)]
    return convolution(random(rng, (int(rng.integers(1, 3)), c_in * groups, *size)),
                       random(rng, (*shape, *kernel)),
                       random(rng, c_out * groups) if rng.random() < 0.7 else None,
                       stride, padding, dilation, groups, transposed, orders)


@pytest.mark.parametrize("board", BOARDS)
def test_convolutions(board):
    rng = np.random.default_rng(5)
    assert_same(board, [random_convolution(rng) for _ in range(250)])


@pytest.mark.parametrize("board", BOARDS)
def test_volumes(board):
    rng = np.random.default_rng(8)
    assert_same(board, [random_convolution(rng, 3, 8) for _ in range(80)])


def gradients_of(case, rng):
    """Return the call that computes all gradients of a convolution, in the dim orders of its call."""
    x, w, bias, *given, out = case.arguments
    grad = Tensor(random(rng, out.array.shape), out.dim_order)
    outputs = [Tensor(np.zeros_like(one.array), one.dim_order) for one in (x, w)]
    return Case(BACKWARD, grad, x, w, None, *given, [True] * 3, *outputs,
                np.zeros(out.array.shape[1], np.float32))


@pytest.mark.parametrize("board", BOARDS)
def test_gradients_of_convolutions(board):
    rng = np.random.default_rng(6)
    assert_same(board, [gradients_of(random_convolution(rng), rng) for _ in range(100)])


def padded_lines():
    """Yield 3x3 convolutions with a padding of 1: all widths around block sizes, and lines of one
    kernel row."""
    rng = np.random.default_rng(6)
    for width in range(1, 14):
        for height, channels in ((1, 4), (2, 5), (5, 8)):
            yield convolution(random(rng, (1, 3, height, width)), random(rng, (channels, 3, 3, 3)),
                              random(rng, channels), [1, 1], [1, 1], [1, 1])
    yield convolution(random(rng, (1, 3, 2, 9)), random(rng, (4, 3, 3, 3)), None, [1, 1], [4, 1],
                      [1, 1])


@pytest.mark.parametrize("board", BOARDS)
def test_padded_lines(board):
    assert_same(board, list(padded_lines()))


def matrices():
    rng = np.random.default_rng(7)
    for m, k, n in [(1, 1, 1), (1, 7, 3), (1, 9, 5), (1, 64, 16), (1, 33, 17), (1, 20, 35), (2, 5, 4),
                    (3, 12, 18), (4, 1, 4), (4, 2, 5), (5, 3, 1), (6, 3, 7), (7, 64, 2), (9, 31, 11),
                    (16, 10, 16), (4, 0, 4), (1, 0, 20), (5, 0, 1)]:
        out = np.zeros((m, n), np.float32)
        yield Case("aten::mm.out", random(rng, (m, k)), random(rng, (k, n)), out)
        for bias in (None, random(rng, n)):
            yield Case("aten::linear.out", random(rng, (m, k)), random(rng, (n, k)), bias, out)
        yield Case("aten::addmm.out", random(rng, n), random(rng, (m, k)), random(rng, (k, n)), 1, 1,
                   out)


@pytest.mark.parametrize("board", BOARDS)
def test_matrices(board):
    assert_same(board, list(matrices()))


def small(rng, shape, exponent):
    """Return values around a power of 10."""
    scale = 10.0 ** rng.uniform(exponent - 2, exponent + 1, shape)
    return (random(rng, shape) * scale).astype(np.float32)


def subnormal_cases():
    """Yield normal numbers with subnormal products, and subnormal numbers."""
    rng = np.random.default_rng(8)
    for exponents in ((-20, -20), (0, -40), (-40, 0)):
        for channels, kernel, groups in ((8, 3, 1), (8, 1, 1), (8, 3, 8), (6, 2, 2), (9, 3, 3)):
            shapes = (1, channels, 7, 9), (channels, channels // groups, kernel, kernel)
            yield convolution(*map(small, [rng] * 2, shapes, exponents), None, [1, 1],
                              [kernel // 2] * 2, [1, 1], groups)
        for m, n in ((1, 40), (1, 5), (8, 8), (5, 1)):
            yield Case("aten::mm.out", *map(small, [rng] * 2, ((m, 9), (9, n)), exponents),
                       np.zeros((m, n), np.float32))


@pytest.mark.parametrize("board", BOARDS)
def test_subnormal_numbers(board):
    cases = list(subnormal_cases())
    tiny = np.finfo(np.float32).tiny
    for case in cases:
        result = np.abs(case.on_twin().outputs[0])
        assert ((result > 0) & (result < tiny)).any(), f"{case} has no subnormal result"
    assert_same(board, cases)


def test_one_subnormal_number_costs_a_second_sum():
    """Without subnormal numbers there is no second sum, and the count is that of vectors."""
    rng = np.random.default_rng(9)
    x, w = random(rng, (1, 32, 8, 8)), random(rng, (32, 32, 1, 1))
    tiny = x.copy()
    tiny[0, 31, 7, 7] = 1e-40
    fast, slow = call_on_board(HELIUM, [convolution(i, w, None, [1, 1], [0, 0], [1, 1])
                                        for i in (x, tiny)])
    macs = 32 * 32 * 64
    assert fast.instructions < macs
    assert slow.instructions > 3 * fast.instructions


def rows():
    rng = np.random.default_rng(10)
    none = np.zeros(0, np.float32)
    special = np.array([0, -0.0, 1, -1, 1e-40, -1e-40, np.inf, -np.inf], np.float32)
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0xFFFFFFFF], np.uint32)
    for n in (1, 3, 4, 15, 16, 17, 35):
        x = random(rng, (2, 3, n))
        yield Case("aten::relu.out", np.resize(np.append(special, nans.view(np.float32)), 2 * n),
                   np.zeros(2 * n, np.float32))
        parameters = [random(rng, 3), random(rng, 3), random(rng, 3), abs(random(rng, 3))]
        for values in (x, small(rng, x.shape, -39)):
            for shift in (parameters[1], np.zeros(3, np.float32)):
                given = Tensor(values)
                for out in (Tensor(np.zeros_like(x)), Tensor(values, alias=given)):
                    yield Case("aten::_native_batch_norm_legit_no_training.out", given,
                               parameters[0], shift, shift * 0, parameters[3], 0.1, 1e-5, out, none,
                               none.copy())


@pytest.mark.parametrize("board", BOARDS)
def test_rows(board):
    assert_same(board, list(rows()))


@pytest.mark.parametrize("board", BOARDS)
def test_functions(board):
    """The numbers have every size; NaN is compared by its bits."""
    sample = test_float_math.X[::97].copy()
    cases = [Case(f"aten::{name}.out", sample, np.zeros_like(sample))
             for name in test_float_math.FUNCTIONS]
    cases.append(Case("aten::atan2.out", sample, sample[::-1].copy(), np.zeros_like(sample)))
    assert_same(board, cases)
