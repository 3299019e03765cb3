"""Test functions of one int8: clamps and tables, for any number of values at any address."""

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same, call_on_board
from support.kernel_call import Tensor, call

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 255, 1000, 20000)
BOUNDS = [None, -(1 << 40), -300, -129, -128, -127, -1, 0, 1, 126, 127, 128, 300, 1 << 40]


def values(rng, n, number):
    """Return n values of all kinds, sometimes unaligned, or at the end of readable memory."""
    x = rng.integers(-128, 128, n).astype(np.int8)
    return Tensor(x, last=True) if number % 4 == 3 else Tensor(x, shift=number % 4)


def output(n, number):
    return Tensor(np.full(n, 77, np.int8), shift=number // 4 % 4)


def clamps():
    """Yield calls and their results."""
    rng = np.random.default_rng(1)
    for number, (low, high) in enumerate((low, high) for low in BOUNDS for high in BOUNDS):
        n = SIZES[number % len(SIZES)]
        x, out = values(rng, n, number), output(n, number)
        expected = x.array  # bounds become int8 first
        expected = expected if low is None else np.maximum(expected, np.int64(low).astype(np.int8))
        expected = expected if high is None else np.minimum(expected, np.int64(high).astype(np.int8))
        if low is not None or high is not None:
            yield "aten::clamp.out", [x, low, high, out], expected
        if low is not None and high is not None:
            yield "aten::hardtanh.out", [x, low, high, out], expected
    for number, n in enumerate(SIZES):
        x = values(rng, n, number)
        yield "aten::relu.out", [x, output(n, number)], np.maximum(x.array, 0)


def tables():
    rng = np.random.default_rng(2)
    for number in range(3 * len(SIZES)):
        n = SIZES[number % len(SIZES)]
        x, table = values(rng, n, number), rng.integers(-128, 128, 256).astype(np.int8)
        if n == 255:
            x.array[:] = np.arange(-128, 127)
        yield ("cortex_m::quantized_activation.out", [x, table, output(n, number)],
               table[x.array.astype(np.int64) + 128])


@pytest.mark.parametrize("calls", [clamps, tables])
def test_the_twin_equals_a_numpy_oracle(calls):
    for operator, arguments, expected in calls():
        result = call(operator, *arguments)
        np.testing.assert_array_equal(result, expected, err_msg=str(arguments[1:-1]))


@pytest.mark.parametrize("calls", [clamps, tables])
@pytest.mark.parametrize("board", BOARDS)
def test_boards_equal_the_twin(board, calls):
    assert_same(board, [Case(operator, *arguments) for operator, arguments, _ in calls()])


@pytest.mark.parametrize("board", BOARDS)
def test_a_value_needs_few_instructions(board):
    """The limit is the count of a loop over bytes. A function call for each value would take a
    hundred."""
    x = np.arange(4096).astype(np.int8)
    maximum = {"mps3-an547": 1, "mps2-an386": 8, "mps2-an500": 8, "mps2-an505": 8}.get(board, 20)
    cases = [Case("aten::relu.out", x, np.zeros_like(x)),
             Case("aten::clamp.out", x, -7, 100, np.zeros_like(x)),
             Case("cortex_m::quantized_activation.out", x, x[:256], np.zeros_like(x))]
    for case, result in zip(cases, call_on_board(board, cases), strict=True):
        assert result.instructions < maximum * len(x), case
