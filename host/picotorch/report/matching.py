"""Match the instructions of two programs of one module, such as int8 and float32."""

import difflib
import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from picotorch import MethodMeta

from ..host.instructions import KERNEL_CALL, Instruction, read_instructions
from ..host.values import Values
from ..measure.by_size import float_operator
from ..measure.macs import macs_of

# Operators that compute the same in different programs
_ALIKE = {"aten::addmm.out": "aten::linear.out", "aten::mm.out": "aten::linear.out",
          "aten::mean.out": "aten::avg_pool2d.out", "aten::mean.dim_out": "aten::avg_pool2d.out",
          "aten::_adaptive_avg_pool2d.out": "aten::avg_pool2d.out"}


class Program(NamedTuple):
    """The instructions of a method and its values."""

    instructions: Sequence[Instruction]
    values: Values

    def outputs(self, one: Instruction) -> list[int]:
        """Return the tensors that an instruction computes, the items of a list one by one."""
        return self.values.all_tensors(one.outputs)

    def numel(self, one: Instruction) -> int:
        """Return the elements of the first output, 0 without one."""
        tensors = self.outputs(one)
        return math.prod(self.values.tensor(tensors[0]).sizes()) if tensors else 0


def program(meta: MethodMeta) -> Program:
    """Return the program of a method."""
    values = Values(meta.program, meta.plan)
    return Program(read_instructions(meta, values), values)


def matched(own: Program, other: Program) -> dict[int, int]:
    """Return the instruction of the other program for instructions that compute the same value.

    Layers with multiply-accumulates match by their number and by the elements of the output, others by
    the operator and the elements; all in the order of the programs. Instructions without a counterpart
    are left out.
    """
    calls, others = ([one for one in of.instructions if one.kind == KERNEL_CALL]
                     for of in (own, other))
    blocks = difflib.SequenceMatcher(None, [_key(one, own) for one in calls],
                                     [_key(one, other) for one in others], autojunk=False)
    return {calls[block.a + k].index: others[block.b + k].index
            for block in blocks.get_matching_blocks() for k in range(block.size)}


def _key(one: Instruction, of: Program) -> Hashable:
    macs = macs_of(one, of.values)
    if macs:
        return macs, of.numel(one)
    operator = float_operator(one.call)
    return _ALIKE.get(operator, operator), of.numel(one)


def candidates(own: Program, other: Program) -> dict[int, list[int]]:
    """Return the instructions of the other program whose value may be the one of an instruction.

    They are the matching instruction and the following ones of as many elements, up to the next match:
    an int8 layer includes the batch norm and the activation behind it.
    """
    pairs = matched(own, other)
    ends = sorted({*pairs.values(), len(other.instructions)})
    found = {}
    for index, first in pairs.items():
        end = next(end for end in ends if end > first)
        count = own.numel(own.instructions[index])
        found[index] = [i for i in range(first, end)
                        if count and other.numel(other.instructions[i]) == count]
    return found


def groups(own: Program, other: Program) -> list[tuple[list[int], list[int]]]:
    """Divide both programs into groups of instructions that compute the same, in order.

    A group begins with two matching instructions, and has the ones behind them up to the next match.
    The first one has what comes before any match.
    """
    pairs = sorted(matched(own, other).items())
    starts = [(0, 0), *pairs, (len(own.instructions), len(other.instructions))]
    found = [(list(range(a, b)), list(range(c, d)))
             for (a, c), (b, d) in zip(starts, starts[1:], strict=False)]
    return [group for group in found if group != ([], [])]
