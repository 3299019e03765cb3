"""Check the list of operators, kernels/core/registry/operators.def, and write the generated files.

    python tools/generate_operators.py           # writes operator_arguments.h of kernels/core/generated
                                                 # and, for new operators, registry/operators.lock
    python tools/generate_operators.py --check   # exit status 1 if the files differ from its output

operators.lock has the number of every operator that ever existed. Lines are added, never changed, so
that a number in a pool or a .ptm file always means the same operator.
operator_arguments.h has an enum for each operator, the indexes of its arguments. --folder names another
folder with the list.
"""

import argparse
import runpy
import sys
import textwrap
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READER = runpy.run_path(ROOT / "host" / "picotorch" / "host" / "operator_list.py")
FOLDER = ROOT / "kernels" / "core" / "registry"
LIST, LOCK, HEADER = "operators.def", "operators.lock", "../generated/operator_arguments.h"

NOTICE = """\
// Written by tools/generate_operators.py from operators.def: the indexes of the arguments of each
// operator. A constant is called after the operator, then the argument; the overload is left out where
// it only names outputs, the namespace where it is aten's or no other operator has the same name.
#ifndef PT_OPERATOR_ARGUMENTS_H
#define PT_OPERATOR_ARGUMENTS_H
"""
OUTPUTS = "OoWCENA"
NUMBERS = 1 << 16  # the operator's field of an instruction has 16 bits


def prefix_of(operator):
    """Return the prefix of the constants of an operator's arguments, without namespace."""
    base, _, overload = operator.name.partition("::")[2].partition(".")
    outputs = {name for name, letter in zip(operator.arguments, operator.signature, strict=True)
               if letter in OUTPUTS} | {"out", "default"}
    words = [] if overload in outputs else overload.split("_")
    words = [word for word in words if word and word not in outputs]
    return "_".join([base.lstrip("_"), *words]).upper()


def read_list(text):
    """Return the operators in the order of their lines, and the faults of lines."""
    operators, others = READER["read_operators"](text)
    wrong = [f"not understood: {line}" for line in others]
    for operator in operators:
        name, signature = operator.name, operator.signature
        if len(operator.arguments) != len(signature):
            wrong.append(f"{name}: {len(operator.arguments)} names of arguments for a signature of "
                         f"{len(signature)}")
        elif len(set(operator.arguments)) < len(signature):
            wrong.append(f"{name}: two arguments of one name")
        wrong += [f"{name}: the form {form.signature} has to be {signature} with - for arguments that "
                  f"may be None, and a number of arguments of its own"
                  for form in operator.forms if not is_form(form, operator)]
    return operators, wrong


def is_form(form, operator):
    """Return True if a form lacks some of the operator's arguments, and no other form lacks as many."""
    counts = [one.n_args for one in operator.forms]
    return (form.n_args < len(operator.signature) == len(form.signature)
            and counts.count(form.n_args) == 1
            and all(letter == own or letter == "-" and own.islower()
                    for letter, own in zip(form.signature, operator.signature, strict=True)))


def read_lock(text):
    """Return the names of all operators that ever existed by number, and the faults of lines."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    names = [line.partition(" ")[2] for line in lines]
    wrong = [f"{LOCK}: {line!r} where number {number} has to be"
             for number, line in enumerate(lines) if line != f"{number} {names[number]}"]
    wrong += [f"{LOCK}: {name} stands there twice"
              for name, times in Counter(names).items() if times > 1]
    return names, wrong


def check_names(operators):
    """Return faults in the order of the lines, since the core searches by name."""
    names = [operator.name.encode() for operator in operators]
    return [f"{after.decode()} has to stand before {before.decode()}" if after < before
            else f"{after.decode()} stands there twice"
            for before, after in zip(names, names[1:], strict=False) if after <= before]


def check_numbers(operators, locked):
    """Return faults in the numbers. locked: the names of all operators that ever existed."""
    wrong, new = [], []
    for operator in operators:
        if operator.name in locked:
            number = locked.index(operator.name)
            if operator.number != number:
                wrong.append(f"{operator.name} has number {number} for ever, not {operator.number}")
        elif operator.number < len(locked):
            wrong.append(f"{operator.name}: number {operator.number} is that of "
                         f"{locked[operator.number]} for ever, the next one is {len(locked)}")
        else:
            new.append(operator)
    expected = range(len(locked), len(locked) + len(new))
    for operator, number in zip(sorted(new, key=lambda one: one.number), expected, strict=True):
        if operator.number != number or number >= NUMBERS:
            wrong.append(f"{operator.name}: the next number is {number}, not {operator.number}")
    return wrong


def lock_source(operators, locked):
    new = sorted((one.number, one.name) for one in operators if one.name not in locked)
    lines = [f"{number} {name}" for number, name in [*enumerate(locked), *new]]
    notice = ["# Written by tools/generate_operators.py, which only adds lines: the numbers of all",
              "# operators that there ever were."]
    return "\n".join([*notice, *lines, ""])


def constants(operators):
    """List the constants of each operator by name, in the order of its arguments."""
    times = Counter(prefix_of(operator) for operator in operators)
    found = {}
    for operator in operators:
        namespace, prefix = operator.name.partition("::")[0], prefix_of(operator)
        if times[prefix] > 1 and namespace != "aten":
            prefix = f"{namespace.upper()}_{prefix}"
        found[operator.name] = [f"{prefix}_{name.upper()}" for name in operator.arguments]
    return found


def check_constants(found):
    owners = {}
    for name, own in found.items():
        for constant in own:
            owners.setdefault(constant, []).append(name)
    return [f"{constant} is an argument of {' and of '.join(names)}"
            for constant, names in owners.items() if len(names) > 1]


def header_source(found):
    lines = [NOTICE]
    for name, own in found.items():
        lines += [f"// {name}", *textwrap.wrap(f"enum {{ {', '.join(own)} }};", 100,
                                               subsequent_indent="       ")]
    return "\n".join([*lines, "", "#endif\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    operators, wrong = read_list((arguments.folder / LIST).read_text())
    locked, wrong_lock = read_lock((arguments.folder / LOCK).read_text())
    wrong += wrong_lock
    if not wrong:
        found = constants(operators)
        wrong = check_names(operators) + check_numbers(operators, locked) + check_constants(found)
    if not wrong:
        for name, text in ((LOCK, lock_source(operators, locked)), (HEADER, header_source(found))):
            path = arguments.folder / name
            if arguments.check and (not path.exists() or path.read_text() != text):
                wrong.append(f"{name} is not what {LIST} says: call tools/generate_operators.py")
            elif not arguments.check:
                path.write_text(text)
    print("".join(f"{line}\n" for line in wrong), end="")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
