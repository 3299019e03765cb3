"""Install picotorch on the board that runs this script: the runtime and the native module for its core.

    mpremote mount . run install.py

The script checks whether all files fit before it copies the first one. It replaces files after it has
copied all: after an interruption run it again. `picotorch natmod` writes the tables below, and
replacing.py in place of its import.
"""

import gc
import os
import sys

from replacing import recover, replace_all

# For each number of an architecture in sys.implementation._mpy: the folder of the fastest module for
# it, the bytes of the module's file, and the bytes of the heap.
MODULES = {}
# All architecture numbers for which a module can be built.
NUMBERS = ()
# The bytes of the runtime's files.
RUNTIME = {}
# For a module whose kernels are in flash: the bytes of the flash that are left to the file system.
FLASH = {}
# The bytes of the heap for the runtime and the memories of a small model.
HEAP_BESIDE = 0
# The version and sub-version of the modules, as in sys.implementation._mpy.
MPY = 0
# The advice if the modules do not fit.
REMEDY = ""


def module_for(mpy):
    """Return folder and bytes of the module for a MicroPython with this sys.implementation._mpy."""
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
            pass  # the folder exists
    for path in sources:
        copy(sources[path], path + ".part")
    replace_all(main, list(sources))
    print("picotorch for %s is in %s" % (folder, target))


if __name__ == "__main__":
    install()
