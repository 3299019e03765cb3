"""Call load, execute, step and unload from ever deeper functions, until nothing can be called.

Sections: model, the only method "forward", whose inputs are in0, in1 ...; settings: every (levels
between two tries), unlocked=1 for backends that need a heap. A call succeeds or ends with an Error, and
then the same objects have to work at once from above. The script prints the count of each outcome, and
the bytes of the whole stack that were never written.
"""

settings = job.settings(sections["settings"])
protected = unlocked if settings["unlocked"] == "1" else locked
LEVELS = 24 if settings["unlocked"] == "0" else 48  # number of levels, from the deepest possible one up


def reach(levels, function):
    """Call function() `levels` levels deeper."""
    if levels:
        reach(levels - 1, function)
    else:
        function()


# Repeat the calls from larger frames, so that depths between two levels are tested, too.


def reach_16(levels, function, a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0, i=0, j=0, k=0, m=0, n=0, o=0,
             p=0, q=0):
    reach(levels, function)


def reach_32(levels, function, a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0, i=0, j=0, k=0, m=0, n=0, o=0,
             p=0, q=0, aa=0, bb=0, cc=0, dd=0, ee=0, ff=0, gg=0, hh=0, ii=0, jj=0, kk=0, mm=0, nn=0,
             oo=0, pp=0, qq=0):
    reach(levels, function)


REACHES = (reach, reach_16, reach_32)


def deepest(reach):
    """Return the deepest level from which an empty function can be called."""
    levels = 0
    try:
        while True:
            reach(levels + 1, nothing)
            levels += 1
    except RuntimeError:
        return levels


def nothing():
    pass


class Deep:
    """One method, and the outcomes of its calls from the depth."""

    def __init__(self):
        self.program = Program.load(BufferDataLoader(sections["model"]))
        meta = self.program.method_meta("forward")
        planned = [take("planned", meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        temp = MemoryAllocator(take("temp", 1024), "temp memory")
        self.pool = MemoryAllocator(take("pool", 4096))
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator(planned), temp))
        self.inputs = [sections["in%d" % i] for i in range(meta.num_inputs())]
        self.expected = None
        self.counts = {}
        self.calls = [self.load, self.execute, self.step, self.unload]

    def load(self):
        self.method.load(self.program, "forward")

    def execute(self):
        self.method.execute()

    def step(self):
        self.method.step()

    def unload(self):
        self.method.unload()

    def set_inputs(self):
        self.method.set_inputs(self.inputs)

    def must(self, function):
        error = protected(function)
        assert error is None, error

    def outputs(self):
        return [bytes(output.data) for output in self.method.get_outputs()]

    def check(self):
        """Check that everything works from this level."""
        if not self.method.is_loaded():
            assert self.pool.used == 0, self.pool.used
            self.must(self.load)
        self.method.reset_execution()
        self.must(self.set_inputs)
        self.must(self.execute)
        if self.expected is None:
            self.expected = self.outputs()
        assert self.outputs() == self.expected

    def prepare(self, call):
        """Do the steps before a call."""
        if call == 0:
            self.must(self.unload)

    def run(self, call, reach, levels):
        self.prepare(call)
        function = self.calls[call]
        try:
            error = protected(lambda: reach(levels, function))
            end = "ok" if error is None else error.name + " " + error.subject
        except RuntimeError:
            end = "RuntimeError"
        key = ("load", "execute", "step", "unload")[call] + " " + end
        self.counts[key] = self.counts.get(key, 0) + 1
        self.check()


def main():
    deep = Deep()
    deep.check()
    _board.stack_paint()
    for reach in REACHES:
        levels = deepest(reach)
        for less in range(0, LEVELS, int(settings["every"])):
            for call in range(4):
                deep.run(call, reach, levels - less)
    for key in sorted(deep.counts):
        print(key, deep.counts[key])
    print("untouched", _board.stack_untouched())


main()
