"""Detect a secret knock with a GRU step every 40 ms, with the heap locked."""

from picotorch import (
    FileDataLoader,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
)

try:
    from micropython import heap_lock, heap_unlock
except ImportError:  # on this computer

    def heap_lock():
        pass

    heap_unlock = heap_lock

RECORDING = "recording.bin"  # None reads the sensor


def piezo():
    """Yield the maximum of each 40 ms of a piezo disc at GP26 of a Pico (1 MOhm across it), from 0 to
    255."""
    import time

    from machine import ADC

    adc = ADC(26)
    due = time.ticks_ms()
    while True:
        due = time.ticks_add(due, 40)
        level = 0
        while time.ticks_diff(due, time.ticks_ms()) > 0:
            level = max(level, adc.read_u16() >> 8)
        yield level


def listen(program, method, levels):
    """Print each knock, with the heap locked."""
    level = bytearray(1)
    step = quiet = 0
    heard = False
    heap_lock()  # nothing is allocated from here on
    try:
        method.load(program, "forward")
        for level[0] in levels:
            quiet = 0 if level[0] > 40 else quiet + 1
            if quiet == 25:  # a second of silence
                method.reset_state()
            method.set_input(level, 0)
            method.execute()
            answer = method.get_output(0)[0]
            if answer and not heard:
                print("step", step, "the knock")
            heard = answer
            step += 1
    finally:
        heap_unlock()


# Allocate all memory of the method once. `picotorch size model.pte` prints the sizes.
program = Program.load(FileDataLoader("model.pte"))
meta = program.method_meta("forward")
planned = [bytearray(meta.memory_planned_buffer_size(i))
           for i in range(meta.num_memory_planned_buffers())]
method = Method(MemoryManager(MemoryAllocator(bytearray(2048)), HierarchicalAllocator(planned)))
listen(program, method, open(RECORDING, "rb").read() if RECORDING else piezo())
