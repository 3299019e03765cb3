"""Define the job: everything that reaches a board for one boot, as one blob in its memory.

All integers are little-endian u32. The header has magic "PTJB", version, size of the job in bytes, and
number of sections. Each section then has a row: offset in the job, size, and the name in 24 bytes,
padded with zeros. The data of every section starts at a multiple of ALIGNMENT.

port/firmware/frozen/job.py reads it on the board.
"""

import struct

MAGIC = b"PTJB"
VERSION = 1
ALIGNMENT = 128

_HEADER = struct.Struct("<4sIII")
_ROW = struct.Struct("<II24s")
_NAME_SIZE = 24


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Job:
    """Sections by name, which to_bytes() joins."""

    def __init__(self, sections: dict[str, bytes] | None = None) -> None:
        self._sections: dict[str, bytes] = {}
        for name, data in (sections or {}).items():
            self.add(name, data)

    def add(self, name: str, data: bytes) -> None:
        """Add a section. Raises ValueError for a name that is empty, too long or a duplicate."""
        if not 0 < len(name.encode()) <= _NAME_SIZE:
            raise ValueError(f"section name {name!r} is not 1 to {_NAME_SIZE} bytes long")
        if name in self._sections:
            raise ValueError(f"section {name!r} exists already")
        self._sections[name] = bytes(data)

    def add_settings(self, name: str, settings: dict[str, object]) -> None:
        """Add a section of lines key=value. Raises ValueError if a line would be ambiguous."""
        lines = []
        for key, value in settings.items():
            if "=" in key or "\n" in f"{key}{value}":
                raise ValueError(f"setting {key!r} cannot be written as a line key=value")
            lines.append(f"{key}={value}\n")
        self.add(name, "".join(lines).encode())

    def sections(self) -> dict[str, bytes]:
        """Return {name: data} in the order of the calls of add()."""
        return dict(self._sections)

    def to_bytes(self) -> bytes:
        """Return the blob."""
        offset = _align(_HEADER.size + _ROW.size * len(self._sections))
        rows, body = bytearray(), bytearray()
        for name, data in self._sections.items():
            rows += _ROW.pack(offset + len(body), len(data), name.encode())
            body += data.ljust(_align(len(data)), b"\0")
        head = _HEADER.pack(MAGIC, VERSION, offset + len(body), len(self._sections)) + bytes(rows)
        return head.ljust(offset, b"\0") + bytes(body)
