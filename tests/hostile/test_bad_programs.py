"""Test programs with one fault that no exporter would write: each is rejected by name, with the same
text on the twin and on the boards."""

import time

import pytest
from picotorch import MINIMAL, BufferDataLoader, Error, Program
from picotorch.module import load_with_exact_memories
from picotorch.run.job import Job
from support import damage, programs
from support.flatbuffer_builder import NULL_VALUE, bool_value, double_value, int_value
from support.programs import call, plan, program, relu_plan, tensor, with_segments
from support.targets import HOST, aligned, run_script
from support.tiers import SWEPT_BOARDS

CASES = {}


def case(expected):
    """Register a function that makes a program. `expected` is the begin of the error's text."""
    def register(function):
        CASES[function.__name__] = (function, expected)
        return function
    return register


def relu(**changes):
    """Return the program of relu_plan with changed fields of its plan."""
    return program(relu_plan() | changes)


def relu_of(value):
    """Return the program of relu_plan with another input."""
    return relu(values=[value, tensor([4], 16)])


def relu_called(*args, op_index=0):
    return relu(chains=[{"instructions": [call(op_index, *args)]}])


def cat_plan(items, **changes):
    """Return the plan of out = cat([x, y]), with two tensors of two floats. Value 2 is the list."""
    values = [tensor([2], 0), tensor([2], 8), {"val": ("TensorList", {"items": items})},
              int_value(0), tensor([4], 16)]
    return plan(values, [call(0, 2, 3, 4, 4)], ["aten::cat.out"], [0, 1], [4], [32]) | changes


def permute(items, kind="IntList"):
    """Return out = permute_copy(x, items) of a 2x2 tensor; values 2 and 3 are the ints 1 and 0."""
    values = [tensor([2, 2], 0), tensor([2, 2], 16), int_value(1), int_value(0),
              {"val": (kind, {"items": items})}, double_value(1.0)]
    return program(plan(values, [call(0, 0, 4, 1, 1)], ["aten::permute_copy.out"], [0], [1], [32]))


def constants(offsets, segments, index=1, sizes=(4,)):
    """Return out = relu(constant `index`), with a constant segment, whose bytes are missing."""
    changed = relu_plan()
    changed["values"] = [tensor(sizes, data_buffer_idx=index), tensor([4], 16)]
    changed["inputs"] = []
    return program(changed, constant_segment={"segment_index": 0, "offsets": offsets},
                   segments=segments)


# ---- indexes


@case("InvalidProgram (0x23): operator 7: there is no such operator")
def operator_index_too_large():
    return relu_called(0, 1, 1, op_index=7)


@case("InvalidProgram (0x23): operator: there is no such operator")
def operator_index_negative():
    return relu_called(0, 1, 1, op_index=-1)


@case("InvalidProgram (0x23): operator 0: has no name")
def operator_without_name():
    return relu(operators=[{"overload": "out"}])


@case("InvalidProgram (0x23): value 9: there is no such value")
def argument_index_too_large():
    return relu_called(9, 1, 1)


@case("InvalidProgram (0x23): value: there is no such value")
def argument_index_negative():
    return relu_called(-1, 1, 1)


@case("InvalidProgram (0x23): value 5: there is no such value")
def input_index_too_large():
    return relu(inputs=[5])


@case("InvalidProgram (0x23): value 6: there is no such value")
def output_index_too_large():
    return relu(outputs=[6])


@case("InvalidProgram (0x23): value 8: is not a tensor")
def list_item_too_large():
    return program(cat_plan([0, 8]))


@case("InvalidProgram (0x23): value: is not a tensor")
def list_item_negative():
    return program(cat_plan([0, -2]))


@case("InvalidProgram (0x23): value 3: is not a tensor")
def list_item_no_tensor():
    return program(cat_plan([0, 3]))


# ---- arguments


@case("InvalidProgram (0x23): instruction 0: 3 arguments wanted, 1 given: no")
def too_few_arguments():
    return relu_called(0)


@case("InvalidProgram (0x23): instruction 0: 3 arguments wanted, 2 given: no")
def no_result_argument():
    return relu_called(0, 1)


@case("InvalidProgram (0x23): instruction 0: 3 arguments wanted, 4 given: more")
def too_many_arguments():
    return relu_called(0, 1, 1, 1)


@case("InvalidProgram (0x23): instruction 0: 3 arguments wanted, 0 given: no")
def no_arguments():
    return relu(chains=[{"instructions": [{"instr_args": ("KernelCall", {"op_index": 0})}]}])


@case("InvalidProgram (0x23): instruction 0: is empty")
def empty_instruction():
    return relu(chains=[{"instructions": [{}]}])


@case("InvalidProgram (0x23): instruction 0: aten::relu.out: argument self: is of the wrong kind")
def number_for_a_tensor():
    return program(relu_plan() | {"values": [int_value(3), tensor([4], 16)], "inputs": []})


@case("InvalidProgram (0x23): instruction 0: aten::relu.out: argument self: is of the wrong kind")
def none_for_a_tensor():
    return program(relu_plan() | {"values": [NULL_VALUE, tensor([4], 16)], "inputs": []})


@case("InvalidProgram (0x23): instruction 0: aten::relu.out: argument out: is of the wrong kind")
def constant_for_an_output():
    constant = tensor([4], data_buffer_idx=1)
    return program(relu_plan() | {"values": [tensor([4], 0), constant]},
                   constant_buffer=[{}, {"storage": bytes(16)}])


@case("InvalidProgram (0x23): instruction 0: aten::cat.out: argument tensors: is of the wrong kind")
def tensor_for_a_list():
    return program(cat_plan([0, 1], chains=[{"instructions": [call(0, 0, 3, 4, 4)]}]))


@case("InvalidProgram (0x23): instruction 0: aten::cat.out: argument dim: is of the wrong kind")
def bool_for_an_int():
    changed = cat_plan([0, 1])
    changed["values"][3] = bool_value(True)
    return program(changed)


@case("InvalidProgram (0x23): instruction 0: aten::permute_copy.out: argument dims: is of the wrong")
def int_list_with_a_float():
    return permute([2, 5])


@case("InvalidProgram (0x23): instruction 0: aten::permute_copy.out: argument dims: is of the wrong")
def int_list_with_an_index_too_large():
    return permute([2, 99])


@case("InvalidProgram (0x23): instruction 0: aten::permute_copy.out: argument dims: is of the wrong")
def int_list_with_an_index_beyond_32_bits():
    return permute([2, (1 << 32) + 3])


@case("InvalidProgram (0x23): instruction 0: aten::permute_copy.out: argument dims: is of the wrong")
def int_list_with_a_negative_index():
    return permute([2, -1])


@case("InvalidProgram (0x23): instruction 0: aten::permute_copy.out: argument dims: is of the wrong")
def bool_list_for_an_int_list():
    return permute([1, 0], "BoolList")


@case("InvalidArgument (0x12): instruction 0: aten::permute_copy.out: ")
def list_too_short():
    return permute([2])


@case("InvalidArgument (0x12): instruction 0: aten::relu.out: ")
def output_of_other_sizes():
    return relu_of(tensor([3], 0))


# ---- tensors


@case("InvalidProgram (0x23): a tensor has a negative size")
def negative_size():
    return relu_of(tensor([-4], 0))


@case("InvalidProgram (0x23): a tensor has a negative size or is too large")
def number_of_elements_overflows():
    return relu_of(tensor([65536, 65536], 0))


@case("InvalidProgram (0x23): a tensor has a negative size or is too large")
def number_of_elements_overflows_to_zero():
    return relu_of(tensor([1 << 30, 1 << 30, 1 << 30, 1 << 30], 0))


@case("InvalidProgram (0x23): a tensor has a negative size or is too large")
def bytes_overflow():
    return relu_of(tensor([(1 << 27) + 1], 0))


@case("NotSupported (0x10): tensors of more than 16 dims")
def rank_17():
    return relu_of(tensor([1] * 17, 0))


@case("NotSupported (0x10): dtype 21: tensors of this dtype")
def dtype_without_whole_bytes():
    return relu_of(tensor([4], 0, dtype=21))


@case("InvalidProgram (0x23): a dim order")
def dim_order_names_a_dim_twice():
    return relu_of(tensor([2, 2], 0, dim_order=[0, 0]))


@case("InvalidProgram (0x23): a dim order")
def dim_order_names_no_dim():
    return relu_of(tensor([2, 2], 0, dim_order=[0, 255]))


@case("InvalidProgram (0x23): a dim order")
def dim_order_too_short():
    return relu_of(tensor([2, 2], 0, dim_order=[0]))


@case("NotSupported (0x10): value 0: a tensor of dynamic shape without upper bound")
def dynamic_shape():
    return relu_of(tensor([4], 0, shape_dynamism=2))


@case("NotSupported (0x10): value 0: a storage offset")
def storage_offset():
    return relu_of(tensor([4], 0, storage_offset=1))


# ---- places


@case("InvalidProgram (0x23): value 0: lies outside the planned buffers")
def planned_offset_too_large():
    return relu_of(tensor([4], 20))


@case("InvalidProgram (0x23): value 0: lies outside the planned buffers")
def planned_offset_overflows():
    return relu_of(tensor([4], 0xFFFFFFF8))


@case("InvalidProgram (0x23): value 0: lies outside the planned buffers")
def planned_offset_of_64_bits():
    value = tensor([4], 0)
    value["val"][1]["allocation_info"]["memory_offset_high"] = 1
    return relu_of(value)


@case("InvalidProgram (0x23): value 0: lies outside the planned buffers")
def planned_buffer_that_there_is_not():
    return relu_of(tensor([4], 0, memory_id=2))


@case("InvalidProgram (0x23): value 0: lies outside the planned buffers")
def planned_buffer_of_a_huge_number():
    return relu_of(tensor([4], 0, memory_id=0xFFFFFFFF))


@case("InvalidProgram (0x23): value 0: lies outside the planned buffers")
def planned_buffer_0_is_reserved():
    return relu_of(tensor([4], 0, memory_id=0))


@case("NotSupported (0x10): value 0: planned memory not aligned to 4 bytes")
def planned_offset_at_an_odd_byte():
    return relu_of(tensor([3], 2))


@case("NotSupported (0x10): value 0: planned memory not aligned to 8 bytes")
def planned_offset_of_int64_at_a_multiple_of_4():
    return relu_of(tensor([3], 4, dtype=4))


@case("InvalidProgram (0x23): planned buffer 0: has a negative size")
def planned_buffer_of_negative_size():
    return relu(non_const_buffer_sizes=[0, -32])


@case("NotSupported (0x10): planned buffer 0: is too large")
def planned_buffer_beyond_what_references_reach():
    return relu(non_const_buffer_sizes=[0, (1 << 30) + 8])


@case("NotSupported (0x10): planned buffer 0: is too large")
def planned_buffer_of_64_bits():
    return relu(non_const_buffer_sizes=[0, 1 << 40])


@case("NotSupported (0x10): too many planned buffers")
def planned_buffers_without_number():
    return relu(non_const_buffer_sizes=[0] * 40)


@case("InvalidProgram (0x23): constant 1: lies outside its segment")
def constant_outside_its_segment():
    return constants([0, 8], [{"offset": 0, "size": 0}])


@case("InvalidProgram (0x23): constant 5: there is no such constant")
def constant_that_there_is_not():
    return constants([0, 0], [{"offset": 0, "size": 0}], index=5)


@case("InvalidProgram (0x23): segment 0: lies outside the file")
def segment_outside_the_file():
    return constants([0, 0], [{"offset": 0, "size": 1 << 20}])


@case("InvalidProgram (0x23): segment 0: lies outside the file")
def segment_whose_end_overflows():
    return constants([0, 0], [{"offset": (1 << 64) - 8, "size": 16}])


@case("InvalidProgram (0x23): segment 0: there is no such constant segment")
def constant_segment_that_there_is_not():
    return constants([0, 0], [])


@case("InvalidProgram (0x23): constant 1: has too few bytes")
def inline_constant_too_short():
    return program(relu_plan() | {"values": [tensor([4], data_buffer_idx=1), tensor([4], 16)],
                                  "inputs": []},
                   constant_buffer=[{}, {"storage": bytes(15)}])


def initial(index, offsets, size, entry=0):
    """Return a program where x has initial value `index` of a mutable segment. The segment has these
    offsets and no bytes."""
    extra = {"mutable_data_segments_idx": entry}
    value = tensor([4], 0, data_buffer_idx=index, extra_tensor_info=extra)
    return program(relu_plan() | {"values": [value, tensor([4], 16)], "inputs": []},
                   mutable_data_segments=[{"segment_index": 0, "offsets": offsets}],
                   segments=[{"offset": 0, "size": size}])


@case("InvalidProgram (0x23): initial value 1: lies outside its segment")
def initial_value_outside_its_segment():
    return initial(1, [0, 0], 0)


@case("InvalidProgram (0x23): initial value 1: lies outside its segment")
def initial_value_whose_end_overflows():
    return initial(1, [0, (1 << 64) - 8], 0)


@case("InvalidProgram (0x23): initial value 1: lies outside its segment")
def initial_value_far_below_its_segment():
    """The rest of the segment behind the value has a size beyond 30 bits."""
    return initial(1, [0, 1 << 63], 0)


@case("InvalidProgram (0x23): value 3: there is no such initial value")
def initial_value_that_there_is_not():
    return initial(3, [0, 0], 0)


@case("InvalidProgram (0x23): entry 7: there is no such mutable data segment")
def mutable_segment_that_there_is_not():
    return initial(1, [0, 0], 0, entry=7)


# ---- the program


@case("InvalidProgram (0x23): no method in it")
def no_method():
    return program()


@case("NotSupported (0x10): a schema version other than 0")
def later_schema():
    return program(relu_plan(), version=1)


def jump(condition, destination):
    fields = {"cond_value_index": condition, "destination_instruction": destination}
    return {"instr_args": ("JumpFalseCall", fields)}


def move(source, target):
    return {"instr_args": ("MoveCall", {"move_from": source, "move_to": target})}


def instructions(*items):
    """Return a program of relu_plan's values, a False, and these instructions."""
    return relu(values=[*relu_plan()["values"], bool_value(False)],
                chains=[{"instructions": list(items)}])


@case("InvalidProgram (0x23): instruction 9: there is no such destination of a jump")
def jump_beyond_the_end():
    return instructions(jump(2, 9))


@case("InvalidProgram (0x23): instruction: there is no such destination of a jump")
def jump_before_the_start():
    return instructions(jump(2, -1))


@case("InvalidProgram (0x23): value 9: there is no such value")
def jump_on_no_value():
    return instructions(jump(9, 0))


@case("InvalidProgram (0x23): instruction 0: ")
def jump_on_a_float_tensor():
    return instructions(jump(0, 0))


@case("InvalidProgram (0x23): instruction 0: ")
def jump_that_never_ends():
    return instructions(jump(2, 0))


@case("InvalidProgram (0x23): method: has no chains")
def no_chains():
    return relu(chains=None)


@case("InvalidProgram (0x23): instruction 0: frees a value that is not a tensor")
def free_of_a_bool():
    return instructions({"instr_args": ("FreeCall", {"value_index": 2})})


@case("InvalidProgram (0x23): value 9: there is no such value")
def free_of_no_value():
    return instructions({"instr_args": ("FreeCall", {"value_index": 9})})


@case("NotSupported (0x10): too many jumps across too many instructions")
def jumps_to_and_fro():
    forth, back = jump(2, 2999), jump(2, 1)
    return instructions(*[forth, back] * 1500)


@case("InvalidProgram (0x23): value 9: there is no such value")
def move_of_no_value():
    return instructions(move(9, 0))


@case("NotSupported (0x10): instruction 0: ")
def move_to_a_bool():
    return instructions(move(0, 2))


@case("NotSupported (0x10): instruction 0: ")
def move_to_a_constant():
    constant = tensor([4], data_buffer_idx=1)
    return program(relu_plan() | {"values": [tensor([4], 0), constant],
                                  "chains": [{"instructions": [move(0, 1)]}]},
                   constant_buffer=[{}, {"storage": bytes(16)}])


@case("InvalidProgram (0x23): its segments begin in its tables")
def segments_over_the_tables():
    return with_segments(relu(), bytes(64), base=64)


@case("NotSupported (0x10): more than 65535 values")
def too_many_values():
    return relu(values=[int_value(3)] * 65536, inputs=[], outputs=[])


@case("InvalidProgram (0x23): byte ")
def sizes_that_many_dynamic_tensors_have():
    value = tensor([1] * 16800, shape_dynamism=1, dim_order=[0])
    return relu(values=[*relu_plan()["values"], *[value] * 16000])


@case("InvalidProgram (0x23): lists that need more than 128 MiB")
def lists_that_many_instructions_name():
    return program(cat_plan([0] * 8000, chains=[{"instructions": [call(0, 2, 3, 4, 4)] * 5000}]))


@case("InvalidProgram (0x23): byte ")
def tables_that_are_shared_again_and_again():
    """The file of 13 KB has a thousand plans, each with a thousand chains of a thousand
    instructions."""
    chain = {"instructions": [call(0, 0, 1, 1)] * 1000}
    return program(*[relu_plan() | {"chains": [chain] * 1000}] * 1000)


@case("InvalidProgram (0x23): byte ")
def table_that_contains_itself():
    """The offset of the vector of plans refers back to the root."""
    data = bytearray(relu())
    root = int.from_bytes(data[:4], "little")
    vtable = root - int.from_bytes(data[root : root + 4], "little", signed=True)
    field = root + int.from_bytes(data[vtable + 6 : vtable + 8], "little")
    vector = field + int.from_bytes(data[field : field + 4], "little")
    data[vector + 4 : vector + 8] = ((vector - root) % 2**32).to_bytes(4, "little")
    return bytes(data)


# ---- outcomes


@pytest.mark.parametrize("name", CASES)
def test_is_rejected_by_name_and_at_once(name):
    make, expected = CASES[name]
    data = make()
    start = time.process_time()
    result = run_script("damaged.py", {"model0": data}, HOST)
    assert time.process_time() - start < damage.SECONDS
    assert result.lines[0].startswith(f"0 {expected}"), result.lines


def test_the_programs_that_the_bad_ones_are_made_from_are_good():
    for data in (relu(), program(cat_plan([0, 1])), permute([2, 3]), programs.two_buffers(),
                 constants([0, 0], [{"offset": 0, "size": 0}], sizes=(0,), index=1)):
        assert damage.outcome(data) in ("ok", "InvalidArgument")


@pytest.mark.thorough
@pytest.mark.reliability
@pytest.mark.parametrize("board", SWEPT_BOARDS)
def test_a_board_reports_the_same(board):
    sections = {f"model{i}": make() for i, (make, _) in enumerate(CASES.values())}
    wanted = run_script("damaged.py", Job(sections), HOST)
    assert run_script("damaged.py", Job(sections), board).lines == wanted.lines


def test_initial_values_are_copied_within_a_bound():
    """Many tensors have one long initial value, in one planned buffer."""
    size, count = 1 << 20, 129
    extra = {"mutable_data_segments_idx": 0}
    value = tensor([size], 0, dtype=1, data_buffer_idx=1, extra_tensor_info=extra)
    found = relu_plan() | {"non_const_buffer_sizes": [0, size]}
    found["values"] = [*found["values"], *[value] * count]
    flat = program(found, mutable_data_segments=[{"segment_index": 0, "offsets": [0, 0]}],
                   segments=[{"offset": 0, "size": size}])
    opened = Program.load(BufferDataLoader(aligned(with_segments(flat, bytes(size)))))
    with pytest.raises(Error, match=r"NotSupported .*initial values of more than 128 MiB together"):
        load_with_exact_memories(opened, "forward")


def test_a_vector_that_is_longer_than_the_file_is_not_read_unverified():
    """MINIMAL verification checks no length."""
    data = bytearray(relu())
    vectors = [at for at in range(0, len(data) - 4, 4)
               if data[at : at + 4] == len(relu_plan()["values"]).to_bytes(4, "little")]
    ended = 0
    for at in vectors:
        changed = data[:at] + b"\xff" * 4 + data[at + 4 :]
        try:
            meta = Program.load(BufferDataLoader(aligned(changed)), MINIMAL).method_meta()
            meta.num_instructions()
            for i in range(2):
                meta.input_tag(0)
                meta.attribute_tensor_meta(i)
        except Error:
            ended += 1
    assert ended > 0
