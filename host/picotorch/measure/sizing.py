"""Compute the memory that a method needs, to the byte, and the boards and chips that it fits.

Pool, planned buffers and temp memory are the sizes on the twin, which are equal on every board. Stack
and flash of the kernels are measured on boards whose firmware is built: the stack as a run measures it,
and its bound for any run of the method.
"""

import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from _picotorch import CORES
from _picotorch_c import lib

from picotorch import Backend, Error, MethodMeta, TensorInfo, register_backend, unregister_backend
from picotorch.delegates import BackendInitContext, CompileSpecs, FreeableBuffer
from picotorch.errors import NOT_SUPPORTED, fail
from picotorch.module import load_with_exact_memories

from ..boards.boards import Board, load_board
from ..boards.chips import Chip
from ..host import cache, show
from ..host.aligned import ALIGNMENT
from ..host.elf import flash_bytes
from ..host.inputs import random_inputs
from ..host.operators import needed_features
from ..host.request import Estimate, Request
from ..host.twin import min_temp, open_data, open_program, planned_sizes, preferred_temp, runs_on
from ..host.values import TENSOR, Values
from ..inspect.description import constant_bytes, delegate_list, operator_list
from ..run import emulator, running
from ..run.runner_files import make_job
from . import by_size, cycles, fitting
from .flash import OperatorsFlash, flash_of_operators
from .report import Fit, MemoryFit, Needs, OnBoard, OnChip, Size, TempSize, TempSizes
from .stack import FREE, bound_on

OTHER_CORE = "is a .ptm file for another core; compile it for this one, or with --optimize size"
_MAX_BACKENDS = 64  # each registration looks at all before it
_PAUSE = 0.01  # seconds


def measure(model: bytes, name: str, method: str, boards: list[str], pack_weights: bool,
            data: Sequence[bytes] = (), chips: Sequence[Chip] = ()) -> Size:
    """Measure the needs of a method, and compare them with boards and chips; `data`: its .ptd files.

    Raises the errors of loading.
    """
    program = open_program(model)
    meta = program.method_meta(method)
    planned = planned_sizes(meta, {})
    files, emulated = open_data(data), [load_board(board) for board in boards]
    with _stand_ins(meta):
        loaded = load_with_exact_memories(program, method, pack_weights, files)
        report = loaded.memory_report()
        cores = {board.core for board in emulated} | {chip.core for chip in chips}
        plain = int(lib.PT_CORE_PLAIN)
        refused = {core for core in cores if not runs_on(model, CORES.get(core, plain))}
        preferred = {core: report["temp"]["used"] if core in refused
                  else preferred_temp(loaded, core, pack_weights, files) for core in cores}
        minimum = min_temp(loaded, pack_weights, files)
    placed = Placed(_output_sizes(meta), _input_sizes(meta, lambda info: True))
    need = Needs(
        model=name, method=method, method_pool=report["method_pool"]["used"],
        packed=report["packed"], planned=planned, min_temp=minimum, temp=report["temp"]["used"],
        preferred_temp=preferred, unplanned=unplanned_bytes(meta), stack_free=FREE,
        program_bytes=len(model), data_bytes=[len(file) for file in data],
        constant_bytes=constant_bytes(Values(program, meta.plan)),
        operators=[operator.name for operator in operator_list(meta)],
        delegates=delegate_list(meta))
    request = Request(model, name, random_inputs(meta), method, need.method_pool,
                      temp_size=need.temp, pack_weights=pack_weights, data=list(data))
    measured = _Measured(need, request, placed, refused)
    on_boards = [(board, _temp_on_board(measured, board)) for board in emulated]
    on_chips = [(chip, _temp_on_chip(measured, chip)) for chip in chips]
    slow = [minimum] if len(boards) + len(chips) == 1 else []
    runs = [(board, temp) for board, selected in on_boards
            for temp in [selected, *slow, *measured.temps(board.core)]
            if not _refused(measured, board.core) and _fits(measured, board, temp) is not False]
    measured.run_all(runs + [(board, temp) for chip, selected in on_chips
                             if (board := fitting.reference_board(chip.core))
                             and not _refused(measured, chip.core)
                             for temp in [selected, *slow, *measured.temps(chip.core)]])
    return Size(need, [_on_board(measured, board, temp) for board, temp in on_boards],
                [_on_chip(measured, chip, temp) for chip, temp in on_chips])


def unplanned_bytes(meta: MethodMeta) -> int:
    """Return the bytes of inputs, outputs and mutable buffers outside the planned buffers."""
    return sum(_output_sizes(meta)) + sum(_input_sizes(meta, lambda info: not info.is_memory_planned()))


class Placed(NamedTuple):
    """Further memory of a board's runner.

    It has the bytes of each output and mutable buffer outside the planned buffers, which it puts behind
    these, and of each input.
    """

    outputs: list[int]
    inputs: list[int]


@contextlib.contextmanager
def _stand_ins(meta: MethodMeta) -> Iterator[None]:
    """Register backends that do nothing in place of missing ones.

    The bytes that the real ones would allocate are unknown. Raises NotSupported for more than
    _MAX_BACKENDS.
    """
    missing = meta.missing_backends()
    if len(missing) > _MAX_BACKENDS:
        raise fail(NOT_SUPPORTED, f"{len(missing)} that are not registered, {_MAX_BACKENDS} at most",
                   "backends", remedy="register the available ones with --backend")
    for name in missing:
        register_backend(name, _StandIn())
    try:
        yield
    finally:
        for name in missing:
            unregister_backend(name)


class _StandIn(Backend):
    def init(self, context: BackendInitContext, processed: FreeableBuffer,
             compile_specs: CompileSpecs) -> None:
        return None


class Counts(NamedTuple):
    """The counts of a run on a board, by phase, and its instructions by operator."""

    instructions: dict[str, int]
    stack: dict[str, int] | None
    operators: dict[str, int]


class _Measured:
    """A method and what boards measure of it, each once."""

    def __init__(self, need: Needs, request: Request, placed: Placed,
                 refused: set[str]) -> None:
        """Create a measurement.

        refused: cores that do not run the .ptm file.
        """
        self.need, self.request, self.placed, self.refused = need, request, placed, refused
        self._runs: dict[tuple[str, int], tuple[Counts | None, str]] = {}
        self._kernels: dict[str, OperatorsFlash | None] = {}

    def temps(self, core: str) -> list[int]:
        """Return bytes of temp memory: the default, and the preferred of a core if that is more."""
        return sorted({self.need.temp, self.need.preferred_temp[core]})

    def run_all(self, runs: list[tuple[Board, int]]) -> None:
        """Run the method on boards with so much temp memory, in parallel on this computer."""
        waiting = list({(board.name, temp): (board, temp) for board, temp in runs}.values())
        # after ctrl-C in join, Python 3.11 treats a running thread as ended
        running: set[int] = set()

        def work() -> None:
            running.add(threading.get_ident())
            try:
                while waiting:
                    with contextlib.suppress(IndexError):  # another thread took the last
                        board, temp = waiting.pop()
                        self._runs[board.name, temp] = self._run(
                            board, dataclasses.replace(self.request, temp_size=temp))
            finally:
                waiting.clear()
                running.discard(threading.get_ident())

        threads = [threading.Thread(target=work) for _ in waiting[: os.cpu_count()]]
        names = dict.fromkeys(board.name for board, _ in waiting)
        with show.progress(f"{', '.join(names)} run"):
            try:
                for thread in threads:
                    thread.start()
                while waiting or running:
                    time.sleep(_PAUSE)
            finally:
                _end(running, waiting)

    def run(self, board: Board, temp: int) -> tuple[Counts | None, str]:
        """Return (Counts, "") of a run on the board, or (None, the reason)."""
        return self._runs[board.name, temp]

    def time(self, board: Board | None, chip: Board | Chip, temp: int) -> Estimate | None:
        """Return cycles.estimate for a chip of the board's core; None for a board.

        It uses the sizes of the tensors if no board could count. None also for temp memory for which no
        count was requested.
        """
        result, message = (self._runs.get((board.name, temp), (None, "")) if board
                           else (None, "no board"))
        has_less = cycles.has_less_temp(temp, self.need.temp, self.need.preferred_temp[chip.core])
        conditions = cycles.conditions(self.request.model, chip.core, self.need.packed, has_less)
        if result:
            return cycles.estimate(chip.core, chip.clock_hz, result.instructions["execute"],
                                   result.operators, conditions)
        is_estimated = message and isinstance(chip, Chip) and not _refused(self, chip.core)
        if not is_estimated or temp < self.need.temp:
            return None
        meta = open_program(self.request.model).method_meta(self.request.method)
        return by_size.estimate(meta, chip.core, chip.clock_hz, conditions)

    def temp_sizes(self, board: Board | None, chip: Board | Chip, selected: int) -> TempSizes:
        minimum, used, preferred = (
            TempSize(temp, self.time(board, chip, temp))
            for temp in (self.need.min_temp, self.need.temp, self.temps(chip.core)[-1]))
        return TempSizes(minimum, used, preferred, selected)

    def _run(self, board: Board, request: Request) -> tuple[Counts | None, str]:
        try:
            parts = self._parts(board, request)
            instructions, stack, counts = (
                cache.remembered("run", parts, lambda: self._counts(board, request))
                if parts else self._counts(board, request))
            return Counts(instructions, stack, cycles.by_operator(request, counts)), ""
        except Error as error:
            return None, str(error)

    def _counts(self, board: Board,
                request: Request) -> tuple[dict[str, int], dict[str, int] | None, list[int]]:
        result = running.run(request, board.name)
        running.check_result(result)
        return result.instructions or {}, result.stack, cycles.measured_counts(request, board.name)

    def _parts(self, board: Board, request: Request) -> list[bytes]:
        """Return all that a run depends on; nothing if it will fail."""
        try:
            return [emulator.identity(board), emulator.firmware_path(board).read_bytes(),
                    make_job(request).to_bytes()]
        except (emulator.EmulatorError, Error):
            return []

    def kernels(self, board: Board | None) -> OperatorsFlash | None:
        """Return flash_of_operators of the board's firmware, None if unknown."""
        if board is None:
            return None
        if board.name not in self._kernels:
            self._kernels[board.name] = None
            with contextlib.suppress(emulator.FirmwareMissing):
                features = needed_features({"": open_program(self.request.model)})
                self._kernels[board.name] = flash_of_operators(board, self.need.operators,
                                                               features=features)
        return self._kernels[board.name]

    def deployments(self, chip: Chip, temp: int) -> dict[str, Fit]:
        """Return fitting.fit for each deployment, with so much temp memory."""
        need, board = self.need, fitting.reference_board(chip.core)
        firmware = None if board is None else fitting.firmware_of(board)
        found = self.kernels(board)
        kernels = None if found is None else found.core_and_kernels
        memories: dict[str, int | None] = {**fitting.memories_of(dataclasses.replace(need, temp=temp))}
        if not need.is_complete:
            memories["backends"] = None
        files = {"program": need.program_bytes,
                 **{f"data file {i}": size for i, size in enumerate(need.data_bytes)}}
        return {deployment: fitting.fit(chip, fitting.parts_of_ram(memories, deployment, firmware),
                                        fitting.parts_of_flash(files, deployment, kernels, firmware))
                for deployment in fitting.DEPLOYMENTS}


def _end(running: set[int], waiting: list[tuple[Board, int]]) -> None:
    """Leave nothing running, after an interrupt."""
    waiting.clear()
    while running:
        emulator.end_all()
        time.sleep(_PAUSE)


def _refused(measured: _Measured, core: str) -> str:
    """Return the reason why a core does not run the .ptm file; "" if it does."""
    return OTHER_CORE if core in measured.refused else ""


def _temp_on_chip(measured: _Measured, chip: Chip) -> int:
    """Return the most bytes of temp memory that keeps the deployments of the default.

    Where none does, return the minimum if one fits then, else the default.
    """
    minimum: int = measured.need.min_temp
    used: int = measured.need.temp
    sizes = [minimum, *measured.temps(chip.core)]
    fails = {temp: {name for name, one in measured.deployments(chip, temp).items()
                    if one.fits is False} for temp in sizes}
    if len(fails[used]) < len(fitting.DEPLOYMENTS):
        return max(temp for temp in sizes if fails[temp] == fails[used])
    return used if fails[minimum] == fails[used] else minimum


def _on_chip(measured: _Measured, chip: Chip, temp: int) -> OnChip:
    board, refused = fitting.reference_board(chip.core), _refused(measured, chip.core)
    if refused:
        message = refused
    elif board:
        _, message = measured.run(board, temp)
    else:
        message = f"not measured: no firmware is built; {fitting.how_to_measure(chip.core)}"
    deployments, minimum = (measured.deployments(chip, size)
                            for size in (temp, measured.need.min_temp))
    for name, deployment in deployments.items():
        if refused:
            deployments[name] = dataclasses.replace(deployment, fits=False, lacks=refused)
        elif deployment.fits is False and minimum[name].fits:
            lacks = deployment.lacks + "; with the minimum of temp memory there is room"
            deployments[name] = dataclasses.replace(deployment, lacks=lacks)
    return OnChip(
        chip=chip.name, title=chip.title, core=chip.core, clock_hz=chip.clock_hz, source=chip.source,
        fits=_any(deployment.fits for deployment in deployments.values()), deployments=deployments,
        temp=measured.temp_sizes(board, chip, temp), time=measured.time(board, chip, temp),
        measured_on=board.name if board else None, message=message)


def _any(answers: Iterable[bool | None]) -> bool | None:
    """Return True if one answer is true, else None if one is unknown."""
    answers = list(answers)
    return True if True in answers else None if None in answers else False


def _deployments_of(measured: _Measured, board: Board, temp: int) -> dict[str, Fit]:
    """Return the deployments of a chip like the board's."""
    chip = Chip(board.name, board.title, board.core, board.clock_hz, None, None)
    return measured.deployments(chip, temp)


def _memories_on(measured: _Measured, board: Board, temp: int) -> dict[str, tuple[int, int | None]]:
    """Return (bytes needed, bytes available) by memory of a board, with so much temp memory.

    None for bytes that are unknown.
    """
    need, placed = measured.need, measured.placed
    model = need.program_bytes + sum(need.data_bytes)
    flash = _deployments_of(measured, board, temp)["micropython"].flash.parts
    available = _flash_for_job(board, flash, model)
    memories = {
        "pool": (need.method_pool, board.arenas["pool"].size),
        **planned_arenas(board, need.planned, placed.outputs),
        "temp": (temp, board.arenas["temp"].size),
        "model": (model, available),
    }
    if available is not None and model <= available < model + sum(placed.inputs):
        memories["model and inputs"] = (model + sum(placed.inputs), available)
    return memories


def _fits(measured: _Measured, board: Board, temp: int) -> bool | None:
    """Return whether a method fits the memories of a board, None if what is unknown decides it."""
    memories = _memories_on(measured, board, temp).values()
    if any(size is not None and needed > size for needed, size in memories):
        return False
    if not measured.need.is_complete or any(size is None for _, size in memories):
        return None
    return True


def _temp_on_board(measured: _Measured, board: Board) -> int:
    """Return the most bytes of temp memory that fit, else the default."""
    minimum: int = measured.need.min_temp
    used: int = measured.need.temp
    return max((temp for temp in [minimum, *measured.temps(board.core)]
                if _fits(measured, board, temp) is not False), default=used)


def _on_board(measured: _Measured, board: Board, temp: int) -> OnBoard:
    memories, message = _memories_on(measured, board, temp), _refused(measured, board.core)
    fits, stack, firmware_flash = False if message else _fits(measured, board, temp), None, None
    with contextlib.suppress(emulator.FirmwareMissing):
        firmware_flash = flash_bytes(emulator.firmware_path(board))
    if fits is not False:
        result, message = measured.run(board, temp)
        stack = result and result.stack
    return OnBoard(
        board=board.name, core=board.core, clock_hz=board.clock_hz, fits=fits,
        memories={name: MemoryFit(needed, size) for name, (needed, size) in memories.items()},
        deployments=_deployments_of(measured, board, temp),
        temp=measured.temp_sizes(board, board, temp), time=measured.time(board, board, temp),
        stack=stack, stack_bound=bound_on(board, measured.need.operators),
        stack_size=board.stack_size, firmware_flash=firmware_flash, kernels=measured.kernels(board),
        built=firmware_flash is not None, message=message)


def _flash_for_job(board: Board, flash: dict[str, int | None], model: int) -> int | None:
    """Return bytes, None if they are unknown and may suffice.

    A job that lies behind the firmware has what a firmware with the kernels of this method leaves.
    """
    if not board.job_follows_code:
        return board.job.size
    firmware = [flash[part] for part in ("core and kernels", "MicroPython, runtime")]
    maximum = board.job.size - sum(filter(None, firmware))
    return maximum if None not in firmware or model > maximum else None


def planned_arenas(board: Board, planned: Iterable[int],
                   outputs: Iterable[int]) -> dict[str, tuple[int, int]]:
    """Return (needed, available) bytes of each arena with a planned buffer or an unplanned output."""
    sizes: dict[str, list[int]] = {"planned": []}
    for i, size in enumerate(planned):
        sizes.setdefault(board.planned_arena(i).name, []).append(size)
    sizes["planned"] += outputs
    return {name: (_together(found), board.arenas[name].size) for name, found in sizes.items()}


def _together(sizes: Iterable[int]) -> int:
    """Return the bytes of memories one after the other, each at a multiple of 16."""
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


def _output_sizes(meta: MethodMeta) -> list[int]:
    return [meta.output_tensor_meta(i).nbytes() for i in meta.unplanned_outputs()] + [
        info.nbytes() for info in meta.unplanned_attributes()]


def _input_sizes(meta: MethodMeta, condition: Callable[[TensorInfo], bool]) -> list[int]:
    """Return the bytes of the input tensors whose TensorInfo meets the condition."""
    infos = [meta.input_tensor_meta(i) for i in range(meta.num_inputs()) if meta.input_tag(i) == TENSOR]
    return [info.nbytes() for info in infos if condition(info)]
