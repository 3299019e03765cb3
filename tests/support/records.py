"""Write records of a method, and check and run them by the core, for tests of kernels.

    context = Context()
    context.set_memory(POOL, pool)          # a pt_method_record at 0, and the records that it refers to
    context.put_method(...)
    code = context.check(0)
    context.start(0)
    code = context.execute()
"""

import struct

from _picotorch_c import ffi, lib
from picotorch.host import program_schema as schema
from picotorch.run.tables import Tables

PROGRAM, POOL, PLANNED = lib.PT_MEMORY_PROGRAM, lib.PT_MEMORY_POOL, lib.PT_MEMORY_PLANNED
METHOD = struct.Struct("<HHIIIIII")  # pt_method_record
INSTRUCTION = struct.Struct("<HBB")
VALUE = struct.Struct("<IIIHBB")  # pt_value
OTHER = lib.PT_VALUE_OTHER
METHOD_BYTES = METHOD.size


def reference(memory, offset):
    """Return a 32-bit reference to a byte offset, a multiple of 4, in a memory."""
    return memory << 25 | offset >> 2


def verify(program):
    """Return -1, or the position at which the structure of a program's tables is wrong."""
    return lib.pt_verify(ffi.from_buffer("uint8_t[]", program), len(program), lib.PT_FORMAT_PROGRAM)


def first_plan(program):
    """Return (Tables, position of the first method)."""
    tables = Tables(program)
    return tables, tables.item(tables.table(tables.root(), schema.PROGRAM_EXECUTION_PLAN), 0)


class Context:
    """A pt_context whose memories are buffers."""

    threads = 1  # number of threads that share loops

    def __init__(self):
        self._c = ffi.new("pt_context *")
        self._buffers = {}

    def set_memory(self, memory, buffer):
        found = self._buffers[memory] = ffi.from_buffer("uint8_t[]", buffer)
        self._c.memory[memory], self._c.memory_size[memory] = found, len(found)

    def set_scratch(self, buffer, size=None):
        """Set the scratch memory. size: available bytes; None for all."""
        found = self._buffers["scratch"] = ffi.from_buffer("uint8_t[]", buffer)
        self._c.scratch, self._c.scratch_size = found, len(found) if size is None else size

    def _put(self, layout, position, *values):
        pool = ffi.buffer(self._buffers[POOL])
        layout.pack_into(pool, position, *values)

    def put_method(self, values, n_values, instructions, program_values, n_variables=0):
        """Write the record of a method of one instruction, at 0. The arguments are references."""
        self._put(METHOD, 0, n_values, n_variables, 1, values, instructions, program_values, 0, 0)
        self._c.list_items, self._c.method = 0, 0
        self._c.records = self._c.memory[POOL]

    def put_instruction(self, position, kernel, n_args, op):
        self._put(INSTRUCTION, position, kernel, n_args, op)

    def put_ref(self, position, ref):
        self._put(struct.Struct("<I"), position, ref)

    def put_list(self, position, items, count, kind):
        """Write the record of a list. `items`: a reference to `count` references."""
        self._put(VALUE, position, items, count, 0, 0, OTHER + kind, 0)

    def check(self, prepares=False, core=lib.PT_CORE_PLAIN, preferring_core=lib.PT_CORE_PLAIN):
        """Check the method, and return the code of the first error, or 0. core: for which it packs
        weights. preferring_core: whose loops decide the preferred scratch memory."""
        self._c.packs, self._c.core, self._c.packed_needed = prepares, core, 0
        self._c.preferring_core, self._c.preferred_scratch = preferring_core, 0
        return lib.pt_check_method(self._c)

    def packed_bytes(self):
        """Return the bytes of pool for the packed weights that the checks requested."""
        return lib.pt_packed_bytes(self._c)

    def pack(self, position):
        lib.pt_pack_weights(self._c, position)

    def start(self):
        lib.pt_start(self._c)

    def execute(self):
        """Run the method, and return an error's code."""
        return lib.pt_context_execute_by_threads(self._c, self.threads)

    def set_poll(self, function):
        """Let the method poll function(), which returns an error's code."""
        self._poll = ffi.callback("int(pt_context *)", lambda c: function())
        self._c.poll = self._poll

    def reason(self):
        """Return the reason why the last check or run failed, or None."""
        return ffi.string(self._c.reason).decode() if self._c.reason else None

    def argument(self):
        """Return the argument that the last check rejected for its kind, or -1."""
        return self._c.argument

    def scratch_needed(self):
        return self._c.scratch_needed

    def preferred_scratch(self):
        return self._c.preferred_scratch


def operator_number(name):
    """Return the number of the operator name.overload, or -1."""
    name, _, overload = name.partition(".")
    parts = name.encode(), len(name), overload.encode(), len(overload)
    return lib.pt_find_operator(*parts)




# ---- records of a loaded Method


def _context(method):
    return ffi.addressof(method.library._m, "c")


def at(method, reference, size):
    """Return the bytes at a reference."""
    memory, offset = reference >> 25, (reference & (1 << 25) - 1) << 2
    c = _context(method)
    assert offset + size <= c.memory_size[memory]
    return bytes(ffi.buffer(c.memory[memory] + offset, size))


def value_record(method, index):
    """Return (data, sizes, dim order, index, type, flags) of the tensor that is value `index`."""
    return VALUE.unpack(at(method, lib.pt_find_value(_context(method), index), VALUE.size))


def sizes_of(method, index, rank):
    """Return the present sizes of a tensor."""
    return list(struct.unpack(f"<{rank}i", at(method, value_record(method, index)[1], 4 * rank)))


def resize(method, index, *sizes):
    """Resize a tensor, and return an error's code, or 0."""
    c = _context(method)
    return lib.pt_resize_tensor(c, lib.pt_find_value(c, index), len(sizes),
                                ffi.new("int32_t[]", sizes or [0]))


def number(method, index):
    """Return the number in the variable that is value `index`, or None before one is written."""
    record = at(method, lib.pt_find_variable(_context(method), index), VALUE.size)
    kind = VALUE.unpack(record)[4] - OTHER
    if kind == lib.PT_TYPE_DOUBLE:
        return struct.unpack_from("<d", record)[0]
    value = struct.unpack_from("<q", record)[0]
    return {lib.PT_TYPE_INT: value, lib.PT_TYPE_BOOL: bool(value)}.get(kind)
