"""Define oracles of operators on numbers, and on numbers with tensors, in Python."""

import math

import numpy as np
from support.pytorch_dtypes import DTYPES

from .sample import Sample, oracle

LOWEST, HIGHEST = -2**63, 2**63 - 1
PRIM = "executorch_prim::{}.Scalar".format
INTS = (0, 1, -1, 2, 7, -9, 10**6, 2**31, -2**40)
FLOATS = (0.0, -0.0, 0.5, -2.5, 7.0, 1e300, -1e-300, math.inf, -math.inf, math.nan)


def number(draw):
    return draw.pick(draw.pick(*INTS), draw.int(-99, 99), draw.pick(*FLOATS))


def fits(value):
    return value if isinstance(value, float) or LOWEST <= value <= HIGHEST else None


ARITHMETIC = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}
COMPARISONS = {"eq": lambda a, b: a == b, "gt": lambda a, b: a > b, "lt": lambda a, b: a < b,
               "ge": lambda a, b: a >= b, "le": lambda a, b: a <= b}


@oracle(*map(PRIM, ARITHMETIC))
def arithmetic(draw, operator):
    a, b = number(draw), number(draw)
    function = ARITHMETIC[operator[17:].split(".")[0]]
    if fits(function(a, b)) is None:
        a = 3
    return Sample([a, b], function(a, b))


@oracle(*map(PRIM, COMPARISONS))
def comparison(draw, operator):
    """Compare an int with a double as doubles."""
    a, b = number(draw), number(draw)
    function = COMPARISONS[operator[17:].split(".")[0]]
    return Sample([a, b], function(a, b))


@oracle(PRIM("truediv"))
def true_division(draw, operator):
    a, b = number(draw), number(draw)
    with np.errstate(all="ignore"):
        return Sample([a, b], float(np.float64(a) / np.float64(b)))


@oracle(PRIM("floordiv"), PRIM("mod"), "executorch_prim::floordiv.int", "executorch_prim::mod.int")
def integer_division(draw, operator):
    """Divide and truncate, as floordiv.int does. Doubles have separate tests."""
    a, b = draw.pick(*INTS), draw.pick(*(n for n in INTS if n))
    floor, rest = a // b, a % b
    if operator.endswith(".int"):
        floor = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        rest = a - floor * b
    elif "mod" in operator:
        rest = int(math.fmod(abs(a), abs(b))) * (-1 if a < 0 else 1)
    return Sample([a, b], rest if "mod" in operator else floor)


@oracle(PRIM("sym_max"), PRIM("sym_min"))
def extremum(draw, operator):
    a, b = draw.pick(*INTS), draw.pick(*INTS)
    return Sample([a, b], max(a, b) if "max" in operator else min(a, b))


@oracle(PRIM("neg"))
def negative(draw, operator):
    a = number(draw)
    return Sample([a], -a)


ROUNDINGS = {"ceil": math.ceil, "round": round, "trunc": math.trunc, "sym_int": math.trunc}


@oracle(*map(PRIM, ROUNDINGS))
def rounding(draw, operator):
    a = draw.pick(0.5, -0.5, 2.5, 3.5, -2.5, 1e15, -0.0, 0.49999999999999994) + draw.int(-9, 9)
    return Sample([a], ROUNDINGS[operator[17:].split(".")[0]](a))


@oracle(PRIM("sym_float"))
def as_float(draw, operator):
    a = draw.pick(number(draw), draw.chance())
    return Sample([a], float(a))


@oracle(PRIM("sym_not"))
def negation(draw, operator):
    a = draw.chance()
    return Sample([a], not a)


@oracle(PRIM("sym_ite"))
def if_then_else(draw, operator):
    condition, a, b = draw.chance(), number(draw), number(draw)
    return Sample([condition, a, b], a if condition else b)


# ---- numbers of tensors


@oracle("aten::_local_scalar_dense")
def only_element(draw, operator):
    x = draw.values([1] * draw.int(0, 3), draw.pick(*DTYPES))
    return Sample([draw.tensor(x)], x.item())


@oracle("aten::sym_size.int")
def size(draw, operator):
    x = draw.values(draw.shape(minimum=1), "int8")
    dim = draw.dim(x.ndim)
    return Sample([draw.tensor(x), dim], x.shape[dim])


@oracle("aten::sym_numel")
def numel(draw, operator):
    x = draw.values(draw.shape(), "int8")
    return Sample([draw.tensor(x)], x.size)


@oracle("executorch_prim::et_copy_index.tensor")
def copy_index(draw, operator):
    x = draw.values(draw.shape(smallest=1, maximum=4), draw.pick(*DTYPES))
    to = draw.values((draw.int(1, 4), *x.shape), x.dtype)
    index, expected = len(to) - 1, to.copy()  # a dynamic output ends with the copy
    expected[index] = x
    return Sample([draw.contiguous(to), draw.contiguous(x), index], expected, in_place=True)
