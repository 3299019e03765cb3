"""Test models, failures and parity on a connected board, and write a report: picotorch selftest."""

import dataclasses
import functools
import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import picotorch
from picotorch import Error
from picotorch.errors import (
    INVALID_PROGRAM,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    OPERATOR_MISSING,
)

from ..host import files, show
from ..host.report import MERGED, Report
from ..host.request import Request, Result
from ..host.sources import ROOT
from ..run import parity
from ..run.device import device_run
from ..run.device.protocol import Link
from ..run.device.serial_ports import resolve
from ..run.report import model_place
from ..run.run_request import RunRequest
from ..run.running import HOST, error_of
from ..run.running import run as run_anywhere

FIXTURES = ROOT / "tests" / "fixtures"
MODELS = ("add_5", "mlp", "int8_elementwise", "gru_stateful", "dynamic_batch", "control_flow", "lstm",
          "int8_ds_cnn")
NO_KERNELS = ("constant_methods", "vocabulary")  # a model, and a method of it that calls no operator
_SMALL = 16  # bytes of a pool that is too small for this method
_ABSENT = (OPERATOR_MISSING, NOT_SUPPORTED)  # errors of a build without a kernel or a feature

_Run: TypeAlias = Callable[[Request], Result]


@dataclass(frozen=True)
class Figures(Report):
    """Figures of a run on the board, see request.Connected. stack: bytes by phase."""

    milliseconds: dict[str, float | None] | None
    cycles: dict[str, int | None] | None
    heap_free: dict[str, int | None]
    stack: dict[str, int] | None
    model_at: str | None


@dataclass(frozen=True)
class Step(Report):
    """A step of the test. passed: None if it was left out. seconds: its time."""

    step: str
    passed: bool | None
    message: str
    figures: Figures | None = field(default=None, metadata=MERGED)
    seconds: float = 0.0


@dataclass(frozen=True)
class Tested(Report):
    """The report of all steps on a board.

    It has passed if a step passed and none failed. board: see device_run.facts_of.
    """

    picotorch: str
    date: str
    host: str
    board: dict[str, Any]
    steps: list[Step]
    passed: bool


class _Outcome(NamedTuple):
    passed: bool | None
    message: str = ""
    figures: Figures | None = None


class LeftOut(Exception):
    """A step that this board cannot run. Its text is the reason."""


def selftest(port: str, tell: Callable[[Step], None], timeout: float | None = None) -> Tested:
    """Run the steps on a board and return the report.

    tell: receives each step when it is done. Raises an Error if there is no board to test.
    """
    port = resolve(port)
    with Link(port, timeout) as link:
        device_run.begin(link)
        facts = device_run.facts_of(link)
    date, steps = datetime.now(UTC).isoformat(timespec="seconds"), list[Step]()

    def run(request: Request) -> Result:
        return device_run.run(dataclasses.replace(request, timeout=timeout), port)

    for name, step in _steps(run):
        steps.append(_done(name, step))
        tell(steps[-1])
    verdicts = [step.passed for step in steps]
    return Tested(picotorch.__version__, date, platform.platform(), facts, steps,
                  True in verdicts and False not in verdicts)


def _steps(run: _Run) -> Iterator[tuple[str, Callable[[], _Outcome]]]:
    """Yield (name, function) of each step. Failures run no kernel, so any firmware supports them."""
    for name in MODELS:
        yield f"model {name}", functools.partial(_named_model, run, name)
    yield "a pool that is too small", lambda: _small_pool(run)
    yield "a pool that is large enough", lambda: _model(run, *_no_kernels())
    yield "a damaged program", lambda: _damaged(run)


def _done(name: str, step: Callable[[], _Outcome]) -> Step:
    started = time.monotonic()
    try:
        outcome = step()
    except LeftOut as reason:
        outcome = _Outcome(None, str(reason))
    except Error as error:
        outcome = _Outcome(None if _is_full(error) else False, str(error))
    return Step(name, *outcome, seconds=round(time.monotonic() - started, 1))


def _is_full(error: Error) -> bool:
    """Return True if the heap is too small for a step.

    A method pool that is too small is a failure, since its size comes from the twin.
    """
    return error.code == MEMORY_ALLOCATION_FAILED and error.subject == "heap"


def _request(name: str) -> tuple[Request, parity.Reference]:
    path = FIXTURES / name / "model.pte"
    return parity.make_request(RunRequest(model=path))


def _no_kernels() -> tuple[Request, parity.Reference]:
    """Return a request that runs no kernel, and has no inputs."""
    name, method = NO_KERNELS
    model = (FIXTURES / name / "model.pte").read_bytes()
    return Request(model, name, [], method, None, temp_size=None), parity.Reference("none", [None])


def _named_model(run: _Run, name: str) -> _Outcome:
    return _model(run, *_request(name))


def _model(run: _Run, request: Request, reference: parity.Reference) -> _Outcome:
    """Return the times of a run that agrees with the twin's."""
    result = _passing(run(request))
    if not parity.agree(run_anywhere(request, HOST), result, reference):
        return _Outcome(False, "the board and the twin DO NOT AGREE")
    if result.heap_bytes_allocated:
        return _Outcome(False, f"{result.heap_bytes_allocated} bytes of heap were allocated")
    found = result.connected
    assert found is not None  # session.run has set it
    figures = Figures(found.milliseconds, found.cycles, found.heap_free, result.stack, found.model_at)
    return _Outcome(True, "" if found.model_at is None else model_place(found), figures)


def _passing(result: Result) -> Result:
    if result.code in _ABSENT:
        raise LeftOut(f"{result.status}: {result.message}")
    if result.code:
        raise error_of(result)
    return result


def _small_pool(run: _Run) -> _Outcome:
    request, _ = _no_kernels()
    request.pool_size = _SMALL
    return _has_failed(run(request), MEMORY_ALLOCATION_FAILED, f"{_SMALL}B available")


def _damaged(run: _Run) -> _Outcome:
    """Cut off the last quarter of the file, unseen by the host's checks."""
    request, _ = _no_kernels()
    request.pool_size = request.temp_size = 1024
    request.model = request.model[: len(request.model) * 3 // 4]
    return _has_failed(run(request), INVALID_PROGRAM, "")


def _has_failed(result: Result, code: int, text: str) -> _Outcome:
    """Return the outcome of a call that has to fail with this code and message."""
    if result.code in _ABSENT:
        _passing(result)
    return _Outcome(result.code == code and text in result.message,
                    f"{result.status}: {result.message}")


def write(report: Tested, path: Path) -> None:
    """Write the report as JSON. Raises AccessFailed."""
    files.write(path, json.dumps(report.to_json(), indent=1) + "\n")


_VERDICTS = {True: "ok      ", False: "FAILED  ", None: "left out"}


def show_step(step: Step) -> None:
    times = (step.figures and step.figures.milliseconds) or {}
    execute = times.get("execute")
    took = f"  execute {execute:,} ms" if execute is not None else ""
    show.line(f"{_VERDICTS[step.passed]}  {step.step}{took}  {step.message}".rstrip())


def show_text(report: Tested, path: Path) -> None:
    board, verdicts = report.board, [step.passed for step in report.steps]
    counts = [f"{verdicts.count(verdict)} {word}" for verdict, word in
              ((True, "passed"), (None, "left out"), (False, "FAILED")) if verdict in verdicts]
    show.line(f"{board['machine']}, {board['version']}: {len(verdicts)} steps, {', '.join(counts)}")
    if True not in verdicts and False not in verdicts:
        show.line("Nothing was tested: this firmware or its memory has no room for any step.")
    if report.passed or False in verdicts:
        show.line(f"The report is {path}. Open an issue in picotorch's repository, titled \"selftest: "
                  f"{board['machine']}\", and attach it: docs/boards.md then lists the board as run on "
                  "hardware.")
