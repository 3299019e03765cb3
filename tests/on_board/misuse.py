"""Pass memories and buffers that would cause undefined behaviour or wrong results; heap locked.

Sections: the programs of tests/runtime/test_misuse.py, by name. Prints the outcome of every call.
"""

from array import array

from picotorch import EventTracer, FlatTensorDataMap


def report(label, function):
    print(label, "->", locked(function) or "ok")


def report_load(label, method, program):
    report(label, lambda: method.load(program))


def open_program(name):
    return Program.load(BufferDataLoader(sections[name]))


class Loaded:
    """A method in memories of its own, and the parts that it is made of."""

    def __init__(self, program, pool=None, load=True, temp=None):
        self.tracer = None
        meta = program.method_meta()
        self.planned = [take("planned", meta.memory_planned_buffer_size(i))
                        for i in range(meta.num_memory_planned_buffers())]
        self.pool = pool or MemoryAllocator(take("pool", 1024))
        temp = MemoryAllocator(temp, "temp memory") if temp else None
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator(self.planned), temp))
        if load:
            self.method.load(program)


def memories_that_overlap(program):
    """Overlap memories of relu, which needs 32 bytes of planned memory."""
    memory, apart = take("planned", 4096), take("planned", 64)
    code = take("planned", len(sections["relu"]))
    code[:] = sections["relu"]
    in_memory = Program.load(BufferDataLoader(code))
    first, second = memory[:1024], memory[1024:2048]
    last_byte = memory[1016:2040]
    cases = [
        ("pool and planned", program, first, [first], None),
        ("pool and the end of planned", program, second, [last_byte], None),
        ("temp and pool", program, first, [apart], first),
        ("temp and planned", program, first, [second], second),
        ("pool and program", in_memory, code, [second], None),
        ("planned and program", in_memory, first, [code], None),
        ("side by side", program, first, [second], apart),
    ]
    for label, of, pool, planned, temp in cases:
        temp = MemoryAllocator(temp, "temp memory") if temp else None
        method = Method(MemoryManager(MemoryAllocator(pool), HierarchicalAllocator(planned), temp))
        report_load(label, method, of)


def memories_of_no_use(program):
    pool = MemoryAllocator(take("pool", 1024))
    method = Method(MemoryManager(pool, HierarchicalAllocator([array("i", [0] * 8)])))
    report_load("planned buffer of ints", method, program)
    for buffer in (None, 5):
        try:
            HierarchicalAllocator([buffer])
        except Error as error:
            print(buffer, "->", error)
    try:
        MemoryAllocator(5)
    except Error as error:
        print("pool 5 ->", error)
    for verification in (2, None):
        try:
            Program.load(BufferDataLoader(sections["relu"]), verification)
        except Error as error:
            print("verification ->", error)


def planned_buffers_that_overlap(program):
    """Overlap the planned buffers of two_buffers, of 16 and 48 bytes."""
    memory = take("planned", 128)
    first, second = memory[:16], memory[16:64]
    cases = [
        ("side by side", [first, second]),
        ("the same memory twice", [memory[:48], memory[:48]]),
        ("the second begins in the first", [memory[:16], memory[8:56]]),
        ("the first lies in the second", [memory[32:48], second]),
        ("only what is not used overlaps", [memory, memory[16:64]]),
    ]
    for label, planned in cases:
        method = Method(MemoryManager(MemoryAllocator(take("pool", 512)),
                                      HierarchicalAllocator(planned)))
        report_load(label, method, program)


def one_allocator_for_two(program):
    """Use one allocator as method pool and temp memory."""
    pool = MemoryAllocator(take("pool", 1024))
    planned = HierarchicalAllocator([take("planned", 32)])
    report_load("pool as temp memory", Method(MemoryManager(pool, planned, pool)), program)
    print("used", pool.used)


def arrays_as_memories(program):
    """Pass arrays as memories: their bytes count, not their elements."""
    for label, pool in [("pool of 8-byte ints", array("q", [0] * 64)),
                        ("pool of 16 ints", array("i", [0] * 16))]:
        method = Method(MemoryManager(MemoryAllocator(pool),
                                      HierarchicalAllocator([take("planned", 32)])))
        report_load(label, method, program)


def a_method_that_is_gone(program):
    """Load two methods in one pool, and collect the first one without an unload."""
    pool = MemoryAllocator(take("pool", 1024))
    Loaded(program, pool)
    used = pool.used
    second = Loaded(program, pool)
    collect()
    x = take("planned", 16)
    report("reset the pool", lambda: pool.reset(used))
    second.method.set_input(x, 0)
    report("execute the second", second.method.execute)
    report("unload the second", second.method.unload)
    print("used", pool.used == used)


def bytes_that_are_not_there(program):
    """Request too many bytes from a pool in which a method is loaded."""
    pool = MemoryAllocator(take("pool", 1024))
    method = Loaded(program, pool).method
    used = pool.used
    report("allocate what is negative", lambda: pool.allocate(-used))
    report("allocate at a multiple of 0", lambda: pool.allocate(4, 0))
    report("allocate at a multiple of -8", lambda: pool.allocate(4, -8))
    report("allocate at a multiple of 3", lambda: pool.allocate(4, 3))
    report("reset to more than is used", lambda: pool.reset(used + 8))
    report("reset to less than nothing", lambda: pool.reset(-8))
    print("used", pool.used == used)
    method.unload()


def order_of_unloads(program):
    """Unload two methods of one pool in both orders."""
    pool = MemoryAllocator(take("pool", 1024))
    first, second = Loaded(program, pool).method, Loaded(program, pool).method
    report("unload the first", first.unload)
    report("unload the second", second.unload)
    report("unload the first", first.unload)
    print("used", pool.used)


def inputs_in_place(program, written):
    """Pass inputs in place: relu_in_place writes to its unplanned input, relu_unplanned does not."""
    constant = sections["relu"][:16]
    m, w = Loaded(program), Loaded(written)
    out, x = take("planned", 16), take("planned", 16)
    pool, planned = m.pool.buffer[:16], w.planned[0][:16]
    report("constant input", lambda: m.method.set_input(constant, 0))
    report("input in the pool", lambda: m.method.set_input(pool, 0))
    report("output in the pool", lambda: m.method.set_output_data_ptr(pool, 0))
    report("output", lambda: m.method.set_output_data_ptr(out, 0))
    report("execute", m.method.execute)
    report("constant input that is written", lambda: w.method.set_input(constant, 0))
    report("input that is written, in planned memory", lambda: w.method.set_input(planned, 0))
    report("execute", w.method.execute)
    report("input that is written", lambda: w.method.set_input(x, 0))
    report("execute", w.method.execute)


def input_beyond_the_program(data):
    """Pass an input that lies in the program, and one that also reaches into the pool behind it."""
    size = len(data) + 7 & -8
    memory = take("planned", size + 1024)
    memory[: len(data)] = data
    program = Program.load(BufferDataLoader(memory[:size]))
    m = Loaded(program, MemoryAllocator(memory[size:])).method
    inside, beyond = memory[size - 16 : size], memory[size - 8 : size + 8]
    report("input in the program", lambda: m.set_input(inside, 0))
    report("input in program and pool", lambda: m.set_input(beyond, 0))


def memories_in_place(program):
    """Pass input and output of relu_unplanned, which are used in place."""
    tracer = EventTracer(take("planned", 64))
    events = tracer.buffer[16:32]
    temp = take("planned", 64)
    m = Loaded(program, load=False, temp=temp)
    m.method.load(program, event_tracer=tracer)
    x, out, both = take("planned", 16), take("planned", 16), take("planned", 24)
    constant = sections["relu"][:16]
    set_input, set_output = m.method.set_input, m.method.set_output_data_ptr
    apart, late, short, shifted = both[:16], both[8:24], x[:12], take("planned", 24, 4)[:16]
    in_temp = temp[:16]
    report("input of 12 bytes", lambda: set_input(short, 0))
    report("output of 12 bytes", lambda: set_output(short, 0))
    report("input at a multiple of 4", lambda: set_input(shifted, 0))
    report("output at a multiple of 4", lambda: set_output(shifted, 0))
    report("output that cannot be written", lambda: set_output(constant, 0))
    report("input in temp memory", lambda: set_input(in_temp, 0))
    report("output in temp memory", lambda: set_output(in_temp, 0))
    report("input among the events", lambda: set_input(events, 0))
    report("output among the events", lambda: set_output(events, 0))
    report("execute without either", m.method.execute)
    report("input", lambda: set_input(apart, 0))
    report("output that begins in the input", lambda: set_output(late, 0))
    report("execute", m.method.execute)
    report("output that is the input", lambda: set_output(apart, 0))
    report("execute", m.method.execute)
    report("step", m.method.step)
    report("input elsewhere", lambda: set_input(x, 0))
    report("execute", m.method.execute)
    report("what was the output as input", lambda: set_input(apart, 0))
    report("what was the input as output", lambda: set_output(x, 0))
    report("execute", m.method.execute)
    report("output of its own", lambda: set_output(out, 0))
    report("execute", m.method.execute)


def inputs_over_each_other(program):
    """Pass the two inputs of add_unplanned, which are read in place and may be the same."""
    m = Loaded(program).method
    x, out = take("planned", 16), take("planned", 16)
    m.set_input(x, 0)
    m.set_input(x, 1)
    m.set_output_data_ptr(out, 0)
    report("execute", m.execute)
    m.set_output_data_ptr(x, 0)
    report("execute into both inputs", m.execute)


def tracers(program):
    """Put an event tracer's memory over others."""
    m = Loaded(program, load=False)
    for label, buffer in [("in the pool", m.pool.buffer[16:80]), ("in planned memory", m.planned[0])]:
        m.tracer = EventTracer(buffer)
        report("events " + label, lambda: m.method.load(program, event_tracer=m.tracer))
    print("used", m.pool.used)


def jumps_and_moves(moved, jump):
    """Pass an unplanned input to both programs; move_in_place moves a tensor to it."""
    constant = sections["relu"][:16]
    m, j = Loaded(moved).method, Loaded(jump).method
    report("constant input that is moved to", lambda: m.set_input(constant, 0))
    report("constant input beside a jump", lambda: j.set_input(constant, 0))
    report("execute", j.execute)


def elements_of_another_type(program):
    """Pass elements of other types to relu_int, which takes two int32."""
    m = Loaded(program).method
    longs = array("q", [1])
    unsigned = array("I", [1, 2])
    ints = array("i", [1, -2])
    report("int64", lambda: m.set_input(longs, 0))
    report("uint32", lambda: m.set_input(unsigned, 0))
    report("int32", lambda: m.set_input(ints, 0))


def many_inputs(program):
    """Pass 40 tensors to many_inputs."""
    m = Loaded(program).method
    x = take("planned", 16)
    for i in range(39):
        m.set_input(x, i)
    report("execute without the last input", m.execute)
    report("the last input", lambda: m.set_input(x, 39))
    report("execute", m.execute)


def large_ints(program):
    """Pass 2**29 and 2**40 to large_ints, and read them from it."""
    m = Loaded(program).method
    result = [None]

    def output():
        result[0] = m.get_output(0)

    clamped, large, larger = (1 << 30) - 1, 1 << 40, (1 << 64) + (1 << 40)
    report("2**29", lambda: m.set_input(536870912, 0))
    report("what 2**40 is clamped to", lambda: m.set_input(clamped, 1))
    report("2**64 more", lambda: m.set_input(larger, 1))
    report("2**40", lambda: m.set_input(large, 1))
    report("output of 2**29", output)
    print(result[0], m.get_output(1))


def an_index(m, meta, x, i):
    print("index", i)
    report("set_input", lambda: m.set_input(x, i))
    report("set_output_data_ptr", lambda: m.set_output_data_ptr(x, i))
    report("get_output", lambda: m.get_output(i))
    report("planned buffer", lambda: meta.memory_planned_buffer_size(i))
    report("input", lambda: meta.input_tensor_meta(i))
    report("operator", lambda: meta.operator_name(i))


def indices_of_any_size(program):
    """Pass indexes of any size: none counts as its lower 32 bits, which the library uses."""
    m = Loaded(program).method
    x = take("planned", 16)
    for i in (-1, 1 << 30, 1 << 31, 1 << 32, -1 << 32, 1 << 64):
        an_index(m, m.metadata, x, i)


def a_dim_order(order):
    print("dim order", order, "->", unlocked(lambda: from_blob(bytes(16), (2, 2), "Float", order)))


def a_truth(program, pack_weights):
    method = Loaded(program, load=False).method
    report("pack_weights as a truth", lambda: method.load(program, "forward", pack_weights))


def a_string_of_no_text(program):
    """Read a string from no_text whose bytes are not UTF-8."""
    m = Loaded(program).method
    report("output", lambda: m.get_output(0))
    print("unlocked", unlocked(lambda: m.get_output(0)))


def objects_of_other_kinds(program):
    m = Loaded(program).method
    info = m.metadata.input_tensor_meta(0)
    try:
        objects = array("O", [0] * 64)  # CPython's array has no such type
    except ValueError:
        objects = None
    report("an input of a TensorInfo", lambda: m.set_input(info, 0))
    report("an input of a class", lambda: m.set_input(Tensor, 0))
    print("a pool of objects ->", unlocked(lambda: MemoryAllocator(objects)))
    print("a tensor of objects ->", unlocked(lambda: from_blob(objects, (4,), "Float")))
    for order in ((0, 2), (0, -1), (0, 300), (0,)):
        a_dim_order(order)
    for name in (b"forward", b"backward", None, 5):
        print("a name of another type ->", unlocked(lambda name=name: program.plan(name)))
    for pack_weights in (None, 2, "yes"):
        a_truth(program, pack_weights)


def files_that_are_not_open(method):
    """Use objects that were made by hand, not by load."""
    loader = BufferDataLoader(sections["relu"])
    program, data_map = Program(loader), FlatTensorDataMap(loader)
    report("methods of a program that is not open", program.num_methods)
    report("method of a program that is not open", lambda: program.plan("forward"))
    report("load of a program that is not open", lambda: method.load(program))
    report("keys of a data file that is not open", data_map.library.num_keys)
    report("load with a data file that is not open",
         lambda: method.load(relu, "forward", False, data_map))
    report("load afterwards", lambda: method.load(relu))


relu = open_program("relu")
memories_that_overlap(relu)
memories_of_no_use(relu)
planned_buffers_that_overlap(open_program("two_buffers"))
one_allocator_for_two(relu)
arrays_as_memories(relu)
a_method_that_is_gone(relu)
memories_in_place(open_program("relu_unplanned"))
input_beyond_the_program(sections["relu_unplanned"])
inputs_over_each_other(open_program("add_unplanned"))
tracers(relu)
bytes_that_are_not_there(relu)
order_of_unloads(relu)
inputs_in_place(open_program("relu_unplanned"), open_program("relu_in_place"))
jumps_and_moves(open_program("move_in_place"), open_program("jump"))
elements_of_another_type(open_program("relu_int"))
many_inputs(open_program("many_inputs"))
large_ints(open_program("large_ints"))
indices_of_any_size(relu)
objects_of_other_kinds(relu)
a_string_of_no_text(open_program("no_text"))
files_that_are_not_open(Loaded(relu, load=False).method)
print("no memories ->", unlocked(lambda: Method(None)))
print("metadata before load ->", unlocked(Loaded(relu, load=False).method.method_meta))
