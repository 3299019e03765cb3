"""Call one kernel on the host, outside any program, for the tests of the kernels.

    result = call("aten::add.out", x, y, 1, out)     # out: an array that is written, also returned

An argument is a numpy array or a `Tensor` (an array with a dim order), an int, bool, float, str, None,
or a list of these, in the order of the operator's signature. Outputs are passed like inputs; arrays are
never written in place: call returns the outputs. Every tensor lies between guard bytes of its memory.
No kernel may write them, and on the extension with sanitizers none may read them. The same object
passed twice is the same tensor.
"""

import contextlib
import dataclasses
import struct

import numpy as np
import pytest
from picotorch.host import program_schema
from picotorch.host.operators import CHANGED, OUTPUTS, WRITTEN, built_operators, operator_signature
from picotorch.schema import ERROR_NAMES
from support import records, sanitized
from support.flatbuffer_builder import (
    bool_value,
    build,
    double_value,
    int_value,
    string_value,
)
from support.records import OTHER, VALUE

GUARD = 64
AT_END = records.PLANNED + 16  # number of the memory that ends with its only tensor: behind 16 shifts
DTYPES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6,
          "float64": 7, "complex64": 9, "complex128": 10, "bool": 11, "uint16": 27, "uint32": 28,
          "uint64": 29}
CONTIGUOUS, CONSTANT, DYNAMIC = 0x20, 0x40, 0x80
SPARE = 7  # elements by which an upper bound may exceed the needed size: their bytes are a GUARD's


ABOVE_BOUND = "the sizes have more elements than the tensor's upper bound"


class KernelError(Exception):
    """A kernel rejected its arguments: `name` of the error, `reason`, and `stage` (check or run)."""

    def __init__(self, code, reason, stage):
        self.name, self.reason, self.stage = ERROR_NAMES[code], reason, stage
        super().__init__(f"{self.name} in {stage}: {reason}")


@dataclasses.dataclass(eq=False)
class Tensor:
    """An array (sizes as PyTorch gives them) stored in a dim order. `alias` shares another's data.

    An input may only be written if it is `scratch`. The data's address is a multiple of 16 plus `shift`
    (0 to 15). An input that is `last` has a memory of its own, which ends with it. `dtype` is
    ExecuTorch's ScalarType if numpy has no such dtype; the array then holds the bits.
    """

    array: np.ndarray
    dim_order: tuple | None = None
    alias: object = None
    constant: bool = False
    scratch: bool = False
    shift: int = 0
    last: bool = False
    dtype: int | None = None

    def __post_init__(self):
        if self.dim_order is None:
            self.dim_order = tuple(range(self.array.ndim))
        if self.dtype is None:
            self.dtype = DTYPES[self.array.dtype.name]

    def stored(self):
        return np.ascontiguousarray(self.array.transpose(self.dim_order)).tobytes()

    def restored(self, data):
        sizes = [self.array.shape[dim] for dim in self.dim_order]
        stored = np.frombuffer(data, self.array.dtype).reshape(sizes)
        return stored.transpose(np.argsort(self.dim_order)).copy()


def channels_last(array):
    return Tensor(array, (0, *range(2, array.ndim), 1))


class Variable:
    """A number that the operator writes. Pass a Variable, and find the number in the result of
    `call`."""


MAX_PROGRAMS = 1000  # maximum of PROGRAMS
PROGRAMS = {}  # programs that program_of built, by their contents


def program_of(operator, values, sizes):
    """Return a program with these values, built once, since many calls have equal sizes."""
    key = repr((operator, values, sizes))
    if key not in PROGRAMS:
        name, _, overload = operator.partition(".")
        program = build({"execution_plan": [{
            "name": "forward", "values": values,
            "chains": [{"inputs": sizes,
                        "instructions": [{"instr_args": ("KernelCall", {"args": [0]})}]}],
            "operators": [{"name": name, "overload": overload}],
        }]})
        assert records.verify(program) == -1
        if len(PROGRAMS) >= MAX_PROGRAMS:
            PROGRAMS.clear()
        PROGRAMS[key] = program
    return PROGRAMS[key]


class Call:
    """One call: a program with the scalars and sizes, a pool with the records, and a memory.

    `runs` counts the runs of all calls.
    """

    runs = 0

    def __init__(self, operator, arguments, pack_weights=False):
        self.values, self.tensors, self.order, self.dynamic = [], {}, [], {}
        self.variables = {}
        self.operator = operator
        indexes = [self.add(argument) for argument in arguments]
        sizes = [t.array.shape for t in self.order]
        program = program_of(operator, self.values, [d for s in sizes for d in s])
        self.context = context = records.Context()
        self.program, self.pool = program, bytearray(65536)
        context.set_memory(records.PROGRAM, program)
        context.set_memory(records.POOL, self.pool)
        self.reader, plan = records.first_plan(program)
        self.program_values = self.reader.table(plan, program_schema.EXECUTION_PLAN_VALUES)
        self.place_tensors(plan)
        number = records.operator_number(operator)
        assert number >= 0, f"{operator} is not in operators.def"
        self.record = self.allocate(4 + 4 * len(arguments))
        context.put_method(0, 0, ref(records.POOL, self.record),
                           ref(records.PROGRAM, self.program_values))
        context.put_instruction(self.record, number, len(arguments), 0)
        for i, index in enumerate(indexes):
            context.put_ref(self.record + 4 + 4 * i, self.argument_ref(index))
        self.records_end = (self.used + 7) & ~7
        self.packs = pack_weights

    def check(self):
        """Return the error code of the check. If it is 0, the operator's packed weights are in the
        pool."""
        context = self.context
        code = context.check(self.packs)
        self.packed = 0 if code else context.packed_bytes()
        if self.packed:
            context.pack(self.records_end)
        return code

    def allocate(self, size):
        self.used = getattr(self, "used", records.METHOD_BYTES)
        position = self.used
        self.used += (size + 3) & ~3
        return position

    def add(self, argument):
        """Add a value and return its key: an index of the program's values, a tensor, a list or
        None."""
        if argument is None:
            return None
        if isinstance(argument, (np.ndarray, Tensor)):
            return self.add_tensor(argument)
        if isinstance(argument, Variable):
            return ("variable", argument)
        if isinstance(argument, (list, tuple)):
            return self.add_list(argument)
        make = {bool: bool_value, int: int_value, float: double_value, str: string_value}
        self.values.append(make[type(argument)](argument))
        return len(self.values) - 1

    def add_tensor(self, argument):
        key = id(argument)
        if key not in self.tensors:
            tensor = argument if isinstance(argument, Tensor) else Tensor(argument)
            if tensor.alias is not None:
                self.add_tensor(tensor.alias)
            self.tensors[key] = (argument, tensor)
            self.order.append(tensor)
        return ("tensor", key)

    def add_list(self, items):
        if any(isinstance(item, (np.ndarray, Tensor, type(None))) for item in items):
            return ("list", [self.add(item) for item in items])
        if items and isinstance(items[0], bool):
            self.values.append({"val": ("BoolList", {"items": list(items)})})
        elif items and isinstance(items[0], float):
            self.values.append({"val": ("DoubleList", {"items": list(items)})})
        else:
            indexes = [self.add(item) for item in items]
            self.values.append({"val": ("IntList", {"items": indexes})})
        return len(self.values) - 1

    def place_tensors(self, plan):
        reader = self.reader
        chain = reader.item(reader.table(plan, program_schema.EXECUTION_PLAN_CHAINS), 0)
        sizes = reader.table(chain, program_schema.CHAIN_INPUTS) + 4
        self.records = {}
        self.place_data()
        for key, (_, tensor) in self.tensors.items():
            position, rank = self.allocate(16), tensor.array.ndim
            order = self.allocate(max(rank, 1))
            self.pool[order : order + rank] = bytes(tensor.dim_order)
            flags = rank | (CONSTANT if tensor.constant else 0)
            if tensor.dim_order == tuple(range(rank)):
                flags |= CONTIGUOUS
            VALUE.pack_into(self.pool, position, ref(*self.places[id(tensor)]),
                            ref(records.PROGRAM, sizes), ref(records.POOL, order), 0,
                            tensor.dtype, flags)
            sizes += 4 * rank
            self.records[key] = position

    def place_data(self):
        """Give each shift a memory, and each tensor a place there between guard bytes."""
        contents, self.places = {}, {}
        for tensor in self.order:
            if tensor.alias is None:
                number = AT_END if tensor.last else records.PLANNED + tensor.shift
                content = contents.setdefault(number, bytearray())
                content += b"\xA5" * (GUARD + -len(content) % 16)
                self.places[id(tensor)] = number, len(content)
                content += tensor.stored()
            else:
                self.places[id(tensor)] = self.places[id(self.tensors[id(tensor.alias)][1])]
        for number, content in contents.items():
            if number != AT_END:
                content += b"\xA5" * GUARD
        self.memories = {number: np.frombuffer(content, np.uint8).copy() if number == AT_END
                         else shifted(content, self.shift(number))
                         for number, content in contents.items()}
        for number, memory in self.memories.items():
            self.context.set_memory(number, memory.data)

    @staticmethod
    def shift(number):
        """Return the bytes by which the address of a memory is above a multiple of 128."""
        return 0 if number == AT_END else number - records.PLANNED

    def make_dynamic(self, argument, spare, stale=None):
        """Give the tensor of an argument a bound of `spare` elements more than it has.

        Its sizes are stale: other sizes within the bound, or `stale`.
        """
        record, array = self.records[id(argument)], self.tensors[id(argument)][1].array
        rank, bound = array.ndim, max(array.size + spare, 0)
        if stale is None:
            stale = [bound if spare > 0 else 0] + [1] * (rank - 1)
        position = self.allocate(4 + 4 * rank) + 4
        struct.pack_into(f"<I{rank}i", self.pool, position - 4, bound, *stale[:rank])
        struct.pack_into("<I", self.pool, record + 4, ref(records.POOL, position))
        self.pool[record + 15] |= DYNAMIC
        self.dynamic[id(argument)] = position
        self.records_end = (self.used + 7) & ~7

    def sizes(self, argument, pool=None):
        """Return the present sizes of a dynamic tensor."""
        position, rank = self.dynamic[id(argument)], self.tensors[id(argument)][1].array.ndim
        return struct.unpack_from(f"<{rank}i", pool or self.pool, position)

    def argument_ref(self, key):
        if key is None:
            return 0
        if isinstance(key, int):
            return ref(records.PROGRAM, self.reader.item(self.program_values, key))
        if key[0] == "variable":
            return ref(records.POOL, self.variable_record(key[1]))
        if key[0] == "tensor":
            return ref(records.POOL, self.records[key[1]])
        items = [self.argument_ref(item) for item in key[1]]
        array, record = self.allocate(4 * max(len(items), 1)), self.allocate(16)
        for i, item in enumerate(items):
            self.context.put_ref(array + 4 * i, item)
        kind = program_schema.KERNEL_TYPES_TENSOR_LIST
        if None in key[1]:
            kind = program_schema.KERNEL_TYPES_OPTIONAL_TENSOR_LIST
        self.context.put_list(record, ref(records.POOL, array), len(items), kind)
        return ref(records.POOL, record)

    def variable_record(self, variable):
        """Return the position of the record of a variable, which is initially the int 0."""
        if variable not in self.variables:
            self.variables[variable] = position = self.allocate(16)
            VALUE.pack_into(self.pool, position, 0, 0, 0, 0, OTHER + program_schema.KERNEL_TYPES_INT, 0)
        return self.variables[variable]

    def run(self):
        context = self.context
        code = self.check()
        if code:
            raise KernelError(code, context.reason(), "check")
        pool = self.without_sizes(self.pool)
        scratch = bytearray(context.scratch_needed() + GUARD)
        context.set_scratch(scratch)
        context.start()
        Call.runs += 1
        with self.guarded(scratch):
            code = context.execute()
        if code:
            raise KernelError(code, context.reason(), "run")
        assert self.without_sizes(self.pool) == pool, "the kernel wrote into the pool"
        self.check_guards()

    @contextlib.contextmanager
    def guarded(self, scratch, pool=None):
        """Let sanitizers detect each access outside the tensors, the scratch and the records."""
        if not sanitized.is_active():
            yield
            return
        pool = self.pool if pool is None else pool
        regions = [region(scratch, len(scratch) - GUARD, len(scratch)),
                   region(pool, self.records_end + self.packed, len(pool))]
        for number, memory in self.memories.items():
            end, placed = 0, [(*self.places[id(t)], t.array.nbytes) for t in self.order]
            spans = sorted((at, size) for other, at, size in placed if other == number)
            for place, size in [*spans, (len(memory), 0)]:
                if place > end:
                    regions.append(region(memory, end, place))
                end = max(end, place + size)
        sanitized.poison(regions)
        try:
            yield
        finally:
            sanitized.unpoison(regions)

    def without_sizes(self, pool):
        """Return the pool with zeros for the sizes and numbers that change."""
        pool = bytearray(pool)
        for key, position in self.dynamic.items():
            size = 4 * self.tensors[key][1].array.ndim
            pool[position : position + size] = bytes(size)
        for position in self.variables.values():
            pool[position : position + 16] = bytes(16)
        return pool

    def check_guards(self, memories=None):
        """Check the guard bytes. memories: the bytes after the call, by number; None for the twin's
        own."""
        memories = memories or self.memories
        inside = {number: np.zeros(len(memory), bool) for number, memory in memories.items()}
        for tensor in self.order:
            number, place = self.places[id(tensor)]
            inside[number][place : place + tensor.array.nbytes] = True
        for number, memory in memories.items():
            assert (memory[~inside[number]] == 0xA5).all(), "the kernel wrote beside its tensors"

    def result(self, argument, memories=None):
        if isinstance(argument, Variable):
            return number_at(self.pool, self.variables[argument])
        tensor = self.tensors[id(argument)][1]
        number, place = self.places[id(tensor)]
        memory = (memories or self.memories)[number]
        return tensor.restored(memory[place : place + tensor.array.nbytes].tobytes())


def number_at(pool, position):
    """Return the number in the record of a variable."""
    low, high, _, _, kind, _ = VALUE.unpack_from(pool, position)
    bits = struct.pack("<II", low, high)
    if kind - OTHER == program_schema.KERNEL_TYPES_DOUBLE:
        return struct.unpack("<d", bits)[0]
    value = struct.unpack("<q", bits)[0]
    return bool(value) if kind - OTHER == program_schema.KERNEL_TYPES_BOOL else value


def region(buffer, start, end):
    """Return (address, size) of bytes of a buffer."""
    return np.frombuffer(buffer, np.uint8).ctypes.data + start, end - start


def shifted(content, shift):
    """Return the bytes as an array whose address is a multiple of 128 plus `shift`."""
    storage = np.zeros(len(content) + 256, np.uint8)
    start = -storage.ctypes.data % 128 + shift
    storage[start : start + len(content)] = np.frombuffer(content, np.uint8)
    return storage[start : start + len(content)]


def ref(memory, offset):
    assert offset % 4 == 0
    return records.reference(memory, offset)


def call(operator, *arguments, pack_weights=False):
    """Call a kernel and return its outputs: one array, or a tuple of them (for lists: lists).

    pack_weights: as Method.load's. Raise KernelError if the kernel rejects the call. Assert that only
    the outputs were written.
    """
    number = built_operators().get(operator)
    assert number is not None, f"{operator} is not in operators.def"
    signature = operator_signature(number)
    assert len(signature) == len(arguments), (signature, len(arguments))
    outputs = [a for a, letter in zip(arguments, signature, strict=True)
               if letter in WRITTEN and a is not None]
    one = Call(operator, arguments, pack_weights)
    written = {id(t) for a in outputs for t in (a if isinstance(a, list) else [a])}
    written &= one.tensors.keys()  # without variables
    one.run()
    for argument, tensor in one.tensors.values():
        shares = any(one.places[id(one.tensors[key][1])] == one.places[id(tensor)]
                     for key in written)
        if not shares and not tensor.scratch:
            assert one.result(argument).tobytes() == tensor.array.tobytes(), "an input was written"
    results = [[one.result(t) for t in a] if isinstance(a, list) else one.result(a)
               for a in outputs]
    call_dynamic(one, signature, arguments)
    return results[0] if len(results) == 1 else tuple(results)


def outputs_of(signature, arguments):
    """Return the output tensors among the arguments, each with True if it is not also an input."""
    def tensors(letters):
        for argument, letter in zip(arguments, signature, strict=True):
            if letter in letters and argument is not None:
                yield from argument if isinstance(argument, (list, tuple)) else [argument]

    inputs = {id(tensor) for tensor in tensors("TVUtvu")}
    in_place = CHANGED in signature  # copy_ and similar: the output is also an operand
    return [(tensor, not in_place and id(tensor) not in inputs) for tensor in tensors(OUTPUTS)]


def make_outputs_dynamic(one, signature, arguments, spare, few=None):
    """Make all outputs of a call dynamic. few: the output whose bound is one element below its need."""
    for tensor, free in outputs_of(signature, arguments):
        if id(tensor) not in one.dynamic:
            stale = None if free else one.tensors[id(tensor)][1].array.shape
            one.make_dynamic(tensor, -1 if tensor is few else spare, stale)


def call_dynamic(static, signature, arguments):
    """Repeat the call with dynamic outputs of stale sizes, and check that a bound that is too small is
    rejected."""
    operator, arguments = static.operator, list(arguments)
    for spare in (SPARE, 0):
        one = Call(operator, arguments)
        make_outputs_dynamic(one, signature, arguments, spare)
        one.run()
        for tensor, _ in outputs_of(signature, arguments):
            assert one.sizes(tensor) == one.tensors[id(tensor)][1].array.shape
            assert one.result(tensor).tobytes() == static.result(tensor).tobytes(), "others"
    for tensor, free in outputs_of(signature, arguments):
        array = one.tensors[id(tensor)][1].array
        if free and array.ndim and array.size:
            one = Call(operator, arguments)
            make_outputs_dynamic(one, signature, arguments, 0, tensor)
            before = {number: memory.copy() for number, memory in one.memories.items()}
            with pytest.raises(KernelError, match=f"^InvalidArgument in run: {ABOVE_BOUND}$"):
                one.run()
            assert all((memory == before[number]).all() for number, memory in one.memories.items())
