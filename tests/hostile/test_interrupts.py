"""Interrupt load, execute and the other calls at any place, above all by ctrl-C. Afterwards the method
can be used again, and no byte of the pool is lost."""

import functools
import signal
import time

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
    Program,
    from_blob,
    register_backend,
    unregister_backend,
)
from picotorch.module import load_with_exact_memories
from support import figures
from support.faulty import faulty
from support.long_runs import FLOAT, LONG, endless_loop, long_instruction
from support.programs import program as program_bytes
from support.programs import relu_plan
from support.targets import FAULT_BOARDS, aligned, run_script
from support.threads import waiting_method
from support.traced import traced


class Interrupted(KeyboardInterrupt):
    pass


class Counter(Backend):
    """Compute out = in + the single byte of the processed data."""

    def __init__(self):
        self.given = []
        self.destroyed = []

    def init(self, context, processed, compile_specs):
        context.get_runtime_allocator().allocate(12)
        self.given.append([processed.data()[0]])
        return self.given[-1]

    def execute(self, context, handle, args):
        context.allocate(64)
        args[1].data[0] = args[0].data[0] + handle[0]

    def destroy(self, handle):
        assert not any(handle is each for each in self.destroyed)
        self.destroyed.append(handle)


@pytest.fixture
def counter():
    backend = Counter()
    register_backend("Counter", backend)
    program()
    yield backend
    unregister_backend("Counter")


@functools.cache
def program():
    return Program.load(BufferDataLoader(aligned(faulty())))


class Bench:
    """A method of the faulty program in memories of its own, behind 8 bytes of another user."""

    def __init__(self, backend, pool=512):
        backend.given.clear()
        backend.destroyed.clear()
        self.backend = backend
        self.pool = MemoryAllocator(aligned(pool))
        self.pool.allocate(8)
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator([aligned(32)]),
                                           MemoryAllocator(aligned(64), "temp memory")))
        self.table = np.arange(6, dtype=np.float32).reshape(3, 2)
        self.found = aligned(16)
        self.index = np.array([2, 1])

    def load(self):
        self.method.load(program())

    def set_table(self):
        self.method.set_attribute_data_ptr(self.table, "table")

    def set_output(self):
        self.method.set_output_data_ptr(self.found, 0)

    def set_input(self):
        self.method.set_input(self.index, 0)

    def set_smaller_input(self):
        self.method.set_input(from_blob(self.index[:1], [1]), 0)

    def set_bad_input(self):
        self.method.set_input(np.array([0, 3]), 0)

    def execute(self):
        self.method.execute()

    def get_outputs(self):
        return self.method.get_outputs()

    def reset_state(self):
        self.method.reset_state()

    def unload(self):
        self.method.unload()

    def prepare(self):
        """Do the steps between load and execute, from any state."""
        self.method.reset_state()
        self.set_table()
        self.set_output()
        self.set_input()

    def check_runs(self):
        self.prepare()
        for count in (1, 2):
            self.execute()
            found, seen = self.get_outputs()
            assert (list(found.data), list(seen.data)) == ([4, 5, 2, 3], [count])

    def check_recovers(self, unload_first):
        """Check that a method that is not loaded can be unloaded, or loaded at once."""
        if self.method.is_loaded():
            self.check_runs()
        if unload_first or self.method.is_loaded():
            self.unload()
            self.check_is_unloaded()
        self.load()
        self.check_runs()
        self.unload()
        self.check_is_unloaded()

    def check_is_unloaded(self):
        assert not self.method.is_loaded()
        assert (self.pool.used, self.pool.held) == (8, 0)
        lost = len(self.backend.given) - len(self.backend.destroyed)
        assert 0 <= lost <= self.lost, "a delegate was not destroyed"

    lost = 0  # handles that an interrupt may lose if it occurs when init returns them


ONWARDS = ("load", "set_table", "set_output", "set_input", "execute", "get_outputs", "reset_state",
           "unload")
# the interrupted call, the calls before it, bytes of pool, and its error without an interrupt
PHASES = {
    **{call: (ONWARDS[:i], 512, None) for i, call in enumerate(ONWARDS)},
    "set_smaller_input": (ONWARDS[:5], 512, None),
    "failing load": ((), 200, "MemoryAllocationFailed"),
    "failing execute": (("load", "set_table", "set_output", "set_bad_input"), 512, "InvalidArgument"),
}


def call_of(phase):
    return phase.split()[-1]


def bench_before(phase, backend):
    before, pool, _ = PHASES[phase]
    bench = Bench(backend, pool)
    for call in before:
        getattr(bench, call)()
    return bench


def places(phase, backend):
    """Return the places that the call passes, each with the number of times."""
    found = {}
    bench = bench_before(phase, backend)

    def visit(*place):
        found[place] = found.get(place, 0) + 1

    if PHASES[phase][2]:
        with pytest.raises(Error, match=PHASES[phase][2]):
            traced(getattr(bench, call_of(phase)), visit)
    else:
        traced(getattr(bench, call_of(phase)), visit)
    return found


def interrupt(bench, call, place, turn):
    """Raise Interrupted the `turn`-th time that the call passes a place."""

    def visit(*at):
        nonlocal turn
        if at == place:
            turn -= 1
            if turn == 0:
                raise Interrupted

    with pytest.raises(Interrupted):
        traced(getattr(bench, call), visit)


@pytest.mark.reliability
@pytest.mark.parametrize("phase", PHASES)
def test_a_method_is_usable_after_an_interrupt_anywhere(counter, phase):
    """The interrupt occurs at the first and the last time that the call passes each place. Loads, which
    are long, are interrupted at one of these times."""
    tried = 0
    for place, times in places(phase, counter).items():
        for turn in {"load": (times,), "failing load": (1,)}.get(phase, sorted({1, times})):
            bench = bench_before(phase, counter)
            bench.lost = place[0].co_name in ("init", "_init")
            interrupt(bench, call_of(phase), place, turn)
            bench.pool.size = 512
            bench.pool.buffer = aligned(512)
            bench.check_recovers(unload_first=tried % 2 == 0)
            tried += 1
    figures.record("interrupts", phase.replace(" ", "_"), interrupts=tried)
    assert tried > 20


# ---- while the executor runs


class Alarm:
    """Call a function after a number of seconds, in a signal's handler. `calls` counts the calls."""

    def __init__(self, seconds, function):
        self.seconds, self.function, self.calls = seconds, function, 0

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.handle)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def handle(self, number, frame):
        self.calls += 1
        self.function()


def raise_interrupted():
    raise Interrupted


def test_an_interrupt_ends_a_loop_between_two_instructions():
    """The loop would take about a minute until it is rejected."""
    method, flag = waiting_method(), aligned(1)
    method.set_input(flag, 0)
    start = time.monotonic()
    with Alarm(0.3, raise_interrupted), pytest.raises(Interrupted):
        method.execute()
    assert time.monotonic() - start < 10
    method.set_input(flag, 0)
    flag[0] = 1
    method.execute()
    assert method.get_output(0)[0]


def test_an_interrupt_ends_one_long_instruction():
    """The instruction has 4.6e13 multiplications, which take hours."""
    loaded = Program.load(BufferDataLoader(aligned(long_instruction(3000, FLOAT))))
    method = load_with_exact_memories(loaded, "forward")
    for _ in range(2):
        with Alarm(0.2, raise_interrupted), pytest.raises(Interrupted):
            start = time.monotonic()
            method.execute()
        assert time.monotonic() - start < 10
    assert method.is_loaded()


def test_signals_are_handled_while_the_executor_runs():
    """The loop ends because the handler writes to its input."""
    method, flag = waiting_method(), aligned(1)
    method.set_input(flag, 0)
    with Alarm(0.3, lambda: flag.__setitem__(0, 1)) as alarm:
        method.execute()
    assert alarm.calls == 1


# ---- on the boards


@pytest.mark.thorough
@pytest.mark.reliability
@pytest.mark.parametrize("target", FAULT_BOARDS)
def test_interrupts_at_any_time_on_a_board(target):
    turns = 40 if target == "mps2-an386" else 8
    result = run_script("interrupts.py", {"faulty": faulty(), "loop": endless_loop(),
                                          "long": long_instruction(60, LONG),
                                          "relu": program_bytes(relu_plan()),
                                          "turns": str(turns).encode()}, target)
    phases = [line.split(": ") for line in result.lines]
    assert [name for name, _ in phases] == [*PHASES, "loop", "long", "module"]
    assert all(int(count) >= turns // 2 for _, count in phases), result.lines
    figures.record("interrupts", target, interrupts=sum(int(count) for _, count in phases))
