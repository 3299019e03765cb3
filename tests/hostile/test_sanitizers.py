"""Test that the sanitizers detect forbidden accesses. All other tests of kernels show that kernels make
none."""

import pytest
from support import sanitized

PRELUDE = """
import numpy as np
from support.board_call import Case
from support.kernel_call import Call, Tensor


def floats(n, **options):
    return Tensor(np.zeros(n, np.float32), **options)
"""

# For each fault: a script that makes it with eight elements, and the sanitizer's name of the fault.
WRONG = {
    "a read behind the last byte of a memory": ("""
short = floats(8, last=True)
Case("aten::relu.out", Tensor(np.zeros(9, np.float32), alias=short), floats(9)).on_twin()
""", "heap-buffer-overflow"),
    "a read of guard bytes": ("""
x, out = floats(8), floats(9)
one = Call("aten::relu.out", [x, out])
one.make_dynamic(x, 1, [9])
one.run()
""", "use-after-poison"),
    "a write of guard bytes": ("""
out = floats(8)
one = Call("aten::relu.out", [floats(9), out])
one.make_dynamic(out, 1)
one.run()
""", "use-after-poison"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_sanitizers_report_faults(wrong):
    script, name = WRONG[wrong]
    ended = sanitized.run("-c", PRELUDE + script)
    assert name in ended.stderr, ended.stderr[-2000:]
