"""The module _picotorch of a board against that of the host: one script, the same lines."""

import contextlib
import io
from pathlib import Path

import pytest
from flatbuffer_builder import NULL_VALUE, build, int_value, string_value
from picotorch.host import emulator, mpy
from picotorch.host.boards import load_board
from targets import SCRIPT_BOARDS

SCRIPT = Path(__file__).resolve().parents[1] / "board" / "module.py"

PROGRAM = build({
    "execution_plan": [{
        "name": "forward",
        "values": [int_value(7), {"val": ("Tensor", {"scalar_type": 6})}, string_value("text"),
                   *[{"val": ("Tensor", {"dim_order": order})}
                     for order in ([0, 2, 1], [0, 0], [0, 1, 2], list(range(33)))],
                   {"val": ("IntList", {"items": [-1]})}, NULL_VALUE,
                   {"val": ("TensorList", {"items": [1]})}],
        "chains": [{"inputs": [2, 3, 3, 2], "outputs": [2, 0, 3],
                    "instructions": [{"instr_args": ("KernelCall", {"args": arguments})}
                                     for arguments in ([1, 4, 8, 0, 9, 2], [3], [99], [-1])]}],
        "operators": [{"name": "aten::t_copy", "overload": "out"}, {"name": "aten::nothing"}],
    }]
})


def script():
    return f"PROGRAM = {PROGRAM!r}\n{SCRIPT.read_text()}"


@pytest.fixture(scope="module")
def host_lines():
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(script(), SCRIPT.name, "exec"), {"__name__": "__main__"})
    return output.getvalue().splitlines()


def test_the_host_reads_and_refuses_as_it_should(host_lines):
    """A few of the lines by hand: the comparison with a board says nothing of what is right."""
    for line in ["  u32 -> 1073741823", "  i32 -> -1073741823", "  i64 items -> 44",
                 "  verify -> -1", "  name -> True", "  known -> True", "  unknown -> -1",
                 "  tensor_nbytes at the limit -> 144", "  tensor_nbytes above the limit -> -1",
                 "  tensor_flags -> 3", "  tensor_flags in order -> 35", "  no permutation -> -1",
                 "  count_tensors -> 5", "  read_union -> 207", "  up to a list -> 4",
                 "  behind it -> -1", "  tensor -> True", "  int -> True",
                 "  item beyond the last -> ValueError", "  beyond the pool -> ValueError",
                 "planned [10, 20, 30, 40, 50, 60, 0, 0, 10, 40, 20, 50, 30, 60, 0, 0]"]:
        assert line in host_lines


@pytest.mark.parametrize("board", SCRIPT_BOARDS)
def test_the_module_on_a_board_is_that_of_the_host(board, host_lines):
    board = load_board(board)
    sections = {"script": mpy.compile_script(script(), SCRIPT.name)}
    result = emulator.run(board, emulator.firmware_path(board), sections)
    assert result.lines == host_lines
    assert result.status == 0
