"""Test operators on all cores: the bytes and errors of every board equal the twin's."""

import dataclasses

import numpy as np
import pytest
from support import example_calls, quantized, random_operators
from support.board_call import BOARDS, Case, assert_same, call_on_board
from support.dialect_calls import VALID
from support.kernel_call import Tensor, call, channels_last
from test_cortex_m import OPERATORS, REFUSED, as_argument, blank, calls
from test_quantized_norms import blank_like, extreme_calls


def dialect_cases():
    return [Case(f"cortex_m::{operator}.out", *map(as_argument, arguments), blank(expected))
            for operator in OPERATORS for arguments, expected in calls(operator)]


def refused_cases():
    for operator, index, value, _ in REFUSED:
        arguments = list(VALID[operator])
        arguments[index] = value
        yield Case(f"cortex_m::{operator}.out", *arguments)


@pytest.mark.parametrize("board", BOARDS)
def test_dialect_cases(board):
    assert_same(board, dialect_cases())


@pytest.mark.parametrize("board", BOARDS)
def test_rejections(board):
    cases = list(refused_cases())
    assert all(case.on_twin().error for case in cases)
    assert_same(board, cases)


@pytest.mark.parametrize("board", BOARDS)
def test_extreme_normalizations(board):
    assert_same(board, [Case(operator, *arguments, blank_like(arguments[0]))
                        for operator, arguments, _ in extreme_calls()])


# ---- random calls


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", random_operators.NAMES)
def test_random_calls(name, board):
    assert_same(board, random_operators.cases(name))


@pytest.mark.parametrize("name", ["conv2d", "linear"])
def test_random_calls_pack_weights(name):
    results = [case.on_twin("mps2-an386") for case in random_operators.cases(name) if case.pack_weights]
    packed = [result for result in results if result.weights]
    assert len(packed) > 0.2 * len(results)


@pytest.mark.parametrize("name", random_operators.NAMES)
def test_random_calls_are_accepted_and_have_varied_results(name):
    results = [case.on_twin() for case in random_operators.cases(name)]
    accepted = [r for r in results if not r.error]
    assert len(accepted) > 0.7 * len(results)
    outputs = [out for r in accepted for out in r.outputs if out.size > 4]
    assert sum(len(np.unique(out)) > 2 for out in outputs) > 0.4 * len(outputs)


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d", "linear"])
def test_random_calls_equal_integer_arithmetic(name):
    for case in random_operators.cases(name):
        arguments = [a.array if isinstance(a, Tensor) else a for a in case.arguments
                     if not (isinstance(a, Tensor) and a.scratch)]
        expected = getattr(quantized, name)(*arguments[:-1])
        np.testing.assert_array_equal(case.on_twin().outputs[0], expected, err_msg=repr(case))


@pytest.mark.parametrize("stride", [[1, 2], [1, 9], [2, 1], [9, 1], [9, 9]])
def test_a_stride_may_lead_beyond_the_only_window(stride):
    """A kernel of one tap reads one pixel of each row or column if the stride exceeds the image, and
    all with a stride of 1."""
    x = channels_last(np.arange(24, dtype=np.int8).reshape(1, 4, 3, 2))
    weights = np.arange(20, dtype=np.int8).reshape(5, 1, 1, 4)
    numbers = [None, stride, [0, 0], [1, 1], 0, 0, np.full(5, 1 << 30, np.int32),
               np.full(5, -4, np.int32), -128, 127]
    expected = quantized.conv2d(x.array, weights, *numbers)
    scratch = Tensor(np.zeros(64, np.uint8), scratch=True)
    out = call("cortex_m::quantized_conv2d.out", x, weights, *numbers, scratch,
               channels_last(np.zeros_like(expected)))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d", "linear"])
def test_preparing_changes_no_output(name):
    for case in random_operators.cases(name):
        other = Case(case.operator, *case.arguments, pack_weights=not case.pack_weights)
        np.testing.assert_array_equal(case.on_twin().outputs[0], other.on_twin().outputs[0],
                                      err_msg=repr(case))


# ---- shapes that random calls do not reach

FAR = 1 << 27  # the largest stride, padding and dilation
# sizes (height, width), kernel, stride, padding, dilation
GEOMETRIES = {
    "no output": [((5, 1), (3, 3), (1, 1), (0, 0), (1, 1)), ((1, 5), (3, 3), (2, 2), (0, 0), (1, 1)),
                  ((0, 5), (3, 3), (1, 1), (0, 1), (1, 1)), ((1, 1), (3, 3), (1, 1), (0, 0), (1, 1))],
    "dilation along one dim": [((6, 15), (3, 3), (1, 1), (1, 1), (1, 3)),
                               ((15, 6), (3, 3), (2, 2), (1, 1), (3, 1)),
                               ((15, 15), (3, 3), (1, 1), (1, 1), (3, 5))],
    "far apart": [((5, 6), (1, 1), (1, FAR), (0, FAR), (FAR, 1)),
                  ((5, 6), (2, 3), (1, FAR), (0, FAR), (1, FAR)),
                  ((5, 6), (3, 3), (FAR, FAR), (FAR, FAR), (FAR, FAR)),
                  ((5, 6), (3, 3), (FAR, 1), (FAR, 1), (1, 1))]}


def layers(channels, size, kernel, *window):
    """Yield a convolution and depthwise ones, with the offset 3 and zero points of -2."""
    outputs = [max(0, (n + 2 * p - d * (k - 1) - 1) // s + 1)
               for n, k, s, p, d in zip(size, kernel, *window, strict=True)]
    draw = random_operators.Draw([channels, *size])

    def channels_of(n, value):
        return Tensor(np.full(n, value, np.int32), constant=True)

    def case(operator, weights, n, *multiplier):
        return Case(f"cortex_m::quantized_{operator}.out", draw.image(2, *size, channels),
                    draw.weights(*weights), channels_of(n, 9), *map(list, window), *multiplier, 3, -2,
                    channels_of(n, 3 << 29), channels_of(n, -7), -128, 127,
                    Tensor(np.zeros(4096, np.uint8), scratch=True),
                    draw.output(2, n, *outputs, order=random_operators.CHANNELS_LAST))

    yield case("conv2d", (6, *kernel, channels), 6)
    for m in (1, 2):
        yield case("depthwise_conv2d", (1, *kernel, channels * m), channels * m, m)


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("kind", GEOMETRIES)
def test_geometries(kind, board):
    cases = [case for geometry in GEOMETRIES[kind] for n in (1, 4, 7, 16, 20)
             for case in layers(n, *geometry)]
    assert not any(case.on_twin().error for case in cases)
    assert_same(board, cases)


def operands_at_the_end():
    """Yield each operator once for each of its inputs, with that input at the end of readable
    memory."""
    for operator, arguments in example_calls.EXAMPLES.items():
        case = Case(operator, *arguments)
        outputs = {id(output) for output in case.outputs}
        for argument in filter(is_operand, arguments):
            if id(argument) not in outputs:
                last = Tensor(argument) if isinstance(argument, np.ndarray) else argument
                last = dataclasses.replace(last, last=True)
                yield Case(operator, *[last if a is argument else a for a in arguments])


def is_operand(argument):
    if isinstance(argument, Tensor):
        return argument.alias is None and not argument.scratch and argument.array.size
    return isinstance(argument, np.ndarray) and argument.size


@pytest.mark.parametrize("board", BOARDS)
def test_no_operator_reads_behind_an_input(board):
    cases = list(operands_at_the_end())
    assert not any(case.on_twin().error for case in cases)
    assert_same(board, cases)


# ---- the runner itself


def test_a_fault_names_its_case():
    fine, off = np.ones(3, np.float32), Tensor(np.ones(3, np.float32), shift=1)
    cases = [Case("aten::add.out", x, fine, 1, np.zeros(3, np.float32)) for x in (fine, off)]
    with pytest.raises(AssertionError, match=r"stopped in case 1: aten::add.out\(float32\[3\]\+1"):
        call_on_board("mps2-an385-m0plus", cases)


@pytest.mark.parametrize("board", BOARDS)
def test_a_read_behind_the_last_word_is_a_fault(board):
    short, table = Tensor(np.zeros(8, np.int8), last=True), np.zeros(256, np.int8)
    cases = [Case("cortex_m::quantized_activation.out", x, table, np.zeros(x.array.size, np.int8))
             for x in (short, Tensor(np.zeros(9, np.int8), alias=short))]
    with pytest.raises(AssertionError, match="stopped in case 1"):
        call_on_board(board, cases)


def test_data_of_any_alignment_beside_an_input_at_the_end():
    board, table = "mps3-an547", np.arange(256).astype(np.int8)
    last = Tensor(np.arange(20).astype(np.int8), last=True)
    assert_same(board, [
        Case("cortex_m::quantized_activation.out", last, Tensor(table, shift=shift),
             Tensor(np.zeros(20, np.int8), shift=shift)) for shift in range(16)])


def test_instructions_are_exact():
    counts = [[r.instructions for r in call_on_board("mps2-an386", [
        Case("aten::add.out", *[np.ones(n, np.float32)] * 2, 1, np.zeros(n, np.float32))
        for n in (100, 200, 300)])] for _ in range(2)]
    first, second, third = counts[0]
    assert counts[0] == counts[1] and third - second == second - first > 0
