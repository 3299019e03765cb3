"""Find the model of a job on the board. The host removes this module before the job is loaded."""

import gc

from link import crc32, read_checksum, say

try:
    import os
except ImportError:  # a firmware without files
    os = None

# How MicroPython calls a missing module, with and without its name in errors.
_NO_MODULE = ("no module named 'picotorch_models'", "module not found")

_found = None  # the model: the path of a file, or a frozen one


def _is_file(path, size, checksum):
    try:
        return os.stat(path)[6] == size and read_checksum(path) == (size, checksum)
    except OSError:
        return False


def find(name, size, checksum):
    """Report where the model is, the frozen models, and the exception of their module.

    The first is None if the host has to send the model. The frozen models are (name, size), listed if
    none has its content. The exception is None without one. use() uses the result.
    """
    global _found
    others, fault = [], None
    try:
        import picotorch_models

        for one in dir(picotorch_models):
            _found = getattr(picotorch_models, one)
            if isinstance(_found, (memoryview, bytes, bytearray)):
                if len(_found) == size and crc32(_found) == checksum:
                    return say(("picotorch_models." + one, [], None))
                others.append((one, len(_found)))
    except Exception as error:  # a firmware without models, or an exception of the module
        if not (isinstance(error, ImportError) and str(error) in _NO_MODULE):
            fault = "%s: %s" % (type(error).__name__, error)
    _found = _find_file(name, size, checksum)
    say((_found, others, fault))


def _find_file(name, size, checksum):
    """Return the path of a file with this name and content, or None."""
    if os is not None:
        folders = ["/rom/", ""] + ["/" + entry[0] + "/" for entry in os.ilistdir("/")
                                   if entry[1] & 0x4000 and entry[0] != "rom"]
        for folder in folders:
            if _is_file(folder + name, size, checksum):
                return folder + name
    return None


def use():
    """Use the model that find() found, and report how.

    It is used in place if it is a memory aligned to 16, else read into the heap.
    """
    from task import sections

    gc.collect()
    if isinstance(_found, str):
        with open(_found, "rb") as file:
            view, in_place = _memory_of(file, os.stat(_found)[6])
            if not in_place:
                file.readinto(view)
    else:
        view, in_place = _memory_of(_found, _found)
    sections["model"] = view
    say(in_place)


def is_in_place():
    """Report whether use() would use the found model in place."""
    if isinstance(_found, str):
        with open(_found, "rb") as file:
            say(_view(file) is not None)
    else:
        say(_view(_found) is not None)


def _memory_of(source, copied):
    """Return (memory, True) for a source that can be used in place, else (bytearray(copied), False)."""
    view = _view(source)
    return (bytearray(copied), False) if view is None else (view, True)


def _view(source):
    """Return the memory of a source, or None if it cannot be used in place."""
    try:
        from uctypes import addressof

        view = memoryview(source)
        if not addressof(view) & 15:
            return view
    except (ImportError, TypeError):
        pass
    return None
