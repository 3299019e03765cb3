"""Define errors: ExecuTorch's codes and names, requested and available bytes, and remedies.

Under MicroPython there are two error objects, made at import, so that raising needs no heap: the second
is for failures during the clean-up after the first one. Their text is composed when it is read.
CPython gets a new object with its text each time.
"""

import sys

import _picotorch

from .schema import ERROR_NAMES, SUBJECT_KERNEL, SUBJECT_PTM, SUBJECTS

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

# Remedies by code, for texts without one, and by the attribute that `need` does not find
_REMEDIES = {INVALID_PROGRAM: "export the program again or copy it again",
             "compile": "compile it again or copy it again",
             INVALID_EXTERNAL_DATA: "take the .ptd file that was exported with the program",
             "buffer": "give FileDataLoader(path) or BufferDataLoader(buffer)",
             "libraries": "give a FlatTensorDataMap or MergedDataMap",
             "attach": "give an EventTracer",
             "find_plan": "give an object of type Program"}
_LONGEST = 160  # bytes of a text of the library


class Error(Exception):
    """The exception of every failure.

    code: ExecuTorch's number; name: ExecuTorch's name. subject: the memory, input, instruction ... that
    failed; index: its number, -1 if there is only one. requested, available: bytes, or arguments of an
    instruction; -1 if unknown or irrelevant. what: text; remedy: the change that helps. argument: the
    argument of an instruction that a kernel rejected, or the value of an external tensor, or -1.
    source: the object whose `explain(error)` adds details when the text is composed.
    """

    def __init__(self):
        super().__init__()
        self.code = OK
        self.subject = None
        self.index = -1
        self.requested = -1
        self.available = -1
        self.source = None
        self.text = None
        self._what = ""  # may end with "; " and the remedy
        self._remedy = ""
        self.argument = -1
        self.subject_number = 0  # number of the subject, of an error of the library

    @property
    def name(self):
        """Return ExecuTorch's name of the code."""
        return ERROR_NAMES.get(self.code, "Unknown")

    def _parts(self):
        if not isinstance(self._what, str):
            self._what = _read_text(self._what)
        return self._what.split("; ", 1)

    @property
    def what(self):
        """Return the text of the error, without the remedy."""
        return self._parts()[0]

    @property
    def remedy(self):
        """Return the remedy, or "" without one."""
        remedy = self._remedy
        if isinstance(remedy, type):
            return "give an object of type " + remedy.__name__
        parts = self._parts()
        if not remedy and len(parts) > 1:
            return parts[1]
        key = "compile" if self.subject_number == SUBJECT_PTM else remedy or self.code
        return _REMEDIES.get(key, remedy)

    @property
    def message(self):
        """Return the text without name and code."""
        if self.text is None:
            return self._compose()
        return self.text

    def _compose(self):
        parts = []
        if self.subject:
            parts.append(self.subject if self.index < 0 else "%s %d" % (self.subject, self.index))
        if self.requested >= 0:
            if self.subject == "instruction" and self.subject_number != SUBJECT_KERNEL:
                parts.append("%d arguments wanted, %d given" % (self.requested, self.available))
            elif self.available >= 0:
                parts.append("%dB requested, %dB available" % (self.requested, self.available))
            else:
                parts.append("%dB requested" % self.requested)
        what = self.what
        more = self.source.explain(self) if self.source is not None else ""
        if self.subject_number == SUBJECT_KERNEL:  # the instruction, then what its kernel did not like
            what, more = more, what
        for part in what, more:
            if part:
                parts.append(part)
        text = ": ".join(parts)
        remedy = self.remedy
        return text + "; " + remedy if text and remedy else text or remedy

    def __str__(self):
        return "%s (0x%02X): %s" % (self.name, self.code, self.message)

    def __repr__(self):
        return "<Error %s>" % self


def _read_text(distance):
    """Read a text of a native module, `distance` bytes from the end of its file; "" without a file."""
    try:
        with open(_picotorch.__file__, "rb") as file:
            file.seek(-distance, 2)
            return str(file.read(_LONGEST).split(b"\0", 1)[0], "utf-8")
    except (AttributeError, OSError):
        return ""


_KEPT = Error() if sys.implementation.name == "micropython" else None
_SPARE = Error() if _KEPT is not None else None
# Strs that the library points at texts of errors, the first for _KEPT. The classes with `on_error`
# have them as `texts`; a base class would make each store to an attribute of a Method slower.
TEXTS = [_picotorch.text(), _picotorch.text()] if _KEPT is not None else []


def spare_error():
    """Swap the two error objects, so that the next error does not overwrite the one being raised."""
    global _KEPT, _SPARE
    kept = _KEPT
    _KEPT = _SPARE
    _SPARE = kept
    TEXTS.reverse()


def fail(code, what="", subject=None, index=-1, requested=-1, available=-1, remedy="",
         source=None, argument=-1, kind=0):
    """Return an Error with these fields, to be raised."""
    error = _KEPT
    if error is None:
        error = Error()
    else:
        _picotorch.clear_traceback(error)
    error.code = code
    error.subject = subject
    error.index = index
    error.requested = requested
    error.available = available
    error.source = source
    error._what = what
    error._remedy = remedy
    error.argument = argument
    error.subject_number = kind
    if _KEPT is None:
        error.text = error._compose()
    return error


def need(value, kind, subject):
    """Raise InvalidType for a value of another type than `kind`, or without the attribute `kind`.

    A tuple is accepted as a list.
    """
    if hasattr(value, kind) if isinstance(kind, str) else isinstance(value, kind):
        return
    if kind is not list or not isinstance(value, tuple):
        raise fail(INVALID_TYPE, "has the wrong type", subject, remedy=kind)


def check_index(index, count, subject):
    """Raise InvalidType for anything but an int, InvalidArgument for one that is out of range."""
    need(index, int, subject)
    if not 0 <= index < count:
        raise fail(INVALID_ARGUMENT, "does not exist; count from 0", subject, index)


def library_error(code, subject, index, argument, requested, available, what, source,
                  subject_name=None, remedy=""):
    """Return the Error for the fields of a pt_error that the library reports.

    `subject_name`: the name of a subject that has one; remedy: used if `what` has none.
    """
    return fail(code, what, subject_name or SUBJECTS[subject], index, requested, available, remedy,
                source, argument, subject)


def part(name):
    """Return a module that a firmware may be built without. Raises NotSupported."""
    try:
        return __import__("picotorch." + name, None, None, (name,))
    except ImportError:
        raise fail(NOT_SUPPORTED, "is not in this firmware", "part " + name,
                   remedy="picotorch firmware --with %s, or parts of the manifest" % name) from None


def text_of(data):
    """Return the str for `data`, the bytes of a text in a file.

    If they are not UTF-8 or have control characters, "?" replaces all but printable ASCII.
    """
    try:
        if not data or min(data) >= 32:
            return str(data, "utf-8")
    except ValueError:
        pass
    return "".join([chr(c) if 32 <= c < 127 else "?" for c in data])
