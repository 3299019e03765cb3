"""Loads a method with memories that do not do, one case after the other. After each the same objects
get memories that do, and the method must load, run and give the first run's outputs.

Sections: model; method, its name; in0, in1 ...; readonly, zeros; cases, a line each:
    <memory> <size> <shift>      size -1: the size that it needs
memory is pool, temp, planned<i>, missing<i> (there are only i planned buffers), noalloc (no temp
allocator), readonly_pool or readonly_planned<i>. Prints the Error of each case; guard bytes around all
memories are checked after each. Writes out0, out1 ... of the first run.
"""

GUARD = 64
PATTERN = b"\xA5" * GUARD
NAME = str(sections["method"], "utf-8")


class Guarded:
    """A memory with guard bytes before and behind the part of it that is given away."""

    def __init__(self, name, size):
        self.region = take(name, size + 3 * GUARD)
        self.size = size
        self.part(size)

    def part(self, size, shift=0):
        self.start = GUARD + shift
        self.end = self.start + (self.size if size < 0 else size)
        self.region[self.start - GUARD : self.start] = PATTERN
        for at in self.guards():
            self.region[at : at + GUARD] = PATTERN
        return self.region[self.start : self.end]

    def guards(self):
        """Where the guard bytes behind the part begin."""
        return range(self.end, min(len(self.region), self.end + 4096) - GUARD + 1, GUARD)

    def intact(self):
        for at in self.guards():
            if bytes(self.region[at : at + GUARD]) != PATTERN:
                return False
        return bytes(self.region[self.start - GUARD : self.start]) == PATTERN


def parts(view):
    """The bytes of a view of any elements, piece by piece."""
    for i in range(0, len(view), 1024):
        yield bytes(view[i : i + 1024])


def copy(view, memory):
    at = 0
    for part in parts(view):
        memory[at : at + len(part)] = part
        at += len(part)


def same(view, memory):
    at = 0
    for part in parts(view):
        if bytes(memory[at : at + len(part)]) != part:
            return False
        at += len(part)
    return at == len(memory)


class Bench:
    def __init__(self, program):
        meta = program.method_meta(NAME)
        self.program = program
        self.pool = Guarded("pool", 6144)
        self.temp = Guarded("temp", 1024)
        self.planned = [Guarded("planned", meta.memory_planned_buffer_size(i))
                        for i in range(meta.num_memory_planned_buffers())]
        self.allocator = MemoryAllocator(self.pool.part(-1))
        self.temp_allocator = MemoryAllocator(self.temp.part(-1), "temp memory")
        self.hierarchical = HierarchicalAllocator([])
        self.manager = MemoryManager(self.allocator, self.hierarchical, self.temp_allocator)
        self.method = Method(self.manager)
        self.inputs = [sections["in%d" % i] for i in range(meta.num_inputs())]
        self.outputs = [None] * meta.num_outputs()
        self.output_sizes = [meta.output_tensor_meta(i).nbytes() for i in range(meta.num_outputs())]
        self.reference = None

    def give_pool(self, buffer):
        self.allocator.buffer = buffer
        self.allocator.size = len(buffer)

    def give_temp(self, buffer):
        self.temp_allocator.buffer = buffer
        self.temp_allocator.size = len(buffer)

    def give_all(self):
        self.give_pool(self.pool.part(-1))
        self.give_temp(self.temp.part(-1))
        self.manager.temp_allocator = self.temp_allocator
        self.hierarchical.buffers = [memory.part(-1) for memory in self.planned]

    def give(self, memory, size, shift):
        """Makes the memories those of a case."""
        self.give_all()
        if memory == "pool":
            self.give_pool(self.pool.part(size, shift))
        elif memory == "temp":
            self.give_temp(self.temp.part(size, shift))
        elif memory == "noalloc":
            self.manager.temp_allocator = None
        elif memory == "readonly_pool":
            self.give_pool(sections["readonly"])
        elif memory.startswith("readonly_planned"):
            self.hierarchical.buffers[int(memory[16:])] = sections["readonly"]
        elif memory.startswith("missing"):
            self.hierarchical.buffers = self.hierarchical.buffers[: int(memory[7:])]
        else:
            index = int(memory[7:])
            self.hierarchical.buffers[index] = self.planned[index].part(size, shift)

    def load(self):
        self.method.load(self.program, NAME)

    def run(self):
        self.method.load(self.program, NAME)
        self.method.set_inputs(self.inputs)
        self.method.execute()
        self.method.get_outputs(self.outputs)

    def check_run(self):
        """The method loads and runs; the outputs are those of the first run."""
        error = locked(self.run)
        assert error is None, error
        if self.reference is None:
            self.reference = [take("planned", size) for size in self.output_sizes]
            for i in range(len(self.outputs)):
                copy(self.outputs[i].data, self.reference[i])
                _board.write_file("out%d" % i, self.reference[i])
        for i in range(len(self.outputs)):
            assert same(self.outputs[i].data, self.reference[i]), "another output"
        assert locked(self.method.unload) is None
        assert self.allocator.used == 0
        self.check_guards()

    def check_guards(self):
        for memory in [self.pool, self.temp] + self.planned:
            assert memory.intact(), "guard bytes were written"


def main():
    bench = Bench(Program.load(BufferDataLoader(sections["model"])))
    bench.give_all()
    error = locked(bench.load)
    print("needs", error or bench.allocator.used)
    bench.method.unload()
    bench.check_run()
    for line in str(sections["cases"], "utf-8").split("\n"):
        memory, size, shift = line.split()
        bench.give(memory, int(size), int(shift))
        error = locked(bench.load)
        print(line, "->", error or "ok")
        if error is not None:
            assert not bench.method.is_loaded()
            assert bench.allocator.used == 0, "the pool was not given back"
            again = locked(bench.method.execute)
            assert again.code == errors.INVALID_STATE, again
        bench.method.unload()
        bench.check_guards()
        bench.give_all()
        bench.check_run()


main()
