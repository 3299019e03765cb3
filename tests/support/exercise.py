"""Use every function of a program, as an untrusted file: each call works or raises a named Error.

Memories have exactly the requested bytes, each an allocation of its own, so that a sanitizer detects
the first byte outside.
"""

import contextlib

import numpy as np
from picotorch import (
    Backend,
    BufferDataLoader,
    Error,
    EventTracer,
    FlatTensorDataMap,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    MergedDataMap,
    Method,
    Program,
    Tensor,
    from_blob,
)
from picotorch.schema import KERNEL_TYPES_TENSOR

LARGEST_MEMORY = 1 << 16  # bytes of any buffer that a program gets
POOL = 1 << 15
CALLS = 100  # calls of a backend by one method; in an endless loop they would take most of the time
# Bytes that fill inputs repeatedly: zeros, numbers of any kind, numbers of 8 bytes
FILLINGS = (b"\0", bytes(17 * i % 251 for i in range(251)), b"\1\0\0\0\0\0\0\0")


def memory(size, filling=b"\0"):
    """Return a memory of exactly the requested size."""
    found = np.zeros(min(size, LARGEST_MEMORY), np.uint8)
    if filling != b"\0":
        found[:] = np.resize(np.frombuffer(filling, np.uint8), found.size)
    return found.data


def exactly(data):
    """Return a memory of exactly these bytes."""
    found = np.empty(len(data), np.uint8).data
    found[:] = data
    return found


class Outcomes:
    """Record outcomes. names: of the Errors so far, in their order."""

    def __init__(self):
        self.names = []

    @contextlib.contextmanager
    def named(self):
        """Run the block, which works or raises an Error with a text."""
        try:
            yield
        except Error as error:
            assert str(error)
            self.names.append(error.name)


class Curious(Backend):
    """Read all arguments, allocate, and write to every tensor that can be written. Fail after CALLS."""

    left = 0

    def init(self, context, processed, compile_specs):
        self.left = CALLS
        bytes(processed.data())
        for i in range(len(compile_specs)):
            repr(compile_specs[i])
        compile_specs.get("elements")
        named = context.get_named_data_map()
        for i in range(named.get_num_keys()):
            bytes(named.get_data(named.get_key(i)))
        context.get_runtime_allocator().allocate(24)
        return len(processed.data())

    def execute(self, context, handle, args):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("called too often")
        for value in args:
            if isinstance(value, Tensor) and not value.data.readonly:
                value.data.cast("B")[:] = bytes(value.data.nbytes)


def describe(meta):
    """Call every description function of a method."""
    for i in range(meta.num_inputs()):
        meta.input_value(i)
        if meta.input_tag(i) == KERNEL_TYPES_TENSOR:
            repr(meta.input_tensor_meta(i))
    for i in range(meta.num_outputs()):
        meta.output_value(i)
        if meta.output_tag(i) == KERNEL_TYPES_TENSOR:
            repr(meta.output_tensor_meta(i))
    for i in range(meta.num_attributes()):
        repr(meta.attribute_tensor_meta(i))
    for i in range(meta.num_backends()):
        meta.get_backend_name(i)
    repr(meta)
    meta.missing_operators()


def make_method(meta):
    """Make a Method in memories of its own, not loaded."""
    planned = [memory(meta.memory_planned_buffer_size(i))
               for i in range(meta.num_memory_planned_buffers())]
    return Method(MemoryManager(MemoryAllocator(memory(POOL)), HierarchicalAllocator(planned),
                                MemoryAllocator(memory(POOL), "temp memory")),
                  meta.num_outputs(), meta.num_backends(), meta.max_delegate_arguments())


def give_memories(method, meta):
    """Set memories for outputs and mutable buffers that the program leaves unplanned."""
    for i in meta.unplanned_outputs():
        method.set_output_data_ptr(memory(meta.output_tensor_meta(i).nbytes()), i)
    for info in meta.unplanned_attributes():
        method.set_attribute_data_ptr(memory(info.nbytes()), info.name())


def set_inputs(method, meta, filling, shrink=False):
    """Set all inputs. `shrink`: dynamic inputs get half their sizes."""
    for i in range(meta.num_inputs()):
        if meta.input_tag(i) != KERNEL_TYPES_TENSOR:
            method.set_input(meta.input_value(i), i)
            continue
        info = meta.input_tensor_meta(i)
        if shrink and info.is_dynamic():
            sizes = [(size + 1) // 2 for size in info.sizes()]
            method.set_input(from_blob(memory(info.nbytes(), filling), sizes, info.dtype,
                                       info.dim_order()), i)
        else:
            method.set_input(memory(info.nbytes(), filling), i)


def read_all(method, meta):
    """Read all outputs and attributes, to their last byte."""
    for value in method.get_outputs():
        repr(value)
        if isinstance(value, Tensor):
            bytes(value.data)
    for i in range(meta.num_attributes()):
        bytes(method.get_attribute(meta.attribute_tensor_meta(i).name()).data)


def use(method, meta, outcomes, fillings):
    """Use a loaded method in all ways, with an execution for each filling of the inputs."""
    with outcomes.named():
        give_memories(method, meta)
    for filling in fillings:
        with outcomes.named():
            set_inputs(method, meta, filling, shrink=filling != FILLINGS[0])
            method.execute()
            read_all(method, meta)
    with outcomes.named():
        method.reset_state()
        set_inputs(method, meta, FILLINGS[0])
        method.step()
        method.reset_execution()
    repr(method)
    repr(method.memory_report())


def execute(program, name, data_map, outcomes, thorough):
    """Load a method and use it. If `thorough`, repeat this with the other options of load."""
    with outcomes.named():
        meta = program.method_meta(name)
        describe(meta)
        method = make_method(meta)
        tracer = EventTracer(memory(EventTracer.nbytes(meta)))
        for options in ((False, data_map), (True, data_map, tracer))[: 1 + thorough]:
            with outcomes.named():
                method.load(program, name, *options)
                use(method, meta, outcomes, FILLINGS[: 1 + 2 * thorough])
                method.unload()


def outcome(data, files=(), thorough=True):
    """Load and execute every method of a program with its .ptd files. Return the name of the first
    Error, or "ok"."""
    outcomes = Outcomes()
    with outcomes.named():
        maps = [FlatTensorDataMap.load(BufferDataLoader(exactly(file))) for file in files]
        repr(maps)
        data_map = MergedDataMap.load(maps) if maps else None
        memory_of_file = exactly(data)
        program = Program.load(BufferDataLoader(memory_of_file))
        repr(program)
        for name in program.method_names:
            execute(program, name, data_map, outcomes, thorough)
        assert memory_of_file == data, "the program was written to"
    return outcomes.names[0] if outcomes.names else "ok"
