"""Run a model with one line: Module("model.pte").forward(x)."""

import gc

from .errors import INVALID_STATE, MEMORY_ALLOCATION_FAILED, Error, fail, need, part
from .memory import HierarchicalAllocator, MemoryAllocator, MemoryManager
from .method import Method
from .program import BufferDataLoader, Program
from .tensor import Tensor, ValueList

_REMEDY = "; give each thread its own Module, or lock its calls"


class Module:
    """A program and its methods, each loaded at its first use into memories of exactly its size.

    The temp memory has the size that the kernels prefer, or the minimum if that is over half of the
    free heap.

    source: path of a .pte file, str or pathlib.Path, or a buffer of its bytes. data_path: the same for
    the .ptd file of its external tensors, or a list of several. pack_weights: see Method.load.
    share_memory_arenas: the methods share their planned buffers, and with them the mutable buffers that
    they were exported to share; the first use loads all methods. Allocates when a method is
    loaded.
    """

    def __init__(self, source, data_path=None, pack_weights=False, share_memory_arenas=False):
        self.program = Program.load(_loader(source))
        self.data_map = _data_map(data_path)
        self.pack_weights = pack_weights
        self.share_memory_arenas = share_memory_arenas
        self.methods = {}
        self._loads = []  # running calls, see `alone`
        self._calls = {}  # by method; methods that share memory have one list

    def load_method(self, name="forward"):
        """Return the loaded Method of this name. Raises InvalidState while another call loads one."""
        need(name, str, "name")
        if name not in self.methods:
            alone(self._loads, "module", "is loading a method" + _REMEDY, self._load, name)
        return self.methods[name]

    def _load(self, name):
        if name in self.methods:  # loaded by another thread meanwhile
            return
        self.program.plan(name)
        planned = _shared_buffers(self.program) if self.share_memory_arenas else None
        methods = {}
        calls = []
        for each in self.program.method_names if planned else [name]:
            methods[each] = load_with_exact_memories(
                self.program, each, self.pack_weights, self.data_map, planned=planned, is_fast=True)
            self._calls[each] = calls
        self.methods.update(methods)

    def execute(self, name, inputs):
        """Execute a method and return the list of its outputs.

        They are Tensors in memory of their own, numbers, strings, None and lists of them. On the host
        an input may be an array of numpy or a tensor of torch. Raises InvalidState while another call
        executes the method, or one that shares memory with it.
        """
        method = self.load_method(name)
        return alone(self._calls[name], "module", "is executing" + _REMEDY, _execute, method, inputs)

    def forward(self, *inputs):
        """Return the output of the method "forward", or the list of its outputs if it has several."""
        outputs = self.execute("forward", inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    __call__ = forward

    def method_names(self):
        """Return the names of the methods of the program."""
        return self.program.method_names

    def __repr__(self):
        return "<Module %r>" % self.program


def alone(calls, subject, what, function, *arguments):
    """Call a function, one call of the same list at a time.

    Raises InvalidState, with `what` of the subject, while an earlier call of the same list is running,
    in another thread or further out in this one.

    An interrupt at any point leaves no call in the list: CPython raises it after append or remove,
    never before either.
    """
    call = object()
    try:
        calls.append(call)
        if calls[0] is not call:
            raise fail(INVALID_STATE, what, subject)
        found = function(*arguments)
    finally:
        calls.remove(call)
    return found


def _execute(method, inputs):
    need(inputs, list, "inputs")
    if hasattr(method, "as_inputs"):  # on the host, which accepts arrays
        inputs = method.as_inputs(inputs)
    method.set_inputs(inputs)
    method.execute()
    return [_copy_of(output) for output in method.get_outputs()]


def _copy_of(output):
    if isinstance(output, Tensor):
        return output.copy()
    return [_copy_of(item) for item in output] if isinstance(output, ValueList) else output


def _loader(source):
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        return part("files").FileDataLoader(source)
    return BufferDataLoader(source)


def _data_map(sources):
    if sources is None:
        return None
    data = part("data")
    if not isinstance(sources, (list, tuple)):
        return data.FlatTensorDataMap.load(_loader(sources))
    return data.MergedDataMap.load([data.FlatTensorDataMap.load(_loader(source)) for source in sources])


def _shared_buffers(program):
    """Return planned buffers that are large enough for each method of a program."""
    sizes = []
    for name in program.method_names:
        meta = program.method_meta(name)
        for i in range(meta.num_memory_planned_buffers()):
            if i == len(sizes):
                sizes.append(0)
            sizes[i] = max(sizes[i], meta.memory_planned_buffer_size(i))
    return HierarchicalAllocator([bytearray(size) for size in sizes])


def _spare_memory(size):
    """Allocate bytes; return None if they are more than half of the free heap."""
    try:
        if hasattr(gc, "mem_free"):  # not on the host
            gc.collect()
            if gc.mem_free() < 2 * size:
                return None
        return bytearray(size)
    except MemoryError:
        return None


def load_with_exact_memories(program, name, pack_weights=False, data_map=None, event_tracer=None,
                             planned=None, is_fast=False):
    """Return a Method in new memories of exactly the size that it needs, unplanned outputs included.

    Unplanned mutable buffers start from zero. planned: a HierarchicalAllocator to use instead of new
    planned buffers. is_fast: with the temp memory that its kernels prefer, if the heap has twice as
    much.
    """
    meta = program.method_meta(name)
    if planned is None:
        planned = HierarchicalAllocator([bytearray(meta.memory_planned_buffer_size(i))
                                         for i in range(meta.num_memory_planned_buffers())])
    sizes = {"method pool": 0, "temp memory": 0}
    while True:
        manager = MemoryManager(MemoryAllocator(bytearray(sizes["method pool"])), planned,
                                MemoryAllocator(bytearray(sizes["temp memory"]), "temp memory"))
        method = Method(manager, meta.num_outputs(), meta.num_backends(),
                        meta.max_delegate_arguments())
        try:
            method.load(program, name, pack_weights, data_map, event_tracer)
            used = method.memory_report()["temp"]["used"]
            if used <= sizes["temp memory"]:
                break
            method.unload()
            sizes["temp memory"] = used
        except Error as error:
            if (error.code != MEMORY_ALLOCATION_FAILED
                    or error.requested <= sizes.get(error.subject, error.requested)):
                raise
            sizes[error.subject] = error.requested
    preferred = method.memory_report()["temp"]["preferred"] if is_fast else 0
    temp = _spare_memory(preferred) if preferred > sizes["temp memory"] else None
    if temp is not None:
        method.unload()
        manager.temp_allocator = MemoryAllocator(temp, "temp memory")
        method.load(program, name, pack_weights, data_map, event_tracer)
    for i in meta.unplanned_outputs():
        method.set_output_data_ptr(bytearray(meta.output_tensor_meta(i).nbytes()), i)
    for info in meta.unplanned_attributes():
        method.set_attribute_data_ptr(bytearray(info.nbytes()), info.name())
    return method
