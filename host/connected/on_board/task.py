"""The job that the host puts together on the board, and its run."""

import gc

import job
import runner
from link import read_checksum, say, store_with
from picotorch import Error

try:
    import os
except ImportError:  # a firmware without files
    os = None

sections = {}


def make_room(name, size):
    """Memory for a section; the blocks that follow fill it."""
    memory = bytearray(size)
    sections[name] = memory

    def store(offset, data):
        memory[offset : offset + len(data)] = data

    store_with(store)


def _is_file(path, size, checksum):
    try:
        return os.stat(path)[6] == size and read_checksum(path) == (size, checksum)
    except OSError:
        return False


def find(name, size, checksum):
    """Says where a file of this name and content is, or None."""
    found = None
    if os is not None:
        folders = ["/rom/", ""] + ["/" + entry[0] + "/" for entry in os.ilistdir("/")
                                   if entry[1] & 0x4000 and entry[0] != "rom"]
        for folder in folders:
            if _is_file(folder + name, size, checksum):
                found = folder + name
                break
    say(found)


def use(path):
    """Takes the model from a file: in place where it is a memory, aligned to 16, else read into the
    heap. Says which."""
    gc.collect()
    with open(path, "rb") as file:
        view = _in_place(file)
        in_place = view is not None
        if not in_place:
            view = bytearray(os.stat(path)[6])
            file.readinto(view)
    sections["model"] = view
    say(in_place)


def _in_place(file):
    try:
        from uctypes import addressof

        view = memoryview(file)
        return None if addressof(view) & 15 else view
    except (ImportError, TypeError):
        return None


def wish():
    """Gives the run the temp memory that the kernels of this board wish for, where the heap has it
    beside the memories of the run."""
    try:
        one = runner.Run(sections, job.settings(sections["settings"]))
        one.method.load(one.program, one.name, one.prepare, one.data_map)
        wished = one.method.memory_report()["temp"]["wished"]
        gc.collect()
        bytearray(wished)
    except (Error, MemoryError):  # the run will tell
        return
    sections["settings"] = bytes(sections["settings"]) + b"\ntemp_size=%d\n" % wished


def run():
    gc.collect()
    runner.main(sections)
