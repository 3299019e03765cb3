"""Execute a model with state for each frame of a stream, with the heap locked.

Sections: model, with one input and one output; inputs, the bytes of all frames. Writes outputs.
"""

import _picotorch

BYTE = 0  # ScalarType

program = Program.load(BufferDataLoader(sections["model"]))
meta = program.method_meta()
planned = [take(planned_arena(i), meta.memory_planned_buffer_size(i))
           for i in range(meta.num_memory_planned_buffers())]
manager = MemoryManager(MemoryAllocator(take_share("pool", 1)), HierarchicalAllocator(planned),
                        MemoryAllocator(take_share("temp", 1), "temp memory"))
method = Method(manager, meta.num_outputs())
method.load(program)
size, frames = meta.input_tensor_meta(0).nbytes(), sections["inputs"]
inputs = [frames[at : at + size] for at in range(0, len(frames), size)]
size = meta.output_tensor_meta(0).nbytes()
written = bytearray(size * len(inputs))
view = memoryview(bytearray(size))
heap_lock()
for i in range(len(inputs)):
    method.set_input(inputs[i], 0)
    method.execute()
    found = _picotorch.view(view, method.get_output(0).data, 0, size, BYTE)
    for k in range(size):
        written[i * size + k] = found[k]
heap_unlock()
_board.write_file("outputs", written)
