"""Make programs that run for a very long time, so that tests can interrupt them."""

from support.flatbuffer_builder import NULL_VALUE, bool_value, int_value
from support.programs import call, plan, program, tensor

FLOAT, LONG = 6, 4


def long_instruction(size, dtype):
    """Return a convolution of a plane with a kernel of the same size: about size**4 / 2
    multiplications, in a program of a few hundred bytes."""
    plane = (8 if dtype == LONG else 4) * (size + 1) ** 2 + 15 & -16
    lists = [int_value(1), int_value(size // 2), int_value(0), *(
        {"val": ("IntList", {"items": [i]})} for i in range(3))]
    ones, padding, zeros = 3, 4, 5
    values = [*lists, tensor([1, 1, size, size], 0, dtype=dtype),
              tensor([1, 1, size, size], plane, dtype=dtype), NULL_VALUE, bool_value(False),
              tensor([1, 1, size + 1, size + 1], 2 * plane, dtype=dtype)]
    convolution = call(0, 6, 7, 8, ones, padding, ones, 9, zeros, 0, 10, 10)
    return program(plan(values, [convolution], ["aten::convolution.out"], [], [10], [3 * plane]))


def endless_loop():
    """Return a program with an instruction that jumps to itself."""
    jump = {"instr_args": ("JumpFalseCall", {"cond_value_index": 0, "destination_instruction": 0})}
    return program(plan([bool_value(False)], [jump], [], [], [], []))
