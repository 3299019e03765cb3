"""Answer the messages of host/picotorch/run/device/protocol.py, which sends this file first.

A message from the host is a call of do() or put(), with a checksum of its content. The answer consists
of lines that begin with "pt:", each a literal of Python. The last line has their number and checksum.
"""

import gc
import sys

try:
    from binascii import a2b_base64
except ImportError:
    a2b_base64 = None

spaces = {"": globals()}  # the namespaces of messages: this one, or a module that the host sends
_lines = 0
_checksum = 0
_store = None


class Damaged(Exception):
    """A block of bytes arrived damaged."""


def say(value):
    """Send one line of the answer."""
    global _lines, _checksum
    line = repr(value)
    _lines += 1
    _checksum = crc32(bytes(line, "utf-8"), _checksum)
    print("pt:" + line)


def _end():
    global _lines, _checksum
    print("pt:=%d %08x" % (_lines, _checksum))
    _lines = _checksum = 0


def _check(data, checksum, seed=0):
    if crc32(data, seed) != checksum:
        raise Damaged


def do(checksum, source, space=""):
    """Execute a text."""
    global _lines, _checksum
    _lines = _checksum = 0  # drops an answer that ended with an exception
    _check(source, checksum)
    exec(source, spaces[space])
    _end()


def put(checksum, offset, data):
    """Receive a block of bytes from the host, as bytes or base64."""
    if isinstance(data, str):
        try:
            data = a2b_base64(data)
        except ValueError:
            raise Damaged from None
    _check(data, checksum, offset)
    _store(offset, data)
    _end()


def store_with(function):
    """Pass the following blocks to function(offset, data)."""
    global _store
    _store = function


def read_checksum(path):
    """Return (size, checksum) of a file."""
    buffer = bytearray(512)
    size = total = 0
    with open(path, "rb") as file:
        while True:
            count = file.readinto(buffer)
            if not count:
                return size, total
            size += count
            total = crc32(memoryview(buffer)[:count], total)


class _Module:
    def __init__(self, names):
        for name in names:
            setattr(self, name, names[name])


def publish(name):
    """Make a sent module importable."""
    sys.modules[name] = _Module(spaces[name])


def remove(*names):
    """Remove sent modules."""
    for name in names:
        if name in sys.modules:
            del sys.modules[name]
        del spaces[name]
    gc.collect()


def finish():
    """Remove everything that the host sent."""
    remove(*list(spaces))


spaces["link"] = spaces[""]
publish("link")
