"""Define the report of picotorch inspect."""

from dataclasses import dataclass, field
from typing import Any

from ..host.report import MERGED, OPTIONAL, Report, SizedTensor


@dataclass(frozen=True)
class ValueType(Report):
    """An output. type: "Tensor", "Int", "Bool" and so on."""

    type: str


@dataclass(frozen=True)
class Constant(ValueType):
    """An input or an expected output that is not a tensor: a number, string, None, or a list."""

    value: Any


@dataclass(frozen=True)
class TensorValue(ValueType):
    """A tensor of a test set."""

    tensor: SizedTensor = field(metadata=MERGED)


@dataclass(frozen=True)
class Quantization(Report):
    """The scale and zero point of an int8 input or output."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class PlannedTensor(TensorValue):
    """A tensor that is an input or output.

    planned: it is in a planned buffer. quantization: None for none.
    """

    planned: bool
    quantization: Quantization | None


@dataclass(frozen=True)
class NamedTensor(Report):
    """A parameter or buffer that the program can be asked for by its name."""

    name: str
    tensor: SizedTensor = field(metadata=MERGED)


@dataclass(frozen=True)
class Delegate(Report):
    """A delegate of a method.

    nbytes, stored: size and place of the processed data. compile_specs: key, and bytes in hexadecimal
    digits. registered: whether the backend is registered here.
    """

    backend: str
    nbytes: int
    stored: str
    compile_specs: list[list[str]]
    registered: bool


@dataclass(frozen=True)
class Operator(Report):
    """An operator of a method. kernel: whether this build has a kernel for it."""

    name: str
    kernel: bool


@dataclass(frozen=True)
class TensorPlace(Report):
    """A tensor of a method. value: its number; offset: in its memory."""

    value: int
    tensor: SizedTensor = field(metadata=MERGED)
    memory: str
    offset: int
    name: str


@dataclass(frozen=True)
class InstructionText(Report):
    """An instruction, with its values as text."""

    index: int
    call: str
    arguments: list[str]
    outputs: list[str]


@dataclass(frozen=True)
class MethodContents(Report):
    """The contents of a method. planned_buffers: their bytes; constant_bytes: of constant tensors."""

    name: str
    inputs: list[ValueType]
    outputs: list[ValueType]
    attributes: list[NamedTensor]
    backends: list[str]
    delegates: list[Delegate]
    operators: list[Operator]
    planned_buffers: list[int]
    constant_bytes: int
    tensors: list[TensorPlace]
    instructions: list[InstructionText]


@dataclass(frozen=True)
class NamedData(Report):
    """Data of a program that has a key."""

    key: str
    nbytes: int


@dataclass(frozen=True)
class TestSet(Report):
    """A test set of a bundled program."""

    method: str
    index: int
    inputs: list[ValueType]
    expected_outputs: list[ValueType]


@dataclass(frozen=True)
class Contents(Report):
    """The contents of a program.

    executorch: the releases that an int8 program can be from, None if they are unknown.
    constant_methods: values of the methods that only return them.
    """

    model: str
    bytes: int
    executorch: str | None
    constant_methods: dict[str, Any]
    named_data: list[NamedData]
    methods: list[MethodContents]
    test_sets: list[TestSet] | None = field(default=None, metadata=OPTIONAL)
