"""Measure each instruction of a method, on the twin or a board: picotorch profile."""

import dataclasses
import itertools
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import click

from ..boards.boards import load_board
from ..host import show
from ..host.instructions import Instruction, read_instructions
from ..host.report import OPTIONAL, Report
from ..host.request import HOST_MEMORY, Connected, Request, Result
from ..host.twin import open_program
from ..host.values import TENSOR, Values
from ..run import running
from ..run.report import model_place
from . import cycles
from .etdump import Execution
from .macs import factors, macs_of

EXECUTIONS = 10  # of the twin, whose times differ from one to the next
_LOOKED_INTO = 16  # items of a list: many instructions may name one long list
SORTED = ("order", "share")


@dataclass(frozen=True, kw_only=True)
class Costs(Report):
    """Costs of instructions. cycles: estimated, None where they are not.

    share: of the cycles of all instructions where they are estimated, else of the ticks.
    """

    calls: int
    ticks: int
    macs: int
    cycles: int | None = None
    share: float = 0
    macs_per_tick: float | None = None

    @property
    def cost(self) -> int:
        """Return the cycles, or the ticks without an estimate."""
        return self.ticks if self.cycles is None else self.cycles

    def beside(self, all_cost: int) -> Self:
        """Return the costs with their share of those of all instructions."""
        return dataclasses.replace(
            self, share=round(self.cost / all_cost, 4) if all_cost else 0,
            macs_per_tick=round(self.macs / self.ticks, 3) if self.macs and self.ticks else None)


@dataclass(frozen=True, kw_only=True)
class ProfiledInstruction(Costs):
    """Costs of an instruction. estimated_as: see cycles.operator_of."""

    index: int
    call: str
    estimated_as: str
    shapes: str


@dataclass(frozen=True, kw_only=True)
class ProfiledOperator(Costs):
    """Costs of all instructions that call an operator."""

    call: str
    instructions: int


@dataclass(frozen=True)
class Profile(Report):
    """Costs of an execution, the median of several.

    dynamic: a tensor is dynamic, so that shapes and MACs are the largest. unit: of ticks. total: ticks
    of all instructions and of end_of_loop. share_of: the unit of the shares, "cycles" or `unit`.
    """

    model: str
    method: str
    board: str
    pack_weights: bool
    dynamic: bool
    unit: str
    executions: int
    total: int
    end_of_loop: int
    macs: int
    instructions: list[ProfiledInstruction]
    operators: list[ProfiledOperator]
    cycles: int | None
    share_of: str
    share: float
    macs_per_tick: float | None
    connected: Connected | None = field(default=None, metadata=OPTIONAL)

    def execute(self) -> Costs:
        """Return the costs of all instructions together."""
        calls = sum(row.calls for row in self.instructions)
        return Costs(calls=calls, ticks=self.total, macs=self.macs, cycles=self.cycles,
                     share=self.share, macs_per_tick=self.macs_per_tick)

    def ticks_by_operator(self) -> dict[str, int]:
        """Return the ticks by operator, for cycles.estimate."""
        return _ticks_by_operator(self.instructions)


def profile(request: Request, board: str, temp: int | None = None) -> tuple[Profile, list[Execution]]:
    """Return the profile, and the executions it comes from.

    The method gets all the pool and scratch that the board has, or `temp` bytes of scratch.

    Raises the Error of a run that failed.
    """
    request.executions = EXECUTIONS if board == running.HOST else 1
    request.pool_size = request.temp_size = HOST_MEMORY if board == running.HOST else None
    if temp is not None:
        request.temp_size = temp
    result = running.run(request, board)
    running.check_result(result)
    meta = open_program(request.model).method_meta(request.method)
    values = Values(meta.program, meta.plan)
    instructions = read_instructions(meta, values)
    ticks = _medians([[event.ticks for event in events] for events in result.events])
    calls = [event.calls for event in result.events[0]]
    rows = [_row(instruction, values, ticks[1 + i], calls[1 + i])
            for i, instruction in enumerate(instructions)]
    execute = Costs(calls=sum(row.calls for row in rows), ticks=sum(ticks),
                    macs=sum(row.macs for row in rows))
    if result.connected is None and result.board != running.HOST:
        rows, execute = _with_cycles(rows, execute, result, request)
    execute = execute.beside(execute.cost)
    operators = [one.beside(execute.cost) for one in _operators(rows)]
    found = Profile(
        request.name, request.method, board, request.pack_weights, _is_dynamic(values), unit(result),
        len(result.events), execute.ticks, ticks[0], execute.macs,
        [row.beside(execute.cost) for row in rows],
        sorted(operators, key=lambda one: one.cost, reverse=True), execute.cycles,
        unit(result) if execute.cycles is None else "cycles", execute.share, execute.macs_per_tick,
        result.connected)
    return found, [Execution(instructions, events) for events in result.events]


def _is_dynamic(values: Values) -> bool:
    return any(values.kind(i) == TENSOR and values.tensor(i).is_dynamic() for i in range(len(values)))


def _with_cycles(rows: list[ProfiledInstruction], execute: Costs, result: Result,
                 request: Request) -> tuple[list[ProfiledInstruction], Costs]:
    """Estimate the cycles on the core of an emulated board, of each row and of all."""
    core = load_board(result.board).core
    run = cycles.conditions_of(request, result, core)

    def estimated(costs: Costs, operators: dict[str, int]) -> int:
        return cycles.estimate(core, None, costs.ticks, operators, run).cycles

    return ([dataclasses.replace(row, cycles=estimated(row, {row.estimated_as: 1})) for row in rows],
            dataclasses.replace(execute, cycles=estimated(execute, _ticks_by_operator(rows))))


def _ticks_by_operator(rows: list[ProfiledInstruction]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row.estimated_as] += row.ticks
    return dict(found)


def unit(result: Result) -> str:
    """Return the unit of a tick."""
    if result.connected is not None:
        return result.connected.ticks
    return "ns" if result.board == running.HOST else "instructions"


def _medians(executions: list[list[int]]) -> list[int]:
    return [round(statistics.median(ticks)) for ticks in zip(*executions, strict=True)]


def _row(instruction: Instruction, values: Values, ticks: int, calls: int) -> ProfiledInstruction:
    return ProfiledInstruction(
        index=instruction.index, call=instruction.call,
        estimated_as=cycles.operator_of(instruction, values), shapes=shapes(instruction, values),
        calls=calls, ticks=ticks, macs=macs_of(instruction, values) * calls)


def shapes(instruction: Instruction, values: Values) -> str:
    """Return the sizes of the first tensor, of the weights that follow it, and of the output."""
    inputs = (factors(instruction) if macs_of(instruction, values)
              else _first_tensor(instruction.arguments, values))
    texts = [" * ".join(_sizes(values, i) for i in inputs),
             "".join(_sizes(values, i) for i in _first_tensor(instruction.outputs, values))]
    return " -> ".join(filter(None, texts))


def _first_tensor(named: Iterable[int], values: Values) -> list[int]:
    """Return [the first tensor of some values, or of the lists at their start], [] without one."""
    found = (i for value in named for i in values.tensors(value, _LOOKED_INTO))
    return list(itertools.islice(found, 1))


def _sizes(values: Values, index: int) -> str:
    return "x".join(map(str, values.tensor(index).sizes())) or "1"


def _operators(rows: list[ProfiledInstruction]) -> list[ProfiledOperator]:
    """Return the sums by call."""
    found: dict[str, list[ProfiledInstruction]] = defaultdict(list)
    for row in rows:
        found[row.call].append(row)
    return [ProfiledOperator(
        call=call, instructions=len(own), calls=sum(row.calls for row in own),
        ticks=sum(row.ticks for row in own), macs=sum(row.macs for row in own),
        cycles=None if own[0].cycles is None else sum(row.cycles or 0 for row in own))
        for call, own in found.items()]


# ---- for people


def show_text(found: Profile, order: str) -> None:
    rows = found.instructions
    if order == "share":
        rows = sorted(rows, key=lambda row: row.cost, reverse=True)
    name = found.unit
    short = "instr." if name == "instructions" else name
    has_cycles = found.cycles is not None
    head = [name + ">", *["cycles>"] * has_cycles, f"of {found.share_of}>", "MACs>", f"MACs/{short}>"]
    omitted = ["calls", f"MACs/{short}", *[name] * has_cycles, "MACs"]
    show.heading(f"{found.model}, method {found.method} on {found.board}"
                 + (", packed weights" if found.pack_weights else ""))
    columns = ["", "operator", "input * weights -> output", "calls>", *head]
    missing = show.table(columns, [[row.index, row.call, row.shapes, row.calls, *_figures(row)]
                                   for row in rows], omitted, dict.fromkeys(columns[1:3], 24))
    show.heading("By operator")
    execute = found.execute()
    show.table(["operator", "instr.>", "calls>", *head],
               [*[[one.call, one.instructions, one.calls, *_figures(one)] for one in found.operators],
                ["end of the loop", "", "", f"{found.end_of_loop:,}", *[""] * (len(head) - 1)],
                ["execute", len(rows), execute.calls, *_figures(execute)]], omitted, {"operator": 38})
    if missing:
        click.echo()
        show.line(f"A wider terminal shows further columns: {', '.join(missing)}")
    if has_cycles:
        click.echo(f"\nAbout {found.cycles:,} cycles in all. All cycles are estimates.")
    if found.dynamic:
        click.echo("\nShapes and MACs are for the largest sizes that the program accepts.")
    if found.connected is not None:
        click.echo()
        show.line(f"On the board {model_place(found.connected)}.")
    if found.executions > 1:
        click.echo()
        show.line(f"Medians of {found.executions} executions on this computer.")


def _figures(costs: Costs) -> list[str]:
    rate = costs.macs_per_tick
    cycles = [] if costs.cycles is None else [f"{costs.cycles:,}"]
    return [f"{costs.ticks:,}", *cycles, f"{100 * costs.share:.1f} %",
            f"{costs.macs:,}" if costs.macs else "", "" if rate is None else f"{rate:.2f}"]
