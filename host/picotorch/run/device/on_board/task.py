"""Receive the job from the host, and run it."""

import gc

import job
import runner
from link import store_with
from picotorch import Error

sections = {}


def make_room(name, size):
    """Allocate memory for a section, which the following blocks fill."""
    memory = bytearray(size)
    sections[name] = memory

    def store(offset, data):
        memory[offset : offset + len(data)] = data

    store_with(store)


def use_preferred_temp():
    """Use the temp memory that this board's kernels prefer, if the heap has it."""
    try:
        one = runner.Run(sections, job.settings(sections["settings"]))
        one.method.load(one.program, one.name, one.pack_weights, one.data_map)
        preferred = one.method.memory_report()["temp"]["preferred"]
        gc.collect()
        bytearray(preferred)
    except (Error, MemoryError):  # the run raises this error again
        return
    sections["settings"] = bytes(sections["settings"]) + b"\ntemp_size=%d\n" % preferred


def run():
    gc.collect()
    runner.main(sections)
