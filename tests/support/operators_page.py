#!/usr/bin/env python3
"""Write the tables of docs/operators.md: each operator, the dtypes that its kernel supports, and its
error for other dtypes. The program calls the kernels to find dtypes and errors."""

import dataclasses
import itertools
import re
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [] if str(ROOT / "tests") in sys.path else [str(ROOT / "tests")]

from picotorch.host.operators import (  # noqa: E402
    OUTPUTS,
    built_operators,
    operator_signature,
    supported_operators,
)
from picotorch.host.releases import DIALECT, forms, in_words  # noqa: E402
from support import releases  # noqa: E402
from support.example_calls import EXAMPLES  # noqa: E402
from support.kernel_call import DTYPES, Call, KernelError, Tensor  # noqa: E402

PAGE = ROOT / "docs" / "operators.md"
# Operators that ExecuTorch's runtime registers, as pip installs it; tests/conformance compares them
EXECUTORCH = Path(__file__).with_name("executorch_operators.txt").read_text().split()
PLACE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

BFLOAT16 = 15
GROUPS = {"integers": ("uint8", "int8", "int16", "int32", "int64"),
          "floats": ("float16", "bfloat16", "float32", "float64")}
ALL = ("bool", *GROUPS["integers"], *GROUPS["floats"], "complex64")
MAIN = {"aten::where.self_out": 1}  # the tensor that selects the dtype, if it is not the first


def array_of(value):
    return value.array if isinstance(value, Tensor) else value


def is_tensor(value):
    return isinstance(value, np.ndarray | Tensor)


def tensors(arguments):
    """Return all tensors among the arguments, including those in lists."""
    for argument in arguments:
        yield from filter(is_tensor, argument if isinstance(argument, list | tuple) else [argument])


def cast(value, dtype):
    """Return a tensor or array with its elements in a dtype; none of them becomes 0."""
    array = array_of(value)
    array = array if dtype == "complex64" else array.real
    if dtype == "bfloat16":
        bits = (array.astype("float32").view("uint32") >> 16).astype("uint16")
        changed = {"array": bits, "dtype": BFLOAT16}
    else:
        whole = dtype not in GROUPS["floats"] and dtype != "complex64"
        array = np.ceil(array) if whole and array.dtype.kind == "f" else array
        changed = {"array": array.astype(dtype), "dtype": DTYPES[dtype]}
    return (dataclasses.replace(value, **changed) if isinstance(value, Tensor)
            else Tensor(**changed))


def converted(arguments, dtype_of):
    """Return the arguments, with tensors in the dtypes of `dtype_of`; None leaves a tensor
    unchanged."""
    made = {}

    def convert(value):
        if isinstance(value, list | tuple) and any(map(is_tensor, value)):
            return [convert(item) for item in value]
        if not is_tensor(value):
            return value
        if id(value) not in made:
            dtype = dtype_of(value)
            new = cast(value, dtype) if dtype else value
            alias = getattr(new, "alias", None)
            made[id(value)] = new if alias is None else dataclasses.replace(new, alias=convert(alias))
        return made[id(value)]

    return [convert(argument) for argument in arguments]


def refusal(operator, dtype):
    """Return the text of the error with which an operator rejects a dtype, or None if it supports the
    dtype."""
    arguments = EXAMPLES[operator]
    signature = operator_signature(built_operators()[operator])
    main = list(tensors(arguments))[MAIN.get(operator, 0)]
    own = array_of(main).dtype
    outputs = [id(tensor) for argument, letter in zip(arguments, signature, strict=True)
               if letter in OUTPUTS for tensor in tensors([argument])]
    whole = [int(np.ceil(one)) if isinstance(one, float) else one for one in arguments]
    if dtype == "bool":
        whole = [bool(one) if isinstance(one, float) else one for one in arguments]
    reasons = []
    for of_output, only_main, given in itertools.product((dtype, None, "int64"), (False, True),
                                                         (arguments, whole)):
        def dtype_of(tensor, of_output=of_output, only_main=only_main):
            if tensor is main:
                return dtype
            if array_of(tensor).dtype != own:
                return None
            return of_output if id(tensor) in outputs else None if only_main else dtype

        try:
            Call(operator, converted(given, dtype_of)).run()
            return None
        except KernelError as error:
            reasons.append(error.reason)
    return reasons[0]


def listed(dtypes):
    """Return the names of dtypes, with the name of a group if it is complete."""
    left = [dtype for dtype in ALL if dtype in dtypes]
    if len(left) == len(ALL):
        return "all"
    for group, members in GROUPS.items():
        if set(members) <= set(left):
            place = left.index(members[0])
            left = [one for one in left if one not in members]
            left.insert(place, group)
    return ", ".join(left)


def row(operator):
    if not list(tensors(EXAMPLES[operator])):
        return f"| `{operator}` | numbers | |"
    refused = {dtype: refusal(operator, dtype) for dtype in ALL}
    taken = [dtype for dtype, reason in refused.items() if reason is None]
    reasons = dict.fromkeys(reason for reason in refused.values() if reason is not None)
    words = "; ".join(f"{listed([d for d in ALL if refused[d] == reason])}: {reason}"
                      for reason in reasons)
    return f"| `{operator}` | {listed(taken)} | {words} |"


def table(operators):
    head = ["| operator | takes | refuses |", "| --- | --- | --- |"]
    return "\n".join([*head, *map(row, operators), ""])


def with_forms(name):
    """Return an operator with the numbers of its arguments in each release, as errors count them."""
    if not name.startswith(DIALECT):
        return f"- `{name}`\n"
    counted = [f"{count + 1} arguments in {in_words(exporting)}"
               for count, exporting in forms(supported_operators()[name]).items()]
    return f"- `{name}`: {', '.join(counted)}\n"


def page():
    """Return the text of the page, with new tables."""
    known = sorted(built_operators())
    places = {
        "executorch": [name for name in EXECUTORCH if not name.startswith("executorch_prim::")],
        "numbers": [name for name in EXECUTORCH if name.startswith("executorch_prim::")],
        "others": [name for name in known if name not in EXECUTORCH and name.startswith("aten::")],
        "own": [name for name in known if name.startswith("picotorch::")],
    }
    texts = {place: table(operators) for place, operators in places.items()}
    texts["dialects"] = "".join(with_forms(name) for name in known
                                if name not in EXECUTORCH
                                and not name.startswith(("aten::", "picotorch::")))
    texts["releases"] = releases.table()
    return PLACE.sub(lambda found: found[1] + texts[found[2]] + found[3], PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page())
