"""Execute two methods in separate memories: each alone, then step by step in turn.

Sections: model0 and model1 (missing if both methods are of one program); settings: method0, method1;
in<method>_<i>, the bytes of the inputs. Writes the outputs alone<method>_<i>, mixed<method>_<i> and
shared<method>_<i>; prints the outcome of loads and unloads in one pool.
"""

settings = job.settings(sections["settings"])
programs = [Program.load(BufferDataLoader(sections["model0"]))]
programs.append(Program.load(BufferDataLoader(sections["model1"])) if "model1" in sections
                else programs[0])


class Side:
    """One of the methods, in planned buffers of its own."""

    def __init__(self, number, pool, temp):
        self.number = number
        self.program = programs[number]
        self.name = settings["method%d" % number]
        meta = self.program.method_meta(self.name)
        planned = [take(planned_arena(i), meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        self.method = Method(MemoryManager(pool, HierarchicalAllocator(planned), temp))
        self.inputs = [sections["in%d_%d" % (number, i)] for i in range(meta.num_inputs())]
        self.outputs = [None] * meta.num_outputs()
        self.ended = False

    def load(self):
        self.method.load(self.program, self.name)

    def unload(self):
        self.method.unload()

    def start(self):
        self.method.set_inputs(self.inputs)
        self.ended = False

    def execute(self):
        self.method.execute()
        self.method.get_outputs(self.outputs)

    def step(self):
        try:
            self.method.step()
        except Error as error:
            if error.code != errors.END_OF_METHOD:
                raise
            self.ended = True
            self.method.reset_execution()
            self.method.get_outputs(self.outputs)

    def write(self, kind):
        for i in range(len(self.outputs)):
            _board.write_file("%s%d_%d" % (kind, self.number, i), self.outputs[i].data)


def alone(side):
    def function():
        side.load()
        side.start()
        side.execute()

    print("alone", side.number, locked(function) or "ok")
    side.write("alone")
    side.method.unload()


def in_turn(sides):
    def function():
        for side in sides:
            side.load()
        for side in sides:
            side.start()
        while not (sides[0].ended and sides[1].ended):
            for side in sides:
                if not side.ended:
                    side.step()

    print("mixed", locked(function) or "ok")
    for side in sides:
        side.write("mixed")


def one_pool(sides):
    """Load both methods into one pool, which is freed from its end on."""
    for name, side in (("load", 0), ("load", 1), ("unload", 0), ("unload", 1), ("unload", 0),
                       ("load", 1), ("load", 0), ("unload", 1), ("unload", 0), ("load", 0)):
        function = sides[side].load if name == "load" else sides[side].unload
        print(name, side, locked(function) or "ok", sides[0].method.manager.method_allocator.used)
    for side in sides:
        side.start()
    for side in sides:
        side.execute()
        side.write("shared")


def take_pools(count):
    return [MemoryAllocator(take_share("pool", count)) for _ in range(count)]


def main():
    temp = MemoryAllocator(_board.memory("temp"), "temp memory")
    half = len(temp.buffer) // 2 & -16
    pools = take_pools(2)
    sides = [Side(0, pools[0], MemoryAllocator(temp.buffer[:half], "temp memory")),
             Side(1, pools[1], MemoryAllocator(temp.buffer[half:], "temp memory"))]
    for side in sides:
        alone(side)
    in_turn(sides)
    for name in ("pool", "planned", "planned1"):
        give_back(name)
    pool = take_pools(1)[0]
    one_pool([Side(0, pool, temp), Side(1, pool, temp)])


main()
