"""Installs picotorch on the board that runs this: the runtime and the native module for its core.

    mpremote mount . run install.py

What does not fit is refused before anything is copied. `picotorch natmod` writes the tables below.
"""

import gc
import os
import sys

# Number of the architecture in sys.implementation._mpy: folder of the fastest module for it, bytes of
# its file, bytes of the heap.
MODULES = {}
# Bytes of the runtime's files.
RUNTIME = {}
# Of a module whose kernels are in flash: bytes of the flash that are left to the file system.
FLASH = {}
# Bytes of the heap for the runtime and the memories of a small model.
HEAP_BESIDE = 0


def module_for(mpy):
    """Folder and bytes of the module where sys.implementation._mpy is `mpy`."""
    if mpy & 0xFF != 6:
        raise RuntimeError("MicroPython 1.23 or newer is needed: this one has .mpy version %d"
                           % (mpy & 0xFF))
    number = mpy >> 10 & 0xF
    if number not in MODULES:
        raise RuntimeError("no module for architecture %d here: build it with picotorch natmod"
                           % number)
    return MODULES[number]


def check(name, needed, free):
    if needed > free:
        raise RuntimeError("needs %d KB of %s, %d KB free: build with --models"
                           % ((needed + 1023) // 1024, name, free // 1024))


def library(path):
    """Where the board keeps libraries, by sys.path: /flash/lib where its file system is at /flash."""
    for folder in path:
        if folder.endswith("/lib") and not folder.startswith("/rom"):
            return folder
    return "/lib"


def check_flash():
    import rp2

    flash = rp2.Flash()
    size = flash.ioctl(4, 0) * flash.ioctl(5, 0)
    if size > FLASH["file system"]:
        raise RuntimeError("the file system takes %d KB of the flash, and kernels.uf2 would overwrite "
                           "it: this is not the stock firmware of the board" % (size // 1024))


def copy(source, target):
    with open(source, "rb") as file, open(target, "wb") as to:
        block = bytearray(512)
        while True:
            n = file.readinto(block)
            if not n:
                return
            to.write(memoryview(block)[:n])


def install(source=".", target=None):
    target = target or library(sys.path)
    folder, size, in_heap = module_for(sys.implementation._mpy)
    if FLASH:
        check_flash()
    gc.collect()
    check("heap", in_heap + HEAP_BESIDE, gc.mem_free())
    blocks = os.statvfs(target.rsplit("/", 1)[0] or "/")
    check("file system", size + sum(RUNTIME.values()), blocks[0] * blocks[3])
    for path in (target, target + "/picotorch"):
        try:
            os.mkdir(path)
        except OSError:
            pass  # it is there
    copy(source + "/" + folder + "/_picotorch.mpy", target + "/_picotorch.mpy")
    for name in RUNTIME:
        copy(source + "/" + name, target + "/" + name)
    print("picotorch for %s is in %s" % (folder, target))


if __name__ == "__main__":
    install()
