"""Read from an ELF file how much flash a firmware needs."""

import struct
from pathlib import Path

_LOAD = 1
_PROGRAM_HEADER = struct.Struct("<IIIIIIII")
_SECTION_HEADER = struct.Struct("<IIIIIIIIII")


def flash_bytes(path: Path) -> int:
    """Return the bytes that a 32-bit little-endian ELF file puts into memory before it starts.

    Raises ValueError for another kind of file.
    """
    return sum(size for _, size in _loaded(path))


def flash_end(path: Path) -> int:
    """Return the address behind the last of these bytes. Raises ValueError."""
    return max(address + size for address, size in _loaded(path))


def section_bytes(path: Path, names: list[str]) -> int:
    """Return the bytes of the sections of these names. Raises ValueError."""
    data = _read(path)
    (start,) = struct.unpack_from("<I", data, 32)
    size, count, strings = struct.unpack_from("<HHH", data, 46)
    headers = [_SECTION_HEADER.unpack_from(data, start + i * size) for i in range(count)]
    at = headers[strings][4]
    return sum(header[5] for header in headers
               if data[at + header[0] : data.index(b"\0", at + header[0])].decode() in names)


def _read(path: Path) -> bytes:
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x01\x01":
        raise ValueError(f"{path} is not a 32-bit little-endian ELF file")
    return data


def _loaded(path: Path) -> list[tuple[int, int]]:
    """Return (address, bytes) of each part."""
    data = _read(path)
    (start,) = struct.unpack_from("<I", data, 28)
    size, count = struct.unpack_from("<HH", data, 42)
    headers = [_PROGRAM_HEADER.unpack_from(data, start + i * size) for i in range(count)]
    return [(address, size) for kind, _, _, address, size, _, _, _ in headers
            if kind == _LOAD and size]
