"""Test memories that overlap, buffers of another kind, and a read-only input that a program writes, on
the twin and on the boards. Each has its error instead of undefined behaviour or a wrong result."""

import numpy as np
import pytest
from picotorch import (
    Backend,
    BufferDataLoader,
    Error,
    EventTracer,
    FileDataLoader,
    FlatTensorDataMap,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Module,
    Program,
    from_blob,
    register_backend,
    unregister_backend,
)
from picotorch.memory import LIMIT
from picotorch.module import load_with_exact_memories
from support import fixture_store, programs
from support.flatbuffer_builder import bool_value, int_value, string_value
from support.programs import FLOAT, call, plan, tensor
from support.targets import HOST, SCRIPT_BOARDS, SCRIPTS, aligned, grow_array, run_script
from test_delegates import two

RELU = [call(0, 0, 1, 1)]


def relu(values, inputs=(0,), outputs=(1,), planned=(32,), instructions=RELU):
    return programs.program(plan(values, instructions, ["aten::relu.out"], list(inputs),
                                 list(outputs), list(planned)))


def sections():
    """Return the programs by name; each computes relu of four floats or two ints."""
    planned = [tensor([4], 0), tensor([4], 16)]
    return {
        "relu": relu(planned),
        "relu_unplanned": relu([tensor([4]), tensor([4])], planned=[]),
        "relu_in_place": relu([tensor([4]), tensor([4], 0)], outputs=[1], planned=[16],
                              instructions=[call(0, 1, 0, 0)]),
        "move_in_place": relu([tensor([4]), tensor([4], 0)], outputs=[1], planned=[16],
                              instructions=[{"instr_args": ("MoveCall",
                                                            {"move_from": 1, "move_to": 0})}]),
        "jump": relu([tensor([4]), tensor([4], 0), bool_value(False)], outputs=[1], planned=[16],
                     instructions=[{"instr_args": ("JumpFalseCall", {
                         "cond_value_index": 2, "destination_instruction": 1})}, *RELU]),
        "relu_int": relu([tensor([2], 0, dtype=3), tensor([2], 16, dtype=3)]),
        "many_inputs": relu([tensor([4], 16 * i) for i in range(41)], range(40), [40], [41 * 16],
                            [call(0, 0, 40, 40)]),
        "two_buffers": programs.two_buffers(),
        "add_unplanned": programs.program(plan(
            [tensor([4]), tensor([4]), int_value(1), tensor([4])], [call(0, 0, 1, 2, 3, 3)],
            ["aten::add.out"], [0, 1], [3], [])),
        "large_ints": relu([*planned, int_value(2**29), int_value(2**40)], [2, 3], [2, 3]),
        "no_text": relu([*planned, string_value("text")], [], [2]).replace(b"text", b"\xff" * 4),
    }


@pytest.mark.parametrize("target", (HOST, *SCRIPT_BOARDS))
def test_each_misuse_has_its_error(target):
    result = run_script("misuse.py", sections(), target)
    assert result.lines == (SCRIPTS / "misuse.exp").read_text().splitlines()


def test_an_input_that_is_written_in_a_list_is_not_read_only():
    """unbind_copy writes to each tensor of its list, and one of them is the unplanned input."""
    values = [tensor([2, 4], 0), tensor([4], 32), tensor([4]), int_value(0),
              {"val": ("TensorList", {"items": [1, 2]})}]
    data = programs.program(plan(values, [call(0, 0, 3, 4, 4)], ["aten::unbind_copy.int_out"], [2],
                                 [1], [48]))
    method = load_with_exact_memories(Program.load(BufferDataLoader(data)), "forward")
    with pytest.raises(Error, match="InvalidArgument.* input 0: "):
        method.set_input(bytes(16), 0)
    method.set_input(bytearray(16), 0)
    method.execute()


OBJECTS = np.zeros(64, object)
PAIRS = np.zeros(64, [("number", np.int32), ("object", object)])


@pytest.mark.parametrize("give", [MemoryAllocator, EventTracer, BufferDataLoader,
                                  lambda memory: from_blob(memory, [8], FLOAT)])
@pytest.mark.parametrize("memory", [OBJECTS, PAIRS], ids=["objects", "structures"])
def test_references_to_objects_are_no_memory(give, memory):
    """When the array is freed, Python would use bytes written there as an address."""
    with pytest.raises(Error, match="InvalidType"):
        give(memory)
    method = load_with_exact_memories(
        Program.load(BufferDataLoader(sections()["relu_unplanned"])), "forward")
    for call_with in (method.set_input, method.set_output_data_ptr):
        with pytest.raises(Error, match="InvalidType"):
            call_with(memory, 0)


class Loader:
    """A loader of the user's own."""

    def __init__(self, buffer):
        self.buffer = buffer

    def explain(self, error):
        return "mine"


@pytest.mark.parametrize("load", [Program.load, FlatTensorDataMap.load])
@pytest.mark.parametrize("buffer", [
    None, "text", np.zeros(64, np.uint8)[::2], memoryview(bytes(64))[::-1],
], ids=["none", "text", "strided", "reversed"])
def test_a_loader_of_no_contiguous_bytes(load, buffer):
    with pytest.raises(Error, match="InvalidType .*is not a buffer of contiguous bytes"):
        load(Loader(buffer))


@pytest.mark.parametrize("pack_weights", [False, True], ids=["records", "packed"])
def test_a_pool_is_used_up_to_128_mib(pack_weights):
    """No reference reaches farther, since its upper bits name the memory."""
    program = Program.load(BufferDataLoader(fixture_store.load("int8_ds_cnn").pte))
    own = load_with_exact_memories(program, "forward", pack_weights=pack_weights).memory_report()
    used = own["method_pool"]["used"]
    start, behind = LIMIT - used & -8, own["packed"] // 2 if pack_weights else 8
    pool = MemoryAllocator(memoryview(bytearray(LIMIT + used)))
    pool.allocate(start + behind)
    planned = [bytearray(memory["size"]) for memory in own["planned"]]
    temp = MemoryAllocator(bytearray(own["temp"]["size"]), "temp memory")
    method = Method(MemoryManager(pool, HierarchicalAllocator(planned), temp))
    with pytest.raises(Error, match="NotSupported.* method pool: records above 128 MiB"):
        method.load(program, "forward", pack_weights)
    pool.reset(start)
    method.load(program, "forward", pack_weights)
    assert pool.used == start + used


# ---- memories that are resized

RESIZED = (SCRIPTS / "resized.exp").read_text().splitlines()
SMALLER = RESIZED[-3:]  # resized before load


def resize(target):
    programs = {name: sections()[name] for name in ("relu", "relu_unplanned")}
    return run_script("resized.py", programs | {"two": two()}, target).lines


@pytest.mark.parametrize("board", SCRIPT_BOARDS)
def test_a_memory_that_is_resized_behind_a_method_is_named(board):
    """MicroPython lets an array grow while something refers to it, and frees its old bytes."""
    assert resize(board) == RESIZED


def test_cpython_does_not_resize_passed_memory():
    lines = resize(HOST)
    assert lines.count("cannot be resized") == len([line for line in RESIZED if "unload" in line])
    assert [line for line in lines if line not in SMALLER and not line.endswith("ok")
            and line != "cannot be resized"] == []
    assert lines[-3:] == SMALLER


@pytest.mark.parametrize("name", ("program", "pool", "planned", "input"))
def test_an_array_that_numpy_resizes_is_noticed(name):
    pte = sections()["relu_unplanned" if name == "input" else "relu"]
    sizes = {"program": len(pte), "pool": 256, "planned": 32, "input": 16}
    memories = {each: np.zeros(size, np.uint8) for each, size in sizes.items()}
    memories["program"][:] = np.frombuffer(pte, np.uint8)
    loaded = Program.load(BufferDataLoader(memories["program"]))
    planned = [] if name == "input" else [memories["planned"]]
    method = Method(MemoryManager(MemoryAllocator(memories["pool"]), HierarchicalAllocator(planned)))
    method.load(loaded)
    method.set_input(memories["input"].view(np.float32) if name != "input" else memories["input"], 0)
    if name == "input":
        method.set_output_data_ptr(aligned(16), 0)
    method.execute()
    grow_array(memories[name])
    with pytest.raises(Error, match=r"InvalidState .*has been resized since it was passed"):
        method.execute()


@pytest.mark.parametrize("name", ("pool", "planned"))
def test_an_array_that_numpy_resizes_in_is_available_is_noticed(name):
    """The error comes before load has written to any memory."""
    memories = {"pool": np.zeros(384, np.uint8), "planned": np.zeros(64, np.uint8)}

    class Growing(Backend):
        def is_available(self):
            grow_array(memories[name])
            return True

    register_backend("Doubling", Growing())
    try:
        manager = MemoryManager(MemoryAllocator(memories["pool"]),
                                HierarchicalAllocator([memories["planned"]]))
        with pytest.raises(Error, match=r"InvalidState .*has been resized since it was passed"):
            Method(manager).load(Program.load(BufferDataLoader(aligned(two()))))
    finally:
        unregister_backend("Doubling")
    assert not memories["pool"].any()


def test_a_tensor_without_dims_has_one_element():
    with pytest.raises(Error, match=r"NotSupported \(0x10\): tensor: its buffer has too few bytes"):
        from_blob(b"", (), "Float")
    assert from_blob(bytes(4), (), "Float").nbytes() == 4


@pytest.mark.parametrize("size", (2**30, 5 * 2**30))
def test_memories_of_a_gigabyte_are_not_supported(size):
    """Sizes are numbers of 32 bits, and of 30 in MicroPython."""
    huge = np.empty(size, np.uint8)
    with pytest.raises(Error, match=r"NotSupported \(0x10\): method pool: has 1 GiB or more"):
        MemoryAllocator(huge)
    with pytest.raises(Error, match=r"NotSupported \(0x10\): program: has 1 GiB or more"):
        BufferDataLoader(huge)
    with pytest.raises(Error, match=r"NotSupported \(0x10\): event tracer: has 1 GiB or more"):
        EventTracer(huge)
    planned = Program.load(BufferDataLoader(aligned(sections()["relu"])))
    with pytest.raises(Error, match=r"NotSupported \(0x10\): planned buffer 0: has 1 GiB or more"):
        planned.load_method("forward", MemoryManager(MemoryAllocator(aligned(256)),
                                                     HierarchicalAllocator([huge])))
    unplanned = Program.load(BufferDataLoader(aligned(sections()["relu_unplanned"])))
    method = load_with_exact_memories(unplanned, "forward")
    with pytest.raises(Error, match=r"NotSupported \(0x10\): output 0: has 1 GiB or more"):
        method.set_output_data_ptr(huge, 0)


def test_a_view_may_be_released_after_it_was_handed_over():
    """The method has views of its own, which keep the memory in place."""
    program = Program.load(BufferDataLoader(aligned(sections()["relu"])))
    memories = [bytearray(256), bytearray(32), bytearray(64)]
    views = [memoryview(memory) for memory in memories]
    manager = MemoryManager(MemoryAllocator(views[0]), HierarchicalAllocator([views[1]]),
                            MemoryAllocator(views[2], "temp memory"))
    method = program.load_method("forward", manager)
    for view in views:
        view.release()
    for memory in memories:
        with pytest.raises(BufferError):
            memory.clear()
    method.set_input(np.array([-1, 2, -3, 4], np.float32), 0)
    method.execute()
    assert list(method.get_output(0).data) == [0, 2, 0, 4]
    method.reset_state()
    method.unload()
    with pytest.raises(Error, match=r"InvalidType \(0x13\): method pool: is not a buffer"):
        method.load(program)
    with pytest.raises(Error, match=r"InvalidType \(0x13\): input 0: is not a buffer"):
        relu_method().set_input(views[1], 0)


def test_a_rejected_memory_does_not_replace_another():
    """The rejected memory begins at the address of the accepted one."""
    method = load_with_exact_memories(
        Program.load(BufferDataLoader(aligned(sections()["relu_unplanned"]))), "forward")
    output = aligned(16)
    method.set_output_data_ptr(output, 0)
    with pytest.raises(Error, match="InvalidArgument"):
        method.set_output_data_ptr(output[:8], 0)
    method.set_input(np.array([-1, 2, -3, 4], np.float32), 0)
    method.execute()
    assert list(method.get_output(0).data) == [0, 2, 0, 4]


@pytest.mark.parametrize("sizes", [(0, 3), (2, 0)])
def test_an_array_without_elements_is_a_tensor(sizes):
    assert from_blob(np.zeros(sizes, np.float32), sizes).nbytes() == 0


# ---- features of the host only


def relu_method():
    return load_with_exact_memories(
        Program.load(BufferDataLoader(aligned(sections()["relu"]))), "forward")


@pytest.mark.parametrize("array, name", [
    (np.zeros(4, ">f4"), "InvalidArgument"),
    (np.zeros(2, np.complex64), "InvalidArgument"),
    (np.zeros(2, np.int64), "InvalidArgument"),
    (np.zeros(8, np.float32)[::2], "InvalidType"),
    (np.asfortranarray(np.zeros((2, 2), np.float32)), "InvalidType"),
])
def test_arrays_of_other_elements_are_rejected(array, name):
    with pytest.raises(Error, match=name):
        relu_method().set_input(array, 0)


@pytest.mark.parametrize("name", ["unplanned_io", "constant_output"])
def test_module_allocates_outputs_outside_of_planned_memory(name):
    run = fixture_store.load(name).runs[0]
    outputs = Module(aligned(fixture_store.load(name).pte)).execute("forward", run.inputs)
    for output, expected in zip(outputs, run.expected, strict=True):
        np.testing.assert_allclose(np.array(output.data), expected.reshape(-1), rtol=1e-5)


def test_module_accepts_paths():
    fixture = fixture_store.load("external_weights")
    inputs = [np.ascontiguousarray(value) for value in fixture.runs[0].inputs]
    modules = (Module(fixture.path, fixture.data_paths),
               Module(aligned(fixture.pte), [aligned(data) for data in fixture.data]))
    first, second = [module.execute("forward", inputs)[0] for module in modules]
    assert list(first.data) == list(second.data)


@pytest.mark.parametrize("make, name", [
    (lambda: FileDataLoader("a\0b"), "AccessFailed"),
    (lambda: BufferDataLoader(5), "InvalidType"),
    (lambda: BufferDataLoader(np.zeros(64, np.uint8)[::2]), "InvalidType"),
    (lambda: FileDataLoader(__file__, bytes(1 << 20)), "InvalidArgument"),
    (lambda: Method(None), "InvalidType"),
    (lambda: relu_method().metadata.operator_name(1), "InvalidArgument"),
    (lambda: relu_method().metadata.input_value(-1), "InvalidArgument"),
    (lambda: relu_method().metadata.output_value(1), "InvalidArgument"),
])
def test_calls_with_wrong_arguments(make, name):
    with pytest.raises(Error, match=name):
        make()


@pytest.mark.parametrize("index", (-1, 99, 2**31, -(2**40)))
@pytest.mark.parametrize("name", (
    "input_tag", "input_tensor_meta", "input_value", "input_quantization", "output_tag",
    "output_tensor_meta", "output_value", "output_quantization", "is_output_dynamic",
    "attribute_tensor_meta", "memory_planned_buffer_size", "get_backend_name", "operator_name",
    "instruction_name"))
def test_metadata_of_an_index_that_there_is_not(name, index):
    meta = Program.load(BufferDataLoader(fixture_store.load("delegate_demo").pte)).method_meta()
    with pytest.raises(Error, match=r"InvalidArgument .*(does not exist|is negative)"):
        getattr(meta, name)(index)


def test_a_locked_heap_has_room_for_nine_memories():
    """Nine unplanned tensors and a planned buffer need one more."""
    values = [*[tensor([4]) for _ in range(9)], tensor([4], 0)]
    model = relu(values, range(9), [9], [16], [call(0, 8, 9, 9)])
    lines = run_script("many_memories.py", {"model": model}, "mps2-an386").lines
    assert lines == ["OutOfResources (0x25): method: works in more memories than Method has room for; "
                     "load it once with the heap unlocked", "ok", "[0.0, 8.0, 0.0, 1.0]"]


def test_sizes_that_are_no_ints_change_nothing():
    tensor = from_blob(np.zeros(6, np.float32), [2, 3])
    with pytest.raises(Error, match="InvalidArgument .*: sizes: .*; give a list of ints"):
        tensor.resize([3, 2.0])
    assert tensor.sizes() == (2, 3)
    tensor.resize(np.array([3, 2]))
    assert tensor.sizes() == (3, 2)
