"""Mount the files in RAM at /, after creating them if there are none, and ROMFS at /rom."""

import sys

import _board
import vfs

_BLOCK_SIZE = 512
_CACHES = {"readsize": 128, "progsize": 128, "lookahead": 128}


class RAMBlocks:
    """Use a memory as a block device. It keeps its bytes over a reset, soft or hard."""

    def __init__(self, memory):
        self.memory = memory

    def readblocks(self, number, buffer, offset=0):
        start = number * _BLOCK_SIZE + offset
        buffer[:] = self.memory[start : start + len(buffer)]

    def writeblocks(self, number, buffer, offset=0):
        start = number * _BLOCK_SIZE + offset
        self.memory[start : start + len(buffer)][:] = buffer  # without [:] all that follows is moved

    def ioctl(self, operation, _):
        if operation == 4:
            return len(self.memory) // _BLOCK_SIZE
        if operation == 5:
            return _BLOCK_SIZE
        return 0


def _mount_files(memory):
    blocks = RAMBlocks(memory)
    try:
        files = vfs.VfsLfs2(blocks, **_CACHES)
    except OSError:
        vfs.VfsLfs2.mkfs(blocks, **_CACHES)
        files = vfs.VfsLfs2(blocks, **_CACHES)
    vfs.mount(files, "/")


def _mount_rom():
    try:
        vfs.mount(vfs.VfsRom(vfs.rom_ioctl(2, 0)), "/rom")
    except OSError:
        return
    sys.path += ["/rom", "/rom/lib"]


def mount():
    """Mount the file systems of the board."""
    if "files" in _board.memories():
        _mount_files(_board.memory("files"))
        sys.path.append("/lib")
    _mount_rom()
