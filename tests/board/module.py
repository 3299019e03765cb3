"""Every method of _picotorch with the heap locked. Runs on a board and under CPython, which must
print the same lines; tests/host/test_module.py starts both.

It is given PROGRAM, the bytes of a program that test_module.py builds, before its first line.
"""

import struct
from array import array

import _picotorch
from _picotorch import PLANNED, POOL, SMALL_INT_MAX
from picotorch import schema

try:
    from gc import collect, mem_alloc

    from micropython import heap_lock, heap_unlock
except ImportError:
    from gc import collect

    def mem_alloc():
        return 0

    def heap_lock():
        pass

    heap_unlock = heap_lock


FAR = (1 << 27) - 8  # the last place of a vector


def ref(memory, offset):
    return memory << 25 | offset >> 2


def run(title, cases):
    """Calls each case, (label, function), with the heap locked; prints what they return."""
    results = [None] * len(cases)
    before = mem_alloc()
    heap_lock()
    i = 0
    while i < len(cases):
        case = cases[i]
        function = case[1]
        try:
            results[i] = function()
        except ValueError:
            results[i] = "ValueError"
        except TypeError:
            results[i] = "TypeError"
        except MemoryError:
            results[i] = "MemoryError"
        i += 1
    heap_unlock()
    print(title, "allocated", mem_alloc() - before)
    for i in range(len(cases)):
        print(" ", cases[i][0], "->", results[i])


# A table at 16 with a vtable at 4: a u32, an i32, a field left out, an i64; vectors at 36 and 64.
NUMBERS = struct.pack(
    "<IHHHHHHiIiqIqqqI",
    16, 12, 20, 4, 8, 0, 12, 12, 0xFFFFFFFF, -(2**31), -(2**63), 3, 5, -6, 2**62, 0xFFFFFFFF,
)


def number_cases(r):
    return [
        ("len", lambda: len(r)),
        ("root", lambda: r.root()),
        ("u8", lambda: r.u8(16, 0)),
        ("u32", lambda: r.u32(16, 0)),
        ("i32", lambda: r.i32(16, 1)),
        ("i32 of a u32", lambda: r.i32(16, 0)),
        ("u32 of an i32", lambda: r.u32(16, 1)),
        ("i64", lambda: r.i64(16, 3)),
        ("left out", lambda: r.u8(16, 2) + r.u32(16, 2) + r.i32(16, 2) + r.i64(16, 2)),
        ("table left out", lambda: r.table(16, 2)),
        ("beyond the vtable", lambda: r.u32(16, 4)),
        ("slot far beyond", lambda: r.u32(16, SMALL_INT_MAX)),
        ("slot before the first", lambda: r.field(16, -3)),
        ("field", lambda: r.field(16, 3)),
        ("follow too far", lambda: r.table(16, 0)),
        ("length", lambda: r.length(36)),
        ("length of nothing", lambda: r.length(0)),
        ("length clamped", lambda: r.length(64)),
        ("i64 items", lambda: r.i64_item(36, 0) * 10 + r.i64_item(36, 1)),
        ("i64 item clamped", lambda: r.i64_item(36, 2)),
        ("item before the first", lambda: r.i64_item(36, -1)),
        ("item beyond the last", lambda: r.i64_item(36, 3)),
        ("item of nothing", lambda: r.u8_item(0, 0)),
        ("item outside the file", lambda: r.i32_item(64, 100)),
        ("far outside", lambda: r.i64_item(64, SMALL_INT_MAX - 1)),
        ("i32 item", lambda: r.i32_item(36, 2)),
        ("u8 item", lambda: r.u8_item(36, 0)),
        ("last u32", lambda: r.u32_at(64)),
        ("behind the last u32", lambda: r.u32_at(65)),
        ("before the first", lambda: r.u32_at(-1)),
        ("u64", lambda: r.u64_at(40)),
        ("u64 as i64", lambda: r.u64_at(28)),
        ("no int", lambda: r.u32_at("0")),
        ("no position", lambda: r.u8(None, 0)),
    ]


def program_cases(r):
    plan = r.item(r.table(r.root(), schema.PROGRAM_EXECUTION_PLAN), 0)
    chain = r.item(r.table(plan, schema.EXECUTION_PLAN_CHAINS), 0)
    operators = r.table(plan, schema.EXECUTION_PLAN_OPERATORS)
    values = r.table(plan, schema.EXECUTION_PLAN_VALUES)
    known, unknown = r.item(operators, 0), r.item(operators, 1)
    name, overload = schema.OPERATOR_NAME, schema.OPERATOR_OVERLOAD
    forward = r.table(plan, schema.EXECUTION_PLAN_NAME)
    inputs = r.table(chain, schema.CHAIN_INPUTS)
    outputs = r.table(chain, schema.CHAIN_OUTPUTS)
    below = r.table(r.table(r.item(values, 7), schema.EVALUE_VAL), schema.INT_LIST_ITEMS)
    fields, layouts = schema.TENSOR_FIELDS, (None, None, b"q")
    tensor, pair, nothing = [0] * len(fields), [0, 0], [None] * 6
    value = schema.EVALUE_VAL
    orders = [r.table(r.table(r.item(values, i), value), schema.TENSOR_DIM_ORDER)
              for i in range(3, 7)]
    string = r.table(r.table(r.item(values, 2), value), schema.STRING_STRING_VAL)
    return [
        ("verify", lambda: r.verify()),
        ("name", lambda: r.equals(forward, "forward")),
        ("another name", lambda: r.equals(forward, "forwards")),
        ("string", lambda: r.equals(string, "text")),
        ("no string", lambda: r.equals(0, "")),
        ("string outside", lambda: r.equals(len(r) - 2, "")),
        ("length", lambda: r.length(operators)),
        ("inputs", lambda: r.i32_item(inputs, 1)),
        ("value", lambda: r.i64(r.table(r.item(values, 0), value), 0)),
        ("types", lambda: r.u8(r.item(values, 1), 0) * 16 + r.u8(r.item(values, 2), 0)),
        ("count_tensors", lambda: count(r, values)),
        ("count_tensors of nothing", lambda: count(r, 0)),
        ("count_tensors outside", lambda: count(r, len(r) - 4)),
        ("read_tensor", lambda: r.read_tensor(values, 0, fields, tensor) + sum(tensor)),
        ("read_tensor from one", lambda: r.read_tensor(values, 1, b"B", tensor) + tensor[0]),
        ("read_tensor from the next", lambda: r.read_tensor(values, 2, fields, tensor)),
        ("read_tensor at the end", lambda: r.read_tensor(values, 7, fields, tensor)),
        ("read_tensor before the first", lambda: r.read_tensor(values, -1, fields, tensor)),
        ("read_tensor of nothing", lambda: r.read_tensor(0, 0, fields, tensor)),
        ("read_tensor outside", lambda: r.read_tensor(len(r) - 4, 0, fields, tensor)),
        ("read_tensor into too little", lambda: r.read_tensor(values, 0, fields, pair)),
        ("read_union", lambda: r.read_union(values, 0, layouts, pair) * 100 + pair[0]),
        ("read_union without layout", lambda: r.read_union(values, 1, layouts, pair) + pair[0]),
        ("read_union with None", lambda: r.read_union(values, 1, nothing, pair) + pair[0]),
        ("read_union beyond", lambda: r.read_union(values, 7, layouts, pair)),
        ("read_union of no layouts", lambda: r.read_union(values, 0, 5, pair)),
        ("tensor_nbytes", lambda: r.tensor_nbytes(6, inputs, 1000)),
        ("tensor_nbytes at the limit", lambda: r.tensor_nbytes(6, inputs, 144)),
        ("tensor_nbytes above the limit", lambda: r.tensor_nbytes(6, inputs, 143)),
        ("tensor_nbytes with 0", lambda: r.tensor_nbytes(6, outputs, 1000)),
        ("tensor_nbytes of a scalar", lambda: r.tensor_nbytes(6, 0, 1000)),
        ("tensor_nbytes of negative sizes", lambda: r.tensor_nbytes(6, below, 1000)),
        ("tensor_nbytes of no dtype", lambda: r.tensor_nbytes(99, inputs, 1000)),
        ("tensor_nbytes outside", lambda: r.tensor_nbytes(6, len(r) - 4, 1000)),
        ("tensor_flags", lambda: r.tensor_flags(orders[0], orders[0])),
        ("tensor_flags in order", lambda: r.tensor_flags(orders[2], orders[2])),
        ("no permutation", lambda: r.tensor_flags(orders[1], orders[1])),
        ("tensor_flags of 33 dims", lambda: r.tensor_flags(orders[3], orders[3])),
        ("tensor_flags of another rank", lambda: r.tensor_flags(inputs, orders[0])),
        ("tensor_flags of a scalar", lambda: r.tensor_flags(0, 0)),
        ("tensor_flags outside", lambda: r.tensor_flags(orders[0], len(r) - 4)),
        ("known", lambda: r.operator(r.table(known, name), r.table(known, overload)) == NUMBER),
        ("no overload", lambda: r.operator(r.table(known, name), 0)),
        ("unknown", lambda: r.operator(r.table(unknown, name), r.table(unknown, overload))),
        ("operator outside", lambda: r.operator(len(r), 0)),
    ]


# Readings anywhere in damaged data: sums of all that each method returns.


def damage(data, seed):
    for _ in range(24):
        seed = (seed * 1103 + 12345) & 0xFFFFF
        data[seed % len(data)] = (seed >> 8) & 0xFF


counted = [0, 0]


def count(r, values):
    r.count_tensors(values, counted)
    return counted[0] + 100 * counted[1]


def sweep_one(function, size):
    total = 0
    for position in range(-3, size):
        try:
            total = (total * 31 + (function(position) & 0xFFFF)) & 0xFFFFFF
        except ValueError:
            total = (total * 31 + 1) & 0xFFFFFF
    return total


def sweep_two(function, size):
    total = 0
    for position in range(-3, size, 2):
        for second in range(-3, 6):
            try:
                total = (total * 31 + (function(position, second) & 0xFFFF)) & 0xFFFFFF
            except ValueError:
                total = (total * 31 + 1) & 0xFFFFFF
    return total


def sweep(data):
    r = _picotorch.Reader(data)
    one = (r.length, lambda position: count(r, position), r.u32_at, r.u64_at)
    two = (r.field, r.table, r.u8, r.i32, r.u32, r.i64, r.item, r.u8_item, r.i32_item, r.i64_item,
           r.operator, r.tensor_flags)
    sums = [0] * (len(one) + len(two) + 1)
    heap_lock()
    for i in range(len(one)):
        sums[i] = sweep_one(one[i], len(data) + 4)
    for i in range(len(two)):
        sums[len(one) + i] = sweep_two(two[i], len(data) + 4)
    sums[-1] = r.verify()
    heap_unlock()
    print("sweep", sums)


# A pool: the method at 0, its instruction at 28, values at 40, 56 and 72, another instruction at 88.
METHOD, INSTRUCTION, VALUES, CALL = 0, 28, 40, 88


def record_cases(c, pool):
    top = SMALL_INT_MAX
    return [
        ("put_method", lambda: c.put_method(METHOD, 3, 1, ref(POOL, VALUES),
                                            ref(POOL, INSTRUCTION), 0, 64, 0)),
        ("put_instruction", lambda: c.put_instruction(INSTRUCTION, NUMBER, 2, 0)),
        ("put_ref", lambda: c.put_ref(INSTRUCTION + 4, ref(POOL, VALUES))),
        ("put_ref", lambda: c.put_ref(INSTRUCTION + 8, ref(POOL, VALUES + 16))),
        ("get_ref", lambda: c.get_ref(INSTRUCTION + 8)),
        ("largest ref", lambda: c.put_ref(VALUES, top)),
        ("largest ref", lambda: c.get_ref(VALUES)),
        ("put_tensor", lambda: c.put_tensor(VALUES + 32, top, FAR, FAR, 0xFFFF, 255, 255)),
        ("type too large", lambda: c.put_tensor(VALUES, 0, 0, 0, 0, 256, 0)),
        ("index too large", lambda: c.put_tensor(VALUES, 0, 0, 0, 0x10000, 0, 0)),
        ("sizes too far", lambda: c.put_tensor(VALUES, 0, FAR + 1, 0, 0, 0, 0)),
        ("dim order too far", lambda: c.put_tensor(VALUES, 0, 0, FAR + 1, 0, 0, 0)),
        ("sizes before the first", lambda: c.put_tensor(VALUES, 0, -1, 0, 0, 0, 0)),
        ("put_list", lambda: c.put_list(VALUES, top, top, 11)),
        ("kind too large", lambda: c.put_list(VALUES, 0, 0, 0x40)),
        ("negative kind", lambda: c.put_list(VALUES, 0, 0, -1)),
        ("list beyond", lambda: c.put_list(len(pool) - 12, 0, 0, 11)),
        ("negative ref", lambda: c.put_ref(VALUES, -1)),
        ("negative size", lambda: c.put_method(METHOD, -1, 0, 0, 0, 0, 0, 0)),
        ("too many arguments", lambda: c.put_instruction(INSTRUCTION, 0, 256, 0)),
        ("odd position", lambda: c.put_ref(VALUES + 2, 0)),
        ("last word", lambda: c.put_ref(len(pool) - 4, 7)),
        ("beyond the pool", lambda: c.put_ref(len(pool), 7)),
        ("before the pool", lambda: c.get_ref(-4)),
        ("value beyond", lambda: c.put_tensor(len(pool) - 12, 0, 0, 0, 0, 0, 0)),
        ("method beyond", lambda: c.put_method(len(pool) - 20, 0, 0, 0, 0, 0, 0, 0)),
        ("instruction beyond", lambda: c.put_instruction(len(pool), 0, 0, 0)),
        ("arguments beyond", lambda: c.put_instruction(len(pool) - 4, NUMBER, 2, 0)),
        ("check", lambda: c.check(len(pool) - 4)),
        ("check beyond", lambda: c.check(len(pool))),
        ("start beyond", lambda: c.start(len(pool) - 20)),
    ]


def tensor_cases(c, r, values, sizes, order):
    """The instruction transposes value 1, at PLANNED 0, into value 4, at PLANNED 32."""
    at = ref(POOL, VALUES)
    return [
        ("put_method", lambda: c.put_method(METHOD, 3, 1, at, ref(POOL, INSTRUCTION),
                                            ref(_picotorch.PROGRAM, values), 64, 0)),
        ("input", lambda: c.put_tensor(VALUES, ref(PLANNED, 0), sizes, order, 1, 3, 0x22)),
        ("output", lambda: c.put_tensor(VALUES + 16, ref(PLANNED, 32), sizes + 8, order, 4, 3,
                                        0x22)),
        ("another", lambda: c.put_tensor(VALUES + 32, ref(PLANNED, 32), sizes, order, 9, 6, 0x22)),
        ("find", lambda: c.find_value(1)),
        ("find", lambda: c.find_value(4)),
        ("find", lambda: c.find_value(9)),
        ("find none", lambda: c.find_value(5)),
        ("find none", lambda: c.find_value(0)),
        ("find none", lambda: c.find_value(70000)),
        ("values of nothing", lambda: c.put_method(METHOD, 0, 1, at, 0, 0, 64, 0)),
        ("find none", lambda: c.find_value(1)),
        ("values beyond", lambda: c.put_method(METHOD, 6, 1, at, 0, 0, 64, 0)),
        ("find", lambda: c.find_value(1)),
        ("values far beyond", lambda: c.put_method(METHOD, SMALL_INT_MAX, 1, at, 0, 0, 64, 0)),
        ("find", lambda: c.find_value(1)),
        ("clear_scratch_needed", lambda: c.clear_scratch_needed()),
        ("check", lambda: c.check(METHOD)),
        ("scratch_needed", lambda: c.scratch_needed()),
        ("wrong argument", lambda: c.put_ref(INSTRUCTION + 8, 0)),
        ("check", lambda: c.check(METHOD)),
        ("argument", lambda: c.argument()),
        ("right argument", lambda: c.put_ref(INSTRUCTION + 8, ref(POOL, VALUES + 16))),
        ("wrong kernel", lambda: c.put_instruction(INSTRUCTION, 0xFFFF, 2, 0)),
        ("check", lambda: c.check(METHOD)),
        ("right kernel", lambda: c.put_instruction(INSTRUCTION, NUMBER, 2, 0)),
    ]


def argument_cases(c, r, values, lists):
    """`lists` are the arguments of the program's instructions."""
    one, unknown, far, negative = lists
    return [
        ("put_method", lambda: c.put_method(METHOD, 3, 1, ref(POOL, VALUES), ref(POOL, INSTRUCTION),
                                            ref(_picotorch.PROGRAM, values), 64, 0)),
        ("put_instruction", lambda: c.put_instruction(CALL, NUMBER, 7, 0)),
        ("up to a list", lambda: c.put_arguments(CALL, r, one, 0)),
        ("tensor", lambda: c.get_ref(CALL + 4) == ref(POOL, VALUES)),
        ("tensor", lambda: c.get_ref(CALL + 8) == ref(POOL, VALUES + 16)),
        ("None", lambda: c.get_ref(CALL + 12)),
        ("int", lambda: c.get_ref(CALL + 16) == ref(_picotorch.PROGRAM, r.item(values, 0))),
        ("behind it, too many", lambda: c.put_arguments(CALL, r, one, 5)),
        ("put_instruction", lambda: c.put_instruction(CALL, NUMBER, 6, 0)),
        ("at the list", lambda: c.put_arguments(CALL, r, one, 4)),
        ("behind it", lambda: c.put_arguments(CALL, r, one, 5)),
        ("string", lambda: c.get_ref(CALL + 24) == ref(_picotorch.PROGRAM, r.item(values, 2))),
        ("behind the last", lambda: c.put_arguments(CALL, r, one, 6)),
        ("before the first", lambda: c.put_arguments(CALL, r, one, -1)),
        ("tensor without record", lambda: c.put_arguments(CALL, r, unknown, 0)),
        ("no such value", lambda: c.put_arguments(CALL, r, far, 0)),
        ("no value", lambda: c.put_arguments(CALL, r, negative, 0)),
        ("no reader", lambda: c.put_arguments(CALL, c, one, 0)),
        ("instruction beyond", lambda: c.put_arguments(128, r, one, 0)),
        ("put_instruction", lambda: c.put_instruction(CALL, NUMBER, 10, 0)),
        ("arguments beyond", lambda: c.put_arguments(CALL, r, one, 0)),
    ]


class Failures:
    """Keeps the error code that the context hands over."""

    def __init__(self):
        self.code = 0

    def note(self, code):
        self.code = code

    def take(self):
        code = self.code
        self.code = 0
        return code


failures = Failures()


def execute_cases(c, view, source):
    first, second = ref(PLANNED, 0), ref(PLANNED, 32)
    return [
        ("clear", lambda: c.clear(first, 64)),
        ("copy_in", lambda: c.copy_in(first, source)),
        ("start", lambda: c.start(METHOD)),
        ("not ready", lambda: c.step() or failures.take()),
        ("set_ready", lambda: c.set_ready(True)),
        ("step", lambda: c.step() or failures.take()),
        ("step at the end", lambda: c.step() or failures.take()),
        ("instruction", lambda: c.instruction()),
        ("view", lambda: c.view(view, second, 24, "i")[1]),
        ("clear", lambda: c.clear(second, 24)),
        ("view", lambda: c.view(view, second, 24, "i")[1]),
        ("start", lambda: c.start(METHOD)),
        ("execute", lambda: c.execute() or failures.take()),
        ("instruction", lambda: c.instruction()),
        ("execute again", lambda: c.execute() or failures.take()),
        ("not ready any more", lambda: c.set_ready(False)),
        ("execute", lambda: c.execute() or failures.take()),
        ("view", lambda: c.view(view, second, 24, "i")[1]),
        ("view of bytes", lambda: c.view(view, second, 24, "B")[4]),
        ("view of int64", lambda: len(c.view(view, ref(PLANNED, 24), 16, "q"))),
        ("length", lambda: len(c.view(view, second, 24, "h"))),
        ("empty view", lambda: len(c.view(view, second, 0, "f"))),
        ("empty view at the end", lambda: len(c.view(view, ref(PLANNED, 64), 0, "f"))),
        ("view beyond", lambda: c.view(view, second, 36, "B")),
        ("view before", lambda: c.view(view, second, -4, "B")),
        ("half an element", lambda: c.view(view, second, 6, "i")),
        ("unset memory", lambda: c.view(view, ref(9, 0), 0, "B")),
        ("no memory", lambda: c.view(view, ref(0, 0), 0, "B")),
        ("beyond the memories", lambda: c.clear(-1, 4)),
        ("clear beyond", lambda: c.clear(second, 33)),
        ("clear less than nothing", lambda: c.clear(second, -1)),
        ("copy beyond", lambda: c.copy_in(ref(PLANNED, 60), source)),
        ("copy to the program", lambda: c.copy_in(ref(1, 0), source)),
        ("clear the program", lambda: c.clear(ref(1, 0), 4)),
        ("copy no buffer", lambda: c.copy_in(first, 5)),
    ]


def memory_cases(c, view, buffer, constant):
    too_small, nothing = bytearray(16), bytearray()
    return [
        ("set", lambda: c.set_memory(30, buffer)),
        ("view", lambda: c.view(view, ref(30, 4), 4, "B")[0]),
        ("unset", lambda: c.set_memory(30, None)),
        ("view", lambda: c.view(view, ref(30, 4), 4, "B")[0]),
        ("program may be constant", lambda: c.set_memory(1, constant)),
        ("view", lambda: c.view(view, ref(1, 4), 4, "B")[0]),
        ("none", lambda: c.set_memory(0, buffer)),
        ("beyond", lambda: c.set_memory(32, buffer)),
        ("negative", lambda: c.set_memory(-1, buffer)),
        ("no buffer", lambda: c.set_memory(30, 5)),
        ("scratch", lambda: c.set_scratch(buffer)),
        ("no scratch", lambda: c.set_scratch(None)),
        ("the program again", lambda: c.set_memory(1, program)),
        ("ready", lambda: c.set_ready(True)),
        ("a memory more", lambda: c.set_memory(30, buffer)),
        ("execute", lambda: c.execute() or failures.take()),
        ("a memory less", lambda: c.set_memory(30, None)),
        ("execute", lambda: c.execute() or failures.take()),
        ("has_memory", lambda: c.has_memory(PLANNED) and not c.has_memory(30)),
        ("has_memory beyond", lambda: c.has_memory(32)),
        ("tracer of too few bytes", lambda: c.set_tracer(too_small)),
        ("tracer of no bytes", lambda: c.set_tracer(nothing)),
        ("tracer of no buffer", lambda: c.set_tracer(5)),
        ("no tracer", lambda: c.set_tracer(None) or c.tracing_overhead()),
        ("without a pool", lambda: c.set_memory(POOL, None)),
        ("tracer", lambda: c.set_tracer(too_small)),
        ("ready", lambda: c.set_ready(True)),
        ("step", lambda: c.step() or failures.take()),
        ("get_ref", lambda: c.get_ref(0)),
    ]


def module_cases(data):
    size, code = _picotorch.element_size, _picotorch.typecode
    shorts, constant, view = array("h", [1, 2, 3]), b"12345", memoryview(array("f", [1.0]))
    aligned, odd, empty = memoryview(data), memoryview(data)[1:], memoryview(data)[1:1]
    last = _picotorch.operator_count()
    return [
        ("aligned", lambda: _picotorch.misaligned(aligned, 8)),
        ("odd", lambda: _picotorch.misaligned(odd, 2)),
        ("odd bytes", lambda: _picotorch.misaligned(odd, 1)),
        ("empty", lambda: _picotorch.misaligned(empty, 16)),
        ("alignment 0", lambda: _picotorch.misaligned(odd, 0)),
        ("sizes", lambda: size(0) + 10 * size(3) + 100 * size(4) + 1000 * size(11)),
        ("no sizes", lambda: size(16) + size(255) + size(256) + size(-1)),
        ("nbytes", lambda: _picotorch.nbytes(data) == len(data)),
        ("nbytes", lambda: _picotorch.nbytes(shorts) * 10 + _picotorch.nbytes(constant)),
        ("nbytes of no buffer", lambda: _picotorch.nbytes(5)),
        ("typecode", lambda: code(data) * 1000 + code(shorts)),
        ("typecode", lambda: code(constant) * 1000 + code(view)),
        ("typecode of no buffer", lambda: code(5)),
        ("readonly", lambda: _picotorch.readonly(constant)),
        ("writable", lambda: _picotorch.readonly(shorts)),
        ("clear", lambda: _picotorch.clear(shorts) or sum(shorts)),
        ("clear what is constant", lambda: _picotorch.clear(constant)),
        ("clear no buffer", lambda: _picotorch.clear(5)),
        ("arguments", lambda: _picotorch.operator_arguments(NUMBER)),
        ("arguments", lambda: _picotorch.operator_arguments(last)),
        ("traits", lambda: _picotorch.operator_traits(NUMBER)),
        ("traits", lambda: _picotorch.operator_traits(-1)),
        ("name", lambda: _picotorch.operator_name(last)),
        ("name", lambda: _picotorch.operator_name(-1)),
        ("signature", lambda: _picotorch.operator_signature(last)),
    ]


def words(view):
    return [item for item in view]


def view_of_forgotten_memory():
    c = _picotorch.Context()
    c.set_memory(PLANNED, memoryview(bytearray(range(64)))[16:])
    return c.view(memoryview(bytearray(4)), ref(PLANNED, 24), 4, "B")


def collect_and_fill():
    collect()
    return [bytearray(64) for _ in range(500)]


NUMBER = 0
while _picotorch.operator_name(NUMBER) != "aten::t_copy.out":
    NUMBER += 1
print("signature", _picotorch.operator_signature(NUMBER))
print("constants", _picotorch.PROGRAM, POOL, PLANNED, _picotorch.MEMORIES, SMALL_INT_MAX)

program = bytearray(PROGRAM)  # noqa: F821
reader = _picotorch.Reader(program)
run("module", module_cases(program))
run("numbers", number_cases(_picotorch.Reader(NUMBERS)))
run("numbers at an odd address", number_cases(_picotorch.Reader(memoryview(b"-" + NUMBERS)[1:])))
run("program", program_cases(reader))
odd = _picotorch.Reader(memoryview(b"-" + PROGRAM)[1:])  # noqa: F821
run("program at an odd address", [("verify", lambda: odd.verify())])

for seed in range(6):
    damaged = bytearray(NUMBERS)
    damage(damaged, seed)
    sweep(damaged)

context = _picotorch.Context(failures.note)
pool, planned = bytearray(128), bytearray(64)
plan = reader.item(reader.table(reader.root(), schema.PROGRAM_EXECUTION_PLAN), 0)
chain = reader.item(reader.table(plan, schema.EXECUTION_PLAN_CHAINS), 0)
context.set_memory(_picotorch.PROGRAM, program)
context.set_memory(POOL, pool)
context.set_memory(PLANNED, planned)
view = memoryview(bytearray(4))
values = reader.table(plan, schema.EXECUTION_PLAN_VALUES)
instructions = reader.table(chain, schema.CHAIN_INSTRUCTIONS)
arguments = [reader.table(reader.table(reader.item(instructions, i), schema.INSTRUCTION_INSTR_ARGS),
                          schema.KERNEL_CALL_ARGS) for i in range(4)]
sizes = reader.table(chain, schema.CHAIN_INPUTS)
order = reader.table(reader.table(reader.item(values, 5), schema.EVALUE_VAL), schema.TENSOR_DIM_ORDER)
run("records", record_cases(context, pool))
run("tensors", tensor_cases(context, reader, values, sizes, order))
run("arguments", argument_cases(context, reader, values, arguments))
print("reason", context.reason())
context.put_ref(INSTRUCTION + 8, ref(POOL, VALUES))
print("check", context.check(METHOD), context.reason())
context.put_ref(INSTRUCTION + 8, ref(POOL, VALUES + 16))
print("check", context.check(METHOD), context.reason())
source = memoryview(struct.pack("<6i", 10, 20, 30, 40, 50, 60))
run("execute", execute_cases(context, view, source))
print("pool", words(pool))
print("planned", words(context.view(view, ref(PLANNED, 0), 64, "i")))
print("int64", words(context.view(view, ref(PLANNED, 24), 8, "q")))
print("int64 at any word", words(context.view(view, ref(PLANNED, 20), 8, "q")))
view = context.view(view, ref(PLANNED, 8), 8, "h")
view[1] = -2
print("written", words(planned)[8:16])
view = context.view(view, ref(1, 8), 8, "B")
try:
    view[0] = 1
except TypeError:
    print("the program is read-only")
run("memories", memory_cases(context, view, bytearray(b"abcdefgh"), b"ABCDEFGH"))

view = view_of_forgotten_memory()
collect_and_fill()
print("forgotten", words(view))
