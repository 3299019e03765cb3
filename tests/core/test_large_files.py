"""Test programs, data files and planned buffers above 128 MiB, which only a host supports. Bytes beyond
the reach of a reference are in further memories."""

import struct

import numpy as np
import pytest
from picotorch import Error, HierarchicalAllocator, MemoryAllocator, MemoryManager, Module
from picotorch.compile import ptm_writer
from picotorch.host.request import Request
from picotorch.host.twin import open_data, open_program
from picotorch.module import load_with_exact_memories
from picotorch.run import running
from picotorch.run.job import Job
from support import file_parts, fixture_store, flatbuffer_builder, programs
from support.targets import aligned, run_script

REACH = 1 << 27
TABLES_SIZE, SEGMENT_BASE = 16, 24  # positions of fields of the header
DATA_TABLES, DATA_TABLES_SIZE, DATA_SEGMENT_BASE = 16, 24, 32  # positions in the header of a data file
BEYOND = "planned buffer 0: is too large"


def spread(file, base, field=SEGMENT_BASE):
    """Move a file's segments to `base`, with zeros in front of them."""
    before = struct.unpack_from("<Q", file, field)[0]
    found = bytearray(base) + file[before:]
    found[:before] = file[:before]
    struct.pack_into("<Q", found, field, base)
    return bytes(found)


def planned_later(pte, by, change=lambda plan: None):
    """Return a program whose first planned buffer begins with `by` unused bytes."""
    def change_all(tables):
        for plan in tables["execution_plan"]:
            plan["non_const_buffer_sizes"][1] += by
            tensors = [table for kind, table in (value["val"] for value in plan["values"])
                       if kind == "Tensor"]
            for place in (tensor.get("allocation_info") for tensor in tensors):
                if place and place["memory_id"] == 1:
                    place["memory_offset_low"] = place.get("memory_offset_low", 0) + by
            change(plan)

    return file_parts.program(pte).edited(change_all)


def run(fixture, pte, data=None, **memories):
    """Return the result of a fixture's first run, with another program and other data files."""
    first = fixture.runs[0]
    return running.run(Request(pte, fixture.name, first.inputs, first.method,
                               data=data or fixture.data, **memories), running.HOST)


def check_same(result, same):
    assert result.code == 0, result.message
    for output, expected in zip(result.outputs, same.outputs, strict=True):
        np.testing.assert_array_equal(output, expected)
    assert len(result.pool) == len(same.pool)


@pytest.mark.parametrize("base", [REACH - 128, 2 * REACH])
@pytest.mark.parametrize("name", ["ds_cnn", "dynamic_unplanned_io", "external_some"])
def test_constants_lie_anywhere(name, base):
    fixture = fixture_store.load(name)
    check_same(run(fixture, spread(fixture.pte, base)), run(fixture, fixture.pte))


def test_initial_values_lie_anywhere():
    fixture = fixture_store.load("counter_initialized")
    method = Module(spread(fixture.pte, REACH)).load_method("forward")
    for _ in range(2):
        for one in fixture.runs:
            method.set_input(one.inputs[0], 0)
            method.execute()
            np.testing.assert_array_equal(method.get_output(0).numpy(), one.expected[0])
        method.reset_state()


def large_table(rows):
    """Return the program of fixture embedding with this many rows of zeros before its own."""
    parts = file_parts.program(fixture_store.load("embedding").pte)
    more, values = 12 * rows, parts.tables["execution_plan"][0]["values"]
    (table,) = [i for i, value in enumerate(values) if value["val"][0] == "Tensor"
                and value["val"][1].get("data_buffer_idx")]

    def change(tables):
        tables["execution_plan"][0]["values"][table]["val"][1]["sizes"][0] += rows
        tables["segments"][0]["size"] += more

    sizes = {"segment_data_size": parts.header["segment_data_size"] + more}
    pte = parts.edited(change, **sizes)
    start = struct.unpack_from("<Q", pte, SEGMENT_BASE)[0]
    start += parts.tables["constant_segment"]["offsets"][1]
    return pte[:start] + bytes(more) + pte[start:]


def test_a_constant_may_be_larger_than_a_reference_reaches():
    fixture, rows = fixture_store.load("embedding"), 12_000_000
    request = Request(large_table(rows), "embedding", [fixture.runs[0].inputs[0] + rows])
    result = running.run(request, running.HOST)
    assert result.code == 0, result.message
    np.testing.assert_array_equal(result.outputs[0], fixture.runs[0].expected[0])


# ---- data files


@pytest.mark.parametrize("base", [REACH - 64, 2 * REACH])
@pytest.mark.parametrize("name", ["external_two_files", "external_state"])
def test_external_tensors_lie_anywhere(name, base):
    fixture = fixture_store.load(name)
    data = [spread(file, base, DATA_SEGMENT_BASE) for file in fixture.data]
    check_same(run(fixture, fixture.pte, data), run(fixture, fixture.pte))


def test_a_tensor_of_a_data_file_may_be_larger_than_a_reference_reaches():
    rows = REACH // 32 + 1
    layout = {"scalar_type": programs.FLOAT, "sizes": [rows, 8], "dim_order": [0, 1]}
    weights = np.zeros((rows, 8), np.float32)
    weights[-1] = range(8)
    data = flatbuffer_builder.build_data(
        {"version": 0, "segments": [{"offset": 0, "size": weights.nbytes}],
         "named_data": [{"key": "w", "segment_index": 0, "tensor_layout": layout}]},
        weights.tobytes())
    values = [programs.external_tensor([rows, 8]), flatbuffer_builder.int_value(0),
              flatbuffer_builder.int_value(rows - 1), programs.tensor([8], 0)]
    found = programs.plan(values, [programs.call(0, 0, 1, 2, 3, 3)], ["aten::select_copy.int_out"],
                          [], [3], [32])
    method = load_with_exact_memories(open_program(programs.program(found)), "forward",
                                      data_map=open_data([data]))
    method.execute()
    assert list(method.get_output(0).data) == list(range(8))


# ---- planned buffers


@pytest.mark.parametrize("by", [REACH - 64, 2 * REACH])
@pytest.mark.parametrize("name", ["int8_ds_cnn", "mixed_unplanned", "dynamic_batch"])
def test_planned_tensors_lie_anywhere(name, by):
    fixture = fixture_store.load(name)
    check_same(run(fixture, planned_later(fixture.pte, by)), run(fixture, fixture.pte))


def test_state_beyond_the_reach():
    fixture = fixture_store.load("counter_initialized")
    method = Module(planned_later(fixture.pte, REACH)).load_method("forward")
    for _ in range(2):
        for one in fixture.runs:
            method.set_input(one.inputs[0], 0)
            method.execute()
            np.testing.assert_array_equal(method.get_output(0).numpy(), one.expected[0])
            assert not method.get_output(0).data.readonly
        method.reset_state()


def test_all_three_are_beyond_the_reach():
    fixture = fixture_store.load("external_some")
    pte = spread(planned_later(fixture.pte, REACH - 16), REACH - 32)
    data = [spread(file, REACH - 64, DATA_SEGMENT_BASE) for file in fixture.data]
    check_same(run(fixture, pte, data), run(fixture, fixture.pte))


def in_place(count):
    """Return x = relu(x), planned, with `count` floats."""
    x = [programs.tensor([count], 0), programs.tensor([count], 0)]
    return programs.program(programs.plan(x, [programs.call(0, 0, 1, 1)], ["aten::relu.out"], [0], [1],
                                          [4 * count]))


def test_a_planned_tensor_may_be_larger_than_a_reference_reaches():
    x = np.zeros(REACH // 4 + 16, np.float32)
    x[-2:] = 7, -7
    method = load_with_exact_memories(open_program(in_place(len(x))), "forward")
    method.set_input(x, 0)
    method.execute()
    assert list(method.get_output(0).data[-3:]) == [0, 7, 0]


@pytest.mark.parametrize("by", [0, REACH - 8064])
def test_scratch_lies_apart_from_other_tensors_in_further_memories(by):
    """The output of an instruction begins at 8000, within reach. The test moves its scratch memory into
    the middle of the output."""
    def change(plan):
        args = plan["chains"][0]["instructions"][1]["instr_args"][1]["args"]
        out, scratch = (plan["values"][args[i]]["val"][1] for i in (-1, -3))
        scratch["sizes"] = [64]
        scratch["allocation_info"]["memory_offset_low"] = (
            out["allocation_info"]["memory_offset_low"] + 64)

    fixture = fixture_store.load("int8_ds_cnn")
    result = run(fixture, planned_later(fixture.pte, by, change))
    assert "instruction 1" in result.message
    assert "the scratch overlaps another tensor" in result.message


def test_a_ptm_file_keeps_what_the_program_needs():
    fixture = fixture_store.load("ds_cnn")
    ptm = ptm_writer.compile_ptm(spread(fixture.pte, REACH))
    assert ptm.data == ptm_writer.compile_ptm(fixture.pte).data


# ---- errors


def sized(*sizes):
    """Return relu_plan with planned buffers of these sizes."""
    return programs.program(programs.relu_plan() | {"non_const_buffer_sizes": [0, *sizes]})


def manager(sizes):
    """Return memories whose planned buffers use no memory until they are written."""
    planned = HierarchicalAllocator([aligned(size) for size in sizes])
    return MemoryManager(MemoryAllocator(aligned(4096)), planned)


def test_a_pool_too_small():
    fixture = fixture_store.load("ds_cnn")
    one, other = [run(fixture, pte, pool_size=64)
                  for pte in (spread(fixture.pte, 2 * REACH), fixture.pte)]
    assert one.code and (one.code, one.message) == (other.code, other.message)


@pytest.mark.thorough
def test_a_ptm_file_of_more_than_a_reference_reaches():
    with pytest.raises(Error, match="NotSupported.*.ptm files above 128 MiB"):
        ptm_writer.compile_ptm(large_table(12_000_000))


def test_tables_beyond_the_reach():
    pte = bytearray(spread(fixture_store.load("ds_cnn").pte, REACH + 4096))
    struct.pack_into("<Q", pte, TABLES_SIZE, REACH + 8)
    with pytest.raises(Error, match="NotSupported.*program: tables above 128 MiB"):
        open_program(bytes(pte))


def test_a_constant_outside_the_file():
    pte = spread(fixture_store.load("ds_cnn").pte, 2 * REACH)
    with pytest.raises(Error, match="InvalidProgram"):
        open_program(pte[:-64])


def test_tables_of_a_data_file_beyond_the_reach():
    data = bytearray(spread(fixture_store.load("external_weights").data[0], REACH + 4096,
                            DATA_SEGMENT_BASE))
    start = struct.unpack_from("<Q", data, DATA_TABLES)[0]
    struct.pack_into("<Q", data, DATA_TABLES_SIZE, REACH + 8 - start)
    with pytest.raises(Error, match="NotSupported.*data file: tables above 128 MiB"):
        open_data([bytes(data)])


def test_a_ptm_file_with_a_planned_buffer_beyond_the_reach():
    pte = planned_later(fixture_store.load("add_1").pte, REACH)
    with pytest.raises(Error, match="NotSupported.*.ptm files of planned buffers above 128 MiB"):
        ptm_writer.compile_ptm(pte)


def test_more_further_memories_than_references_have():
    sizes = [(1 << 30) - 16] * 4
    with pytest.raises(Error, match="NotSupported.*too many planned buffers and data files"):
        open_program(sized(*sizes)).load_method("forward", manager(sizes))


@pytest.mark.parametrize("size", [(1 << 30) + 8, (1 << 32) + 32, 1 << 62])
def test_a_planned_buffer_above_a_gibibyte(size):
    with pytest.raises(Error, match=f"NotSupported.*{BEYOND}"):
        open_program(sized(size)).load_method("forward", manager([64]))


@pytest.mark.parametrize("offset, high", [(REACH, 0), (2 * REACH - 4, 0), (0xFFFFFFF8, 0), (0, 1)])
def test_a_planned_tensor_outside_its_buffer(offset, high):
    value = programs.tensor([4], offset)
    value["val"][1]["allocation_info"]["memory_offset_high"] = high
    plan = programs.relu_plan() | {"non_const_buffer_sizes": [0, REACH + 8]}
    plan["values"] = [value, programs.tensor([4], 16)]
    with pytest.raises(Error, match="InvalidProgram.*value 0: lies outside the planned buffers"):
        load_with_exact_memories(open_program(programs.program(plan)), "forward")


@pytest.mark.parametrize("sizes, dtype", [
    ([REACH + 1], 1), ([REACH + 1], programs.FLOAT), ([(1 << 26) + 1], 10), ([1 << 16, 1 << 16], 1),
    ([0, REACH + 1], 1), ([1 << 30] * 4, programs.FLOAT)])
def test_a_planned_tensor_of_too_many_elements_or_bytes(sizes, dtype):
    plan = programs.relu_plan()
    plan["values"] = [programs.tensor(sizes, 0, dtype=dtype), programs.tensor([4], 16)]
    with pytest.raises(Error, match="InvalidProgram.*a tensor has a negative size or is too large"):
        load_with_exact_memories(open_program(programs.program(plan)), "forward")


def test_a_board_stays_within_the_reach():
    """The board rejects programs that the twin accepts."""
    plan = programs.relu_plan()
    plan["values"] = [programs.tensor([REACH // 4 + 1], 0), programs.tensor([4], 16)]
    job = Job({"model0": sized(REACH + 8), "model1": programs.program(plan)})
    lines = run_script("damaged.py", job, "mps2-an386").lines
    assert BEYOND in lines[0]
    assert "NotSupported" in lines[0]
    assert "InvalidProgram (0x23): a tensor has a negative size or is too large" in lines[1]


def test_a_file_of_a_gibibyte():
    pte = np.zeros(1 << 30, np.uint8)
    pte[:8] = np.frombuffer(fixture_store.load("add_1").pte, np.uint8, 8)
    with pytest.raises(Error, match="NotSupported.*program: has 1 GiB or more"):
        open_program(pte)
