"""Raise KeyboardInterrupt at many times of each call, heap locked: the method stays usable.

Sections: faulty, the program of tests/support/faulty.py; relu, a program of four floats; loop, an
endless program; long, a single instruction of some hundred million machine instructions; turns: the
approximate number of interrupts of each call, at equal intervals from its start to its end. A failing
load, whose clean-up is short, gets ten times as many. Prints the number of interrupts that ended each
call.
"""

from array import array

from picotorch import Backend, Module, register_backend


class Counter(Backend):
    """Compute out = in + the single byte of the processed data."""

    def __init__(self):
        self.view = memoryview(bytearray(1))
        self.ready = bytearray(2)

    def init(self, context, processed, compile_specs):
        context.get_runtime_allocator().allocate(12, 8, self.view)
        step = processed.data()[0]
        self.ready[step] += 1
        return step

    def execute(self, context, handle, args):
        context.allocate(64, 8, self.view)
        args[1].data[0] = args[0].data[0] + handle

    def destroy(self, handle):
        self.ready[handle] -= 1


counter = Counter()
register_backend("Counter", counter)


class Bench:
    """A method of the faulty program, behind 8 bytes of another user of its pool."""

    def __init__(self):
        self.program = Program.load(BufferDataLoader(sections["faulty"]))
        self.pool = MemoryAllocator(take("pool", 512))
        self.pool.allocate(8)
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator([take("planned", 32)]),
                                           MemoryAllocator(take("temp", 64), "temp memory")), 2)
        self.whole_pool, self.short_pool = self.pool.buffer, self.pool.buffer[:200]
        self.table, self.found = take("planned", 24), take("planned", 16)
        struct.pack_into("<6f", self.table, 0, 0, 1, 2, 3, 4, 5)
        self.index, self.bad = take("planned", 16), take("planned", 16)
        struct.pack_into("<qq", self.index, 0, 2, 1)
        struct.pack_into("<qq", self.bad, 0, 0, 3)
        self.shorter = from_blob(self.index, [1], "Long")
        self.outputs = [None, None]

    def load(self):
        self.method.load(self.program)

    def set_table(self):
        self.method.set_attribute_data_ptr(self.table, "table")

    def set_output(self):
        self.method.set_output_data_ptr(self.found, 0)

    def set_input(self):
        self.method.set_input(self.index, 0)

    def set_smaller_input(self):
        self.method.set_input(self.shorter, 0)

    def set_bad_input(self):
        self.method.set_input(self.bad, 0)

    def execute(self):
        self.method.execute()

    def get_outputs(self):
        self.method.get_outputs(self.outputs)

    def reset_state(self):
        self.method.reset_state()

    def unload(self):
        self.method.unload()

    def run_twice(self):
        self.reset_state()
        self.set_table()
        self.set_output()
        self.set_input()
        self.execute()
        self.execute()
        self.get_outputs()

    def check_runs(self):
        assert locked(self.run_twice) is None
        assert list(self.outputs[0].data) == [4, 5, 2, 3] and self.outputs[1].data[0] == 2

    def check_is_unloaded(self):
        assert locked(self.unload) is None
        assert not self.method.is_loaded()
        assert self.pool.used == 8 and self.pool.held == 0
        assert bytes(counter.ready) == b"\0\0", "a delegate was not destroyed"

    def check_recovers(self):
        if self.method.is_loaded():
            self.check_runs()
        self.check_is_unloaded()
        assert locked(self.load) is None
        self.check_runs()
        self.check_is_unloaded()


def interrupted(call, ticks):
    """Call call() with the heap locked. Return True if an interrupt after `ticks` ticks ended it."""
    hit = False
    collect()
    before = mem_alloc()
    heap_lock()
    try:
        try:
            _board.interrupt_after(ticks)
            call()
        except Error:
            pass
        finally:
            _board.interrupt_after(0)
        for _ in range(2):  # raises an interrupt that is pending
            pass
    except KeyboardInterrupt:
        hit = True
    heap_unlock()
    assert mem_alloc() == before, "heap was allocated"
    return hit


def instructions(call):
    """Count the instructions of a call without interrupts."""
    took = bytearray(4)
    _board.count_start()
    unlocked(call)
    _board.count_stop(took, 0)
    return struct.unpack("<I", took)[0]


ONWARDS = ("load", "set_table", "set_output", "set_input", "execute", "get_outputs", "reset_state",
           "unload")
PHASES = [(name, ONWARDS[:i]) for i, name in enumerate(ONWARDS)] + [
    ("set_smaller_input", ONWARDS[:5]),
    ("failing load", ()),
    ("failing execute", ("load", "set_table", "set_output", "set_bad_input")),
]


def interrupt_phase(bench, phase, before):
    """Interrupt a call at increasing numbers of ticks, and return how many interrupts ended it."""
    call = getattr(bench, phase.split(" ")[-1])

    def turn(function):
        for name in before:
            assert locked(getattr(bench, name)) is None
        if phase == "failing load":
            bench.pool.buffer, bench.pool.size = bench.short_pool, 200
        result = function()
        bench.pool.buffer, bench.pool.size = bench.whole_pool, 512
        bench.check_recovers()
        return result

    end = 2 * turn(lambda: instructions(call))  # no board has as many ticks
    times = 10 * turns if phase == "failing load" else turns
    for i in range(times + 1):
        ticks = 1 + end * i // times
        if not turn(lambda ticks=ticks: interrupted(call, ticks)):
            return i
    return times


def interrupt_loop(name, planned, delay):
    """Check that the execution ends at most `delay` instructions after the interrupt, and can be
    repeated."""
    program = Program.load(BufferDataLoader(sections[name]))
    arenas = [take("planned", planned)] if planned else []
    method = Method(MemoryManager(MemoryAllocator(take("pool", 512)), HierarchicalAllocator(arenas)))
    method.load(program)
    took = bytearray(4)

    def execute():
        _board.count_start()
        try:
            method.execute()
        finally:
            _board.count_stop(took, 0)

    for i in range(turns):
        ticks = 1000 + 997 * i
        assert interrupted(execute, ticks)
        assert struct.unpack("<I", took)[0] < 2 * ticks + delay
    return turns


def interrupt_module():
    """Interrupt the first and later uses of a Module, which take some heap. The next use works as
    usual."""
    took, x = bytearray(4), array("f", [-1, 2, 3, 4])
    made, hits = None, 0
    for i in range(2 * turns):
        if i % 2 == 0:
            made = Module(sections["relu"])
        if i < 2:
            _board.count_start()
            made(x)
            _board.count_stop(took, 0)
            end = struct.unpack("<I", took)[0]
            ends = (end, end) if i == 0 else (ends[0], end)
        try:
            try:
                _board.interrupt_after(1 + ends[i % 2] * i // (2 * turns))
                made(x)
            finally:
                _board.interrupt_after(0)
            for _ in range(2):  # raises an interrupt that is pending
                pass
        except KeyboardInterrupt:
            hits += 1
        assert list(made(x).data) == [0, 2, 3, 4]
    return hits


turns = int(str(sections["turns"], "utf-8"))
bench = Bench()
for phase, before in PHASES:
    print("%s: %d" % (phase, interrupt_phase(bench, phase, before)))
print("loop: %d" % interrupt_loop("loop", 0, 5000))
print("long: %d" % interrupt_loop("long", 3 * 29776, 20000000))
print("module: %d" % interrupt_module())
