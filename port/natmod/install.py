"""Installs picotorch on the board that runs this: the runtime and the native module for its core.

    mpremote mount . run install.py

What does not fit is refused before anything is copied. Files are replaced when all are copied: after an
interruption run it again. `picotorch natmod` writes the tables below, and replacing.py in place of its
import.
"""

import gc
import os
import sys

from replacing import recover, replace_all

# Number of the architecture in sys.implementation._mpy: folder of the fastest module for it, bytes of
# its file, bytes of the heap.
MODULES = {}
# All numbers for which a module can be built.
NUMBERS = ()
# Bytes of the runtime's files.
RUNTIME = {}
# Of a module whose kernels are in flash: bytes of the flash that are left to the file system.
FLASH = {}
# Bytes of the heap for the runtime and the memories of a small model.
HEAP_BESIDE = 0
# Version and sub-version of the modules, as they are in sys.implementation._mpy.
MPY = 0
# What to do where they do not fit.
REMEDY = ""


def module_for(mpy):
    """Folder and bytes of the module where sys.implementation._mpy is `mpy`."""
    if mpy & 0x3FF != MPY:
        ours, version = (MPY & 0xFF, MPY >> 8), (mpy & 0xFF, mpy >> 8 & 3)
        needed = "1.23 or newer" if version < ours else "1.23 to the last one with .mpy %d.%d" % ours
        raise RuntimeError("MicroPython %s is needed: the module is .mpy %d.%d, this one loads "
                           ".mpy %d.%d" % ((needed,) + ours + version))
    number = mpy >> 10 & 0xF
    if not number:
        raise RuntimeError("this MicroPython loads no native modules: flash a firmware that has "
                           "picotorch")
    if number not in NUMBERS:
        raise RuntimeError("picotorch does not support processors of architecture %d yet: use a board "
                           "with a Cortex-M or RV32 core" % number)
    if number not in MODULES:
        raise RuntimeError("no module for architecture %d here: build it with picotorch natmod"
                           % number)
    return MODULES[number]


def check(name, needed, free, remedy):
    if needed > free:
        raise RuntimeError("needs %d KB of %s, %d KB free: %s"
                           % ((needed + 1023) // 1024, name, free // 1024, remedy))


def library(path):
    """Return the board's folder of libraries, by sys.path: /flash/lib where files are at /flash."""
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
    folder, size, in_heap = module_for(getattr(sys.implementation, "_mpy", MPY))
    if FLASH:
        check_flash()
    gc.collect()
    check("heap", in_heap + HEAP_BESIDE, gc.mem_free(), REMEDY)
    main = target + "/_picotorch.mpy"
    sources = {main: source + "/" + folder + "/_picotorch.mpy"}
    for name in RUNTIME:
        sources[target + "/" + name] = source + "/" + name
    recover(main, list(sources))
    blocks = os.statvfs(target.rsplit("/", 1)[0] or "/")
    check("file system", size + sum(RUNTIME.values()), blocks[0] * blocks[3],
          "remove files there, or " + REMEDY)
    for path in (target, target + "/picotorch"):
        try:
            os.mkdir(path)
        except OSError:
            pass  # it is there
    for path in sources:
        copy(sources[path], path + ".part")
    replace_all(main, list(sources))
    print("picotorch for %s is in %s" % (folder, target))


if __name__ == "__main__":
    install()
