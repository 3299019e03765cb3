"""Press ctrl-C during endless runs of a native module. Each run ends with KeyboardInterrupt, and the
next one can be interrupted again. Afterwards another model has the same outputs as before. The models
come from the module picotorch_models. The script prints `running` when it expects a ctrl-C."""

import picotorch_models as models
from picotorch import (
    BufferDataLoader,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
)


def load(model):
    program = Program.load(BufferDataLoader(model))
    meta = program.method_meta("forward")
    planned = [bytearray(meta.memory_planned_buffer_size(i))
               for i in range(meta.num_memory_planned_buffers())]
    method = Method(MemoryManager(MemoryAllocator(bytearray(4096)), HierarchicalAllocator(planned),
                                  MemoryAllocator(bytearray(4096))))
    method.load(program, "forward")
    for i in range(meta.num_inputs()):
        method.set_input(bytearray(meta.input_tensor_meta(i).nbytes()), i)
    return method


def result():
    method = load(models.short)
    method.execute()
    return bytes(method.get_output(0).data)


first = result()
for name in ("loop", "long"):
    method = load(getattr(models, name))
    for _ in range(2):
        try:
            print("running", name)
            method.execute()
            print("it ended")
        except KeyboardInterrupt:
            print("KeyboardInterrupt, loaded", method.is_loaded())
    method.unload()
    method = None
    print("the same", result() == first)
