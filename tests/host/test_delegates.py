"""Delegates: backends in Python that fail, allocate, misuse the method; programs that lie of them."""

import fixture_store
import pytest
from flatbuffer_builder import NULL_VALUE, bool_value, int_value
from picotorch import BufferDataLoader, Error, Program
from programs import plan, program, tensor
from targets import HOST, SCRIPT_BOARDS, SCRIPTS, aligned, run_script

INT = 3
INLINE, SEGMENT = 0, 1


def delegate(index=0, location=INLINE, specs=(), **changes):
    return {"id": "Doubling", "processed": {"location": location, "index": index},
            "compile_specs": [{"key": key, "value": value} for key, value in specs]} | changes


def delegate_call(index, *args):
    return {"instr_args": ("DelegateCall", {"delegate_index": index, "args": list(args)})}


SPECS = (("level", [7]), ("empty", []))
DATA = [{"data": [10, 1, 2]}, {"data": [11, 1, 2]}]


def two(instructions=None, delegates=None, data=DATA, **fields):
    """out = 2 * (2 * x) by two delegates, with a kernel (relu) between; of four ints."""
    values = [tensor([4], 0, dtype=INT), tensor([4], 16, dtype=INT), tensor([4], 32, dtype=INT),
              tensor([4], 48, dtype=INT), int_value(7), bool_value(True), NULL_VALUE]
    if instructions is None and delegates is not None:
        instructions = [delegate_call(0, 0, 3)]
    instructions = instructions or [
        delegate_call(0, 0, 1),
        {"instr_args": ("KernelCall", {"op_index": 0, "args": [1, 2, 2]})},
        delegate_call(1, 2, 4, 5, 6, 3)]
    found = plan(values, instructions, ["aten::relu.out"], [0], [3], [64])
    found["delegates"] = [delegate(0, specs=SPECS), delegate(1)] if delegates is None else delegates
    return program(found, backend_delegate_data=list(data), **fields)


BROKEN = {
    "call_of_no_delegate": two([delegate_call(2, 0, 3)]),
    "call_below_0": two([delegate_call(-1, 0, 3)]),
    "without_arguments": two([{"instr_args": ("DelegateCall", {"delegate_index": 0})}]),
    "argument_of_no_value": two([delegate_call(0, 0, 99)]),
    "argument_below_0": two([delegate_call(0, -1, 3)]),
    "without_id": two(delegates=[delegate(id=None)]),
    "without_data": two(delegates=[delegate(processed=None)]),
    "data_at_no_index": two(delegates=[delegate(2)]),
    "data_in_no_segment": two(delegates=[delegate(0, SEGMENT)]),
    "data_at_unknown_place": two(delegates=[delegate(0, 2)]),
    "no_data_at_all": two(data=[]),
    "missing_backends": two(delegates=[delegate(id=name) for name in ("A", "Doubling", "B", "A")]),
    "many_arguments": two([delegate_call(0, *[0] * 9)]),
}


def sections():
    return {"two": two()} | {f"x_{name}": pte for name, pte in BROKEN.items()}


@pytest.mark.parametrize("target", (HOST, *SCRIPT_BOARDS))
def test_what_backends_do_wrong_has_its_error_and_leaves_the_method_usable(target):
    result = run_script("delegates.py", sections(), target)
    assert result.lines == (SCRIPTS / "delegates.exp").read_text().splitlines()


@pytest.mark.parametrize("changes, error", [
    ({"segment_index": 9}, "InvalidArgument (0x12): named data 0: there is no such segment"),
    ({"key": None}, "InvalidArgument (0x12): named data 0: has no key"),
])
def test_named_data_that_lies(changes, error):
    entry = {"key": "weight", "segment_index": 0} | changes
    opened = Program.load(BufferDataLoader(aligned(two(named_data=[entry]))))
    with pytest.raises(Error) as caught:
        opened.get_named_data("weight")
    assert str(caught.value) == error


def test_named_data():
    fixture = fixture_store.load("delegate_named_data")
    opened = Program.load(BufferDataLoader(aligned(fixture.pte)))
    named = opened.get_named_data_map()
    assert sorted(named.get_key(i) for i in range(len(named))) == ["offset", "scale"]
    scale = opened.get_named_data("scale")
    assert scale.readonly and scale.nbytes == 20
    with pytest.raises(Error, match=r"NotFound \(0x20\): weight: there is no named data of this key"):
        opened.get_named_data("weight")
    with pytest.raises(Error, match="InvalidArgument"):
        named.get_key(2)
