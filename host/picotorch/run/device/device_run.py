"""Run a request on a connected board: the runner of the firmware, sent over the raw REPL."""

import dataclasses
import re
import zlib
from pathlib import Path, PurePath
from typing import Any

import picotorch
from picotorch import Error
from picotorch.errors import (
    ACCESS_FAILED,
    INVALID_STATE,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    NOT_SUPPORTED,
    fail,
)
from picotorch.module import load_with_exact_memories

from ...host import frozen_models, quoting
from ...host.request import PORT, RUN_TIMEOUT, Connected, Request, Result
from ...host.runner_log import log_of
from ...host.sources import ROOT
from ...host.twin import open_data, open_program
from ...host.values import TENSOR
from ..runner_files import PHASES, make_job, read_files, read_phases, read_report
from .answers import OneOf
from .protocol import ON_BOARD, Link, printable
from .serial_ports import resolve

FROZEN = ROOT / "port" / "firmware" / "frozen"
_MEASURED_US = 20_000
_COUNTER = 2  # ticks per microsecond; from this rate on the counter is not just another clock
_TOLERATED = 0.1  # maximum difference of cycles and time: a counter of 30 bits overflows soon


def run(request: Request, port: str) -> Result:
    """Return the result. Raises Error if the board reported none."""
    port = resolve(port)
    uses_preferred = request.temp_size is None
    request = with_memories(request)
    with Link(port, request.timeout) as link:
        found = begin(link)
        result = Result(request.name, request.method, PORT + port, connected=found)
        _put_together(link, request, found)
        if uses_preferred:
            link.do("loading the model", "use_preferred_temp()", "task", request.timeout or RUN_TIMEOUT)
        answers = link.do("running the model", "run()", "task", request.timeout or RUN_TIMEOUT,
                          each=OneOf((str, int), bytes))
        measured = link.ask("reading the clock", f"say(ticks_in({_MEASURED_US}))", (int, int), "board")
        found.clock_hz = link.ask("reading the clock", _CLOCK, OneOf(None, int))
        result.log = [printable(line) for line in link.log]
    try:
        _read(request, result, _files(answers), measured)
    except Exception as error:  # a board may send any answer
        raise fail(ACCESS_FAILED, f"answered with a report that cannot be read: {_named(error)}",
                   link.name, remedy="reset it, and try again; if it happens again, deploy or flash "
                                     "picotorch again") from None
    return result


def _named(error: Exception) -> str:
    return printable(error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}")


def _read(request: Request, result: Result, files: dict[str, bytes], measured: tuple[int, int]) -> None:
    """Read the files of a run into its result. Raises any exception."""
    if len(files["report"]) > _LONGEST_REPORT:
        raise ValueError(f"{len(files['report'])} bytes")
    report = read_report(files)
    for name, text in report.items():
        if len(text) > _LONGEST_NUMBER and re.fullmatch("[-+]?(0x)?[0-9a-fA-F_]+", text):
            raise ValueError(f"{name} is a number of {len(text)} digits")
    found = result.connected
    assert found is not None
    read_files(request, result, report, files)
    _read_times(found, report, *measured)
    found.heap_free["set up"] = int(report["heap_free"]) if "heap_free" in report else None
    result.log += log_of(request, result)


def version_of(link: Link) -> str | None:
    """Return the version of picotorch on a board, or None if none can be imported."""
    version: str | None = link.ask("looking for picotorch", _WHAT, _WHAT_SHAPE)[2]
    return version


def begin(link: Link) -> Connected:
    """Return the facts of the board.

    Raises NotFound if it has no picotorch, InvalidState if picotorch cannot be imported, NotSupported
    for another version.
    """
    machine, free, version, fault = link.ask("identifying the board", _WHAT, _WHAT_SHAPE)
    if fault is not None:
        raise fail(INVALID_STATE, f"picotorch cannot be imported there: {fault}", link.name,
                   remedy="picotorch deploy copies all of it again")
    if version is None:
        raise fail(NOT_FOUND, f"{machine} has no module picotorch", link.name,
                   remedy="picotorch deploy copies it there where there is a native module for it, and "
                          "picotorch flash a firmware that has it")
    if version != picotorch.__version__:
        raise fail(NOT_SUPPORTED, f"has picotorch {version}, this computer {picotorch.__version__}",
                   link.name, remedy="deploy or flash the same version")
    return Connected(machine, heap_free={"before": free})


def machine_of(link: Link) -> str:
    """Return the name that the board reports."""
    machine: str = link.ask("identifying the board", _WHAT, _WHAT_SHAPE)[0]
    return machine


_WHAT = """\
gc.collect()
_free = gc.mem_free()
try:
    import picotorch
    _version, _fault = getattr(picotorch, '__version__', 'of another time'), None
except ImportError as _error:  # of this module, or of one that it imports
    _version, _fault = None, str(_error)
    if _fault in ("no module named 'picotorch'", 'module not found'):
        _fault = None
say((getattr(sys.implementation, '_machine', sys.platform), _free, _version, _fault))
"""
_WHAT_SHAPE = (str, int, OneOf(None, str), OneOf(None, str))
_FINDING = ON_BOARD / "finding.py"
_Found = tuple[str | None, list[tuple[str, int]], str | None]
_FOUND = (OneOf(None, str), [(str, int)], OneOf(None, str))
_LONGEST_REPORT = 1 << 20  # bytes
_LONGEST_NUMBER = 20  # characters of a number of 64 bits

_RESERVE = """\
gc.collect()
try:
    _reserved = bytearray(max(0, min({}, gc.mem_free() - {})))
except MemoryError:
    _reserved = None
"""
_RUNNER = 40 * 1024  # bytes of heap for the runner, and for the compiler while it is sent


_FACTS = """\
import sys
gc.collect()
_facts = {'machine': getattr(sys.implementation, '_machine', sys.platform), 'platform': sys.platform,
          'version': sys.version, 'mpy': getattr(sys.implementation, '_mpy', None),
          'heap_free': gc.mem_free()}
try:
    import os
    _numbers = os.statvfs('')
    _facts['files_free'] = max(0, _numbers[0] * _numbers[4])
except (ImportError, AttributeError, OSError):
    _facts['files_free'] = None
try:
    import vfs
    _facts['romfs'] = len(memoryview(vfs.rom_ioctl(2, 0)))
except (ImportError, AttributeError, OSError, TypeError):
    _facts['romfs'] = None
say(_facts)
"""


def facts_of(link: Link) -> dict[str, Any]:
    """Return {"machine", "platform", "version", "mpy", "heap_free", "files_free", "romfs"} of a board.

    mpy: the .mpy files that it loads. The last three are in bytes; None without a file system, or
    without a ROMFS partition that is a memory.
    """
    facts: dict[str, Any] = link.ask("identifying the board", _FACTS, {
        "machine": str, "platform": str, "version": str, "mpy": OneOf(None, int), "heap_free": int,
        "files_free": OneOf(None, int), "romfs": OneOf(None, int)})
    return facts


_CLOCK = """\
try:
    import machine
    _clock = machine.freq()
except (ImportError, AttributeError):
    _clock = None
say(_clock[0] if isinstance(_clock, tuple) else _clock)
"""


def with_memories(request: Request) -> Request:
    """Set the minimum sizes on the twin in the request, unless the user sets them."""
    if None not in (request.pool_size, request.temp_size):
        return request
    report = load_with_exact_memories(open_program(request.model), request.method,
                                      request.pack_weights,
                                      open_data(request.data)).memory_report()
    sizes = {"pool_size": report["method_pool"]["used"], "temp_size": report["temp"]["used"]}
    return dataclasses.replace(request, **{name: size for name, size in sizes.items()
                                           if getattr(request, name) is None})


def _put_together(link: Link, request: Request, found: Connected) -> None:
    """Send the runner and the job. The model is sent only if neither the firmware nor a file has it.

    The model and its memories need room in one piece. The runner's pieces must not lie there, since a
    heap does not move them.
    """
    largest = len(request.model) + memory_of(request)
    link.do("measuring the heap", _RESERVE.format(largest, _RUNNER))
    for path in (FROZEN / "job.py", ON_BOARD / "board.py", FROZEN / "runner.py", ON_BOARD / "task.py",
                 _FINDING):
        link.send_module(path)
    link.do("measuring the heap", "del _reserved\ngc.collect()")
    sections = make_job(request).sections()
    model = sections.pop("model")
    found.model_at, frozen, fault = _find(link, request.name, model)
    found.frozen_not_used = _not_used(request, dict(frozen), fault)
    needed = sum(map(len, sections.values())) + memory_of(request)
    is_there = found.model_at is not None
    found.in_place = is_there and link.ask("reading the model", call("use"), bool, "finding")
    link.remove_module(_FINDING)
    _check_heap(link, needed if is_there else needed + len(model), found)
    if not is_there:
        _send(link, "model", model)
    for name, data in sections.items():
        _send(link, name, data)


def _find(link: Link, name: str, model: bytes) -> _Found:
    """Return the result of find() on the board for a model whose module is there."""
    found: _Found = link.ask("looking for the model", call(
        "find", PurePath(name).name, len(model), zlib.crc32(model)), _FOUND, "finding")
    return found


def location_of(link: Link, name: str, model: bytes) -> tuple[str | None, bool]:
    """Return where a board has a model, and whether a run uses it in place.

    The model is in the firmware or in a file; the result is None if a run sends it.
    """
    link.send_module(_FINDING)
    location, _, _ = _find(link, name, model)
    in_place = location is not None and link.ask("looking at the model", call("is_in_place"), bool,
                                                 "finding")
    link.remove_module(_FINDING)
    return location, in_place


def frozen_model(link: Link, name: str, model: bytes) -> tuple[str | None, bool]:
    """Return the name of a model in a board's firmware, and whether a run uses it in place.

    None if the firmware has no model with this content.
    """
    location, in_place = location_of(link, name, model)
    is_frozen = location is not None and location.startswith(frozen_models.MODULE + ".")
    return (location, in_place) if is_frozen else (None, False)


def _not_used(request: Request, frozen: dict[str, int], fault: str | None) -> str | None:
    """Return why no model of the firmware is used, if the user may expect one; else None.

    frozen: bytes by name, of other models.
    """
    if fault is not None:
        return f"{frozen_models.MODULE} cannot be imported: {fault}"
    size = len(request.model)
    for name in (frozen_models.name_of(Path(request.name)), frozen_models.FLASHED):
        if name in frozen:
            sizes = "both have" if frozen[name] == size else f"it has {frozen[name]:,} B, the file"
            return f"{frozen_models.MODULE}.{name} differs from the file: {sizes} {size:,} B"
    return None


def call(function: str, *arguments: object) -> str:
    """Return the text of a call with these arguments."""
    return f"{function}({', '.join(map(quoting.python, arguments))})"


def _send(link: Link, name: str, data: bytes) -> None:
    link.do(f"allocating {name}", call("make_room", name, len(data)), "task")
    link.put(f"sending {name}", data)


def memory_of(request: Request) -> int:
    """Return the bytes of the runner's memories, or 0 for a damaged program: the board rejects it."""
    try:
        meta = open_program(request.model).method_meta(request.method)
    except Error:
        return 0
    planned = sum(request.planned_sizes.get(i, meta.memory_planned_buffer_size(i))
                  for i in range(meta.num_memory_planned_buffers()))
    outputs = sum(meta.output_tensor_meta(i).nbytes() for i in meta.unplanned_outputs())
    state = sum(info.nbytes() for info in meta.unplanned_attributes())
    own = (request.pool_size or 0) + (request.temp_size or 0)
    return own + planned + outputs + state


def heap_of(request: Request) -> int:
    """Return the bytes of heap that a run needs in addition to its model.

    They are for the memories, and for inputs outside of these.
    """
    meta = open_program(request.model).method_meta(request.method)
    tensors = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())
               if meta.input_tag(i) == TENSOR]
    return memory_of(with_memories(request)) + sum(
        info.nbytes() for info in tensors if not info.is_memory_planned())


def _check_heap(link: Link, needed: int, found: Connected) -> None:
    """Raise MemoryAllocationFailed before the host sends a large part that will not fit."""
    free = link.ask("measuring the heap", "gc.collect()\nsay(gc.mem_free())", int)
    if needed > free:
        why = f" ({found.frozen_not_used})" if found.frozen_not_used else ""
        raise fail(MEMORY_ALLOCATION_FAILED, f"{found.machine} has too little{why}", "heap",
                   requested=needed, available=free,
                   remedy="deploy the model to flash (picotorch deploy --romfs), or take a smaller "
                          "model or a board with more memory")


def _files(answers: list[Any]) -> dict[str, bytes]:
    """Return the files that write_file() reported: (name, size), their bytes. Raises ValueError."""
    found: dict[str, list[bytes]] = {}
    sizes, name = {}, None
    for one in answers:
        if isinstance(one, tuple):
            name, sizes[name] = one
            found[name] = []
        elif name is None:
            raise ValueError("bytes of no file")
        else:
            found[name].append(one)
    files = {name: b"".join(parts) for name, parts in found.items()}
    if "report" not in files or any(len(files[name]) != size for name, size in sizes.items()):
        raise ValueError("it is not whole")
    return files


def _read_times(found: Connected, report: dict[str, str], ticks: int, us: int) -> None:
    """Return milliseconds and cycles of the phases, if the board has clocks for these."""
    times = read_phases(report, "us_", PHASES)
    if times is None or not us:
        return
    found.milliseconds = {phase: None if time is None else time / 1000
                          for phase, time in times.items()}
    rate = ticks / us
    if rate < _COUNTER:
        return
    found.ticks = "cycles"
    counts = read_phases(report, "cpu_", PHASES)
    found.cycles = {phase: count if _plausible(count, times[phase], rate) else None
                    for phase, count in (counts or {}).items()}


def _plausible(count: int | None, us: int | None, rate: float) -> bool:
    """Return True if a counter has not overflowed."""
    return (count is not None and us is not None
            and abs(count - us * rate) <= _TOLERATED * us * rate + 100 * rate)
