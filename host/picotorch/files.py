"""Read programs from files."""

import _picotorch

from .errors import (
    ACCESS_FAILED,
    INVALID_ARGUMENT,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    fail,
    need,
)
from .memory import buffer_size, bytes_at
from .program import BufferDataLoader


class FileDataLoader(BufferDataLoader):
    """A program, or external weights, in a file.

    A file that can be read in place (ROMFS) is not copied. Any other is read into `buffer`, or into a
    new one of the file's size. Raises AccessFailed, MemoryAllocationFailed if `buffer` is too small,
    InvalidArgument if it is read-only, or NotSupported if the firmware has no files.
    """

    def __init__(self, path, buffer=None):
        if hasattr(path, "__fspath__"):
            path = path.__fspath__()
        need(path, str, "path")
        self.path = path
        try:
            with open(path, "rb") as file:
                try:
                    super().__init__(memoryview(file))  # if the file can be read in place
                except TypeError:
                    super().__init__(_read(file, buffer))
        except (OSError, ValueError) as error:
            raise fail(ACCESS_FAILED, str(error), path or "path", remedy="check the path") from None
        except NameError:
            raise fail(NOT_SUPPORTED, "this firmware has no files; pass the bytes", path) from None

    def explain(self, error):
        """Return the path, for errors."""
        return self.path

    def __repr__(self):
        return "<FileDataLoader %s %dB>" % (self.path, self.size())


def _read(file, buffer):
    size = file.seek(0, 2)
    file.seek(0)
    if buffer is None:
        buffer = bytearray(size)
    if _picotorch.nbytes(buffer) >= 0 and not _picotorch.buffer(buffer)[1]:
        raise fail(INVALID_ARGUMENT, "cannot be written; give a bytearray", "file buffer")
    there = buffer_size(buffer, "file buffer")
    if there < size:
        raise fail(MEMORY_ALLOCATION_FAILED, "; pass a larger buffer",
                   "file buffer", -1, size, there)
    view = bytes_at(buffer, 0, size)
    if file.readinto(view) != size:
        raise fail(ACCESS_FAILED, "ended early; copy it again", "file")
    return view
