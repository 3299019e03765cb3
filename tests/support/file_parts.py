"""Read real files into dicts: their tables as flatbuffer_builder accepts them, and the place of each
table.

    part = Parts(fixture.pte)                     # PROGRAM unless `format` names another
    for place in part.places("KernelCall.op_index"):
        data = part.changed(place, 7)             # the file with that one field changed

A place is a path of keys and indexes into `part.tables`. A file that is built again has the same tables
and data, in another order of bytes.
"""

import copy
import dataclasses
import struct
import tomllib
from collections.abc import Callable, Iterator

from support.flatbuffer_builder import FLAT_TENSOR, FOLDER, SCHEMA, SIZES, build

BUNDLED = tomllib.loads((FOLDER / "bundled_program.toml").read_text())
LAYOUTS = {"bool": "?", "u8": "B", "i8": "b", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
           "f64": "d"}
HEADER_POSITION = 8
ALIGNMENT = 128  # alignment of the data behind the tables
MISSING = object()  # for Parts.changed: omits the field


@dataclasses.dataclass(frozen=True)
class Header:
    """The header between the file identifier and the tables. `fields`: in their order. `size`: the
    field with the bytes of the tables. `padded`: bytes of the whole header."""

    magic: bytes
    layout: str
    fields: tuple[str, ...]
    size: str
    padded: int

    def position(self, field: str) -> int:
        """Return the position of a field in the file."""
        before = self.layout[: self.fields.index(field)]
        return HEADER_POSITION + 4 + struct.calcsize("<" + before)


HEADERS = {
    "ET12": Header(b"eh00", "IQQQ", ("length", "program_size", "segment_base", "segment_data_size"),
                   "program_size", 32),
    "FT01": Header(b"FH01", "IQQQQ", ("length", "flatbuffer_offset", "flatbuffer_size", "segment_base",
                                      "segment_data_size"), "flatbuffer_size", 48),
}


@dataclasses.dataclass(frozen=True)
class Field:
    """A field that its table contains. entry: position of its offset in the vtable. position: of the
    field itself. kind: as in the schema."""

    name: str
    kind: str
    entry: int
    position: int


@dataclasses.dataclass(frozen=True)
class Table:
    """A table and its position."""

    name: str
    position: int
    vtable: int
    fields: tuple[Field, ...]


class Parts:
    """The parts of a file. `tables`: the dict of its root. `segments`: the bytes from its segment base
    on. `header`: the fields of its header by name, or {} without a header."""

    def __init__(self, data: bytes, schema: dict = SCHEMA):
        self.data, self.schema = bytes(data), schema
        self.layout = HEADERS.get(schema["file_identifier"])
        self.header = self._read_header()
        self.segments = self.data[self.header["segment_base"] :] if self.has_segments() else b""
        self.places_of_tables = []
        self._numbers = {}  # position and layout of the numbers in tables and vectors, by place
        self.tables = self._table(schema["root"], self._u32(0), ())

    def has_segments(self) -> bool:
        return self.header.get("segment_base", 0) > 0

    # ---- reading

    def _read_header(self):
        if self.layout is None or self.data[8:12] != self.layout.magic:
            return {}
        values = struct.unpack_from("<" + self.layout.layout, self.data, HEADER_POSITION + 4)
        return dict(zip(self.layout.fields, values, strict=True))

    def _u16(self, position):
        return int.from_bytes(self.data[position : position + 2], "little")

    def _u32(self, position):
        return int.from_bytes(self.data[position : position + 4], "little")

    def _table(self, name, position, place):
        vtable = position - struct.unpack_from("<i", self.data, position)[0]
        found, fields, slot, member = {}, [], 0, 0
        for field, kind in self.schema["table"][name]:
            of_union = [("u8", field + "_type")] if kind.startswith("union ") else []
            for part_kind, part_name in (*of_union, (kind, field)):
                entry = vtable + 4 + 2 * slot
                slot += 1
                offset = self._u16(entry) if entry + 2 <= vtable + self._u16(vtable) else 0
                if offset and kind != "skip":
                    fields.append(Field(part_name, part_kind, entry, position + offset))
                    if part_name != field:
                        member = self.data[position + offset]
                    else:
                        found[field] = self._value(kind, position + offset, member, (*place, field))
        self.places_of_tables.append(Table(name, position, vtable, tuple(fields)))
        return found

    def _value(self, kind, position, member, place):
        if kind in SIZES:
            self._numbers[place] = position, "<" + LAYOUTS[kind]
            return struct.unpack_from("<" + LAYOUTS[kind], self.data, position)[0]
        target = position + self._u32(position)
        if kind.startswith("union "):
            name = self.schema["union"][kind[6:]][member - 1]
            return name, self._table(name, target, (*place, 1))
        if kind == "string":
            return self.data[target + 4 : target + 4 + self._u32(target)]
        if not kind.startswith("["):
            return self._table(kind, target, place)
        inner, count = kind[1:-1], self._u32(target)
        if inner == "u8":
            return self.data[target + 4 : target + 4 + count]
        places = [(target + 4 + SIZES.get(inner, 4) * i, (*place, i)) for i in range(count)]
        if inner in SIZES:
            return [self._value(inner, at, 0, item) for at, item in places]
        return [self._table(inner, at + self._u32(at), item) for at, item in places]

    # ---- places

    def places(self, where: str) -> Iterator[tuple]:
        """Yield the paths to "Table.field", "Table.field[]" or "Table".

        A field: in every table that contains it, and for a number also in every table that omits it
        because it is 0. Items: of the vectors in that field. A table: all tables of that name.
        """
        name, _, field = where.partition(".")
        items = field.endswith("[]")
        field = field.removesuffix("[]")
        kind = dict(self.schema["table"][name]).get(field)
        for path in self._paths(self.schema["root"], self.tables, (), name):
            table = self.get(path)
            if items:
                yield from ((*path, field, i) for i in range(len(table.get(field, ()))))
            elif not field:
                yield path
            elif field in table or kind in SIZES:
                yield (*path, field)

    def _paths(self, name, table, path, wanted):
        """Yield the paths to the tables of the wanted name in a table."""
        if name == wanted:
            yield path
        for field, kind in self.schema["table"][name]:
            if field not in table or kind in SIZES or kind in ("string", "skip"):
                continue
            here = (*path, field)
            if kind.startswith("union "):
                yield from self._paths(*table[field], (*here, 1), wanted)
            elif not kind.startswith("["):
                yield from self._paths(kind, table[field], here, wanted)
            elif kind[1:-1] not in SIZES:
                for i, item in enumerate(table[field]):
                    yield from self._paths(kind[1:-1], item, (*here, i), wanted)

    def get(self, place: tuple):
        found = self.tables
        for key in place:
            found = found[key]
        return found

    # ---- writing

    def changed(self, place: tuple, value) -> bytes:
        """Return the file with another value at a place; MISSING omits the field. A number is changed
        in place; else the file is built again."""
        if place in self._numbers and value is not MISSING:
            position, layout = self._numbers[place]
            return patched(self.data, position, struct.pack(layout, value))

        def change(tables):
            for key in place[:-1]:
                tables = tables[key]
            if value is MISSING:
                del tables[place[-1]]
            else:
                tables[place[-1]] = value

        return self.edited(change)

    def edited(self, change: Callable[[dict], None], **header) -> bytes:
        """Return the file after change(tables), with these fields of the header unchanged."""
        tables = copy.deepcopy(self.tables)
        change(tables)
        return self.together(tables, **header)

    def together(self, tables: dict | None = None, **header) -> bytes:
        """Return the bytes of a file with these tables, and the segments and kind of header of this
        one."""
        flat = build(self.tables if tables is None else tables, self.schema)
        if not self.header:
            return flat
        padded = self.layout.padded
        root = int.from_bytes(flat[:4], "little") + padded
        return self._with_header(root.to_bytes(4, "little") + flat[4:8] + bytes(padded) + flat[8:],
                                 **header)

    def grown(self, extra: bytes) -> bytes:
        """Return the file with more bytes behind its tables."""
        if not self.header:
            return self.data + extra
        return self._with_header(self.data[: self.end_of_tables()] + extra)

    def end_of_tables(self) -> int:
        if not self.header:
            return len(self.data)
        return self.header.get("flatbuffer_offset", 0) + self.header[self.layout.size]

    def _with_header(self, flat, **header):
        """Return the file of these tables, which have room for the header, and the segments."""
        base = -(-len(flat) // ALIGNMENT) * ALIGNMENT if self.has_segments() else 0
        found = self.header | {self.layout.size: len(flat), "segment_base": base} | header
        if "flatbuffer_offset" in found and "flatbuffer_offset" not in header:
            found["flatbuffer_offset"] = 0
        head = struct.pack("<4s" + self.layout.layout, self.layout.magic,
                           *[found[key] for key in self.layout.fields])
        return patched(flat, HEADER_POSITION, head).ljust(base, b"\0") + self.segments


def program(data: bytes) -> Parts:
    return Parts(data)


def data_file(data: bytes) -> Parts:
    return Parts(data, FLAT_TENSOR)


def bundled(data: bytes) -> Parts:
    return Parts(data, BUNDLED)


def patched(data: bytes, position: int, value: bytes) -> bytes:
    """Return the data with other bytes at a position."""
    return data[:position] + value + data[position + len(value) :]
