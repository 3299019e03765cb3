"""Make calls in the wrong state or with wrong arguments, on committed programs; heap locked.

Sections: the programs, by name. Prints the outcome of every call.
"""

from array import array


def report(label, function):
    print(label, "->", locked(function) or "ok")


class Loaded:
    """A method in memories of its own. Without `load` it is not loaded yet."""

    def __init__(self, program, name="forward", load=True, max_outputs=8):
        meta = program.method_meta(name)
        planned = [take("planned", meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        self.method = Method(MemoryManager(MemoryAllocator(take("pool", 512)),
                                           HierarchicalAllocator(planned)), max_outputs)
        if load:
            self.method.load(program, name)


def floats(*values):
    """Return a memoryview of float32 at a multiple of 16 bytes."""
    memory = take("planned", 4 * len(values))
    struct.pack_into("<%df" % len(values), memory, 0, *values)
    return memory


def words(data):
    return [item for item in data]


def open_program(name):
    return Program.load(BufferDataLoader(sections[name]))


def order_of_calls(program):
    """Call in every order: add2_5 computes out = x + y, five floats each."""
    m = Loaded(program, load=False).method
    x, y = floats(1, 2, 3, 4, 5), floats(10, 20, 30, 40, 50)
    print("repr", m)
    report("execute before load", m.execute)
    report("step before load", m.step)
    report("set_input before load", lambda: m.set_input(x, 0))
    report("get_output before load", lambda: m.get_output(0))
    report("get_outputs before load", lambda: m.get_outputs())
    report("inputs_size before load", lambda: m.inputs_size())
    report("reset before load", m.reset_execution)
    report("unload before load", m.unload)
    report("load of another name", lambda: m.load(program, "backward"))
    report("load", lambda: m.load(program, "forward"))
    report("load again", lambda: m.load(program, "forward"))
    report("execute without inputs", m.execute)
    report("step without inputs", m.step)
    report("set_input", lambda: m.set_input(x, 0))
    report("execute without input 1", m.execute)
    report("set_input", lambda: m.set_input(y, 1))
    report("execute", m.execute)
    print("output", words(m.get_output(0).data))


def inputs_that_do_not_fit(program):
    m = Loaded(program).method
    x = floats(1, 2, 3, 4, 5)
    ints, typed = array("i", [1, 2, 3, 4, 5]), array("f", [6, 7, 8, 9, 10])
    short, too_few = x[:16], [x]
    both = [x, typed]
    report("input -1", lambda: m.set_input(x, -1))
    report("input 2", lambda: m.set_input(x, 2))
    report("too short", lambda: m.set_input(short, 0))
    report("empty", lambda: m.set_input(b"", 0))
    report("ints", lambda: m.set_input(ints, 0))
    report("a number", lambda: m.set_input(5, 0))
    report("None", lambda: m.set_input(None, 0))
    report("too few", lambda: m.set_inputs(too_few))
    report("still without inputs", m.execute)
    report("both", lambda: m.set_inputs(both))
    report("execute", m.execute)
    print("output", words(m.get_output(0).data))


def outputs_that_there_are_not(program, two_outputs):
    m = Loaded(program).method
    five = floats(0, 0, 0, 0, 0)
    one, three = [None], [None] * 3
    report("output -1", lambda: m.get_output(-1))
    report("output 1", lambda: m.get_output(1))
    report("a list of three", lambda: m.get_outputs(three))
    report("a list of one", lambda: m.get_outputs(one))
    report("set_output_data_ptr of a planned one", lambda: m.set_output_data_ptr(five, 0))
    report("set_output_data_ptr of none", lambda: m.set_output_data_ptr(five, 1))
    few = Loaded(two_outputs, max_outputs=1).method
    report("the first of two", lambda: few.get_output(0))
    report("the second, which was not made", lambda: few.get_output(1))


def steps(program):
    """Step through the three instructions of unplanned_input."""
    m = Loaded(program).method
    x, y = floats(1, 2, 3, 4, 5, 6), floats(6, 5, 4, 3, 2, 1)
    m.set_input(x, 0)
    for i in range(5):
        report("step %d" % i, m.step)
    stepped = words(m.get_output(0).data)
    report("reset", m.reset_execution)
    report("step", m.step)
    report("input between steps", lambda: m.set_input(y, 0))
    report("reset", m.reset_execution)
    m.set_input(y, 0)
    report("step", m.step)
    report("execute, which begins with the first", m.execute)
    print("another", stepped != words(m.get_output(0).data))
    report("step after it", m.step)
    report("reset", m.reset_execution)
    m.set_input(x, 0)
    report("execute", m.execute)
    print("the same", stepped == words(m.get_output(0).data))


def load_again(program):
    m = Loaded(program).method
    pool = m.manager.method_allocator
    both = [floats(1, 2, 3, 4, 5), floats(2, 2, 2, 2, 2)]
    for _ in range(3):
        report("inputs", lambda: m.set_inputs(both))
        report("execute", m.execute)
        used = pool.used
        report("unload", m.unload)
        report("execute", m.execute)
        report("load", lambda: m.load(program))
        print("the same pool", pool.used == used)


def memory_of_unplanned(program):
    """Give memory to unplanned_io, whose input and output of six floats have none."""
    m = Loaded(program).method
    x, out = floats(1, 2, 3, 4, 5, 6), floats(0, 0, 0, 0, 0, 0)
    constant = sections["unplanned_io"][:24]
    five = out[:20]
    odd_x, odd_out = take("planned", 24, 4), take("planned", 24, 1)
    report("execute without memory", m.execute)
    report("get_output without memory", lambda: m.get_output(0))
    report("misaligned input", lambda: m.set_input(odd_x, 0))
    report("input", lambda: m.set_input(x, 0))
    report("execute without an output's memory", m.execute)
    report("misaligned output", lambda: m.set_output_data_ptr(odd_out, 0))
    report("constant output", lambda: m.set_output_data_ptr(constant, 0))
    report("short output", lambda: m.set_output_data_ptr(five, 0))
    report("no output", lambda: m.set_output_data_ptr(None, 0))
    report("execute still without", m.execute)
    report("output", lambda: m.set_output_data_ptr(out, 0))
    report("execute", m.execute)
    print("in place", words(struct.unpack("<6f", out)) == words(m.get_output(0).data))
    report("constant input", lambda: m.set_input(constant, 0))
    report("execute", m.execute)


def failing_kernel(program):
    """Run embedding with an index beyond its seven rows, which the kernel detects."""
    m = Loaded(program).method
    good, bad = take("planned", 32), take("planned", 32)
    good[:] = bytes(32)
    bad[:] = b"\x07" + bytes(31)
    report("bad index", lambda: m.set_input(bad, 0))
    report("execute", m.execute)
    report("execute again", m.execute)
    report("step", m.step)
    report("good index", lambda: m.set_input(good, 0))
    report("execute", m.execute)
    report("execute again", m.execute)


def side_by_side(program, other):
    """Use two methods of a program, one of them twice, and a method of another program."""
    encode, decode = Loaded(program, "encode").method, Loaded(program, "decode").method
    twin, add = Loaded(program, "encode").method, Loaded(other).method
    three, six, five = floats(1, -2, 3), floats(1, 2, 3, 4, 5, 6), floats(1, 2, 3, 4, 5)
    encode.set_input(three, 0)
    decode.set_input(six, 0)
    report("the other of the same name", twin.execute)
    report("encode", encode.execute)
    first = words(encode.get_output(0).data)
    report("decode", decode.execute)
    second = words(decode.get_output(0).data)
    add.set_inputs([five, five])
    report("add", add.execute)
    for m in (encode, twin, decode):
        m.set_input(six if m is decode else three, 0)
    add.set_inputs([five, five])
    for m in (encode, twin, add, decode):
        report("again", m.execute)
    print("the same", first == words(encode.get_output(0).data) == words(twin.get_output(0).data),
          second == words(decode.get_output(0).data), words(add.get_output(0).data))
    report("unload", twin.unload)
    encode.set_input(three, 0)
    report("encode", encode.execute)
    print("the same", first == words(encode.get_output(0).data))


add, unplanned = open_program("add2_5"), open_program("unplanned_io")
order_of_calls(add)
inputs_that_do_not_fit(add)
outputs_that_there_are_not(add, open_program("amax_amin"))
steps(open_program("unplanned_input"))
load_again(add)
memory_of_unplanned(unplanned)
failing_kernel(open_program("embedding"))
side_by_side(open_program("two_methods"), add)
