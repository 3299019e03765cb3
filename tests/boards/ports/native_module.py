"""Provoke the errors of the native module on stock MicroPython. The models come from the module
picotorch_models; each printed line is expected."""

import gc

import _picotorch
import micropython
import picotorch_models as models
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
)


def refusal(function, *arguments):
    try:
        function(*arguments)
    except Error as error:
        return str(error)
    return "none"


def load(model, pool_size):
    program = Program.load(BufferDataLoader(model))
    meta = program.method_meta("forward")
    planned = [bytearray(meta.memory_planned_buffer_size(0))]
    method = Method(MemoryManager(MemoryAllocator(bytearray(pool_size)), HierarchicalAllocator(planned),
                                  MemoryAllocator(bytearray(4096))))
    method.load(program, "forward")
    method.set_input(bytearray(meta.input_tensor_meta(0).nbytes()), 0)
    return method


def deepest(function):
    """Call function at the deepest level of recursion, and return the error that it raised there."""
    try:
        return deepest(function)
    except RuntimeError:
        return refusal(function)


damaged = bytearray(models.int8_ds_cnn)
damaged[4] ^= 0xFF
print("damaged", refusal(load, damaged, 4096))
print("short", refusal(load, models.int8_ds_cnn[:1000], 4096))

# The two error objects are reused, and their tracebacks grow while the heap is open
for i in range(200):
    text = refusal(load, models.int8_ds_cnn, 64)
    assert text.startswith("MemoryAllocationFailed (0x21): method pool"), text
    if i % 20 == 0:
        gc.collect()
        garbage = [bytearray(64) for _ in range(100)]
        garbage = None
print("refused 200 times")

method = load(models.int8_ds_cnn, 4096)
zeros = bytearray(1960)


def result():
    method.set_input(zeros, 0)
    method.execute()
    return bytes(method.get_output(0).data)


first = result()
print("deep", deepest(method.execute))
print("afterwards", result() == first)

# Scheduled callbacks run while the method runs, and cannot disturb it
seen = []


def scheduled(times):
    seen.append(method.library.is_running())
    if times > 0:
        micropython.schedule(scheduled, times - 1)
    elif method.library.is_running():
        print("inside", refusal(method.unload))


micropython.schedule(scheduled, 3)
method.execute()
print("seen", seen)
print("the same", result() == first)

try:
    _picotorch.clear_traceback(3)
except TypeError:
    print("no exception")
for number in (1 << 62, -(1 << 63), 1 << 63, 1 << 70, 3):
    print(number, refusal(method.set_input, number, 0))
print("name", Program.load(BufferDataLoader(models.int8_ds_cnn)).method_names)
