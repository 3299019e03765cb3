"""Build .pte and .ptd files with Google's flatbuffers package, from dicts, along schema/program.toml
and schema/flat_tensor.toml.

    build({"version": 0, "execution_plan": [{"name": "forward", "values": [int_value(3)], ...}]})
    build_data({"segments": [{"offset": 0, "size": 16}], "named_data": [...]}, weights)

A table is a dict of its fields; a union is `(member name, dict)`. The same dict in two places becomes
one table with two references. Nothing is checked, so a test can write files that no exporter would.
"""

import pathlib
import struct
import tomllib

import flatbuffers

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "schema"
SCHEMA = tomllib.loads((FOLDER / "program.toml").read_text())
FLAT_TENSOR = tomllib.loads((FOLDER / "flat_tensor.toml").read_text())
SIZES = {"bool": 1, "u8": 1, "i8": 1, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "f64": 8}


class _Builder(flatbuffers.Builder):
    """Write tables. `written`: offsets of the tables by the id of their dicts, which the caller keeps
    alive."""

    def __init__(self, size, schema):
        super().__init__(size)
        self.schema = schema
        self.written = {}


_PREPEND = {"bool": _Builder.PrependBool, "u8": _Builder.PrependUint8, "i8": _Builder.PrependInt8,
            "i32": _Builder.PrependInt32, "u32": _Builder.PrependUint32, "i64": _Builder.PrependInt64,
            "u64": _Builder.PrependUint64, "f64": _Builder.PrependFloat64}


def _bytes(builder, value):
    """Write bytes. Eight or more begin at a multiple of 8, for elements of 8 bytes."""
    builder.StartVector(1, len(value), 8 if len(value) >= 8 else 1)
    builder.head -= len(value)
    builder.Bytes[builder.head : builder.head + len(value)] = value
    return builder.EndVector()


def _object(builder, kind, value):
    """Write the target of a field of this kind, and return its offset."""
    if kind == "string":
        return builder.CreateString(value)
    if not kind.startswith("["):
        return _table(builder, kind, value)
    inner = kind[1:-1]
    if inner == "u8":
        return _bytes(builder, bytes(value))
    if inner in SIZES:
        builder.StartVector(SIZES[inner], len(value), SIZES[inner])
        for item in reversed(value):
            _PREPEND[inner](builder, item)
        return builder.EndVector()
    offsets = [_table(builder, inner, item) for item in value]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _table(builder, name, fields):
    """Write a table once, and return its offset."""
    written = builder.written.get(id(fields))
    if written is None:
        written = builder.written[id(fields)] = _new_table(builder, name, fields)
    return written


def _new_table(builder, name, fields):
    slots, slot = [], 0
    for field, kind in builder.schema["table"][name]:
        union = kind.startswith("union ")
        value = fields.get(field)
        if union:
            if value is not None:
                member, content = value
                slots.append((slot, "u8", builder.schema["union"][kind[6:]].index(member) + 1))
                slots.append((slot + 1, "offset", _table(builder, member, content)))
            slot += 2
            continue
        if value is not None and kind != "skip":
            scalar = kind in SIZES
            slots.append((slot, kind if scalar else "offset",
                          value if scalar else _object(builder, kind, value)))
        slot += 1
    builder.StartObject(slot)
    for place, kind, value in slots:
        if kind == "offset":
            builder.PrependUOffsetTRelativeSlot(place, value, 0)
        else:
            _PREPEND[kind](builder, value)
            builder.Slot(place)
    return builder.EndObject()


def build(program, schema=SCHEMA):
    """Return the bytes of a program from a dict."""
    builder = _Builder(1024, schema)
    root = _table(builder, schema["root"], program)
    builder.Finish(root, file_identifier=schema["file_identifier"].encode())
    return bytes(builder.Output())


def build_data(tables, data=b"", **header):
    """Return the bytes of a .ptd file from a dict of tables and the data of its segments, which begins
    at a multiple of 128. `header`: fields of the header with other values."""
    flat = build(tables, FLAT_TENSOR)
    length = 48  # length of the header with its padding
    base = -(-(len(flat) + length) // 128) * 128
    fields = {"magic": b"FH01", "length": 40, "flatbuffer_offset": length,
              "flatbuffer_size": len(flat), "segment_base": base, "segment_data_size": len(data)}
    head = struct.pack("<4sI4Q8x", *(fields | header).values())
    root = int.from_bytes(flat[:4], "little") + length
    tables = root.to_bytes(4, "little") + flat[4:8] + head + flat[8:]
    return tables.ljust(base, b"\0") + data


def int_value(value):
    return {"val": ("Int", {"int_val": value})}


def bool_value(value):
    return {"val": ("Bool", {"bool_val": value})}


def double_value(value):
    return {"val": ("Double", {"double_val": value})}


def string_value(value):
    return {"val": ("String", {"string_val": value})}


NULL_VALUE = {"val": ("Null", {})}
