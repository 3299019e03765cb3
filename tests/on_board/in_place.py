"""Use tensors in place: constants in the program, unplanned inputs and outputs.

Sections: model, with constants; in0; unplanned: a model with unplanned input and output; in1; settings:
index and nbytes of a constant of model. Writes constant_before, constant_after (its bytes in the
program are set to zero after load), input_before, input_after (the input's bytes are set to zero after
set_input), and input_there: the memory of the output.
"""


class Loaded:
    def __init__(self, data, inputs):
        self.program = Program.load(BufferDataLoader(data))
        meta = self.program.method_meta("forward")
        planned = [take("planned", meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        self.pool = MemoryAllocator(take("pool", 4096))
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator(planned),
                                           MemoryAllocator(_board.memory("temp"), "temp memory")))
        self.inputs = inputs
        self.outputs = [None]
        self.memory = None
        if meta.unplanned_outputs():
            self.memory = take("planned", meta.output_tensor_meta(0).nbytes())

    def load(self):
        self.method.load(self.program, "forward")
        if self.memory is not None:
            self.method.set_output_data_ptr(self.memory, 0)
        self.method.set_inputs(self.inputs)

    def execute(self):
        self.method.execute()
        self.method.get_outputs(self.outputs)

    def run(self, path):
        error = locked(self.execute)
        print(path, error or "ok")
        _board.write_file(path, self.outputs[0].data)


def in_ram(data):
    copy = take("planned", len(data))
    copy[:] = data
    return copy


def clear(memory, start, end):
    for i in range(start, end):
        memory[i] = 0


def main():
    data = in_ram(sections["model"])
    found = Loaded(data, [sections["in0"]])
    print("load", locked(found.load) or "ok")
    found.run("constant_before")
    settings = job.settings(sections["settings"])
    at, nbytes = int(settings["at"]), int(settings["nbytes"])
    clear(data, at, at + nbytes)
    found.run("constant_after")
    print("pool", found.pool.used)
    value = in_ram(sections["in1"])
    found = Loaded(sections["unplanned"], [value])
    print("load", locked(found.load) or "ok")
    found.run("input_before")
    clear(value, 0, len(value))
    found.run("input_after")
    _board.write_file("input_there", found.memory)


main()
