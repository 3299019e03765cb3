"""Make files with wrong references: indexes of operators, values, instructions, constants, segments,
named data and delegates; offsets into segments and planned memory."""

from support.file_parts import MISSING
from support.malformed import INVALID, kind, parts

MAX32, MAX64 = 2**32 - 1, 2**64 - 1
SIGNED = (-1, -(2**31), 2**31 - 1)
CALLS = ("add_1", "cat", "split", "conv2d_depthwise", "several_chains")
CONTROL = ("map_over_some_rows", "control_flow", "several_chains", "nested_conds", "scan_over_rows")
CONSTANTS = ("linear_5", "embedding", "conv2d_depthwise", "wide_alignment")
DELEGATED = ("delegate_two_backends", "delegate_inline", "delegate_named_data")


def plan_of(part, place):
    return part.get(place[:2])


def beyond(count, *others):
    """Return indexes at and beyond `count`."""
    return (count, count + 1, *others)


def changed(name, where, values, only=slice(None)):
    """Yield files with every value at every place of `where`. values: a sequence, or a function of part
    and place."""
    part = parts(name)
    for place in list(part.places(where))[only]:
        for value in values(part, place) if callable(values) else values:
            path = ".".join(str(key) for key in place)
            shown = "nothing" if value is MISSING else str(value)[:40]
            yield name, f"{path} = {shown}", part.changed(place, value)


def index_of(where, count, names, others=SIGNED, only=slice(None)):
    """Yield files in which an index is not below count(plan, part, place)."""
    for name in names:
        yield from changed(name, where, lambda part, place: beyond(
            count(plan_of(part, place), part, place), *others), only)


def n_values(plan, *_):
    return len(plan["values"])


def n_operators(plan, *_):
    return len(plan["operators"])


def n_instructions(plan, part, place):
    """Return one more than the instructions of the chain, since a jump may go to its end."""
    return 1 + len(part.get(place[:4])["instructions"])


@kind("references", "operator index")
def operator_index():
    return index_of("KernelCall.op_index", n_operators, CALLS)


@kind("references", "argument index")
def argument_index():
    return index_of("KernelCall.args[]", n_values, CALLS, only=slice(None, None, 5))


@kind("references", "input index")
def input_index():
    return index_of("ExecutionPlan.inputs[]", n_values, ("add_1", "mixed_planned", "several_chains"))


@kind("references", "output index")
def output_index():
    return index_of("ExecutionPlan.outputs[]", n_values, ("add_1", "split", "several_chains"))


@kind("references", "jump destination")
def jump_destination():
    return index_of("JumpFalseCall.destination_instruction", n_instructions, CONTROL)


@kind("references", "jump condition")
def jump_condition():
    """Yield indexes of no value, and of the first value of the plan, which is not a bool."""
    return index_of("JumpFalseCall.cond_value_index", n_values, CONTROL, (*SIGNED, 0))


@kind("references", "source of a move")
def move_from():
    return index_of("MoveCall.move_from", n_values, CONTROL)


@kind("references", "target of a move")
def move_to():
    return index_of("MoveCall.move_to", n_values, CONTROL)


@kind("references", "freed value")
def freed():
    for name in ("add_1", "several_chains"):
        part = parts(name)
        for chain in part.places("Chain"):
            for value in (*SIGNED, n_values(plan_of(part, chain))):
                def change(tables, chain=chain, value=value):
                    found = tables["execution_plan"][chain[1]]["chains"][chain[3]]
                    found["instructions"].append(
                        {"instr_args": ("FreeCall", {"value_index": value})})

                yield name, f"chain {chain[3]}: {value}", part.edited(change)


# ---- items of lists


@kind("references", "item of a list of tensors")
def tensor_list():
    return index_of("TensorList.items[]", n_values, ("cat",), only=slice(8))


@kind("references", "item of a list of optional tensors")
def optional_list():
    """Yield indexes of no value; an index below 0 is None."""
    return index_of("OptionalTensorList.items[]", n_values, ("index_put",), (2**31 - 1,))


@kind("references", "item of a list of ints")
def int_list():
    return index_of("IntList.items[]", n_values, ("permute", "view", "slices", "expand"),
                    (-1, 2**31, 2**32, 2**32 + 1, 2**63 - 1, -(2**63)), slice(6))


def other_than(plan, kinds):
    """Return indexes of the first value of each kind except these."""
    found = {}
    for i, value in enumerate(plan["values"]):
        found.setdefault(value["val"][0] if "val" in value else None, i)
    return [i for name, i in found.items() if name not in kinds]


@kind("references", "item that is not a tensor")
def item_no_tensor():
    for name in ("cat", "index_put"):
        for where in ("TensorList.items[]", "OptionalTensorList.items[]"):
            allowed = ("Tensor", "Null") if where[0] == "O" else ("Tensor",)
            yield from changed(name, where, lambda part, place, allowed=allowed:
                               other_than(plan_of(part, place), allowed), slice(4))


@kind("references", "item that is no int")
def item_no_int():
    for name in ("permute", "view", "slices", "expand"):
        yield from changed(name, "IntList.items[]", lambda part, place:
                           other_than(plan_of(part, place), ("Int",)), slice(6))


# ---- constants and initial values


def constants(name):
    """Yield the places of the tensors with data of their own."""
    return [place for place in parts(name).places("Tensor.data_buffer_idx")
            if parts(name).get(place[:-1]).get("data_buffer_idx")]


@kind("references", "constant index")
def constant_index():
    for name in (*CONSTANTS, "inline_constants"):
        part = parts(name)
        count = len(part.tables.get("constant_segment", {}).get("offsets", ()))
        count = count or len(part.tables["constant_buffer"])
        for place in constants(name):
            for value in beyond(count, 2**16, 2**31, MAX32):
                yield name, f"{place[3]} = {value}", part.changed(place, value)


@kind("references", "constant offset")
def constant_offset():
    """Yield offsets behind the segment, at its end, beyond 32 and 63 bits, and at no multiple of 4."""
    for name in CONSTANTS:
        part = parts(name)
        size = part.tables["segments"][part.tables["constant_segment"].get("segment_index", 0)]["size"]
        for i in range(1, len(part.tables["constant_segment"]["offsets"])):
            for value in (size, size + 1, size - 1, 2**31, 2**32, 2**63, MAX64, 1, 2, 3):
                yield (name, f"constant {i} at {value}",
                       part.changed(("constant_segment", "offsets", i), value))


@kind("references", "constant segment")
def constant_segment():
    for name in CONSTANTS:
        for value in beyond(len(parts(name).tables["segments"]), 2**31, MAX32):
            yield name, str(value), parts(name).changed(("constant_segment", "segment_index"), value)


@kind("references", "constant without data")
def constant_without_data():
    for name in CONSTANTS:
        part = parts(name)
        for place in (("constant_segment",), ("constant_segment", "offsets"), ("segments",)):
            yield name, f"no {place[-1]}", part.changed(place, MISSING)
        for place in (("constant_segment", "offsets"), ("segments",)):
            yield name, f"empty {place[-1]}", part.changed(place, [])
        offsets = part.tables["constant_segment"]["offsets"]
        yield name, "too few offsets", part.changed(("constant_segment", "offsets"), offsets[:1])
        yield name, "empty segment", part.changed(("segments", 0, "size"), 0)
    part = parts("inline_constants")
    for i, buffer in enumerate(part.tables["constant_buffer"]):
        for length in (0, 1, 7):
            if buffer.get("storage"):
                place = ("constant_buffer", i, "storage")
                yield ("inline_constants", f"{length}B of {i}",
                       part.changed(place, buffer["storage"][:length]))
        if buffer.get("storage"):
            yield "inline_constants", f"nothing of {i}", part.changed(place, MISSING)
    for place in (("constant_buffer",),):
        yield "inline_constants", "no constant_buffer", part.changed(place, MISSING)


@kind("references", "initial value index")
def initial_index():
    name = "counter_initialized"
    for place in constants(name):
        count = len(parts(name).tables["mutable_data_segments"][0]["offsets"])
        for value in beyond(count, 2**16, 2**31, MAX32):
            yield name, f"{place[3]} = {value}", parts(name).changed(place, value)


@kind("references", "mutable data segment")
def mutable_segment():
    name = "counter_initialized"
    part = parts(name)
    entries, segments = len(part.tables["mutable_data_segments"]), len(part.tables["segments"])
    for place in constants(name):
        for value in beyond(entries, 2**31, 2**32, 2**63, MAX64):
            for extra in part.places("ExtraTensorInfo.mutable_data_segments_idx"):
                if extra[:5] == place[:5]:
                    yield name, f"entry {value}", part.changed(extra, value)
    place = ("mutable_data_segments", 0, "segment_index")
    for value in beyond(segments, 2**31, MAX32):
        yield name, f"segment {value}", part.changed(place, value)
    size = part.tables["segments"][part.get(place[:2]).get("segment_index", 0)]["size"]
    for value in (size, size + 1, 2**31, 2**32, 2**63, MAX64):
        offsets = ("mutable_data_segments", 0, "offsets")
        for i in range(1, len(part.get(offsets))):
            yield name, f"offset {value}", part.changed((*offsets, i), value)
    yield name, "no offsets", part.changed(offsets, MISSING)
    yield name, "no segments", part.changed(("mutable_data_segments",), MISSING)


# ---- segments


@kind("references", "segment")
def segment():
    """Yield an offset or an end behind the file, or beyond 32 and 63 bits."""
    for name in (*CONSTANTS, "counter_initialized", "delegate_two_backends", "delegate_named_data"):
        part = parts(name)
        rest = len(part.segments)
        for i in range(len(part.tables["segments"])):
            for field in ("offset", "size"):
                for value in (rest + 1, 2**31, 2**32, 2**32 + rest, 2**63, 2**63 + 1, MAX64 - 7, MAX64):
                    place = ("segments", i, field)
                    yield name, f"segment {i}: {field} {value}", part.changed(place, value)


# ---- planned memory


@kind("references", "planned buffer")
def planned_buffer():
    """Yield buffers that do not exist, and 0, which is reserved."""
    for name in ("add_1", "planned_in_two", "several_chains"):
        part = parts(name)
        count = len(part.tables["execution_plan"][0]["non_const_buffer_sizes"])
        yield from changed(name, "AllocationDetails.memory_id", (0, count, 31, 2**31, MAX32), slice(6))


@kind("references", "planned offset")
def planned_offset():
    for name in ("add_1", "planned_in_two", "several_chains", "dynamic_batch"):
        size = max(parts(name).tables["execution_plan"][0]["non_const_buffer_sizes"])
        yield from changed(name, "AllocationDetails.memory_offset_low",
                           (size, size + 4, 2**31, MAX32 - 3, MAX32), slice(6))
        yield from changed(name, "AllocationDetails.memory_offset_high", (1, 2**31, MAX32), slice(6))


@kind("references", "planned offset: odd", ("NotSupported",))
def planned_odd():
    for name in ("add_1", "planned_in_two"):
        yield from changed(name, "AllocationDetails.memory_offset_low", (1, 2, 3), slice(1))


@kind("references", "size of a planned buffer", (*INVALID, "NotSupported"))
def planned_size():
    for name in ("add_1", "planned_in_two", "several_chains", "dynamic_batch"):
        part = parts(name)
        sizes = part.tables["execution_plan"][0]["non_const_buffer_sizes"]
        for i in range(1, len(sizes)):
            place = ("execution_plan", 0, "non_const_buffer_sizes", i)
            for value in (-1, -(2**31), -(2**63), 0, 1, sizes[i] // 2, 2**30 + 8, 2**31, 2**32,
                          2**32 + sizes[i], 2**63 - 1):
                yield name, f"buffer {i}: {value}", part.changed(place, value)
        place = ("execution_plan", 0, "non_const_buffer_sizes")
        for count in (0, 1, 33, 200):
            yield (name, f"{count} buffers",
                   part.changed(place, [0] * count if count < 2 else (sizes * count)[:count]))


# ---- delegates


@kind("references", "delegate index")
def delegate_index():
    return index_of("DelegateCall.delegate_index", lambda plan, *_: len(plan["delegates"]), DELEGATED)


@kind("references", "argument of a delegate")
def delegate_argument():
    return index_of("DelegateCall.args[]", n_values, DELEGATED)


@kind("references", "processed data", (*INVALID, "NotFound"))
def processed():
    for name in DELEGATED:
        part = parts(name)
        yield from changed(name, "BackendDelegateDataReference.index", (100, 2**31, MAX32))
        yield from changed(name, "BackendDelegate.processed", (MISSING,))
        for field in ("segments", "backend_delegate_data"):
            if part.tables.get(field):
                yield name, f"no {field}", part.changed((field,), MISSING)
                yield name, f"empty {field}", part.changed((field,), [])


@kind("references", "place of processed data", ("Internal", "NotFound", *INVALID))
def processed_place():
    """Yield locations other than tables and segments."""
    for name in DELEGATED:
        yield from changed(name, "BackendDelegateDataReference.location", (2, 3, 127, -1, -128))


@kind("references", "named data", ("InvalidArgument", *INVALID))
def named_data():
    name = "delegate_named_data"
    yield from changed(name, "NamedData.segment_index", (100, 2**31, MAX32))
    yield from changed(name, "NamedData.key", (MISSING,))
