"""Test the positions of constants, unplanned tensors and planned buffers in memory."""

import functools
import subprocess

import numpy as np
import pytest
from _picotorch_c import ffi
from picotorch import (
    BufferDataLoader,
    Error,
    FileDataLoader,
    FlatTensorDataMap,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Module,
    Program,
    files,
)
from picotorch.boards.boards import load_board
from picotorch.host.request import Request
from picotorch.host.values import TENSOR, Values
from picotorch.module import load_with_exact_memories
from picotorch.run import emulator, running
from picotorch.run.job import Job
from support import fixture_store, records
from support.targets import BOARDS, HOST, SCRIPT_BOARDS, aligned, run_script

pytestmark = pytest.mark.check

ALIGNED = {"aligned_8": (8, 8), "aligned_16": (16, 16), "aligned_128": (64, 128),
           "wide_alignment": (4096, 64), "linear_5": (128, 16)}


def address(buffer):
    return np.frombuffer(buffer, np.uint8).ctypes.data


def constant_positions(program):
    """Return the positions in the file of the constants of a program's first method."""
    return [info.offset for info, _ in constants_of(program)]


@pytest.mark.parametrize("name", ALIGNED)
def test_constants_are_where_the_exporter_aligned_them(name):
    segments, constants = ALIGNED[name]
    data = aligned(fixture_store.load(name).pte)
    program = Program.load(BufferDataLoader(data))
    assert program.library.c.constant_segment % segments == 0
    positions = constant_positions(program)
    assert len(positions) > 1
    start = program.library.c.constant_segment
    assert all((position - start) % constants == 0 for position in positions)


@pytest.mark.parametrize("name", [*ALIGNED, "inline_constants", "external_weights"])
def test_the_twin_uses_constants_where_they_lie(name):
    """The address of every constant's data is inside the file."""
    fixture = fixture_store.load(name)
    files = [aligned(data) for data in (fixture.pte, *fixture.data)]
    module = Module(files[0], files[1:] or None)
    method = module.load_method()
    c = method.library._m.c
    found = set()
    for info, value in constants_of(module.program):
        reference = records.value_record(method, value)[0]
        memory, offset = reference >> 25, (reference & (1 << 25) - 1) << 2
        start = int(ffi.cast("uintptr_t", c.memory[memory]))
        assert c.memory_size[memory] >= offset + info.nbytes()
        assert any(address(file) <= start + offset < address(file) + len(file) for file in files)
        found.add(memory)
    assert found


def constants_of(program):
    """Return (TensorInfo, index of the value) of the constants of a program's first method."""
    meta = program.method_meta(program.method_names[0])
    values = Values(program, meta.plan)
    return [(values.tensor(i), i) for i in range(len(values))
            if values.kind(i) == TENSOR and values.tensor(i).is_constant()]


def test_a_file_that_can_be_seen_in_place_is_not_copied(monkeypatch):
    """Files in ROMFS behave so: open() returns their bytes in flash."""
    flash = aligned(fixture_store.load("linear_5").pte).toreadonly()
    monkeypatch.setattr(files, "open", lambda path, mode: memoryview(flash), raising=False)
    loader = FileDataLoader("/rom/model.pte")
    assert address(loader.buffer) == address(flash)
    run = fixture_store.load("linear_5").runs[0]
    method = load_with_exact_memories(Program.load(loader), "forward")
    method.set_inputs([aligned(value.tobytes()) for value in run.inputs])
    method.execute()
    np.testing.assert_allclose(list(method.get_output(0).data), run.expected[0].reshape(-1),
                               rtol=1e-5)


@functools.cache
def in_place_job():
    constant, unplanned = fixture_store.load("linear_5"), fixture_store.load("unplanned_io")
    job = Job({"model": constant.pte, "in0": constant.runs[0].inputs[0].tobytes(),
               "unplanned": unplanned.pte, "in1": unplanned.runs[0].inputs[0].tobytes()})
    weight = next(info for info, _ in constants_of(Program.load(BufferDataLoader(
        aligned(constant.pte)))) if len(info.sizes()) == 2)
    job.add_settings("settings", {"at": weight.offset, "nbytes": weight.nbytes()})
    return job


@pytest.mark.parametrize("target", [HOST, *SCRIPT_BOARDS])
def test_constants_and_unplanned_tensors_are_used_in_place(target):
    """The next execution sees changes made after load or set_input."""
    files = run_script("in_place.py", Job(dict(in_place_job()._sections)), target).files
    files = {name: np.frombuffer(data, np.float32) for name, data in files.items()}
    expected = fixture_store.load("linear_5").runs[0].expected[0].reshape(-1)
    np.testing.assert_allclose(files["constant_before"], expected, rtol=1e-5)
    assert (files["constant_after"] != files["constant_before"]).any()
    expected = fixture_store.load("unplanned_io").runs[0].expected[0].reshape(-1)
    np.testing.assert_allclose(files["input_before"], expected, rtol=1e-5)
    np.testing.assert_array_equal(files["input_after"], np.ones_like(expected))  # relu(0 * 2 + 1)
    np.testing.assert_array_equal(files["input_there"], files["input_after"])


# ---- planned buffers in the memories of a board


@pytest.mark.parametrize("name", BOARDS)
def test_arenas_lie_in_the_memories_of_board_toml(name):
    board = load_board(name)
    symbols = subprocess.run(["arm-none-eabi-nm", emulator.firmware_path(board)],
                             capture_output=True, text=True, check=True).stdout.splitlines()
    at = {line.split()[2]: int(line.split()[0], 16) for line in symbols if len(line.split()) == 3}
    for arena in board.arenas.values():
        memory = board.memories[arena.memory]
        start = at[f"arena_{arena.name}"]
        assert memory.address <= start
        assert start + arena.size <= memory.address + memory.size


def test_planned_buffers_have_arenas_in_different_memories():
    board = load_board("mps3-an547")
    assert [board.planned_arena(i).memory for i in range(4)] == ["external", "ram", "dtcm", "external"]
    board = load_board("netduinoplus2")
    assert [board.planned_arena(i).name for i in range(3)] == ["planned"] * 3


def request(name, **sizes):
    fixture = fixture_store.load(name)
    return Request(fixture.pte, name, fixture.runs[0].inputs, pool_size=4096, temp_size=1024,
                   **sizes)


@pytest.mark.parametrize("board", [HOST, *BOARDS])
@pytest.mark.parametrize("name", ["planned_in_two", "planned_in_three"])
def test_planned_buffers_in_several_memories(name, board):
    result = running.run(request(name), board)
    running.check_result(result)
    assert len(result.planned) == (2 if name == "planned_in_two" else 3)
    expected = fixture_store.load(name).runs[0].expected[0]
    np.testing.assert_allclose(result.outputs[0], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("board", "index", "text"), [
    ("mps2-an386", 1, "planned buffer 1: 300000B requested, 262144B available; the board has no more "
                      "in arena planned1, which is in its memory ram"),
    ("mps3-an547", 2, "planned buffer 2: 300000B requested, 262144B available; the board has no more "
                      "in arena planned2, which is in its memory dtcm")])
def test_an_arena_that_is_too_small_is_named_with_its_memory(board, index, text):
    result = running.run(request("planned_in_three", planned_sizes={index: 300_000}), board)
    assert (result.status, result.message) == ("MemoryAllocationFailed", text)


def test_size_reports_the_contents_of_each_arena(call):
    path = fixture_store.load("planned_in_three").path
    for board, arenas in (("mps3-an547", ["planned", "planned1", "planned2"]),
                          ("netduinoplus2", ["planned"])):
        status, out, _ = call("size", path, "--board", board)
        assert status == 0
        _, memories = out.split(f"Memories of {board}")
        names = [row.split()[0] for row in memories.splitlines() if row]
        assert [name for name in names if name.startswith("planned")] == arenas


def test_boards_lists_the_arenas(call):
    status, out, _ = call("boards")
    assert status == 0
    _, memories = out.split("Memories in KiB\n")
    row = next(line for line in memories.splitlines() if line.startswith("mps3-an547"))
    assert row.endswith("15360 external, 256 ram, 256 dtcm")


# ---- mutable buffers that the program leaves unplanned


def state_method():
    """Load a method that adds its input to "total" and returns twice the sum. "total" has no memory
    yet."""
    data = aligned(fixture_store.load("unplanned_state").pte)
    program = Program.load(BufferDataLoader(data))
    meta = program.method_meta("forward")
    assert [info.name() for info in meta.unplanned_attributes()] == ["total"]
    planned = HierarchicalAllocator([aligned(meta.memory_planned_buffer_size(0))])
    method = Method(MemoryManager(MemoryAllocator(aligned(4096)), planned))
    method.load(program)
    return method


def add(method, *values):
    method.set_input(aligned(np.array(values, np.float32).tobytes()), 0)
    method.execute()
    return list(method.get_output(0).data)


def test_state_lives_where_the_caller_wants_it():
    """Two methods may share the state."""
    methods = state_method(), state_method()
    state = aligned(np.array([1, 2], np.float32).tobytes())
    for method in methods:
        method.set_attribute_data_ptr(state, "total")
    assert add(methods[0], 10, 20) == [22, 44]
    assert add(methods[1], 100, 200) == [222, 444]
    assert list(np.frombuffer(state, np.float32)) == [111, 222]
    assert list(methods[0].get_attribute("total").data) == [111, 222]
    methods[0].reset_state()
    assert list(np.frombuffer(state, np.float32)) == [111, 222]


def test_state_without_memory_is_rejected():
    method = state_method()
    method.set_input(aligned(8), 0)
    with pytest.raises(Error, match="InvalidState .*has no memory; set the memory"):
        method.execute()
    with pytest.raises(Error, match="InvalidState .*total: has no memory"):
        method.get_attribute("total")


@pytest.mark.parametrize(("size", "shift", "name", "text"), [
    (8, 0, "x", "NotFound .*x: no parameter or buffer of this name"),
    (4, 0, "total", "InvalidArgument .*total: 8B requested, 4B available"),
    (8, 4, "total", "InvalidArgument .*total: does not start at a multiple of 8 bytes")])
def test_memory_that_does_not_do_for_state(size, shift, name, text):
    memory = aligned(64)[shift : shift + size]
    with pytest.raises(Error, match=text):
        state_method().set_attribute_data_ptr(memory, name)


def test_memory_of_others_does_not_do_for_state():
    method = state_method()
    with pytest.raises(Error, match="total: shares bytes with"):
        method.set_attribute_data_ptr(method.manager.method_allocator.buffer, "total")
    with pytest.raises(Error, match="total: cannot be written"):
        method.set_attribute_data_ptr(aligned(8).toreadonly(), "total")
    program = Program.load(BufferDataLoader(aligned(fixture_store.load("external_state").pte)))
    files = [FlatTensorDataMap.load(BufferDataLoader(aligned(data)))
             for data in fixture_store.load("external_state").data]
    planned = load_with_exact_memories(program, "forward", data_map=files[0])
    with pytest.raises(Error, match="InvalidState .*total: has planned memory"):
        planned.set_attribute_data_ptr(aligned(8), "total")


def test_initial_values_of_a_data_file_come_back():
    fixture = fixture_store.load("external_state")
    files = FlatTensorDataMap.load(BufferDataLoader(aligned(fixture.data[0])))
    program = Program.load(BufferDataLoader(aligned(fixture.pte)))
    method = load_with_exact_memories(program, "forward", data_map=files)
    first = add(method, *fixture.runs[0].inputs[0])
    assert add(method, *fixture.runs[0].inputs[0]) != first
    method.reset_state()
    assert add(method, *fixture.runs[0].inputs[0]) == first
