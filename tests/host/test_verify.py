"""The strict verification of a program's structure, on files that Google's package builds."""

import _picotorch
from flatbuffer_builder import build, double_value, int_value, string_value


def verify(program):
    return _picotorch.Reader(program).verify()


def test_tables_of_different_sizes_may_share_a_vtable():
    """As where gelu's "none" comes before softmax's dim: one field each, at the same offset, of 4
    bytes in the first and 8 in the second, and the builder writes one vtable for both."""
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
