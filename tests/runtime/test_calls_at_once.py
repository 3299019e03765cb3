"""Test calls during another call, from another thread, from a handler of signals or from a backend.
Each is rejected or has the same result as alone, and so has the call under way."""

import functools
import threading

import _picotorch
import numpy as np
import pytest
from picotorch import (
    Backend,
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Module,
    Program,
    register_backend,
    unregister_backend,
)
from picotorch.module import load_with_exact_memories
from picotorch.runtime import Runtime
from picotorch.runtime.portable_lib import _load_program
from support import fixture_store
from support.programs import delegate_call, plan, program, relu_plan, tensor
from support.targets import aligned
from support.threads import Threads
from support.traced import traced


def floats(*values):
    return np.array(values, np.float32)


def in_thread(function):
    """Call a function in another thread, wait for it, and raise the error that it raised, without its
    traceback. The traceback would be in a cycle with the frames of the caller, whose views the
    collector cannot clear."""
    raised = []

    def work():
        try:
            function()
        except BaseException as error:
            raised.append(error.with_traceback(None))

    Threads(work).join()
    if raised:
        raise raised.pop()


def in_place(function):
    function()


HOW = pytest.mark.parametrize("how", [in_thread, in_place], ids=["in another thread", "in the same"])

# ---- at each place of a call


class Disturbed:
    """Call `function` at each place of another call. `refused` counts the rejected calls."""

    def __init__(self, how, function):
        self.how, self.function, self.refused, self.calls, self.is_inside = how, function, 0, 0, False

    def visit(self, *_):
        if self.is_inside:
            return
        self.is_inside = True
        try:
            self.calls += 1
            self.how(self.function)
        except Error as error:
            assert error.name == "InvalidState", error
            self.refused += 1
        finally:
            self.is_inside = False

    def check(self, function):
        """Call `function` during the other call, and again if it was rejected because of the other
        call."""
        try:
            found = traced(function, self.visit)
        except Error as error:
            assert error.name == "InvalidState", error
            found = function()
        assert self.calls > 20
        return found


def module_of(plan_):
    return Module(aligned(program(plan_)))


@HOW
def test_forward_of_a_module(how):
    module = module_of(relu_plan())

    def other():
        assert module(floats(5, 6, 7, 8)).tolist() == [5, 6, 7, 8]

    other()
    disturbed = Disturbed(how, other)
    found = disturbed.check(lambda: module(floats(1, 2, 3, 4)))
    assert found.tolist() == [1, 2, 3, 4]
    assert disturbed.refused
    other()


class Interrupted(KeyboardInterrupt):
    pass


def runtime_method():
    method = Runtime.get().load_program(program(relu_plan())).load_method("forward")
    return lambda x: method.execute([x])[0]


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "is_loaded"), [
    (lambda: module_of(relu_plan()), True),
    (lambda: module_of(relu_plan()), False),
    (runtime_method, True),
], ids=["module", "first use of a module", "method of the runtime"])
def test_a_method_can_be_called_after_an_interrupt_anywhere(make, is_loaded):
    """The interrupt occurs at the first and the last time that a call passes each place."""
    x = floats(-1, 2, 3, 4)

    def made():
        found = make()
        if is_loaded:
            found(x)
        return found

    times = {}
    function = made()
    traced(lambda: function(x), lambda *place: times.update({place: times.get(place, 0) + 1}))
    for place, turn in {(place, turn) for place, count in times.items() for turn in (1, count)}:
        left = turn

        def visit(*at, place=place):
            nonlocal left
            left -= at == place
            if left == 0 and at == place:
                raise Interrupted

        function = made()
        with pytest.raises(Interrupted):
            traced(lambda function=function: function(x), visit)
        assert function(x).tolist() == [0, 2, 3, 4]
    assert len(times) > 20
    assert not _picotorch._calls


@HOW
def test_first_use_of_a_module(how):
    """The first use loads the method."""
    module = module_of(relu_plan())

    def other():
        assert module(floats(5, 6, 7, 8)).tolist() == [5, 6, 7, 8]

    assert Disturbed(how, other).check(lambda: module(floats(1, 2, 3, 4))).tolist() == [1, 2, 3, 4]


@HOW
def test_methods_of_a_module_that_share_memory(how):
    fixture = fixture_store.load("two_methods")
    module = Module(aligned(fixture.pte), share_memory_arenas=True)
    first, second = ((run.method, run.inputs, [np.asarray(module.execute(run.method, run.inputs)[0])])
                     for run in fixture.runs[:2])

    def execute(name, inputs, wanted):
        np.testing.assert_array_equal(np.asarray(module.execute(name, inputs)[0]), wanted[0])

    Disturbed(how, lambda: execute(*second)).check(lambda: execute(*first))


def test_a_handler_of_signals_executes_the_method_of_the_runtime():
    method = Runtime.get().load_program(program(relu_plan())).load_method("forward")

    def other():
        assert method.execute([floats(5, 6, 7, 8)])[0].tolist() == [5, 6, 7, 8]

    found = Disturbed(in_place, other).check(lambda: method.execute([floats(1, 2, 3, 4)]))
    assert found[0].tolist() == [1, 2, 3, 4]


def test_calls_of_a_method_of_portable_lib(tmp_path):
    """Threads wait for one another, and each begins at another place of the first call."""
    path = tmp_path / "relu.pte"
    path.write_bytes(program(relu_plan()))
    method, others = _load_program(path).load_method("forward"), []

    def other():
        assert np.asarray(method([floats(5, 6, 7, 8)])[0]).tolist() == [5, 6, 7, 8]

    seen = set()

    def begin(*place):
        if place in seen:
            return
        seen.add(place)
        others.append(Threads(other))
        others[-1].threads[0].join(0.01)

    found = traced(lambda: method([floats(1, 2, 3, 4)]), begin)
    assert np.asarray(found[0]).tolist() == [1, 2, 3, 4]
    for each in others:
        each.join()


@HOW
@pytest.mark.parametrize("name", ["load", "unload"])
def test_loads_into_one_pool(how, name):
    """No two methods get the same bytes of the pool."""
    loaded = Program.load(BufferDataLoader(aligned(program(relu_plan()))))
    pool = MemoryAllocator(aligned(1 << 16))
    made = [Method(MemoryManager(pool, HierarchicalAllocator([aligned(32)]))) for _ in range(400)]
    first, others = made[0], iter(made[1:])
    if name == "unload":
        first.load(loaded)
    disturbed = Disturbed(how, lambda: next(others).load(loaded))
    try:
        traced({"load": lambda: first.load(loaded), "unload": first.unload}[name], disturbed.visit)
    except Error as error:
        assert error.name == "InvalidState", error
    assert disturbed.calls > 20
    there = [method for method in made if method.is_loaded()]
    for i, method in enumerate(there):
        method.set_input(floats(i, i, i, i), 0)
    for i, method in enumerate(there):
        method.execute()
        assert method.get_output(0).tolist() == [i] * 4
    for method in sorted(there, key=lambda method: -method.library.end()):
        method.unload()
    assert (pool.used, pool.held) == (0, 0)


# ---- while a method executes


class Meeting(Backend):
    """Compute out = 2 * x. `meet` is called in between, after an allocation of `temp` bytes of temp
    memory."""

    def __init__(self):
        self.meet = lambda: None
        self.temp = 0
        self.taken = None

    def init(self, context, processed, compile_specs):
        return 2

    def execute(self, context, handle, args):
        meet, self.meet = self.meet, lambda: None
        doubled = [handle * item for item in args[0].data]
        if self.temp:
            self.taken = context.allocate(self.temp)
        meet()
        for i, item in enumerate(doubled):
            args[1].data[i] = item

    def destroy(self, handle):
        pass


@pytest.fixture
def meeting():
    backend = Meeting()
    register_backend("Meeting", backend)
    yield backend
    unregister_backend("Meeting")


def doubling(*names):
    """Load out = 2 * x of four floats, with x at 0 and out at 16 of a planned buffer of 32 bytes."""
    found = plan([tensor([4], 0), tensor([4], 16)], [delegate_call(0, 0, 1)], [], [0], [1], [32])
    found["delegates"] = [{"id": "Meeting", "processed": {"location": 0, "index": 0},
                           "compile_specs": []}]
    return program(*[found | {"name": name} for name in names or ["forward"]],
                   backend_delegate_data=[{"data": [1]}])


def loaded(file, planned=None, temp=None):
    manager = MemoryManager(MemoryAllocator(aligned(512)),
                            HierarchicalAllocator([planned or aligned(32)]),
                            temp and MemoryAllocator(temp, "temp memory"))
    method = Method(manager)
    method.load(Program.load(BufferDataLoader(aligned(file))))
    return method


def refused(how, function, words):
    with pytest.raises(Error, match=words) as caught:
        how(function)
    assert caught.value.name in ("InvalidState", "AlreadyLoaded")


CALLS = {
    "load": lambda m: m.load(m.program),
    "unload": lambda m: m.unload(),
    "unload of the library": lambda m: m.library.unload(),
    "set_input": lambda m: m.set_input(floats(5, 6, 7, 8), 0),
    "set_inputs": lambda m: m.set_inputs([floats(5, 6, 7, 8)]),
    "execute": lambda m: m.execute(),
    "step": lambda m: m.step(),
    "get_output": lambda m: m.get_output(0),
    "get_outputs": lambda m: m.get_outputs(),
    "reset_state": lambda m: m.reset_state(),
    "reset_execution": lambda m: m.reset_execution(),
    "seed": lambda m: m.library.seed(7),
}


@HOW
@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_method_that_executes(meeting, name, how):
    allowed = {"unload of the library",  # C keeps the method loaded
               "seed", "get_output", "get_outputs"}  # a backend may call these
    method, tried = loaded(doubling()), []
    method.set_input(floats(1, 2, 3, 4), 0)

    def meet():
        if how is in_place and name in allowed:
            CALLS[name](method)
        else:
            refused(how, lambda: CALLS[name](method), r"AlreadyLoaded|method: is executing")
        tried.append(name)

    meeting.meet = meet
    method.execute()
    assert tried and method.get_output(0).tolist() == [2, 4, 6, 8]
    method.unload()


@HOW
def test_forward_of_a_module_that_executes(meeting, how):
    module, tried = Module(aligned(doubling())), []

    def meet():
        refused(how, lambda: module(floats(5, 6, 7, 8)), "module: is executing; give each thread its")
        tried.append(True)

    for _ in range(2):
        meeting.meet = meet
        assert module(floats(1, 2, 3, 4)).tolist() == [2, 4, 6, 8]
    assert tried == [True] * 2
    assert module(floats(5, 6, 7, 8)).tolist() == [10, 12, 14, 16]


@HOW
@pytest.mark.parametrize("shared", ["planned", "temp"])
@pytest.mark.parametrize("name", ["set_input", "execute", "get_output", "reset_state", "load"])
def test_calls_of_a_method_that_shares_memory_with_one_that_executes(meeting, name, shared, how):
    memory = aligned(64)
    method, other = (loaded(file, **{shared: memory}) for file in (doubling(), program(relu_plan())))
    method.set_input(floats(1, 2, 3, 4), 0)
    other.set_input(floats(1, 2, 3, 4), 0)  # the same bytes, if memory is shared
    tried = []
    if shared == "temp":
        meeting.temp = 16
    if name == "load":
        other.unload()
    call_other = (lambda: other.load(other.program)) if name == "load" else \
        lambda: CALLS[name](other)

    def meet():
        refused(how, call_other, "method: shares memory with one that is executing")
        tried.append(True)

    meeting.meet = meet
    method.execute()
    assert tried and method.get_output(0).tolist() == [2, 4, 6, 8]
    call_other()


@pytest.mark.parametrize("where", ["temp memory of the delegate", "shared temp memory", "own memory"])
def test_a_delegate_runs_another_method(meeting, where):
    """The other method runs in bytes that the delegate has allocated, or in memory that is otherwise
    unused."""
    temp, tried = aligned(256), []
    method = loaded(doubling(), temp=temp)
    method.set_input(floats(1, 2, 3, 4), 0)

    def meet():
        planned = meeting.taken[:32] if where.endswith("of the delegate") else aligned(32)
        other = loaded(program(relu_plan()), planned=planned,
                       temp=temp if where.startswith("shared") else None)
        other.set_input(floats(-5, 6, 7, 8), 0)
        other.execute()
        assert other.get_output(0).tolist() == [0, 6, 7, 8]
        other.unload()
        tried.append(where)

    meeting.meet = meet
    meeting.temp = 64 if where.endswith("of the delegate") else 0
    method.execute()
    assert tried and method.get_output(0).tolist() == [2, 4, 6, 8]


def test_a_delegate_runs_another_method_of_its_module(meeting):
    """The two methods run if each has its own memory; with common memory the call is rejected."""
    file = doubling("forward", "other")
    for shares in (False, True):
        module, tried = Module(aligned(file), share_memory_arenas=shares), []

        def meet(module=module, shares=shares, tried=tried):
            def other():
                return module.execute("other", [floats(5, 6, 7, 8)])[0].tolist()

            if shares:
                refused(in_place, other, "module: is executing; give each thread its own Module")
            else:
                assert other() == [10, 12, 14, 16]
            tried.append(shares)

        meeting.meet = meet
        assert module(floats(1, 2, 3, 4)).tolist() == [2, 4, 6, 8]
        assert tried == [shares]


def test_methods_that_share_a_pool_execute_at_the_same_time(meeting):
    """Each method has its own part of the pool."""
    pool = MemoryAllocator(aligned(1024))
    methods = [Method(MemoryManager(pool, HierarchicalAllocator([aligned(32)]))) for _ in range(2)]
    for method, file in zip(methods, (doubling(), program(relu_plan())), strict=True):
        method.load(Program.load(BufferDataLoader(aligned(file))))
        method.set_input(floats(1, 2, 3, 4), 0)
    meeting.meet = lambda: in_thread(methods[1].execute)
    methods[0].execute()
    assert methods[0].get_output(0).tolist() == [2, 4, 6, 8]
    assert methods[1].get_output(0).tolist() == [1, 2, 3, 4]


# ---- many threads


def test_threads_that_use_one_module():
    """Each call has the result that it has alone, or is rejected. With a lock around the calls, all
    succeed."""
    module, start = module_of(relu_plan()), threading.Barrier(4)
    done = [0] * 4

    def work(i):
        start.wait()
        for k in range(300):
            wanted = [4 * k + i] * 4
            try:
                found = module(floats(*wanted))
            except Error as error:
                assert "module: is executing" in str(error) or "module: is loading" in str(error)
            else:
                assert found.tolist() == wanted
                done[i] += 1

    Threads(*[functools.partial(work, i) for i in range(4)]).join()
    assert sum(done) > 0
    assert module(floats(1, 2, 3, 4)).tolist() == [1, 2, 3, 4]


def test_outputs_of_a_module_are_copies_but_not_of_a_method():
    module = module_of(relu_plan())
    kept = module(floats(1, 2, 3, 4))
    in_thread(lambda: module(floats(5, 6, 7, 8)))
    assert kept.tolist() == [1, 2, 3, 4]
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(program(relu_plan())))),
                                      "forward")
    method.set_input(floats(1, 2, 3, 4), 0)
    method.execute()
    shown = method.get_output(0)

    def work():
        method.set_input(floats(5, 6, 7, 8), 0)
        method.execute()

    in_thread(work)
    assert shown.tolist() == [5, 6, 7, 8]
