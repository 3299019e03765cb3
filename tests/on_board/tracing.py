"""Test the counts and the errors of event tracers, heap locked. Ticks differ between boards, so only
relations between them are printed.

Sections: the programs, by name; test_event_tracer.py makes them.
"""

from array import array

from picotorch import EventTracer


def report(label, function):
    print(label, "->", locked(function) or "ok")


def open_program(name):
    return Program.load(BufferDataLoader(sections[name]))


def new_method(program):
    meta = program.method_meta("forward")
    planned = [take("planned", meta.memory_planned_buffer_size(i))
               for i in range(meta.num_memory_planned_buffers())]
    return Method(MemoryManager(MemoryAllocator(take("pool", 512)), HierarchicalAllocator(planned)))


def floats(*values):
    memory = take("planned", 4 * len(values))
    struct.pack_into("<%df" % len(values), memory, 0, *values)
    return memory


def counted(tracer):
    """Return calls by instruction, executions, and whether only executed instructions took ticks."""
    calls = [tracer.calls(i) for i in range(len(tracer))]
    right = all([calls[i] or not tracer.ticks(i) for i in range(len(tracer))])
    sum_is_less = sum([tracer.ticks(i) for i in range(len(tracer))]) <= tracer.total()
    return calls, tracer.executions(), right and sum_is_less


def branches(program):
    """Trace move(x, out); a jump over relu unless the condition is true; relu."""
    method = new_method(program)
    tracer = EventTracer(take("planned", EventTracer.nbytes(program.method_meta("forward"))))
    print("repr", tracer, len(tracer))
    report("load", lambda: method.load(program, event_tracer=tracer))
    condition, x = take("planned", 1), floats(-1, 2, -3, 4)
    report("set", lambda: method.set_input(x, 0))
    report("set condition", lambda: method.set_input(condition, 1))
    print("before", [tracer.calls(i) for i in range(3)], tracer.executions(), tracer.total())
    report("execute, false", method.execute)
    print(counted(tracer))
    condition[0] = 1
    report("set condition", lambda: method.set_input(condition, 1))
    report("execute, true", method.execute)
    report("again", method.execute)
    print(counted(tracer))
    report("reset", tracer.reset)
    print([tracer.calls(i) for i in range(3)], tracer.executions(), tracer.total())
    report("step", method.step)
    report("step", method.step)
    print(counted(tracer))
    report("calls of 3", lambda: tracer.calls(3))
    report("ticks of -1", lambda: tracer.ticks(-1))
    report("read", lambda: tracer.ticks(0) + tracer.calls(0) + tracer.total() + tracer.executions())
    report("unload", method.unload)
    report("load without", lambda: method.load(program))
    report("set", lambda: method.set_input(x, 0))
    report("set condition", lambda: method.set_input(condition, 1))
    report("execute", method.execute)
    print("no more", [tracer.calls(i) for i in range(3)])
    print("repr", tracer)


def failure(program):
    """Trace an index outside its tensor, in the second of three instructions."""
    method = new_method(program)
    tracer = EventTracer(bytearray(64))
    report("load", lambda: method.load(program, event_tracer=tracer))
    index = take("planned", 8)
    index[0] = 9
    x = floats(1, 2, 3, 4)
    report("set", lambda: method.set_input(x, 0))
    report("set", lambda: method.set_input(index, 1))
    report("execute", method.execute)
    print(counted(tracer))
    index[0] = 1
    report("set", lambda: method.set_input(index, 1))
    report("execute", method.execute)
    print(counted(tracer))


def report_load(label, method, program, tracer):
    report(label, lambda: method.load(program, event_tracer=tracer))


def memories(program):
    method = new_method(program)
    wanted = EventTracer.nbytes(program.method_meta("forward"))
    small, just, large = bytearray(wanted - 1), bytearray(wanted), bytearray(wanted + 9)
    for label, memory in (("no byte", bytearray()), ("one too few", small), ("just", just),
                          ("more", large), ("pool", method.manager.method_allocator.buffer)):
        report_load(label, method, program, EventTracer(memory))
        report("unload", method.unload)
    for label, memory in (("bytes", bytes(64)), ("no memory", 5), ("misaligned", take("pool", 64, 4)),
                          ("no bytes", array("I", [0] * 16))):
        try:
            EventTracer(memory)
            print(label, "-> ok")
        except Error as error:
            print(label, "->", error)


for title, name, test in (("branches", "branches", branches), ("failure", "failure", failure),
                          ("memories", "branches", memories)):
    print("--", title)
    test(open_program(name))
