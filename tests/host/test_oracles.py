"""Every operator gives what numpy gives, for random dtypes, shapes, layouts and values.

kernel_call.call runs each of these calls with dynamic outputs, too, and looks at all guard bytes.
EXAMPLES=50 in the environment: so many times as many calls, others each time.
"""

import os

import _picotorch
import figures
import pytest
import sanitized
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_call import Call
from oracles import ORACLES, Draw

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

TIMES = int(os.environ.get("EXAMPLES", 1))
EXAMPLES = 20
MORE = {"aten::convolution.out": 10}  # times as many


def test_every_operator_has_an_oracle():
    names = {_picotorch.operator_name(i) for i in range(_picotorch.operator_count())} - {""}
    assert names == set(ORACLES)


@pytest.mark.reliability
@pytest.mark.parametrize("operator", sorted(ORACLES))
def test_gives_what_numpy_gives(operator):
    calls, runs, wrong = 0, Call.runs, 1
    examples = EXAMPLES * MORE.get(operator, 1) * TIMES

    @settings(max_examples=examples, derandomize=TIMES == 1, deadline=None, database=None)
    @given(st.data())
    def check(data):
        nonlocal calls
        calls += 1
        draw = Draw(data, st)
        ORACLES[operator](draw, operator).check(operator, draw)

    try:
        check()
        wrong = 0
    finally:
        figures.record("kernels", operator.replace("::", "."), operators=1, random_calls=calls,
                       kernel_runs=Call.runs - runs, operators_wrong=wrong,
                       runs_with_sanitizers=(Call.runs - runs) * sanitized.is_active())
