"""Run compiled methods with the heap locked, then provoke errors. Under MicroPython the methods come
from the module picotorch_models, under CPython from the arguments NAME=FILE. Both print the same lines,
except for features of a native module: `native` is true there."""

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
    models = {name: getattr(picotorch_models, name) for name in dir(picotorch_models)
              if name[0] != "_" and name != "uctypes"}
    native = True
except ImportError:
    native = False
    models = {word.split("=")[0]: open(word.split("=")[1], "rb").read() for word in sys.argv[1:]}

    def mem_alloc():
        return 0

    heap_lock = heap_unlock = mem_alloc

ARENA = memoryview(bytearray(64000))  # for the single planned buffer of each method
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


def refusal(function, *arguments):
    try:
        function(*arguments)
    except Error as error:
        return str(error)
    return "none"


class Run:
    def __init__(self, model, temp=TEMP):
        self.program = Program.load(BufferDataLoader(model))
        self.meta = self.program.method_meta("forward")
        planned = [ARENA[: self.meta.memory_planned_buffer_size(0)]]
        self.temp = MemoryAllocator(bytearray(temp), "temp memory")
        self.manager = MemoryManager(MemoryAllocator(bytearray(0)), HierarchicalAllocator(planned),
                                     self.temp)
        self.method = Method(self.manager)
        self.input = bytearray(self.meta.input_tensor_meta(0).nbytes())
        number = 1
        for i in range(0, len(self.input), 4):  # floats of 1 to 2: exponent 127
            number = number * 75 % 65537
            self.input[i + 1] = number & 0xFF
            self.input[i + 2] = 0x80 | number >> 9
            self.input[i + 3] = 0x3F

    def __call__(self):
        self.method.load(self.program, "forward")
        self.method.set_input(self.input, 0)
        self.method.execute()

    def show(self):
        output = self.method.get_output(0)
        print("output", binascii.hexlify(bytes(output.data)).decode())


def run_once(model):
    Run(model)()


for name in sorted(models):
    if name.startswith("run_"):
        run = Run(models[name])
        print(name, len(models[name]), run.meta)
        print(locked(run))
        run.show()
        run.method.unload()
        print(locked(run))
        run.show()

# Run with too little memory, then with enough
run = Run(models["run_int8"], 64)
caught = locked(run)
print(str(caught).split(";")[0])
run.temp.buffer = bytearray(TEMP)
run.temp.size = TEMP
print(locked(run))
run.show()
run = None

if native:
    damaged = bytearray(models["run_int8"])
    damaged[200] ^= 0xFF
    print("damaged", refusal(Run, damaged))
    print("short", refusal(Run, models["run_int8"][:1000]))
    for name in sorted(models):
        if not name.startswith("run_"):
            print(name, refusal(run_once, models[name]))
