"""Test programs with integer inputs and outputs, and smaller programs: how to make and use them."""

import importlib.util
import json
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from picotorch import Error
from picotorch.export import method_editor
from picotorch.host import twin
from picotorch.host.inputs import checked_inputs, dequantize_array, quantize_array
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.run.parity import same_bits
from picotorch.runtime import Runtime
from support import fixture_store, programs
from support.calling import assert_error, assert_usage
from support.flatbuffer_builder import double_value, int_value
from support.targets import HOST, run_script

BOARD = "mps2-an386"
FIXTURES = ("int8_io_ds_cnn", "int8_io_elementwise")
every_fixture = pytest.mark.parametrize("name", FIXTURES)
needs_executorch = pytest.mark.skipif(not importlib.util.find_spec("executorch"),
                                      reason="executorch is not installed (the export extra)")


def path(name):
    return fixture_store.load(name).path


def meta(name):
    return open_program(path(name).read_bytes()).method_meta("forward")


def quantizations(meta):
    return ([meta.input_quantization(i) for i in range(meta.num_inputs())],
            [meta.output_quantization(i) for i in range(meta.num_outputs())])


# ---- reading scale and zero point


@every_fixture
def test_every_end_has_a_scale_and_a_zero_point(name):
    for scale, zero_point in sum(quantizations(meta(name)), []):
        assert 0 < scale < 1 and -128 <= zero_point <= 127


def test_a_program_with_float_ends_has_none():
    assert quantizations(meta("int8_ds_cnn")) == ([None], [None])


def test_an_index_that_there_is_not_is_an_error():
    for ask in (meta("int8_io_ds_cnn").input_quantization, meta("int8_io_ds_cnn").output_quantization):
        with pytest.raises(Error, match="InvalidArgument"):
            ask(1)


@pytest.mark.parametrize("target", [HOST, BOARD])
@every_fixture
def test_the_board_reads_the_same_files_as_the_twin(name, target):
    result = run_script("quantization.py", {"model": path(name).read_bytes()}, target)
    expected = []
    for scale, zero_point in sum(quantizations(meta(name)), []):
        expected.append(f"{int(np.float32(scale).view(np.uint32)):08x} {zero_point}")
    assert result.lines == [*expected, "None"]


def test_inspect_shows_them(call):
    entry = json.loads(call("inspect", path("int8_io_ds_cnn"), "--json")[1])
    (method,) = entry["methods"]
    scale, zero_point = meta("int8_io_ds_cnn").input_quantization(0)
    assert method["inputs"][0]["quantization"] == {"scale": scale, "zero_point": zero_point}
    assert entry["constant_methods"]["input0_scale"] == scale
    assert entry["constant_methods"]["output0_quant_max"] == 127
    text = call("inspect", path("int8_io_ds_cnn"))[1]
    assert f"scale {scale:.9g}, zero point {zero_point}" in text and "output0_dtype" in text
    (method,) = json.loads(call("inspect", path("int8_ds_cnn"), "--json")[1])["methods"]
    assert method["inputs"][0]["quantization"] is None


def test_the_interface_of_executorch_runtime_has_them_too():
    method = Runtime.get().load_program(path("int8_io_ds_cnn")).load_method("forward")
    assert method.metadata.input_quantization(0) == meta("int8_io_ds_cnn").input_quantization(0)
    assert method.metadata.output_quantization(0) == meta("int8_io_ds_cnn").output_quantization(0)


# ---- running


def floats_for(name):
    """Return floats that quantize to the inputs of a fixture."""
    values = fixture_store.load(name).runs[0].inputs
    return {f"in{i}": dequantize_array(value, *meta(name).input_quantization(i))
            for i, value in enumerate(values)}


@every_fixture
def test_floats_are_quantized_on_request(call, tmp_path, name):
    given, written = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, **floats_for(name))
    assert_error(call("run", path(name), "--inputs", given), "InvalidArgument",
                 "dtype int8 expected, float32 given", "scale", "--quantize")
    assert call("run", path(name), "--inputs", given, "--quantize", "--outputs", written)[0] == 0
    with np.load(written) as outputs:
        for i, expected in enumerate(fixture_store.load(name).runs[0].expected):
            assert expected.dtype == np.int8
            np.testing.assert_array_equal(outputs[f"out{i}"], expected)


def test_quantize_leaves_integers_and_other_programs_alone(call):
    for name in ("int8_io_ds_cnn", "ds_cnn"):
        inputs = path(name).parent / "inputs.npz"
        assert call("run", path(name), "--inputs", inputs, "--quantize")[0] == 0


def quantized_plan():
    """Return out = relu(x), with 4 values of int8."""
    return programs.relu_plan() | {"values": [programs.tensor([4], 0, dtype=1),
                                              programs.tensor([4], 16, dtype=1)]}


def named_number(name, value):
    """Return a method that returns a number."""
    return programs.plan([value], [], [], [], [0], [0]) | {"name": name}


@pytest.mark.parametrize(("scale", "message"), [
    (0.0, "scale 0.0"), (-1.0, "scale -1.0"), (1e-60, "scale 1e-60"),
    (float("inf"), "scale inf"), (float("nan"), "scale nan")])
def test_a_scale_that_quantizes_nothing_is_an_error(scale, message):
    model = programs.program(quantized_plan(), named_number("input0_scale", double_value(scale)),
                             named_number("input0_zp", int_value(3)))
    method = open_program(model).method_meta("forward")
    with pytest.raises(Error, match="InvalidProgram .*quantized values cannot have " + message):
        checked_inputs(method, [np.zeros(4, np.float32)], True)
    assert checked_inputs(method, [np.zeros(4, np.int8)], True)[0].dtype == np.int8


def test_quantize_leaves_a_float_input_alone_that_has_a_scale():
    model = programs.program(programs.relu_plan(), named_number("input0_scale", double_value(0.5)),
                             named_number("input0_zp", int_value(3)))
    given = [np.ones(4, np.float32)]
    assert checked_inputs(open_program(model).method_meta("forward"), given, True)[0] is given[0]


def test_quantize_needs_inputs(call):
    assert_usage(call("run", path("int8_io_ds_cnn"), "--quantize"), "--inputs")


def test_parity_with_a_board(call, tmp_path):
    np.savez(tmp_path / "in.npz", **floats_for("int8_io_ds_cnn"))
    for more in ([], ["--inputs", tmp_path / "in.npz", "--quantize"]):
        out = call("parity", path("int8_io_ds_cnn"), "--board", BOARD, "--json", *more)[1]
        assert json.loads(out)["agree"]


def test_quantization_rounds_to_even_and_saturates():
    values = np.array([0.5, 1.5, 2.5, -0.5, 1e9, -1e9, np.nan, np.inf, -np.inf], "float32")
    quantized = quantize_array(values, 1.0, 1, np.dtype("int8"))
    assert quantized.tolist() == [1, 3, 3, 1, 127, -128, 0, 127, -128]
    every = np.arange(-128, 128).astype("int8")
    for scale, zero_point in ((0.0078, 3), (1.7, -128), (3e-5, 127)):
        floats = dequantize_array(every, scale, zero_point)
        assert floats.dtype == np.float32
        np.testing.assert_array_equal(
            quantize_array(floats, scale, zero_point, np.dtype("int8")), every)


# ---- export


def test_export_without_executorch_has_a_remedy(call, tmp_path, monkeypatch):
    imported = [name for name in sys.modules if name.startswith("executorch.")]
    for name in ["executorch", *imported]:
        monkeypatch.setitem(sys.modules, name, None)
    assert_error(call("export", path("int8_ds_cnn"), "--int8-io", "-o", tmp_path / "out.pte"),
                 "NotFound", "executorch", "picotorch[export]")
    assert not (tmp_path / "out.pte").exists()


def test_export_needs_a_file_to_write(call):
    assert_usage(call("export", path("int8_ds_cnn"), "--int8-io"), "-o")


@needs_executorch
@pytest.mark.parametrize("name", [
    "int8_ds_cnn", "int8_resnet8", "int8_convolutions", "int8_transposed_convolution", "int8_attention",
    "int8_activations", "int8_elementwise", "int8_linear_kernel_sum", "int8_pad",
    "quantize_per_tensor"])
def test_exported_programs_keep_their_outputs(call, tmp_path, name):
    written = tmp_path / "out.pte"
    status, out, _ = call("export", path(name), "--int8-io", "-o", written, "--json")
    entry = json.loads(out)
    (method,) = entry["methods"]
    assert status == 0 and method["checked"] == "same outputs"
    assert sum(method["planned"]) <= sum(method["planned_before"])
    assert call("parity", written)[0] == 0
    text = call("export", path(name), "--int8-io", "-o", written)[1]
    assert "output" in text and "planned buffer 0" in text and "same outputs" in text


@needs_executorch
@pytest.mark.parametrize("name", [
    "ds_cnn", "int8_resnet8", "int8_io_ds_cnn", "attention", "view_copies", "two_methods", "counter",
    "counter_initialized", "mutated_input", "unplanned_io", "constant_output", "same_output_twice",
    "inline_constants", "scalar_inputs", "empty_tensors"])
def test_a_smaller_program_keeps_its_outputs(call, tmp_path, name):
    written, fixture = tmp_path / "out.pte", fixture_store.load(name)
    status, out, _ = call("export", path(name), "-o", written, "--json")
    entry = json.loads(out)
    assert status == 0 and [method["method"] for method in entry["methods"]] == list(fixture.methods)
    for method in entry["methods"]:
        assert method["planned"] == method["min_planned"] and method["quantized"] == []
        assert sum(method["planned"]) <= sum(method["planned_before"])
    for run in fixture.runs[:1]:
        results = [twin.run(Request(data, name, run.inputs, run.method))
                   for data in (fixture.pte, written.read_bytes())]
        assert results[0].code == results[1].code == 0
        assert len(results[1].pool) <= len(results[0].pool)
        for one, other in zip(results[0].outputs, results[1].outputs, strict=True):
            assert same_bits(one, other)


@needs_executorch
def test_a_program_without_quantized_ends_is_rejected(call, tmp_path):
    for name in ("ds_cnn", "int8_io_ds_cnn"):
        assert_error(call("export", path(name), "--int8-io", "-o", tmp_path / "out.pte"),
                     "InvalidArgument", "quantize operator")
    assert_error(call("export", path("control_flow"), "--int8-io", "-o", tmp_path / "out.pte"),
                 "NotSupported", "control flow")
    (tmp_path / "text.pte").write_text("no program")
    assert_error(call("export", tmp_path / "text.pte", "--int8-io", "-o", tmp_path / "out.pte"),
                 "InvalidProgram")


# ---- editing a plan; the classes are named as those of executorch.exir.schema


@dataclass
class Tensor:
    scalar_type: int
    sizes: list
    allocation_info: Any = None
    data_buffer_idx: int = 0
    extra_tensor_info: Any = None


@dataclass
class Allocation:
    memory_offset_low: int
    memory_id: int = 1
    memory_offset_high: int = 0

    @property
    def memory_offset(self):
        return self.memory_offset_low


@dataclass
class Number:
    value: Any


@dataclass
class IntList:
    items: list


@dataclass
class KernelCall:
    op_index: int
    args: list


@dataclass
class DelegateCall:
    args: list


@dataclass
class JumpFalseCall:
    cond_value_index: int


@dataclass
class Holder:
    """A stand-in for an EValue, Instruction, Chain, Operator or Program."""

    val: Any = None
    instr_args: Any = None
    instructions: list = field(default_factory=list)
    name: str = ""
    overload: str = ""
    execution_plan: list = field(default_factory=list)
    constant_buffer: list = field(default_factory=list)


@dataclass
class Plan:
    values: list
    inputs: list
    outputs: list
    calls: list
    operators: list
    name: str = "forward"
    non_const_buffer_sizes: list = field(default_factory=lambda: [0, 4096])

    def __post_init__(self):
        self.values = [Holder(val=value) for value in self.values]
        self.chains = [Holder(instructions=[Holder(instr_args=call) for call in self.calls])]
        self.operators = [Holder(name=name.partition(".")[0], overload="out")
                          for name in self.operators]


FLOAT, CHAR = 6, 1
QUANTIZE = "cortex_m::quantize_per_tensor.out"
DEQUANTIZE = "cortex_m::dequantize_per_tensor.out"
PARAMETERS = [Number(value) for value in (0.5, 3, -128, 127, 1)]


def tensor(scalar_type, place, size=64):
    return Tensor(scalar_type, [size], Allocation(place))


def small_plan(**changes):
    """Return the plan float 0 -> quantize -> char 1 -> relu -> char 2 -> dequantize -> float 3; 9 is
    unused."""
    values = [tensor(FLOAT, 0), tensor(CHAR, 256), tensor(CHAR, 320), tensor(FLOAT, 512), *PARAMETERS,
              Tensor(FLOAT, [9], None, 2)]
    calls = [KernelCall(0, [0, 4, 5, 6, 7, 8, 1, 1]), KernelCall(1, [1, 2, 2]),
             KernelCall(2, [2, 4, 5, 6, 7, 8, 3, 3])]
    given = {"values": values, "inputs": [0], "outputs": [3], "calls": calls,
             "operators": [QUANTIZE, "aten::relu.out", DEQUANTIZE], **changes}
    return Plan(**given)


def edit(*plans, quantized_ends=True):
    made = []
    program = Holder(execution_plan=list(plans), constant_buffer=["", "one", "two", "three"])
    entries = method_editor.rewrite(program, lambda *given: made.append(given) or given, quantized_ends)
    return program, entries, dict(made)


def test_the_ends_are_removed_and_the_other_values_renumbered():
    plan = small_plan()
    program, (entry,), made = edit(plan)
    assert [one.instr_args.args for chain in plan.chains for one in chain.instructions] == [[0, 1, 1]]
    assert (plan.inputs, plan.outputs, len(plan.values)) == ([0], [1], 2)
    assert [operator.name for operator in plan.operators] == ["aten::relu"]
    assert (entry.planned_before, entry.planned) == ([4096], [128])
    assert plan.non_const_buffer_sizes == [0, 128]
    assert made == {f"{end}0_{key}": value for end in ("input", "output") for key, value in zip(
        ("scale", "zp", "quant_min", "quant_max", "dtype"), (0.5, 3, -128, 127, 1), strict=True)}
    assert program.constant_buffer == [""]


def test_without_taking_off_the_ends_the_signature_stays():
    plan = small_plan()
    program, (entry,), made = edit(plan, quantized_ends=False)
    assert (plan.inputs, plan.outputs, len(plan.values)) == ([0], [3], 9) and made == {}
    assert len(plan.chains[0].instructions) == 3 and entry.quantized == []
    assert entry.planned == entry.min_planned == [320]


def test_methods_of_other_names_put_them_before():
    made = edit(small_plan(), small_plan(name="decode"))[2]
    assert {"input0_scale", "decode_input0_scale", "decode_output0_zp"} <= set(made)


def test_an_input_with_another_use_stays_float():
    values = [tensor(FLOAT, 0), tensor(CHAR, 256), tensor(CHAR, 320), tensor(FLOAT, 512), *PARAMETERS,
              tensor(FLOAT, 1024)]
    calls = [KernelCall(0, [0, 4, 5, 6, 7, 8, 1, 1]), KernelCall(1, [1, 2, 2]),
             KernelCall(1, [0, 9, 9]), KernelCall(2, [2, 4, 5, 6, 7, 8, 3, 3])]
    plan = small_plan(values=values, calls=calls, outputs=[3, 9])
    assert edit(plan)[1][0].quantized == ["output 0"]
    assert len(plan.chains[0].instructions) == 3


@pytest.mark.parametrize("call, error", [
    (JumpFalseCall(0), "NotSupported .*control flow"), (DelegateCall([]), "NotSupported .*delegates")])
def test_an_unsupported_use_of_the_ends_is_rejected(call, error):
    with pytest.raises(Error, match=error):
        edit(small_plan(calls=[call]))


def test_an_unknown_operator_is_rejected():
    with pytest.raises(Error, match="OperatorMissing .*aten::nix.out"):
        edit(small_plan(operators=[QUANTIZE, "aten::nix.out", DEQUANTIZE]))


def test_a_program_without_ends_is_an_error():
    with pytest.raises(Error, match="InvalidArgument"):
        edit(small_plan(calls=[KernelCall(1, [0, 3, 3])]))


def test_items_of_lists_are_numbered_anew():
    values = [tensor(FLOAT, 0), tensor(CHAR, 256), tensor(CHAR, 320), tensor(FLOAT, 512), *PARAMETERS,
              Number("unused"), Number(7), IntList([10, 10])]
    calls = [KernelCall(0, [0, 4, 5, 6, 7, 8, 1, 1]), KernelCall(1, [1, 11, 2, 2]),
             KernelCall(2, [2, 4, 5, 6, 7, 8, 3, 3])]
    plan = small_plan(values=values, calls=calls,
                      operators=[QUANTIZE, "aten::permute_copy.out", DEQUANTIZE])
    edit(plan)
    assert [value.val.value for value in plan.values if isinstance(value.val, Number)] == [7]
    assert plan.values[3].val.items == [2, 2]
    assert plan.chains[0].instructions[0].instr_args.args == [0, 3, 1, 1]
