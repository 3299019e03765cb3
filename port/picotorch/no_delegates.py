"""The delegates of a Method that was made for none: what it takes to refuse a program that has some.

The other half of this, with what it imports, is loaded only where a backend is registered.
"""

from .backend import find_backend, num_registered_backends
from .errors import NOT_FOUND, OUT_OF_RESOURCES, bad_program, fail
from .schema import BACKEND_DELEGATE_ID, EXECUTION_PLAN_DELEGATES

_DELEGATES = 4  # that a method can have, and
_ARGUMENTS = 8  # that a call can have, where a backend is registered and the Method is not told


def make_delegates(method, max_delegates, max_arguments):
    """Objects for so many delegates and arguments of a call; None: some, if a backend is registered."""
    some = num_registered_backends() > 0
    if max_delegates is None:
        max_delegates = _DELEGATES if some else 0
    if max_arguments is None:
        max_arguments = _ARGUMENTS if some else 0
    if max_delegates == 0:
        return NoDelegates(method)
    from .delegates import Delegates

    return Delegates(method, max_delegates, max_arguments)


class NoDelegates:
    """items: the objects for delegates. error: what a backend raised last."""

    call = None

    def __init__(self, method):
        self.method = method
        self.items = ()
        self.vector = 0  # of the program's delegates
        self.error = None

    def bind(self, context):
        pass

    def find(self, program, plan):
        """Finds the backends of all delegates of a plan. Raises NotFound with all that are missing,
        OutOfResources for more delegates than there are objects for."""
        self.vector = program.reader.table(plan, EXECUTION_PLAN_DELEGATES)
        count = program.reader.length(self.vector)
        for i in range(count):
            self.find_backend(program, i)
        if count > len(self.items):
            raise fail(OUT_OF_RESOURCES, "more than Method was made for", "delegates", -1,
                       remedy="give Method max_delegates, or register backends before it is made")
        return count

    def table(self, program, index):
        """Position of a BackendDelegate."""
        return program.reader.item(self.vector, index)

    def find_backend(self, program, index):
        name = program.reader.table(self.table(program, index), BACKEND_DELEGATE_ID)
        if name == 0:
            raise bad_program("has no backend's name", "delegate", index)
        backend = find_backend(program.reader, name)
        if backend is None:
            raise fail(NOT_FOUND, "no backend of this name", source=self.method,
                       remedy="register one or export without a delegate")
        return backend

    def check_call(self, index, count, instruction):
        """Raises InvalidProgram for a call of no delegate of the method."""
        raise bad_program("calls a delegate that there is not", "instruction", instruction)

    def init(self, program, data_map, name, manager, loader):
        pass

    def destroy(self, keep_errors):
        pass

    def raise_interrupt(self):
        pass

    def take_error(self):
        """The Error of the call that just failed, or None."""
        error = self.error
        self.error = None
        return error
