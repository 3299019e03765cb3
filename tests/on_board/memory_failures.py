"""Load every method of some fixtures with each memory from nothing to enough. Give its inputs and
outputs every wrong length. This script follows loaded.py.

Sections: those of loaded.py for each fixture, with the prefix "<number>/"; sweep, settings:

    fixtures  number of fixtures
    step      bytes between two sizes; 0: only the smallest and the largest two with one outcome
    planned   the same of planned buffers
    pack_weights   the same of a pool with packed weights
    share     "k/n": the k-th of n parts of the sizes
    runs      rejections after which the method runs once more; 0: it only loads again

The sizes that loading requests from a memory, one after the other, are found by providing exactly the
requested bytes, and printed. Every other size has to end with the next of these figures. With temp
memory between the size that loading requests and the size that kernels use, the method has the same
outputs. After each rejection the method is not loaded, the pool is as full as before, and the bytes
outside all memories are unchanged. After the first rejection of each kind, and some others, the same
objects load, run and return the first outputs.
"""

import _picotorch
from picotorch import EventTracer
from picotorch.memory import bytes_at

MARGIN = 256
PATTERN = b"\xA5" * MARGIN
all_sections = sections
sweep = job.settings(sections["sweep"])
tried = {"pool": 0, "packed": 0, "temp": 0, "planned": 0, "tracer": 0, "unfit": 0, "values": 0,
         "outcomes": 0, "again": 0, "less": 0}


def open_fixture(prefix):
    """Make the sections with this prefix those of the fixture. Return its program and data map."""
    global sections, settings, names
    sections = {name[len(prefix) :]: all_sections[name] for name in all_sections
                if name.startswith(prefix)}
    settings = job.settings(sections["settings"])
    names = settings["methods"].split(",")
    return Program.load(BufferDataLoader(sections["model"])), read_data()


def mark(name):
    """Return the bytes of a memory that are taken so far."""
    return _taken.get(name, 0), _guards.get(name, -1)


def give_back_to(name, mark):
    """Let take() begin again at a mark of a memory."""
    check_guards(name)
    _taken[name], _guards[name] = mark


def with_heap_locked(function):
    """Call as locked() does, without measuring the heap, which takes longer than most calls."""
    heap_lock()
    try:
        function()
    except Error as error:
        return error
    finally:
        heap_unlock()
    return None


class Guarded:
    """A memory with guard bytes around the part that is provided."""

    def __init__(self, region):
        self.region = region
        self.size = len(region) - 2 * MARGIN
        self.start = self.end = MARGIN

    def part(self, size, shift=0):
        """Return the first `size` bytes, `shift` bytes behind the start."""
        self.start = MARGIN + shift
        self.end = self.start + size
        # separate views: MicroPython would move all bytes behind an assigned slice
        before = self.region[self.start - MARGIN : self.start]
        before[:] = PATTERN
        behind = self.region[self.end : self.end + MARGIN - shift]
        behind[:] = PATTERN[shift:]
        return self.region[self.start : self.end]

    def whole(self):
        return self.part(self.size)

    def check(self):
        before = self.region[self.start - MARGIN : self.start]
        behind = self.region[self.end : self.end + MARGIN - 8]
        assert bytes(before) == PATTERN and bytes(behind) == PATTERN[8:], "guard bytes were written"


def copy_of(view):
    """Return the bytes of a view of any elements."""
    copy = take("planned", _picotorch.nbytes(view))
    source = bytes_at(view, 0, len(copy), writable=False)
    copy[:] = source
    return copy


def same(view, copy):
    view = bytes_at(view, 0, len(copy), writable=False)
    for i in range(0, len(copy), 1024):
        if bytes(view[i : i + 1024]) != bytes(copy[i : i + 1024]):
            return False
    return True


class Swept(Loaded):
    """A method in guarded memories, and its outputs when they suffice."""

    def __init__(self, program, name, data_map):
        self.memories = []
        super().__init__(program, name, data_map)
        self.manager = self.method.manager
        self.planned_memory = self.manager.planned_memory
        self.temp = self.manager.temp_allocator
        self.guarded_pool, self.guarded_temp = self.memories[0], self.memories[-1]
        self.pack_weights = False
        self.tracer = None
        self.number = self.find_run()
        self.wanted = None
        self.records = 0  # bytes of pool without packed weights

    # ---- memories

    def guard(self, region):
        self.memories.append(Guarded(region))
        return self.memories[-1].whole()

    def part(self, name):
        return self.guard(take_share(name, 1))

    def planned(self, i):
        size = self.meta.memory_planned_buffer_size(i)
        return self.guard(take(planned_arena(i), size + 2 * MARGIN))

    def give_pool(self, buffer):
        self.pool.buffer = buffer
        self.pool.size = len(buffer)

    def give_temp(self, buffer):
        self.temp.buffer = buffer
        self.temp.size = len(buffer)

    def give_all(self):
        self.give_pool(self.guarded_pool.whole())
        self.give_temp(self.guarded_temp.whole())
        self.manager.temp_allocator = self.temp
        self.planned_memory.buffers = [memory.whole() for memory in self.memories[1:-1]]
        self.pack_weights = False
        self.tracer = None

    def check_memories(self):
        for memory in self.memories:
            memory.check()

    # ---- loading and running

    def find_run(self):
        """Return the number of the first run of the method, -1 if it has none."""
        run = 0
        while "run%d" % run in settings:
            if settings["run%d" % run] == self.name:
                return run
            run += 1
        return -1

    def load_method(self):
        self.method.load(self.program, self.name, self.pack_weights, self.data_map, self.tracer)

    def try_load(self):
        return call("load", self.load_method, with_heap_locked)

    def check_refusal(self, error):
        assert not self.method.is_loaded() and self.pool.used == 0, "something was left"
        self.check_memories()
        assert error.code != errors.MEMORY_ALLOCATION_FAILED or error.requested > error.available

    def check_again(self, runs=True):
        """Check that the same objects, with all memories, load and run as they did at first."""
        tried["again"] += 1
        assert unlocked(self.method.execute).code == errors.INVALID_STATE
        self.give_all()
        self.check_loads(runs)

    def check_loads(self, runs):
        """Check that the method loads in the present memories, and runs as it did at first."""
        for _, memory in self.state:
            memory[:] = bytes(len(memory))
        error = call("load", self.load, with_heap_locked)
        assert error is None, error
        if runs and self.number >= 0:
            self.check_run()
        assert call("load", self.method.unload, with_heap_locked) is None
        assert self.pool.used == 0
        self.check_memories()

    def check_run(self):
        before = mark("planned")
        if self.wanted is None or self.changes_inputs:
            self.read_inputs(self.number)
        self.changes_inputs = mark("planned") != before
        error = call("run", self.run)
        if self.wanted is None:
            self.wanted = [str(error)] if error else [self.kept(value) for value in self.results]
        elif error:
            assert self.wanted == [str(error)], error
        else:
            for i in range(len(self.results)):
                assert self.is_same(self.results[i], self.wanted[i]), "another output"
            give_back_to("planned", before)

    def kept(self, value):
        return copy_of(value.data) if isinstance(value, Tensor) else value

    def is_same(self, value, wanted):
        if isinstance(value, Tensor):
            return same(value.data, wanted)
        return value == wanted or (value != value and wanted != wanted)


class Pool:
    label = subject = "method pool"
    remedy = "make it larger"

    def __init__(self, swept, pack_weights=False):
        self.swept = swept
        self.name = "packed" if pack_weights else "pool"
        self.pack_weights = pack_weights
        self.memory = swept.guarded_pool

    def give(self, buffer):
        self.swept.give_pool(buffer)
        self.swept.pack_weights = self.pack_weights


class Temp:
    name = "temp"
    subject = "temp memory"
    remedy = "pass a temp allocator of that size"

    def __init__(self, swept):
        self.memory = swept.guarded_temp
        self.give = swept.give_temp


class Planned:
    remedy = "make it larger"

    def __init__(self, swept, i):
        self.name = "planned%d" % i
        self.subject = "planned buffer %d" % i
        self.buffers = swept.planned_memory
        self.memory = swept.memories[1 + i]
        self.index = i

    def give(self, buffer):
        self.buffers.buffers[self.index] = buffer


class Tracer:
    name = "tracer"
    subject = "event tracer"
    remedy = "make it larger"

    def __init__(self, swept):
        self.swept = swept
        region = take("planned", EventTracer.nbytes(swept.meta) + 16 + 2 * MARGIN)
        self.memory = Guarded(region)

    def give(self, buffer):
        self.swept.tracer = EventTracer(buffer)


def check_error(error, kind, requested, size):
    """Check both figures, the memory and the remedy; the name of a backend that requested it, too."""
    text = str(error)
    start = "MemoryAllocationFailed (0x21): %s: %dB requested, %dB available" % (
        kind.subject, requested, size)
    end = "; " + kind.remedy
    assert text == start + end or (text.startswith(start + ": backend ") and text.endswith(end)), text


def find_steps(swept, kind):
    """Find the sizes that loading requests from a memory, one by one, and try each."""
    steps = []
    size = 0
    while True:
        swept.give_all()
        kind.give(kind.memory.part(size))
        error = swept.try_load()
        kind.memory.check()
        if error is None:
            swept.method.unload()
            return steps
        assert error.requested > size, error
        check_error(error, kind, error.requested, size)
        size = error.requested
        steps.append(size)


def sizes_below(first, end, step):
    """Yield sizes from `first` to below `end`, including the last three bytes."""
    part, parts = [int(number) for number in sweep.get("share", "0/1").split("/")]
    if first == end:
        return
    if step == 0:
        for size in sorted({first: 0, max(first, end - 4): 0, end - 1: 0}):
            yield size
        return
    count = (end - first + step - 1) // step
    for size in range(first + count * part // parts * step, first + count * (part + 1) // parts * step,
                      step):
        yield size
    if part == parts - 1:
        for size in range(max(first, end - 3), end):
            yield size


def sweep_memory(swept, kind):
    """Try every size of one memory, while the others suffice."""
    steps = find_steps(swept, kind)
    print(swept.name, kind.name, *steps)
    if kind.name == "packed" and steps[-1] == swept.records:
        return
    swept.give_all()
    first = 0
    every = int(sweep["runs"])
    key = "planned" if kind.name[:7] == "planned" else kind.name
    for end in steps:
        step = int(sweep["planned" if key == "planned" else "step"])
        if kind.name == "tracer":
            step *= 4
        elif kind.name == "packed":
            step = int(sweep["pack_weights"]) if end > swept.records else 0
        tried["outcomes"] += 1
        for size in sizes_below(first, end, step):
            kind.give(kind.memory.part(size))
            error = swept.try_load()
            assert error is not None, "%d of %d bytes suffice" % (size, end)
            check_error(error, kind, end, size)
            kind.memory.check()
            swept.check_refusal(error)
            tried[key] += 1
            if size == first or (every and tried[key] % every == 0):
                swept.check_again(every > 0)
        first = end
    if kind.name == "pool":
        swept.records = first
    swept.check_again(every > 0)


def run_with_less_temp(swept, kind):
    """Try sizes from what loading requests to what kernels use, with which kernels take longer."""
    swept.give_all()
    swept.load()
    used = swept.method.memory_report()["temp"]["used"]
    swept.method.unload()
    steps = find_steps(swept, kind)
    for size in sizes_below(steps[-1] if steps else 0, used, int(sweep["step"])):
        swept.give_all()
        kind.give(kind.memory.part(size))
        tried["less"] += 1
        swept.check_loads(int(sweep["runs"]) > 0 or size == 0)
        kind.memory.check()


# ---- memories that do not fit for another reason than their size


def refused(swept, message):
    error = swept.try_load()
    assert str(error) == "InvalidArgument (0x12): " + message, error
    swept.check_refusal(error)
    tried["unfit"] += 1
    swept.give_all()


def try_unfit(swept, kind):
    swept.give_all()
    for shift in (1, 2, 4):
        if kind.memory.size:
            kind.give(kind.memory.part(kind.memory.size, shift))
            refused(swept, kind.subject + ": does not start at a multiple of 8 bytes; align it")
    if kind.memory.size:
        kind.give(bytes_at(kind.memory.whole(), 0, kind.memory.size, writable=False))
        refused(swept, kind.subject + ": cannot be written; pass writable memory")


def try_missing(swept):
    """Try fewer planned buffers than the method needs."""
    for i in range(swept.meta.num_memory_planned_buffers()):
        size = swept.meta.memory_planned_buffer_size(i)
        if size:
            swept.give_all()
            swept.planned_memory.buffers = swept.planned_memory.buffers[:i]
            refused(swept, "planned buffer %d: %dB requested, 0B available: is missing; "
                    "pass one buffer for each that the method needs" % (i, size))


# ---- inputs, outputs and state


def lengths_but(needed, at_most):
    """Return lengths that are too short, and a few that are too long if longer ones are not allowed."""
    lengths = list(sizes_below(0, needed, int(sweep["step"])))
    return lengths + [needed + 1, needed + 4, needed + 16] if at_most else lengths


def try_lengths(give, label, index, needed, at_most=False):
    """Call give(buffer, index) with a buffer of every wrong length."""
    before = mark("planned")
    memory = Guarded(take("planned", needed + 16 + 2 * MARGIN))
    part = None

    def try_part():
        give(part, index)

    for length in lengths_but(needed, at_most):
        part = memory.part(length)
        error = with_heap_locked(try_part)
        assert error is not None, "%s %s: %d bytes for %d" % (label, index, length, needed)
        assert error.code == errors.INVALID_ARGUMENT, error
        assert error.subject == label and error.requested == needed, error
        assert error.available == length, error
        memory.check()
        tried["values"] += 1
    give_back_to("planned", before)


def try_values(swept):
    """Try buffers of wrong lengths for inputs, outputs and mutable buffers."""
    swept.give_all()
    swept.load()
    method = swept.method
    meta = swept.meta
    for i in range(meta.num_inputs()):
        if meta.input_tag(i) == schema.KERNEL_TYPES_TENSOR:
            info = meta.input_tensor_meta(i)
            if not info.is_constant():
                try_lengths(method.set_input, "input", i, info.nbytes(), True)
    for i in range(len(swept.outputs)):
        if swept.outputs[i] is not None:
            try_lengths(method.set_output_data_ptr, "output", i, len(swept.outputs[i]))
    for name, memory in swept.state:
        try_lengths(method.set_attribute_data_ptr, name, name, len(memory))
    method.unload()


# ---- all fixtures


def kinds_of(swept):
    kinds = [Pool(swept), Temp(swept)]
    kinds += [Planned(swept, i) for i in range(swept.meta.num_memory_planned_buffers())]
    return kinds + [Tracer(swept), Pool(swept, True)]


def sweep_method(program, name, data_map):
    for memory in _board.memories():
        give_back(memory)
    swept = Swept(program, name, data_map)
    swept.give_all()
    error = call("load", swept.load)
    if error is not None:
        print(name, error)
        return
    swept.method.unload()
    swept.check_again()
    for kind in kinds_of(swept):
        sweep_memory(swept, kind)
        if kind.name == "temp":
            run_with_less_temp(swept, kind)
        if kind.name != "tracer" and kind.name != "packed":
            try_unfit(swept, kind)
    try_missing(swept)
    try_values(swept)
    swept.check_again()


def main():
    for number in range(int(sweep["fixtures"])):
        program, data_map = open_fixture("%d/" % number)
        print("fixture", number)
        for name in names:
            sweep_method(program, name, data_map)
    for key in tried:
        print("tried", key, tried[key])


main()
