"""Make files with wrong lengths, headers and structures of tables."""

import struct

from support.file_parts import ALIGNMENT, patched
from support.flatbuffer_builder import SIZES
from support.malformed import INVALID, fixture, kind, parts

# Together these have every table and field of all fixtures
FIXTURES = ("relu", "gelu", "leaky_relu", "constant_pad_negative", "silu", "cat_channels_last",
            "none_input", "embedding", "avg_pool2d", "inline_constants", "unplanned_state",
            "external_state", "dynamic_unplanned_io", "counter_initialized", "delegate_two_backends",
            "delegate_inline", "delegate_named_data", "upsample", "map_over_some_rows",
            "several_chains", "index_put")
WITH_SEGMENTS = ("linear_5", "counter_initialized", "delegate_named_data")
MAX32, MAX64 = 2**32 - 1, 2**64 - 1


def tables():
    """Yield (fixture, table) of the first table of each name."""
    seen = set()
    for name in FIXTURES:
        for table in parts(name).places_of_tables:
            if table.name not in seen:
                seen.add(table.name)
                yield name, table


def fields():
    """Yield (fixture, table, field) of the first of each field of each table."""
    seen = set()
    for name in FIXTURES:
        for table in parts(name).places_of_tables:
            for field in table.fields:
                if (table.name, field.name) not in seen:
                    seen.add((table.name, field.name))
                    yield name, table, field


def numbers(*values, size=4):
    """Return (value, its bytes), each modulo 2 to its size in bits."""
    return [(value, (value % 256**size).to_bytes(size, "little")) for value in values]


def is_offset(field):
    return field.kind not in SIZES


def target(data, field):
    return field.position + int.from_bytes(data[field.position : field.position + 4], "little")


# ---- length


@kind("tables", "truncated")
def truncated():
    """Yield files cut in and behind the identifier, the header, each table, vtable and vector, and the
    segments."""
    for name in ("relu", "inline_constants", *WITH_SEGMENTS):
        part = parts(name)
        ends = {0, 1, 3, 4, 7, 8, 9, 11, 12, 15, 16, 23, 24, 31, 32, 39, 40, len(part.data) - 1}
        for table in part.places_of_tables[::3]:
            ends |= {table.position, table.position + 1, table.vtable + 2}
        if part.has_segments():
            base = part.header["segment_base"]
            ends |= {part.end_of_tables(), base - 1, base, base + 1, base + len(part.segments) // 2}
        for end in sorted(ends):
            if end < len(part.data):
                yield name, f"{end} bytes", part.data[:end]


@kind("tables", "file identifier")
def identifier():
    for text in (b"ET11", b"ET13", b"et12", b"\0\0\0\0", b"FT01", b"BP08", b"ETDP"):
        yield "relu", str(text), patched(fixture("relu").pte, 4, text)


# ---- the header


def header_field(name, field, values, size=8):
    part = parts(name)
    position = part.layout.position(field)
    for value, content in numbers(*values, size=size):
        yield name, f"{field} {value:#x}", patched(part.data, position, content)


@kind("tables", "header: magic")
def magic():
    """Yield other magics. Without a header there are no segments, which these programs need."""
    for name in WITH_SEGMENTS:
        for text in (b"eh01", b"EH00", b"\0\0\0\0", b"FH01"):
            yield name, str(text), patched(fixture(name).pte, 8, text)


@kind("tables", "header: length")
def header_length():
    for name in WITH_SEGMENTS:
        yield from header_field(name, "length", (0, 1, 4, 8, 16, 23), 4)


@kind("tables", "header: size of the program")
def program_size():
    for name in WITH_SEGMENTS:
        size, whole = parts(name).header["program_size"], len(fixture(name).pte)
        yield from header_field(name, "program_size", (
            0, 1, 7, 8, 32, size // 2, size - 8, whole + 1, 2**31, 2**32, 2**32 + size, 2**63,
            2**63 + size, MAX64))


@kind("tables", "header: segment base")
def segment_base():
    for name in WITH_SEGMENTS:
        base, whole = parts(name).header["segment_base"], len(fixture(name).pte)
        yield from header_field(name, "segment_base", (
            0, whole, whole + 1, base + ALIGNMENT, 2**31, 2**32, 2**32 + base, 2**63, 2**63 + base,
            MAX64))


@kind("tables", "header: size of the segments")
def segment_data_size():
    for name in WITH_SEGMENTS:
        size = len(parts(name).segments)
        yield from header_field(name, "segment_data_size", (
            size + 1, size + ALIGNMENT, 2**31, 2**32, 2**32 + size, 2**63, MAX64 - 127, MAX64))


# ---- tables and vtables


@kind("tables", "root offset")
def root():
    for name in ("relu", "linear_5"):
        part = parts(name)
        first = part.places_of_tables[-1].position
        for value, content in numbers(0, 1, 2, 4, 8, first - 4, first + 1, first + 2, first + 4,
                                      len(part.data), len(part.data) - 4, 2**31, 2**31 + first,
                                      MAX32 - 3, MAX32):
            yield name, f"{value:#x}", patched(part.data, 0, content)


@kind("tables", "vtable offset")
def vtable_offset():
    for name, table in tables():
        position, data = table.position, fixture(name).pte
        for value, content in numbers(0, position - table.vtable + 1, position + 1, position + 2,
                                      position - len(data), 2**31 - 1, -(2**31), -1):
            yield name, f"{table.name} at {position}: {value}", patched(data, position, content)


@kind("tables", "vtable size")
def vtable_size():
    for name, table in tables():
        data = fixture(name).pte
        size = int.from_bytes(data[table.vtable : table.vtable + 2], "little")
        for value, content in numbers(0, 1, 2, 3, size + 1, 2**15, 2**16 - 2, 2**16 - 1, size=2):
            yield name, f"{table.name}: {value}", patched(data, table.vtable, content)


@kind("tables", "slot offset")
def slot_offset():
    """Yield offsets to the table's own offset of its vtable, and behind the file."""
    for name, table, field in fields():
        for value, content in numbers(1, 2, 3, 0xFFFC, 0xFFFF, size=2):
            yield (name, f"{table.name}.{field.name}: {value:#x}",
                   patched(fixture(name).pte, field.entry, content))


@kind("tables", "slot offset: odd")
def slot_offset_odd():
    for name, table, field in fields():
        if field.kind not in ("u8", "i8", "bool"):
            for delta in (1, 2, 3):
                content = (field.position - table.position + delta).to_bytes(2, "little")
                yield (name, f"{table.name}.{field.name}: + {delta}",
                       patched(fixture(name).pte, field.entry, content))


@kind("tables", "offset of a table, vector or string")
def offset():
    """Yield offsets that are null, odd, behind the file, to themselves, or backwards to their own table
    and the start."""
    for name, table, field in fields():
        if not is_offset(field):
            continue
        data = fixture(name).pte
        ahead = target(data, field) - field.position
        for value, content in numbers(0, 1, 2, 3, ahead + 1, ahead + 2, ahead + 3,
                                      len(data) - field.position, 2**31, MAX32 - 3,
                                      table.position - field.position, -field.position):
            yield (name, f"{table.name}.{field.name}: {value}",
                   patched(data, field.position, content))


@kind("tables", "offset of an item")
def item_offset():
    """Yield offsets to no table, among them cycles: to the table with the vector, and to the root."""
    for name, table, field in fields():
        if field.kind[0] != "[" or not field.kind[1].isupper():
            continue
        data = fixture(name).pte
        vector = target(data, field)
        if int.from_bytes(data[vector : vector + 4], "little") == 0:
            continue
        root_at = int.from_bytes(data[:4], "little")
        for value, content in numbers(0, 1, 2, 3, 2**31, MAX32 - 3, table.position - vector - 4,
                                      root_at - vector - 4, len(data) - vector - 4):
            yield (name, f"{table.name}.{field.name}[0]: {value}",
                   patched(data, vector + 4, content))


@kind("tables", "length of a vector or string")
def length():
    """Yield one item more than there is room for, and huge lengths."""
    for name, table, field in fields():
        if field.kind[0] != "[" and field.kind != "string":
            continue
        part = parts(name)
        vector = target(part.data, field)
        size = 1 if field.kind == "string" else SIZES.get(field.kind[1:-1], 4)
        room = (part.end_of_tables() - vector - 4) // size
        for value, content in numbers(room + 1, 2**29, 2**30, 2**31 - 1, 2**31, MAX32):
            yield (name, f"{table.name}.{field.name}: {value}",
                   patched(part.data, vector, content))


@kind("tables", "string without an end")
def unterminated():
    for name, table, field in fields():
        if field.kind == "string":
            data = fixture(name).pte
            string = target(data, field)
            end = string + 4 + int.from_bytes(data[string : string + 4], "little")
            yield name, f"{table.name}.{field.name}", patched(data, end, b"x")


@kind("tables", "misaligned vector or string")
def misaligned():
    """Yield files with an unaligned copy behind the tables, and no other fault."""
    for name, table, field in fields():
        if field.kind != "string" and not (field.kind[0] == "[" and field.kind[1].islower()):
            continue
        part = parts(name)
        vector, end = target(part.data, field), part.end_of_tables()
        content = part.data[vector:end]
        for shift in (1, 2, 3):
            at = -(-end // 8) * 8 + shift
            data = part.grown(bytes(at - end) + content)
            yield (name, f"{table.name}.{field.name} at {at}",
                   patched(data, field.position, (at - field.position).to_bytes(4, "little")))


# Without consequence, or another valid program
OVERLAPS = {("inputs", "non_const_buffer_sizes"), ("outputs", "non_const_buffer_sizes"),
            ("chains", "operators")}
UNREAD = {"container_meta_type", "delegates"}


@kind("tables", "overlapping tables", (*INVALID, "InvalidArgument", "NotFound", "NotSupported"))
def overlapping():
    """Yield tables in which a field refers to the target of another field."""
    for name, table in tables():
        if table.name not in ("ExecutionPlan", "Tensor"):
            continue
        data = fixture(name).pte
        found = [field for field in table.fields if is_offset(field) and field.name not in UNREAD]
        for one in found:
            for other in found:
                if one.kind != other.kind and (one.name, other.name) not in OVERLAPS:
                    offset = struct.pack("<I", (target(data, other) - one.position) % 2**32)
                    yield (name, f"{table.name}.{one.name} is {other.name}",
                           patched(data, one.position, offset))


@kind("tables", "tables shared again and again")
def shared():
    """Yield far more tables, by references, than the file has bytes."""
    for name in ("relu", "linear_5", "several_chains"):
        for plans, chains, instructions in ((1000, 1000, 1000), (1, 3000, 3000), (3000, 1, 3000)):
            def change(tables, counts=(plans, chains, instructions)):
                plan = tables["execution_plan"][0]
                chain = plan["chains"][0]
                chain["instructions"] = chain["instructions"][:1] * counts[2]
                plan["chains"] = [chain] * counts[1]
                tables["execution_plan"] = [plan] * counts[0]

            yield name, f"{plans} plans, {chains} chains", parts(name).edited(change)
