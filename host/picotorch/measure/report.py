"""Define the report of picotorch size."""

from dataclasses import dataclass, field

from ..host.report import MERGED, OPTIONAL, Report
from ..host.request import Estimate
from ..inspect.report import Delegate
from .flash import OperatorsFlash


@dataclass(frozen=True)
class Total(Report):
    """Bytes by part, None for unknown ones. all: sum of the known parts; of: available bytes."""

    parts: dict[str, int | None]
    all: int
    of: int | None


@dataclass(frozen=True)
class Fit(Report):
    """A method in the RAM and flash of a chip.

    fits: None if an unknown part decides it. lacks: the reason if the method does not fit.
    """

    fits: bool | None
    lacks: str
    ram: Total
    flash: Total


@dataclass(frozen=True)
class TempSize(Report):
    """Bytes of temp memory, and the time of a run with them, None if unknown."""

    bytes: int
    time: Estimate | None


@dataclass(frozen=True)
class TempSizes(Report):
    """The sizes of temp memory: minimum, default and preferred. selected: bytes of the selected one."""

    min: TempSize
    used: TempSize
    preferred: TempSize
    selected: int


@dataclass(frozen=True)
class MemoryFit(Report):
    """Bytes of a memory that a method needs, and that a board has; None if unknown."""

    needed: int
    size: int | None


@dataclass(frozen=True)
class OnTarget(Report):
    """A method on a chip or board. message: the reason if nothing was measured."""

    core: str
    clock_hz: int | None
    fits: bool | None
    deployments: dict[str, Fit]
    temp: TempSizes
    time: Estimate | None
    message: str


@dataclass(frozen=True, kw_only=True)
class OnChip(OnTarget):
    """A method on a chip. measured_on: the emulated board that counted."""

    chip: str
    title: str
    source: str | None
    measured_on: str | None

    @property
    def name(self) -> str:
        return self.chip


@dataclass(frozen=True, kw_only=True)
class OnBoard(OnTarget):
    """A method on an emulated board.

    stack: bytes by phase of a run. stack_bound: of any run. firmware_flash: bytes of the built
    firmware. kernels: see flash_of_operators.
    """

    board: str
    memories: dict[str, MemoryFit]
    stack: dict[str, int] | None
    stack_bound: int | None
    stack_size: int
    firmware_flash: int | None
    kernels: OperatorsFlash | None
    built: bool

    @property
    def name(self) -> str:
        return self.board


@dataclass(frozen=True)
class Needs(Report):
    """Needs of a method in bytes, the same on every board.

    packed: of method_pool. temp: the default, preferred_temp: by core. unplanned: of inputs, outputs
    and mutable buffers outside the planned buffers.
    """

    model: str
    method: str
    method_pool: int
    packed: int
    planned: list[int]
    min_temp: int
    temp: int
    preferred_temp: dict[str, int]
    unplanned: int
    stack_free: int
    program_bytes: int
    data_bytes: list[int]
    constant_bytes: int
    operators: list[str]
    delegates: list[Delegate]

    @property
    def is_complete(self) -> bool:
        """Return False if backends are missing.

        The method does not run without them, and their memory is not counted.
        """
        return all(delegate.registered for delegate in self.delegates)


@dataclass(frozen=True)
class Size(Report):
    """Needs of a method, and the chips and boards that they were compared with."""

    needs: Needs = field(metadata=MERGED)
    boards: list[OnBoard]
    chips: list[OnChip]
    connected: Report | None = field(default=None, metadata=OPTIONAL)
