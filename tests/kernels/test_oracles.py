"""Compare every operator with numpy, for random dtypes, shapes, layouts and values.

kernel_call.call repeats each of these calls with dynamic outputs, and checks all guard bytes. make
check runs less than half as many calls as make test. EXAMPLES=50 in the environment multiplies the
number of calls, which differ each time. Boards have the twin's results, and leave their guard bytes
unchanged, too.
"""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import ORACLES, Draw, HypothesisDraw
from picotorch.host.operators import built_operators
from support import figures, sanitized
from support.board_call import Case, call_on_board
from support.kernel_call import Call

pytestmark = [pytest.mark.check, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

TIMES = int(os.environ.get("EXAMPLES", 1))
EXAMPLES = 8 if os.environ.get("PICOTORCH_TESTS") == "check" else 20
MORE = {"aten::convolution.out": 10}  # factors of the number of calls


def test_every_operator_has_an_oracle():
    assert built_operators().keys() == set(ORACLES)


@pytest.mark.reliability
@pytest.mark.parametrize("operator", sorted(ORACLES))
def test_equals_numpy(operator):
    calls, runs, wrong = 0, Call.runs, 1
    examples = EXAMPLES * MORE.get(operator, 1) * TIMES

    @settings(max_examples=examples, derandomize=TIMES == 1, deadline=None, database=None)
    @given(st.data())
    def check(data):
        nonlocal calls
        calls += 1
        draw = HypothesisDraw(data)
        ORACLES[operator](draw, operator).check(operator, draw)

    try:
        check()
        wrong = 0
    finally:
        figures.record("kernels", operator.replace("::", "."), operators=1, random_calls=calls,
                       kernel_runs=Call.runs - runs, wrong=wrong,
                       runs_with_sanitizers=(Call.runs - runs) * sanitized.is_active())


def case(operator, seed):
    draw = Draw([seed, *map(ord, operator)])
    sample = ORACLES[operator](draw, operator)
    outputs = [] if sample.in_place else sample.outputs(draw)
    return Case(operator, *sample.arguments, *outputs)


def same(result, other):
    """Return True if both calls were accepted with the same bytes, or NaN, whose bits depend on the
    processor."""
    pairs = zip(result.outputs, other.outputs, strict=True)
    return result.error is other.error is None and all(bits(a) == bits(b) for a, b in pairs)


def bits(array):
    return np.where(np.isnan(array), np.nan, array).astype(array.dtype).tobytes()


@pytest.mark.reliability
@pytest.mark.parametrize("board", ["mps2-an385-m0plus", "mps2-an386", "mps3-an547"])
def test_board_results_equal_the_twin(board):
    cases = [case(operator, seed) for operator in sorted(ORACLES) for seed in range(4)]
    wrong = [one for one, result in zip(cases, call_on_board(board, cases), strict=True)
             if not same(result, one.on_twin())]
    figures.record("kernels", board, board_calls=len(cases), wrong=len(wrong))
    assert wrong == []
