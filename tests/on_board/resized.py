"""Use bytearrays as memories and resize them: before load, and while a method is loaded.

Sections: relu, relu_unplanned and two programs of tests/runtime/test_misuse.py. MicroPython moves an
array that grows, and frees its old bytes. Prints the outcome of every call.
"""

from picotorch import Backend, EventTracer, register_backend


def report(label, function):
    print(label, "->", locked(function) or "ok")


class Loaded:
    def __init__(self, program):
        self.program = program
        meta = program.method_meta()
        self.pool, self.temp = bytearray(384), bytearray(64)
        self.planned = [bytearray(meta.memory_planned_buffer_size(i))
                        for i in range(meta.num_memory_planned_buffers())]
        self.x, self.out = bytearray(16), bytearray(16)
        self.events = bytearray(64)
        self.tracer = EventTracer(self.events)
        self.result = [None]
        self.method = Method(MemoryManager(MemoryAllocator(self.pool),
                                           HierarchicalAllocator(self.planned),
                                           MemoryAllocator(self.temp, "temp memory")))

    def load(self):
        self.method.load(self.program, event_tracer=self.tracer)

    def set(self):
        self.method.set_input(self.x, 0)
        if not self.planned:
            self.method.set_output_data_ptr(self.out, 0)

    def run(self):
        self.set()
        self.method.execute()
        self.method.get_outputs(self.result)


def grow(label, loaded, memory):
    """Grow a memory of a loaded method, then call everything."""
    report(label, loaded.load)
    report("run", loaded.run)
    try:
        memory.extend(bytes(4096))
    except BufferError:
        print("cannot be resized")
    method = loaded.method
    report("execute", method.execute)
    report("set_input", loaded.set)
    report("get_output", lambda: method.get_output(0))
    report("reset_state", method.reset_state)
    report("unload", method.unload)
    if memory is not loaded.events:
        report("load again", loaded.load)
    if loaded.planned and memory is not loaded.events:
        report("run", loaded.run)


def grow_a_program():
    data = bytearray(sections["relu"])
    loaded = Loaded(Program.load(BufferDataLoader(data)))
    grow("program", loaded, data)


class Longer(bytearray):
    """A subclass that grows as its base does."""


def grow_inputs_in_place(program):
    """Grow the buffer of a Tensor of from_blob, and a subclass of bytearray."""
    loaded = Loaded(program)
    x = loaded.x
    loaded.x = from_blob(x, [4], "Float")
    grow("a Tensor's buffer", loaded, x)
    loaded = Loaded(program)
    loaded.x = Longer(16)
    grow("a subclass", loaded, loaded.x)


class Growing(Backend):
    """Grow `memory`, once, in `at`."""

    def __init__(self):
        self.at, self.memory, self.others = "", None, []
        self.view = memoryview(bytearray(1))

    def grow(self, where):
        """Grow the memory if `where` is the chosen place. Return True if it grew."""
        if where != self.at:
            return False
        self.at = ""
        size = len(self.memory)
        try:
            self.memory.extend(bytes(4096))
        except BufferError:
            pass
        for _ in range(8):  # a comprehension takes heap
            self.others.append(bytearray(b"\x5A" * size))
        return True

    def check_others(self):
        """Check the objects that now use the old bytes: nothing may be written there."""
        for other in self.others:
            assert other == b"\x5A" * len(other), "a memory was used after it was resized"
        self.others = []

    def is_available(self):
        self.grow("is_available")
        return True

    def init(self, context, processed, compile_specs):
        self.grow("init")
        if self.grow("init, then allocate"):
            context.get_runtime_allocator().allocate(16, view=self.view)

    def execute(self, context, handle, args):
        self.grow("execute")
        if self.grow("execute, then allocate"):
            context.allocate(16, view=self.view)[0] = 1


def grow_in_a_backend(program):
    growing = Growing()
    register_backend("Doubling", growing)
    for at in ("is_available", "init", "init, then allocate", "execute", "execute, then allocate"):
        for name in ("pool", "planned", "temp"):
            loaded = Loaded(program)
            growing.at = at
            growing.memory = {"pool": loaded.pool, "planned": loaded.planned[0],
                              "temp": loaded.temp}[name]
            print("%s grows in %s ->" % (name, at),
                  unlocked(loaded.load) or unlocked(loaded.run) or "ok")
            growing.check_others()
            loaded.method.unload()
            report("load again", loaded.load)
            report("run", loaded.run)


def main():
    in_place = Program.load(BufferDataLoader(sections["relu_unplanned"]))
    planned = Program.load(BufferDataLoader(sections["relu"]))
    loaded = Loaded(planned)
    grow("pool", loaded, loaded.pool)
    loaded = Loaded(planned)
    grow("planned", loaded, loaded.planned[0])
    loaded = Loaded(planned)
    grow("temp", loaded, loaded.temp)
    loaded = Loaded(planned)
    grow("events", loaded, loaded.events)
    loaded = Loaded(in_place)
    grow("input", loaded, loaded.x)
    loaded = Loaded(in_place)
    grow("output", loaded, loaded.out)
    grow_a_program()
    grow_inputs_in_place(in_place)
    grow_in_a_backend(Program.load(BufferDataLoader(sections["two"])))
    for name in ("pool", "temp"):
        loaded = Loaded(planned)
        memory = loaded.pool if name == "pool" else loaded.temp
        memory[:] = memory[:8]
        report("smaller " + name, loaded.load)
    loaded = Loaded(planned)
    loaded.planned[0][:] = bytes(16)
    report("smaller planned buffer", loaded.load)


main()
