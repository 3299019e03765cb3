"""Tensors and numbers that change, in programs that no exporter writes; exported ones are fixtures."""

import array

import numpy as np
import pytest
from flatbuffer_builder import bool_value, double_value, int_value, string_value
from picotorch import BufferDataLoader, Error, Program
from picotorch.module import load_with_exact_memories
from programs import call, plan, program, tensor
from targets import aligned
from test_control_flow import jump, move

X, OUT = 0, 1


def dynamic(sizes, offset=None, **fields):
    return tensor(sizes, offset, shape_dynamism=1, **fields)


def load(*arguments, **fields):
    made = program(plan(*arguments, **fields))
    return load_with_exact_memories(Program.load(BufferDataLoader(aligned(made))), "forward")


def relu(values=(), instructions=None):
    """out = relu(x), both of up to 2 by 4 floats, and other values and instructions."""
    return load([dynamic([2, 4], 0), dynamic([2, 4], 32), *values],
                [call(0, X, OUT, OUT)] if instructions is None else instructions,
                ["aten::relu.out"], [X], [OUT], [64])


def position(method, value):
    return method.context.find_value(value)


def resize(method, value, *sizes):
    """The error code, 0 where the tensor has these sizes now."""
    return method.context.resize(position(method, value), array.array("i", sizes))


def sizes_of(method, value, rank=2):
    place = method.context.get_ref(position(method, value) + 4)
    return list(method.context.view(memoryview(bytearray(4)), place, 4 * rank, "i"))


def set_x(method, x):
    """Sets value 0, which is the input 0."""
    full = np.zeros(8, np.float32)
    full[: x.size] = x.ravel()
    method.set_input(full, 0)
    assert resize(method, X, *x.shape) == 0


def test_an_output_takes_the_sizes_of_the_input():
    method = relu()
    for shape in [(2, 4), (1, 3), (2, 0), (1, 8), (2, 4)]:
        x = np.linspace(-1, 1, 8, dtype=np.float32)[: shape[0] * shape[1]].reshape(shape)
        set_x(method, x)
        method.execute()
        assert sizes_of(method, OUT) == list(shape)
        found = np.array(method.context.view(memoryview(bytearray(4)), method.context.get_ref(
            position(method, OUT)), 32, "f"))[: x.size]
        assert (found == np.maximum(x.ravel(), 0)).all()


def test_sizes_are_the_upper_bound_until_something_changes_them():
    method = relu()
    assert sizes_of(method, X) == sizes_of(method, OUT) == [2, 4]


@pytest.mark.parametrize("sizes", [(2, 5), (9, 1), (1 << 16, 1 << 16), (-1, 4), (4,), (1, 2, 4), ()])
def test_what_is_above_the_bound_or_of_another_rank_is_not_supported(sizes):
    method = relu()
    assert resize(method, X, *sizes) == 0x10
    assert sizes_of(method, X) == [2, 4]


def test_a_static_tensor_keeps_its_sizes():
    method = load([tensor([2, 4], 0), tensor([2, 4], 32)], [call(0, X, OUT, OUT)],
                  ["aten::relu.out"], [X], [OUT], [64])
    assert resize(method, X, 2, 4) == 0
    assert resize(method, X, 4, 2) == 0x10


def test_a_kernel_refuses_sizes_above_the_bound_of_its_output():
    method = load([dynamic([2, 4], 0), dynamic([1, 4], 32)], [call(0, X, OUT, OUT)],
                  ["aten::relu.out"], [X], [OUT], [64])
    set_x(method, np.ones((2, 4), np.float32))
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): instruction 0: aten::relu.out: the "
                                    r"sizes have more elements than the tensor's upper bound"):
        method.execute()
    set_x(method, np.ones((1, 4), np.float32))
    method.execute()


def test_a_tensor_is_moved_with_its_sizes():
    method = relu(instructions=[move(X, OUT)])
    set_x(method, np.ones((1, 3), np.float32))
    method.execute()
    assert sizes_of(method, OUT) == [1, 3]


def test_a_number_is_moved():
    """The condition is true until a first move; its value stays from one execution to the next."""
    condition, no = 2, 3
    instructions = [move(X, OUT), jump(condition, 3), call(0, X, OUT, OUT), move(no, condition)]
    method = relu([bool_value(True), bool_value(False)], instructions)
    place = method.context.find_variable(condition)
    assert method.context.number(place, None) is True
    method.set_input(np.full(8, -1, np.float32), 0)
    method.execute()
    assert list(method.get_output(0).data) == [0] * 8
    assert method.context.number(place, None) is False
    method.execute()
    assert list(method.get_output(0).data) == [-1] * 8


def test_a_condition_of_another_type_is_an_error_when_it_is_reached():
    method = relu([bool_value(True), int_value(3)], [jump(2, 2), move(3, 2)])
    method.set_input(np.ones(8, np.float32), 0)
    method.execute()
    with pytest.raises(Error, match=r"InvalidProgram \(0x23\): instruction 0: control flow: a cond"):
        method.execute()


def test_chains_run_one_after_the_other():
    chains = [{"instructions": [move(X, OUT), jump(2, 2)]},
              {"instructions": [jump(3, 2), call(0, X, OUT, OUT)]},
              {"instructions": []}]
    method = load([tensor([4], 0), tensor([4], 16), bool_value(False), bool_value(True)], [],
                  ["aten::relu.out"], [X], [OUT], [32], chains=chains)
    method.set_input(np.array([-1, 2, -3, 4], np.float32), 0)
    method.execute()
    assert list(method.get_output(0).data) == [0, 2, 0, 4]
    assert method.method_meta().num_instructions() == 4


@pytest.mark.parametrize(("values", "instructions", "message"), [
    ([string_value("a")], [move(X, 2)], r"InvalidProgram \(0x23\): value 2: is written like a number"),
    ([bool_value(True)], [move(X, 2)], r"NotSupported \(0x10\): instruction 0: .*moves other than"),
    ([bool_value(True)], [move(2, X)], r"NotSupported \(0x10\): instruction 0: .*moves other than"),
    ([bool_value(True)], [move(2, 9)], r"InvalidProgram \(0x23\): value 9"),
    ([bool_value(True)], [move(9, 2)], r"InvalidProgram \(0x23\): value 9"),
    ([double_value(1), string_value("a")], [move(3, 2)], r"NotSupported \(0x10\): .*moves other than"),
])
def test_moves_that_cannot_be_are_refused(values, instructions, message):
    with pytest.raises(Error, match=message):
        relu(values, instructions)


def test_the_rank_of_a_dynamic_tensor_is_bounded():
    with pytest.raises(Error, match=r"NotSupported \(0x10\): tensors of more than 16 dims"):
        load([dynamic([1] * 17, 0), dynamic([1] * 17, 16)], [call(0, X, OUT, OUT)],
             ["aten::relu.out"], [X], [OUT], [32])
