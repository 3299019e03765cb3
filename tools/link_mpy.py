#!/usr/bin/env python3
"""Make a native .mpy from an ELF file that was linked with port/natmod/natmod.ld.

The file is linked for address 0, with its relocations kept. MicroPython decides the module's address,
so this tool writes relocations of the .mpy for words that depend on it: words with an address of the
module, or of memory that MicroPython lends to it. Anything else that depends on the address is an
error. So a module works at every address.

The module never reads the section .texts. It goes to the end of the .mpy, where MicroPython does not
read it either, and its addresses are relocated with those of the module. Its last word is its size. The
text of --left-out precedes it, ends with a zero byte and counts in that size.

With --flash there is a second section, .flash, at a fixed address in flash (flash/kernels.ld). The
module may call its functions and hold its addresses, and nothing in the section depends on the module.
It is written to a file of its own, with its header filled in. The module has a copy of the header
(flash/kernels.h).

This file needs the standard library only, since port/natmod/Makefile calls it.

Example: tools/link_mpy.py --arch armv7emsp --names names.h module.elf _picotorch.mpy
"""

import argparse
import re
import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

# The version of the .mpy format: MicroPython 1.23 and newer.
MPY_VERSION, MPY_SUB_VERSION = 6, 3
SMALL_INT_BITS = 31
NATIVE_VIPER, BYTECODE = 4, 2
SCOPE_HAS_RELOCATIONS = 0x10
END_OF_RELOCATIONS = 0xFF

LENT = 0x70000000  # PT_LENT of the script
LENT_STEP = 0x10000
FIRST_SINGLE = 6  # relocation kinds from here on consist of one word each,
MAX_KINDS = 9 + 86  # kinds from 9 on are entries of mp_fun_table_t

SYMTAB, RELA, REL = 2, 4, 9
ALLOC = 2  # a flag of sections that are in memory

FLASH_MAGIC = int.from_bytes(b"ptK1", "little")
FLASH_HEADER = "<4I"  # magic, bytes of all, CRC-32 of what follows, 0


@dataclass(frozen=True)
class Arch:
    """An architecture.

    number: of sys.implementation._mpy. absolute: the relocation of a word that is an address. harmless:
    relocations that do not depend on the module's address. far: calls of a fixed address, for which the
    linker uses an absolute address.
    """

    number: int
    word: int
    absolute: int
    harmless: frozenset
    got: frozenset  # for these relocations, the word is in the global offset table
    far: frozenset = frozenset()


# Numbers from the ELF supplements. Arm: REL32, THM_CALL, BASE_PREL, THM_JUMP24, 11, 8, PREL31. x86-64:
# PC32, PLT32. RISC-V: relocations between two addresses of the module, and resolved ones.
_ARM = (2, frozenset({0, 3, 10, 25, 30, 40, 42, 51, 102, 103}), frozenset({26, 96}),
        frozenset({0, 10, 26, 30}))
_RISCV = (1, frozenset({16, 17, 18, 19, 23, 24, 25, *range(33, 41), 43, 44, 45, *range(51, 58)}),
          frozenset({20}))
ARCHES = {
    "x64": Arch(2, 8, 1, frozenset({2, 4, 24}), frozenset({9, 41, 42})),
    "armv6m": Arch(4, 4, *_ARM),
    "armv7m": Arch(5, 4, *_ARM),
    "armv7emsp": Arch(7, 4, *_ARM),
    "armv7emdp": Arch(8, 4, *_ARM),
    "rv32imc": Arch(11, 4, *_RISCV),
}


class LinkError(Exception):
    """An object that cannot be part of a native module. The message has its location."""


class Elf:
    """Sections, symbols and relocations of an ELF file of 32 or 64 bits."""

    def __init__(self, data):
        self.data = data
        self.is_64 = data[4] == 2
        layout = "<16xHHIQQQIHHHHHH" if self.is_64 else "<16xHHIIIIIHHHHHH"
        header = struct.unpack_from(layout, data)
        start, count, self._names = header[5], header[11], header[12]
        section = struct.Struct("<IIQQQQIIQQ" if self.is_64 else "<IIIIIIIIII")
        self.sections = [section.unpack_from(data, start + i * section.size) for i in range(count)]

    def contents(self, row):
        """Return the bytes of a section."""
        return self.data[row[4] : row[4] + row[5]]

    def name(self, row):
        """Return the name of a section."""
        return self._text(self.sections[self._names], row[0])

    def _text(self, strings, at):
        table = self.contents(strings)
        return table[at : table.index(b"\0", at)].decode()

    def symbols(self):
        """Return [(name, value)] in the order of their numbers."""
        row = next(row for row in self.sections if row[1] == SYMTAB)
        strings = self.sections[row[6]]
        if self.is_64:
            rows = struct.iter_unpack("<IBBHQQ", self.contents(row))
            return [(self._text(strings, name), value) for name, _, _, _, value, _ in rows]
        rows = struct.iter_unpack("<IIIBBH", self.contents(row))
        return [(self._text(strings, name), value) for name, value, _, _, _, _ in rows]

    def relocations(self, target):
        """Return (offset, kind, number of the symbol) of each relocation of section number `target`."""
        for row in self.sections:
            if row[1] in (REL, RELA) and row[7] == target:
                word = "Q" if self.is_64 else "I"
                size = 8 if self.is_64 else 4
                layout = f"<{word}{word}" + (f"{size}x" if row[1] == RELA else "")
                for offset, info in struct.iter_unpack(layout, self.contents(row)):
                    shift = 32 if self.is_64 else 8
                    yield offset, info & ((1 << shift) - 1), info >> shift


def words_to_relocate(elf, arch, target, image):
    """Return the offsets of words that are addresses.

    image: the addresses of the fixed flash image. Raises LinkError for anything else that depends on
    the address.
    """
    symbols = elf.symbols()
    offsets = set()
    for offset, kind, number in elf.relocations(target):
        name, value = symbols[number]
        if kind == arch.absolute:
            if offset % arch.word:
                raise LinkError(f"the address of {name} at {offset:#x} is not aligned")
            offsets.add(offset)
        elif (kind not in arch.got and (kind not in arch.harmless or value >= LENT)
              or value in image and kind not in arch.far):
            raise LinkError(f"relocation {kind} of {name or hex(value)} at {offset:#x}")
    values = dict(symbols)
    return offsets | set(range(values["pt_got_start"], values["pt_got_end"], arch.word))


def relocate(text, arch, offsets, own, image):
    """Return [(offset, kind)], and leave only offsets in words that refer to lent memory.

    own: ranges of the module's addresses.
    """
    layout = "<Q" if arch.word == 8 else "<I"
    relocations = []
    for offset in sorted(offsets):
        (value,) = struct.unpack_from(layout, text, offset)
        if value in image:
            continue
        kind = (value - LENT) // LENT_STEP if value >= LENT else 0
        if kind > MAX_KINDS or not kind and not any(value in addresses for addresses in own):
            raise LinkError(f"{value:#x} at {offset:#x} is no address of the module")
        if kind:
            struct.pack_into(layout, text, offset, (value - LENT) % LENT_STEP)
        relocations.append((offset, kind))
    return relocations


def addresses_of(section):
    """Return the addresses of a section, including the one behind its end."""
    return range(section[3], section[3] + section[5] + 1)


def flash_of(elf, number):
    """Return the bytes of the image in flash, and its addresses.

    Raises LinkError if it depends on other parts.
    """
    section = elf.sections[number]
    addresses = addresses_of(section)
    symbols = elf.symbols()
    for offset, kind, i in elf.relocations(number):
        name, value = symbols[i]
        if kind and value not in addresses:
            raise LinkError(f"the image needs {name or hex(value)} at {offset:#x}")
    size = struct.calcsize(FLASH_HEADER)
    contents = elf.contents(section)[size:]
    header = struct.pack(FLASH_HEADER, FLASH_MAGIC, section[5], zlib.crc32(contents), 0)
    return header + contents, addresses


def number(value):
    """Return a number in the format of an .mpy: seven bits per byte, the highest first."""
    encoded = [value & 0x7F]
    while value := value >> 7:
        encoded.insert(0, 0x80 | value & 0x7F)
    return bytes(encoded)


def encode_relocations(relocations, word):
    """Encode relocations, with one entry for a run of words of the module's own addresses."""
    out = bytearray()
    behind = None
    while relocations:
        offset, kind = relocations[0]
        n = 1
        if kind < FIRST_SINGLE:
            while n < len(relocations) and relocations[n] == (offset + n * word, kind):
                n += 1
        moves = offset != behind
        operation = kind << 1 | (n > 1) if kind < FIRST_SINGLE else kind
        out.append(operation << 1 | moves)
        if moves:
            out += number(offset // word << 1)
        if n > 1:
            out += number(n)
        behind = offset + n * word
        del relocations[:n]
    out.append(END_OF_RELOCATIONS)
    return bytes(out)


def read_names(path):
    """Return the names of names.h, by their indexes: 1, 2, 3 ..."""
    found = re.findall(r"#define MP_QSTR_(\w*) (\d+)", path.read_text())
    if [int(index) for _, index in found] != list(range(1, len(found) + 1)):
        raise LinkError(f"{path} does not count its names")
    return [name for name, _ in found]


def texts_behind(texts, left_out):
    """Return the bytes behind the module: the texts, whose offsets are counted from their end."""
    behind = left_out.encode() + b"\0"
    behind += bytes(-len(behind) % 4)
    return behind + texts[:-4] + struct.pack("<I", len(behind) + len(texts))


def make_mpy(elf, arch, names, filename, left_out):
    """Return the bytes of the .mpy, of its part in RAM, and of the image."""
    in_memory = {elf.name(row): i for i, row in enumerate(elf.sections) if row[2] & ALLOC and row[5]}
    target = in_memory.pop(".text")
    text = bytearray(elf.contents(elf.sections[target]))
    image, addresses = b"", ()
    if ".flash" in in_memory:
        image, addresses = flash_of(elf, in_memory.pop(".flash"))
        offset = dict(elf.symbols())["pt_flash_wanted"]
        struct.pack_into(FLASH_HEADER, text, offset, *struct.unpack_from(FLASH_HEADER, image))
    texts = elf.sections[in_memory.pop(".texts")]
    if in_memory:
        raise LinkError(f"sections beside .text: {', '.join(in_memory)}")
    own = [range(len(text) + 1), addresses_of(texts)]
    offsets = words_to_relocate(elf, arch, target, addresses)
    relocations = relocate(text, arch, offsets, own, addresses)
    out = bytearray([ord("M"), MPY_VERSION, arch.number << 2 | MPY_SUB_VERSION, SMALL_INT_BITS])
    out += number(1 + len(names)) + number(0)
    for name in (filename, *names):
        out += number(len(name) << 1) + name.encode() + b"\0"
    out += number(len(text) << 3 | NATIVE_VIPER - BYTECODE) + text
    out += number(SCOPE_HAS_RELOCATIONS)
    out += encode_relocations(relocations, arch.word) + texts_behind(elf.contents(texts), left_out)
    return bytes(out), len(text), image


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("elf", type=Path)
    parser.add_argument("mpy", type=Path)
    parser.add_argument("--arch", required=True, choices=ARCHES)
    parser.add_argument("--names", required=True, type=Path, help="the header with its MP_QSTR_x")
    parser.add_argument("--left-out", default="", help="what the module is built without")
    parser.add_argument("--flash", type=Path, help="where to write the image for flash")
    arguments = parser.parse_args()
    try:
        mpy, size, image = make_mpy(Elf(arguments.elf.read_bytes()), ARCHES[arguments.arch],
                                    read_names(arguments.names), arguments.mpy.name,
                                    arguments.left_out)
    except LinkError as error:
        sys.exit(f"link_mpy: {arguments.elf}: {error}")
    arguments.mpy.write_bytes(mpy)
    if arguments.flash:
        arguments.flash.write_bytes(image)
        print(f"{arguments.flash}: {len(image):,} B of flash")
    print(f"{arguments.mpy}: {len(mpy):,} B, of which {size:,} B are copied to RAM")


if __name__ == "__main__":
    main()
