"""Read FlatBuffers on the host with Google's package: bundled programs, and files in tests.

Programs and data files are read by the C library.
"""

from typing import Any

import flatbuffers.number_types as types
from flatbuffers.table import Table


class Tables:
    """Read tables of a file at positions in it; 0 stands for an omitted part.

    Raises ValueError, IndexError or struct.error for a position outside the file.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data

    def _get(self, kind: Any, position: int) -> int:
        if not 0 <= position <= len(self._data) - kind.bytewidth:
            raise ValueError
        number: int = Table(self._data, 0).Get(kind, position)
        return number

    def _follow(self, position: int) -> int:
        return position + self._get(types.UOffsetTFlags, position)

    def root(self) -> int:
        """Return the position of the root table."""
        return self._follow(0)

    def field(self, table: int, slot: int) -> int:
        """Return the position of a field."""
        if self._get(types.SOffsetTFlags, table) > table:
            raise ValueError
        offset: int = Table(self._data, table).Offset(4 + 2 * slot)
        return table + offset if offset else 0

    def table(self, table: int, slot: int) -> int:
        """Return the position of the table, vector or string in a field."""
        position = self.field(table, slot)
        return self._follow(position) if position else 0

    def u8(self, table: int, slot: int) -> int:
        """Return a field of a table, a byte; 0 if it is missing."""
        position = self.field(table, slot)
        return self._get(types.Uint8Flags, position) if position else 0

    def u32(self, table: int, slot: int) -> int:
        """Return a field of a table, 32 bits; 0 if it is missing."""
        position = self.field(table, slot)
        return self._get(types.Uint32Flags, position) if position else 0

    def text(self, table: int, slot: int) -> str:
        """Return the string in a field, "" for none."""
        position = self.table(table, slot)
        start = position + 4
        return bytes(self._data[start : start + self.length(position)]).decode(errors="replace")

    def length(self, vector: int) -> int:
        """Return the length of a vector; 0 for a missing one."""
        return self._get(types.UOffsetTFlags, vector) if vector else 0

    def item(self, vector: int, i: int) -> int:
        """Return the position of table i of a vector."""
        return self._follow(vector + 4 + 4 * i)

    def i32_item(self, vector: int, i: int) -> int:
        """Return item i of a vector of int32."""
        return self._get(types.Int32Flags, vector + 4 + 4 * i)
