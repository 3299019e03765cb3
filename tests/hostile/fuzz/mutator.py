"""Mutate FlatBuffers files along their schema, so that most pass verification.

A change is made in one of three places:

- in the file: a number, an offset, the length of a vector, an omitted field;
- in the tables, read into dicts and written again: parts are removed, repeated, exchanged, or taken
  from another file;
- in plain bytes, as in any other file.
"""

import copy
import random
import struct
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.flatbuffer_builder import FLAT_TENSOR, FOLDER, SCHEMA, SIZES, build  # noqa: E402

BUNDLED = tomllib.loads((FOLDER / "bundled_program.toml").read_text())
SCHEMAS = {schema["file_identifier"].encode(): schema for schema in (SCHEMA, FLAT_TENSOR, BUNDLED)}
FORMATS = {"bool": "<B", "u8": "<B", "i8": "<b", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q",
           "f64": "<d"}
MOST = 4000  # maximum of tables and items that are read from a file
DEPTH = 12
TRIES = 4  # tries to make a change that has an effect
STRUCTURE = ("header", "length", "offset", "slot", "vtable")
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"))


class Tree:
    """The tables of a file as dicts in the format of flatbuffer_builder. places: (format, position) of
    each number, by the name of its kind or field. Raises ValueError or struct.error for other files."""

    def __init__(self, data):
        self.data = data
        self.schema = SCHEMAS.get(bytes(data[4:8]))
        if self.schema is None:
            raise ValueError
        self.left = MOST
        self.places = {}
        self.header = self._header()
        self.root = self._table(self._follow(0), self.schema["root"], 0)

    def _add(self, name, layout, position):
        self.places.setdefault(name, []).append((layout, position))
        return struct.unpack_from(layout, self.data, position)[0]

    def _header(self):
        """Return the header behind the identifier, or b"" if there is none."""
        head = self.schema.get("extended_header") or self.schema.get("header")
        if not head or self.data[8:12] != head["magic"].encode():
            return b""
        size = self._add("header", "<I", 12)
        for position in range(16, min(8 + size, 64), 8):
            self._add("header", "<Q", position)
        return self.data[8 : 8 + min(size, 64)]

    def _follow(self, position):
        offset = self._add("offset", "<I", position)
        if not 0 < offset <= len(self.data) - position - 4:
            raise ValueError
        return position + offset

    def _table(self, position, name, depth):
        self.left -= 1
        if self.left < 0 or depth > DEPTH:
            raise ValueError
        vtable = position - self._add("vtable", "<i", position)
        if vtable < 0:
            raise ValueError
        size = self._add("vtable", "<H", vtable)
        self._add("vtable", "<H", vtable + 2)
        found, slot = {}, 0
        for field, kind in self.schema["table"][name]:
            at = self._slot(position, vtable, size, slot)
            slot += 1
            if kind.startswith("union "):
                member = self._add(field, "<B", at) if at else 0
                at = self._slot(position, vtable, size, slot)
                slot += 1
                members = self.schema["union"][kind[6:]]
                if at and 0 < member <= len(members):
                    member = members[member - 1]
                    found[field] = member, self._table(self._follow(at), member, depth + 1)
            elif at and kind != "skip":
                found[field] = self._value(at, kind, f"{name}.{field}", depth)
        return found

    def _slot(self, position, vtable, size, slot):
        entry = 4 + 2 * slot
        offset = self._add("slot", "<H", vtable + entry) if entry + 2 <= size else 0
        return position + offset if offset else 0

    def _value(self, at, kind, name, depth):
        if kind in SIZES:
            return self._add(name, FORMATS[kind], at)
        target = self._follow(at)
        if kind != "string" and not kind.startswith("["):
            return self._table(target, kind, depth + 1)
        length = self._add("length", "<I", target)
        inner = "u8" if kind == "string" else kind[1:-1]
        if length > len(self.data) - target:
            raise ValueError
        if inner == "u8":
            return bytes(self.data[target + 4 : target + 4 + length])
        self.left -= length
        if self.left < 0:
            raise ValueError
        size = SIZES.get(inner, 4)
        return [self._value(target + 4 + i * size, inner, name, depth) if inner in SIZES
                else self._table(self._follow(target + 4 + i * size), inner, depth + 1)
                for i in range(length)]

    def write(self):
        """Return the file of the dicts, with the header and the bytes that followed the tables."""
        tables = build(self.root, self.schema)
        if not self.header:
            return tables
        header = bytearray(self.header)
        fields = {b"eh00": (8, 16), b"FH01": (16, 24)}  # of the tables' size, of the segments
        size, base = fields[bytes(header[:4])]
        old = struct.unpack_from("<Q", header, base)[0]
        pad = -len(header) % 8
        end = len(tables) + len(header) + pad
        start = -(-end // 16) * 16
        struct.pack_into("<Q", header, size, end if size == 8 else len(tables))
        struct.pack_into("<Q", header, base, start)
        if size == 16:
            struct.pack_into("<Q", header, 8, len(header) + pad)
        root = struct.unpack_from("<I", tables)[0] + len(header) + pad
        front = struct.pack("<I", root) + tables[4:8] + header + bytes(pad) + tables[8:]
        return front + bytes(start - end) + self.data[old:]


# ---- in place


def number(rng, layout, old, size):
    """Return another value for a number of this layout. size: of the file."""
    if layout == "<d":
        return rng.choice((*FLOATS, old + 1, -old, rng.uniform(-100, 100)))
    bits = 8 * struct.calcsize(layout)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if layout[1].islower() else (0, (1 << bits) - 1)
    found = rng.choice((0, 1, -1, 2, rng.randrange(20), rng.randrange(20), old + 1, old - 1, old + 4,
                        old * 2, old // 2, -old, old ^ 1 << rng.randrange(bits), low, high, high - 1,
                        1 << bits // 2, 1 << bits - 2, 1 << rng.randrange(bits), size, size - 4,
                        rng.randrange(size + 8)))
    return found & high if low == 0 else (found - low) % (1 << bits) + low


def in_place(tree, rng):
    """Return the file with a few numbers changed to other values, or to values of places of the same
    name."""
    data = bytearray(tree.data)
    names = sorted(tree.places)
    if rng.random() < 0.75:
        names = [name for name in names if name not in STRUCTURE] or names
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        name = rng.choice(names)
        layout, position = rng.choice(tree.places[name])
        old = struct.unpack_from(layout, data, position)[0]
        if name == "offset" and rng.random() < 0.7:
            at = rng.choice(tree.places["offset"])[1]
            target = at + struct.unpack_from("<I", data, at)[0]
            new = (target - position) % (1 << 32)
        elif name == "slot" and rng.random() < 0.5:
            new = 0
        elif rng.random() < 0.4:
            other = rng.choice(tree.places[name])
            new = struct.unpack_from(layout, data, other[1])[0]
        else:
            new = number(rng, layout, old, len(data))
        struct.pack_into(layout, data, position, new)
    return bytes(data)


# ---- in the tables


def nodes(value, name, into):
    """Return (container, key, name of its kind) of all items in the dicts and lists below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        kind = key if isinstance(value, dict) else name
        into.append((value, key, kind))
        if isinstance(item, tuple):
            nodes(item[1], kind, into)
        elif isinstance(item, (dict, list)):
            nodes(item, kind, into)
    return into


def rearrange(tree, rng, donor):
    """Change a few parts of the tables. donor: nodes of another file with this schema."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = nodes(tree.root, "", [])
        if not found:
            return
        kinds = sorted({kind for _, _, kind in found})
        kind = rng.choice(kinds)
        container, key, _ = rng.choice([node for node in found if node[2] == kind])
        same = [node for node in (donor if rng.random() < 0.5 else found) if node[2] == kind]
        choice = rng.random()
        if choice < 0.5 and same:
            other, at, _ = rng.choice(same)
            if type(other[at]) is type(container[key]):
                container[key] = copy.deepcopy(other[at])
        elif choice < 0.6 and isinstance(container, dict):
            del container[key]
        elif isinstance(container, list):
            change_list(container, key, rng, same)
        elif isinstance(container[key], list):
            change_list(container[key], 0, rng, [])
        elif isinstance(container[key], (int, float)):
            change_number(container, key, rng)


def change_list(items, at, rng, same):
    choice = rng.randrange(5)
    if choice == 0 and items:
        del items[at]
    elif choice == 1 and items:
        items.insert(rng.randrange(len(items) + 1), copy.deepcopy(items[at]))
    elif choice == 2 and same:
        other, key, _ = rng.choice(same)
        if not items or type(other[key]) is type(items[0]):
            items.insert(rng.randrange(len(items) + 1), copy.deepcopy(other[key]))
    elif choice == 3 and len(items) > 1:
        other = rng.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif items and isinstance(items[at], (int, float)):
        change_number(items, at, rng)


def change_number(container, key, rng):
    old = container[key]
    container[key] = (rng.choice(FLOATS) if isinstance(old, float)
                      else rng.choice((0, 1, 2, 3, old + 1, max(old - 1, 0), rng.randrange(16))))


class Mutator:
    """Mutate files. seeds: files that provide parts."""

    def __init__(self, seeds):
        self.donors = {}
        for data in seeds:
            try:
                tree = Tree(data)
            except (ValueError, struct.error, RecursionError):
                continue
            self.donors.setdefault(data[4:8], []).append(tree)

    def mutate(self, data, max_size, seed, plain):
        """Return another file of at most max_size bytes. plain(data, max_size) changes bytes of any
        file."""
        rng = random.Random(seed)
        found = data
        try:
            for _ in range(TRIES):
                found = self._along_schema(data, rng, max_size, plain)
                if found != data:
                    break
        except (ValueError, TypeError, KeyError, struct.error, RecursionError, OverflowError):
            pass
        return found if found != data and len(found) <= max_size else plain(data, max_size)

    def _along_schema(self, data, rng, max_size, plain):
        choice = rng.random()
        if choice < 0.1:
            return plain(data, max_size)
        tree = Tree(data)
        inner = tree.root.get("program") if tree.schema is BUNDLED else None
        if inner and rng.random() < 0.5:
            tree.root["program"] = self.mutate(inner, max_size, rng.random(), plain)
            return tree.write()
        if choice < 0.5:
            return in_place(tree, rng)
        donors = self.donors.get(data[4:8])
        rearrange(tree, rng, nodes(rng.choice(donors).root, "", []) if donors else [])
        return tree.write()
