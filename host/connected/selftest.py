"""picotorch selftest: models, failures and parity on a connected board, with a report to send in."""

import dataclasses
import json
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import picotorch
from picotorch import Error
from picotorch.errors import (
    INVALID_PROGRAM,
    MEMORY_ALLOCATION_FAILED,
    fail,
)

from .. import files, show
from ..run import parity
from ..run.request import Request, Result
from ..run.running import HOST
from ..run.running import run as run_anywhere
from . import session
from .link import Link
from .serial_ports import resolve

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
# From the smallest on: what does not fit is told, and no failure of the board
MODELS = ("add_5", "mlp", "int8_elementwise", "gru_stateful", "dynamic_batch", "control_flow", "lstm",
          "int8_ds_cnn")
_SMALL = 16  # bytes of a pool that is too small for any model

def selftest(port: str, tell: Callable[[dict], None], patience: float | None = None) -> dict:
    """The report as plain data; `tell` is called with each step when it is done. Raises the Error that
    says why there is no board to test."""
    port = resolve(port)
    with Link(port, patience) as link:
        session.begin(link)
        facts = session.facts_of(link)
    report = {"picotorch": picotorch.__version__,
              "date": datetime.now(UTC).isoformat(timespec="seconds"),
              "host": platform.platform(), "board": facts, "steps": []}

    def run(request):
        return session.run(dataclasses.replace(request, patience=patience), port)

    for name, step in _steps(run):
        report["steps"].append(_done(name, step))
        tell(report["steps"][-1])
    report["passed"] = all(step["passed"] for step in report["steps"])
    return report


def _steps(run):
    """(name, function) of each step."""
    for name in MODELS:
        yield f"model {name}", lambda name=name: _model(name, run)
    yield "a pool that is too small", lambda: _small_pool(run)
    yield "the same, in a pool that is not", lambda: _model(MODELS[0], run)
    yield "a damaged program", lambda: _damaged(run)


def _done(name, step):
    started = time.monotonic()
    entry = {"step": name, "passed": True, "message": ""}
    try:
        entry |= step()
    except Error as error:
        too_large = error.code == MEMORY_ALLOCATION_FAILED and error.subject == "heap"
        entry |= {"passed": too_large, "message": ("left out: " if too_large else "") + str(error)}
    return {**entry, "seconds": round(time.monotonic() - started, 1)}


def _request(name) -> tuple[Request, parity.Reference]:
    path = FIXTURES / name / "model.pte"
    return parity.make_request(path.read_bytes(), path, "forward", None, 0)


def _model(name, run):
    """Parity, and what a run took."""
    request, reference = _request(name)
    result = _passing(run(request))
    if not parity.agree(run_anywhere(request, HOST), result, reference):
        return {"passed": False, "message": "the board and the twin DO NOT AGREE"}
    if result.heap_bytes_allocated:
        return {"passed": False, "message": f"{result.heap_bytes_allocated} bytes of heap were taken"}
    found = result.connected
    return {"milliseconds": found.milliseconds, "cycles": found.cycles, "heap_free": found.heap_free,
            "stack": result.stack}


def _passing(result: Result) -> Result:
    if result.code:
        raise fail(result.code, result.message)
    return result


def _small_pool(run):
    request, _ = _request(MODELS[0])
    request.pool_size = _SMALL
    return _has_failed(run(request), MEMORY_ALLOCATION_FAILED, f"{_SMALL}B available")


def _damaged(run):
    """The last quarter of the file is missing, which only the board is told."""
    request, _ = _request(MODELS[0])
    request.pool_size = request.temp_size = 1024
    request.model = request.model[: len(request.model) * 3 // 4]
    return _has_failed(run(request), INVALID_PROGRAM, "")


def _has_failed(result, code, text):
    """Tell if a call failed as it should; the message is kept."""
    return {"passed": result.code == code and text in result.message,
            "message": f"{result.status}: {result.message}"}


def write(report: dict, path: Path) -> None:
    files.write(path, json.dumps(report, indent=1) + "\n")


def show_step(step: dict) -> None:
    times = step.get("milliseconds") or {}
    took = f"  execute {times['execute']:,} ms" if times.get("execute") is not None else ""
    verdict = "ok    " if step["passed"] else "FAILED"
    show.line(f"{verdict}  {step['step']}{took}  {step['message']}".rstrip())


def show_text(report: dict, path: Path) -> None:
    failed = sum(not step["passed"] for step in report["steps"])
    verdict = "all passed" if not failed else f"{failed} FAILED"
    board = report["board"]
    show.line(f"{board['machine']}, {board['version']}: {len(report['steps'])} steps, {verdict}")
    show.line(f"The report is {path}. Open an issue in picotorch's repository, titled \"selftest: "
              f"{board['machine']}\", and attach it: docs/boards.md then lists the board as run on "
              "hardware.")
