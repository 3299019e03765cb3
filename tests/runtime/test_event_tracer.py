"""Test the counts of an EventTracer, on the twin and on the boards."""

import time

import numpy as np
import pytest
from picotorch import BufferDataLoader, Error, EventTracer, Program
from picotorch.boards.boards import load_board
from picotorch.host.request import Request
from picotorch.module import load_with_exact_memories
from picotorch.run import emulated
from support import fixture_store
from support.flatbuffer_builder import bool_value, int_value
from support.programs import call, jump, move, plan, program, tensor
from support.targets import BOARDS, HOST, SCRIPT_BOARDS, SCRIPTS, aligned, run_script

pytestmark = pytest.mark.check

LONG, BOOL = 4, 11
X, OUT, CONDITION = range(3)
CALL = 460  # maximum instructions of a call of execute from Python; 456 on Cortex-M0+
OFF = 3  # maximum error of an instruction's count


def sections():
    x, out = tensor([4], 0), tensor([4], 16)
    picked = [x, tensor([1], 32, dtype=LONG), tensor([1], 48), tensor([1], 64), int_value(0)]
    return {
        "branches": program(plan(
            [x, out, tensor([], 32, dtype=BOOL), bool_value(False)],
            [move(X, OUT), jump(CONDITION, 3), call(0, X, OUT, OUT)], ["aten::relu.out"],
            [X, CONDITION], [OUT], [48])),
        "failure": program(plan(
            picked, [call(0, 0, 0, 0), call(1, 0, 4, 1, 2, 2), call(0, 2, 3, 3)],
            ["aten::relu.out", "aten::index_select.out"], [0, 1], [3], [80])),
    }


@pytest.mark.parametrize("target", (HOST, *SCRIPT_BOARDS))
def test_counted_and_rejected_calls(target):
    result = run_script("tracing.py", sections(), target)
    assert result.lines == (SCRIPTS / "tracing.exp").read_text().splitlines()


def execute(name, board, executions):
    fixture = fixture_store.load(name)
    run = fixture.runs[0]
    sizes = {f"{name}_size": board.arenas[name].size for name in ("pool", "temp")}
    result = emulated.run(Request(fixture.pte, name, run.inputs, run.method, **sizes,
                                  executions=executions), board)
    assert result.code == 0, result.message
    return result


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", ["add_1", "control_flow", "mlp", "attention", "int8_activations"])
def test_the_sum_of_the_instructions_equals_execute(name, board):
    plain, traced = (execute(name, load_board(board), executions) for executions in (0, 1))
    (events,) = traced.events
    total = sum(event.ticks for event in events)
    minimum = -OFF * sum(event.calls for event in events)
    assert minimum < plain.instructions["execute"] - total < CALL - minimum
    assert traced.heap_bytes_allocated == 0
    assert plain.pool == traced.pool and plain.events == []
    for output, expected in zip(traced.outputs, plain.outputs, strict=True):
        np.testing.assert_array_equal(output, expected)


def test_the_twin_counts_nanoseconds():
    fixture = fixture_store.load("resnet8")
    loaded = Program.load(BufferDataLoader(aligned(fixture.pte)))
    tracer = EventTracer(bytearray(EventTracer.nbytes(loaded.method_meta("forward"))))
    method = load_with_exact_memories(loaded, "forward", event_tracer=tracer)
    method.set_inputs([np.array(value) for value in fixture.runs[0].inputs])
    start = time.perf_counter_ns()
    method.execute()
    took = time.perf_counter_ns() - start
    assert 0.5 * took < tracer.total() <= took


def test_a_program_that_never_ends_is_counted():
    endless = program(plan([bool_value(False)], [jump(0, 0)], [], [], [], []))
    tracer = EventTracer(bytearray(32))
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(endless))), "forward",
                                      event_tracer=tracer)
    with pytest.raises(Error, match="10,000,000"):
        method.execute()
    assert (tracer.calls(0), tracer.executions()) == (10_000_000, 1)


def test_ticks_of_any_size_can_be_read():
    tracer = EventTracer(bytearray(32))
    tracer._instructions = 1
    tracer.buffer[16:24] = (2**40 + 5).to_bytes(8, "little")
    assert tracer.ticks(0) == tracer.total() == 2**40 + 5
