"""Test the strict verification of a program's structure, on files that Google's package builds."""

import pytest
from support.flatbuffer_builder import build, double_value, int_value, string_value
from support.records import verify

pytestmark = pytest.mark.check


def test_tables_of_different_sizes_may_share_a_vtable():
    """An example is gelu's "none" before softmax's dim. Each table has one field at the same offset, of
    4 bytes in the first and 8 in the second, and the builder writes one vtable for both."""
    for first in (string_value("none"), {"val": ("IntList", {"items": []})}):
        for second in (int_value(-1), double_value(1.0)):
            for values in ([first, second], [second, first]):
                program = build({"execution_plan": [{"name": "forward", "values": values}]})
                assert verify(program) == -1


def test_a_field_beyond_the_file_is_found():
    program = build({"execution_plan": [{"name": "forward", "values": [double_value(1.0)]}]})
    assert verify(program) == -1
    for size in range(len(program)):
        assert verify(program[:size]) != -1


@pytest.mark.parametrize(("methods", "good"), [(2, True), (4, True), (300, False)])
def test_repeated_references_count_each_time(methods, good):
    """Otherwise 60 KB could contain the names of 3,000 methods, of 50,000 characters each."""
    method = {"name": "x" * 1000, "values": [int_value(1)]}
    assert (verify(build({"execution_plan": [method] * methods})) == -1) == good


def test_data_of_which_each_part_is_there_once_is_none_too_many():
    values = [{"val": ("IntList", {"items": list(range(i, i + 100))})} for i in range(300)]
    operators = [{"name": f"aten::name{i}", "overload": "out"} for i in range(300)]
    plan = {"name": "forward", "values": values, "operators": operators}
    assert verify(build({"execution_plan": [plan]})) == -1
