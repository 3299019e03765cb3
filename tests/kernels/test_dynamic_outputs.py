"""Test dynamic outputs: every operator sets the sizes that follow from its inputs, within their bound.

kernel_call.call repeats each accepted call of any test with dynamic outputs, and expects a rejection if
the bound is one element too small. This file tests all operators, and the boards.
"""

import numpy as np
import pytest
from picotorch.host.operators import built_operators
from support import random_operators
from support.board_call import BOARDS, Case, assert_same
from support.example_calls import EXAMPLES
from support.kernel_call import ABOVE_BOUND, SPARE, Call, KernelError, call


def operators():
    return list(built_operators())


def test_every_operator_has_an_example():
    assert set(operators()) == set(EXAMPLES)


@pytest.mark.parametrize("operator", operators())
def test_every_operator_supports_dynamic_outputs(operator):
    call(operator, *EXAMPLES[operator])


@pytest.mark.parametrize("board", BOARDS)
def test_every_operator_supports_dynamic_outputs_on_boards(board):
    cases = [Case(operator, *arguments, spare=spare) for operator, arguments in EXAMPLES.items()
             for spare in (SPARE, 0)]
    assert not any(case.on_twin().error for case in cases)
    assert_same(board, cases)


@pytest.mark.parametrize("board", BOARDS)
def test_bounds_that_are_too_small_on_boards(board):
    """The calls include outputs without dims or elements, whose sizes fit any bound, and outputs in
    place."""
    cases = [Case(operator, *arguments, spare=-1) for operator, arguments in EXAMPLES.items()]
    assert_same(board, cases)
    for case in cases:
        arrays = [getattr(tensor, "array", tensor) for tensor in case.outputs]
        in_place = case.operator.endswith(("_", "et_copy_index.tensor"))
        if any(array.ndim and array.size for array in arrays) and not in_place:
            assert case.on_twin().reason == ABOVE_BOUND, case


@pytest.mark.parametrize("name", random_operators.NAMES)
def test_random_calls(name):
    for dynamic, static in zip(random_operators.dynamic_cases(name), random_operators.cases(name)[::5],
                               strict=True):
        static = Case(static.operator, *static.arguments)  # without packed constants
        difference = "" if static.on_twin().error else dynamic.on_twin().difference(static.on_twin())
        assert not difference, f"{static}: {difference}"


@pytest.mark.parametrize("board", BOARDS)
def test_random_calls_on_boards(board):
    assert_same(board, [case for name in random_operators.NAMES
                        for case in random_operators.dynamic_cases(name)[::2]])


# ---- sizes within a bound

SIZES = {"two dims": (2, 3), "one dim": (6,), "none": ()}


def refusal(one):
    """Return error and reason of a call, or (0, None) of one that runs."""
    try:
        one.run()
    except KernelError as error:
        return error.name, error.reason
    return 0, None


def relu(x, **dynamic):
    """Return the error and the sizes of a relu of x to an output of the same rank."""
    out = np.zeros_like(x)
    one = Call("aten::relu.out", [x, out])
    one.make_dynamic(out, **dynamic)
    error, reason = refusal(one)
    return error, one.sizes(out), reason


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_bound_of_just_enough_elements(sizes):
    assert relu(np.ones(sizes, np.float32), spare=0) == (0, sizes, None)


def test_a_refusal_leaves_the_sizes():
    error, sizes, reason = relu(np.ones((2, 3), np.float32), spare=-1, stale=(5, 1))
    assert (error, sizes, reason) == ("InvalidArgument", (5, 1), ABOVE_BOUND)


def test_no_elements_fit_any_bound():
    empty = np.ones((7000, 0, 7000), np.float32)
    assert relu(empty, spare=0)[:2] == (0, empty.shape)


def test_sizes_beside_0_are_at_most_those_of_a_memory():
    """Otherwise a kernel could loop over 2**62 rows without an element."""
    error, _, reason = relu(np.ones((70000, 0, 70000), np.float32), spare=0)
    assert (error, reason) == ("InvalidArgument", ABOVE_BOUND)


def test_a_product_of_sizes_does_not_overflow():
    """Two sizes of 2**16 have 2**32 elements, which is 0 in 32 bits."""
    out = np.zeros((1, 1), np.float32)
    one = Call("aten::full.out", [[1 << 16, 1 << 16], 0.0, out])
    one.make_dynamic(out, 0)
    assert refusal(one) == ("InvalidArgument", ABOVE_BOUND)


def test_the_rank_does_not_change():
    out = np.zeros((1, 6), np.float32)
    one = Call("aten::relu.out", [np.ones(6, np.float32), out])
    one.make_dynamic(out, SPARE)
    error, reason = refusal(one)
    assert error == "InvalidArgument" and "sizes differ from those" in reason
