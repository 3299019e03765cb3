"""Test that the time to read a program's description grows with its size, not with the square of it.

The programs have many small parts: a file of a megabyte may have a hundred thousand parts.
"""

import time

import pytest
from picotorch import BufferDataLoader, Program
from picotorch.inspect.inspecting import inspect
from support import exercise, fixture_store
from support.file_parts import Parts
from support.flatbuffer_builder import bool_value, int_value
from support.programs import call, external_tensor, plan, program, tensor

PARTS = 1500
SECONDS = 3  # processor time; quadratic growth took 10 to 60


def attributes():
    return program(plan([external_tensor([1], f"x{i}") for i in range(PARTS)], [], [], [], [], []))


def outputs():
    return program(plan([tensor([1]), tensor([1])], [], [], [0] * 250, [1] * 6 * PARTS, []))


def methods():
    constant = [plan([int_value(i)], [], [], [], [0], []) | {"name": f"number{i}"}
                for i in range(PARTS)]
    others = [plan([tensor([1], 0)], [], [], [0], [0], [4]) | {"name": f"method{i}"}
              for i in range(PARTS)]
    return program(plan([tensor([1], 0)], [], [], [0], [0], [4]), *constant, *others)


def lists():
    """Return a program of calls that name one list."""
    values = [tensor([1], 0), {"val": ("TensorList", {"items": [0] * PARTS})}, int_value(0),
              bool_value(False)]
    return program(plan(values, [call(0, 1, 2, 0, 0)] * PARTS, ["aten::cat.out"], [0], [0], [8]))


def named_data():
    parts = Parts(fixture_store.load("delegate_named_data").pte)
    parts.tables["named_data"] = [parts.tables["named_data"][0] | {"key": f"key{i}"}
                                  for i in range(2 * PARTS)]
    return parts.together()


@pytest.mark.parametrize("make", [attributes, outputs, methods, lists, named_data])
def test_time_grows_with_the_size(make):
    data = make()
    outcomes = exercise.Outcomes()
    start = time.process_time()
    with outcomes.named():
        loaded = Program.load(BufferDataLoader(data))
        meta = loaded.method_meta(loaded.method_names[0])
        exercise.describe(meta)
        meta.unplanned_outputs()
        meta.unplanned_attributes()
    with outcomes.named():
        repr(inspect(data, "model"))
    assert outcomes.names == []
    assert time.process_time() - start < SECONDS
