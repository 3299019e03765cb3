"""Pass values of every kind in and out, tensors between methods, attributes and state; heap locked.

Sections: the programs of tests/runtime/test_values.py, by name. Prints the outcome of every call.
"""


def report(label, function):
    print(label, "->", locked(function) or "ok")


def open_program(name):
    return Program.load(BufferDataLoader(sections[name]))


def load(name, method="forward"):
    program = open_program(name)
    meta = program.method_meta(method)
    planned = [take("planned", meta.memory_planned_buffer_size(i))
               for i in range(meta.num_memory_planned_buffers())]
    loaded = Method(MemoryManager(MemoryAllocator(take("pool", 1024)),
                                  HierarchicalAllocator(planned)), meta.num_outputs())
    loaded.load(program, method)
    return loaded


def floats(*values):
    memory = take("planned", 4 * len(values))
    struct.pack_into("<%df" % len(values), memory, 0, *values)
    return memory


def shown(value):
    if isinstance(value, Tensor):
        return [value.dtype, value.sizes(), [item for item in value.data]]
    if isinstance(value, ValueList):
        return [shown(item) for item in value]
    return value


def outputs_of_every_kind():
    """Read outputs with the heap locked, and as new objects."""
    m = load("values")
    results = [None] * m.outputs_size()
    report("get_outputs", lambda: m.get_outputs(results))
    locked_values = [shown(value) for value in results]
    for i in range(len(results)):
        print(i, locked_values[i], shown(m.get_output(i)) == locked_values[i])
    tensors, ints = m.get_output(9), m.get_output(6)
    print(len(tensors), len(ints), ints[-1])
    report("an item", lambda: ints[0])
    try:
        ints[3]
    except IndexError:
        print("IndexError")
    first, last = tensors[0], tensors[2]
    print(shown(first) != shown(last))


def hostile_lists():
    m = load("hostile_lists")
    for i in range(m.outputs_size()):
        items = m.get_output(i)
        report("item of list %d" % i, lambda items=items: items[0])


def a_list_of_another_load():
    """Use a list after a load of another program, in which its items are elsewhere or missing."""
    m, other = load("values"), open_program("inputs")
    ints = m.get_output(6)
    m.unload()
    print(len(ints))
    report("item after unload", lambda: ints[0])
    m.manager.planned_memory.buffers.append(take("planned", 16))
    m.load(other)
    report("length after another load", lambda: len(ints))
    report("item after another load", lambda: ints[0])
    report("last item after another load", lambda: ints[-1])
    m.unload()
    m.load(open_program("values"))
    print(shown(m.get_output(6)))
    report("item after another get_output", lambda: ints[0])


def inputs_of_every_kind():
    m = load("inputs")
    large, x = 1 << 40, floats(1, 2)
    cases = [(0, "text"), (0, "other"), (0, None), (1, None), (1, 0), (2, 7), (2, True), (2, 7.0),
             (3, True), (3, 1), (3, False), (4, 0.5), (4, 0.50009), (4, 0.51), (4, 1), (5, large),
             (5, 7), (6, x), (6, 3), (7, x), (7, None), (7, "text")]
    for index, value in cases:
        report("input %d %s" % (index, "a buffer" if value is x else repr(value)),
             lambda index=index, value=value: m.set_input(value, index))


def tensors_between_methods():
    """Pass tensors between relu, of four floats, and dynamic, of up to four."""
    a, b, d = load("relu"), load("relu"), load("dynamic")
    x = floats(-1, 2, -3, 4)
    report("set", lambda: a.set_input(x, 0))
    report("execute", a.execute)
    out = a.get_output(0)
    report("another method's output", lambda: b.set_input(out, 0))
    report("execute", b.execute)
    print(shown(b.get_output(0)))
    own = b.get_output(0)
    report("its own output", lambda: b.set_input(own, 0))
    three, five, four = (3,), (5,), (4,)
    report("resize it", lambda: own.resize(four))
    t = from_blob(x, [2], "Float")
    ints, matrix = from_blob(x, [4], "Int"), from_blob(x, [2, 2], 6)
    report("static, of two", lambda: b.set_input(t, 0))
    report("dynamic, of two", lambda: d.set_input(t, 0))
    report("execute", d.execute)
    print(shown(d.get_output(0)))
    report("resize to three", lambda: t.resize(three))
    report("dynamic, of three", lambda: d.set_input(t, 0))
    stale = d.get_output(0)
    sizes = stale.raw_sizes()
    try:
        sizes[0] = 1
        print("the sizes of a method's tensor were written")
    except TypeError:
        pass
    report("execute", d.execute)
    report("an output that has other sizes now", lambda: d.set_input(stale, 0))
    print(shown(d.get_output(0)))
    report("resize to five", lambda: t.resize(five))
    report("resize to two by two", lambda: t.resize(matrix.raw_sizes()))
    report("ints", lambda: d.set_input(ints, 0))
    report("a matrix", lambda: d.set_input(matrix, 0))
    report("too many", lambda: d.set_input(wide, 0))
    print(shown(d.get_output(0)))
    report("a buffer, of the bound", lambda: d.set_input(x, 0))
    report("execute", d.execute)
    print(shown(d.get_output(0)))
    report("resize to four", lambda: t.resize(four))
    report("an output of zero", lambda: t.resize(nothing))
    report("dynamic, of none", lambda: d.set_input(t, 0))
    report("execute", d.execute)
    print(shown(d.get_output(0)))


def blobs():
    x = floats(1, 2, 3, 4)
    for arguments in (([5], "Float"), ([-1], "Float"), ([4], "Text"), ([1] * 17, "Float"),
                      ([2, 2], "Float", [1, 1]), ([2, 2], "Float", [0])):
        try:
            from_blob(x, *arguments)
        except Error as error:
            print("from_blob ->", error)
    print(from_blob(x, [2, 2], "Float", [1, 0]).dim_order(), from_blob(x, [16]).dtype)


def state():
    """Use the two buffers of lstm_stateful, which start from ones and have names."""
    m = load("lstm_stateful")
    x, result = floats(0.5, -0.5, 1), [None]

    def attribute():
        result[0] = m.get_attribute("hidden")

    def write():
        result[0][0] = 1.0

    report("attribute", attribute)
    print(shown(result[0]))
    report("no attribute", lambda: m.get_attribute("hiddem"))
    report("set", lambda: m.set_input(x, 0))
    report("execute", m.execute)
    first = shown(m.get_output(0))
    report("execute", m.execute)
    print("another", shown(m.get_output(0)) != first)
    report("reset", m.reset_state)
    report("execute", m.execute)
    report("set", lambda: m.set_input(x, 0))
    report("execute", m.execute)
    print("the same", shown(m.get_output(0)) == first)
    report("attribute", attribute)
    print("hidden", shown(result[0]) == first)
    for name in ("hidden", "memory"):
        t = m.get_attribute(name)
        for i in range(4):
            t[i] = 1.0
    report("execute", m.execute)
    print("the same", shown(m.get_output(0)) == first)
    report("attribute", attribute)
    report("write", write)
    constant = load("attributes").get_attribute("weight")
    try:
        constant[0] = 1.0
    except (Error, TypeError):
        print("constant")


wide, nothing = from_blob(floats(1, 2, 3, 4, 5), [5], "Float"), (0,)
outputs_of_every_kind()
hostile_lists()
a_list_of_another_load()
inputs_of_every_kind()
tensors_between_methods()
blobs()
state()
