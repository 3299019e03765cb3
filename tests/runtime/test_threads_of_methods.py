"""Test threads that share the large layers of a method, on the twin: the outputs equal those of one
thread, in every order of the begin and the end of executions."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from _picotorch_c import lib
from picotorch import BufferDataLoader, Program
from picotorch.module import load_with_exact_memories
from picotorch.runtime import Runtime
from support import fixture_store
from support.programs import call, plan, program, tensor
from support.targets import aligned
from support.threads import Threads

SIZE = 400  # rows of square matrices
MODELS = ("ds_cnn", "resnet8", "mobilenet_v1_025", "int8_ds_cnn", "int8_resnet8", "attention",
          "lstm_stateful", "mlp")
# The powers of the matrix stay small
X = np.random.default_rng(0).normal(0, SIZE**-0.5, (SIZE, SIZE)).astype(np.float32)


@pytest.fixture
def _all_loops_are_shared():
    before = lib.pt_share_from(1)
    yield
    lib.pt_share_from(before)


def products(count=1):
    """Return a program of x @ (... @ (x @ x)), of `count` products, each from one memory into
    another."""
    values = [tensor([SIZE, SIZE], 4 * SIZE * SIZE * i) for i in range(3)]
    calls = [call(0, 0, 1 + (i - 1) % 2 if i else 0, *[1 + i % 2] * 2) for i in range(count)]
    return program(plan(values, calls, ["aten::mm.out"], [0], [1 + (count - 1) % 2],
                        [12 * SIZE * SIZE]))


def load(file, threads=1):
    method = Runtime.get().load_program(file, threads=threads).load_method("forward")
    return lambda *inputs: [np.asarray(each).tobytes() for each in method.execute(inputs)]


@pytest.mark.usefixtures("_all_loops_are_shared")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_outputs_have_the_bytes_of_one_thread(name, threads):
    fixture = fixture_store.load(name)
    one, many = load(fixture.pte), load(fixture.pte, threads)
    for run in fixture.runs:
        assert many(*run.inputs) == one(*run.inputs)


def test_methods_with_threads_execute_at_the_same_time():
    wanted = load(products())(X)

    def work():
        execute = load(products(), 3)
        for _ in range(5):
            assert execute(X) == wanted

    Threads(*[work] * 4).join()


def running_threads():
    return len(os.listdir("/proc/self/task"))


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the threads")


@ON_LINUX
def test_no_thread_outlives_an_execution():
    execute, before = load(products(), 4), running_threads()
    execute(X)
    assert running_threads() <= before


@ON_LINUX
def test_an_interrupt_ends_the_threads():
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(products(1000)))),
                                      "forward")
    method.library.threads = 3
    method.set_input(X, 0)
    before = running_threads()

    def interrupt():
        while running_threads() < before + 3:  # this thread, and the threads that share
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        method.execute()
    thread.join()
    assert running_threads() <= before


def test_a_handler_of_signals_executes_another_method():
    """The handler runs in the executing thread, in the middle of a shared loop."""
    wanted, wanted_inside = load(products(400))(X), load(products(3))(X)
    many, one, found = load(products(400), 3), load(products(3)), []

    def handle(*_):
        found.append(one(X))
        signal.setitimer(signal.ITIMER_REAL, 0.05)  # the signal must not arrive while this method runs

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        while len(found) < 10:
            assert many(X) == wanted
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found == [wanted_inside] * len(found)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_process_that_forks_meanwhile():
    """The child has none of the threads, and starts its own."""
    execute, wanted = load(products(), 3), load(products())(X)
    other = load(products(200), 3)
    executing = Threads(lambda: other(X))
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os._exit(execute(X) != wanted)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    executing.join()
    assert execute(X) == wanted


def test_more_threads_than_there_can_be():
    assert load(products(), 100_000)(X) == load(products())(X)


@pytest.mark.parametrize("threads", [0, -1])
def test_the_number_of_threads_is_1_or_more(threads):
    with pytest.raises(RuntimeError, match="threads: are less than 1; give 1 or more"):
        Runtime.get().load_program(products(), threads=threads)
