"""Compare the needs of a method with the memory of a connected board: picotorch size --port."""

import dataclasses
from typing import Any

from picotorch import Program

from ..host import show
from ..host.report import Report
from ..host.request import Request
from ..measure.report import Needs
from ..run.device.device_run import facts_of, heap_of, location_of
from ..run.device.protocol import Link
from ..run.device.serial_ports import resolve
from . import installing

SPARE = 8192  # bytes of heap for Python's objects around a model


@dataclasses.dataclass(frozen=True)
class ConnectedMemory(Report):
    """Memory of a method on a connected board, in bytes.

    memories: heap for the memories of the method. files: the model and its data. installs: "heap" and
    "small" of the native module that deploy would install, None if the board has picotorch. heap_free,
    files_free, romfs: available bytes. model_at: where the board stores the model. in_place: the model
    needs no heap there. fits_...: True if the method fits with the model there, None if unknown.
    """

    port: str
    machine: str
    memories: int
    files: int
    installs: dict[str, Any] | None
    heap_free: int
    files_free: int | None
    romfs: int | None
    model_at: str | None
    in_place: bool
    in_place_needs: int | None
    fits_in_place: bool | None
    fits_in_romfs: bool | None
    fits_in_heap: bool | None

    @property
    def fits(self) -> bool:
        """Return True if the method certainly fits in one of these places."""
        return any((self.fits_in_place, self.fits_in_romfs, self.fits_in_heap))


def measure(need: Needs, program: Program, port: str,
            timeout: float | None = None) -> ConnectedMemory:
    """Measure the memory of a method on a connected board.

    The native module that deploy would install counts as used heap. Raises the errors of deploy if it
    cannot install one.
    """
    port, model = resolve(port), bytes(program.loader.buffer)
    memories = heap_of(Request(model, need.model, [], need.method,
                               need.method_pool, temp_size=need.temp)) + SPARE
    further = sum(need.data_bytes)
    files = need.program_bytes + further
    needs = installing.needs_of({need.model: program}, memories + files)
    module = None
    with Link(port, timeout) as link:
        found = installing.find(link)
        facts = facts_of(link)
        location, in_place = location_of(link, need.model, model)
        if in_place:
            needs = dataclasses.replace(needs, heap=memories + further)
        needs_module = installing.is_needed(link, found, needs)
    if needs_module:
        with Link(port, timeout) as link:
            facts = facts_of(link)
            module = installing.choose(facts, found, needs, link.name)
    heap_free = facts["heap_free"] - (module.heap if module else 0)
    return ConnectedMemory(
        port=port,
        machine=facts["machine"],
        memories=memories,
        files=files,
        installs={"heap": module.heap, "small": module.small} if module else None,
        heap_free=heap_free,
        files_free=facts["files_free"],
        romfs=facts["romfs"],
        model_at=location,
        in_place=in_place,
        in_place_needs=memories + further if in_place else None,
        fits_in_place=in_place and _is_enough(need, memories + further <= heap_free),
        fits_in_romfs=_is_enough(need, memories <= heap_free and files <= (facts["romfs"] or 0)),
        fits_in_heap=_is_enough(need, memories + files <= heap_free),
    )


def _is_enough(need: Needs, fits: bool) -> bool | None:
    """Return True if enough memory is free, or None if missing backends may need it."""
    return None if fits and not need.is_complete else fits


def show_text(entry: ConnectedMemory) -> None:
    show.heading(f"{entry.machine} at {entry.port}")
    if entry.installs:
        kind = "a small native module" if entry.installs["small"] else "the native module"
        show.line(f"picotorch deploy installs {kind} and the runtime: {entry.installs['heap']:,} B "
                  "of heap, already deducted below")
    free = max(0, entry.heap_free)
    rows = [["ROMFS, used in place", entry.memories, free, entry.files,
             _bytes(entry.romfs), _fits(entry.fits_in_romfs)],
            ["file system, read into the heap", entry.memories + entry.files, free,
             entry.files, _bytes(entry.files_free),
             _fits(entry.files <= (entry.files_free or 0) and entry.fits_in_heap)],
            ["sent by picotorch run", entry.memories + entry.files, free, "", "",
             _fits(entry.fits_in_heap)]]
    if entry.in_place:
        rows.insert(0, [f"{entry.model_at}, used in place", entry.in_place_needs, free, "", "",
                        _fits(entry.fits_in_place)])
    show.table(["model in", "heap needed>", "free>", "storage needed>", "free>", ""], rows)


def _bytes(count: int | None) -> int | str:
    return "none" if count is None else count


def _fits(fits: bool | None) -> str:
    return {True: "fits", None: "not known", False: "DOES NOT FIT"}[fits]
