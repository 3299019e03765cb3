"""picotorch: ExecuTorch programs under MicroPython and CPython, without a heap after set-up.

    from picotorch import Module
    print(Module("model.pte").forward(x))
"""

# First, and not from within the others: a small board's stack has no room for so deep an import.
from . import tensor  # noqa: F401
from .backend import Backend, register_backend, registered_backend_names, unregister_backend
from .data_loader import BufferDataLoader, FileDataLoader
from .errors import Error
from .event_tracer import EventTracer
from .memory import HierarchicalAllocator, MemoryAllocator, MemoryManager
from .method import Method
from .method_meta import MethodMeta
from .module import Module
from .program import MINIMAL, STRICT, Program
from .tensor import Tensor, TensorInfo, from_blob
from .value_list import ValueList

# Imported when they are first asked for: a small board's heap has no room for what it does not use.
_LATER = {"FlatTensorDataMap": "data_map", "MergedDataMap": "data_map", "TensorLayout": "data_map"}


def __getattr__(name):
    """One of these, or a module: `from picotorch import platform` asks here first."""
    try:
        module = __import__("picotorch." + _LATER.get(name, name), None, None, (name,))
    except ImportError:
        raise AttributeError(name) from None
    return getattr(module, name) if name in _LATER else module


__all__ = [
    "MINIMAL",
    "STRICT",
    "Backend",
    "BufferDataLoader",
    "Error",
    "EventTracer",
    "FileDataLoader",
    "FlatTensorDataMap",
    "HierarchicalAllocator",
    "MemoryAllocator",
    "MemoryManager",
    "MergedDataMap",
    "Method",
    "MethodMeta",
    "Module",
    "Program",
    "Tensor",
    "TensorInfo",
    "TensorLayout",
    "ValueList",
    "from_blob",
    "register_backend",
    "registered_backend_names",
    "unregister_backend",
]
