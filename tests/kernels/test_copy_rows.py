"""Test copies of parts and of permuted dims: rows and planes of any size, at any place, of any dim
order, by numpy, on the twin and on boards."""

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same, call_on_board
from support.kernel_call import Tensor, call
from support.random_operators import CHANNELS_LAST, Draw

CALLS = 150
DTYPES = ["int8", "int8", "int16", "float32", "float32", "int64"]


def size(draw, largest=40):
    """0, 1, and mostly small sizes: log-uniform."""
    return int(np.exp(draw.random.uniform(0, np.log(largest + 1)))) - (1 if draw.chance(3) else 0)


def array(draw, sizes, dtype):
    bits = draw.random.integers(0, 256, (*sizes, np.dtype(dtype).itemsize)).astype(np.uint8)
    x = np.ascontiguousarray(bits).view(dtype).reshape(sizes)
    return np.nan_to_num(x) if dtype == "float32" else x


def tensor(draw, x, order):
    """A tensor whose data has the alignment of its dtype."""
    shift = draw.pick(0, 1, 2, 3) * x.itemsize % 16 if draw.chance(50) else 0
    return Tensor(x, order, shift=shift)


def shape(draw, rank):
    return [size(draw, {1: 3000, 2: 200, 3: 40, 4: 14}[rank]) for _ in range(rank)]


def order(draw, rank):
    usual = tuple(range(rank))
    return draw.pick(usual, CHANNELS_LAST) if rank == 4 else usual


def cat(draw, dtype):
    rank = draw.int(1, 4)
    dim, sizes = draw.int(0, rank - 1), shape(draw, rank)
    lies = order(draw, rank)
    parts = []
    for _ in range(draw.int(1, 4)):
        sizes[dim] = size(draw, 20)
        parts.append(array(draw, sizes, dtype))
    tensors = [tensor(draw, x, lies if draw.chance(80) else order(draw, rank)) for x in parts]
    return "aten::cat.out", [tensors, dim], [np.concatenate(parts, dim)], lies


def split(draw, dtype):
    rank = draw.int(1, 4)
    dim, sizes = draw.int(0, rank - 1), shape(draw, rank)
    counts = [size(draw, 20) for _ in range(draw.int(1, 4))]
    sizes[dim] = sum(counts)
    x, lies = array(draw, sizes, dtype), order(draw, rank)
    parts = np.split(x, np.cumsum(counts)[:-1], dim)
    return "aten::split_with_sizes_copy.out", [tensor(draw, x, lies), counts, dim], parts, lies


def slices(draw, dtype):
    rank = draw.int(1, 4)
    x, dim, lies = array(draw, shape(draw, rank), dtype), draw.int(0, rank - 1), order(draw, rank)
    start, end = sorted(draw.int(0, x.shape[dim]) for _ in range(2))
    step = draw.pick(1, 1, 1, 2, 3)
    part = x[(slice(None),) * dim + (slice(start, end, step),)]
    return ("aten::slice_copy.Tensor_out", [tensor(draw, x, lies), dim, start, end, step], [part],
            lies if draw.chance(80) else order(draw, rank))


def scattered(draw, dtype):
    operator, (x, *arguments), (part,), lies = slices(draw, dtype)
    expected = x.array.copy()
    dim, start, end, step = arguments
    src = array(draw, part.shape, dtype)
    expected[(slice(None),) * dim + (slice(start, end, step),)] = src
    return "aten::slice_scatter.out", [x, tensor(draw, src, lies), *arguments], [expected], lies


def stack(draw, dtype):
    rank = draw.int(1, 3)
    sizes, dim = shape(draw, rank), draw.int(0, rank)
    parts = [array(draw, sizes, dtype) for _ in range(draw.int(1, 4))]
    lies = tuple(range(rank + 1))
    tensors = [tensor(draw, x, None) for x in parts]
    return "aten::stack.out", [tensors, dim], [np.stack(parts, dim)], lies


def permute(draw, dtype):
    rank = draw.int(1, 4)
    dims = [int(i) for i in draw.random.permutation(rank)]
    x = array(draw, shape(draw, rank), dtype)
    return ("aten::permute_copy.out", [tensor(draw, x, order(draw, rank)), dims], [x.transpose(dims)],
            order(draw, rank))


def clone(draw, dtype):
    x, to = array(draw, shape(draw, 4), dtype), order(draw, 4)
    arguments = [tensor(draw, x, order(draw, 4)), False, list(to)]
    return "dim_order_ops::_clone_dim_order.out", arguments, [x], to


def pad(draw, dtype):
    rank = draw.int(1, 4)
    x, lies = array(draw, shape(draw, rank), "int8"), order(draw, rank)
    borders = [(size(draw, 6), size(draw, 6)) if draw.chance(50) else (0, 0) for _ in range(rank)]
    if rank == 4 and lies != CHANNELS_LAST and (x.shape[1] == 1 or x.shape[2:] == (1, 1)):
        lies = CHANNELS_LAST  # both are the same, and count as channels_last
    kept = [borders[dim] for dim in lies]
    before, after = ([0] * (4 - rank) + [pair[i] for pair in kept] for i in range(2))
    value = draw.int(-128, 127)
    return ("cortex_m::pad.out", [tensor(draw, x, lies), before, after, value],
            [np.pad(x, borders, constant_values=value)], lies)


MAKERS = [cat, split, slices, scattered, stack, permute, clone, pad]


def calls(make):
    """Operator, arguments without outputs, expected outputs and their dim order."""
    for seed in range(CALLS):
        draw = Draw([seed, *map(ord, make.__name__)])
        yield draw, *make(draw, draw.pick(*DTYPES))


def case(draw, operator, arguments, expected, lies):
    outs = [tensor(draw, np.full_like(x, 77), lies) for x in map(np.ascontiguousarray, expected)]
    return Case(operator, *arguments, outs if "split" in operator else outs[0])


@pytest.mark.parametrize("make", MAKERS)
def test_the_twin_equals_numpy(make):
    for draw, operator, arguments, expected, lies in calls(make):
        outs = [tensor(draw, np.zeros_like(x), lies) for x in map(np.ascontiguousarray, expected)]
        results = call(operator, *arguments, outs if "split" in operator else outs[0])
        for result, one in zip(results if "split" in operator else [results], expected, strict=True):
            np.testing.assert_array_equal(result, one, err_msg=f"{operator} {arguments[1:]}")


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("board", BOARDS)
def test_boards_equal_the_twin(board, make):
    assert_same(board, [case(*one) for one in calls(make)])


@pytest.mark.parametrize("board", BOARDS)
def test_a_row_needs_few_instructions(board):
    """A call of memmove for each row, or a loop over strides for each byte, needs far more. So do long
    rows that are not aligned, column by column."""
    image = np.zeros((1, 40, 16, 16), np.int8)
    maximum = {"mps3-an547": 1.2, "mps2-an385-m0plus": 6}.get(board, 4)
    parts = [Tensor(image[:, :n], CHANNELS_LAST) for n in (16, 8, 12, 4)]
    square = np.zeros((1, 32, 32), np.int8)
    cases = [Case("aten::cat.out", parts, 1, Tensor(image, CHANNELS_LAST)),
             Case("cortex_m::transpose.out", square, [0, 2, 1], square.copy()),
             Case("aten::slice_copy.Tensor_out", Tensor(image, CHANNELS_LAST), 1, 4, 36, 1,
                  Tensor(image[:, :32], CHANNELS_LAST)),
             Case("aten::slice_copy.Tensor_out", np.zeros(4000, np.int8), 0, 1, 3999, 1,
                  np.zeros(3998, np.int8))]
    for one, result in zip(cases, call_on_board(board, cases), strict=True):
        assert result.instructions < 1500 + maximum * result.outputs[0].size, one


@pytest.mark.parametrize("sizes", [(), (8,), (2, 3), (1, 8, 4), (1, 1, 8, 4, 4), (1,) * 16])
def test_an_output_of_another_rank_is_refused_before_its_sizes_are_read(sizes):
    """A check that looked at the order of the output's dims first read behind its sizes."""
    image = Tensor(np.zeros((1, 8, 4, 4), np.int8), (0, 2, 3, 1))
    result = Case("cortex_m::pad.out", image, [0] * 4, [0] * 4, 0,
                  Tensor(np.zeros(sizes, np.int8))).on_twin()
    assert result.error == "InvalidArgument" and "sizes differ" in result.reason
