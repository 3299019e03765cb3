"""Define a fixture whose methods have separate memories, for fixture.py and memory_failures.py.

Sections: model; data0, data1 ... (.ptd files); settings: methods (names separated by commas), run0,
run1 ... (the method of each run), input<run>_<i> for inputs that are not tensors (int:3, bool:1,
float:2.5, none:), and unlocked: load or run, if a backend needs a heap there; in<run>_<i>, the bytes of
the other inputs, and sizes<run>_<i>, the sizes of dynamic inputs.
"""

settings = job.settings(sections["settings"]) if "settings" in sections else {}
names = settings.get("methods", "").split(",")
_shared = {}  # planned buffers by index


def call(phase, function, otherwise=locked):
    """Call function(), and return the Error that it raised, or None. The heap is open if the phase
    needs it."""
    return (unlocked if phase in settings.get("unlocked", "") else otherwise)(function)


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
        collect()  # a small heap has no room for a Method between unused objects
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

    def planned(self, i):
        """Return planned buffer `i`, one for all methods if they share their state."""
        if not settings.get("shares_memory"):
            return take(planned_arena(i), self.meta.memory_planned_buffer_size(i))
        if i not in _shared:
            metas = [self.program.method_meta(name) for name in names]
            _shared[i] = take(planned_arena(i), max([m.memory_planned_buffer_size(i)
                              for m in metas if i < m.num_memory_planned_buffers()]))
        return _shared[i]

    def part(self, name):
        """Return as much of a board's memory as every method gets."""
        return take_share(name, len(names))

    def output_memory(self, i):
        """Return a buffer for an output without memory, or None."""
        if i not in self.meta.unplanned_outputs():
            return None
        return take("planned", self.meta.output_tensor_meta(i).nbytes())

    def changeable(self, i, data):
        """Return the bytes of an input: a copy if it is used in place and is also an output."""
        if (self.meta.input_tensor_meta(i).is_memory_planned()
                or self.meta.input_value(i) not in self.output_values):
            return data
        copy = take("planned", len(data))
        copy[:] = data
        return copy

    def state_memory(self, info):
        """Return the name of a mutable buffer without memory, and zeros for it."""
        memory = take("planned", info.nbytes())
        memory[:] = bytes(len(memory))
        return [info.name(), memory]

    def load_method(self):
        self.method.load(self.program, self.name, data_map=self.data_map)

    def load(self):
        """Load the method, with all memories outside of the loader."""
        self.load_method()
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
        """Return the bytes of an input, with its sizes if these can differ from the program's."""
        sizes = settings.get("sizes%d_%d" % (run, i))
        if sizes is None:
            return data
        return from_blob(data, [int(size) for size in sizes.split(",")],
                         self.meta.input_tensor_meta(i).dtype)

    def execute(self):
        self.method.execute()

    def run(self):
        self.method.set_inputs(self.inputs)
        self.execute()
        self.method.get_outputs(self.results)


def read_data():
    """Return a data map of all .ptd files, or None if there are none."""
    if "data0" not in sections:
        return None
    from picotorch import FlatTensorDataMap, MergedDataMap

    maps = []
    while "data%d" % len(maps) in sections:
        maps.append(FlatTensorDataMap.load(BufferDataLoader(sections["data%d" % len(maps)])))
    return maps[0] if len(maps) == 1 else MergedDataMap.load(maps)
