from os import PathLike

from _typeshed import WriteableBuffer

from .errors import Error
from .program import BufferDataLoader

class FileDataLoader(BufferDataLoader):
    path: str
    def __init__(self, path: str | PathLike[str], buffer: WriteableBuffer | None = None) -> None: ...
    def explain(self, error: Error | None) -> str: ...
