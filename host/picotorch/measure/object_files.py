"""Read object files and archives of a 32-bit Arm build: sections and their references."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION = struct.Struct("<IIIIIIIIII")
_SYMBOL = struct.Struct("<IIIBBH")
_RELOCATION = struct.Struct("<II")
_ARCHIVE = b"!<arch>\n"
_MEMBER_HEADER = 60

_SYMTAB, _NOBITS, _REL = 2, 8, 9
_ALLOC, _MERGE_STRINGS = 0x2, 0x30
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00
_LOCAL = 0
_ABS32 = 2  # the only relocation whose addend is needed here: the offset in a section of strings

_Row = tuple[int, ...]  # of the table of sections


@dataclass
class Section:
    """A section that is part of the firmware. `strings`: the linker merges its strings with others."""

    name: str
    data: bytes
    size: int
    strings: bool
    references: list[tuple[str | int, int]] = field(default_factory=list)
    """(name of a symbol elsewhere, or number of a section of this object; offset in the section)"""


@dataclass
class ObjectFile:
    """`sections` by number; `defines`: name of a global symbol -> (section, offset)."""

    path: str
    sections: dict[int, Section]
    defines: dict[str, tuple[int, int]]


def read_objects(path: Path) -> list[ObjectFile]:
    """Read the object file at `path`, or the members of the archive there.

    Raises ValueError for another file.
    """
    data = path.read_bytes()
    if data.startswith(_ARCHIVE):
        return [_read(f"{path}({name})", member) for name, member in _members(data)]
    return [_read(str(path), data)]


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Return (name, contents) of the object files of an archive."""
    at, names = len(_ARCHIVE), b""
    while at + _MEMBER_HEADER <= len(data):
        name, size = data[at : at + 16].rstrip(), int(data[at + 48 : at + 58])
        at += _MEMBER_HEADER
        member = data[at : at + size]
        if name == b"//":
            names = member
        elif member.startswith(b"\x7fELF"):
            if name.startswith(b"/"):
                name = names[int(name[1:]) :].split(b"\n", 1)[0]
            yield name.decode().rstrip("/"), member
        at += size + size % 2


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _read(path: str, data: bytes) -> ObjectFile:
    if data[:6] != b"\x7fELF\x01\x01":
        raise ValueError(f"{path} is not a 32-bit little-endian ELF file")
    header = _HEADER.unpack_from(data)
    start, count, names_at = header[6], header[12], header[13]
    rows = [_SECTION.unpack_from(data, start + i * _SECTION.size) for i in range(count)]

    def contents(row: _Row) -> bytes:
        return data[row[4] : row[4] + row[5]]

    names = contents(rows[names_at])
    sections = {
        i: Section(_text(names, row[0]), contents(row), row[5],
                   row[2] & _MERGE_STRINGS == _MERGE_STRINGS)
        for i, row in enumerate(rows) if row[2] & _ALLOC and row[1] != _NOBITS
    }
    symbols = _symbols(rows, contents)
    for row in rows:
        if row[1] == _REL and row[7] in sections:
            _add_references(sections[row[7]], contents(row), symbols)
    defines = {name: (section, value & ~1) for name, section, value, binding in symbols
               if name and binding != _LOCAL and _UNDEFINED < section < _FIRST_RESERVED}
    return ObjectFile(path, sections, defines)


def _symbols(rows: list[_Row], contents: Callable[[_Row], bytes]) -> list[tuple[str, int, int, int]]:
    """Return (name, section, value, binding) of each symbol."""
    found = []
    for row in rows:
        if row[1] == _SYMTAB:
            names = contents(rows[row[6]])
            for name, value, _, info, _, section in _SYMBOL.iter_unpack(contents(row)):
                found.append((_text(names, name), section, value, info >> 4))
    return found


def _add_references(section: Section, relocations: bytes,
                    symbols: list[tuple[str, int, int, int]]) -> None:
    for offset, info in _RELOCATION.iter_unpack(relocations):
        name, defined_in, value, _ = symbols[info >> 8]
        addend = struct.unpack_from("<I", section.data, offset)[0] if info & 0xFF == _ABS32 else 0
        if defined_in == _UNDEFINED:
            section.references.append((name, 0))
        else:
            section.references.append((defined_in, (value + addend) & 0xFFFFFFFF))
