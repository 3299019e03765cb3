"""picotorch: ExecuTorch programs under MicroPython and CPython, without a heap after set-up.

    from picotorch import Module
    print(Module("model.pte").forward(x))
"""

from .backend import Backend, register_backend, registered_backend_names, unregister_backend
from .data_loader import BufferDataLoader, FileDataLoader
from .data_map import FlatTensorDataMap, MergedDataMap, TensorLayout
from .errors import Error
from .event_tracer import EventTracer
from .memory import HierarchicalAllocator, MemoryAllocator, MemoryManager
from .method import Method
from .method_meta import MethodMeta
from .module import Module
from .program import MINIMAL, STRICT, Program
from .tensor import Tensor, TensorInfo, from_blob
from .values import ValueList

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
