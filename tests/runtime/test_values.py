"""Test values of every kind as inputs and outputs, tensors between methods, attributes and state. One
script runs on the twin and on the boards. No exporter writes lists as inputs, so the programs are built
here."""

import numpy as np
import pytest
from picotorch import from_blob
from support import fixture_store
from support.flatbuffer_builder import bool_value, double_value, int_value, string_value
from support.programs import call, plan, program, tensor
from support.targets import BOARDS, HOST, SCRIPT_BOARDS, SCRIPTS, run_script

pytestmark = pytest.mark.check

NONE = {"val": ("Null", {})}
DYNAMIC_BOUND = 1


def items(kind, values):
    return {"val": (kind, {"items": list(values)})}


def relu(*values):
    """Return relu of the first value, into the second."""
    return program(plan(list(values), [call(0, 0, 1, 1)], ["aten::relu.out"], [0], [1], [64]))


def values():
    """Return a program with an output of each kind; the tensors are constants."""
    constants = [tensor([2], data_buffer_idx=1), tensor([1, 1], data_buffer_idx=2)]
    ints = [int_value(i) for i in (-1, 2**29, 7)]
    outputs = [int_value(-5), bool_value(True), double_value(0.25), NONE, string_value("größer"),
               string_value(""), items("IntList", [2, 3, 4]), items("DoubleList", [0.5, -2.0]),
               items("BoolList", [True, False]), items("OptionalTensorList", [0, -1, 1, 5]),
               items("TensorList", [1, 0]), items("IntList", []), constants[0]]
    # value 5 is None, and precedes the outputs
    made = [*constants, *ints, NONE, *outputs]
    return program(
        plan(made, [], [], [], range(6, len(made)), []),
        constant_buffer=[{"storage": b""}, {"storage": b"\0\0\x80\x3f\0\0\0\x40"},
                         {"storage": b"\0\0\x40\x40"}])


def hostile_lists():
    """Return lists whose items are out of range, or refer to the list."""
    made = [tensor([2], 0), items("IntList", [99]), items("IntList", [-1]), items("IntList", [3]),
            items("IntList", [0]), items("TensorList", [-1]), items("TensorList", [1]),
            items("OptionalTensorList", [99])]
    return program(plan(made, [], [], [], range(1, len(made)), [16]))


def inputs():
    made = [string_value("text"), NONE, int_value(7), bool_value(True), double_value(0.5),
            int_value(2**40), tensor([2], 0), items("IntList", [2])]
    return program(plan(made, [], [], range(len(made)), [6], [16]))


def sections():
    named = {"fully_qualified_name": "weight"}
    made = {
        "values": values(), "hostile_lists": hostile_lists(), "inputs": inputs(),
        "relu": relu(tensor([4], 0), tensor([4], 16)),
        "dynamic": relu(tensor([4], 0, shape_dynamism=DYNAMIC_BOUND),
                        tensor([4], 16, shape_dynamism=DYNAMIC_BOUND)),
        "attributes": program(plan([tensor([2], data_buffer_idx=1, extra_tensor_info=named)], [], [],
                                   [], [], []),
                              constant_buffer=[{"storage": b""}, {"storage": bytes(8)}]),
    }
    return made | {"lstm_stateful": fixture_store.load("lstm_stateful").pte}


@pytest.mark.parametrize("target", (HOST, *SCRIPT_BOARDS))
def test_every_call_ends_as_expected(target):
    result = run_script("values.py", sections(), target)
    assert result.lines == (SCRIPTS / "values.exp").read_text().splitlines()


@pytest.mark.parametrize("board", [name for name in BOARDS if name in SCRIPT_BOARDS])
def test_a_large_int_is_named_while_the_heap_is_locked(board):
    large = program(plan([int_value(2**40)], [], [], [], [0], []))
    assert run_script("large_int.py", {"large": large}, board).lines == [
        "MemoryAllocationFailed (0x21): value 0: an int of more than 30 bits; ask for it with the "
        "heap unlocked",
        "1099511627776"]


def test_complex_numbers():
    z = np.array([[1 + 2j, 3 - 4j]], np.complex64)
    tensor = from_blob(bytearray(z.tobytes()), [1, 2], "ComplexFloat")
    assert list(tensor.data) == [1, 2, 3, -4]
    assert tensor.number(1) == (3, -4) == tensor[0, 1]
    assert tensor.tolist() == [[(1, 2), (3, -4)]]
    assert (tensor.numpy() == z).all()
    assert repr(tensor) == "<Tensor ComplexFloat [1, 2] [1+2j, 3-4j]>"
    tensor[0, 0] = 5, 6
    assert list(tensor.data) == [5, 6, 3, -4]
    assert tensor.nbytes() == 16
    tensor.resize([2, 1])
    assert tensor[1, 0] == (3, -4)
    halves = from_blob(np.array([1, -2], np.float16).tobytes(), [1], 8)
    assert halves.number(0) == (1, -2)
