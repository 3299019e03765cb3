"""Read an output of more than 30 bits, which needs the heap. Section: large, the program. Print the
outcome of get_output with the heap locked, and then the value."""

method = Method(MemoryManager(MemoryAllocator(take("pool", 512))))
method.load(Program.load(BufferDataLoader(sections["large"])))
print(locked(lambda: method.get_output(0)))
print(method.get_output(0))
