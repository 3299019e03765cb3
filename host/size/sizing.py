"""What a method needs, to the byte, and which boards and chips have it.

Pool, planned buffers and temp memory are those of the method as the twin loads it, which are the
same on every board. Stack and flash of the kernels are those of boards whose firmware is built: the
stack as a run measures it, and the most that any run of the method can take.
"""

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from _picotorch import CORES
from _picotorch_c import lib
from picotorch import Backend, Error, MethodMeta, register_backend, unregister_backend
from picotorch.errors import NOT_SUPPORTED, fail
from picotorch.module import load_with_exact_memories

from .. import cache, show
from ..aligned import ALIGNMENT
from ..boards.boards import Board, load_board
from ..boards.chips import Chip
from ..inputs import random_inputs
from ..inspect.description import constant_bytes, delegate_list, operator_list
from ..operators import needed_features
from ..run import emulator, running
from ..run.request import Request
from ..run.runner_files import make_job
from ..twin import open_data, open_program, planned_sizes, runs_on
from ..values import TENSOR, Values
from . import cycles, fitting
from .elf import flash_bytes
from .flash import flash_of_operators
from .stack import FREE, bound_on

OTHER_CORE = "is an image for another core; compile it for this one, or with --no-prepare"
_MOST_BACKENDS = 64  # each registration looks at all before it


def measure(model: bytes, name: str, method: str, boards: list[str], prepare: str,
            data: list[bytes] = (), chips: Sequence[Chip] = ()) -> dict:
    """What the method needs and how it fits each board and chip; `data`: its .ptd files. Raises what
    loading raises."""
    program = open_program(model)
    meta = program.method_meta(method)
    planned = planned_sizes(meta, {})
    with _stand_ins(meta):
        loaded = load_with_exact_memories(program, method, prepare == "pool", open_data(data))
    report, wished = loaded.memory_report(), loaded.library.wished_temp()
    placed = Placed(_output_sizes(meta), _input_sizes(meta, lambda info: True))
    need = {
        "model": name,
        "method": method,
        "method_pool": report["method_pool"]["used"],
        "prepared": report["prepared"],
        "planned": planned,
        "temp": report["temp"]["used"],
        "temp_wished": wished if wished > report["temp"]["used"] else None,
        "unplanned": unplanned_bytes(meta),
        "stack_free": FREE,
        "program_bytes": len(model),
        "data_bytes": [len(file) for file in data],
        "constant_bytes": constant_bytes(Values(program, meta.plan)),
        "operators": [operator["name"] for operator in operator_list(meta)],
        "delegates": delegate_list(meta),
    }
    request = Request(model, name, random_inputs(meta), method, need["method_pool"],
                      temp_size=need["temp"], prepare=prepare, data=list(data))
    measured = _Measured(need, request, placed)
    boards = [load_board(board) for board in boards]
    measured.run_all([*(board for board in boards if not _refused(measured, board.core)
                        and _fits(_memories_on(measured, board))),
                      *filter(None, (fitting.reference_board(chip.core) for chip in chips
                                     if not _refused(measured, chip.core)))])
    need["boards"] = [_on_board(measured, board) for board in boards]
    need["chips"] = [_on_chip(measured, chip) for chip in chips]
    return need


def unplanned_bytes(meta: MethodMeta) -> int:
    """Bytes of inputs, outputs and mutable buffers outside the planned buffers."""
    return sum(_output_sizes(meta)) + sum(_input_sizes(meta, lambda info: not info.is_memory_planned()))


class Placed(NamedTuple):
    """What a board's runner keeps in memory besides: bytes of each output and mutable buffer outside
    the planned buffers, which it puts behind these, and of each input."""

    outputs: list[int]
    inputs: list[int]


@contextlib.contextmanager
def _stand_ins(meta: MethodMeta):
    """Registers backends that do nothing in place of those that a method needs and that are not there:
    what these would allocate is not known. Raises NotSupported for more than _MOST_BACKENDS."""
    missing = meta.missing_backends()
    if len(missing) > _MOST_BACKENDS:
        raise fail(NOT_SUPPORTED, f"{len(missing)} that are not registered, {_MOST_BACKENDS} at most",
                   "backends", remedy="register those that there are, with --backend")
    for name in missing:
        register_backend(name, _StandIn())
    try:
        yield
    finally:
        for name in missing:
            unregister_backend(name)


class _StandIn(Backend):
    def init(self, context, processed, compile_specs):
        return None


class Counts(NamedTuple):
    """What a run on a board counts, by phase."""

    instructions: dict[str, int]
    stack: dict[str, int]


class _Measured:
    """A method and what boards measure of it, each once."""

    def __init__(self, need: dict, request: Request, placed: Placed):
        self.need, self.request, self.placed = need, request, placed
        self._runs = {}
        self._kernels = {}

    def run_all(self, boards: list[Board]) -> None:
        """Run the method on boards, on as many at a time as this computer has cores."""
        waiting = list({board.name: board for board in boards}.values())

        def work():
            while waiting:
                with contextlib.suppress(IndexError):  # another thread took the last
                    board = waiting.pop()
                    self._runs[board.name] = self._run(board)

        threads = [threading.Thread(target=work) for _ in waiting[: os.cpu_count()]]
        with show.progress(f"{', '.join(board.name for board in waiting)} run"):
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            finally:
                _end(threads, waiting)

    def run(self, board: Board):
        """Return (Counts, "") of a run on the board, or (None, the reason)."""
        return self._runs[board.name]

    def _run(self, board):
        try:
            parts = self._parts(board)
            return Counts(*(cache.remembered("run", parts, lambda: self._counts(board)) if parts
                            else self._counts(board))), ""
        except Error as error:
            return None, str(error)

    def _counts(self, board):
        result = running.run(self.request, board.name)
        running.check_result(result)
        return result.instructions, result.stack

    def _parts(self, board):
        """Return all that a run depends on; nothing where it will fail."""
        try:
            return [emulator.identity(board), emulator.firmware_path(board).read_bytes(),
                    make_job(self.request).to_bytes()]
        except (emulator.EmulatorError, Error):
            return []

    def kernels(self, board: Board | None):
        """Return flash_of_operators of the board's firmware, None if it is not known."""
        if board is None:
            return None
        if board.name not in self._kernels:
            self._kernels[board.name] = None
            with contextlib.suppress(emulator.FirmwareMissing):
                features = needed_features({"": open_program(self.request.model)})
                self._kernels[board.name] = flash_of_operators(board, self.need["operators"],
                                                               features=features)
        return self._kernels[board.name]

    def ways(self, chip: Chip) -> dict:
        """Return fitting.fit for each way."""
        need, board = self.need, fitting.reference_board(chip.core)
        firmware = board and fitting.firmware_of(board)
        kernels = self.kernels(board)
        kernels = kernels and kernels["core_and_kernels"]
        memories = fitting.memories_of(need)
        files = {"program": need["program_bytes"],
                 **{f"data file {i}": size for i, size in enumerate(need["data_bytes"])}}
        return {way: fitting.fit(chip, fitting.parts_of_ram(memories, way, firmware),
                                 fitting.parts_of_flash(files, way, kernels, firmware))
                for way in fitting.WAYS}


def _end(threads, waiting):
    """Leave nothing running, after an interrupt."""
    waiting.clear()
    while any(thread.is_alive() for thread in threads):
        emulator.end_all()
        time.sleep(0.02)


def _refused(measured, core):
    """Why a core does not run the image, "" where it does."""
    return "" if runs_on(measured.request.model, CORES.get(core, lib.PT_CORE_PLAIN)) else OTHER_CORE


def _on_chip(measured: _Measured, chip: Chip) -> dict:
    board, refused = fitting.reference_board(chip.core), _refused(measured, chip.core)
    if refused:
        result, message = None, refused
    elif board:
        result, message = measured.run(board)
    else:
        result, message = None, f"not measured; {fitting.how_to_measure(chip.core)}"
    ways = measured.ways(chip)
    for way in ways.values() if refused else ():
        way |= {"fits": False, "lacks": refused}
    return {
        "chip": chip.name, "title": chip.title, "core": chip.core, "clock_hz": chip.clock_hz,
        "source": chip.source,
        "fits": _any(way["fits"] for way in ways.values()),
        "ways": ways,
        "time": result and cycles.estimate(chip.core, chip.clock_hz, result.instructions["execute"],
                                           measured.need["prepared"]),
        "measured_on": board and board.name,
        "message": message,
    }


def _any(answers):
    """Return True if one is, else None if one is unknown."""
    answers = list(answers)
    return True if True in answers else None if None in answers else False


def _ways_of(measured, board):
    """Return the ways of a chip like the board's."""
    return measured.ways(Chip(board.name, board.title, board.core, board.clock_hz, None, None))


def _memories_on(measured, board):
    """Return (bytes needed, bytes there) by memory of a board."""
    need, placed = measured.need, measured.placed
    model = need["program_bytes"] + sum(need["data_bytes"])
    room = _room_for_job(board, _ways_of(measured, board)["micropython"]["flash"]["parts"])
    memories = {
        "pool": (need["method_pool"], board.arenas["pool"].size),
        **planned_arenas(board, need["planned"], placed.outputs),
        "temp": (need["temp"], board.arenas["temp"].size),
        "model": (model, room),
    }
    if model <= room < model + sum(placed.inputs):
        memories["model and inputs"] = (model + sum(placed.inputs), room)
    return memories


def _fits(memories):
    return all(needed <= size for needed, size in memories.values())


def _on_board(measured: _Measured, board: Board) -> dict:
    need, memories = measured.need, _memories_on(measured, board)
    refused, kernels = _refused(measured, board.core), measured.kernels(board)
    entry = {
        "board": board.name,
        "core": board.core,
        "clock_hz": board.clock_hz,
        "fits": not refused and _fits(memories),
        "memories": {name: {"needed": needed, "size": size}
                     for name, (needed, size) in memories.items()},
        "ways": _ways_of(measured, board),
        "time": None,
        "stack": None,
        "stack_bound": bound_on(board, need["operators"]),
        "stack_size": board.stack_size,
        "firmware_flash": None,
        "kernels": kernels,
        "built": False,
        "message": refused,
    }
    with contextlib.suppress(emulator.FirmwareMissing):
        entry["firmware_flash"] = flash_bytes(emulator.firmware_path(board))
        entry["built"] = True
    if entry["fits"]:
        result, entry["message"] = measured.run(board)
        if result:
            entry["stack"] = result.stack
            entry["time"] = cycles.estimate(board.core, board.clock_hz,
                                            result.instructions["execute"], measured.need["prepared"])
    return entry


def _room_for_job(board, flash):
    """Return bytes. A job that lies behind the firmware has what a firmware with the kernels of this
    method leaves, as far as its size is known."""
    if not board.job_follows_code:
        return board.job.size
    firmware = ("core and kernels", "MicroPython, runtime")
    return board.job.size - sum(flash[part] or 0 for part in firmware)


def planned_arenas(board, planned, outputs):
    """Bytes needed and there of each arena that a planned buffer or an unplanned output is in."""
    sizes = {"planned": []}
    for i, size in enumerate(planned):
        sizes.setdefault(board.planned_arena(i).name, []).append(size)
    sizes["planned"] += outputs
    return {name: (_together(found), board.arenas[name].size) for name, found in sizes.items()}


def _together(sizes):
    """Bytes of memories that lie behind one another, each at a multiple of 16."""
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


def _output_sizes(meta):
    return [meta.output_tensor_meta(i).nbytes() for i in meta.unplanned_outputs()] + [
        info.nbytes() for info in meta.unplanned_attributes()]


def _input_sizes(meta, condition):
    """Bytes of the input tensors for whose TensorInfo the condition holds."""
    infos = [meta.input_tensor_meta(i) for i in range(meta.num_inputs()) if meta.input_tag(i) == TENSOR]
    return [info.nbytes() for info in infos if condition(info)]
