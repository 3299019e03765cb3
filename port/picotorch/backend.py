"""Backends: what executes the parts of a program that its exporter handed to a delegate.

    class Negate(Backend):
        def init(self, context, processed, compile_specs):
            return None                                    # the handle

        def execute(self, context, handle, args):
            x, out = args[0].data, args[1].data
            for i in range(len(x)):
                out[i] = -x[i]

    register_backend("Negate", Negate())

The methods are those of ExecuTorch's BackendInterface. To fail, they raise an Error:

    raise fail(DELEGATE_INVALID_COMPATIBILITY, "was exported for version 2")

Under MicroPython a method that was loaded with the heap locked stays so: a backend that allocates
then raises MemoryError, which becomes DelegateMemoryAllocationFailed.
"""

from .errors import INVALID_ARGUMENT, INVALID_TYPE, NOT_FOUND, NOT_IMPLEMENTED, fail


class Backend:
    """The base of all backends."""

    def is_available(self):
        """False where the backend cannot work now: load then raises NotFound."""
        return True

    def init(self, context, processed, compile_specs):
        """Makes a delegate ready, at load. Returns its handle, any object.

        context: BackendInitContext. processed: FreeableBuffer of what the backend's preprocess wrote
        at export. compile_specs: CompileSpecs, those of the export.
        """
        raise fail(NOT_IMPLEMENTED, "has no init", "backend")

    def execute(self, context, handle, args):
        """Executes a delegate. args: its inputs, then its outputs, which it writes: Tensors (valid
        until it returns), numbers, bools, None. context: BackendExecutionContext."""
        raise fail(NOT_IMPLEMENTED, "has no execute", "backend")

    def destroy(self, handle):
        """Called for each handle when its method is unloaded, or not loaded after all."""


_names = []
_backends = []


def register_backend(name, backend):
    """Makes a backend known to all methods that are made afterwards. Raises InvalidArgument for a
    name that is taken, InvalidType for what is no Backend."""
    if not isinstance(name, str) or not isinstance(backend, Backend):
        raise fail(INVALID_TYPE, "a name and a Backend are wanted", "backend")
    if name in _names:
        raise fail(INVALID_ARGUMENT, "is registered already", name)
    _names.append(name)
    _backends.append(backend)


def unregister_backend(name):
    """Methods that are loaded keep the backend. Raises NotFound."""
    if name not in _names:
        raise fail(NOT_FOUND, "no backend of this name is registered", name)
    index = _names.index(name)
    del _names[index]
    del _backends[index]


def registered_backend_names():
    return list(_names)


def num_registered_backends():
    return len(_names)


def get_backend(name):
    """The backend of this name, or None."""
    return _backends[_names.index(name)] if name in _names else None


def find_backend(library, plan, delegate):
    """The backend of a delegate of a program, or None. Needs no heap."""
    for i in range(len(_names)):
        if library.has_backend(plan, delegate, _names[i]):
            return _backends[i]
    return None
