"""Loads every method of a fixture and executes its runs, one after the other, with the heap locked.

Sections: model; data0, data1 ... (.ptd files); settings: methods (names with commas), run0, run1 ...
(method of each run), input<run>_<i> for inputs that are no tensors (int:3, bool:1, float:2.5, none:),
and unlocked: of load and run those that need a heap, for a backend's sake; in<run>_<i>, the bytes of
the other inputs, and sizes<run>_<i> for those that are dynamic. Writes the files pool_<method>, as it
is after load, pool_<method>_after, and out<run>_<i>. Prints what every load and run ended with, the
stack that it took (0 on the twin), every output that is no tensor, and the sizes of those that are
dynamic.
"""

settings = job.settings(sections["settings"])
names = settings["methods"].split(",")
_shared = {}  # planned buffers by index


def call(phase, function):
    """Calls function(): the Error that it raised or None."""
    return (unlocked if phase in settings.get("unlocked", "") else locked)(function)


def constant(text):
    kind, value = text.split(":")
    if kind == "none":
        return None
    if kind == "str":
        return value
    return bool(int(value)) if kind == "bool" else int(value) if kind == "int" else float(value)


class Loaded:
    """One method in memories of its own."""

    def __init__(self, program, name, data_map):
        meta = program.method_meta(name)
        self.meta = meta
        self.program = program
        self.name = name
        self.data_map = data_map
        self.pool = MemoryAllocator(self.part("pool"))
        planned = [self.planned(i) for i in range(meta.num_memory_planned_buffers())]
        temp = MemoryAllocator(self.part("temp"), "temp memory")
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator(planned), temp),
                             meta.num_outputs())
        self.output_values = [meta.output_value(i) for i in range(meta.num_outputs())]
        self.outputs = [self.output_memory(i) for i in range(meta.num_outputs())]
        self.state = [self.state_memory(info) for info in meta.unplanned_attributes()]
        self.results = [None] * meta.num_outputs()
        self.inputs = None
        self.stack = 0  # bytes that the last load or execute took

    def planned(self, i):
        """Planned buffer `i`: one for all methods where they share their state."""
        if not settings.get("shares_memory"):
            return take(planned_arena(i), self.meta.memory_planned_buffer_size(i))
        if i not in _shared:
            metas = [self.program.method_meta(name) for name in names]
            _shared[i] = take(planned_arena(i), max([m.memory_planned_buffer_size(i)
                              for m in metas if i < m.num_memory_planned_buffers()]))
        return _shared[i]

    def part(self, name):
        """As much of a board's memory as every method gets."""
        return take(name, (len(_board.memory(name)) // len(names)) & -16)

    def output_memory(self, i):
        """A buffer for an output that has none of its own, or None."""
        if i not in self.meta.unplanned_outputs():
            return None
        return take("planned", self.meta.output_tensor_meta(i).nbytes())

    def changeable(self, i, data):
        """The bytes of an input; a copy where it is used in place and comes back as an output."""
        if (self.meta.input_tensor_meta(i).is_memory_planned()
                or self.meta.input_value(i) not in self.output_values):
            return data
        copy = take("planned", len(data))
        copy[:] = data
        return copy

    def state_memory(self, info):
        """The name of a mutable buffer that has no memory, and zeros for it."""
        memory = take("planned", info.nbytes())
        memory[:] = bytes(len(memory))
        return [info.name(), memory]

    def load(self):
        _board.stack_paint()
        try:
            self.method.load(self.program, self.name, data_map=self.data_map)
        finally:
            self.stack = _board.stack_used()
        for i in range(len(self.outputs)):
            if self.outputs[i] is not None:
                self.method.set_output_data_ptr(self.outputs[i], i)
        for name, memory in self.state:
            self.method.set_attribute_data_ptr(memory, name)

    def read_inputs(self, run):
        self.inputs = []
        for i in range(self.meta.num_inputs()):
            key = "in%d_%d" % (run, i)
            if key in sections:
                self.inputs.append(self.sized(run, i, self.changeable(i, sections[key])))
            else:
                self.inputs.append(constant(settings["input%d_%d" % (run, i)]))

    def sized(self, run, i, data):
        """The bytes of an input, with its sizes if these may be others than the program's."""
        sizes = settings.get("sizes%d_%d" % (run, i))
        if sizes is None:
            return data
        return from_blob(data, [int(size) for size in sizes.split(",")],
                         self.meta.input_tensor_meta(i).dtype)

    def run(self):
        self.method.set_inputs(self.inputs)
        execute = self.method.execute
        _board.stack_paint()
        try:
            execute()
        finally:
            self.stack = _board.stack_used()
        self.method.get_outputs(self.results)

    def write_pool(self, path):
        _board.write_file(path, self.pool.buffer[: self.pool.used])

    def write_outputs(self, run):
        for i in range(len(self.results)):
            if isinstance(self.results[i], Tensor):
                _board.write_file("out%d_%d" % (run, i), self.results[i].data)
                if self.meta.output_tensor_meta(i).is_dynamic():
                    print("sizes", run, i, self.results[i].sizes())
            else:
                print("output", run, i, self.results[i])


def read_data():
    """A data map of all .ptd files; None where there are none."""
    if "data0" not in sections:
        return None
    from picotorch import FlatTensorDataMap, MergedDataMap

    maps = []
    while "data%d" % len(maps) in sections:
        maps.append(FlatTensorDataMap.load(BufferDataLoader(sections["data%d" % len(maps)])))
    return maps[0] if len(maps) == 1 else MergedDataMap.load(maps)


def main():
    program = Program.load(BufferDataLoader(sections["model"]))
    data_map = read_data()
    methods = {}
    for name in names:
        loaded = Loaded(program, name, data_map)
        error = call("load", loaded.load)
        print("load", name, error or "ok")
        print("stack load", name, loaded.stack)
        if error is None:
            loaded.write_pool("pool_" + name)
            methods[name] = loaded
    run = 0
    while "run%d" % run in settings:
        loaded = methods.get(settings["run%d" % run])
        if loaded is not None:
            loaded.read_inputs(run)
            error = call("run", loaded.run)
            print("run", run, error or "ok")
            print("stack execute", loaded.name, loaded.stack)
            if error is None:
                loaded.write_outputs(run)
        run += 1
    for name in methods:
        methods[name].write_pool("pool_" + name + "_after")


main()
