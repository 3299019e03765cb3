"""Read the job, whose format host/picotorch/run/job.py defines.

All integers are little-endian u32. The header has the magic "PTJB", the version, the size of the job in
bytes and the number of sections. Then one row a section follows: offset in the job, size, and the name
in 24 bytes, padded with zeros. The firmware has checked magic, version and size.
"""

import struct

_HEADER_SIZE = 16
_ROW = "<II24s"
_ROW_SIZE = 32


def sections(job):
    """Return {name: memoryview} of the sections of a job (memoryview), {} for None."""
    found = {}
    if job is None:
        return found
    count = struct.unpack_from("<I", job, 12)[0]
    for i in range(count):
        offset, size, name = struct.unpack_from(_ROW, job, _HEADER_SIZE + i * _ROW_SIZE)
        found[str(name, "utf-8").rstrip("\0")] = job[offset : offset + size]
    return found


def settings(section):
    """Return {key: value} (strings) of the lines key=value of a section."""
    found = {}
    for line in str(section, "utf-8").split("\n"):
        if line:
            key, value = line.split("=", 1)
            found[key] = value
    return found
