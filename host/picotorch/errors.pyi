from types import ModuleType

from _typeshed import ReadableBuffer

OK: int
INTERNAL: int
INVALID_STATE: int
END_OF_METHOD: int
ALREADY_LOADED: int
NOT_SUPPORTED: int
NOT_IMPLEMENTED: int
INVALID_ARGUMENT: int
INVALID_TYPE: int
OPERATOR_MISSING: int
NOT_FOUND: int
MEMORY_ALLOCATION_FAILED: int
ACCESS_FAILED: int
INVALID_PROGRAM: int
INVALID_EXTERNAL_DATA: int
OUT_OF_RESOURCES: int
DELEGATE_INVALID_COMPATIBILITY: int
DELEGATE_MEMORY_ALLOCATION_FAILED: int
DELEGATE_INVALID_HANDLE: int

class Error(Exception):
    code: int
    subject: str | None
    index: int
    requested: int
    available: int
    source: object
    text: str | None
    argument: int
    subject_number: int
    def __init__(self) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def remedy(self) -> str: ...
    @property
    def message(self) -> str: ...

TEXTS: list[str]

def spare_error() -> None: ...
def fail(
    code: int,
    what: str = "",
    subject: str | None = None,
    index: int = -1,
    requested: int = -1,
    available: int = -1,
    remedy: str = "",
    source: object = None,
    argument: int = -1,
    kind: int = 0,
) -> Error: ...
def need(value: object, kind: type | str, subject: str | None) -> None: ...
def check_index(index: int, count: int, subject: str) -> None: ...
def library_error(
    code: int,
    subject: int,
    index: int,
    argument: int,
    requested: int,
    available: int,
    what: str,
    source: object,
    subject_name: str | None = None,
    remedy: str = "",
) -> Error: ...
def part(name: str) -> ModuleType: ...
def text_of(data: ReadableBuffer) -> str: ...
