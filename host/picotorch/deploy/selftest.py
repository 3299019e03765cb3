"""Test models, failures and parity on a connected board, and write a report: picotorch selftest."""

import dataclasses
import functools
import json
import platform
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import picotorch
from picotorch import Error
from picotorch.errors import (
    INVALID_PROGRAM,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    OPERATOR_MISSING,
)

from ..host import files, show
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


class LeftOut(Exception):
    """A step that this board cannot run. Its text is the reason."""


def selftest(port: str, tell: Callable[[dict[str, Any]], None],
             timeout: float | None = None) -> dict[str, Any]:
    """Run the steps on a board and return the report as plain data.

    tell: receives each step when it is done. "passed" of a step is None if it was left out. The report
    has passed if a step passed and none failed. Raises an Error if there is no board to test.
    """
    port = resolve(port)
    with Link(port, timeout) as link:
        device_run.begin(link)
        facts = device_run.facts_of(link)
    report: dict[str, Any] = {
              "picotorch": picotorch.__version__,
              "date": datetime.now(UTC).isoformat(timespec="seconds"),
              "host": platform.platform(), "board": facts, "steps": []}

    def run(request: Request) -> Result:
        return device_run.run(dataclasses.replace(request, timeout=timeout), port)

    for name, step in _steps(run):
        report["steps"].append(_done(name, step))
        tell(report["steps"][-1])
    verdicts = [step["passed"] for step in report["steps"]]
    report["passed"] = True in verdicts and False not in verdicts
    return report


def _steps(run: _Run) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield (name, function) of each step. Failures run no kernel, so any firmware supports them."""
    for name in MODELS:
        yield f"model {name}", functools.partial(_named_model, run, name)
    yield "a pool that is too small", lambda: _small_pool(run)
    yield "the same, in a pool that is not", lambda: _model(run, *_no_kernels())
    yield "a damaged program", lambda: _damaged(run)


def _done(name: str, step: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    started = time.monotonic()
    entry = {"step": name, "passed": True, "message": ""}
    try:
        entry |= step()
    except LeftOut as reason:
        entry |= {"passed": None, "message": str(reason)}
    except Error as error:
        entry |= {"passed": None if _is_full(error) else False, "message": str(error)}
    return {**entry, "seconds": round(time.monotonic() - started, 1)}


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


def _named_model(run: _Run, name: str) -> dict[str, Any]:
    return _model(run, *_request(name))


def _model(run: _Run, request: Request, reference: parity.Reference) -> dict[str, Any]:
    """Return the times of a run that agrees with the twin's."""
    result = _passing(run(request))
    if not parity.agree(run_anywhere(request, HOST), result, reference):
        return {"passed": False, "message": "the board and the twin DO NOT AGREE"}
    if result.heap_bytes_allocated:
        return {"passed": False, "message": f"{result.heap_bytes_allocated} bytes of heap were taken"}
    found = result.connected
    assert found is not None  # session.run has set it
    return {"milliseconds": found.milliseconds, "cycles": found.cycles, "heap_free": found.heap_free,
            "stack": result.stack, "model_at": found.model_at,
            "message": "" if found.model_at is None else model_place(found)}


def _passing(result: Result) -> Result:
    if result.code in _ABSENT:
        raise LeftOut(f"{result.status}: {result.message}")
    if result.code:
        raise error_of(result)
    return result


def _small_pool(run: _Run) -> dict[str, Any]:
    request, _ = _no_kernels()
    request.pool_size = _SMALL
    return _has_failed(run(request), MEMORY_ALLOCATION_FAILED, f"{_SMALL}B available")


def _damaged(run: _Run) -> dict[str, Any]:
    """Cut off the last quarter of the file, unseen by the host's checks."""
    request, _ = _no_kernels()
    request.pool_size = request.temp_size = 1024
    request.model = request.model[: len(request.model) * 3 // 4]
    return _has_failed(run(request), INVALID_PROGRAM, "")


def _has_failed(result: Result, code: int, text: str) -> dict[str, Any]:
    """Return True if a call failed with the expected code and message."""
    if result.code in _ABSENT:
        _passing(result)
    return {"passed": result.code == code and text in result.message,
            "message": f"{result.status}: {result.message}"}


def write(report: dict[str, Any], path: Path) -> None:
    """Write the report as JSON. Raises AccessFailed."""
    files.write(path, json.dumps(report, indent=1) + "\n")


_VERDICTS = {True: "ok      ", False: "FAILED  ", None: "left out"}


def show_step(step: dict[str, Any]) -> None:
    times = step.get("milliseconds") or {}
    took = f"  execute {times['execute']:,} ms" if times.get("execute") is not None else ""
    show.line(f"{_VERDICTS[step['passed']]}  {step['step']}{took}  {step['message']}".rstrip())


def show_text(report: dict[str, Any], path: Path) -> None:
    board, verdicts = report["board"], [step["passed"] for step in report["steps"]]
    counts = [f"{verdicts.count(verdict)} {word}" for verdict, word in
              ((True, "passed"), (None, "left out"), (False, "FAILED")) if verdict in verdicts]
    show.line(f"{board['machine']}, {board['version']}: {len(verdicts)} steps, {', '.join(counts)}")
    if True not in verdicts and False not in verdicts:
        show.line("Nothing was tested: this firmware or its memory has no room for any step.")
    if report["passed"] or False in verdicts:
        show.line(f"The report is {path}. Open an issue in picotorch's repository, titled \"selftest: "
                  f"{board['machine']}\", and attach it: docs/boards.md then lists the board as run on "
                  "hardware.")
