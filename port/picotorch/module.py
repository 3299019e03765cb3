"""The simplest use: Module("model.pte").forward(x)."""

from .data_loader import BufferDataLoader, FileDataLoader
from .errors import MEMORY_ALLOCATION_FAILED, Error
from .memory import HierarchicalAllocator, MemoryAllocator, MemoryManager
from .method import Method
from .program import Program


class Module:
    """A program and its methods, each loaded at its first use into memories of just its size.

    source: path of a .pte file, or a buffer of its bytes. prepare: see Method.load. Allocates when a
    method is loaded.
    """

    def __init__(self, source, prepare=False):
        loader = FileDataLoader(source) if isinstance(source, str) else BufferDataLoader(source)
        self.program = Program.load(loader)
        self.prepare = prepare
        self.methods = {}

    def load_method(self, name="forward"):
        """The loaded Method of this name."""
        if name not in self.methods:
            self.methods[name] = load_with_exact_memories(self.program, name, self.prepare)
        return self.methods[name]

    def execute(self, name, inputs):
        """The outputs of a method, a list."""
        method = self.load_method(name)
        method.set_inputs(inputs)
        method.execute()
        return method.get_outputs()

    def forward(self, *inputs):
        """The output of the method "forward", or the list of them if there are several."""
        outputs = self.execute("forward", inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self):
        return "<Module %r>" % self.program


def load_with_exact_memories(program, name, prepare=False):
    """A Method in newly made memories that have exactly the bytes that it needs, unplanned outputs
    included."""
    meta = program.method_meta(name)
    planned = HierarchicalAllocator([bytearray(meta.memory_planned_buffer_size(i))
                                     for i in range(meta.num_memory_planned_buffers())])
    pool, temp = 0, 0
    while True:
        manager = MemoryManager(MemoryAllocator(bytearray(pool)), planned,
                                MemoryAllocator(bytearray(temp), "temp memory"))
        method = Method(manager, max(8, meta.num_outputs()), meta.num_backends(),
                        meta.max_delegate_arguments())
        try:
            method.load(program, name, prepare)
            break
        except Error as error:
            if error.code != MEMORY_ALLOCATION_FAILED:
                raise
            if error.subject == "method pool" and error.requested > pool:
                pool = error.requested
            elif error.subject == "temp memory" and error.requested > temp:
                temp = error.requested
            else:
                raise
    for i in meta.unplanned_outputs():
        method.set_output_data_ptr(bytearray(meta.output_tensor_meta(i).nbytes()), i)
    return method
