"""Define advice on a model, and the report of picotorch advise."""

from dataclasses import dataclass, field, replace
from typing import Literal

from ..host.report import HIDDEN, Report, json_key

# What a remedy presupposes: that the program is int8; that it is float32 instead; nothing
Stance = Literal["int8", "float32", ""]
IN_INT8: Stance = "int8"
IN_FLOAT32: Stance = "float32"
IN_EITHER: Stance = ""


@dataclass(frozen=True)
class Advice(Report):
    """Advice on a model.

    what: a clause. instructions: their numbers. bytes: of RAM or flash that the change can save.
    remedy: the change, "" for none. stance: IN_INT8, IN_FLOAT32 or IN_EITHER.
    """

    what: str
    instructions: tuple[int, ...] = ()
    bytes: int = 0
    remedy: str = ""
    stance: Stance = field(default=IN_EITHER, metadata=HIDDEN)


def agreed(found: list[Advice]) -> list[Advice]:
    """Return advice without contradictions: if any abandons int8, no remedy for int8 is left."""
    if not any(one.stance == IN_FLOAT32 for one in found):
        return found
    return [replace(one, remedy="") if one.stance == IN_INT8 else one for one in found]


@dataclass(frozen=True)
class LargeTensor(Report):
    """A tensor in planned memory at the peak, which is at `instruction`.

    first, last: the instructions between which it is needed.
    """

    made_by: str
    shape: str
    bytes: int
    first: int = field(metadata=json_key("from"))
    last: int = field(metadata=json_key("to"))
    instruction: int


@dataclass(frozen=True)
class CostlyLayer(Report):
    """A layer, its multiply-accumulates, and their share of the method's."""

    instruction: int
    call: str
    macs: int
    share: float


@dataclass(frozen=True)
class Advised(Report):
    """Advice on a method, its largest tensors and its layers with most multiply-accumulates."""

    model: str
    method: str
    constant_bytes: int
    planned: list[int]
    advice: list[Advice]
    memory: list[LargeTensor]
    layers: list[CostlyLayer]


@dataclass(frozen=True)
class Int8Share(Report):
    """The int8 layers of a method and their multiply-accumulates, and those of all layers."""

    layers: int
    all_layers: int
    macs: int
    all_macs: int
