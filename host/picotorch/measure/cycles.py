"""Estimate the time of an execution on a chip from the instructions that an emulated board counted.

cycles_per_instruction.json has (least, usual, most) cycles per instruction of each operator on each
core, measured with the models of docs/performance.md: the minimum of any model, the mean of all
instructions, and the maximum of any model. OTHERS is for operators that these models lack. Convolutions
count as five operators, see operator_of. The file also has the operators that differ with packed
constants, or with less temp memory than preferred. With less temp memory, the calls of a .ptm file run
other loops than the calls of a program, because they also use idle planned memory. `make performance`
measures and writes the figures. They exclude wait states of flash, caches and the bus, which depend on
the chip.
"""

import contextlib
import dataclasses
import json
from collections import Counter
from importlib import resources
from typing import NamedTuple

from _picotorch import CORES
from _picotorch_c import lib

from picotorch import Error
from picotorch.module import load_with_exact_memories

from ..boards.boards import load_board
from ..host.instructions import Instruction, read_instructions
from ..host.operators import CONV_VARIANTS, conv_variants
from ..host.request import Estimate, Request, Result
from ..host.twin import has_packed, is_ptm, open_data, open_program, preferred_temp
from ..host.values import Values
from ..run import running

OTHERS = "others"
_DIMS = {"cortex_m::quantized_conv2d.out": (1, 3),  # dims of an image's channels and width
         "cortex_m::quantized_conv2d_nhwc.out": (3, 2)}
# Of conv_variants.h
_VARIANTS = {" 1x1": "pointwise", " 3 wide": "winograd", " odd channels": "im2row", "": "im2row"}
_PREPARING = (*_DIMS, "cortex_m::quantized_linear.out")
_PLAIN_WEIGHTS = " with plain weights"  # beside others with packed ones
CYCLES_PER_INSTRUCTION = json.loads(
    resources.files("picotorch.measure").joinpath("cycles_per_instruction.json").read_text())


class RunConditions(NamedTuple):
    """The conditions of a run on which factors depend.

    is_packed: with packed constants. has_less_temp: less temp memory than preferred. of_ptm: True for a
    compiled method. lacks: variants of convolutions that would speed it up, but are not in the
    firmware.
    """

    is_packed: bool = False
    has_less_temp: bool = False
    of_ptm: bool = False
    lacks: frozenset[str] = frozenset()

    def mode(self) -> str:
        """Return the name of the part of the JSON for these conditions."""
        less = ", .ptm file with less temp" if self.of_ptm else ", less temp"
        return ("pool" if self.is_packed else "none") + (less if self.has_less_temp else "")


PLAIN = RunConditions()


def conditions(model: bytes, core: str, packed: int, has_less_temp: bool) -> RunConditions:
    """Return the conditions of a run on a core. packed: bytes of packed weights in the pool."""
    return RunConditions(bool(packed) or has_packed(model, core), has_less_temp, is_ptm(model))


def conditions_of(request: Request, result: Result, core: str) -> RunConditions:
    """Return the conditions of a run that succeeded on a board with this core."""
    run = conditions(request.model, core, result.packed, _has_less_temp(request, result, core))
    return run._replace(lacks=_lacking_variants(request, result, core))


def _lacking_variants(request: Request, result: Result, core: str) -> frozenset[str]:
    from ..run import emulated, emulator  # commands that run nothing on a board do without

    if CORES.get(core) != lib.PT_CORE_DSP:
        return frozenset()
    firmware = emulated.firmware_of(request, load_board(result.board))
    linked = emulator.symbols_in(firmware, [f"pt_{variant}" for variant in CONV_VARIANTS])
    lacking = {variant for variant in CONV_VARIANTS if f"pt_{variant}" not in linked}
    return frozenset(lacking and lacking & conv_variants(open_program(request.model),
                                                      open_data(request.data)))


def has_less_temp(size: int, used: int, preferred: int) -> bool:
    """Return whether calls run other loops than with the preferred temp memory.

    They do with the default, and with less than a quarter of the preferred. In between most calls run
    the loops of the preferred.
    """
    return size < preferred and (size <= used or 4 * size < preferred)


def _has_less_temp(request: Request, result: Result, core: str) -> bool:
    if result.temp is None:
        return False
    try:
        return has_less_temp(result.temp.size, result.temp.used, preferred_by(request, core))
    except Error:  # the twin cannot load it, for example with delegates
        return False


def used_by(request: Request) -> int:
    """Return the bytes of temp memory that the kernels of a method use. Raises Error."""
    method = load_with_exact_memories(open_program(request.model), request.method,
                                      request.pack_weights, open_data(request.data))
    used: int = method.memory_report()["temp"]["used"]
    return used


def preferred_by(request: Request, core: str) -> int:
    """Return the bytes of temp memory with which a method is fastest on a core. Raises Error."""
    data, pack = open_data(request.data), request.pack_weights
    method = load_with_exact_memories(open_program(request.model), request.method, pack, data)
    return preferred_temp(method, core, pack, data)


def factors(core: str, operator: str, run: RunConditions = PLAIN) -> list[float]:
    """Return (least, usual, most) cycles an instruction of an operator, as operator_of names it."""
    if operator.endswith(_PLAIN_WEIGHTS):
        operator, run = operator.removesuffix(_PLAIN_WEIGHTS), run._replace(is_packed=False)
    operator, run = _with_other_loops(operator, run)
    table: dict[str, list[float]] = {}
    for mode in (PLAIN.mode(), RunConditions(run.is_packed).mode(), run.mode()):
        table |= CYCLES_PER_INSTRUCTION.get(mode, {}).get(core, {})
    return table.get(operator, table[OTHERS])


def _with_other_loops(operator: str, run: RunConditions) -> tuple[str, RunConditions]:
    """Return the operator and the conditions of the loops of a convolution whose variant is left out.

    For 3-wide variants these are the loops without a variant, for others those with less temp memory,
    where only a .ptm file leaves 1x1 without its variant.
    """
    name = next((name for name in _DIMS if operator.startswith(name)), None)
    if name is None:
        return operator, run
    kind = operator.removeprefix(name)
    if _VARIANTS.get(kind) not in run.lacks:
        return operator, run
    if kind == " 3 wide":
        return _with_other_loops(name, run)
    return operator, run._replace(has_less_temp=True, of_ptm=kind == " 1x1")


def operator_of(instruction: Instruction, values: Values) -> str:
    """Return the name of an instruction's operator.

    The name of a convolution includes its loops of kernels/arch/conv_variants.h with enough temp
    memory, if any, and in a .ptm file whether it has plain weights beside others with packed ones.
    """
    is_plain = (instruction.call in _PREPARING and values.packed
                and not values.packed[instruction.index])
    return _kind_of(instruction, values) + (_PLAIN_WEIGHTS if is_plain else "")


def _kind_of(instruction: Instruction, values: Values) -> str:
    name = instruction.call
    if name not in _DIMS:
        return name
    channels, width = _DIMS[name]
    image, kernel, out = (values.tensor(i).sizes() for i in (*instruction.arguments[:2],
                                                             instruction.outputs[0]))
    stride, dilation = (values.ints(instruction.arguments[i]) for i in (3, 5))
    if image[channels] != kernel[3] or any(step != 1 for step in dilation):
        return name + " grouped or dilated"
    if kernel[1] == kernel[2] == 1:
        return name + " 1x1"
    if kernel[3] % 4:
        return name + " odd channels"
    return name + (" 3 wide" if kernel[2] == 3 and stride[-1] == 1 and out[width] >= 4 else "")


def estimate(core: str, clock_hz: int | None, instructions: int, operators: dict[str, int],
             run: RunConditions = PLAIN) -> Estimate:
    """Return the estimate of an execution whose instructions a board counted.

    instructions: all of an execution, which its operators share as `operators` has them.
    """
    shares = operators if sum(operators.values()) else {OTHERS: 1}
    sums = [0.0, 0.0, 0.0]
    for operator, share in shares.items():
        for i, factor in enumerate(factors(core, operator, run)):
            sums[i] += factor * share
    cycles = [round(instructions * one / sum(shares.values())) for one in sums]
    ms = [None if clock_hz is None else round(1000 * count / clock_hz, 3) for count in cycles]
    return Estimate(instructions, cycles[1], ms=ms[1], min_ms=ms[0], max_ms=ms[2])


def measured_operators(request: Request, board: str) -> dict[str, int]:
    """Return the instructions by operator, in a run on an emulated board.

    If the firmware of the request measures none, they are those in the board's own firmware; nothing if
    that does not either, or has no room for the method. Raises Error if there was no run.
    """
    counts = measured_counts(request, board)
    if not counts and request.firmware:
        with contextlib.suppress(Error):
            counts = measured_counts(dataclasses.replace(request, firmware=None), board)
    return by_operator(request, counts)


def measured_counts(request: Request, board: str) -> list[int]:
    """Return the measured instructions by instruction of the method."""
    result = running.run(dataclasses.replace(request, executions=1), board)
    return [event.ticks for event in result.events[0][1:]] if result.events else []


def by_operator(request: Request, counts: list[int]) -> dict[str, int]:
    """Add up measured_counts."""
    found: Counter[str] = Counter()
    if counts:
        meta = open_program(request.model).method_meta(request.method)
        values = Values(meta.program, meta.plan)
        for instruction in read_instructions(meta, values):
            found[operator_of(instruction, values)] += counts[instruction.index]
    return dict(found)
