"""Load a Method in more memories than it was created for. Print the outcome of each load.

Section: model, a program of nine unplanned inputs of four floats; the output is relu of the last.
"""

program = Program.load(BufferDataLoader(sections["model"]))
meta = program.method_meta("forward")
manager = MemoryManager(
    MemoryAllocator(bytearray(2048)),
    HierarchicalAllocator([take("planned", meta.memory_planned_buffer_size(i))
                           for i in range(meta.num_memory_planned_buffers())]))
method = Method(manager)
inputs = [bytearray(struct.pack("<4f", -i, i, -1, 1)) for i in range(meta.num_inputs())]


def load():
    method.load(program)


def run():
    for i in range(len(inputs)):
        method.set_input(inputs[i], i)
    method.execute()


print(locked(load) or "ok")
load()
method.unload()
print(locked(load) or "ok")
print(locked(run) or list(method.get_output(0).data))
