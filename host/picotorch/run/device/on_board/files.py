"""Read and write files and the ROMFS partition of the board, for deploy."""

import gc
import sys

import replacing
from link import crc32, read_checksum, say, store_with

try:
    import os
except ImportError:  # a firmware without files
    os = None

try:
    import vfs
except ImportError:
    vfs = None

BLOCK = 512
_file = None


def free(folder):
    """Report the free bytes of a folder, or None without a file system."""
    try:
        numbers = os.statvfs(folder)
        say(max(0, numbers[0] * numbers[4]))  # littlefs may count more than the available blocks
    except (AttributeError, OSError):
        say(None)


def make_folder(path):
    """Make a folder and its missing parents."""
    if os is None:
        return
    parts = path.split("/")
    for i in range(len(parts)):
        try:
            os.mkdir("/".join(parts[: i + 1]))
        except OSError:  # the folder exists; if not, stat or a later write raises the error
            pass
    if not os.stat(path)[0] & 0x4000:
        raise OSError(20)


def begin(path):
    """Create a file, which the following blocks fill."""
    global _file
    _file = open(path, "wb")
    store_with(_append)


def _append(offset, data):
    if _file.tell() != offset:  # a block that arrived twice
        _file.seek(offset)
    _file.write(data)


def end():
    global _file
    _file.close()
    _file = None


def checksum(path):
    """Report size and checksum of a file, or None if it is missing."""
    try:
        found = read_checksum(path)
    except OSError:
        found = None
    say(found)


def put_back_library(name):
    """Restore the old files of a library whose replacement was interrupted.

    The library is in a folder of sys.path.
    """
    if os is not None:
        for folder in sys.path:
            replacing.put_back((folder + "/" if folder else "") + name)


# ---- ROMFS


class _Memory:
    """A partition that is mapped into memory."""

    def __init__(self, memory):
        self.memory = memory
        block = vfs.rom_ioctl(6, 0)
        self.size = len(memory)
        self.block = block if block > 0 else self.size
        self.in_place = True

    def erase(self, start, size):
        if self.block < self.size:
            vfs.rom_ioctl(3, 0, start, size)
        else:
            vfs.rom_ioctl(3, 0, size)

    def write(self, start, data):
        vfs.rom_ioctl(4, 0, start, data)

    def read(self, start, buffer):
        buffer[:] = self.memory[start : start + len(buffer)]

    def end(self):
        vfs.rom_ioctl(5, 0)


class _Blocks:
    """A partition that is a block device."""

    def __init__(self, device):
        self.device = device
        self.block = device.ioctl(5, 0)
        self.size = device.ioctl(4, 0) * self.block
        try:
            self.in_place = len(memoryview(device)) > 0
        except TypeError:  # the device is not mapped into memory
            self.in_place = False

    def erase(self, start, size):
        for block in range(start // self.block, (start + size + self.block - 1) // self.block):
            self.device.ioctl(6, block)

    def write(self, start, data):
        self.device.writeblocks(start // self.block, data, start % self.block)

    def read(self, start, buffer):
        self.device.readblocks(start // self.block, buffer, start % self.block)

    def end(self):
        pass


_rom = None


def open_rom():
    """Report (size, bytes of a block to erase, True for use in place) of the first partition.

    None without a partition.
    """
    global _rom
    device = vfs.rom_ioctl(2, 0) if hasattr(vfs, "rom_ioctl") and vfs.rom_ioctl(1) > 0 else -1
    if isinstance(device, int):
        return say(None)
    _rom = _Blocks(device) if hasattr(device, "ioctl") else _Memory(device)
    say((_rom.size, _rom.block, _rom.in_place))


def read_rom(start, size):
    """Report bytes of the partition."""
    while size:
        data = bytearray(min(size, BLOCK))
        _rom.read(start, data)
        say(bytes(data))
        start += len(data)
        size -= len(data)


def erase_rom(start, size):
    """Erase a part of the partition, and with it its files."""
    try:
        vfs.umount("/rom")
    except OSError:
        pass
    gc.collect()
    _rom.erase(start, size)
    store_with(_rom.write)


def end_rom(size):
    """End the write, and report the checksum."""
    _rom.end()
    data = bytearray(BLOCK)
    total = start = 0
    while start < size:
        part = memoryview(data)[: min(BLOCK, size - start)]
        _rom.read(start, part)
        total = crc32(part, total)
        start += len(part)
    say(total)
