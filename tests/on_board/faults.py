"""Make every call in every state, and check the state after each fault, with the heap locked.

Sections: faulty, the program of tests/support/faulty.py; relu, a program of four floats; lists, a
program whose outputs are lists. Prints the outcome of every call. After each call the method of the
faulty program is loaded again in the same memories: its outputs must be correct, and its pool
unchanged.
"""

from picotorch import Backend, register_backend
from picotorch.errors import DELEGATE_INVALID_HANDLE, fail


class Counter(Backend):
    """Compute out = in + the single byte of the processed data. `at` is called in the method of this
    name."""

    def __init__(self):
        self.sizes = memoryview(bytearray(8))
        self.ready = 0  # delegates that init created and destroy has not freed
        self.place = ""
        self.at = None

    def fail_at(self, place, function):
        self.place = place
        self.at = function

    def reach(self, place):
        if self.place == place:
            self.place = ""
            self.at()

    def init(self, context, processed, compile_specs):
        step = processed.data()[0]
        self.reach("init")
        if step == 0:
            self.reach("second init")
        self.ready += 1
        return step

    def execute(self, context, handle, args):
        self.reach("execute")
        args[1].data[0] = args[0].data[0] + handle
        if handle == 0:
            self.reach("second execute")

    def destroy(self, handle):
        self.ready -= 1
        self.reach("destroy")


counter = Counter()
register_backend("Counter", counter)
program = Program.load(BufferDataLoader(sections["faulty"]))
pool = MemoryAllocator(take("pool", 512))
short_pool = pool.buffer[:150]
planned = HierarchicalAllocator([take("planned", 32)])
table, found = take("planned", 24), take("planned", 16)
good, bad = take("planned", 16), take("planned", 16)
struct.pack_into("<6f", table, 0, 0, 1, 2, 3, 4, 5)
struct.pack_into("<qq", good, 0, 2, 1)
struct.pack_into("<qq", bad, 0, 0, 3)
short, odd, long = good[:8], take("planned", 16, 4), take("planned", 32)
floats = from_blob(good, [4], "Float")
matrix, longer = from_blob(good, [1, 2], "Long"), from_blob(long, [4], "Long")
shorter = from_blob(good, [1], "Long")
results = [None, None]
expected = struct.pack("<4f", 4, 5, 2, 3)


def relu():
    """Load a method of another program, in memories of its own."""
    m = Method(MemoryManager(MemoryAllocator(bytearray(256)), HierarchicalAllocator([bytearray(32)])))
    m.load(Program.load(BufferDataLoader(sections["relu"])))
    return m


other = relu()
second = Method(MemoryManager(pool, HierarchicalAllocator([take("planned", 32)])))
four = bytearray(16)


def run_other():
    other.set_input(four, 0)
    other.execute()


def load_there():
    """Load a method into the same pool, behind its contents, and unload it."""
    second.load(program)
    second.unload()


class Bench:
    """A new method, in the state of that name."""

    def __init__(self, state):
        self.method = Method(MemoryManager(pool, planned), 2)
        prepare = dict(STATES)[state]
        for step in prepare:
            if step.startswith("fail"):
                assert outcome(getattr(self, step)) != "ok"
            else:
                getattr(self, step)()

    def load(self):
        self.method.load(program)

    def unload(self):
        self.method.unload()

    def set_all(self):
        self.method.set_attribute_data_ptr(table, "table")
        self.method.set_output_data_ptr(found, 0)
        self.method.set_input(good, 0)

    def execute(self):
        self.method.execute()

    def step(self):
        self.method.step()

    def reset(self):
        self.method.reset_state()

    def fail_to_load(self):
        buffer = pool.buffer
        pool.buffer = short_pool
        pool.size = 150
        try:
            self.method.load(program)
        finally:
            pool.buffer = buffer
            pool.size = 512

    def fail_in_kernel(self):
        self.method.set_input(bad, 0)
        self.method.execute()

    def fail_in_delegate(self):
        counter.fail_at("second execute", raise_error)
        self.method.execute()

    def fail_by_interrupt(self):
        counter.fail_at("second execute", raise_interrupt)
        self.method.execute()

    def check_runs(self):
        self.method.reset_state()
        self.set_all()
        self.method.execute()
        self.method.execute()
        self.method.get_outputs(results)
        for i in range(16):
            assert found[i] == expected[i]
        assert results[1].data[0] == 2

    def check_unloads(self):
        self.method.unload()
        assert not self.method.is_loaded() and pool.used == 0 and pool.held == 0
        assert counter.ready == 0

    def check_recovers(self):
        counter.fail_at("", None)
        assert outcome(self.recover) == "ok"

    def recover(self):
        if self.method.is_loaded():
            self.check_runs()
        self.check_unloads()
        self.method.load(program)
        self.check_runs()
        self.check_unloads()


def raise_error():
    raise fail(DELEGATE_INVALID_HANDLE, "is stale", "handle", 7)


def raise_value_error():
    raise ValueError("bad value")


def raise_memory_error():
    raise MemoryError


def raise_interrupt():
    raise KeyboardInterrupt


def raise_exit():
    raise SystemExit


def outcome(function):
    """Call function with the heap locked, and return the error that ended it, or "ok"."""
    try:
        return str(locked(function) or "ok")
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    except SystemExit:
        return "SystemExit"


STATES = (
    ("made", ()),
    ("load failed", ("fail_to_load",)),
    ("loaded", ("load",)),
    ("ready", ("load", "set_all")),
    ("between steps", ("load", "set_all", "step")),
    ("at the end", ("load", "set_all", "step", "step", "step")),
    ("executed", ("load", "set_all", "execute")),
    ("kernel failed", ("load", "set_all", "fail_in_kernel")),
    ("delegate failed", ("load", "set_all", "fail_in_delegate")),
    ("interrupted", ("load", "set_all", "fail_by_interrupt")),
    ("reset", ("load", "set_all", "execute", "reset")),
    ("unloaded", ("load", "set_all", "execute", "unload")),
)
# if a backend makes the call: the calls before, and the call of the backend
WITHIN = (
    ("init", ("made", "load")),
    ("execute", ("ready", "execute")),
    ("destroy", ("executed", "unload")),
)

CALLS = (
    ("load", lambda m: m.load(program)),
    ("load of another name", lambda m: m.load(program, "backward")),
    ("unload", lambda m: m.unload()),
    ("execute", lambda m: m.execute()),
    ("step", lambda m: m.step()),
    ("reset_execution", lambda m: m.reset_execution()),
    ("reset_state", lambda m: m.reset_state()),
    ("set_input", lambda m: m.set_input(good, 0)),
    ("set_input of a shape below the bound", lambda m: m.set_input(shorter, 0)),
    ("set_input -1", lambda m: m.set_input(good, -1)),
    ("set_input of none there", lambda m: m.set_input(good, 1)),
    ("set_input of another dtype", lambda m: m.set_input(floats, 0)),
    ("set_input of another rank", lambda m: m.set_input(matrix, 0)),
    ("set_input above the bound", lambda m: m.set_input(longer, 0)),
    ("set_input of too few bytes", lambda m: m.set_input(short, 0)),
    ("set_input that is misaligned", lambda m: m.set_input(odd, 0)),
    ("set_input of a number", lambda m: m.set_input(7, 0)),
    ("set_inputs of none", lambda m: m.set_inputs(nothing)),
    ("get_output", lambda m: m.get_output(0)),
    ("get_output of none there", lambda m: m.get_output(2)),
    ("get_outputs", lambda m: m.get_outputs(results)),
    ("set_output_data_ptr", lambda m: m.set_output_data_ptr(found, 0)),
    ("set_output_data_ptr of constant bytes", lambda m: m.set_output_data_ptr(constant, 0)),
    ("set_attribute_data_ptr", lambda m: m.set_attribute_data_ptr(table, "table")),
    ("get_attribute", lambda m: m.get_attribute("count")),
    ("inputs_size", lambda m: m.inputs_size()),
    ("reset of the pool", lambda m: pool.reset()),
    ("another method", lambda m: run_other()),
    ("load of another method there", lambda m: load_there()),
)
nothing, constant = [], sections["faulty"][:16]


def calls_in_states():
    for state, _ in STATES:
        for label, call in CALLS:
            bench = Bench(state)
            print("%s: %s -> %s" % (state, label, outcome(lambda: call(bench.method))))  # noqa: B023
            bench.check_recovers()


def calls_of_backends():
    for place, (before, outer) in WITHIN:
        for label, call in CALLS:
            bench = Bench(before)
            counter.fail_at(place, lambda: call(bench.method))  # noqa: B023
            print("in %s: %s -> %s" % (place, label, outcome(getattr(bench, outer))))
            bench.check_recovers()


def faults():
    """Raise errors in a backend, and let a kernel fail. Print the error, whether the method is loaded,
    the count (each execution adds 1 before a second execute or the kernel can fail), bytes of pool."""
    for place in ("init", "second init", "execute", "second execute", "destroy"):
        for label, function in (("Error", raise_error), ("ValueError", raise_value_error),
                                ("MemoryError", raise_memory_error),
                                ("KeyboardInterrupt", raise_interrupt), ("SystemExit", raise_exit)):
            before, outer = dict(WITHIN)[place.split(" ")[-1]]
            bench = Bench(before)
            counter.fail_at(place, function)
            report("%s raises %s" % (place, label), bench, outcome(getattr(bench, outer)))
    bench = Bench("ready")
    report("a kernel fails", bench, outcome(bench.fail_in_kernel))
    # a failure in the clean-up of a failed load does not hide the first failure
    bench = Bench("made")
    counter.fail_at("second init",
                    lambda: counter.fail_at("destroy", raise_value_error) or raise_error())
    report("second init and destroy fail", bench, outcome(bench.load))


def report(label, bench, result):
    print(label, "->", result)
    m = bench.method
    if m.is_loaded():
        before = m.get_attribute("count")[0]
        assert outcome(lambda: m.set_input(good, 0)) == "ok"
        assert outcome(m.execute) == "ok"
        assert m.get_attribute("count")[0] == before + 1
        print("    loaded, count %d, pool %d" % (before, pool.used))
    else:
        print("    not loaded, pool %d" % pool.used)
    bench.check_recovers()


def kept_state():
    """Use outputs and attributes of an unloaded method, as they are and as inputs."""
    m = relu()
    m.set_input(four, 0)
    m.execute()
    out = m.get_output(0)
    m.unload()
    print("output of an unloaded method", list(out.data), outcome(lambda: other.set_input(out, 0)))
    bench = Bench("executed")
    rows, count = bench.method.get_output(0), bench.method.get_attribute("count")
    print("rows", rows.sizes(), "count", count[0])
    bench.unload()
    for i in range(pool.size):  # as another method might write
        pool.buffer[i] = 255
    bench.load()
    print("an input that shows what an unloaded method had",
          outcome(lambda: bench.method.set_input(rows, 0)))
    count[0] = 41
    bench.set_all()
    bench.execute()
    print("an attribute that was kept is the memory", bench.method.get_attribute("count")[0])
    bench.check_recovers()
    lists = Method(MemoryManager(MemoryAllocator(bytearray(256)),
                                 HierarchicalAllocator([bytearray(16)])))
    lists.load(Program.load(BufferDataLoader(sections["lists"])))
    ints, tensors = lists.get_output(0), lists.get_output(1)
    print("lists", [item for item in ints], len(tensors))
    lists.unload()
    print("a list of ints", outcome(lambda: ints[0]))
    print("a list of tensors", outcome(lambda: tensors[0]))


calls_in_states()
calls_of_backends()
faults()
kept_state()
