"""Test every call in every state of a method, faults half-way, and calls of other threads: each has its
outcome, and the state of the method afterwards is as docs/faults.md states."""

import copy
import functools
import pickle
import sys
import time

import pytest
from picotorch import BufferDataLoader, Error, Program
from picotorch.module import load_with_exact_memories
from support import figures
from support.faulty import faulty
from support.flatbuffer_builder import int_value
from support.programs import call, plan, program, relu_plan, tensor
from support.targets import FAULT_BOARDS, HOST, SCRIPTS, aligned, run_script
from support.threads import Threads, waiting_method


def lists():
    """Return a program with two outputs: a list of the ints 3 and 4, and a list with one tensor of two
    floats twice."""
    values = [tensor([2], 0), int_value(3), int_value(4), {"val": ("IntList", {"items": [1, 2]})},
              {"val": ("TensorList", {"items": [0, 0]})}]
    return program(plan(values, [], [], [], [3, 4], [16]))


@pytest.mark.thorough
@pytest.mark.reliability
@pytest.mark.parametrize("target", (HOST, *FAULT_BOARDS))
def test_every_call_in_every_state(target):
    sections = {"faulty": faulty(), "relu": program(relu_plan()), "lists": lists()}
    lines = run_script("faults.py", sections, target).lines
    calls = [line for line in lines if " -> " in line]
    figures.record("faults", target, calls=len(calls),
                   states=len({line.split(": ")[0] for line in calls if ": " in line.split(" -> ")[0]}),
                   refused=sum(not line.endswith("-> ok") for line in calls))
    assert lines == (SCRIPTS / "faults.exp").read_text().splitlines()


# ---- other threads, on the host only


def wait_until(condition):
    while not condition():
        time.sleep(0.001)


CALLS = {
    "load": lambda m: m.load(m.program),
    "unload": lambda m: m.unload(),
    "set_input": lambda m: m.set_input(aligned(1), 0),
    "set_inputs": lambda m: m.set_inputs([aligned(1)]),
    "set_output_data_ptr": lambda m: m.set_output_data_ptr(aligned(1), 0),
    "set_attribute_data_ptr": lambda m: m.set_attribute_data_ptr(aligned(1), "flag"),
    "reset_state": lambda m: m.reset_state(),
    "reset_execution": lambda m: m.reset_execution(),
    "execute": lambda m: m.execute(),
    "step": lambda m: m.step(),
    "get_output": lambda m: m.get_output(0),
    "get_attribute": lambda m: m.get_attribute("flag"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_method_that_executes_in_another_thread_is_left_alone(name):
    method, flag = waiting_method(), aligned(1)
    method.set_input(flag, 0)
    threads = Threads(method.execute)
    wait_until(method.library.is_running)
    with pytest.raises(Error, match=r"AlreadyLoaded|InvalidState \(0x02\): method: is executing"):
        CALLS[name](method)
    flag[0] = 1
    threads.join()
    method.get_output(0)
    method.unload()


def test_memories_stay_while_another_thread_executes():
    method, flag = waiting_method(), aligned(1)
    method.set_input(flag, 0)
    first = Threads(method.execute)
    wait_until(method.library.is_running)
    with pytest.raises(Error, match="method: is executing in another thread; give each thread its own"):
        method.library.unload()
    flag[0] = 1
    first.join()
    assert method.get_output(0)[0]


@pytest.fixture
def busy_threads():
    """Let Python switch threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.thorough
def test_memories_are_handed_over_between_executions(busy_threads):
    """While some threads execute again and again, others set new memories. Old memories are freed at
    once."""
    n = 4096
    relu = plan([tensor([n]), tensor([n])], [call(0, 0, 1, 1)], ["aten::relu.out"], [0], [1], [])
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(program(relu)))), "forward")
    end = time.monotonic() + 5
    ran = set()

    def until_the_end(calls):
        while time.monotonic() < end:
            for name, function in calls.items():
                try:
                    function()
                    ran.add(name)
                except Error as error:
                    words = ("is executing", "is in use", "never set")
                    assert any(each in str(error) for each in words)

    execute = {"execute": method.execute}
    give = {"input": lambda: method.set_input(aligned(4 * n), 0),
            "output": lambda: method.set_output_data_ptr(aligned(4 * n), 0),
            "reset": method.reset_state}
    each = (execute, execute, give, give)
    Threads(*[functools.partial(until_the_end, calls) for calls in each]).join()
    assert ran == {"execute", *give}


def test_methods_are_not_copied():
    for how in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            how(waiting_method())
