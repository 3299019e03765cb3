"""Test delegates: backends in Python that fail, allocate or misuse the method, and programs with wrong
data about them."""

import gc
import weakref
from array import array

import numpy as np
import pytest
from picotorch import (
    Backend,
    BufferDataLoader,
    Error,
    FlatTensorDataMap,
    Program,
    Tensor,
    ValueList,
    register_backend,
    unregister_backend,
)
from picotorch.errors import END_OF_METHOD, fail
from picotorch.host.request import Request
from picotorch.measure import profiling
from picotorch.module import load_with_exact_memories
from picotorch.runtime import Runtime
from support import fixture_jobs, fixture_store
from support.flatbuffer_builder import (
    NULL_VALUE,
    bool_value,
    double_value,
    int_value,
    string_value,
)
from support.programs import call, delegate_call, plan, program, tensor
from support.targets import HOST, SCRIPT_BOARDS, SCRIPTS, aligned, run_script

BOARD = "mps2-an386"
INT = 3
INLINE, SEGMENT = 0, 1


def delegate(index=0, location=INLINE, specs=(), **changes):
    return {"id": "Doubling", "processed": {"location": location, "index": index},
            "compile_specs": [{"key": key, "value": value} for key, value in specs]} | changes


SPECS = (("level", [7]), ("empty", []))
DATA = [{"data": [10, 1, 2]}, {"data": [11, 1, 2]}]


def two(instructions=None, delegates=None, data=DATA, **fields):
    """Return out = 2 * (2 * x) by two delegates, with a kernel (relu) in between; of four ints."""
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
def test_a_wrong_backend_raises_and_leaves_the_method_usable(target):
    result = run_script("delegates.py", sections(), target)
    assert result.lines == (SCRIPTS / "delegates.exp").read_text().splitlines()


@pytest.mark.parametrize("changes, error", [
    ({"segment_index": 9}, "InvalidArgument (0x12): named data 0: there is no such segment"),
    ({"key": None}, "InvalidArgument (0x12): named data 0: has no key"),
])
def test_named_data_with_false_sizes(changes, error):
    entry = {"key": "weight", "segment_index": 0} | changes
    opened = Program.load(BufferDataLoader(aligned(two(named_data=[entry]))))
    with pytest.raises(Error) as caught:
        opened.get_named_data("weight")
    assert str(caught.value) == error


def test_named_data():
    fixture = fixture_store.load("delegate_named_data")
    opened = Program.load(BufferDataLoader(aligned(fixture.pte)))
    named = opened.get_named_data_map()
    assert sorted(named.keys()) == ["offset", "scale"]
    scale = opened.get_named_data("scale")
    assert scale.readonly and scale.nbytes == 20
    with pytest.raises(Error, match=r"NotFound \(0x20\): weight: there is no named data of this key"):
        opened.get_named_data("weight")
    with pytest.raises(Error, match="InvalidArgument"):
        named.get_key(2)


# ---- the example of the documentation


def test_the_example_of_the_documentation(capsys, monkeypatch):
    root = SCRIPTS.parents[1]
    text = (root / "docs" / "delegates.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(root)
    try:
        exec(compile(example, "docs/delegates.md", "exec"), {"__name__": "__main__"})
    finally:
        unregister_backend("IntegerBackend")
    x = np.arange(1, 6)
    opened = Program.load(BufferDataLoader(aligned(fixture_store.load("delegate_named_data").pte)))
    scale, offset = (np.frombuffer(opened.get_named_data(key), np.int32)
                     for key in ("scale", "offset"))
    assert capsys.readouterr().out == f"{list(map(int, -(x * scale + offset) * scale + x))}\n"


# ---- on the host only


class Given(Backend):
    """Raise the error that it receives."""

    def __init__(self, error):
        self.error = error

    def init(self, context, processed, compile_specs):
        return None

    def execute(self, context, handle, args):
        if self.error is not None:
            raise self.error


@pytest.fixture
def register():
    """Register a backend for a test."""
    names = []

    def add(name, backend):
        register_backend(name, backend)
        names.append(name)

    yield add
    for name in names:
        unregister_backend(name)


def test_an_interrupt_goes_through_the_executor_and_leaves_the_method_usable(register):
    backend = Given(KeyboardInterrupt())
    register("Doubling", backend)
    made = two([call(0, 0, 1, 1), delegate_call(0, 1, 3)])
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(made))), "forward")
    method.set_input(np.arange(4, dtype=np.int32), 0)
    with pytest.raises(KeyboardInterrupt):
        method.execute()
    backend.error = None
    method.set_input(np.arange(4, dtype=np.int32), 0)
    method.execute()


def test_a_backend_may_raise_the_code_of_the_end_of_the_method(register):
    register("Doubling", Given(fail(END_OF_METHOD, "is what the backend says")))
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(two()))), "forward")
    method.set_input(np.arange(4, dtype=np.int32), 0)
    with pytest.raises(Error, match=r"EndOfMethod \(0x03\): instruction 0: is what the backend says"):
        method.execute()


def test_a_backend_without_methods_is_reported(register):
    register("Doubling", Backend())
    with pytest.raises(Error, match=r"NotImplemented \(0x11\): backend: has no init"):
        load_with_exact_memories(Program.load(BufferDataLoader(aligned(two()))), "forward")


def test_the_runtime_lists_backends(register):
    registry = Runtime.get().backend_registry
    assert registry.registered_backend_names == []
    register("Doubling", Given(None))
    assert registry.registered_backend_names == ["Doubling"]
    assert registry.is_available("Doubling") and not registry.is_available("XnnpackBackend")


def test_a_method_frees_its_backend_when_it_is_forgotten(register):
    """No cycle that is invisible to the garbage collector keeps a context alive."""
    register("Doubling", Given(None))
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(two()))), "forward")
    context = weakref.ref(method.library)
    del method
    gc.collect()
    assert context() is None


def test_a_backend_sees_the_memory_itself(register):
    """An unplanned input of a delegate is used in place. A read-only one is rejected."""
    register("Doubling", Given(None))
    values = [tensor([4], dtype=INT), tensor([4], 0, dtype=INT)]
    found = plan(values, [delegate_call(0, 0, 1)], [], [0], [1], [16]) | {"delegates": [delegate()]}
    method = load_with_exact_memories(Program.load(BufferDataLoader(aligned(program(
        found, backend_delegate_data=DATA)))), "forward")
    with pytest.raises(Error, match=r"InvalidArgument \(0x12\): input 0: cannot be written"):
        method.set_input(aligned(16).toreadonly(), 0)
    method.set_input(aligned(16), 0)
    method.execute()


@pytest.mark.parametrize("name", ["delegate_demo", "delegate_inline", "delegate_nested"])
def test_the_heap_of_a_board_stays_locked(name, monkeypatch):
    """A backend that allocates is rejected by name."""
    monkeypatch.setitem(fixture_store.UNLOCKED, name, "")
    job = fixture_jobs.job_of(fixture_store.load(name))
    lines = run_script("backends.py+loaded.py+fixture.py", job, BOARD).lines
    assert lines[0].startswith(
        "load forward DelegateMemoryAllocationFailed (0x31): delegate 0: no memory was left: backend")


# ---- arguments of other kinds, and of dynamic shape


class Noting(Backend):
    """Record the arguments as plain values, and resize the last argument if it is dynamic."""

    def __init__(self):
        self.given = []
        self.sizes = None

    def init(self, context, processed, compile_specs):
        return None

    def execute(self, context, handle, args):
        if self.sizes is not None:
            context.resize_tensor(args[-1], self.sizes)
        self.given = [plain(value) for value in args]


def plain(value):
    if isinstance(value, Tensor):
        return list(value.data)
    return [plain(item) for item in value] if isinstance(value, ValueList) else value


def noting_method(values, arguments, inputs=(0,), **fields):
    """Load a method that passes x (two floats) and `values` to a delegate."""
    made = plan([tensor([2], 0), *values], [delegate_call(0, *arguments)], [], list(inputs), [0], [64])
    found = made | {"delegates": [delegate()]} | fields
    opened = Program.load(BufferDataLoader(aligned(program(found, backend_delegate_data=DATA))))
    method = load_with_exact_memories(opened, "forward")
    method.set_input(np.array([1, 2], np.float32), 0)
    return method


def test_arguments_of_every_kind(register):
    backend = Noting()
    register("Doubling", backend)
    method = noting_method([
        double_value(0.1), string_value("text"), int_value(-(2**40)), int_value(3),
        {"val": ("IntList", {"items": [4, 3]})}, {"val": ("DoubleList", {"items": [0.5, 0.1]})},
        {"val": ("BoolList", {"items": [True, False]})}, {"val": ("TensorList", {"items": [0, 0]})},
        {"val": ("OptionalTensorList", {"items": [0, -1]})}, NULL_VALUE,
    ], range(11))
    method.execute()
    assert backend.given == [[1, 2], 0.1, "text", -(2**40), 3, [3, -(2**40)], [0.5, 0.1], [True, False],
                             [[1, 2], [1, 2]], [[1, 2], None], None]


def test_outputs_of_dynamic_shape(register):
    backend = Noting()
    register("Doubling", backend)
    method = noting_method([tensor([4], 16, shape_dynamism=1)], [0, 1], outputs=[1])
    for sizes in ([3], [0], [4], [1]):
        backend.sizes = array("i", sizes)
        method.execute()
        assert method.get_output(0).sizes() == tuple(sizes)
        assert len(backend.given[-1]) == sizes[0]
    for sizes, reason in (([5], "upper bound"), ([2, 2], "cannot change its rank"),
                          ([-1], "upper bound")):
        backend.sizes = array("i", sizes)
        with pytest.raises(Error, match=rf"NotSupported \(0x10\): argument 1: .*{reason}"):
            method.execute()
        assert method.get_output(0).sizes() == (1,)
    for sizes in ([2], 2, array("i", [1] * 17), array("b", [1] * 4),
                  array("q", [3])):
        backend.sizes = sizes
        with pytest.raises(Error, match=r"InvalidArgument \(0x12\): sizes: are "):
            method.execute()
    backend.sizes = None
    method.execute()


def test_an_argument_that_an_instruction_computes(register):
    """The argument is a variable, the sym_size of a tensor."""
    backend = Noting()
    register("Doubling", backend)
    instructions = [{"instr_args": ("KernelCall", {"op_index": 0, "args": [0, 1, 2]})},
                    delegate_call(0, 2, 0)]
    method = noting_method(
        [int_value(0), int_value(99)], [], chains=[{"instructions": instructions}],
        operators=[{"name": "aten::sym_size", "overload": "int"}])
    method.execute()
    assert backend.given == [2, [1, 2]]


def test_an_argument_that_is_a_list_of_computed_values(register):
    backend = Noting()
    register("Doubling", backend)
    instructions = [{"instr_args": ("KernelCall", {"op_index": 0, "args": [0, 1, 2]})},
                    delegate_call(0, 3, 0)]
    method = noting_method(
        [int_value(0), int_value(99), {"val": ("IntList", {"items": [1, 2, 2]})}], [],
        chains=[{"instructions": instructions}],
        operators=[{"name": "aten::sym_size", "overload": "int"}])
    method.execute()
    assert backend.given == [[0, 2, 2], [1, 2]]


def test_the_profile_has_the_calls_of_delegates(register):
    register("Doubling", Given(None))
    request = Request(two(), "two", [np.arange(4, dtype=np.int32)], "forward")
    found, _ = profiling.profile(request, "host")
    assert [row.call for row in found.instructions] == [
        "delegate Doubling", "aten::relu.out", "delegate Doubling"]


def test_named_data_of_a_data_file_comes_after_that_of_the_program(register):
    """A delegate finds the data by its key."""
    found = {}

    class Finding(Given):
        def init(self, context, processed, compile_specs):
            named = context.get_named_data_map()
            keys = [named.get_key(i) for i in range(named.get_num_keys())]
            found.update({key: bytes(named.get_data(key)) for key in keys})

    register("IntegerBackend", Finding(None))
    external = next(fixture for fixture in fixture_store.load_all() if fixture.data)
    data = FlatTensorDataMap.load(BufferDataLoader(aligned(external.data[0])))
    opened = Program.load(BufferDataLoader(aligned(fixture_store.load("delegate_named_data").pte)))
    load_with_exact_memories(opened, "forward", data_map=data)
    assert sorted(found) == sorted([*opened.get_named_data_map().keys(), *data.keys()])
    assert all(found[key] == bytes(data.get_data(key)) for key in data.keys())
    assert found["scale"] == bytes(opened.get_named_data("scale"))
