"""Test Module and Tensor: outputs that stay unchanged, arrays of numpy and torch as inputs, indexes,
lists, copies. The tests run on the twin, and on the boards for the features that both have."""

import importlib.metadata
import os
import pickle

import numpy as np
import picotorch
import picotorch.runtime
import pytest
from picotorch import Error, Module, from_blob
from support import benchmark_store, fixture_store
from support.flatbuffer_builder import int_value
from support.programs import call, plan, program, tensor
from support.targets import HOST, SCRIPT_BOARDS, SCRIPTS, aligned, run_script


def relu():
    return program(plan([tensor([4], 0), tensor([4], 16)], [call(0, 0, 1, 1)], ["aten::relu.out"], [0],
                        [1], [32]))


def lists():
    """Return a program with two outputs: a list of the ints 3 and 4, and a list with one constant
    tensor twice."""
    constant = tensor([2], data_buffer_idx=1)
    values = [constant, int_value(3), int_value(4), {"val": ("IntList", {"items": [1, 2]})},
              {"val": ("TensorList", {"items": [0, 0]})}]
    return program(plan(values, [], [], [], [3, 4], []),
                   constant_buffer=[{"storage": b""}, {"storage": np.float32([1, 2]).tobytes()}])


@pytest.mark.parametrize("target", (HOST, *SCRIPT_BOARDS))
def test_tensors_are_read_as_people_expect(target):
    lines = run_script("tensors.py", {"relu": relu(), "lists": lists()}, target).lines
    assert lines == (SCRIPTS / "tensors.exp").read_text().splitlines()


# ---- a Module


def module(name):
    return Module(aligned(fixture_store.load(name).pte))


def test_outputs_are_the_callers():
    made = module("add_1")
    first = made(np.ones(1, np.float32))
    second = made(np.full(1, 5, np.float32))
    assert (first.tolist(), second.tolist()) == ([2.0], [10.0])


@pytest.mark.parametrize("name", [
    "constant_output", "same_output_twice", "unplanned_io", "mutated_inputs", "kv_cache",
    "number_outputs", "channels_last_network", "bfloat16_mlp", "half_mlp", "dynamic_two_dims",
    "zero_dim", "scalar_inputs"])
def test_it_accepts_and_returns_arrays_as_the_runtime(name):
    """The test first executes all runs of a fixture, then compares all outputs."""
    fixture, made = fixture_store.load(name), module(name)
    found = [made.execute(run.method, run.inputs) for run in fixture.runs]
    for run, outputs in zip(fixture.runs, found, strict=True):
        signatures = fixture.methods[run.method]["outputs"]
        for output, wanted, signature in zip(outputs, run.expected, signatures, strict=True):
            fixture_store.assert_close(run.sampled(np.asarray(output)), wanted, signature.get("dtype"))


@pytest.mark.parametrize("inputs, name, words", [
    ([], "InvalidArgument",
     "inputs: 2 expected, 0 given; the method takes in0: Float [5], in1: Float [5]"),
    ([np.zeros(5), np.zeros(5)], "InvalidArgument", "input 0: dtype float32 expected, float64 given"),
    ([np.zeros((1, 5), np.float32)] * 2, "NotSupported", "input 0: sizes [5] expected, [1, 5] given"),
    ([np.zeros(5, np.float32), b"text"], "InvalidArgument", "input 1: "),
    ([np.zeros(5, np.float32), "text"], "InvalidArgument", "input 1: is a tensor; give"),
])
def test_arrays_that_do_not_fit(inputs, name, words):
    made = module("add2_5")
    with pytest.raises(Error) as caught:
        made(*inputs)
    assert caught.value.name == name and words in str(caught.value)
    ones = np.ones(5, np.float32)
    assert made(ones, ones).tolist() == [2.0] * 5


def test_a_dynamic_input_has_the_sizes_of_the_array():
    fixture, made = fixture_store.load("dynamic_batch"), module("dynamic_batch")
    (maximum,) = fixture.runs[0].inputs
    for rows in (1, 2):
        assert made(np.ones((rows, *maximum.shape[1:]), np.float32)).sizes()[0] == rows
    with pytest.raises(Error, match="NotSupported .*: input 0: sizes "):
        made(np.ones((1000, *maximum.shape[1:]), np.float32))


def test_strided_arrays_are_accepted():
    """A transposed view has the sizes of the view, not of its memory."""
    made = module("relu")
    (given,) = fixture_store.load("relu").runs[0].inputs
    strided = np.repeat(given, 2, axis=-1)[..., ::2]
    assert not strided.flags.c_contiguous
    assert made(strided).tolist() == made(given).tolist()


def test_buffers_are_inputs_too():
    made = module("add_1")
    number = np.full(1, 3, np.float32)
    for value in (number.tobytes(), bytearray(number), memoryview(number), from_blob(number, [1])):
        assert made(value).tolist() == [6.0]


TEMP_SCRIPT = """
import gc
from picotorch import Module

def temp():
    return Module("model.pte").load_method().memory_report()["temp"]

found = temp()
print(found["used"], found["preferred"], found["size"])
found = None
gc.collect()
blocks = []
while gc.mem_free() > 110000:
    blocks.append(bytearray(1000))
found = temp()
print(found["used"], found["preferred"], found["size"])
"""


@pytest.mark.thorough
def test_it_allocates_the_preferred_temp_memory(call, tmp_path):
    """The module does so if the heap has twice as much, else it allocates the minimum. On the twin a
    larger temp memory gains nothing."""
    script, model = tmp_path / "script.py", tmp_path / "model.pte"
    script.write_text(TEMP_SCRIPT)
    model.write_bytes(benchmark_store.load("int8_resnet8").pte("mps2-an386"))
    status, out, _ = call("run", script, "--board", "mps2-an386", "--model", model)
    first, second = [[int(word) for word in line.split()] for line in out.splitlines()[:2]]
    assert status == 0 and first[0] < first[1] == first[2]
    assert second == [*first[:2], first[0]]
    temp = Module(aligned(model.read_bytes())).load_method().memory_report()["temp"]
    assert temp["used"] == temp["preferred"] == temp["size"] == first[0]


def test_method_names():
    made = module("two_methods")
    assert made.method_names() == ["decode", "encode"]


# ---- tensors of torch, which need not be installed


class TorchTensor:
    """Stand in for the part of a torch tensor that picotorch uses, on another device and as part of a
    graph."""

    def __init__(self, array, name=None, steps=("detach", "cpu")):
        self._array, self._steps = array, steps
        self.dtype = f"torch.{name or array.dtype}"
        self.shape = array.shape
        self.data = self

    def _without(self, step):
        return TorchTensor(self._array, self.dtype.removeprefix("torch."),
                           tuple(one for one in self._steps if one != step))

    def detach(self):
        return self._without("detach")

    def cpu(self):
        return self._without("cpu")

    def __array__(self, dtype=None, copy=None):
        if "detach" in self._steps:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if "cpu" in self._steps:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        return self._array


def torch_calls(method, values):
    method.set_inputs(values)
    method.execute()
    return method.get_output(0).tolist()


@pytest.mark.parametrize("run", [
    lambda values: module("add2_5")(*values).tolist(),
    lambda values: torch_calls(module("add2_5").load_method(), values),
    lambda values: picotorch.runtime.Runtime.get().load_program(fixture_store.load("add2_5").path)
    .load_method("forward").execute(values)[0].tolist(),
], ids=["Module", "Method", "runtime"])
def test_tensors_of_torch_are_inputs(run):
    x = np.arange(5, dtype=np.float32)
    assert run([TorchTensor(x), TorchTensor(x)]) == [0.0, 2.0, 4.0, 6.0, 8.0]
    for wrong, message in ((x.astype(np.int64), "dtype float32 expected, int64 given"),
                           (x.reshape(1, 5), "sizes \\[5\\] expected, \\[1, 5\\] given")):
        with pytest.raises(Error, match="input 1: " + message):
            run([TorchTensor(x), TorchTensor(wrong)])


def test_tensors_of_the_torch_that_is_installed():
    torch = pytest.importorskip("torch")
    x = torch.arange(5, dtype=torch.float32, requires_grad=True)
    made = module("add2_5")
    assert made(x, torch.ones(5)).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    method = made.load_method()
    method.set_input(x, 0)


# ---- numpy


def test_an_array_shows_the_memory_of_its_tensor():
    memory = np.arange(6, dtype=np.float32)
    one = from_blob(memory, [2, 3], "Float", [1, 0])
    array = one.numpy()
    assert array.shape == (2, 3) and array.tolist() == one.tolist() == [[0, 2, 4], [1, 3, 5]]
    array[1, 2] = 50
    assert one[1, 2] == 50 and memory[5] == 50
    copy = one.copy().numpy()
    memory[:] = 0
    assert copy[1, 2] == 50


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "float32",
                                   "float64", "bool", "uint16", "uint32", "uint64"])
def test_dtypes_of_arrays(dtype):
    numbers = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    kind = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
            "int64": "Long", "float16": "Half", "float32": "Float", "float64": "Double"}
    one = from_blob(numbers.view("uint16") if dtype == "float16" else numbers, [2, 3],
                    kind.get(dtype, dtype.replace("uint", "UInt")))
    assert one.numpy().dtype == dtype and (one.numpy() == numbers).all()
    assert (np.asarray(one) == numbers).all() and one.tolist() == numbers.tolist()


def test_arrays_without_elements_or_dims():
    assert from_blob(b"", [2, 0, 3], "Float").numpy().shape == (2, 0, 3)
    assert from_blob(np.float32(2.5), [], "Float").numpy().shape == ()


def test_outputs_of_constants_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        picotorch.Module(lists()).load_method().get_output(1)[0].numpy()[0] = 1


# ---- the package


def test_the_version_is_that_of_the_package():
    assert picotorch.__version__ == importlib.metadata.version("picotorch")


def test_the_names_of_the_package():
    """The names include names that are imported at their first use."""
    names = {}
    exec("from picotorch import *", names)
    assert {"Module", "Error", "FileDataLoader", "EventTracer", "STRICT"} <= names.keys()
    assert sorted(names.keys() - {"__builtins__"}) == picotorch.__all__
    assert not {"PARTS", "part", "tensor"} & names.keys()
    assert {"Module", "runtime", "__version__"} <= set(dir(picotorch))
    assert all(hasattr(picotorch, name) for name in picotorch.__all__)


@pytest.mark.parametrize("call", [picotorch.Module, picotorch.FileDataLoader])
def test_a_fifo_is_rejected(call, tmp_path):
    """Opening a FIFO would wait for a writer."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(picotorch.Error, match="NotSupported .*fifo: is a FIFO, not a file; "):
        call(tmp_path / "fifo")


@pytest.mark.parametrize("buffers", [[5], [None], [bytearray(8), "text"]])
def test_planned_buffers_are_buffers(buffers):
    with pytest.raises(picotorch.Error, match=f"InvalidType .* planned buffer {len(buffers) - 1}: "):
        picotorch.HierarchicalAllocator(buffers)


def test_names_that_there_are_not():
    for name in ("nix", "picotorch", "__wrapped__"):
        with pytest.raises(AttributeError, match=name):
            getattr(picotorch, name)
    assert pickle.loads(pickle.dumps(picotorch.BufferDataLoader)) is picotorch.BufferDataLoader
