"""Test that the work of the commands grows with the size of a program, not with the square of it. Work
is counted in lines that Python executes, so the speed of the computer has no influence."""

import sys
from pathlib import Path

import pytest
from picotorch.host.inputs import random_inputs
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.inspect import memory_map
from picotorch.measure import profiling, sizing
from support.calling import assert_error
from support.programs import call, delegate_call, plan, program, tensor

HOST = str(Path(sizing.__file__).parents[1])
BOARDS = ["mps2-an385", "mps2-an386", "mps2-an500"]
PARTS = 60
RELU = "aten::relu.out"


def work(function, *arguments):
    """Count the lines of host/ that a call executes."""
    count = 0

    def in_function(frame, event, argument):
        nonlocal count
        count += event == "line"
        return in_function

    def entered(frame, event, argument):
        return in_function if frame.f_code.co_filename.startswith(HOST) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


def one_after_another(n):
    """Return a program where each instruction reads the output of the instruction before it."""
    values = [tensor([1], 4 * i) for i in range(n + 1)]
    return program(plan(values, [call(0, i, i + 1, i + 1) for i in range(n)], [RELU], [0], [n],
                        [4 * n + 4]))


def all_live(n):
    """Return a program that writes all values, then reads each one again, the last one first."""
    values = [tensor([1], 4 * i) for i in range(n + 1)]
    calls = [call(0, i, i + 1, i + 1) for i in range(n)]
    return program(plan(values, [*calls, *[call(0, i, 0, 0) for i in range(n, 0, -1)]], [RELU], [0],
                        [n], [4 * n + 4]))


def buffers(n):
    """Return a program with each tensor in a planned buffer of its own."""
    values = [tensor([1], 0, memory_id=i + 1) for i in range(n)]
    return program(plan(values, [call(0, i, i + 1, i + 1) for i in range(n - 1)], [RELU], [0], [0],
                        [4] * n))


def lists(n):
    """Return a program where each call names one long list."""
    values = [tensor([n], 0), tensor([1], 4 * n), {"val": ("TensorList", {"items": [1] * n})},
              {"val": ("Int", {"int_val": 0})}]
    return program(plan(values, [call(0, 2, 3, 0, 0)] * n, ["aten::cat.out"], [1], [0], [4 * n + 4]))


def outputs(n):
    return program(plan([tensor([1], 0)], [], [], [0], [0] * n, [4]))


def draw(data):
    memory_map.draw(open_program(data).method_meta("forward"), "title")


def profile(data):
    inputs = random_inputs(open_program(data).method_meta("forward"))
    profiling.profile(Request(data, "model", inputs), "host")


@pytest.mark.parametrize("function, make", [
    (draw, one_after_another), (draw, all_live), (draw, buffers), (draw, lists), (draw, outputs),
    (profile, one_after_another), (profile, outputs)])
def test_it_is_by_the_size_of_the_program(function, make):
    assert work(function, make(2 * PARTS)) < 2.3 * work(function, make(PARTS))


def test_shapes_of_a_profile_look_into_a_list_no_further_than_they_show():
    def shapes(data):
        meta = open_program(data).method_meta("forward")
        values = profiling.Values(meta.program, meta.plan)
        for instruction in profiling.read_instructions(meta, values):
            assert profiling.shapes(instruction, values)

    assert work(shapes, lists(2 * PARTS)) < 2.3 * work(shapes, lists(PARTS))


def test_more_boards_read_the_program_no_more_often(monkeypatch):
    for method, result in (("run", (None, "")), ("kernels", None)):
        monkeypatch.setattr(sizing._Measured, method, lambda *arguments, result=result: result)
    monkeypatch.setattr(sizing, "flash_bytes", lambda *arguments: None)
    monkeypatch.setattr(sizing.fitting, "reference_board", lambda core: None)
    monkeypatch.setattr(sizing.fitting, "parts_of_ram", lambda memories, *arguments: memories)
    monkeypatch.setattr(sizing, "bound_on", lambda *arguments: None)

    def size(data, boards):
        sizing.measure(data, "model", "forward", boards, False)

    data = outputs(20 * PARTS)
    assert work(size, data, BOARDS) < 1.2 * work(size, data, BOARDS[:1])


def test_size_reserves_a_bounded_number_of_backends(call, tmp_path):
    """The command looks each backend up among all that are registered."""
    delegates = [{"id": f"B{i}", "processed": {"location": 0, "index": 0}, "compile_specs": []}
                 for i in range(65)]
    model = tmp_path / "model.pte"
    model.write_bytes(program(
        plan([tensor([1], 0)], [delegate_call(i, 0, 0) for i in range(65)], [], [0], [0], [4],
             delegates=delegates),
        backend_delegate_data=[{"data": b"12345678"}]))
    assert_error(call("size", model), "NotSupported", "65 that are not registered, 64 at most")
