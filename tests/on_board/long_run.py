"""Run many inferences of a model with state, with random faults between them. The heap is locked
except while programs are loaded. No memory use grows.

Sections: model, with an input and an output of floats; broken, a part of the model; faulty, the program
of tests/support/faulty.py; inputs, the bytes of some inputs; settings: seed, count (inferences), every.
Prints the checksum of all outputs after each `every` inferences, and the number of each event.
"""

import gc
from array import array

import _picotorch
from picotorch import Backend, register_backend
from picotorch.errors import DELEGATE_INVALID_HANDLE, INVALID_ARGUMENT, INVALID_PROGRAM, fail

try:
    from sys import getallocatedblocks
except ImportError:
    getallocatedblocks = None

BYTE = 0  # ScalarType
SPREAD = 16  # number of inferences for one event
BLOCKS = 10  # blocks that CPython's caches may add after the start


class Counter(Backend):
    """Compute out = in + the single byte of the processed data. The second delegate calls `at` before
    it."""

    def __init__(self):
        self.at = None
        self.view = memoryview(bytearray(1))

    def init(self, context, processed, compile_specs):
        context.get_runtime_allocator().allocate(24, 8, self.view)
        return processed.data()[0]

    def execute(self, context, handle, args):
        context.allocate(16, 8, self.view)
        if handle == 0 and self.at is not None:
            self.at()
        args[1].data[0] = args[0].data[0] + handle


def raise_error():
    raise fail(DELEGATE_INVALID_HANDLE, "is stale")


def raise_interrupt():
    raise KeyboardInterrupt


class Schedule:
    """Numbers that a seed decides, and a checksum of the outputs."""

    def __init__(self, seed):
        self.number = seed
        self.sum = 1

    def next(self, below):
        self.number = (self.number * 1103 + 12345) & 0x7FFFF
        return (self.number >> 5) % below

    def add(self, byte):
        self.sum = (self.sum * 31 + byte) & 0xFFFFFF


class Model:
    """The model's method, and its inputs."""

    def __init__(self, schedule):
        self.schedule = schedule
        self.program = Program.load(BufferDataLoader(sections["model"]))
        meta = self.program.method_meta()
        planned = [take("planned", meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        self.pool = MemoryAllocator(take("pool", 2048))
        self.short_pool = memoryview(bytearray(1))
        self.manager = MemoryManager(self.pool, HierarchicalAllocator(planned))
        self.method = Method(self.manager, 1)
        size = meta.input_tensor_meta(0).nbytes()
        given = sections["inputs"]
        self.inputs = [given[at : at + size] for at in range(0, len(given), size)]
        self.result = memoryview(bytearray(meta.output_tensor_meta(0).nbytes()))
        self.short = self.inputs[0][:4]

    def load(self):
        self.method.load(self.program)

    def reload(self):
        self.method.unload()
        assert self.pool.used == 0
        self.method.load(self.program)

    def infer(self):
        self.method.set_input(self.inputs[self.schedule.next(len(self.inputs))], 0)
        self.method.execute()
        self.add_output()

    def infer_in_steps(self):
        self.method.set_input(self.inputs[0], 0)
        try:
            while True:
                self.method.step()
        except Error as error:
            assert error.code == errors.END_OF_METHOD
        self.add_output()
        self.method.reset_execution()

    def add_output(self):
        data = self.method.get_output(0).data
        found = _picotorch.view(self.result, data, 0, len(self.result), BYTE)
        for i in range(len(found)):
            self.schedule.add(found[i])

    def fail_to_load(self):
        self.method.unload()
        size = self.pool.size
        self.pool.size = 64 + self.schedule.next(600)
        whole = self.pool.buffer
        self.pool.buffer = _picotorch.view(self.short_pool, whole, 0, self.pool.size, BYTE)
        try:
            self.method.load(self.program)
        except Error as error:
            self.schedule.add(error.code)
        self.pool.buffer = whole
        self.pool.size = size
        assert self.pool.used == 0
        self.method.load(self.program)

    def take_wrong_input(self):
        try:
            self.method.set_input(self.short, 0)
        except Error as error:
            assert error.code == INVALID_ARGUMENT
            self.schedule.add(error.code)

    def reset(self):
        self.method.reset_state()


class Faulty:
    """The faulty program's method, which fails on request, in the model's pool behind its method."""

    def __init__(self, model):
        self.schedule = model.schedule
        self.pool = model.pool
        self.program = Program.load(BufferDataLoader(sections["faulty"]))
        self.table, self.found = take("planned", 24), take("planned", 16)
        self.good, self.bad = take("planned", 16), take("planned", 16)
        self.good[:] = bytes(16)
        self.bad[:] = bytes(8) + b"\x03" + bytes(7)
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator([take("planned", 32)]),
                                           MemoryAllocator(take("temp", 16), "temp memory")))
        self.count = 0

    def run(self, bad, at):
        """Load it, let an execution fail and another succeed, and unload it."""
        m = self.method
        counter.at = at
        m.load(self.program)
        try:
            m.set_attribute_data_ptr(self.table, "table")
            m.set_output_data_ptr(self.found, 0)
            m.set_input(bad, 0)
            m.execute()
        except Error as error:
            self.schedule.add(error.code)
        except KeyboardInterrupt:
            self.schedule.add(255)
        counter.at = None
        m.set_input(self.good, 0)
        m.execute()
        self.schedule.add(m.get_output(1).data[0])  # 2: both executions counted
        m.unload()

    def fail_in_kernel(self):
        self.run(self.bad, None)

    def fail_in_delegate(self):
        self.run(self.good, raise_error)

    def fail_by_interrupt(self):
        self.run(self.good, raise_interrupt)

    def succeed(self):
        self.run(self.good, None)


class Run:
    def __init__(self, seed):
        self.schedule = Schedule(seed)
        self.model = model = Model(self.schedule)
        self.faulty = faulty = Faulty(model)
        self.events = [("reloads", model.reload), ("loads that fail", model.fail_to_load),
                       ("wrong inputs", model.take_wrong_input), ("resets", model.reset),
                       ("runs in steps", model.infer_in_steps),
                       ("kernels that fail", faulty.fail_in_kernel),
                       ("delegates that fail", faulty.fail_in_delegate),
                       ("interrupts", faulty.fail_by_interrupt), ("second methods", faulty.succeed),
                       ("broken files", self.load_broken), ("programs", self.load_program),
                       ("methods", self.make_method)]
        self.counts = [0] * len(self.events)
        self.unlocked = 3  # the last events, which allocate objects
        self.infer = model.infer

    def load_broken(self):
        try:
            Program.load(BufferDataLoader(sections["broken"]))
        except Error as error:
            assert error.code == INVALID_PROGRAM
            self.schedule.add(error.code)

    def load_program(self):
        self.model.method.unload()
        self.model.program = Program.load(BufferDataLoader(sections["model"]))
        self.model.load()

    def make_method(self):
        self.model.method.unload()
        self.model.method = Method(self.model.manager, 1)
        self.model.load()

    def turn(self):
        """Run an inference, and perhaps an event before it."""
        event = self.schedule.next(SPREAD * len(self.events))
        if event < len(self.events):
            self.counts[event] += 1
            function = self.events[event][1]
            if event < len(self.events) - self.unlocked:
                heap_lock()
                function()
                heap_unlock()
            else:
                function()
        heap_lock()
        self.infer()
        heap_unlock()


def in_use():
    """Return bytes of MicroPython's heap, or blocks of CPython's."""
    gc.collect()
    return getallocatedblocks() if getallocatedblocks else mem_alloc()


settings = job.settings(sections["settings"])
count, every = int(settings["count"]), int(settings["every"])
counter = Counter()
register_backend("Counter", counter)
run = Run(int(settings["seed"]))
run.model.load()
used = run.model.pool.used
for function in [event[1] for event in run.events]:  # creates the objects that each function makes once
    function()
run.infer()
sums = array("I", [0] * (count // every))  # printing allocates
start = in_use()
for i in range(count):
    run.turn()
    assert run.model.pool.used == used
    if (i + 1) % every == 0:
        sums[i // every] = run.schedule.sum
        grown = in_use() - start
        assert grown <= (BLOCKS if getallocatedblocks else 0), "grown by %d" % grown
for i in range(len(sums)):
    print("%d: %06x" % ((i + 1) * every, sums[i]))
for i in range(len(run.events)):
    print("%s: %d" % (run.events[i][0], run.counts[i]))
