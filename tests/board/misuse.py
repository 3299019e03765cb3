"""Memories and buffers that would end in undefined behaviour or a wrong result, heap locked.

Sections: the programs of tests/host/test_misuse.py, by name. Prints what every call ended with.
"""

from array import array


def tell(label, function):
    print(label, "->", locked(function) or "ok")


def tell_load(label, method, program):
    tell(label, lambda: method.load(program))


def open_program(name):
    return Program.load(BufferDataLoader(sections[name]))


class Loaded:
    """A method in memories of its own, and what it is made of."""

    def __init__(self, program, pool=None):
        meta = program.method_meta()
        self.planned = [take("planned", meta.memory_planned_buffer_size(i))
                        for i in range(meta.num_memory_planned_buffers())]
        self.pool = pool or MemoryAllocator(take("pool", 1024))
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator(self.planned)))
        self.method.load(program)


def memories_that_overlap(program):
    """relu: 32 bytes of planned memory."""
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
        tell_load(label, method, of)


def memories_of_no_use(program):
    pool = MemoryAllocator(take("pool", 1024))
    for label, buffer in [("planned buffer of ints", array("i", [0] * 8)), ("None", None), ("5", 5)]:
        method = Method(MemoryManager(pool, HierarchicalAllocator([buffer])))
        tell_load(label, method, program)
    try:
        MemoryAllocator(5)
    except Error as error:
        print("pool 5 ->", error)
    for verification in (2, None):
        try:
            Program.load(BufferDataLoader(sections["relu"]), verification)
        except Error as error:
            print("verification ->", error)


def order_of_unloads(program):
    """Two methods in one pool."""
    pool = MemoryAllocator(take("pool", 1024))
    first, second = Loaded(program, pool).method, Loaded(program, pool).method
    tell("unload the first", first.unload)
    tell("unload the second", second.unload)
    tell("unload the first", first.unload)
    print("used", pool.used)


def inputs_in_place(program, written):
    """relu_in_place writes to its input, which is unplanned; relu_unplanned does not."""
    constant = sections["relu"][:16]
    m, w = Loaded(program), Loaded(written)
    out, x = take("planned", 16), take("planned", 16)
    pool, planned = m.pool.buffer[:16], w.planned[0][:16]
    tell("constant input", lambda: m.method.set_input(constant, 0))
    tell("input in the pool", lambda: m.method.set_input(pool, 0))
    tell("output in the pool", lambda: m.method.set_output_data_ptr(pool, 0))
    tell("output", lambda: m.method.set_output_data_ptr(out, 0))
    tell("execute", m.method.execute)
    tell("constant input that is written", lambda: w.method.set_input(constant, 0))
    tell("input that is written, in planned memory", lambda: w.method.set_input(planned, 0))
    tell("execute", w.method.execute)
    tell("input that is written", lambda: w.method.set_input(x, 0))
    tell("execute", w.method.execute)


def jumps_and_moves(moved, jump):
    """Both take an unplanned input; move_in_place moves a tensor to it."""
    constant = sections["relu"][:16]
    m, j = Loaded(moved).method, Loaded(jump).method
    tell("constant input that is moved to", lambda: m.set_input(constant, 0))
    tell("constant input beside a jump", lambda: j.set_input(constant, 0))
    tell("execute", j.execute)


def elements_of_another_type(program):
    """relu_int: two int32."""
    m = Loaded(program).method
    longs = array("q", [1])
    unsigned = array("I", [1, 2])
    ints = array("i", [1, -2])
    tell("int64", lambda: m.set_input(longs, 0))
    tell("uint32", lambda: m.set_input(unsigned, 0))
    tell("int32", lambda: m.set_input(ints, 0))


def many_inputs(program):
    """many_inputs takes 40 tensors."""
    m = Loaded(program).method
    x = take("planned", 16)
    for i in range(39):
        m.set_input(x, i)
    tell("execute without the last input", m.execute)
    tell("the last input", lambda: m.set_input(x, 39))
    tell("execute", m.execute)


def large_ints(program):
    """large_ints takes and gives 2**29 and 2**40."""
    m = Loaded(program).method
    result = [None]

    def output():
        result[0] = m.get_output(0)

    clamped, large, larger = (1 << 30) - 1, 1 << 40, (1 << 64) + (1 << 40)
    tell("2**29", lambda: m.set_input(536870912, 0))
    tell("what 2**40 is clamped to", lambda: m.set_input(clamped, 1))
    tell("2**64 more", lambda: m.set_input(larger, 1))
    tell("2**40", lambda: m.set_input(large, 1))
    tell("output of 2**29", output)
    print(result[0], m.get_output(1))



relu = open_program("relu")
memories_that_overlap(relu)
memories_of_no_use(relu)
order_of_unloads(relu)
inputs_in_place(open_program("relu_unplanned"), open_program("relu_in_place"))
jumps_and_moves(open_program("move_in_place"), open_program("jump"))
elements_of_another_type(open_program("relu_int"))
many_inputs(open_program("many_inputs"))
large_ints(open_program("large_ints"))
try:
    Method(None).method_meta()
except Error as error:
    print("metadata before load ->", error)
