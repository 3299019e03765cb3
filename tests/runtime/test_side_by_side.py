"""Test several methods at a time: in turn on the twin and on the boards, in threads on the twin."""

import threading

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
)
from picotorch.host.tensors import to_stored
from picotorch.module import load_with_exact_memories
from picotorch.run.job import Job
from picotorch.runtime import Runtime
from support import fixture_store
from support.targets import HOST, SCRIPT_BOARDS, aligned, run_script
from support.threads import Threads, waiting_method

# (fixture, run) of both methods
PAIRS = {
    "two programs": (("attention", 0), ("planned_in_two", 0)),
    "two methods of a program": (("two_methods", 0), ("two_methods", 1)),
    "the same method": (("planned_in_two", 0), ("planned_in_two", 0)),
}


def stored_inputs(fixture, run):
    meta = Program.load(BufferDataLoader(aligned(fixture.pte))).method_meta(run.method)
    return [to_stored(value, meta.input_tensor_meta(i).dim_order())
            for i, value in enumerate(run.inputs)]


def job_of(pair):
    job, settings = Job(), {}
    for number, (name, run) in enumerate(pair):
        fixture = fixture_store.load(name)
        if number == 0 or name != pair[0][0]:
            job.add(f"model{number}", fixture.pte)
        settings[f"method{number}"] = fixture.runs[run].method
        for i, data in enumerate(stored_inputs(fixture, fixture.runs[run])):
            job.add(f"in{number}_{i}", data)
    job.add_settings("settings", settings)
    return job


@pytest.mark.parametrize("target", [HOST, *SCRIPT_BOARDS])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_methods_in_turn_have_the_outputs_of_each_alone(pair, target):
    result = run_script("side_by_side.py", job_of(pair), target)
    files = result.files
    for number, (name, run) in enumerate(pair):
        wanted = fixture_store.load(name).runs[run].expected
        for i, expected in enumerate(wanted):
            alone = files[f"alone{number}_{i}"]
            assert files[f"mixed{number}_{i}"] == alone
            assert files[f"shared{number}_{i}"] == alone
            np.testing.assert_allclose(np.frombuffer(alone, expected.dtype), expected.reshape(-1),
                                       rtol=1e-5, atol=1e-6)
    lines = [line.rsplit(" ", 1)[0] for line in result.lines[3:]]
    wrong = ("InvalidState (0x02): method: is not the last one in its pool; "
             "unload the later ones")
    assert lines == ["load 0 ok", "load 1 ok", f"unload 0 {wrong}", "unload 1 ok", "unload 0 ok",
                     "load 1 ok", "load 0 ok", f"unload 1 {wrong}", "unload 0 ok", "load 0 ok"]
    used = [int(line.rsplit(" ", 1)[1]) for line in result.lines[3:]]
    assert used[4] == 0 and used[1] > used[0] == used[3]


def inputs_of(name):
    fixture = fixture_store.load(name)
    return [aligned(data) for data in stored_inputs(fixture, fixture.runs[0])]


def check_outputs(method, name):
    run = fixture_store.load(name).runs[0]
    for i, expected in enumerate(run.expected):
        np.testing.assert_allclose(np.array(method.get_output(i).data), expected.reshape(-1),
                                   rtol=1e-4, atol=1e-6)


def test_methods_share_planned_and_temp_memory_one_after_the_other():
    """A method needs its own pool, and its own memory for state between executions."""
    names = ("ds_cnn", "planned_in_two", "mlp")
    programs = [Program.load(BufferDataLoader(aligned(fixture_store.load(n).pte))) for n in names]
    planned = HierarchicalAllocator([aligned(1 << 17), aligned(1 << 16)])
    temp = MemoryAllocator(aligned(1 << 16), "temp memory")
    pool = MemoryAllocator(aligned(1 << 16))
    methods = []
    for loaded in programs:
        methods.append(Method(MemoryManager(pool, planned, temp)))
        methods[-1].load(loaded)
    for _ in range(2):
        for name, method in zip(names, methods, strict=True):
            method.set_inputs(inputs_of(name))
            method.execute()
            check_outputs(method, name)


# ---- threads


def test_execute_lets_other_threads_run():
    """The loop ends only when this thread writes to its input."""
    method, flag = waiting_method(), aligned(1)
    method.set_input(flag, 0)
    threads = Threads(method.execute)
    flag[0] = 1
    threads.join()


def test_two_methods_execute_at_the_same_time():
    """Inside of execute, each method waits for a value that the other one writes."""
    one, other = waiting_method(), waiting_method()
    flags = aligned(1), aligned(1)
    for method, mine, its in ((one, flags[0], flags[1]), (other, flags[1], flags[0])):
        method.set_output_data_ptr(mine, 0)
        method.set_input(its, 0)
    Threads(one.execute, other.execute).join()
    assert bytes(flags[0]) == bytes(flags[1]) == b"\1"


NAMES = ("ds_cnn", "resnet8", "planned_in_two", "mlp", "int8_ds_cnn", "attention")


def test_methods_load_and_execute_in_threads():
    """All threads share the programs."""
    programs = {name: Program.load(BufferDataLoader(aligned(fixture_store.load(name).pte)))
                for name in NAMES}
    inputs = {name: inputs_of(name) for name in NAMES}
    start = threading.Barrier(8)

    def work(first):
        start.wait()
        for turn in range(3):
            for k in range(len(NAMES)):
                name = NAMES[(first + k) % len(NAMES)]
                method = load_with_exact_memories(programs[name], "forward")
                for _ in range(turn):
                    method.set_inputs(inputs[name])
                    method.execute()
                    check_outputs(method, name)

    Threads(*[lambda i=i: work(i) for i in range(8)]).join()


def test_errors_of_threads_are_their_own():
    """Each thread's error states the request of that thread."""
    loaded = Program.load(BufferDataLoader(aligned(fixture_store.load("add_1").pte)))
    start = threading.Barrier(4)

    def work(size):
        start.wait()
        for _ in range(50):
            manager = MemoryManager(MemoryAllocator(aligned(size)),
                                    HierarchicalAllocator([aligned(64)]))
            with pytest.raises(Error, match=f"B requested, {size}B available"):
                Method(manager).load(loaded)

    Threads(*[lambda i=i: work(8 * i) for i in range(4)]).join()


def test_programs_of_the_runtime_in_threads():
    names = ("mlp", "conv1d_network")

    def work(name):
        fixture = fixture_store.load(name)
        for _ in range(5):
            method = Runtime.get().load_program(fixture.path).load_method("forward")
            outputs = method.execute(fixture.runs[0].inputs)
            np.testing.assert_allclose(outputs[0], fixture.runs[0].expected[0], rtol=1e-5, atol=1e-6)

    Threads(*[lambda name=name: work(name) for name in names * 2]).join()
