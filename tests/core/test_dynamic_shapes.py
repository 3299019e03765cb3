"""Test dynamic tensors and numbers in programs that no exporter writes. The fixtures test exported
programs."""


import numpy as np
import pytest
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
    from_blob,
)
from picotorch.module import load_with_exact_memories
from support import fixture_store, records
from support.flatbuffer_builder import bool_value, double_value, int_value, string_value
from support.programs import call, jump, move, plan, program, tensor
from support.targets import aligned

pytestmark = pytest.mark.check

X, OUT = 0, 1
HALF = 5


def dynamic(sizes, offset=None, **fields):
    return tensor(sizes, offset, shape_dynamism=1, **fields)


def load(*arguments, **fields):
    made = program(plan(*arguments, **fields))
    return load_with_exact_memories(Program.load(BufferDataLoader(aligned(made))), "forward")


def relu(values=(), instructions=None):
    """Load out = relu(x), both of up to 2 by 4 floats, with further values and instructions."""
    return load([dynamic([2, 4], 0), dynamic([2, 4], 32), *values],
                [call(0, X, OUT, OUT)] if instructions is None else instructions,
                ["aten::relu.out"], [X], [OUT], [64])


def sizes_of(method, value, rank=2):
    return records.sizes_of(method, value, rank)


def set_x(method, x):
    """Set value 0, which is input 0."""
    method.set_input(from_blob(x, list(x.shape)), 0)


def test_an_output_gets_the_sizes_of_the_input():
    method = relu()
    for shape in [(2, 4), (1, 3), (2, 0), (1, 8), (2, 4)]:
        x = np.linspace(-1, 1, 8, dtype=np.float32)[: shape[0] * shape[1]].reshape(shape)
        if x.size == 0:  # CPython casts no view without elements
            assert records.resize(method, X, *shape) == 0
            method.execute()
            assert sizes_of(method, OUT) == list(shape)
            continue
        set_x(method, x)
        method.execute()
        assert sizes_of(method, OUT) == list(shape)
        found = np.frombuffer(records.at(method, records.value_record(method, OUT)[0], 4 * x.size), "f")
        assert (found == np.maximum(x.ravel(), 0)).all()


def test_sizes_are_the_upper_bound_until_something_changes_them():
    method = relu()
    assert sizes_of(method, X) == sizes_of(method, OUT) == [2, 4]


@pytest.mark.parametrize("sizes", [(2, 5), (9, 1), (1 << 16, 1 << 16), (-1, 4), (4,), (1, 2, 4), ()])
def test_sizes_above_the_bound_and_other_ranks_are_not_supported(sizes):
    method = relu()
    assert records.resize(method, X, *sizes) == 0x10
    assert sizes_of(method, X) == [2, 4]


def test_a_static_tensor_keeps_its_sizes():
    method = load([tensor([2, 4], 0), tensor([2, 4], 32)], [call(0, X, OUT, OUT)],
                  ["aten::relu.out"], [X], [OUT], [64])
    assert records.resize(method, X, 2, 4) == 0
    assert records.resize(method, X, 4, 2) == 0x10


def test_a_kernel_rejects_sizes_above_the_bound_of_its_output():
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
    """The condition is true until the first move. The moved value stays in the next execution."""
    condition, no = 2, 3
    instructions = [move(X, OUT), jump(condition, 3), call(0, X, OUT, OUT), move(no, condition)]
    method = relu([bool_value(True), bool_value(False)], instructions)
    assert records.number(method, condition) is True
    method.set_input(np.full(8, -1, np.float32), 0)
    method.execute()
    assert list(method.get_output(0).data) == [0] * 8
    assert records.number(method, condition) is False
    method.execute()
    assert list(method.get_output(0).data) == [-1] * 8


def test_reset_state_takes_numbers_back():
    method = numbers([int_value(1)], [call(0, N, N, N)], [ADD])
    for _ in range(2):
        method.set_input(np.zeros(8, np.float32), 0)
        method.execute()
        method.execute()
        assert records.number(method, N) == 4
        method.reset_state()
        assert records.number(method, N) == 1


def test_scratch_that_the_upper_bounds_do_not_show():
    """The operator is addmm. At the upper bound of mat2, self does not broadcast, so loading plans no
    scratch memory for it."""
    values = [dynamic([3, 8], 0, dtype=HALF), dynamic([2, 8], 48, dtype=HALF),
              tensor([4], 80, dtype=HALF), tensor([2, 3], 88, dtype=HALF), int_value(1)]
    made = program(plan(values, [call(0, 2, 3, X, 4, 4, OUT, OUT)], ["aten::addmm.out"], [X], [OUT],
                        [112]))
    loaded = Program.load(BufferDataLoader(aligned(made)))
    for temp in (None, 15, 16):
        memory = temp and MemoryAllocator(aligned(temp), "temp memory")
        method = Method(MemoryManager(MemoryAllocator(aligned(1024)),
                                      HierarchicalAllocator([aligned(112)]), memory))
        method.load(loaded, "forward")
        method.set_input(from_blob(np.ones(12, np.float16), [3, 4], "Half"), 0)
        if temp == 16:
            method.execute()
            assert sizes_of(method, OUT) == [2, 4]
            continue
        for _ in range(2):
            with pytest.raises(Error, match="MemoryAllocationFailed .* instruction 0: .*temp memory"):
                method.execute()


def test_reset_state_takes_sizes_back():
    method = relu()
    set_x(method, np.ones((1, 3), np.float32))
    method.execute()
    assert sizes_of(method, X) == sizes_of(method, OUT) == [1, 3]
    method.reset_state()
    assert sizes_of(method, X) == sizes_of(method, OUT) == [2, 4]


def test_reset_state_leaves_a_method_without_inputs_ready():
    loaded = Program.load(BufferDataLoader(aligned(fixture_store.load("no_inputs").pte)))
    method = load_with_exact_memories(loaded, "forward")
    method.execute()
    method.reset_state()
    method.execute()
    assert np.asarray(method.get_output(0).data).any()


def test_reset_state_leaves_no_element_beyond_the_memory_of_an_input():
    method = view(dynamic([2, 4]), dynamic([8]), planned=16)
    method.set_input(from_blob(np.ones(3, np.float32), [1, 3]), 0)
    method.execute()
    method.reset_state()
    assert sizes_of(method, X) == [0, 0] and sizes_of(method, 1, 1) == [0]
    method.set_input(np.ones(8, np.float32), 0)
    method.execute()
    assert sizes_of(method, X) == [2, 4] and sizes_of(method, 1, 1) == [8]


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
    ([string_value("a")], [move(X, 2)], r"InvalidProgram \(0x23\): value 2: is written as a number"),
    ([bool_value(True)], [move(X, 2)], r"NotSupported \(0x10\): instruction 0: .*moves other than"),
    ([bool_value(True)], [move(2, X)], r"NotSupported \(0x10\): instruction 0: .*moves other than"),
    ([bool_value(True)], [move(2, 9)], r"InvalidProgram \(0x23\): value 9"),
    ([bool_value(True)], [move(9, 2)], r"InvalidProgram \(0x23\): value 9"),
    ([double_value(1), string_value("a")], [move(3, 2)], r"NotSupported \(0x10\): .*moves other than"),
])
def test_moves_that_cannot_be_are_rejected(values, instructions, message):
    with pytest.raises(Error, match=message):
        relu(values, instructions)


def test_the_rank_of_a_dynamic_tensor_is_bounded():
    with pytest.raises(Error, match=r"NotSupported \(0x10\): tensors of more than 16 dims"):
        load([dynamic([1] * 17, 0), dynamic([1] * 17, 16)], [call(0, X, OUT, OUT)],
             ["aten::relu.out"], [X], [OUT], [32])


# ---- views that share data

VIEW = "executorch_prim::et_view.default"


def view(source, out, values=(), planned=32, operators=(VIEW, "aten::relu.out"), instructions=None,
         inputs=(0,)):
    """Load a view, value 1, of value 0, of up to 2 by 4 floats. Value 2 is the list [-1], value 3 the
    int -1."""
    values = [source, out, {"val": ("IntList", {"items": [3]})}, int_value(-1), *values]
    return load(values, [call(0, 0, 2, 1)] if instructions is None else instructions,
                list(operators), list(inputs), [1], [planned])


def test_a_view_lies_where_its_source_does():
    method = view(dynamic([2, 4], 0), dynamic([8]))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    set_x(method, x)
    method.execute()
    assert list(method.get_output(0).data) == list(x.ravel())
    assert method.get_output(0).sizes() == (6,)


def test_a_view_of_a_view():
    method = view(dynamic([2, 4], 0), dynamic([8]), [dynamic([8])],
                  instructions=[call(0, 0, 2, 4), call(0, 4, 2, 1)])
    set_x(method, np.arange(4, dtype=np.float32).reshape(1, 4))
    method.execute()
    assert list(method.get_output(0).data) == [0, 1, 2, 3]


def test_a_view_of_an_unplanned_input_needs_no_memory_of_its_own():
    method = view(dynamic([2, 4]), dynamic([8]), planned=16)
    method.set_input(np.arange(8, dtype=np.float32), 0)
    method.execute()
    assert list(method.get_output(0).data) == list(range(8))
    method.set_input(from_blob(np.arange(3, dtype=np.float32), [1, 3]), 0)
    method.execute()
    assert list(method.get_output(0).data) == [0, 1, 2]


def test_nothing_is_read_beyond_a_smaller_input():
    """The relu reads the view before the view gets the sizes of the new input."""
    method = view(dynamic([2, 4]), dynamic([8]), [dynamic([8], 0)], 32,
                  instructions=[call(1, 1, 4, 4), call(0, 0, 2, 1)])
    method.set_input(np.ones(8, np.float32), 0)
    method.execute()
    method.set_input(from_blob(np.ones(3, np.float32), [1, 3]), 0)
    assert sizes_of(method, 1, 1) == [0]
    method.execute()
    assert sizes_of(method, 4, 1) == [0] and sizes_of(method, 1, 1) == [3]


def test_a_view_of_a_constant_is_constant():
    constants = {"constant_buffer": [{}, {"storage": np.arange(8, dtype="f4").tobytes()}]}
    source = dynamic([2, 4], data_buffer_idx=1)

    def made(instructions):
        values = [source, dynamic([8]), {"val": ("IntList", {"items": [3]})}, int_value(-1),
                  dynamic([8], 0)]
        operators = [VIEW, "aten::relu.out"]
        found = program(plan(values, instructions, operators, [], [1], [32]), **constants)
        return load_with_exact_memories(Program.load(BufferDataLoader(aligned(found))), "forward")

    method = made([call(0, 0, 2, 1)])
    method.execute()
    assert list(method.get_output(0).data) == list(range(8))
    with pytest.raises(Error, match=r"InvalidProgram \(0x23\): instruction 1: .*argument out: is"):
        made([call(0, 0, 2, 1), call(1, 4, 1, 1)])


def test_a_constant_that_is_a_view_of_itself_is_constant():
    values = [tensor([4], 0), tensor([4], data_buffer_idx=1), {"val": ("IntList", {"items": [3]})},
              int_value(-1)]
    found = program(plan(values, [call(0, 1, 2, 1), call(1, 0, 1, 1)], [VIEW, "aten::relu.out"], [0],
                         [1], [16]), constant_buffer=[{}, {"storage": bytes(16)}])
    with pytest.raises(Error, match=r"InvalidProgram \(0x23\): instruction 1: .*argument out: is"):
        load_with_exact_memories(Program.load(BufferDataLoader(aligned(found))), "forward")


def test_a_tensor_with_elements_has_data():
    """Value 1 becomes a view of value 2 before value 2 becomes a view without elements."""
    values = [tensor([4], 0), tensor([4]), dynamic([4]), dynamic([0]),
              {"val": ("IntList", {"items": [5]})}, int_value(-1)]
    found = program(plan(values, [call(1, 0, 1, 1), call(0, 2, 4, 1), call(0, 3, 4, 2)],
                         [VIEW, "aten::relu.out"], [0], [0], [16]))
    with pytest.raises(Error, match=r"NotSupported .*before its source"):
        load_with_exact_memories(Program.load(BufferDataLoader(aligned(found))), "forward")


def test_a_view_with_a_larger_bound_than_its_source_is_limited():
    method = view(dynamic([2, 4], 0), dynamic([64]), [dynamic([64], 32)], 512,
                  instructions=[call(1, 4, 1, 1)] + [call(0, 0, 2, 1)], inputs=(4,))
    assert sizes_of(method, 1, 1) == [0]
    assert records.resize(method, 1, 9) == 0x10
    assert records.resize(method, 1, 8) == 0
    method.set_input(np.ones(64, np.float32), 0)
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): instruction 0: aten::relu.out: the si"):
        method.execute()


@pytest.mark.parametrize(("source", "out", "more", "instructions", "message"), [
    (tensor([4], 0), tensor([8]), [], None,
     r"InvalidArgument \(0x12\): instruction 0: .*a view of more elements than its source"),
    (dynamic([2, 4], 0), dynamic([8], dtype=4), [], None,
     r"InvalidArgument \(0x12\): instruction 0: .*a view of another dtype than its source"),
    (dynamic([2, 4]), tensor([8]), [], None,
     r"NotSupported \(0x10\): instruction 0: .*a static view of a dynamic tensor outside the planned"),
    (int_value(3), dynamic([8]), [], None,
     r"InvalidProgram \(0x23\): instruction 0: .*a view that is not a tensor, or has no source"),
    (dynamic([2, 4], 0), int_value(3), [], None,
     r"InvalidProgram \(0x23\): instruction 0: .*a view that is not a tensor, or has no source"),
    (dynamic([2, 4], 0), dynamic([8]), [dynamic([2, 4], 32)], [call(0, 0, 2, 1), call(0, 4, 2, 1)],
     r"NotSupported \(0x10\): instruction 0: .*a view of different tensors"),
    (dynamic([2, 4], 0), dynamic([8]), [dynamic([8])], [call(0, 4, 2, 1), call(0, 0, 2, 4)],
     r"NotSupported \(0x10\): instruction 0: .*a view of different tensors, or made before its source"),
    (dynamic([2, 4], 0), dynamic([8]), [], [call(0, 0, 3, 1)],
     r"InvalidProgram \(0x23\): instruction 0: .*argument size: is of the wrong kind"),
])
def test_views_that_cannot_be_are_rejected(source, out, more, instructions, message):
    with pytest.raises(Error, match=message):
        view(source, out, more, 64, instructions=instructions, inputs=())


def test_views_of_each_other():
    """The views have only the data that one of them had, and nothing crashes."""
    method = view(dynamic([8], 0), dynamic([8], 0), instructions=[call(0, 0, 2, 1), call(0, 1, 2, 0)])
    method.set_input(np.arange(8, dtype=np.float32), 0)
    method.execute()
    assert list(method.get_output(0).data) == list(range(8))


# ---- variables

N, LIST, ADD, VIEW_COPY = 2, 3, "executorch_prim::add.Scalar", "aten::view_copy.out"


def numbers(values, instructions, operators):
    """Load x and out, of up to 2 by 4 floats, with `values` behind them."""
    return load([dynamic([2, 4], 0), dynamic([2, 4], 32), *values], instructions, operators, [X],
                [OUT], [64])


def test_a_list_with_a_variable():
    """The call is view(x, [n, -1]), where n counts the executions."""
    method = numbers([int_value(0), {"val": ("IntList", {"items": [N, 4]})}, int_value(-1),
                      int_value(1)],
                     [call(0, N, 5, N), call(1, X, LIST, OUT, OUT)], [ADD, VIEW_COPY])
    method.set_input(np.arange(8, dtype=np.float32), 0)
    method.execute()
    assert method.get_output(0).sizes() == (1, 8)
    method.execute()
    assert method.get_output(0).sizes() == (2, 4)
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): instruction 1: aten::view_copy.out"):
        method.execute()


def test_a_list_with_a_variable_that_becomes_a_float():
    method = numbers([int_value(0), {"val": ("IntList", {"items": [N, 4]})}, int_value(-1),
                      double_value(1.5)],
                     [call(0, N, 5, N), call(1, X, LIST, OUT, OUT)], [ADD, VIEW_COPY])
    method.set_input(np.arange(8, dtype=np.float32), 0)
    with pytest.raises(Error, match=r"InvalidProgram \(0x23\): instruction 1: .*argument size: is"):
        method.execute()


def test_a_number_that_others_read_is_one_variable():
    """The exporter never shares a constant with a result. In a program that does so, all share one
    variable."""
    method = numbers([int_value(1)], [call(0, N, N, N), call(0, N, N, N)], [ADD])
    method.set_input(np.zeros(8, np.float32), 0)
    method.execute()
    assert records.number(method, N) == 4


def test_a_loop_with_a_variable_ends_or_is_ended():
    """One loop computes n = n + 1 until n == 100, the other until n == -1, which never happens."""
    def count_to(end):
        return numbers([int_value(0), int_value(1), int_value(end), bool_value(False)],
                       [call(0, N, 3, N), call(1, N, 4, 5), jump(5, 0)],
                       [ADD, "executorch_prim::eq.Scalar"])

    method = count_to(100)
    method.set_input(np.zeros(8, np.float32), 0)
    method.execute()
    method = count_to(-1)
    method.set_input(np.zeros(8, np.float32), 0)
    with pytest.raises(Error, match=r"InvalidProgram \(0x23\): instruction \d: .*more than 10,000,000"):
        method.execute()


@pytest.mark.parametrize(("values", "arguments", "message"), [
    ([], (X, X, 99), r"InvalidProgram \(0x23\): value 99: there is no such value"),
    ([], (X, X, -1), r"InvalidProgram \(0x23\): value: there is no such value"),
    ([int_value(1)], (N, N, X), r"InvalidProgram \(0x23\): value 0: is written as a number"),
    ([int_value(1), string_value("a")], (N, N, 3), r"value 3: is written as a number"),
    ([int_value(1), {"val": ("IntList", {"items": [2]})}], (N, N, 3), r"value 3: is written as a"),
    ([int_value(1)], (X, N, N), r"instruction 0: .*argument a: is of the wrong kind"),
    ([int_value(1), string_value("a")], (3, N, N), r"instruction 0: .*argument a: is of the wrong"),
])
def test_numbers_that_cannot_be_written_are_rejected(values, arguments, message):
    with pytest.raises(Error, match=message):
        numbers(values, [call(0, *arguments)], [ADD])


def test_many_calls_with_one_long_list_are_not_supported():
    """Loading would take time proportional to calls times items."""
    long = {"val": ("IntList", {"items": [4] * 20000})}
    for first in ([], [call(0, N, N, N)]):
        one = [call(1, X, LIST, OUT, OUT)]
        numbers([int_value(0), long, int_value(1)], first + one, [ADD, VIEW_COPY])
        with pytest.raises(Error, match=r"NotSupported \(0x10\): .* too many items in lists of ints"):
            numbers([int_value(0), long, int_value(1)], first + one * 1000, [ADD, VIEW_COPY])


@pytest.mark.parametrize("items", [[99], [-1], [X], [2**40]])
def test_a_list_beside_a_variable_has_only_ints(items):
    values = [int_value(0), {"val": ("IntList", {"items": [N, *items]})}]
    with pytest.raises(Error, match=r"InvalidProgram \(0x23\)"):
        numbers(values, [call(0, N, N, N), call(1, X, LIST, OUT, OUT)], [ADD, VIEW_COPY])


# ---- accesses outside of a program's memories


def test_an_input_that_is_the_output_keeps_its_sizes():
    """In cat([x, x], out=x), the first check doubles the sizes of x, and the kernel would double them
    again."""
    method = load([dynamic([16, 4], 0), dynamic([16, 4], 256),
                   {"val": ("TensorList", {"items": [0, 0]})}, int_value(0)],
                  [call(0, 2, 3, 0, 0)], ["aten::cat.out"], [0], [0], [512])
    set_x(method, np.ones((8, 4), np.float32))
    with pytest.raises(Error, match=r"InvalidArgument .*an input or output that is also the output"):
        method.execute()
    assert sizes_of(method, 0) == [8, 4]


def test_an_output_that_stands_for_two_parts():
    """split(x, [1, 7]) writes both parts to one tensor, which finally has 7 elements. The next call
    must not read 14."""
    parts = [{"val": ("IntList", {"items": [3, 4]})}, int_value(1), int_value(7), int_value(0),
             {"val": ("TensorList", {"items": [OUT, OUT]})}]
    method = load([dynamic([8], 0), dynamic([8], 32), *parts], [call(0, X, 2, 5, 6, 6)],
                  ["aten::split_with_sizes_copy.out"], [X], [OUT], [64])
    method.set_input(np.ones(8, np.float32), 0)
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): .*an output is given for two parts"):
        method.execute()


def test_an_input_that_is_the_output_may_keep_its_sizes():
    method = load([dynamic([2, 4], 0)], [call(0, X, X, X)], ["aten::relu.out"], [X], [X], [32])
    set_x(method, np.array([[-1, 2]], np.float32))
    method.execute()
    assert list(method.get_output(0).data) == [0, 2]


@pytest.mark.parametrize("instruction", [call(0, 1, X, X), move(1, X)])
def test_an_unplanned_input_that_is_written_has_its_bound(instruction):
    method = load([dynamic([2, 4]), dynamic([2, 4], 0)], [instruction], ["aten::relu.out"], [X], [1],
                  [32])
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): input 0: .*32B requested, 8B"):
        method.set_input(from_blob(np.ones(2, np.float32), [1, 2]), 0)
    with pytest.raises(Error, match=r"input 0: cannot be written"):
        method.set_input(memoryview(bytes(32)).cast("f"), 0)
    method.set_input(np.full(8, -1, np.float32), 0)
    method.execute()


def test_a_number_that_is_moved_writes_to_no_memory():
    """The low half of the float looks like a reference into memory 4, the input's memory."""
    method = load([tensor([4]), tensor([4], 0), double_value(0.0),
                   double_value(float.fromhex("0x1.000000800000p0"))],
                  [call(0, 0, 1, 1), move(3, 2)], ["aten::relu.out"], [0], [1], [16])
    method.set_input(memoryview(bytes(16)).cast("f"), 0)
    method.execute()
    method.set_input(memoryview(bytes(16)).cast("f"), 0)


def test_a_tensor_without_dims_is_static():
    """Such a tensor has one element, even if its source has none."""
    for source in (dynamic([0], 0), dynamic([8])):
        with pytest.raises(Error, match=r"instruction 0: .*a (static view|view of more elements)"):
            view(source, dynamic([]), inputs=())


def test_memory_holds_all_that_share_it():
    """Value 1, of 4 floats, is a view of 16 floats."""
    both = view(tensor([16]), dynamic([4]), inputs=(0, 1))
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): input 1: .*64B requested, 16B"):
        both.set_input(np.ones(4, np.float32), 1)
    method = view(tensor([16]), dynamic([4]), inputs=())
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): output 0: .*64B requested, 16B"):
        method.set_output_data_ptr(np.ones(4, np.float32), 0)
    method.set_output_data_ptr(np.ones(16, np.float32), 0)


def test_an_item_without_memory_is_named():
    method = load([tensor([4]), {"val": ("TensorList", {"items": [0]})}], [], [], [0], [1], [])
    with pytest.raises(Error, match=r"InvalidState \(0x02\): item 0: has no memory"):
        method.get_output(0)[0]
    method.set_input(np.ones(4, np.float32), 0)
    assert list(method.get_output(0)[0].data) == [1] * 4
