"""Call delegates whose backend fails, requests too much or breaks the contract; heap locked.

Sections: the programs of tests/runtime/test_delegates.py, by name. Prints the outcome of every call.
"""

from picotorch import Backend, register_backend, unregister_backend
from picotorch.errors import DELEGATE_INVALID_COMPATIBILITY, DELEGATE_INVALID_HANDLE, NOT_FOUND, fail

INTS = memoryview(bytearray(bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0])))


def report(label, function):
    print(label, "->", locked(function) or "ok")


def open_program(name):
    return Program.load(BufferDataLoader(sections[name]))


class Handle:
    def __init__(self, number):
        self.number = number


class Doubling(Backend):
    """Double four ints. Tests set from outside what else its calls do."""

    def __init__(self):
        self.available = True
        self.at_is_available = self.at_init = self.at_execute = self.at_destroy = None
        self.handles = [Handle(0), Handle(1)]
        self.given = 0  # number of handles
        self.destroyed = 0  # digits: numbers of handles, from 1
        self.seen = [None] * 8
        self.n_seen = 0

    def forget(self):
        self.at_is_available = self.at_init = self.at_execute = self.at_destroy = None
        self.destroyed = self.given = 0

    def is_available(self):
        if self.available is None:
            raise ValueError("no answer")
        if self.at_is_available is not None:
            self.at_is_available()
        return self.available

    def init(self, context, processed, compile_specs):
        handle = self.handles[self.given & 1]
        if self.at_init is not None:
            self.at_init(context, processed, compile_specs)
        self.given += 1
        return handle

    def execute(self, context, handle, args):
        if self.at_execute is not None:
            self.at_execute(context, handle, args)
        x, out = args[0].data, args[-1].data
        for i in range(4):
            out[i] = 2 * x[i]

    def destroy(self, handle):
        self.destroyed = 10 * self.destroyed + handle.number + 1
        if self.at_destroy is not None:
            self.at_destroy(handle)


doubling = Doubling()


def raise_error(a, b=None, c=None):
    raise fail(DELEGATE_INVALID_COMPATIBILITY, "was compiled for another chip", remedy="compile again")


def raise_invalid_handle(a, b=None, c=None):
    raise fail(DELEGATE_INVALID_HANDLE, "is stale", "handle", 7)


def raise_value_error(a, b=None, c=None):
    raise ValueError("bad value")


def raise_memory_error(a, b=None, c=None):
    raise MemoryError


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Unmade(Error):
    def __init__(self):
        pass


class Undecided:
    def __bool__(self):
        raise ValueError("neither")


MUTE = Mute()
UNMADE = Unmade()
UNDECIDED = Undecided()


def raise_mute(a, b=None, c=None):
    raise MUTE


def raise_unmade(a, b=None, c=None):
    raise UNMADE


def allocate_negative_size(context, processed, compile_specs):
    context.ask_temp(-1)


def registration(program):
    method = Method(MemoryManager(MemoryAllocator(take("pool", 64)), HierarchicalAllocator([])))
    report("not registered", lambda: method.load(program))
    register_backend("Doubling", doubling)
    for label, call in (
        ("registered twice", lambda: register_backend("Doubling", doubling)),
        ("registered without a name", lambda: register_backend(None, doubling)),
        ("registered what is no backend", lambda: register_backend("Other", 5)),
        ("unregistered what is not there", lambda: unregister_backend("Other")),
        ("a method that was made before", lambda: method.load(program)),
    ):
        print(label, "->", unlocked(call) or "ok")


class Bench:
    """A method of two delegates in memories of its own."""

    def __init__(self, program, pool=512, temp=256, **limits):
        meta = program.method_meta()
        self.program = program
        self.pool = MemoryAllocator(take("pool", pool))
        self.temp = MemoryAllocator(take("temp", temp), "temp memory") if temp else None
        planned = [take("planned", meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        self.method = Method(MemoryManager(self.pool, HierarchicalAllocator(planned), self.temp),
                             **limits)

    def load(self):
        self.method.load(self.program)
        self.method.set_input(INTS, 0)

    def is_clean(self):
        """Check that nothing is left of a failed load, and that the next load works."""
        assert self.pool.used == 0 and not self.method.is_loaded()
        doubling.forget()
        assert locked(self.load) is None
        self.runs()
        assert locked(self.method.unload) is None
        assert doubling.destroyed == 12
        doubling.forget()

    def runs(self):
        assert locked(self.method.execute) is None
        assert list(self.method.get_output(0).data) == [4, 8, 12, 16]


def failures_of_init(program):
    bench = Bench(program)
    report("load", bench.load)
    bench.runs()
    print("pool", bench.pool.used, bench.method)
    report("unload", bench.method.unload)
    print("destroyed", doubling.destroyed)
    doubling.forget()
    for failing in (raise_error, raise_invalid_handle, raise_value_error, raise_memory_error,
                    raise_mute, raise_unmade, allocate_negative_size):
        doubling.at_init = failing
        report("init that fails", bench.load)
        assert doubling.destroyed == 0
        bench.is_clean()

    def second(context, processed, compile_specs):
        if doubling.given:
            raise_error(context)

    doubling.at_init = second
    report("second init that fails", bench.load)
    print("destroyed", doubling.destroyed)
    bench.is_clean()
    for available in (False, None, UNDECIDED):
        doubling.available = available
        report("not available", bench.load)
        doubling.available = True
        bench.is_clean()


def arguments_of_init(program):
    bench = Bench(program)
    view, kept = memoryview(bytearray(1)), [None]

    def look(context, processed, compile_specs):
        kept[0] = processed
        data = processed.data()
        assert processed.size() == len(data) == 3 and data[0] == 10 + doubling.given
        assert context.get_method_name() == "forward"
        assert len(compile_specs) == (2, 0)[doubling.given]
        if doubling.given == 0:
            assert compile_specs.get("level", view)[0] == 7
            assert len(compile_specs.get("empty", view)) == 0
        assert compile_specs.get("lev", view) is None
        assert context.get_named_data_map().get_num_keys() == 0
        processed.free()
        processed.free()
        assert processed.size() == 0

    doubling.at_init = look
    report("load", bench.load)
    report("data that was freed", kept[0].data)

    def use_freed(context, processed, compile_specs):
        processed.free()
        processed.data()

    def write(context, processed, compile_specs):
        try:
            processed.data()[0] = 1
        except Exception:
            raise_value_error(context)

    def no_named_data(context, processed, compile_specs):
        context.get_named_data_map().get_data("weight", view)

    report("unload", bench.method.unload)
    doubling.forget()
    for label, at_init in (("data freed in init", use_freed), ("data written", write),
                           ("named data that is not there", no_named_data)):
        doubling.at_init = at_init
        report(label, bench.load)
        bench.is_clean()


def memory_of_init(program):
    small, bench = Bench(program, pool=256), Bench(program)
    size, views = [0, 8], [memoryview(bytearray(1)), memoryview(bytearray(1))]

    def allocate(context, processed, compile_specs):
        allocator = context.get_runtime_allocator()
        view = views[doubling.given] = allocator.allocate(size[0], size[1], views[doubling.given])
        for i in range(len(view)):
            assert view[i] == 0
            view[i] = 255

    for label, (n, alignment) in (
        ("a little", (9, 8)), ("aligned", (4, 16)), ("nothing", (0, 8)), ("too much", (100, 8)),
        ("far too much", (1 << 26, 8)), ("above 128 MiB", (1 << 28, 8)), ("less than nothing", (-1, 8)),
        ("no power of two", (8, 24)), ("no alignment", (8, 0)),
    ):
        size[0], size[1] = n, alignment
        doubling.at_init = allocate
        report(label, small.load)
        print("pool", small.pool.used)
        if small.method.is_loaded():
            small.runs()
            report("unload", small.method.unload)
            doubling.forget()
        else:
            small.is_clean()
    size[0], size[1] = 100, 8
    doubling.at_init = allocate
    report("in a larger pool", bench.load)
    print("pool", bench.pool.used)
    report("unload", bench.method.unload)
    doubling.forget()


def temp_memory(program):
    bench, without = Bench(program, temp=64), Bench(program, temp=0)
    size, view = [0], memoryview(bytearray(1))

    def ask(context, processed, compile_specs):
        context.ask_temp(size[0])

    def allocate(context, handle, args):
        assert len(context.allocate(size[0], 8, view)) == size[0]
        assert len(context.get_temp_allocator().allocate(8, 8, view)) == 8

    for target in (bench, without):
        for n in (56, 57):
            size[0] = n
            doubling.at_init, doubling.at_execute = None, allocate
            report("load", target.load)
            report("%d bytes of temp memory" % n, target.method.execute)
            report("unload", target.method.unload)
            doubling.at_init, size[0] = ask, n + 8
            report("asked for at load", target.load)
            if target.method.is_loaded():
                print("temp", target.method.memory_report()["temp"])
                report("unload", target.method.unload)
            doubling.forget()


def failures_of_execute(program):
    bench = Bench(program)
    method = bench.method
    report("load", bench.load)
    for failing in (raise_error, raise_invalid_handle, raise_value_error, raise_memory_error):
        doubling.at_execute = failing
        report("execute that fails", method.execute)
        doubling.at_execute = None
        bench.runs()
    for label, call in (("execute", method.execute), ("step", method.step), ("unload", method.unload),
                        ("reset_execution", method.reset_execution),
                        ("load", lambda: method.load(program))):
        doubling.at_execute = lambda context, handle, args: call()  # noqa: B023
        report("within execute: " + label, method.execute)
        doubling.at_execute = None
        bench.runs()

    def in_vain(context, handle, args):
        try:
            method.reset_execution()
        except Error:
            pass

    doubling.at_execute = in_vain
    bench.runs()
    doubling.at_execute = raise_error
    report("step that fails", method.step)
    doubling.at_execute = None
    for _ in range(3):
        assert locked(method.step) is None
    report("step at the end", method.step)
    report("unload", method.unload)
    doubling.forget()


def load_within_init(program):
    bench = Bench(program)
    doubling.at_init = lambda context, processed, compile_specs: bench.load()
    report("load within init", bench.load)
    bench.is_clean()


def load_within_is_available(program):
    """Load another method into the same pool. A later unload of the first method would free it, too."""
    first, second = Bench(program), Bench(program)
    second.method.manager.method_allocator = first.pool

    def load_second():
        doubling.at_is_available = None
        second.load()

    doubling.at_is_available = load_second
    report("load within is_available", first.load)
    assert first.pool.used == 0 and not second.method.is_loaded()
    first.is_clean()


def memory_after_init(program):
    """Allocate memory after init: it would lie behind the method, which could not be unloaded any
    more."""
    bench, kept = Bench(program), [None]

    def keep(context, processed, compile_specs):
        kept[0] = context.get_runtime_allocator()

    doubling.at_init = keep
    report("load", bench.load)
    report("memory after init", lambda: kept[0].allocate(8))
    doubling.at_execute = lambda context, handle, args: kept[0].allocate(8)
    report("memory of the pool in execute", bench.method.execute)
    report("unload", bench.method.unload)
    bench.is_clean()


def arguments(program):
    """Pass a tensor, 7, True, None and its output to the second delegate."""
    bench = Bench(program)
    kept = [None] * 2

    def keep(context, handle, args):
        if handle.number == 0:
            kept[0], kept[1] = args, args[0]
            return
        print(len(args), args[1], args[2], args[3], args[0].dtype, args[0].dim(), args[0].size(0))
        try:
            args[5]
        except IndexError:
            print("no sixth")

    report("load", bench.load)
    doubling.at_execute = keep
    print("execute ->", unlocked(bench.method.execute) or "ok")
    doubling.at_execute = None
    print("kept", len(kept[0]), len(kept[1].data))
    bench.runs()
    report("unload", bench.method.unload)
    doubling.forget()


def failures_of_destroy(program):
    bench = Bench(program)
    for failing in (raise_error, raise_value_error):
        report("load", bench.load)
        doubling.at_destroy = failing
        report("unload", bench.method.unload)
        print("destroyed", doubling.destroyed)
        bench.is_clean()


def limits(program):
    for limit in ({"max_delegates": 1}, {"max_arguments": 4}, {"max_delegates": 2, "max_arguments": 5}):
        bench = Bench(program, **limit)
        report("limits", bench.load)
        if bench.method.is_loaded():
            bench.runs()
            report("unload", bench.method.unload)
        doubling.forget()


def broken_programs(_):
    for name in sorted(sections):
        if name.startswith("x_"):
            bench = Bench(open_program(name))
            report(name[2:], bench.load)
            assert bench.pool.used == 0
            doubling.forget()


two = open_program("two")
for label, case in (
    ("registration", registration), ("failures of init", failures_of_init),
    ("what init is given", arguments_of_init), ("memory of init", memory_of_init),
    ("temp memory", temp_memory), ("failures of execute", failures_of_execute),
    ("load within init", load_within_init),
    ("load within is_available", load_within_is_available),
    ("memory after init", memory_after_init), ("arguments", arguments),
    ("failures of destroy", failures_of_destroy), ("limits", limits),
    ("broken programs", broken_programs),
):
    print("---", label)
    give_back("pool")
    give_back("planned")
    give_back("temp")
    case(two)
