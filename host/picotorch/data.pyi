from collections.abc import Sequence
from typing import Any, NoReturn

from .errors import Error
from .program import STRICT, BufferDataLoader
from .tensor import TensorInfo

class TensorLayout(TensorInfo): ...

class DataMap:
    texts: list[str]
    files: list[FlatTensorDataMap]
    libraries: tuple[Any, ...]
    def __init__(self, files: list[FlatTensorDataMap]) -> None: ...
    def get_num_keys(self) -> int: ...
    def get_key(self, index: int) -> str: ...
    def keys(self) -> list[str]: ...
    def get_tensor_layout(self, key: str) -> TensorLayout: ...
    def get_data(self, key: str, view: memoryview | None = None) -> memoryview: ...
    def explain(self, error: Error) -> str: ...

class FlatTensorDataMap(DataMap):
    loader: BufferDataLoader
    library: Any
    requested_key: str | None
    def __init__(self, loader: BufferDataLoader) -> None: ...
    @staticmethod
    def load(loader: BufferDataLoader, verification: int = STRICT) -> FlatTensorDataMap: ...
    def on_error(
        self,
        code: int,
        subject: int,
        index: int,
        argument: int,
        requested: int,
        available: int,
        what: Any,
    ) -> NoReturn: ...

class MergedDataMap(DataMap):
    @staticmethod
    def load(data_maps: Sequence[DataMap]) -> MergedDataMap: ...
