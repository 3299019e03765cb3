"""Make malformed .ptd files, for programs with external tensors."""

import functools

from support import file_parts
from support.file_parts import MISSING, patched
from support.flatbuffer_builder import SIZES
from support.malformed import fixture, kind, parts
from support.malformed_references import MAX32, MAX64
from support.malformed_tables import numbers, target

FIXTURES = ("external_state", "external_two_files", "external_weights")
REFUSED = ("InvalidExternalData",)
LONG = b"x" * 5000


@functools.cache
def data_parts(name):
    """Return the parts of the first data file of a fixture."""
    return file_parts.data_file(fixture(name).data[0])


def with_data(name, label, data):
    """Return the fixture with another first data file."""
    return name, f".ptd: {label}", fixture(name).pte, [data, *fixture(name).data[1:]]


def changed(name, where, values):
    part = data_parts(name)
    for place in part.places(where):
        for value in values(part, place) if callable(values) else values:
            path = ".".join(str(key) for key in place)
            shown = "nothing" if value is MISSING else str(value)[:40]
            yield with_data(name, f"{path} = {shown}", part.changed(place, value))


@kind("data", "data file: truncated", (*REFUSED, "InvalidArgument", "NotFound"))
def truncated():
    for name in FIXTURES:
        part = data_parts(name)
        ends = {0, 1, 4, 8, 11, 12, 16, 20, 28, 36, 44, 47, 48, 49, len(part.data) - 1}
        for table in part.places_of_tables:
            ends |= {table.position, table.vtable + 2}
        base = part.header["segment_base"]
        for end in sorted(ends | {part.end_of_tables(), base - 1, base}):
            yield with_data(name, f"{end} bytes", part.data[:end])


@kind("data", "data file: identifier and magic", (*REFUSED, "NotFound"))
def identifier():
    for name in FIXTURES:
        for position, texts in ((4, (b"FT00", b"FT02", b"ET12", b"\0\0\0\0")),
                                (8, (b"FH00", b"FH02", b"eh00", b"\0\0\0\0"))):
            for text in texts:
                yield with_data(name, f"{text} at {position}",
                                patched(data_parts(name).data, position, text))
        yield name, ".ptd: a program", fixture(name).pte, [fixture(name).pte]


@kind("data", "data file: header", (*REFUSED, "InvalidArgument"))
def header():
    for name in FIXTURES:
        part = data_parts(name)
        size, base, length = len(part.data), part.header["segment_base"], len(part.segments)
        wrong = {"length": (0, 1, 39), "flatbuffer_offset": (4, 8, size, size + 1, 2**32, 2**63, MAX64),
                 "flatbuffer_size": (0, 8, 100, size + 1, 2**32, 2**32 + 200, 2**63, MAX64),
                 "segment_base": (base + 1, size + 1, 2**32, 2**32 + base, 2**63, MAX64),
                 "segment_data_size": (0, 1, length + 1, 2**32, 2**32 + length, 2**63, MAX64)}
        for field, values in wrong.items():
            width = 4 if field == "length" else 8
            for value, content in numbers(*values, size=width):
                yield with_data(name, f"{field} {value:#x}",
                                patched(part.data, part.layout.position(field), content))


@kind("data", "data file: tables", REFUSED)
def tables():
    """Yield other vtables, slots, offsets and lengths of each table of a file."""
    for name in FIXTURES[:2]:
        part = data_parts(name)
        data, seen = part.data, set()
        for value, content in numbers(0, 1, 2, 4, len(data), MAX32):
            yield with_data(name, f"root {value}", patched(data, 0, content))
        for table in part.places_of_tables:
            if table.name in seen:
                continue
            seen.add(table.name)
            for value, content in numbers(0, table.position + 1, -len(data), 2**31 - 1, -(2**31)):
                yield with_data(name, f"vtable of {table.name}: {value}",
                                patched(data, table.position, content))
            for value, content in numbers(0, 2, 3, 2**15, 2**16 - 1, size=2):
                yield with_data(name, f"size of the vtable of {table.name}: {value}",
                                patched(data, table.vtable, content))
            for field in table.fields:
                yield from fields(name, part, table, field)


def fields(name, part, table, field):
    data, label = part.data, f"{table.name}.{field.name}"
    for value, content in numbers(1, 2, 0xFFFC, 0xFFFF, size=2):
        yield with_data(name, f"slot of {label}: {value}", patched(data, field.entry, content))
    if field.kind in SIZES:
        return
    for value, content in numbers(0, 1, 2, 3, len(data), 2**31, MAX32 - 3, -field.position,
                                  table.position - field.position):
        yield with_data(name, f"offset of {label}: {value}", patched(data, field.position, content))
    if field.kind == "string" or field.kind.startswith("["):
        for value, content in numbers(len(data), 2**30, 2**31, MAX32):
            yield with_data(name, f"length of {label}: {value}",
                            patched(data, target(data, field), content))


@kind("data", "data file: a schema version other than 0", ("NotSupported",))
def version():
    for name in FIXTURES:
        for value in (1, 2, 2**31, MAX32):
            yield with_data(name, f"version {value}", data_parts(name).changed(("version",), value))


@kind("data", "data file: keys", (*REFUSED, "InvalidArgument", "NotFound"))
def keys():
    """Yield keys that are null, empty, long, not UTF-8, or others: none is the tensor's."""
    for name in FIXTURES:
        yield from changed(name, "NamedData.key", (MISSING, b"", LONG, b"\xff\xfe", b"x", b"0\0"))
        for field in ("named_data", "segments"):
            yield with_data(name, f"no {field}", data_parts(name).changed((field,), MISSING))
            yield with_data(name, f"empty {field}", data_parts(name).changed((field,), []))


@kind("data", "data file: key twice", ("InvalidArgument",))
def twice():
    for name in ("external_two_files", "external_two_methods"):
        data = fixture(name).data
        yield name, ".ptd: the same file twice", fixture(name).pte, [data[0], data[0]]


@kind("data", "data file: segments", REFUSED)
def segments():
    for name in FIXTURES:
        part = data_parts(name)
        rest = len(part.segments)
        yield from changed(name, "NamedData.segment_index", (100, 2**31, MAX32))
        for field in ("offset", "size"):
            yield from changed(name, f"DataSegment.{field}", (
                rest + 1, 2**31, 2**32, 2**32 + rest, 2**63, MAX64 - 7, MAX64))
        yield from changed(name, "DataSegment.size", (0, 1, 3))


@kind("data", "data file: place of constant data", REFUSED)
def odd():
    """Yield data that is not at a multiple of 4, which would be used in place."""
    for name in ("external_two_files", "external_weights"):
        for shift in (1, 2, 3):
            part = data_parts(name)

            def change(tables, shift=shift):
                for segment in tables["segments"]:
                    segment["offset"] = segment.get("offset", 0) + shift
                    segment["size"] -= shift

            yield with_data(name, f"+ {shift}", part.edited(change))


@kind("data", "data file: layout of a tensor", REFUSED)
def layout():
    for name in FIXTURES:
        yield from changed(name, "NamedData.tensor_layout", (MISSING, {}))
        yield from changed(name, "TensorLayout.scalar_type", (0, 7, 21, 127, -1))
        yield from changed(name, "TensorLayout.sizes", (MISSING, [], [1] * 17, [2**30] * 4, [1] * 300))
        yield from changed(name, "TensorLayout.sizes[]", lambda part, place: (
            -1, 0, part.get(place) + 1, 2**31 - 1, -(2**31)))
        yield from changed(name, "TensorLayout.dim_order", lambda part, place: (
            MISSING, b"", bytes([255]) * len(part.get(place)), part.get(place) + b"\0", bytes(16)))


@kind("data", "data file: one key many times", (*REFUSED, "InvalidArgument"))
def many_keys():
    name = "external_two_files"
    for count in (2, 1000, 50000):
        def change(tables, count=count):
            other = dict(tables["named_data"][0], key=b"x")
            tables["named_data"] = [other] * count

        yield with_data(name, f"{count} keys", data_parts(name).edited(change))


@kind("data", "data file: left out", ("InvalidState", "InvalidExternalData", "NotFound"))
def missing():
    for name in (*FIXTURES, "external_two_methods"):
        yield name, "no .ptd", fixture(name).pte, []
        if len(fixture(name).data) > 1:
            for i in range(len(fixture(name).data)):
                yield name, f".ptd {i} alone", fixture(name).pte, [fixture(name).data[i]]


@kind("data", "data file: for another program", ("InvalidExternalData", "NotFound"))
def another():
    for name in FIXTURES:
        for other in FIXTURES:
            if other != name:
                yield name, f".ptd: that of {other}", fixture(name).pte, fixture(other).data


@kind("data", "external tensor that is no such one", (*REFUSED, "InvalidProgram", "NotFound"))
def program_side():
    """Yield programs that need another dtype, other sizes or another dim order than the file has."""
    for name in FIXTURES:
        part = parts(name)
        for extra in part.places("ExtraTensorInfo"):
            tensor = extra[:-1]
            if part.get(extra).get("location") != 1:
                continue
            yield name, "scalar type", part.changed((*tensor, "scalar_type"), 7)
            for i, size in enumerate(part.get(tensor)["sizes"]):
                yield name, f"size {i}", part.changed((*tensor, "sizes", i), size + 1)
