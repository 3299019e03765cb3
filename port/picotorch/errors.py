"""Errors: ExecuTorch's codes and names, what was wanted, what there was, what to do.

Under MicroPython there are two error objects, made at import, so that raising needs no heap: the second
is for what fails while what the first one tells of is cleaned up. Their text is put together when it
is read. CPython gets a new object with its text each time.
"""

import sys

import _picotorch

from .schema import ERROR_NAMES

OK = 0x00
INTERNAL = 0x01
INVALID_STATE = 0x02
END_OF_METHOD = 0x03
ALREADY_LOADED = 0x04
NOT_SUPPORTED = 0x10
NOT_IMPLEMENTED = 0x11
INVALID_ARGUMENT = 0x12
INVALID_TYPE = 0x13
OPERATOR_MISSING = 0x14
NOT_FOUND = 0x20
MEMORY_ALLOCATION_FAILED = 0x21
ACCESS_FAILED = 0x22
INVALID_PROGRAM = 0x23
INVALID_EXTERNAL_DATA = 0x24
OUT_OF_RESOURCES = 0x25
DELEGATE_INVALID_COMPATIBILITY = 0x30
DELEGATE_MEMORY_ALLOCATION_FAILED = 0x31
DELEGATE_INVALID_HANDLE = 0x32


_LARGER_STACK = "call from fewer functions or give the firmware more"


class Error(Exception):
    """What went wrong.

    code: ExecuTorch's number; name: ExecuTorch's name.
    subject, index: which memory, input, instruction ... (index -1: there is only one).
    requested, available: bytes wanted and there, -1 where the error is not about bytes.
    what, remedy: text.
    source: object whose `explain(error)` knows more, asked when the text is put together.
    """

    def __init__(self):
        super().__init__()
        self.code = OK
        self.subject = None
        self.index = -1
        self.what = ""
        self.requested = -1
        self.available = -1
        self.remedy = ""
        self.source = None
        self.text = None

    @property
    def name(self):
        return ERROR_NAMES.get(self.code, "Unknown")

    @property
    def message(self):
        """The text without name and code."""
        if self.text is None:
            return self._compose()
        return self.text

    def _compose(self):
        parts = []
        if self.subject:
            parts.append(self.subject if self.index < 0 else "%s %d" % (self.subject, self.index))
        if self.requested >= 0:
            parts.append("%dB requested, %dB available" % (self.requested, self.available))
        if self.what:
            parts.append(self.what)
        if self.source is not None:
            more = self.source.explain(self)
            if more:
                parts.append(more)
        text = ": ".join(parts)
        return text + "; " + self.remedy if self.remedy else text

    def with_source(self, source):
        """This error, with a source where it has none."""
        if self.source is None:
            self.source = source
            if self.text is not None:
                self.text = self._compose()
        return self

    def __str__(self):
        return "%s (0x%02X): %s" % (self.name, self.code, self.message)

    def __repr__(self):
        return "<Error %s>" % self


_KEPT = Error() if sys.implementation.name == "micropython" else None
_SPARE = Error() if _KEPT is not None else None


def spare_error():
    """Lets an Error that is on its way stay as it is when the next one is made."""
    global _KEPT, _SPARE
    kept = _KEPT
    _KEPT = _SPARE
    _SPARE = kept


def fail(code, what="", subject=None, index=-1, requested=-1, available=-1, remedy="",
         source=None):
    """The error to raise."""
    error = _KEPT
    if error is None:
        error = Error()
    else:
        _picotorch.clear_traceback(error)
    error.code = code
    error.what = what
    error.subject = subject
    error.index = index
    error.requested = requested
    error.available = available
    error.remedy = remedy
    error.source = source
    if _KEPT is None:
        error.text = error._compose()
    return error


def out_of_memory(subject, index, requested, available, remedy):
    return fail(MEMORY_ALLOCATION_FAILED, "", subject, index, requested, available, remedy)


def no_stack():
    """The error where there is not the stack to begin, or after MicroPython has found none to go on."""
    free = _picotorch.stack_free()
    if free < _picotorch.STACK_BYTES:
        return out_of_memory("stack", -1, _picotorch.STACK_BYTES, free, _LARGER_STACK)
    return fail(MEMORY_ALLOCATION_FAILED, "more is needed than there is", "stack",
                remedy=_LARGER_STACK)


def check_stack():
    """Raises MemoryAllocationFailed where what begins now might not find the stack to end."""
    if _picotorch.stack_free() < _picotorch.STACK_BYTES:
        raise no_stack()


def bad_program(what, subject=None, index=-1):
    return fail(INVALID_PROGRAM, what, subject, index,
                remedy="export the program again or copy it again")
