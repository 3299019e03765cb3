"""Run ExecuTorch programs under MicroPython and CPython, without a heap after set-up.

    from picotorch import Module
    print(Module("model.pte").forward(x))

PARTS are the modules that a firmware may be built without, with the names that they define: each module
is imported at the first use of one of its names. On a computer host/adapters.py adds arrays and
threads.
"""

import sys

# Imported first, not by the others: a small board's stack is too small for such nested imports.
from . import tensor
from .errors import Error, part
from .memory import HierarchicalAllocator, MemoryAllocator, MemoryManager
from .method import Method
from .method_meta import MethodMeta
from .program import MINIMAL, STRICT, BufferDataLoader, Program
from .tensor import Tensor, TensorInfo, ValueList, from_blob

__version__ = "0.1.0"

PARTS = (
    ("data", ("FlatTensorDataMap", "MergedDataMap", "TensorLayout")),
    ("delegates", ("Backend", "register_backend", "registered_backend_names", "unregister_backend")),
    ("files", ("FileDataLoader",)),
    ("module", ("Module",)),
    ("tracer", ("EventTracer",)),
)

def __getattr__(name):
    """Return a name of PARTS, or its module, and import the module at the first use.

    Any other name imports nothing: dir() of MicroPython tries each name of the firmware.
    """
    for module, names in PARTS:
        if name == module:
            return part(name)
        if name in names:
            return getattr(part(module), name)
    raise AttributeError(name)

if sys.implementation.name != "micropython":
    from .host.adapters import adapt

    adapt(globals())
    del adapt
