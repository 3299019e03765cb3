"""Run a model on a Pico, by real mpremote, with the heap locked, and on the twin."""

import binascii
import subprocess
import sys

from picotorch.host import twin
from picotorch.host.request import Request

SCRIPT = """
import gc, micropython, sys, uctypes

sys.path[:] = {folders!r}
gc.collect()
print("empty", gc.mem_free())
from binascii import hexlify, unhexlify
from picotorch import (BufferDataLoader, HierarchicalAllocator, MemoryAllocator, MemoryManager, Method,
                       Program, from_blob)

model = {model}
program = Program.load(BufferDataLoader(model))
meta = program.method_meta("forward")
sizes = [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]
method = Method(MemoryManager(MemoryAllocator(bytearray({pool})),
                              HierarchicalAllocator([bytearray(size) for size in sizes]),
                              MemoryAllocator(bytearray({temp}), "temp memory")), {outputs})
inputs = [bytearray(unhexlify(data)) for data in {inputs!r}]
tensors = []
for i, data in enumerate(inputs):
    info = meta.input_tensor_meta(i)
    tensors.append(from_blob(data, info.sizes(), info.scalar_type(), info.dim_order()))
gc.collect()
before = gc.mem_alloc()
micropython.heap_lock()
method.load(program, "forward")
for i in range(len(tensors)):
    method.set_input(tensors[i], i)
method.execute()
micropython.heap_unlock()
print("allocated", gc.mem_alloc() - before)
print("free", gc.mem_free())
print("model", uctypes.addressof(model))
pool = method.manager.method_allocator
print("pool", hexlify(memoryview(pool.buffer)[:pool.used]).decode())
for i in range(method.outputs_size()):
    print("output", hexlify(method.get_output(i).data).decode())
"""


def mpremote(port):
    """Return call(arguments), which returns mpremote's output. status: the expected exit status."""
    def call(*arguments, status=0):
        command = [sys.executable, "-m", "mpremote", "connect", port, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return call


def run(mpremote, model, path, inputs, folders=(".frozen",)):
    """Load and execute the board's expression `model`, and on the twin the file at `path`. Return
    {name: printed values}, and the twin's result. folders: sys.path of the board."""
    result = twin.run(Request(path.read_bytes(), path.name, inputs))
    assert result.code == 0
    script = SCRIPT.format(
        folders=list(folders), model=model, pool=result.method_pool.used,
        temp=max(result.temp.used, 16), outputs=len(result.outputs),
        inputs=[value.tobytes().hex() for value in inputs])
    printed = {}
    for line in mpremote("exec", script).splitlines():
        word, _, value = line.partition(" ")
        printed.setdefault(word, []).append(value)
    return printed, result


def assert_as_the_twin(printed, result):
    assert binascii.unhexlify(printed["pool"][0]) == result.pool
    for value, expected in zip(printed["output"], result.outputs, strict=True):
        assert binascii.unhexlify(value) == expected.tobytes()
