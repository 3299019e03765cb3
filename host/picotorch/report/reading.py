"""Measure a model for the page, by the functions behind size, profile, advise and inspect.

This is the only module of the page that reads results of advise.
"""

import bisect
import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from picotorch import Error, MethodMeta

from ..boards.boards import load_board
from ..boards.chips import Chip, load_chips
from ..export.result import ExportReport, LayerDifference
from ..host.instructions import Instruction, read_instructions
from ..host.report import HIDDEN, Report
from ..host.tensors import torch_name
from ..host.twin import open_program
from ..host.values import TENSOR, Values
from ..inspect.lifetimes import Box, lifetimes, live_bytes
from ..measure import advising, by_size, fitting, profiling, sizing
from ..measure.advice import Advice, Int8Share
from ..measure.flash import flash_rows
from ..measure.macs import macs_of
from ..measure.profiling import Profile
from ..measure.report import OnBoard, OnChip, Size
from ..run import running
from ..run.run_request import RunRequest
from .accuracy import Accuracy, Beside, OutputDifference

_CORE = "cortex-m4"  # whose cycles are shown if the call names neither chip nor board


@dataclass(frozen=True, kw_only=True)
class Layer(Report):
    """An instruction of the program.

    module: path of the module in PyTorch, "" if the program has no name for it. cost: in the unit of
    the model, None if unknown; share: of the cost of all. ram: bytes of planned memory that are in use
    while it runs. flash: bytes of its constants, without constants that an earlier layer has. advice:
    numbers from 1 on in the list of advice. sqnr: dB beside the float program, None if unknown.
    """

    index: int
    module: str
    operator: str
    shapes: str
    dtype: str
    macs: int
    cost: int | None
    share: float
    ram: int
    flash: int
    advice: list[int]
    sqnr: float | None = None


@dataclass(frozen=True, kw_only=True)
class Model(Report):
    """A measured method of a model.

    requested: names of the chips and boards that the call names. unit: of the costs of the layers.
    counted_on: the board that counted them, "" for an estimate from the sizes of the tensors for
    `core`. message: the reason if no board counted. beside: the comparison with the float program, None
    without one.
    """

    name: str
    is_float: bool
    requested: list[str]
    size: Size
    profile: Profile | None
    core: str
    unit: str
    counted_on: str
    message: str
    advice: list[Advice]
    int8: Int8Share
    layers: list[Layer]
    beside: Beside | None
    meta: MethodMeta = field(metadata=HIDDEN)

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def cost(self) -> int | None:
        """Return the cost of an execution, None if it is unknown."""
        if self.profile is not None:
            return self.profile.execute().cost
        costs = [layer.cost for layer in self.layers if layer.cost is not None]
        return sum(costs) if costs else None

    def targets(self) -> list[OnChip | OnBoard]:
        """Return the requested chips and boards; all chips if there are none."""
        every: list[OnChip | OnBoard] = [*self.size.chips, *self.size.boards]
        requested = [one for one in every if one.name in self.requested]
        return requested or every[:len(self.size.chips)] or every

    def kernels(self) -> list[tuple[str, int]]:
        """Return the bytes of flash of core and kernels by part, [] if no board could measure them."""
        found = next((board.kernels for board in self.size.boards if board.kernels), None)
        rows = flash_rows(found) if found else []
        return [(str(row[0]), int(row[1])) for row in rows[:-1]]

    def focus(self) -> OnChip | OnBoard | None:
        """Return the chip or board whose parts the page shows.

        It is the first of the requested ones, or the first chip of the core that fits.
        """
        targets = self.targets()
        if self.requested:
            return targets[0] if targets else None
        same = [one for one in targets if one.core == self.core]
        return next((one for one in [*same, *targets] if one.fits), targets[0] if targets else None)


class Target(NamedTuple):
    """The chips and boards that models are measured for.

    boards: the first one counts; without any the reference board of the core does.
    """

    chips: Sequence[Chip] = ()
    boards: Sequence[str] = ()

    @property
    def core(self) -> str:
        """Return the core of the first board, else of the first chip."""
        emulated = self.emulated()
        if emulated:
            return load_board(emulated[0]).core
        return self.chips[0].core if self.chips else _CORE

    def emulated(self) -> list[str]:
        """Return the boards without the twin."""
        return [board for board in self.boards if board != running.HOST]

    def all_chips(self) -> list[Chip]:
        """Return the requested chips, then all others of the table."""
        names = {chip.name for chip in self.chips}
        return [*self.chips, *(chip for chip in load_chips().values() if chip.name not in names)]

    def counting_board(self) -> str | None:
        """Return the board that counts instructions; None if no firmware of the core is built."""
        if self.boards:
            return self.boards[0]
        reference = fitting.reference_board(self.core)
        return reference.name if reference else None


class Known(NamedTuple):
    """Results that a command has already, and names of modules by layer."""

    size: Size | None = None
    profile: Profile | None = None
    modules: Mapping[int, str] = {}
    beside: Beside | None = None


NOTHING = Known()


def measure(request: RunRequest, target: Target, known: Known = NOTHING,
            is_float: bool = False) -> Model:
    """Measure a method. Raises Error."""
    program, method, name = running.read_program(request.model), request.method_name, str(request.model)
    meta = open_program(program).method_meta(method)
    board = target.counting_board()
    boards = target.emulated() or ([board] if board and board != running.HOST else [])
    size = known.size or sizing.measure(program, name, method, boards, request.pack_weights,
                                        request.data(), target.all_chips())
    profile, message = (known.profile, "") if known.profile else _profile(request, target)
    advised = advising.advise(program, name, method).advice
    core = target.core
    if profile is not None and profile.board not in (running.HOST, None) and profile.connected is None:
        core = load_board(profile.board).core
    layers = _layers(meta, profile, core, advised, known.modules, known.beside)
    return Model(
        name=name, is_float=is_float,
        requested=[*(chip.name for chip in target.chips), *target.emulated()], size=size,
        profile=profile, core=core, unit=profile.share_of if profile else "cycles",
        counted_on=profile.board if profile else "", message=message, advice=advised,
        int8=advising.int8_share(program, method), layers=layers, beside=known.beside, meta=meta)


def _profile(request: RunRequest, target: Target) -> tuple[Profile | None, str]:
    """Return (profile, ""), or (None, the reason) if the board cannot run the method."""
    board = target.counting_board()
    if board is None:
        return None, f"no firmware is built; {fitting.how_to_measure(target.core)}"
    try:
        request = dataclasses.replace(request, board=board)
        return profiling.profile(request.with_inputs(), board)[0], ""
    except Error as error:
        return None, error.message


def _layers(meta: MethodMeta, profile: Profile | None, core: str, advised: Sequence[Advice],
            modules: Mapping[int, str], beside: Beside | None) -> list[Layer]:
    values = Values(meta.program, meta.plan)
    instructions = read_instructions(meta, values)
    costs, shares = _costs(meta, profile, core)
    ram, flash = _ram(lifetimes(meta), len(instructions)), _flash(instructions, values)
    return [Layer(
        index=one.index, module=modules.get(one.index, "") or _module(one, values), operator=one.call,
        shapes=profiling.shapes(one, values), dtype=_dtype(one, values),
        macs=profile.instructions[one.index].macs if profile else macs_of(one, values),
        cost=costs.get(one.index), share=shares.get(one.index, 0), ram=ram[one.index],
        flash=flash.get(one.index, 0),
        advice=[k for k, found in enumerate(advised, 1) if one.index in found.instructions],
        sqnr=beside.layers.get(one.index) if beside else None) for one in instructions]


def _costs(meta: MethodMeta, profile: Profile | None,
           core: str) -> tuple[dict[int, int], dict[int, float]]:
    """Return the costs and the shares of instructions: measured, or estimated from sizes."""
    if profile is not None:
        return ({row.index: row.cost for row in profile.instructions},
                {row.index: row.share for row in profile.instructions})
    if meta.num_backends():
        return {}, {}
    costs = {i: round(cost) for i, cost, _ in by_size.cycles_by_instruction(meta, core)}
    total = sum(costs.values())
    return costs, {i: round(cost / total, 4) for i, cost in costs.items() if total}


def _ram(boxes: Sequence[Box], count: int) -> list[int]:
    """Return the live bytes of all planned buffers at each instruction."""
    by_buffer: dict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        by_buffer[box.buffer].append(box)
    found = [0] * count
    for own in by_buffer.values():
        live = live_bytes(own)
        starts = [start for start, _ in live]
        for i in range(count):
            k = bisect.bisect_right(starts, i) - 1
            found[i] += live[k][1] if k >= 0 else 0
    return found


def _flash(instructions: Sequence[Instruction], values: Values) -> dict[int, int]:
    """Return the bytes of the constants of instructions; each constant counts at its first one."""
    seen: dict[Any, tuple[int, int]] = {}
    for one in instructions:
        for i in values.all_tensors(one.arguments):
            memory, offset = values.location(i)
            if memory in ("constant", "external"):
                key = (memory, offset or values.tensor(i).name())
                first, nbytes = seen.get(key, (one.index, 0))
                seen[key] = first, max(nbytes, values.tensor(i).nbytes())
    found: dict[int, int] = defaultdict(int)
    for first, nbytes in seen.values():
        found[first] += nbytes
    return found


def _dtype(one: Instruction, values: Values) -> str:
    tensors = values.all_tensors(one.outputs)
    return torch_name(values.tensor(tensors[0]).scalar_type()) if tensors else ""


def _module(one: Instruction, values: Values) -> str:
    """Return the module whose weights or state an instruction uses, by the names in the program."""
    for i in values.all_tensors((*one.arguments, *one.outputs)):
        if values.kind(i) == TENSOR and (name := values.tensor(i).name()):
            return str(name).rpartition(".")[0] or str(name)
    return ""


def of_export(report: ExportReport, program: bytes) -> Known:
    """Return the modules and the SQNR beside PyTorch that the report of an export has by layer.

    The report names layers by their operators, in the order of the program: the layers of an operator
    are known if each of its instructions is a layer.
    """
    meta = open_program(program).method_meta("forward")
    by_operator: dict[str, list[int]] = defaultdict(list)
    for one in read_instructions(meta, Values(meta.program, meta.plan)):
        by_operator[one.call].append(one.index)
    rows: dict[str, list[LayerDifference]] = defaultdict(list)
    for row in report.layers:
        rows[row.operator].append(row)
    found = {index: row for operator, same in rows.items() if len(same) == len(by_operator[operator])
             for index, row in zip(by_operator[operator], same, strict=True)}
    outputs = [OutputDifference(one.output, one.sqnr, one.equal) for one in report.outputs]
    right = report.accuracy
    beside = Beside(
        "PyTorch", report.samples, report.layer_samples, outputs,
        None if right is None else Accuracy(right.program, right.pytorch),
        {index: row.sqnr for index, row in found.items()})
    return Known(modules={index: row.layer for index, row in found.items()},
                 beside=beside if report.samples else None)
