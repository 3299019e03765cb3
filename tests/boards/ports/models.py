"""Load and run two models with the heap locked, then with too little memory, then again. Under
MicroPython the models come from the module picotorch_models, under CPython from the arguments
NAME=FILE. Both print the same lines: outputs and the bytes of the loaded method."""

import binascii
import gc
import sys

from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
)

try:
    import picotorch_models
    from micropython import heap_lock, heap_unlock

    mem_alloc = gc.mem_alloc
    models = [(name, getattr(picotorch_models, name)) for name in ("int8_ds_cnn", "ds_cnn")]
except ImportError:
    models = [(word.split("=")[0], open(word.split("=")[1], "rb").read()) for word in sys.argv[1:]]

    def mem_alloc():
        return 0

    heap_lock = heap_unlock = mem_alloc

ARENA = memoryview(bytearray(64000))  # for the single planned buffer of each model
POOL = 4096
TEMP = 4096


def locked(function):
    """Call function with the heap locked, and return the Error that it raised, or None."""
    caught = None
    gc.collect()
    before = mem_alloc()
    heap_lock()
    try:
        function()
    except Error as error:
        caught = error
    finally:
        heap_unlock()
    print("heap", mem_alloc() - before)
    return caught


class Run:
    def __init__(self, model, pool_size):
        self.program = Program.load(BufferDataLoader(model))
        self.meta = self.program.method_meta("forward")
        planned = [ARENA[: self.meta.memory_planned_buffer_size(0)]]
        self.pool = MemoryAllocator(bytearray(pool_size))
        self.manager = MemoryManager(self.pool, HierarchicalAllocator(planned),
                                     MemoryAllocator(bytearray(TEMP)))
        self.method = Method(self.manager)
        self.input = bytearray(self.meta.input_tensor_meta(0).nbytes())
        number = 1
        for i in range(0, len(self.input), 4):  # floats of 1 to 2: exponent 127
            number = number * 75 % 65537
            self.input[i + 1] = number & 0xFF
            self.input[i + 2] = 0x80 | number >> 9
            self.input[i + 3] = 0x3F
        self.output = None

    def __call__(self):
        self.method.load(self.program, "forward")
        self.method.set_input(self.input, 0)
        self.method.execute()
        self.output = self.method.get_output(0)

    def show(self):
        print("output", binascii.hexlify(bytes(self.output.data)).decode())
        print("pool", self.pool.used, binascii.crc32(bytes(self.pool.buffer[: self.pool.used])))


for name, model in models:
    print(name, len(model))
    run = Run(model, POOL)
    print(locked(run))
    run.show()
    run = Run(model, 1024)
    print(locked(run))
    run.pool.buffer = bytearray(POOL)
    run.pool.size = POOL
    print(locked(run))
    run.show()
    run = None
