"""An output of more than 30 bits, which needs the heap. Section: large, the program. Prints what
get_output ended with while the heap was locked, and then what it gave."""

method = Method(MemoryManager(MemoryAllocator(take("pool", 512))))
method.load(Program.load(BufferDataLoader(sections["large"])))
print(locked(lambda: method.get_output(0)))
print(method.get_output(0))
