"""Define the report of picotorch compile."""

from dataclasses import dataclass, field

from ..host.report import OPTIONAL, Report
from ..host.request import Estimate


@dataclass(frozen=True)
class Memories(Report):
    """Bytes of each memory that a method needs. unplanned: inputs and outputs outside of these."""

    method_pool: int
    planned: list[int]
    temp: int
    unplanned: int


@dataclass(frozen=True)
class Cost(Report):
    """Bytes of a .ptm file; instructions and cycles of a run of each method, None if unknown."""

    bytes: int
    instructions: int | None
    cycles: int | None


@dataclass(frozen=True)
class PackedWeights(Report):
    """The choice of packed weights: `calls` of the `can` eligible calls have them.

    selected: "all", "some" or "none" of the eligible calls. all, none: the cost of these two choices.
    message: the reason if nothing was measured.
    """

    selected: str
    calls: int
    can: int
    all: Cost
    none: Cost
    message: str


@dataclass(frozen=True)
class OtherTemp(Report):
    """A run with another size of temp memory, in bytes."""

    temp: int
    instructions: int
    cycles: int


@dataclass(frozen=True)
class SlowInstruction(Report):
    """An instruction of a profile, with the fields of profiling.ProfiledInstruction."""

    index: int
    call: str
    shapes: str
    ticks: int
    cycles: int | None
    share: float


@dataclass(frozen=True)
class CompiledMethod(Report):
    """A method of a .ptm file.

    constant: it has no instructions. before: needs of the program's method, None if the program has no
    method of this name. after: needs of the compiled method. min_temp, temp_fastest: bytes of temp
    memory that its kernels need, and with which it is fastest. temp_before: temp_fastest of the
    program.
    """

    method: str
    constant: bool
    before: Memories | None
    after: Memories
    min_temp: int
    temp_fastest: int
    temp_before: int | None
    time: Estimate | None = None
    other_temp: OtherTemp | None = None
    slowest: list[SlowInstruction] = field(default_factory=list)


@dataclass(frozen=True)
class CompiledModel(Report):
    """A .ptm file of all methods of a program.

    flash: bytes by part. packed_weights: None if there was no choice. min_temp: True for the minimum
    temp memory. measured_on: the emulated board that counted. message: the reason if nothing was
    counted. output: the file, or its folder in the C project.
    """

    model: str
    model_bytes: int
    core: str
    bytes: int
    flash: dict[str, int]
    packed_weights: PackedWeights | None
    notes: list[str]
    min_temp: bool
    methods: list[CompiledMethod]
    clock_hz: int | None = None
    measured_on: str | None = None
    message: str = ""
    output: str = ""


@dataclass(frozen=True)
class Library(Report):
    """The size in bytes of the library for a core.

    flash, stack: of library and kernels in a C project of compiled methods, without main.c and
    start-up. firmware: the flash of picotorch's small firmware with MicroPython and these kernels, None
    if unknown.
    """

    flash: int
    firmware: int | None
    stack: int | None


@dataclass(frozen=True)
class Fit(Report):
    """The room of .ptm files on a target.

    fits: None if an unknown part decides it. lacks: the reason if they do not fit.
    """

    fits: bool | None
    lacks: str


@dataclass(frozen=True)
class Compiled(Report):
    """.ptm files of models, or a C project with them.

    library: None without objects of a firmware. target: the chip or board. fit: whether it has room.
    kept: files of a C project that the user had changed, None for a .ptm file.
    """

    output: str
    core: str
    models: list[CompiledModel]
    library: Library | None
    target: str | None
    fit: Fit | None
    kept: list[str] | None = field(default=None, metadata=OPTIONAL)

    @property
    def has_room(self) -> bool:
        """Return False if the target has no room."""
        return self.fit is None or self.fit.fits is not False
