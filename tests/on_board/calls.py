"""Count the calls of each run: print the instructions of set_input, execute and get_output, and the
bytes of heap of a Method.

Section: model, a program of one input. Its memories are bytearrays, which may be resized: each call
looks where they are.
"""

COUNTED = 4  # bytes of a count

program = Program.load(BufferDataLoader(sections["model"]))
meta = program.method_meta("forward")
manager = MemoryManager(
    MemoryAllocator(bytearray(8192)),
    HierarchicalAllocator([take("planned", meta.memory_planned_buffer_size(i))
                           for i in range(meta.num_memory_planned_buffers())]),
    MemoryAllocator(bytearray(8192), "temp memory"))
method = None
before = mem_alloc()
method = Method(manager)
heap = mem_alloc() - before
method.load(program)
x = bytearray(meta.input_tensor_meta(0).nbytes())
method.set_input(x, 0)
method.execute()
method.get_output(0)
counts = bytearray(4 * COUNTED)


def count(method, x):
    """Count the calls with port/firmware's counter.py, which uses local names."""
    start, stop, counted = _board.count_start, _board.count_stop, counts
    start()
    stop(counted, 0)
    start()
    method.set_input(x, 0)
    stop(counted, 4)
    start()
    method.execute()
    stop(counted, 8)
    start()
    method.get_output(0)
    stop(counted, 12)


heap_lock()
count(method, x)
heap_unlock()
empty, set_input, execute, get_output = struct.unpack("<4I", counts)
print("set_input %d execute %d get_output %d heap %d" % (
    set_input - empty, execute - empty, get_output - empty, heap))
