"""Test that a call of a kernel has the arguments of its operator and, unless the operator belongs to
the runtime itself, its results behind them. A call with one fewer or one more is rejected."""

import pytest
from picotorch import Error
from picotorch.host.operators import supported_operators
from picotorch.host.releases import forms
from picotorch.host.twin import open_data, open_program
from picotorch.module import load_with_exact_memories
from support import file_parts, fixture_store

FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()
            if not fixture.refused and not fixture.backends}


def one_call_of_each_operator(part):
    found = {}
    for place in part.places("KernelCall"):
        found.setdefault((place[1], part.get(place).get("op_index", 0)), place)
    return found.values()


def counts_of_forms(part, place):
    """The numbers of arguments that a call of this operator may have, by releases of ExecuTorch."""
    operator = part.get((*place[:2], "operators"))[part.get(place).get("op_index", 0)]
    name = f"{operator['name'].decode()}.{operator.get('overload', b'').decode()}".rstrip(".")
    return [count + 1 for count in forms(supported_operators()[name])]


@pytest.mark.parametrize("name", FIXTURES)
def test_another_number_of_arguments_is_rejected(name):
    fixture = FIXTURES[name]
    part = file_parts.program(fixture.pte)
    for place in one_call_of_each_operator(part):
        arguments = part.get((*place, "args"))
        method = part.get(place[:2])["name"].decode()
        for wrong in (arguments[:-1], arguments + arguments[-1:]):
            changed = open_program(part.changed((*place, "args"), wrong))
            with pytest.raises(Error) as raised:
                load_with_exact_memories(changed, method, False, open_data(fixture.data))
            error = raised.value
            if len(wrong) < len(arguments) and len(wrong) in counts_of_forms(part, place):
                continue  # an earlier form, whose arguments are of other kinds
            assert (error.name, error.subject) == ("InvalidProgram", "instruction")
            assert (error.requested, error.available) == (len(arguments), len(wrong))
            assert f"{len(arguments)} arguments wanted, {len(wrong)} given" in str(error)
