from .data import FlatTensorDataMap as FlatTensorDataMap
from .data import MergedDataMap as MergedDataMap
from .data import TensorLayout as TensorLayout
from .delegates import Backend as Backend
from .delegates import register_backend as register_backend
from .delegates import registered_backend_names as registered_backend_names
from .delegates import unregister_backend as unregister_backend
from .errors import Error as Error
from .files import FileDataLoader as FileDataLoader
from .memory import HierarchicalAllocator as HierarchicalAllocator
from .memory import MemoryAllocator as MemoryAllocator
from .memory import MemoryManager as MemoryManager
from .method import Method as Method
from .method_meta import MethodMeta as MethodMeta
from .module import Module as Module
from .program import MINIMAL as MINIMAL
from .program import STRICT as STRICT
from .program import BufferDataLoader as BufferDataLoader
from .program import Program as Program
from .tensor import Tensor as Tensor
from .tensor import TensorInfo as TensorInfo
from .tensor import ValueList as ValueList
from .tensor import from_blob as from_blob
from .tracer import EventTracer as EventTracer

__version__: str
PARTS: tuple[tuple[str, tuple[str, ...]], ...]
