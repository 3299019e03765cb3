"""Define the backends of the fixtures whose name begins with delegate_, in Python.

IntegerBackend and ExecutorBackend.execute need no heap. The others compute floats in Python, which
allocates under MicroPython: their methods run with the heap unlocked.
"""

import _picotorch
from picotorch import Backend, register_backend
from picotorch.errors import (
    DELEGATE_INVALID_COMPATIBILITY,
    DELEGATE_INVALID_HANDLE,
    OUT_OF_RESOURCES,
    fail,
)
from picotorch.memory import bytes_at


def matrix_product(a, x, out):
    """Multiply 2 x 2 matrices."""
    for i in range(4):
        out[i] = a[i & 2] * x[i & 1] + a[i | 1] * x[2 | i & 1]


class BackendWithCompilerDemo(Backend):
    """Read "2version:0#op:demo::aten.mm.default, numel:4, dtype:torch.float32<debug_handle>1#...":
    matrix products and additions of 2 x 2 floats, one after the other."""

    def init(self, context, processed, compile_specs):
        if compile_specs.get("max_value")[0] != 4:
            raise fail(DELEGATE_INVALID_COMPATIBILITY, "was compiled for other sizes")
        count, rest = str(processed.data(), "utf-8").split("version:")
        version, operations = rest.split("#", 1)
        if version != "0":
            raise fail(DELEGATE_INVALID_COMPATIBILITY, "is of another version")
        processed.free()
        return [line.split(",")[0] for line in operations.split("#")][: int(count)]

    def execute(self, context, handle, args):
        out, left, used = args[-1].data, args[0].data, 1
        for operation in handle:
            right = args[used].data
            used += 1
            if operation == "op:demo::aten.mm.default":
                matrix_product(left, right, out)
            else:
                for i in range(4):
                    out[i] = left[i] + right[i]
            left = out


def sine(x):
    """Return the sine of a number between -2.5 and 2.5."""
    term = total = x
    for k in range(2, 20, 2):
        term *= -x * x / (k * (k + 1))
        total += term
    return total


class Elementwise(Backend):
    """Read "Name#2#aten.sin.default:aten.add.Tensor:#...": first the one argument, then each next."""

    def init(self, context, processed, compile_specs):
        names = str(processed.data(), "utf-8").split("#")[2].split(":")[:-1]
        for i in range(len(names)):
            assert compile_specs[i].key == names[i].split(".")[1]
        return names

    def execute(self, context, handle, args):
        out = args[-1].data
        for i in range(len(out)):
            value, used = args[0].data[i], 1
            for name in handle:
                if name == "aten.sin.default":
                    value = sine(value)
                elif name == "aten.cos.default":
                    value = sine(value + 1.5707963)
                else:
                    other = args[used].data[i]
                    value = value + other if name == "aten.add.Tensor" else value - other
                    used += 1
            out[i] = value


class ExecutorBackend(Backend):
    """Run the processed data, which is a program of its own, in place, in memory of the method."""

    POOL = 1024

    def __init__(self):
        self.source = memoryview(bytearray(1))
        self.target = memoryview(bytearray(1))

    def init(self, context, processed, compile_specs):
        program = Program.load(BufferDataLoader(processed.data()))
        meta = program.method_meta(context.get_method_name())
        allocate = context.get_runtime_allocator().allocate
        planned = [allocate(meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        pool = MemoryAllocator(allocate(self.POOL))
        method = Method(MemoryManager(pool, HierarchicalAllocator(planned)))
        method.load(program, meta.name())
        return method

    def execute(self, context, handle, args):
        inputs = handle.inputs_size()
        for i in range(inputs):
            handle.set_input(args[i].data, i)
        handle.execute()
        for i in range(handle.outputs_size()):
            self.copy(handle.get_output(i).data, args[inputs + i].data)

    def copy(self, source, target):
        nbytes = _picotorch.nbytes(source)
        source = bytes_at(source, 0, nbytes, self.source)
        target = bytes_at(target, 0, nbytes, self.target)
        for i in range(nbytes):
            target[i] = source[i]

    def destroy(self, handle):
        handle.unload()


class Steps:
    """A delegate of IntegerBackend."""

    def __init__(self):
        self.is_used = False
        self.code = None
        self.elements = 0
        self.constants = [memoryview(bytearray(1)), memoryview(bytearray(1))]
        self.results = [0] * 8


class IntegerBackend(Backend):
    """Run the data that tests/models/zoo/integer_backend.py describes. All memory is allocated before
    any load."""

    CONSTANTS = ("offset", "scale")

    def __init__(self):
        self.handles = [Steps() for _ in range(2)]
        self.spec = memoryview(bytearray(1))

    def init(self, context, processed, compile_specs):
        for handle in self.handles:
            if not handle.is_used:
                return self.prepare(handle, context, processed.data(), compile_specs)
        raise fail(OUT_OF_RESOURCES, "two delegates at once are all")

    def prepare(self, handle, context, code, compile_specs):
        named = context.get_named_data_map()
        for i in range(2):
            handle.constants[i] = named.get_data(self.CONSTANTS[i], handle.constants[i])
        handle.elements = compile_specs.get("elements", self.spec)[0]
        handle.code = code
        handle.is_used = True
        return handle

    def execute(self, context, handle, args):
        if not handle.is_used:
            raise fail(DELEGATE_INVALID_HANDLE, "was destroyed")
        out = args[-1].data
        for element in range(len(out)):
            out[element] = self.element(handle, args, element)

    def element(self, handle, args, element):
        code, results = handle.code, handle.results
        result = 0
        for step in range(code[0]):
            at = 1 + 5 * step
            a = self.operand(handle, args, at + 1, element)
            b = self.operand(handle, args, at + 3, element)
            result = results[step] = a * b if code[at] else a + b
        return result

    def operand(self, handle, args, at, element):
        kind, index = handle.code[at], handle.code[at + 1]
        if kind == 0:
            return args[index].data[element]
        if kind == 2:
            return handle.results[index]
        data, at = handle.constants[index], 4 * element  # int32, little-endian
        high = data[at + 3]
        high -= high >> 7 << 8
        return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | high << 24

    def destroy(self, handle):
        handle.is_used = False


for backend_name, backend in (
    ("BackendWithCompilerDemo", BackendWithCompilerDemo()),
    ("FirstBackendWithPreprocessAll", Elementwise()),
    ("SecondBackendWithPreprocessAll", Elementwise()),
    ("ExecutorBackend", ExecutorBackend()),
    ("IntegerBackend", IntegerBackend()),
):
    register_backend(backend_name, backend)
