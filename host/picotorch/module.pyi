from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeVar

from _typeshed import ReadableBuffer

from .data import DataMap
from .memory import HierarchicalAllocator
from .method import Method
from .program import Program
from .tensor import _Value
from .tracer import EventTracer

_T = TypeVar("_T")
_Source = str | PathLike[str] | ReadableBuffer

class Module:
    program: Program
    data_map: DataMap | None
    pack_weights: bool
    share_memory_arenas: bool
    methods: dict[str, Method]
    def __init__(
        self,
        source: _Source,
        data_path: _Source | Sequence[_Source] | None = None,
        pack_weights: bool = False,
        share_memory_arenas: bool = False,
    ) -> None: ...
    def load_method(self, name: str = "forward") -> Method: ...
    def execute(self, name: str, inputs: Sequence[_Value]) -> list[Any]: ...
    def forward(self, *inputs: _Value) -> Any: ...
    __call__ = forward
    def method_names(self) -> list[str]: ...

def alone(
    calls: list[object], subject: str, what: str, function: Callable[..., _T], *arguments: Any
) -> _T: ...
def load_with_exact_memories(
    program: Program,
    name: str,
    pack_weights: bool = False,
    data_map: DataMap | None = None,
    event_tracer: EventTracer | None = None,
    planned: HierarchicalAllocator | None = None,
    is_fast: bool = False,
) -> Method: ...
