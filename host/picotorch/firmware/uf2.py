"""Read and write UF2 files, which the boot loaders of RP2040 and RP2350 accept.

A file consists of 512-byte blocks, each with 256 bytes of flash, their address, and the family of the
chip.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from picotorch.errors import INVALID_ARGUMENT, fail

BLOCK = 512
DATA = 256  # bytes in a block; a page of flash
_HEADER = "<8I"
_MAGIC, _MAGIC_2, _MAGIC_END = 0x0A324655, 0x9E5D5157, 0x0AB16F30
_HAS_FAMILY = 0x2000
_LARGEST = BLOCK - 32 - 4  # bytes of flash in a block
# Family of the block before an RP2350's, pico-sdk's workaround for erratum E10
ABSOLUTE = 0xE48BFF57


@dataclass(frozen=True)
class Block:
    """A block of 256 bytes of flash, or up to 476 from other builders. family: None if it has none."""

    address: int
    data: bytes
    family: int | None


def write(parts: dict[int, bytes], family: int) -> bytes:
    """Return a UF2 file of {address: bytes}. The addresses are multiples of 256.

    The rest of the last page of a part is filled with 0xff, as in erased flash.
    """
    pages = [(address + at, data[at:at + DATA].ljust(DATA, b"\xff"))
             for address, data in sorted(parts.items()) for at in range(0, len(data), DATA)]
    blocks = []
    for number, (address, data) in enumerate(pages):
        header = struct.pack(_HEADER, _MAGIC, _MAGIC_2, _HAS_FAMILY, address, DATA, number,
                             len(pages), family)
        blocks.append((header + data).ljust(BLOCK - 4, b"\0") + struct.pack("<I", _MAGIC_END))
    return b"".join(blocks)


def read(file: bytes) -> Iterator[Block]:
    """Return the blocks of a UF2 file, or of several, one behind the other.

    Raises InvalidArgument for another kind of file or an incomplete one.
    """
    if not file or len(file) % BLOCK:
        raise fail(INVALID_ARGUMENT, f"{len(file)} bytes are not a UF2 file")
    expected, of = 0, None  # number of the next block, and the count; None: any
    for number, at in enumerate(range(0, len(file), BLOCK)):
        magic, magic_2, flags, address, size, index, count, family = struct.unpack_from(
            _HEADER, file, at)
        (end,) = struct.unpack_from("<I", file, at + BLOCK - 4)
        if (magic, magic_2, end) != (_MAGIC, _MAGIC_2, _MAGIC_END) or not 0 < size <= _LARGEST:
            raise fail(INVALID_ARGUMENT, f"block {number} is not a UF2 block")
        family = family if flags & _HAS_FAMILY else None
        if family != ABSOLUTE:
            if index != expected or count != (of or count) or index >= count:
                raise fail(INVALID_ARGUMENT, f"block {number} says that it is {index} of {count}")
            expected, of = (0, None) if index + 1 == count else (index + 1, count)
        yield Block(address, file[at + 32:at + 32 + size], family)
    if of is not None:
        raise fail(INVALID_ARGUMENT, f"{expected} of {of} blocks are there")
