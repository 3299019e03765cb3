"""Make files with invalid fields: enumerations, sizes, dim orders, names, missing fields, and
instructions without an end."""

from support.file_parts import MISSING
from support.flatbuffer_builder import bool_value
from support.malformed import INVALID, kind, parts
from support.malformed_references import CALLS, CONSTANTS, CONTROL, DELEGATED, MAX32, MAX64, changed

TENSORS = ("add_1", "permute", "conv2d_channels_last", "dynamic_batch")
LONG = b"x" * 5000
NO_UTF8 = b"\xff\xfe\x80forward"


def edits(name, where, change, only=slice(None)):
    """Yield (place, bytes) of every place after change(table)."""
    part = parts(name)
    for place in list(part.places(where))[only]:
        def edit(tables, place=place):
            for key in place:
                tables = tables[key]
            change(tables)

        yield place, part.edited(edit)


def named(place):
    return ".".join(str(key) for key in place)


# ---- enumerations


@kind("fields", "scalar type", (*INVALID, "NotSupported"))
def scalar_type():
    """Yield numbers of no dtype, and of dtypes without whole bytes."""
    for name in TENSORS:
        yield from changed(name, "Tensor.scalar_type", (
            18, 19, 20, 21, 30, 64, 127, -1, -128), slice(3))


@kind("fields", "shape dynamism", (*INVALID, "NotSupported"))
def shape_dynamism():
    for name in TENSORS:
        yield from changed(name, "Tensor.shape_dynamism", (2, 3, 127, -1, -128), slice(3))


@kind("fields", "data location")
def data_location():
    """Yield tensors whose data is neither in the program nor in a data file."""
    for name in ("external_state", "counter_initialized", "unplanned_state"):
        yield from changed(name, "ExtraTensorInfo.location", (2, 3, 127, -1, -128))


@kind("fields", "union type", (*INVALID, "InvalidArgument", "NotSupported"))
def union_type():
    """Yield the type None, unknown types, and for tensors and calls every other type."""
    for name in ("add_1", "several_chains", "delegate_two_backends"):
        part = parts(name)
        for table in part.places_of_tables:
            for field in table.fields:
                if not field.name.endswith("_type") or field.kind != "u8":
                    continue
                if table.name == "EValue" and name.startswith("delegate"):
                    continue  # a delegate accepts every kind of value
                there = part.data[field.position]
                wrong = {0, 12, 127, 255} if table.name == "EValue" else {0, 6, 7, 12, 127, 255}
                if (table.name, there) == ("EValue", 5):
                    wrong |= set(range(1, 12)) - {there}
                for value in sorted(wrong):
                    data = bytearray(part.data)
                    data[field.position] = value
                    yield name, f"{table.name} at {table.position}: {value}", bytes(data)


@kind("fields", "a schema version other than 0", ("NotSupported",))
def version():
    for name in ("relu", "linear_5"):
        for value in (1, 2, 2**31, MAX32):
            yield name, str(value), parts(name).changed(("version",), value)


# ---- sizes


@kind("fields", "size: negative")
def negative_size():
    for name in (*TENSORS, "linear_5"):
        yield from changed(name, "Tensor.sizes[]", (-1, -2, -(2**31)), slice(8))


@kind("fields", "size: huge")
def huge_size():
    for name in (*TENSORS, "linear_5"):
        yield from changed(name, "Tensor.sizes[]", (2**15, 2**24, 2**30, 2**31 - 1), slice(8))


@kind("fields", "size: zero", (*INVALID, "InvalidArgument"))
def zero_size():
    for name in ("add_1", "permute", "linear_5", "softmax_2x2", "cat_channels_last"):
        yield from changed(name, "Tensor.sizes[]", (0,), slice(8))


@kind("fields", "size: another", (*INVALID, "InvalidArgument"))
def another_size():
    """Yield a size that is one more or one less than the operator needs. The planned memory may end
    before it."""
    for name in ("permute", "linear_5", "softmax_2x2", "cat_channels_last"):
        yield from changed(name, "Tensor.sizes[]", lambda part, place: (
            part.get(place) + 1, max(part.get(place) - 1, 0)), slice(8))


@kind("fields", "size: elements or bytes overflow 32 bits")
def overflow():
    """Yield 2**32 elements, as many bytes, one element more; and numbers that overflow 64 bits."""
    for sizes in ([65536, 65536], [2**30], [2**30 + 1], [2**31 - 1, 2], [2**30, 4], [2**30, 5],
                  [65536, 65537], [2**16, 2**16, 2**16, 2**16], [2**31 - 1] * 3, [2**30] * 16,
                  [2**28 + 1], [2**31 - 1] * 16):
        for name in (*TENSORS[:2], "linear_5", "unplanned_io", "dynamic_unplanned_io"):
            for place, data in edits(name, "Tensor", lambda tensor, sizes=sizes: tensor.update(
                    sizes=sizes, dim_order=bytes(range(len(sizes)))), slice(3)):
                yield name, f"{named(place)}: {sizes}", data


@kind("fields", "rank", (*INVALID, "NotSupported"))
def rank():
    for name in TENSORS:
        for count in (17, 18, 255, 300):
            for place, data in edits(name, "Tensor", lambda tensor, count=count: tensor.update(
                    sizes=[1] * count, dim_order=bytes(i % 256 for i in range(count))), slice(2)):
                yield name, f"{named(place)}: {count}", data


# ---- dim orders


@kind("fields", "dim order: no permutation")
def dim_order():
    for name in ("permute", "conv2d_channels_last", "softmax_2x2", "linear_5"):
        part = parts(name)
        for place in list(part.places("Tensor.dim_order"))[:5]:
            order = part.get(place)
            for i in range(len(order)):
                others = {(order[i] + 1) % len(order), len(order), 16, 128, 255} - {order[i]}
                for value in sorted(others):
                    wrong = bytearray(order)
                    wrong[i] = value
                    yield name, f"{named(place)}: {list(wrong)}", part.changed(place, bytes(wrong))


@kind("fields", "dim order: of another length")
def dim_order_length():
    for name in ("permute", "conv2d_channels_last", "softmax_2x2", "linear_5"):
        part = parts(name)
        for place in list(part.places("Tensor.dim_order"))[:5]:
            order = part.get(place)
            for wrong in (order[:-1], b"", order + bytes([len(order)]), order + order, bytes(range(16)),
                          bytes(range(256)), MISSING):
                yield (name, f"{named(place)}: {'none' if wrong is MISSING else len(wrong)}",
                       part.changed(place, wrong))


@kind("fields", "storage offset", (*INVALID, "NotSupported"))
def storage_offset():
    for name in TENSORS:
        yield from changed(name, "Tensor.storage_offset", (1, -1, 2**31 - 1), slice(2))


# ---- missing fields


NEEDED = ("Program.execution_plan", "ExecutionPlan.values", "ExecutionPlan.operators",
          "ExecutionPlan.non_const_buffer_sizes", "EValue.val", "Operator.name", "Tensor.sizes",
          "Tensor.dim_order", "KernelCall.args", "Instruction.instr_args")


@kind("fields", "table or vector left out", (*INVALID, "InvalidArgument"))
def left_out():
    for name in ("add_1", "softmax_2x2", "several_chains", "linear_5", "counter_initialized"):
        for where in NEEDED:
            yield from changed(name, where, lambda part, place: [MISSING] * bool(part.get(place)),
                               slice(3))
    for name in CONTROL:
        yield from changed(name, "ExecutionPlan.values", (MISSING,))
    for name in DELEGATED:
        for where in ("BackendDelegate.id", "BackendDelegate.processed", "DelegateCall.args",
                      "ExecutionPlan.delegates"):
            yield from changed(name, where, (MISSING,))


@kind("fields", "vector empty")
def empty():
    for name in ("add_1", "softmax_2x2", "several_chains", "linear_5", "counter_initialized"):
        for where in ("Program.execution_plan", "ExecutionPlan.values", "ExecutionPlan.operators",
                      "ExecutionPlan.non_const_buffer_sizes", "KernelCall.args", "Tensor.sizes"):
            yield from changed(name, where, lambda part, place: [[]] * bool(part.get(place)), slice(3))


@kind("fields", "tensor without memory", ("InvalidState", *INVALID))
def without_memory():
    """Yield tensors without memory: not planned, not constant, no input, output or unplanned buffer."""
    for name in ("several_chains", "int8_elementwise", "counter_initialized"):
        part = parts(name)
        plan = part.tables["execution_plan"][0]
        ends = {*plan["inputs"], *plan["outputs"]}
        for place in list(part.places("Tensor.allocation_info"))[:12]:
            if place[3] not in ends:
                yield name, named(place), part.changed(place, MISSING)


# ---- names


@kind("fields", "name of an operator: null")
def operator_null():
    for name in CALLS:
        yield from changed(name, "Operator.name", (MISSING,))


@kind("fields", "name of an operator: empty, long, not UTF-8", ("OperatorMissing",))
def operator_name():
    for name in CALLS:
        for where in ("Operator.name", "Operator.overload"):
            for value in (b"", LONG, NO_UTF8, b"aten::add\0", b"aten::", b"\x1b[31m"):
                if not (where.endswith("overload") and value == b""):
                    yield from changed(name, where, (value,), slice(2))


@kind("fields", "name of a method: null, empty, long, not UTF-8", ("NotFound", *INVALID))
def method_name():
    """Yield other names. forward is not found; a method with a readable name loads by that name."""
    for name in ("add_1", "linear_5"):
        yield from changed(name, "ExecutionPlan.name", (MISSING, NO_UTF8, b"\x80", b"forward\x1b"))


@kind("fields", "name of a backend: null, empty, long, not UTF-8", ("NotFound", *INVALID))
def backend_name():
    for name in DELEGATED:
        yield from changed(name, "BackendDelegate.id", (MISSING, b"", LONG, NO_UTF8))


@kind("fields", "name of an external tensor: null, empty, long, not UTF-8",
      ("InvalidExternalData", "NotFound"))
def external_name():
    for name in ("external_state", "external_two_files", "external_weights"):
        yield from changed(name, "ExtraTensorInfo.fully_qualified_name",
                           (MISSING, b"", LONG, NO_UTF8), slice(2))


# ---- instructions


def jump(condition, destination):
    return {"instr_args": ("JumpFalseCall", {"cond_value_index": condition,
                                             "destination_instruction": destination})}


def with_jumps(name, jumps):
    """Return the program with a False behind its values, and jumps(its index, number of instructions)
    behind the instructions of its first chain."""
    def change(tables):
        plan = tables["execution_plan"][0]
        plan["values"].append(bool_value(False))
        found = plan["chains"][0]["instructions"]
        found += jumps(len(plan["values"]) - 1, len(found))

    return parts(name).edited(change)


@kind("fields", "endless loop")
def endless():
    for name in ("relu", "add_1", "several_chains", "map_over_some_rows"):
        yield name, "to itself", with_jumps(name, lambda no, n: [jump(no, n)])
        yield name, "to and fro", with_jumps(name, lambda no, n: [jump(no, n + 1), jump(no, n)])
        yield name, "over another", with_jumps(
            name, lambda no, n: [jump(no, n + 2), jump(no, n), jump(no, n + 1)])
    yield "relu", "through all", with_jumps("relu", lambda no, n: [jump(no, 0)])


@kind("fields", "jumps to and fro across many instructions", ("NotSupported",))
def to_and_fro():
    for name in ("relu", "several_chains"):
        for count in (500, 1000):
            yield name, f"{count}", with_jumps(name, lambda no, n, count=count: [
                jump(no, n + 2 * count - 1), jump(no, n)] * count)


@kind("fields", "instruction that is empty")
def empty_instruction():
    for name in ("add_1", "several_chains", "delegate_inline"):
        part = parts(name)
        for place in list(part.places("Instruction.instr_args"))[:4]:
            yield name, named(place), part.changed(place, MISSING)


@kind("fields", "condition that is no bool")
def condition():
    """Yield conditions that are every other kind of value in the program."""
    for name in CONTROL:
        def others(part, place):
            values = part.tables["execution_plan"][place[1]]["values"]
            found = {}
            for i, value in enumerate(values):
                what, content = value.get("val", ("None", {}))
                if what != "Bool" and not (what == "Tensor" and content.get("scalar_type") == 11):
                    found.setdefault(what, i)
            return found.values()

        yield from changed(name, "JumpFalseCall.cond_value_index", others, slice(2))


@kind("fields", "move to another kind of value", (*INVALID, "NotSupported"))
def move_kinds():
    for name in ("several_chains", "map_over_some_rows", "control_flow"):
        def others(part, place):
            plan = part.tables["execution_plan"][place[1]]
            there = plan["values"][part.get(place)]["val"][0]
            numbers = ("Int", "Bool", "Double", "Null")
            found = {}
            for i, value in enumerate(plan["values"]):
                what = value.get("val", ("None",))[0]
                if what != there and not (what in numbers and there in numbers):
                    found.setdefault(what, i)
            return found.values()

        for where in ("MoveCall.move_from", "MoveCall.move_to"):
            yield from changed(name, where, others, slice(3))


@kind("fields", "more values or lists than a method can have", (*INVALID, "NotSupported"))
def too_much():
    name = "cat_channels_last"
    part = parts(name)

    def values(tables):
        tables["execution_plan"][0]["values"] += [bool_value(True)] * 65536

    yield name, "65536 values more", part.edited(values)
    for count, calls in ((8000, 5000), (60000, 600)):
        def lists(tables, count=count, calls=calls):
            plan = tables["execution_plan"][0]
            found = next(v["val"][1] for v in plan["values"] if v["val"][0] == "TensorList")
            found["items"] = found["items"][:1] * count
            plan["chains"][0]["instructions"] = plan["chains"][0]["instructions"][:1] * calls

        yield name, f"{calls} calls with {count} tensors", part.edited(lists)
    for tensors, sizes in ((1000, 2000), (16000, 16800)):
        def dynamic(tables, tensors=tensors, sizes=sizes):
            values = tables["execution_plan"][0]["values"]
            found = next(v for v in values if v["val"][0] == "Tensor")
            found["val"][1].update(sizes=[1] * sizes, shape_dynamism=1)
            values += [found] * tensors

        yield name, f"{tensors} dynamic tensors with {sizes} sizes", part.edited(dynamic)


@kind("fields", "constants in both places or in none")
def constant_buffers():
    """Yield a constant segment without a segment, and constants in missing tables."""
    for name in CONSTANTS:
        part = parts(name)
        yield (name, "offsets beyond 64 bits",
               part.changed(("constant_segment", "offsets"),
                            [MAX64] * len(part.tables["constant_segment"]["offsets"])))
