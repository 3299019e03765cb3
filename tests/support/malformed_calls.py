"""Make malformed calls, with too few, too many or wrong arguments, for every signature of an operator.

A program of a fixture stands for each signature. Without such a fixture, a program made of
example_calls does.
"""

import copy
import functools

import numpy as np
from picotorch.host.operators import built_operators, operator_signature, supported_operators
from picotorch.host.releases import forms
from support import file_parts, fixture_store, programs
from support.example_calls import EXAMPLES
from support.flatbuffer_builder import NULL_VALUE, bool_value, double_value, int_value, string_value
from support.kernel_call import Tensor, Variable
from support.malformed import EXAMPLE, kind, parts

# The kinds that fit, by the letter of the signature; a lower-case letter also accepts None
FITTING = {"T": "Tensor Constant", "O": "Tensor", "C": "Tensor", "E": "Tensor",
           "X": "Tensor", "A": "Tensor Constant",
           "V": "TensorList", "W": "TensorList", "U": "TensorList OptionalTensorList",
           "S": "Int Bool Double", "I": "Int", "B": "Bool", "D": "Int Double", "M": "String",
           "L": "IntList", "Q": "BoolList", "R": "DoubleList", "N": "Int Bool Double Null"}
NUMBERS = {bool: bool_value, int: int_value, float: double_value, str: string_value,
           type(None): lambda _: NULL_VALUE, Variable: lambda _: int_value(0)}
CALL = ("execution_plan", 0, "chains", 0, "instructions", 0, "instr_args", 1)
LARGEST = 6000  # maximum bytes of a fixture that stands for a signature


def signatures():
    """Return the names of operators by their signature."""
    found = {}
    for name, number in built_operators().items():
        found.setdefault(operator_signature(number), []).append(name)
    return found


@functools.cache
def examples():
    """Return (fixture, index of its plan, of its chain, of its instruction) by operator, of the
    smallest fixture."""
    found = {}
    fixtures = [fixture for fixture in fixture_store.load_all()
                if not (fixture.refused or fixture.backends or fixture.data)]
    for fixture in sorted(fixtures, key=lambda fixture: fixture.path.stat().st_size):
        if fixture.path.stat().st_size < LARGEST:
            part = parts(fixture.name)
            for place in part.places("KernelCall"):
                operator = part.tables["execution_plan"][place[1]]["operators"][
                    part.get(place).get("op_index", 0)]
                name = b".".join(filter(None, (operator["name"], operator.get("overload"))))
                found.setdefault(name.decode(), (fixture.name, place))
    return found


def others(plan):
    """Return a value of every kind, by name. Lists refer to the plan's first tensor or to the Int of
    the result. A Constant is included if the plan has one."""
    tensors = [value["val"][1] for value in plan["values"] if value["val"][0] == "Tensor"]
    tensor = next(i for i, value in enumerate(plan["values"]) if value["val"][0] == "Tensor")
    planned = [t for t in tensors if t.get("allocation_info") and not t.get("extra_tensor_info")]
    constant = [t for t in tensors if t.get("data_buffer_idx") and not t.get("allocation_info")]
    found = {"Null": NULL_VALUE, "Int": int_value(0), "Bool": bool_value(True),
             "Double": double_value(0.5), "Tensor": {"val": ("Tensor", planned[0])},
             "String": string_value("none"),
             "IntList": {"val": ("IntList", {"items": [len(plan["values"]) + 1]})},
             "DoubleList": {"val": ("DoubleList", {"items": [0.5]})},
             "BoolList": {"val": ("BoolList", {"items": [True]})},
             "TensorList": {"val": ("TensorList", {"items": [tensor]})},
             "OptionalTensorList": {"val": ("OptionalTensorList", {"items": [tensor]})}}
    return found | ({"Constant": {"val": ("Tensor", constant[0])}} if constant else {})


@functools.cache
def prepared(signature):
    """Return (source, operator, program, place of the call, indexes). The program has one call, with a
    value of each kind behind its own values; indexes has these by kind."""
    names = signatures()[signature]
    operator = next((name for name in names if name in examples()), None)
    if operator is not None:
        source, place = examples()[operator]
        part = parts(source)
    else:
        operator, source, place = names[0], EXAMPLE, CALL
        part = file_parts.program(made(operator))
    tables = copy.deepcopy(part.tables)
    plan = tables["execution_plan"][place[1]]
    chain = plan["chains"][place[3]]
    chain["instructions"] = [chain["instructions"][place[5]]]
    first, added = len(plan["values"]), others(plan)
    plan["values"] += added.values()
    found = {what: first + i for i, what in enumerate(added)}
    return (source, operator, file_parts.program(part.together(tables)), (*place[:5], 0, *place[6:]),
            found)


def made(operator):
    """Return a program with the call of example_calls."""
    values, size = [], 0

    def add(argument):
        nonlocal size
        if isinstance(argument, list):
            values.append(listed(argument, [add(item) for item in argument]))
        elif isinstance(argument, (np.ndarray, Tensor)):
            found = argument if isinstance(argument, Tensor) else Tensor(argument)
            values.append(programs.tensor(found.array.shape, size, dtype=found.dtype,
                                          dim_order=list(found.dim_order)))
            size += -(-found.array.nbytes // 16) * 16
        else:
            values.append(NUMBERS[type(argument)](argument))
        return len(values) - 1

    arguments = [add(argument) for argument in EXAMPLES[operator]]
    if programs.names_result(operator_signature(built_operators()[operator])):
        arguments += arguments[-1:]
    return programs.program(programs.plan(values, [programs.call(0, *arguments)], [operator], [], [],
                                          [size]))


def listed(argument, items):
    """Return a list whose items are the values of these indexes."""
    if any(isinstance(item, (np.ndarray, Tensor)) for item in argument):
        optional = any(item is None for item in argument)
        return {"val": ("OptionalTensorList" if optional else "TensorList", {"items": items})}
    if argument and isinstance(argument[0], float):
        return {"val": ("DoubleList", {"items": argument})}
    if argument and isinstance(argument[0], bool):
        return {"val": ("BoolList", {"items": argument})}
    return {"val": ("IntList", {"items": items})}


def fits(signature, i, what):
    letter = signature[i]
    return what in FITTING[letter.upper()].split() or (letter.islower() and what == "Null")


@kind("calls", "argument of another kind")
def another_kind():
    """Yield every second pair of an argument and a value of another kind."""
    turn = 0
    for signature in signatures():
        source, operator, part, place, added = prepared(signature)
        for i in range(len(signature)):
            for what, index in added.items():
                if not fits(signature, i, what):
                    turn += 1
                    if turn % 2:
                        yield (source, f"{operator}: argument {i} is {what}",
                               part.changed((*place, "args", i), index))


@kind("calls", "another number of arguments")
def another_number():
    """Yield calls without each argument, without any, and with one more.

    Leave out the numbers of arguments that other forms of the operator have.
    """
    for signature in signatures():
        source, operator, part, place, _ = prepared(signature)
        arguments = part.get((*place, "args"))
        few = [arguments[:i] + arguments[i + 1 :] for i in range(len(arguments))]
        counts = [count + 1 for count in forms(supported_operators()[operator])]
        for wrong in (*few, [], arguments + arguments[-1:]):
            if len(wrong) in counts and len(wrong) < len(arguments):
                continue
            yield source, f"{operator}: arguments {wrong}", part.changed((*place, "args"), wrong)
