"""All executorch_prim:: operators on numbers, of which the exporter writes only some."""

import math
import operator

import torch
from executorch.exir.schema import Bool, Double, EValue, Instruction, Int, KernelCall, Operator, Program
from models.zoo.models.dynamic_shapes import M, N
from models.zoo.registry import Data, Function, Model, fixture

# Name of a result, operator, names or values of its arguments, the same operation in Python
_RESULTS = (
    ("n", "aten::sym_size.int", ("x", 0), None),
    ("m", "aten::sym_size.int", ("x", 1), None),
    ("elements", "aten::sym_numel", ("x",), None),
    ("sum", "executorch_prim::add.Scalar", ("n", "m"), operator.add),
    ("difference", "executorch_prim::sub.Scalar", ("n", "m"), operator.sub),
    ("product", "executorch_prim::mul.Scalar", ("difference", "m"), operator.mul),
    ("quotient", "executorch_prim::truediv.Scalar", ("product", 4), operator.truediv),
    ("float", "executorch_prim::sym_float.Scalar", ("n",), float),
    ("whole", "executorch_prim::floordiv.Scalar", ("product", 4), operator.floordiv),
    ("cut", "executorch_prim::floordiv.int", ("product", 4), lambda a, b: math.trunc(a / b)),
    ("floor", "executorch_prim::floordiv.Scalar", ("quotient", 0.75), operator.floordiv),
    ("rest", "executorch_prim::mod.Scalar", ("product", 4), lambda a, b: int(math.fmod(a, b))),
    ("int_rest", "executorch_prim::mod.int", ("product", 3), lambda a, b: int(math.fmod(a, b))),
    ("negative", "executorch_prim::neg.Scalar", ("quotient",), operator.neg),
    ("ceiling", "executorch_prim::ceil.Scalar", ("quotient",), math.ceil),
    ("rounded", "executorch_prim::round.Scalar", ("quotient",), round),
    ("truncated", "executorch_prim::trunc.Scalar", ("negative",), math.trunc),
    ("int", "executorch_prim::sym_int.Scalar", ("floor",), int),
    ("larger", "executorch_prim::sym_max.Scalar", ("n", "m"), max),
    ("smaller", "executorch_prim::sym_min.Scalar", ("n", "m"), min),
    ("equal", "executorch_prim::eq.Scalar", ("float", "m"), operator.eq),
    ("greater", "executorch_prim::gt.Scalar", ("n", "m"), operator.gt),
    ("less", "executorch_prim::lt.Scalar", ("quotient", "floor"), operator.lt),
    ("no_less", "executorch_prim::ge.Scalar", ("n", "m"), operator.ge),
    ("no_greater", "executorch_prim::le.Scalar", ("greater", "less"), operator.le),
    ("not", "executorch_prim::sym_not.Scalar", ("greater",), operator.not_),
    ("chosen", "executorch_prim::sym_ite.Scalar", ("greater", "whole", "less"),
     lambda condition, a, b: a if condition else b),
)  # fmt: skip
_FLOATS = ("quotient", "float", "floor", "negative")  # a board has these floats with 32 bits only


def _compute(x):
    """Return the outputs: x + x, and all results that are not floats."""
    if torch.compiler.is_exporting():
        return x + x
    found = {"n": x.shape[0], "m": x.shape[1], "elements": x.numel()}
    for name, _, arguments, function in _RESULTS:
        if function:
            found[name] = function(*(found[a] if isinstance(a, str) else a for a in arguments))
    return x + x, *(value for name, value in found.items() if name not in _FLOATS)


def _value(number) -> EValue:
    return EValue({bool: Bool, int: Int, float: Double}[type(number)](number))


def _add_calls(program: Program) -> None:
    (plan,) = program.execution_plan
    places = {"x": plan.inputs[0]}

    def add(value: EValue) -> int:
        plan.values.append(value)
        return len(plan.values) - 1

    for name, kernel, arguments, _ in _RESULTS:
        indexes = [places[a] if isinstance(a, str) else add(_value(a)) for a in arguments]
        places[name] = add(_value(0))
        base, _, overload = kernel.partition(".")
        plan.operators.append(Operator(base, overload))
        call = KernelCall(len(plan.operators) - 1, [*indexes, places[name]])
        plan.chains[0].instructions.append(Instruction(call))
        if name not in _FLOATS:
            plan.outputs.append(places[name])


@fixture
def prim_operators(data: Data) -> Model:
    """Every operator on numbers, of sizes that change."""
    return Model(
        Function(_compute),
        (data.floats(4, 3),),
        dynamic_shapes=({0: N, 1: M},),
        rewrite=_add_calls,
        further=tuple((data.floats(n, m),) for n, m in ((8, 6), (1, 2), (7, 5), (3, 6))),
    )
