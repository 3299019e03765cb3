"""Test scratch memory in idle planned memory: calls may write there without an effect on outputs."""

import random

import numpy as np
import pytest
from _picotorch_c import ffi, lib
from picotorch import Error, HierarchicalAllocator, MemoryAllocator, MemoryManager, Method
from picotorch.compile import ptm_writer, scratch_overlay
from picotorch.errors import END_OF_METHOD
from picotorch.host.aligned import aligned
from picotorch.host.inputs import random_inputs
from picotorch.host.request import Request
from picotorch.host.twin import (
    attach_outputs,
    open_data,
    open_program,
    outputs,
    planned_sizes,
    set_inputs,
)
from picotorch.module import load_with_exact_memories
from picotorch.run import running
from picotorch.run.parity import same_bits
from picotorch.runtime import Runtime
from support import benchmark_store, fixture_store, programs
from support.programs import call, move, tensor

HALF = 5  # scalar type
BOARD = "mps2-an386"
FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()}
STATIC = [name for name, fixture in FIXTURES.items() if not fixture.refused and not fixture.backends
          and name not in fixture_store.NOT_SUPPORTED]


@pytest.fixture
def every_place(monkeypatch):
    """Give every call a place, not only the calls of methods that gain by it."""
    monkeypatch.setattr(scratch_overlay, "find_temp", lambda method, others, kept: scratch_overlay.Temp(
        method.record.scratch, scratch_overlay._idle_ranges(method, kept)))


def loaded(file, name, data):
    """Load a method in memories of the exact sizes that it needs, filled with 0x7F."""
    program = open_program(file)
    meta = program.method_meta(name)
    report = load_with_exact_memories(program, name, False, open_data(data)).memory_report()
    planned = [aligned(size) for size in planned_sizes(meta, {})]
    pool, temp = aligned(report["method_pool"]["used"]), aligned(report["temp"]["used"])
    for memory in (*planned, pool, temp):
        memory[:] = b"\x7f" * len(memory)
    method = Method(MemoryManager(MemoryAllocator(pool), HierarchicalAllocator(planned),
                                  MemoryAllocator(temp, "temp memory")), max(meta.num_outputs(), 1))
    method.load(program, name, data_map=open_data(data))
    return method, meta


def at(c, reference):
    offset = (reference & (1 << lib.PT_REF_OFFSET_BITS) - 1) * 4
    return c.memory[reference >> lib.PT_REF_OFFSET_BITS] + offset


def fill(c, index, byte):
    """Fill the place of an instruction, and return its bytes."""
    if not c.idle_scratch:
        return 0
    place = ffi.cast("pt_idle_scratch *", at(c, c.idle_scratch))[index]
    if place.bytes:
        ffi.memmove(at(c, place.to), bytes([byte]) * place.bytes, place.bytes)
    return place.bytes


def step_through(method):
    """Run all instructions, and fill the place of each one before and after it. Return the bytes of all
    places."""
    c, filled = method.library._m.c, 0
    while True:
        index = c.instruction
        if index < method.method_meta().num_instructions():
            filled += fill(c, index, 0x7F)
        try:
            method.step()
        except Error as error:
            if error.code != END_OF_METHOD:
                raise
            method.reset_execution()
            return filled
        fill(c, index, 0x55)


def results(file, name, data, rounds):
    """Return the outputs of some runs, and the number of filled bytes."""
    (method, meta), found, filled = loaded(file, name, data), [], 0
    for _ in range(rounds):
        set_inputs(method, meta, random_inputs(meta))
        attach_outputs(method, meta)
        filled += step_through(method)
        found += outputs(method, meta)
    return found, filled


def assert_same(program, data, ptm):
    filled = 0
    for name in open_program(program).method_names:
        try:
            wanted, _ = results(program, name, data, 3)
        except Error:
            continue
        given, bytes_ = results(ptm, name, [], 3)
        assert all(same_bits(a, b) for a, b in zip(wanted, given, strict=True))
        filled += bytes_
    return filled


@pytest.mark.parametrize("name", STATIC)
def test_outputs_of_fixtures_are_those_of_the_program(name, every_place):
    fixture = FIXTURES[name]
    assert_same(fixture.pte, fixture.data,
                ptm_writer.compile_ptm(fixture.pte, fixture.data, "cortex-m4").data)


@pytest.mark.parametrize("name", benchmark_store.NAMES)
def test_outputs_of_benchmark_models_are_those_of_the_program(name):
    program = benchmark_store.load(name).pte(BOARD)
    ptm = ptm_writer.compile_ptm(program, (), "cortex-m4").data
    assert (assert_same(program, [], ptm) > 0) == (name != "int8_deep_autoencoder")


def random_program(generator):
    """Return a random program of calls and moves between tensors anywhere in two planned buffers."""
    sizes = [8 * generator.randrange(4, 12), 8 * generator.randrange(4, 12)]
    values = []
    for i in range(8):
        buffer = generator.randrange(2)
        count = 2 if i < 6 else 4  # the last two are outputs of cat
        offset = 4 * generator.randrange(sizes[buffer] // 4 - count + 1)
        named = {"extra_tensor_info": {"fully_qualified_name": f"state{i}"}} if i in (4, 5) else {}
        values.append(tensor([count], offset, buffer + 1, **named))
    values.append({"val": ("Double", {"double_val": 1.0})})
    values.append({"val": ("Int", {"int_val": 0})})
    instructions = []
    for _ in range(generator.randrange(1, 9)):
        a, b, c = (generator.randrange(6) for _ in range(3))
        kind = generator.randrange(4)
        if kind == 0:
            instructions.append(call(0, a, c, c))
        elif kind == 1:
            instructions.append(call(1, a, b, 8, c, c))
        elif kind == 2:
            instructions.append(move(a, c))
        else:
            values.append({"val": ("TensorList", {"items": [a, b]})})
            out = 6 + generator.randrange(2)
            instructions.append(call(2, len(values) - 1, 9, out, out))
    outs = sorted(generator.sample(range(8), 3))
    operators = ["aten::relu.out", "aten::add.out", "aten::cat.out"]
    return programs.program(programs.plan(values, instructions, operators, [0, 1], outs, sizes))


@pytest.mark.thorough
def test_outputs_of_random_programs_are_those_of_the_program(every_place):
    generator, filled, ran = random.Random(0), 0, 0
    for _ in range(400):
        program = random_program(generator)
        try:
            results(program, "forward", [], 1)
        except Error:  # the kernel rejects tensors of a call that overlap
            continue
        filled += assert_same(program, [], ptm_writer.compile_ptm(program).data)
        ran += 1
    assert ran > 100
    assert filled > 10000


def test_methods_leave_state_alone_that_they_may_share():
    """The first method counts in a planned buffer that the second method has but does not use."""
    zero, one = ({"val": ("Int", {"int_val": i})} for i in range(2))
    no = {"val": ("Bool", {"bool_val": False})}
    add = programs.plan([tensor([4], 0), tensor([4], 64, 2), tensor([4], 16), one, no],
                        [call(0, 0, 1, 3, 2, 2), call(1, 1, 2, 4, 1)], ["aten::add.out", "aten::copy_"],
                        [0], [2], [1216, 2048]) | {"name": "add"}
    softmax = programs.plan([tensor([300], 0, dtype=HALF), zero, no,
                             tensor([300], 608, dtype=HALF)],
                            [call(0, 0, 1, 2, 3, 3)], ["aten::_softmax.out"], [0], [3],
                            [1216, 2048]) | {"name": "softmax"}
    file, ones = programs.program(add, softmax), np.ones(4, np.float32)
    for each in (file, ptm_writer.compile_ptm(file).data):
        program = Runtime.get().load_program(each)
        for count in range(1, 4):
            assert program.load_method("add").execute([ones])[0].tolist() == [count] * 4
            program.load_method("softmax").execute([np.zeros(300, np.float16)])


def simulate(inputs, steps, runs, scribbled):
    """Run steps on 64 bytes several times. The inputs are set before the first run only."""
    memory, seen = bytearray(64), []
    generator = random.Random(1)
    for _, start, end in inputs:
        memory[start:end] = generator.randbytes(end - start)
    for _ in range(runs):
        for i, (read, wrote) in enumerate(steps):
            for byte in range(64) if scribbled else ():
                if byte in scribbled[i]:
                    memory[byte] = generator.randrange(256)
            state = hash(tuple(bytes(memory[start:end]) for _, start, end in read))
            for k, (_, start, end) in enumerate(wrote):
                memory[start:end] = random.Random(state + k).randbytes(end - start)
            seen.append(state)
    return seen, memory


def some_areas(generator, maximum):
    starts = [generator.randrange(60) for _ in range(generator.randrange(maximum + 1))]
    return [(4, start, start + generator.randrange(1, 5)) for start in starts]


def test_idle_memory_may_change():
    generator, idle_bytes = random.Random(0), 0
    for _ in range(500):
        steps = [(some_areas(generator, 2), some_areas(generator, 1))
                 for _ in range(generator.randrange(1, 8))]
        inputs = some_areas(generator, 2)
        first = scratch_overlay.uninitialized_reads.read_before_written([], steps).all()
        given = [*some_areas(generator, 2), *first]
        busy = scratch_overlay.busy(inputs, given, steps)
        free = [{byte for gap in one.missing(4, 0, 64) for byte in range(*gap)} for one in busy]
        idle_bytes += sum(map(len, free))
        wanted, memory = simulate(inputs, steps, 3, None)
        found, other = simulate(inputs, steps, 3, free)
        assert found == wanted
        assert all(memory[start:end] == other[start:end] for _, start, end in given)
        assert [gap for one in busy for area in given for gap in one.missing(*area)] == []
    assert idle_bytes > 10000


def test_inputs_that_nothing_writes_over_keep_their_values():
    steps = [([(4, 0, 8)], [(4, 8, 16)]), ([(4, 8, 16)], [(4, 12, 20)])]
    kept, overwritten = (scratch_overlay.busy([area], [], steps)[1]
                         for area in ((4, 0, 8), (4, 10, 14)))
    assert kept.missing(4, 0, 8) == []
    assert overwritten.missing(4, 0, 8) == [(0, 8)]


def test_a_gap_starts_at_a_multiple_of_8():
    taken = scratch_overlay.Ranges()
    taken.add(4, 0, 3)
    taken.add(4, 30, 40)
    assert scratch_overlay.largest_gap({4: 48, 5: 16}, taken) == (4, 8, 22)
    taken.add(4, 8, 20)
    assert scratch_overlay.largest_gap({4: 48, 5: 16}, taken) == (5, 0, 16)
    assert scratch_overlay.largest_gap({4: 0}, taken) == (0, 0, 0)


@pytest.mark.parametrize(("name", "temp"), [("int8_ds_cnn", 2240), ("int8_mobilenet_v1_025", 0)])
@pytest.mark.parametrize("bare", [False, True])
def test_a_board_runs_with_little_temp_memory(name, temp, bare):
    model = benchmark_store.load(name)
    ptm = ptm_writer.compile_ptm(model.pte(BOARD), (), "cortex-m4").data
    result = running.run(Request(ptm, name, model.inputs, pool_size=0, temp_size=temp, bare=bare),
                         BOARD)
    assert (result.code, result.message) == (0, "")
    assert same_bits(result.outputs[0], model.expected[0])
    if temp:
        result = running.run(Request(ptm, name, model.inputs, pool_size=0, temp_size=temp - 8,
                                     bare=bare), BOARD)
        assert result.status == "MemoryAllocationFailed"
