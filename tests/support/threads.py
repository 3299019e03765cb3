"""Run threads in tests, and load a method that waits for another thread."""

import threading

from picotorch import BufferDataLoader, Program
from picotorch.module import load_with_exact_memories
from support.programs import call, jump, plan, program, tensor
from support.targets import aligned

BOOL = 11
ELEMENTS = 1 << 14  # a turn of the waiting loop; it takes about a minute until it is rejected


class Threads:
    """Call functions in threads. `join` raises the error that one of them raised."""

    def __init__(self, *functions):
        self.errors = []
        self.threads = [threading.Thread(target=self._call, args=(function,), daemon=True)
                        for function in functions]
        for thread in self.threads:
            thread.start()

    def _call(self, function):
        try:
            function()
        except BaseException as error:
            self.errors.append(error)

    def join(self, seconds=120):
        for thread in self.threads:
            thread.join(seconds)
            assert not thread.is_alive()
        if self.errors:
            raise self.errors[0]


def waiting_method():
    """Return a method that sets its output to true, then computes until its input is true."""
    values = [tensor([1], dtype=BOOL), tensor([1], 0, dtype=BOOL), tensor([1], dtype=BOOL),
              tensor([ELEMENTS], 16), tensor([ELEMENTS], 16 + 4 * ELEMENTS)]
    made = plan(values, [call(0, 1, 2, 2), call(1, 3, 4, 4), jump(0, 1)],
                ["aten::logical_not.out", "aten::relu.out"], [0], [2], [16 + 8 * ELEMENTS])
    loaded = Program.load(BufferDataLoader(aligned(program(made))))
    return load_with_exact_memories(loaded, "forward")
