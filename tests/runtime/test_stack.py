"""Test the stack: calls from any depth succeed or are rejected by name, on the boards and on the
twin."""

import re

import pytest
from _picotorch_c import lib
from picotorch import (
    Backend,
    BufferDataLoader,
    Error,
    Program,
    register_backend,
    unregister_backend,
)
from picotorch.errors import MEMORY_ALLOCATION_FAILED
from picotorch.host.tensors import to_stored
from picotorch.module import load_with_exact_memories
from picotorch.run.job import Job
from support import figures, fixture_store
from support.targets import aligned, run_script

pytestmark = pytest.mark.check

CALLS = ("load", "execute", "step", "unload")
TOO_SMALL = "MemoryAllocationFailed stack"
TOO_DEEP = "RuntimeError"  # raised by the calling function
IN_THE_BACKEND = "Internal delegate"


def meta_of(fixture):
    return Program.load(BufferDataLoader(aligned(fixture.pte))).method_meta("forward")


def call_deep(name, board, every):
    """Run deep_calls.py, and return {(call, end): times} and the bytes that nothing touched."""
    fixture = fixture_store.load(name)
    meta = meta_of(fixture)
    job = Job({"model": fixture.pte})
    for i, value in enumerate(fixture.runs[0].inputs):
        job.add(f"in{i}", to_stored(value, meta.input_tensor_meta(i).dim_order()))
    job.add_settings("settings", {"every": every, "unlocked": int(bool(fixture.backends))})
    script = "backends.py+deep_calls.py" if fixture.backends else "deep_calls.py"
    lines = dict(line.rsplit(" ", 1) for line in run_script(script, job, board).lines)
    untouched = int(lines.pop("untouched"))
    return {tuple(key.split(" ", 1)): int(count) for key, count in lines.items()}, untouched


@pytest.mark.reliability
@pytest.mark.parametrize(("name", "board", "every"), [
    ("add_1", "mps2-an385-m0plus", 1),
    ("add_1", "mps2-an386", 1),
    ("add_1", "mps3-an547", 1),
    ("delegate_executor", "mps2-an386", 4),
])
def test_a_call_from_any_depth_succeeds_or_is_rejected_by_name(name, board, every):
    """The script asserts that everything works again at once. A fault would end the script."""
    counts, untouched = call_deep(name, board, every)
    for call in CALLS:
        ends = {end for one, end in counts if one == call}
        assert {"ok", TOO_SMALL} <= ends
        assert ends <= {"ok", TOO_SMALL, TOO_DEEP, IN_THE_BACKEND}
        assert (IN_THE_BACKEND not in ends) or name.startswith("delegate")
    assert untouched > 0
    figures.record("stack", f"depths_{name}_{board}", deep_calls=sum(counts.values()))


def loaded(name="add_1"):
    """Load a method, and set its inputs."""
    fixture = fixture_store.load(name)
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(fixture.pte))), "forward")
    method.set_inputs([to_stored(value, meta_of(fixture).input_tensor_meta(i).dim_order())
                       for i, value in enumerate(fixture.runs[0].inputs)])
    return method


def test_the_error_has_a_remedy():
    """Boards raise the error if less stack is left than a call needs."""
    with pytest.raises(Error) as caught:
        loaded().on_error(MEMORY_ALLOCATION_FAILED, lib.PT_SUBJECT_STACK, -1, -1, 2304, 2303,
                       "; call from fewer functions or give the firmware more")
    assert str(caught.value) == (
        "MemoryAllocationFailed (0x21): stack: 2304B requested, 2303B available; "
        "call from fewer functions or give the firmware more")


@pytest.mark.parametrize("error", [RuntimeError("no"), NotImplementedError("no")])
def test_an_exception_of_a_backend_is_passed_on(error):
    class Raising(Backend):
        def init(self, context, processed, compile_specs):
            raise error

    fixture = fixture_store.load("delegate_inline")
    (name,) = fixture.backends
    register_backend(name, Raising())
    try:
        program = Program.load(BufferDataLoader(aligned(fixture.pte)))
        with pytest.raises(Error) as caught:
            load_with_exact_memories(program, "forward")
    finally:
        unregister_backend(name)
    assert str(caught.value) == (
        f"Internal (0x01): delegate 0: backend {name}: {type(error).__name__}: no")


def test_a_load_that_runs_out_of_stack_is_undone(monkeypatch):
    """MicroPython and CPython raise RuntimeError if the stack has no room for one more call."""
    method = loaded()
    program = method.program
    method.unload()

    def endless():
        endless()

    monkeypatch.setattr(method.manager.method_allocator, "check_size", endless)
    with pytest.raises(Error, match=re.escape("(0x21): stack: is too small;")):
        method.load(program)
    assert not method.is_loaded() and method.manager.method_allocator.used == 0
    monkeypatch.undo()
    method.load(program)
    assert method.is_loaded()
