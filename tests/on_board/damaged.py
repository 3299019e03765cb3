"""Load and execute programs that may be damaged.

Sections: model0, model1 ...; data<number>_0 ..., the .ptd files of a model; backends: names, separated
by commas, of backends that read all their arguments. Prints the Error of each model, or ok. Writes the
file instructions: the instructions of each model, u32.
"""

ARENA = 65536  # maximum bytes of a planned buffer
ZEROS = bytes(1024)


def zeros(name, size):
    memory = take(name, min(size, ARENA))
    for start in range(0, len(memory), len(ZEROS)):
        memory[start:start + len(ZEROS)] = ZEROS[:len(memory) - start]
    return memory


class Attempt:
    """A method of a program in new memories."""

    def __init__(self, program, name, data_map):
        meta = program.method_meta(name)
        planned = [zeros("planned", meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        self.program = program
        self.name = name
        self.data_map = data_map
        temp = MemoryAllocator(_board.memory("temp"), "temp memory")
        self.method = Method(MemoryManager(MemoryAllocator(_board.memory("pool")),
                                           HierarchicalAllocator(planned), temp), meta.num_outputs())
        self.inputs = [zeros("planned", meta.input_tensor_meta(i).nbytes())
                       for i in range(meta.num_inputs())]
        self.outputs = [None] * meta.num_outputs()

    def run(self):
        self.method.load(self.program, self.name, data_map=self.data_map)
        self.method.set_inputs(self.inputs)
        self.method.execute()
        self.method.get_outputs(self.outputs)


def register_backends():
    from picotorch import Backend, register_backend

    class Reading(Backend):
        KEYS = ("offset", "scale")  # keys of delegate_named_data

        def __init__(self):
            self.view = memoryview(bytearray(1))

        def init(self, context, processed, compile_specs):
            processed.data()
            named = context.get_named_data_map()
            for i in range(named.get_num_keys()):
                self.view = named.get_data(self.KEYS[i], self.view)

        def execute(self, context, handle, args):
            len(args)

    for name in str(sections["backends"], "utf-8").split(","):
        register_backend(name, Reading())


def read_data(number):
    """Return a data map of the .ptd files of a program, or None if it has none."""
    if "data%d_0" % number not in sections:
        return None
    from picotorch import FlatTensorDataMap, MergedDataMap

    maps = []
    while "data%d_%d" % (number, len(maps)) in sections:
        data = sections["data%d_%d" % (number, len(maps))]
        maps.append(FlatTensorDataMap.load(BufferDataLoader(data)))
    return maps[0] if len(maps) == 1 else MergedDataMap.load(maps)


def attempt(number, model):
    try:
        data_map = read_data(number)
        program = Program.load(BufferDataLoader(model))
        found = Attempt(program, program.method_names[0], data_map)
    except Error as error:
        return error
    return locked(found.run) or "ok"


def main():
    if "backends" in sections:
        register_backends()
    count = 0
    while "model%d" % count in sections:
        count += 1
    instructions = bytearray(4 * count)
    for number in range(count):
        give_back("planned")
        _board.count_start()
        outcome = attempt(number, sections["model%d" % number])
        _board.count_stop(instructions, 4 * number)
        print(number, outcome)
    _board.write_file("instructions", instructions)


main()
