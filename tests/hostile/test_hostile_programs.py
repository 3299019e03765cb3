"""Test programs that would access other memory through tensors and numbers that change, on the twin
with the compiler's sanitizers, and on the boards."""

from pathlib import Path

import pytest
from picotorch.run.job import Job
from support import sanitized
from support.flatbuffer_builder import bool_value, double_value, int_value
from support.programs import call, jump, move, plan, program, tensor
from support.targets import BOARDS, HOST, SCRIPT_BOARDS, run_script

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).resolve().parents[1]
TESTS = ("core/test_control_flow.py", "host/test_dynamic_inputs.py", "core/test_dynamic_shapes.py")
BOOL, LONG = 11, 4
X, OUT, Y, LIST, MINUS_1, ONE, N, EQUAL = range(8)
RELU, VIEW, CAT, SPLIT, VIEW_COPY, ADD, EQ, SYM_SIZE = range(8)
OPERATORS = ["aten::relu.out", "executorch_prim::et_view.default", "aten::cat.out",
             "aten::split_with_sizes_copy.out", "aten::view_copy.out", "executorch_prim::add.Scalar",
             "executorch_prim::eq.Scalar", "aten::sym_size.int"]


def dynamic(sizes, offset=None, **fields):
    return tensor(sizes, offset, shape_dynamism=1, **fields)


def ints(*items):
    return {"val": ("IntList", {"items": list(items)})}


def tensors(*items):
    return {"val": ("TensorList", {"items": list(items)})}


def made(instructions=(), changed=None, values=(), inputs=(X,), outputs=(OUT,), **fields):
    """Return a program with x, out and y of up to 2 by 4 floats, [-1], -1, 1, the number n = 0, a bool,
    and `values`. `changed` replaces values. Constant 1 has 32 bytes."""
    found = [dynamic([2, 4], 0), dynamic([2, 4], 32), dynamic([8], 64), ints(MINUS_1), int_value(-1),
             int_value(1), int_value(0), bool_value(False), *values]
    for index, value in (changed or {}).items():
        found[index] = value
    return program(plan(found, list(instructions), OPERATORS, list(inputs), list(outputs), [96],
                        **fields), constant_buffer=[{}, {"storage": bytes(32)}])


def chains(*parts):
    return [{"instructions": list(part)} for part in parts]


COUNT = call(ADD, N, ONE, N)
PROGRAMS = {
    "relu": made([call(RELU, X, OUT, OUT)]),
    # ---- tensors
    "output of a smaller bound": made([call(RELU, X, OUT, OUT)], {OUT: dynamic([1, 4], 32)}),
    "output of another rank": made([call(RELU, X, Y, Y)]),
    "bound beyond the buffer": made([call(RELU, X, OUT, OUT)], {OUT: dynamic([2, 40], 32)}),
    "bound of 2**32 elements": made([call(RELU, X, OUT, OUT)], {X: dynamic([1 << 16, 1 << 16], 0)}),
    "bound below zero": made([call(RELU, X, OUT, OUT)], {X: dynamic([-1, 4], 0)}),
    "rank 17": made([call(RELU, X, OUT, OUT)], {X: dynamic([1] * 17, 0), OUT: dynamic([1] * 17, 32)}),
    "no such dynamism": made([], {X: tensor([2, 4], 0, shape_dynamism=3)}),
    "unbounded": made([], {X: tensor([2, 4], 0, shape_dynamism=2)}),
    "cat into its input": made([call(CAT, 8, 6, X, X)], values=[tensors(X, X)], outputs=[X]),
    "split into one output twice": made(
        [call(SPLIT, X, 8, N, 10, 10)], {X: dynamic([8], 0), OUT: dynamic([8], 32)},
        values=[ints(ONE, 9), int_value(7), tensors(OUT, OUT)]),
    "moved to a smaller bound": made([move(X, OUT)], {OUT: dynamic([1, 4], 32)}),
    "moved to another rank": made([move(X, Y)]),
    "moved to another dtype": made([move(X, OUT)], {OUT: dynamic([2, 4], 32, dtype=LONG)}),
    # ---- views
    "view": made([call(VIEW, X, LIST, Y)], outputs=[Y]),
    "view of a larger bound": made([call(VIEW, X, LIST, Y), call(RELU, Y, 8, 8)],
                                   {Y: dynamic([64])}, [dynamic([64], 32)], outputs=[8]),
    "static view of more": made([call(VIEW, X, LIST, Y)], {Y: tensor([64])}, outputs=[Y]),
    "view of another dtype": made([call(VIEW, X, LIST, Y)], {Y: dynamic([8], dtype=LONG)}),
    "view of an int": made([call(VIEW, N, LIST, Y)]),
    "view that is an int": made([call(VIEW, X, LIST, N)]),
    "view of two": made([call(VIEW, X, LIST, Y), call(VIEW, OUT, LIST, Y)], {Y: dynamic([8])}),
    "views of each other": made([call(VIEW, X, LIST, Y), call(VIEW, Y, LIST, X)],
                                {X: dynamic([8]), Y: dynamic([8])}),
    "view of itself": made([call(VIEW, Y, LIST, Y)], {Y: dynamic([8])}, outputs=[Y]),
    "view of itself, read": made([call(VIEW, Y, LIST, Y), call(RELU, Y, 8, 8)], {Y: dynamic([8])},
                                 [dynamic([8], 64)], outputs=[8]),
    "constant that is a view of itself, written": made(
        [call(VIEW, 8, LIST, 8), call(RELU, Y, 8, 8)], {Y: tensor([8], 64)},
        [tensor([8], data_buffer_idx=1)]),
    "view of an unplanned view of nothing, written": made(
        [call(RELU, Y, 8, 8), call(VIEW, 9, LIST, 8), call(VIEW, 10, LIST, 9)], {Y: tensor([8], 64)},
        [tensor([8]), dynamic([8]), dynamic([0])]),
    "view of an unplanned view of nothing, read": made(
        [call(RELU, 8, Y, Y), call(VIEW, 9, LIST, 8), call(VIEW, 10, LIST, 9)], {Y: tensor([8], 64)},
        [tensor([8]), dynamic([8]), dynamic([0])]),
    "views of each other, written": made(
        [call(RELU, OUT, 8, 8), call(VIEW, 8, LIST, Y), call(VIEW, Y, LIST, 8)],
        {Y: dynamic([8]), OUT: dynamic([8], 32)}, [dynamic([8])]),
    "view before its source": made([call(RELU, Y, 8, 8), call(VIEW, X, LIST, Y)], {Y: dynamic([8])},
                                   [dynamic([8], 64)], outputs=[8]),
    "unplanned view": made([call(VIEW, X, LIST, Y)], {X: dynamic([2, 4]), Y: dynamic([8])},
                           outputs=[Y]),
    "view without dims": made([call(VIEW, X, LIST, Y)], {X: dynamic([0], 0), Y: dynamic([])}),
    "list of a view beyond the values": made([call(VIEW, X, LIST, Y)], {LIST: ints(99)}),
    # ---- numbers
    "counted": made([COUNT], outputs=[N]),
    "counted to 100": made([COUNT, call(EQ, N, 8, EQUAL), jump(EQUAL, 0)], values=[int_value(100)],
                           outputs=[N]),
    "number beyond the values": made([call(ADD, N, ONE, 99)]),
    "number below the values": made([call(ADD, N, ONE, -1)]),
    "number that is a tensor": made([call(ADD, N, ONE, X)]),
    "number of a tensor": made([call(ADD, X, ONE, N)]),
    "number that is a list": made([call(ADD, N, ONE, LIST)]),
    "moved tensor to a number": made([move(X, N)]),
    "moved number to a tensor": made([move(N, X)]),
    "moved beyond the values": made([move(X, 99)]),
    "double whose half is a place": made(
        [call(RELU, X, OUT, OUT), move(8, N)],
        values=[double_value(float.fromhex("0x1.000000800000p0"))]),
    "list that outgrows its tensor": made(
        [COUNT, call(VIEW_COPY, X, 8, OUT, OUT), call(EQ, N, MINUS_1, EQUAL), jump(EQUAL, 0)],
        values=[ints(N, MINUS_1)]),
    "list that gets a double": made(
        [call(ADD, N, 9, N), call(VIEW_COPY, X, 8, OUT, OUT)],
        values=[ints(N, MINUS_1), double_value(1.5)]),
    "list of a variable and no value": made(
        [COUNT, call(VIEW_COPY, X, 8, OUT, OUT)], values=[ints(N, 99)]),
    "list of a variable and a tensor": made(
        [COUNT, call(VIEW_COPY, X, 8, OUT, OUT)], values=[ints(N, X)]),
    "lists of a product": made([COUNT] + [call(VIEW_COPY, X, 8, OUT, OUT)] * 100,
                               values=[ints(*[MINUS_1] * 20000)]),
    "size of a dim that is not": made([call(SYM_SIZE, X, 8, N)], values=[int_value(2**40)]),
    "condition that becomes an int": made([move(ONE, EQUAL), jump(EQUAL, 2)]),
    "condition that is a list": made([jump(LIST, 1)]),
    "condition of no elements": made([jump(8, 1)], values=[dynamic([0], 0, dtype=BOOL)]),
    # ---- chains
    "chains": made(chains=chains([COUNT, jump(EQUAL, 2)], [], [COUNT, call(RELU, X, OUT, OUT)]),
                   outputs=[N]),
    "jump to the next chain": made(chains=chains([COUNT, jump(EQUAL, 3)], [COUNT, COUNT])),
    "jump before its chain": made(chains=chains([COUNT], [COUNT, jump(EQUAL, -1)])),
    "no chain": made(chains=[]),
    "chains without instructions": made(chains=[{}, {"instructions": []}, {}]),
}


@pytest.mark.parametrize("name", TESTS)
def test_a_file_of_tests_passes_with_sanitizers(name, monkeypatch):
    """Python then allocates small objects one by one, too, so that the sanitizer detects accesses
    beside them."""
    monkeypatch.setenv("PYTHONMALLOC", "malloc")
    ended = sanitized.run("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", FOLDER / name,
                          "-k", " and ".join(f"not {board}" for board in BOARDS))
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-3000:]


SCRIPT = """
import sys
from test_hostile_programs import sections
from support.targets import HOST, run_script
print(*run_script("damaged.py", sections(), HOST).lines, sep="\\n")
"""


def sections():
    return Job({f"model{i}": data for i, data in enumerate(PROGRAMS.values())})


def test_each_works_or_is_rejected_with_sanitizers(monkeypatch):
    monkeypatch.setenv("PYTHONMALLOC", "malloc")
    ended = sanitized.run("-c", SCRIPT)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.splitlines() == run_script("damaged.py", sections(), HOST).lines


@pytest.mark.parametrize("board", SCRIPT_BOARDS)
def test_a_board_reports_the_same(board):
    wanted = run_script("damaged.py", sections(), HOST).lines
    assert len(wanted) == len(PROGRAMS)
    assert run_script("damaged.py", sections(), board).lines == wanted
