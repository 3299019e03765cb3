"""Test threads that share the loops of a layer: the bytes equal those of one thread, for any number of
threads."""

import time

import numpy as np
import pytest
from _picotorch_c import lib
from support.kernel_call import Call, KernelError, Tensor, call
from support.random_layers import (
    Numbers,
    convolution,
    depthwise,
    float_convolution,
    float_depthwise,
    float_product,
    linear,
)
from support.records import Context

THREADS = (2, 3, 7)
PATIENCE = 60  # seconds


@pytest.fixture(autouse=True)
def _all_loops_are_shared():
    before = lib.pt_share_from(1)
    yield
    lib.pt_share_from(before)


def assert_same(monkeypatch, operator, *arguments):
    one = call(operator, *arguments)
    for threads in THREADS:
        monkeypatch.setattr(Context, "threads", threads)
        assert call(operator, *arguments).tobytes() == one.tobytes()
    monkeypatch.setattr(Context, "threads", 1)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("arguments", [convolution, depthwise, linear])
def test_random_shapes_of_int8(monkeypatch, arguments, seed):
    assert_same(monkeypatch, *arguments(seed))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("arguments", [float_convolution, float_depthwise, float_product])
def test_random_shapes_of_floats(monkeypatch, arguments, seed):
    """The layers are shared or not, since they have few products."""
    assert_same(monkeypatch, *arguments(seed))


FLOAT_CONVOLUTIONS = {  # channels, height, width; outputs, groups, kernel, stride, padding
    "padded": ((40, 9, 31), 50, 1, (3, 3), 1, 1),
    "strided": ((16, 31, 33), 30, 1, (3, 3), 2, 1),
    "pointwise": ((64, 14, 14), 70, 1, (1, 1), 1, 0),
    "depthwise": ((45, 36, 40), 45, 45, (3, 3), 1, 1),
    "groups": ((32, 20, 21), 30, 2, (3, 2), 1, 0),
    "long lines": ((70, 1, 3000), 6, 1, (1, 3), 1, 1),
}


@pytest.mark.parametrize("case", FLOAT_CONVOLUTIONS.values(), ids=FLOAT_CONVOLUTIONS)
def test_float_convolutions(monkeypatch, case):
    (channels, *size), outputs, groups, kernel, stride, padding = case
    n = Numbers(1)
    pads = [padding if k > 1 else 0 for k in kernel]
    out = [(s + 2 * p - k) // stride + 1 for s, k, p in zip(size, kernel, pads, strict=True)]
    assert_same(monkeypatch, "aten::convolution.out", n.floats(2, channels, *size),
                n.floats(outputs, channels // groups, *kernel), n.floats(outputs), [stride, stride],
                pads, [1, 1], False, [0, 0], groups, np.zeros((2, outputs, *out), np.float32))


@pytest.mark.parametrize("rows,depth,columns", [(9, 600, 300), (700, 500, 1), (1, 500, 700),
                                                (301, 33, 65)])
def test_float_products(monkeypatch, rows, depth, columns):
    n = Numbers(2)
    assert_same(monkeypatch, "aten::mm.out", n.floats(rows, depth), n.floats(depth, columns),
                np.zeros((rows, columns), np.float32))
    assert_same(monkeypatch, "aten::linear.out", n.floats(rows, depth), n.floats(columns, depth),
                n.floats(columns), np.zeros((rows, columns), np.float32))


@pytest.mark.parametrize("operator,numbers", [
    ("aten::relu.out", ()), ("aten::exp.out", ()), ("aten::hardtanh.out", (-1.0, 1.0))])
@pytest.mark.parametrize("count", [4095, 4097, 50_001])
def test_functions_of_an_element(monkeypatch, operator, numbers, count):
    assert_same(monkeypatch, operator, Numbers(1).floats(count), *numbers, np.zeros(count, np.float32))


@pytest.mark.parametrize("kernel,stride", [((1, 1), 1), ((1, 1), 2), ((3, 3), 1), ((3, 3), 2)])
@pytest.mark.parametrize("channels", [64, 600])
def test_large_int8_convolutions(monkeypatch, kernel, stride, channels):
    n = Numbers(4)
    bias, *scales = n.requantization(70, channels * kernel[0] * kernel[1])
    out = [(size - k) // stride + 1 for size, k in zip((17, 19), kernel, strict=True)]
    assert_same(monkeypatch, "cortex_m::quantized_conv2d.out", n.image(2, channels, 17, 19),
                n.weights(70, *kernel, channels), bias, [stride, stride], [0, 0], [1, 1], 5, -3,
                *scales, -128, 127, Tensor(np.zeros(0, np.uint8), scratch=True), n.image(2, 70, *out))


def test_threads_compute_at_the_same_time(monkeypatch):
    """The executing thread polls before the instruction, and before each part. In the first of these
    polls for a part it waits for the outputs of another thread."""
    monkeypatch.setattr(Context, "threads", 2)
    x, w = np.ones((8, 600), np.float32), np.ones((600, 600), np.float32)
    out = np.zeros((8, 600), np.float32)
    made = Call("aten::mm.out", [x, w, out])
    asked, late = [], []

    def wait():
        asked.append(time.monotonic())
        while len(asked) == 2 and not late and not (made.result(out) == 600).any():
            if time.monotonic() > asked[1] + PATIENCE:
                late.append(True)
            time.sleep(0.001)
        return 0

    made.context.set_poll(wait)
    made.run()
    assert asked and not late and (made.result(out) == 600).all()


def test_an_error_of_the_poll_ends_the_loop(monkeypatch):
    monkeypatch.setattr(Context, "threads", 3)
    n = Numbers(1)
    made = Call("aten::mm.out", [n.floats(90, 600), n.floats(600, 600),
                                 np.zeros((90, 600), np.float32)])
    made.context.set_poll(lambda: lib.PT_ERROR_INTERNAL)
    with pytest.raises(KernelError, match="Internal"):
        made.run()


def test_other_threads_end_with_an_error(monkeypatch):
    """Other threads begin no further part of the loop, since it could take long."""
    monkeypatch.setattr(Context, "threads", 2)
    out = np.zeros((200, 3000), np.float32)
    made = Call("aten::mm.out", [np.ones((200, 3000), np.float32), np.ones((3000, 3000), np.float32),
                                 out])
    end, asked = time.monotonic() + PATIENCE, []

    def fail_once_another_one_computes():
        asked.append(True)
        while len(asked) == 2 and not made.result(out).any() and time.monotonic() < end:
            time.sleep(0.0001)
        return lib.PT_ERROR_INTERNAL if len(asked) == 2 else 0

    made.context.set_poll(fail_once_another_one_computes)
    with pytest.raises(KernelError, match="Internal"):
        made.run()
    assert 0 < np.count_nonzero(made.result(out)) < out.size / 2


def test_rows_with_much_work_are_not_shared(monkeypatch):
    """An interrupt would wait for the threads, so one thread computes the row, and polls in the
    middle."""
    monkeypatch.setattr(Context, "threads", 2)
    n, asked = Numbers(1), []
    bias, *scales = n.requantization(256, 9 * 900)
    made = Call("cortex_m::quantized_conv2d.out", [
        n.image(1, 900, 4, 1100), n.weights(256, 3, 3, 900), bias, [1, 1], [0, 0], [1, 1], 5, -3,
        *scales, -128, 127, Tensor(np.zeros(0, np.uint8), scratch=True), n.image(1, 256, 2, 1098)])

    def fail_in_the_first_row():
        asked.append(True)
        return lib.PT_ERROR_INTERNAL if len(asked) == 10 else 0

    made.context.set_poll(fail_in_the_first_row)
    with pytest.raises(KernelError, match="Internal"):
        made.run()
