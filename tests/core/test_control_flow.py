"""Test jumps, moves and initial values in programs that no exporter writes. The fixtures test exported
programs."""

import numpy as np
import pytest
from picotorch import BufferDataLoader, Error, Program
from picotorch.module import load_with_exact_memories
from support.flatbuffer_builder import bool_value, int_value
from support.programs import call, jump, move, plan, program, tensor
from support.targets import aligned

pytestmark = pytest.mark.check

BOOL = 11
X, OUT, CONDITION, NO = range(4)


def loaded(instructions, values=(), condition=None):
    """Load a method with x (4 floats), out, a condition (one bool), the value False, and `values`."""
    condition = tensor([], 32, dtype=BOOL) if condition is None else condition
    values = [tensor([4], 0), tensor([4], 16), condition, bool_value(False), *values]
    made = program(plan(values, instructions, ["aten::relu.out"], [X, CONDITION], [OUT], [48]))
    return load_with_exact_memories(Program.load(BufferDataLoader(aligned(made))), "forward")


def run(method, x, condition):
    method.set_inputs([np.array(x, np.float32), np.array(condition)])
    method.execute()
    return list(method.get_output(0).data)


def test_a_condition_skips_its_branch():
    method = loaded([move(X, OUT), jump(CONDITION, 3), call(0, X, OUT, OUT)])
    assert run(method, [-1, 2, -3, 4], True) == [0, 2, 0, 4]
    assert run(method, [-1, 2, -3, 4], False) == [-1, 2, -3, 4]


def test_a_tensor_is_true_when_all_of_it_is():
    method = loaded([move(X, OUT), jump(CONDITION, 3), call(0, X, OUT, OUT)],
                    condition=tensor([3], 32, dtype=BOOL))
    assert run(method, [-1, 2, -3, 4], [True, True, True]) == [0, 2, 0, 4]
    assert run(method, [-1, 2, -3, 4], [True, False, True]) == [-1, 2, -3, 4]


def test_steps_follow_a_jump():
    method = loaded([jump(CONDITION, 2), call(0, X, OUT, OUT), move(X, OUT)])
    method.set_inputs([np.array([-1, 2, -3, 4], np.float32), np.array(False)])
    method.step()
    method.step()
    assert list(method.get_output(0).data) == [-1, 2, -3, 4]
    with pytest.raises(Error, match=r"EndOfMethod"):
        method.step()


def test_a_program_that_never_ends_is_an_error_and_can_be_run_again():
    method = loaded([jump(CONDITION, 0), call(0, X, OUT, OUT)])
    with pytest.raises(Error, match=r"InvalidProgram \(0x23\): instruction 0: control flow: more than"):
        run(method, [1, 2, 3, 4], False)
    assert run(method, [1, -2, 3, 4], True) == [1, 0, 3, 4]


def test_freed_values_keep_their_contents():
    method = loaded([call(0, X, OUT, OUT), {"instr_args": ("FreeCall", {"value_index": X})}])
    assert run(method, [1, -2, 3, 4], True) == [1, 0, 3, 4]


@pytest.mark.parametrize(("instruction", "message"), [
    (jump(CONDITION, 3), r"InvalidProgram \(0x23\): instruction 3: there is no such destination"),
    (jump(CONDITION, -1), r"InvalidProgram \(0x23\): .*there is no such destination"),
    (jump(99, 1), r"InvalidProgram \(0x23\): value 99"),
    (jump(X, 1), r"InvalidProgram \(0x23\): instruction 1: control flow: a condition is not a bool"),
    (jump(4, 1), r"InvalidProgram \(0x23\): instruction 1: control flow: a condition is not a bool"),
    (move(X, 99), r"InvalidProgram \(0x23\): value 99"),
    (move(4, OUT), r"NotSupported \(0x10\): instruction 1: control flow: moves other than"),
    (move(X, 4), r"NotSupported \(0x10\): instruction 1: control flow: moves other than"),
    (move(X, CONDITION), r"NotSupported \(0x10\): instruction 1: control flow: moves to a tensor with"),
])
def test_a_jump_to_no_instruction_is_rejected(instruction, message):
    with pytest.raises(Error, match=message):
        loaded([call(0, X, OUT, OUT), instruction], [int_value(7)])


@pytest.mark.parametrize(("segments", "message"), [
    ([], "there is no such mutable data segment"),
    ([{"segment_index": 0, "offsets": [0]}], "there is no such initial value"),
    ([{"segment_index": 3, "offsets": [0, 0]}], "a part lies outside the file"),
    ([{"segment_index": 0, "offsets": [0, 1 << 40]}], "lies outside its segment"),
    ([{"segment_index": 0, "offsets": [0, 0]}], "lies outside its segment"),
])
def test_an_initial_value_that_is_not_there_is_rejected(segments, message):
    value = tensor([4], 0, data_buffer_idx=1)
    made = program(plan([value, tensor([4], 16)], [call(0, 0, 1, 1)], ["aten::relu.out"], [], [1],
                        [32]),
                   segments=[{"offset": 0, "size": 0}], mutable_data_segments=segments)
    with pytest.raises(Error, match=rf"InvalidProgram \(0x23\): .*{message}"):
        load_with_exact_memories(Program.load(BufferDataLoader(aligned(made))), "forward")
