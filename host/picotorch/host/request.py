"""Define the request and the result of a run, the same on the twin and on every board."""

import dataclasses
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from picotorch import Error
from picotorch.schema import ERROR_NAMES, SUBJECTS

from . import show
from .report import Report, plain

POOL_SIZE = 65536  # bytes of method pool without --pool-size
TEMP_SIZE = 65536
HOST_MEMORY = 1 << 24  # bytes of each memory on the twin when it is only compared or measured
PORT = "port:"  # what the name of a connected board begins with
RUN_TIMEOUT = 120.0  # seconds, for a run
ANSWER_TIMEOUT = 10.0  # seconds, for any other answer of a connected board
RTOL, ATOL = 1e-5, 1e-8  # of the expected outputs of a bundled program


@dataclasses.dataclass
class Request:
    """One run of one method.

    model: bytes of the .pte file. inputs: arrays by input index; a tensor's has the program's sizes.
    pool_size, temp_size: None for the method's needs on a connected board, for all memory of an
    emulated board, for the defaults on the twin. further: inputs of further executions of the loaded
    method, one after the other. planned_sizes: bytes by planned buffer, by default exactly the method's
    needs. pack_weights: let kernels store constant weights in the pool, packed for their loops: faster.
    core: as board.toml names it; the twin packs weights for it, as a board of this core does.
    executions: how many are measured, instruction by instruction; on a board one at most. firmware: by
    default the board's with all kernels; bare: the one without MicroPython. data: bytes of the .ptd
    files with the program's external tensors. timeout: limit of a connected board in seconds.
    planned_fill: value of each byte of planned memory on the twin before load. threads: number of
    threads that share large layers on the twin.
    """

    model: bytes
    name: str
    inputs: list[Any]
    method: str = "forward"
    pool_size: int | None = POOL_SIZE
    planned_sizes: dict[int, int] = dataclasses.field(default_factory=dict)
    temp_size: int | None = TEMP_SIZE
    pack_weights: bool = False
    core: str | None = None
    executions: int = 0
    firmware: Path | None = None
    bare: bool = False
    data: list[bytes] = dataclasses.field(default_factory=list)
    further: list[list[Any]] = dataclasses.field(default_factory=list)
    timeout: float | None = None
    planned_fill: int = 0
    threads: int = 1


@dataclasses.dataclass
class Usage(Report):
    """Bytes of a memory. used: of temp memory, as many as kernels use if available."""

    used: int
    size: int

    @property
    def available(self) -> int:
        """Return the bytes of `used` that the memory has."""
        return min(self.used, self.size)


class Event(NamedTuple):
    """Ticks that an instruction took in all its calls; see picotorch.EventTracer."""

    ticks: int
    calls: int


def read_events(buffer: Any) -> list[Event]:
    """Return the events of an EventTracer's memory."""
    return [Event(ticks, calls) for ticks, calls in struct.iter_unpack("<QI4x", buffer)]


@dataclasses.dataclass(frozen=True)
class Estimate(Report):
    """Estimated cost of an execution.

    ms, min_ms, max_ms: None without a clock. counted: a board counted the instructions; otherwise they
    are computed from the sizes of the tensors.
    """

    instructions: int
    cycles: int
    ms: float | None
    min_ms: float | None
    max_ms: float | None
    counted: bool = True


@dataclasses.dataclass
class Connected(Report):
    """Facts of a run on a connected board.

    machine: its name in its firmware. model_at: the file that was used, or the frozen model
    (picotorch_models.NAME), None if the model was sent. in_place: it was used in place.
    frozen_not_used: the reason if a frozen model was not used, None if there is none of this name.
    heap_free: free bytes of MicroPython's heap "before" the run, and with its memories ("set up").
    milliseconds, cycles: of the phases, None without such a clock; ticks: unit of `events`, "cycles" or
    "us". beside: the emulated board whose instructions the result has. clock_hz: of the processor, None
    if unknown. estimated: of an execution, from the instructions of `beside`: see cycles.estimate.
    """

    machine: str
    model_at: str | None = None
    in_place: bool = False
    frozen_not_used: str | None = None
    heap_free: dict[str, int | None] = dataclasses.field(default_factory=dict)
    milliseconds: dict[str, float | None] | None = None
    cycles: dict[str, int | None] | None = None
    ticks: str = "us"
    beside: str | None = None
    clock_hz: int | None = None
    estimated: Estimate | None = None


def subject_of(error: Error) -> int:
    """Return the number of an error's subject in schema.SUBJECTS, 0 for none.

    An error that Python raised has its name only.
    """
    return error.subject_number or (SUBJECTS.index(error.subject) if error.subject in SUBJECTS else 0)


@dataclasses.dataclass
class Result(Report):
    """The result of a run. `code` is 0, or the error's; then fields after the failure are None.

    subject: number of the error's subject in schema.SUBJECTS, 0 for none.

    further: outputs of the further executions, up to the failure.

    instructions, stack (bytes) and heap_bytes_allocated are measured on boards only: of the phases load
    and execute; instructions also of verify, which is Program.load, set_inputs and get_outputs.
    packed: bytes of the pool with packed weights. pool: the bytes in use before packed weights, which
    are the same everywhere; including packed weights if the request has a core. log: lines of the run
    and the board's output. began_load: its memories were there. events: of each measured execution,
    events of the loop's end and of every instruction. cycles: of an execution, by the estimate of an
    emulated board.
    """

    model: str
    method: str
    board: str
    code: int = 0
    message: str = ""
    subject: int = 0
    instructions: dict[str, int] | None = None
    cycles: int | None = None
    began_load: bool = False
    method_pool: Usage | None = None
    packed: int = 0
    planned: list[Usage] = dataclasses.field(default_factory=list)
    temp: Usage | None = None
    stack: dict[str, int] | None = None
    heap_bytes_allocated: int | None = None
    outputs: list[np.ndarray] = dataclasses.field(default_factory=list)
    pool: bytes = b""
    events: list[list[Event]] = dataclasses.field(default_factory=list)
    log: list[str] = dataclasses.field(default_factory=list)
    further: list[list[np.ndarray]] = dataclasses.field(default_factory=list)
    connected: Connected | None = None

    def set_error(self, error: Error) -> None:
        """Record the error that ended the run."""
        self.code, self.message, self.subject = error.code, error.message, subject_of(error)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of `run --json`."""
        found: dict[str, Any] = {
            "model": self.model, "method": self.method, "board": self.board, "status": self.status,
            "error": show.error(self.code, self.status, self.message) if self.code else None}
        for name in ("instructions", "cycles", "method_pool", "packed", "planned", "temp", "stack",
                     "heap_bytes_allocated"):
            found[name] = plain(getattr(self, name))
        found["outputs"] = [{"dtype": output.dtype.name, "sizes": list(output.shape),
                             "values": output.tolist()} for output in self.outputs]
        return found if self.connected is None else found | {"connected": self.connected.to_json()}

    @property
    def status(self) -> str:
        """Return "ok", or the name of the error."""
        return "ok" if self.code == 0 else ERROR_NAMES.get(self.code, "Unknown")
