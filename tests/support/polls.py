"""Answer the polls of the library during a long instruction."""

from _picotorch_c import ffi

ENDED = 0x14  # an error code that no kernel returns


class Polls:
    """Count and answer context->poll: with an error from the `last`-th call on."""

    def __init__(self, last=None):
        self.count, self.last = 0, last
        self.callback = ffi.callback("int(pt_context *)", self.answer)

    def answer(self, context):
        self.count += 1
        return ENDED if self.last is not None and self.count >= self.last else 0
