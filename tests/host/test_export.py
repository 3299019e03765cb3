"""Test picotorch export of modules, and picotorch.export.export. Tests that need torch are skipped
without it."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import picotorch.export
import pytest
from picotorch import Error, errors
from picotorch.boards import chips
from picotorch.export import modules as modules_module
from picotorch.export import pipeline, report, samples, torch_errors
from picotorch.export.differences import Difference, decibels
from picotorch.export.replan import export_file
from picotorch.measure import timing
from picotorch.measure.advice import Advice
from picotorch.run import emulator
from picotorch.runtime import Runtime
from support import export_report, fixture_store
from support.calling import assert_error, assert_usage

NETWORK = """
import torch
from torch import nn

def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (torch.rand(1, 784),)

def fails():
    raise ValueError("no such weights")

def single():
    return nn.Linear(3, 4)

def wrong():
    return nn.Linear(3, 4), (torch.rand(1, 5),)

def branches():
    class Branches(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x
    return Branches(), torch.rand(4)

class Bessel(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)

def bessel():
    return Bessel(), torch.rand(9)

class Factor(nn.Module):
    def forward(self, x):
        return torch.linalg.ldl_factor(x)[0]

def factor():
    return Factor(), torch.eye(3)

def convolutions():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.Dropout(), nn.Flatten(), nn.Linear(64, 10)), torch.rand(1, 3, 8, 8)
"""


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(NETWORK)
    return path


@pytest.fixture
def images(tmp_path):
    """Write samples for `convolutions`, with labels."""
    random = np.random.default_rng(0)
    path = tmp_path / "images.npz"
    np.savez(path, in0=random.random((20, 3, 8, 8), np.float32), labels=random.integers(0, 10, 20))
    return path


def operators(call, path):
    return [one["name"] for one in
            json.loads(call("inspect", path, "--json")[1])["methods"][0]["operators"]]


# ---- without torch


@pytest.mark.parametrize("text, is_one", {
    "net.py:model": True, "folder/net.py:model": True, "package.net:model": True, "model.pte": False,
    "net.py": False, "net.py:1": False, "net.py:": False}.items())
def test_functions_and_files_are_distinguished(text, is_one):
    assert modules_module.is_function(text) == is_one


def test_samples_lie_behind_one_another():
    example = np.zeros((1, 3, 2), np.float32)
    for array in (np.ones((4, 3, 2)), np.ones((4, 1, 3, 2))):
        found = samples.samples_of({"in0": array}, [example])
        assert [[value.shape for value in sample] for sample in found.inputs] == [[(1, 3, 2)]] * 4
        assert found.inputs[0][0].dtype == np.float32
    found = samples.samples_of({"in0": np.ones((6, 2)), "labels": np.arange(3)},
                               [np.zeros((2, 2), np.float32), 5])
    assert [sample[1] for sample in found.inputs] == [5, 5, 5] and found.labels == [0, 1, 2]


@pytest.mark.parametrize("arrays, words", [
    ({"in0": np.ones((4, 3))}, "in0 has sizes [4, 3], samples of [1, 2] are expected"),
    ({"in0": np.ones((0, 2))}, "no samples given"),
    ({"in0": np.ones((4, 2)), "in1": np.ones((4, 2))}, "2 arrays given, the module takes 1 tensors"),
    ({"in0": np.array([["a", "b"]])}, "in0 is of <U1"),
    ({"in0": np.ones((4, 2)), "labels": np.arange(3)}, "labels has 3 values of int64 for 4 samples"),
    ({"in0": np.ones((4, 2)), "labels": np.ones(4)}, "labels has 4 values of float64 for 4 samples")])
def test_samples_that_do_not_fit(arrays, words):
    with pytest.raises(ValueError) as raised:
        samples.samples_of(arrays, [np.zeros((1, 2), np.float32)])
    assert words in str(raised.value)


_EXAMPLE = np.zeros((1, 2), np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value, words", [(np.nan, "NaN"), (np.inf, "an infinite value"),
                                          (-np.inf, "an infinite value")])
def test_a_sample_that_is_not_finite_is_named(dtype, value, words):
    """Such a sample would make torch.histc fail."""
    array = np.ones((5, 2), dtype)
    array[3, 1] = value
    with pytest.raises(ValueError, match=f"in0 has {words} in sample 3") as raised:
        samples.samples_of({"in0": array}, [_EXAMPLE])
    assert "leave this sample out" in raised.value.remedy


def test_a_mask_of_minus_infinity_is_a_sample():
    mask = np.float32([[[0, -np.inf]], [[0, 0]]])
    assert np.array_equal(samples.samples_of({"in0": mask}, [_EXAMPLE]).inputs, mask[:, None])


@pytest.mark.parametrize("array, dtype, words", [
    (np.full((2, 2), 1e300), np.float32, "in0 has 1e+300 in sample 0, which float32 cannot hold"),
    (np.array([[1, 2], [0.5, 1]]), np.int64, "in0 has 0.5 in sample 1, which int64 cannot hold"),
    (np.array([[1, 300]]), np.uint8, "in0 has 300 in sample 0, which uint8 cannot hold")])
def test_samples_are_not_changed_by_their_conversion(array, dtype, words):
    with pytest.raises(ValueError) as raised:
        samples.samples_of({"in0": array}, [_EXAMPLE.astype(dtype)])
    assert words in str(raised.value)


@pytest.mark.parametrize("label", [-1, 10, 255])
def test_labels_are_classes_of_the_module(label):
    with pytest.raises(ValueError, match=f"labels has {label} for sample 1.*gives 10 classes"):
        samples.samples_of({"in0": np.eye(2), "labels": np.array([9, label])}, [_EXAMPLE], 10)


@pytest.mark.parametrize("array, example, words", [
    (np.zeros((4, 2)), _EXAMPLE, ["one value only, 0.0"]),
    (np.arange(8).reshape(4, 2), _EXAMPLE, []),
    (np.arange(8, dtype=np.uint8).reshape(4, 2), _EXAMPLE, ["integers from 0 to 7", "in0 / 255.0"]),
    (np.arange(250, 256).reshape(3, 2), _EXAMPLE, ["integers from 250 to 255", "in0 / 255.0"]),
    (np.arange(250, 256).reshape(3, 2), _EXAMPLE + 200, []),
    (np.arange(250, 256).reshape(3, 2), _EXAMPLE.astype(np.int64), []),
    (np.eye(2, dtype=np.uint8), _EXAMPLE, [])])
def test_samples_that_are_unlikely_to_be_meant(array, example, words):
    warnings = samples.samples_of({"in0": array}, [example]).warnings
    assert len(warnings) == bool(words) and all(word in warnings[0] for word in words)


def test_example_inputs_that_are_not_finite_are_a_warning():
    assert samples.example_samples([_EXAMPLE, _EXAMPLE - np.inf, 3]).warnings == (
        "example inputs: in1 has an infinite value, so that the comparison with PyTorch means little",)


@pytest.mark.parametrize("name, words", {
    "a.onnx": "ONNX", "a.tflite": "TensorFlow Lite", "a.h5": "HDF5", "a.keras": "Keras",
    "a.safetensors": "load_state_dict", "a.gguf": "GGUF", "A.ONNX": "ONNX"}.items())
def test_files_of_other_frameworks_are_named(call, tmp_path, name, words):
    (tmp_path / name).write_bytes(b"no program at all")
    result = call("export", tmp_path / name, "-o", tmp_path / "o.pte")
    assert_error(result, "InvalidProgram", name, words, "(module, example inputs)")


@pytest.mark.parametrize("start, words", {
    b"\0\0\0\0TFL3": "TensorFlow Lite", b"\x89HDF\r\n\x1a\n": "HDF5", b"GGUF": "GGUF"}.items())
def test_files_of_other_frameworks_are_recognized_by_their_bytes(call, tmp_path, start, words):
    (tmp_path / "a.bin").write_bytes(start + bytes(99))
    result = call("export", tmp_path / "a.bin", "-o", tmp_path / "o.pte")
    assert_error(result, "InvalidProgram", "a.bin", words)


def test_python_code_without_a_function(call, network, tmp_path):
    result = call("export", network, "-o", tmp_path / "o.pte")
    assert_error(result, "InvalidArgument", "no function is named", "name the function:",
                 f"{network}:model or {network}:single", f"{network}:convolutions")
    (tmp_path / "empty.py").write_text("def _own(): return 1\ndef takes(x): return x\nx = 3\n")
    result = call("export", tmp_path / "empty.py", "-o", tmp_path / "o.pte")
    assert_error(result, "InvalidArgument", "add a function that returns (module, example inputs)")


@pytest.mark.parametrize("text, core", {
    "m4": "cortex-m4", "M4": "cortex-m4", "Cortex-M4F": "cortex-m4", "cortex_m7": "cortex-m7",
    "m0+": "cortex-m0plus", "Cortex-M0+": "cortex-m0plus", "m0plus": "cortex-m0plus",
    "M55": "cortex-m55", "arm cortex-m33": "cortex-m33", "cortex-m3": "cortex-m3", "m5": None,
    "m0": None, "m3f": None, "cortex-a5": None, "": None, "m4+": None}.items())
def test_names_of_cores(text, core):
    assert chips.core_of(text) == core


def test_every_core_has_its_usual_names():
    for core in chips.CORES:
        assert chips.core_of(core) == chips.core_of(core.removeprefix("cortex-")) == core


@pytest.mark.parametrize("lines, words, remedy", [
    (["Constraints violated (t)! For more", "  - Not all values of t = L['x'].size()[2] in the "
      "specified range t <= 16 satisfy the generated guard L['x'].size()[2] != 1.", "", "The error"],
     "Not all values of t", "raise min"),
    (["Constraints violated (t)!", "  - Not all values of t satisfy the generated guard t <= 10",
      "Suggested fixes:", "  t = Dim('t', max=10)"], "satisfy the generated guard t <= 10",
     "torch suggests t = Dim('t', max=10)"),
    (["Constraints violated (t)!", "  - You marked t as dynamic but your code specialized it to be a "
      "constant (8). If you're using mark_dynamic", "Suggested fixes:", "  t = 8"],
     "specialized it to be a constant (8)", "no Dim"),
    (["8 not in range [9, 16]"], "8 not in range", "dynamic_shapes"),
    (["Could not guard on data-dependent expression u0"], "data-dependent", "torch.where")])
def test_the_line_with_the_cause_in_an_error_of_torch(lines, words, remedy):
    error = RuntimeError("\n".join(lines))
    assert words in torch_errors.cause(error) and remedy in torch_errors.export_remedy(error)
    assert "torch.where" not in torch_errors.export_remedy(error) or remedy == "torch.where"


def test_sqnr_is_the_ratio_of_the_squares():
    difference = Difference()
    difference.add(np.array([3.0, -4.0]), np.array([3.0, -3.5]))
    difference.add(np.array([0.0]), np.array([0.0]))
    assert difference.sqnr == pytest.approx(20.0)
    assert (difference.largest, difference.magnitude, difference.equal) == (0.5, 4.0, None)
    same = Difference()
    same.add(np.ones(3), np.ones(3))
    assert same.sqnr == 300 and decibels(300) == "same"


@pytest.mark.parametrize("expected, found", [
    ([1, 2], [np.nan, np.inf]), ([1, 2], [1, np.nan]), ([np.inf, 2], [3, 2])])
def test_values_that_are_not_finite_differ_infinitely(expected, found):
    difference = Difference()
    difference.add(np.array(expected, float), np.array(found, float))
    difference.add(np.ones(2), np.ones(2))
    assert difference.sqnr is None and difference.largest == np.inf


def test_infinity_differs_not_from_itself():
    difference = Difference()
    difference.add(np.array([-np.inf, 3.0]), np.array([-np.inf, 2.5]))
    assert difference.largest == 0.5


def test_a_program_that_is_no_smaller_is_not_called_smaller(capsys):
    for before, now, words in ((100, 100, "not smaller"), (100, 101, "not smaller"), (100, 42, "42 %")):
        report.show_text(export_report.report(bytes_before=before, bytes=now))
        line = capsys.readouterr().out.splitlines()[0]
        assert line == f"net: {before} B; o.pte: {now} B, {words}"


@pytest.mark.parametrize("sqnr, is_far, is_rough", [
    (-3.0, True, False), (14.9, True, False), (15.1, False, True), (19.9, False, True),
    (20.1, False, False), (None, True, False)])
def test_an_output_far_from_pytorch_is_a_warning(capsys, sqnr, is_far, is_rough):
    report.show_text(export_report.report(outputs=[export_report.output_difference(sqnr)]))
    text = capsys.readouterr().out
    assert ("WARNING: output 0 is far from PyTorch's, with an SQNR below 15 dB" in text) == is_far
    assert ("WARNING: output 0 has an SQNR below 20 dB" in text) == is_rough
    assert "No difference by layer" in text  # there is none in this report


def test_the_report_names_a_replaced_file_and_advice(capsys):
    advice = [Advice(f"layer {i} is slow", remedy="shrink it") for i in range(3)]
    report.show_text(export_report.report(replaced=True, advice=advice))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "net: 2 B; o.pte: 1 B, 50 % (an older file was replaced)"
    assert lines[-2:] == ["Advice: layer 0 is slow; shrink it", "Advice: layer 1 is slow; shrink it"]


@pytest.mark.parametrize("dtype, words", [
    ("int8", "write the first layer with a low SQNR"),
    ("float32", "is: write the layer that differs with ")])
def test_the_advice_for_an_output_far_from_pytorch(capsys, dtype, words):
    report.show_text(export_report.report(outputs=[export_report.output_difference(None)], dtype=dtype))
    text = capsys.readouterr().out
    assert words in text and ("--quantize" in text) == (dtype == "int8")


@pytest.mark.parametrize("quantize, remedy", [(None, ""), ({}, ", or export it without --quantize")])
def test_an_instruction_that_the_twin_rejects_is_reported_with_its_layer(monkeypatch, quantize, remedy):
    def refuse(program):
        raise errors.fail(errors.NOT_SUPPORTED, "instruction 3: aten::add.out: takes no such sizes")

    monkeypatch.setattr(pipeline, "_memory", refuse)
    parts = {3: SimpleNamespace(module="encoder.norm", value="add")}
    with pytest.raises(Error) as raised:
        pipeline._loaded(b"", SimpleNamespace(parts=parts), pipeline.ExportOptions(quantize))
    assert raised.value.message == (
        "instruction 3: aten::add.out: takes no such sizes, layer encoder.norm; write the layer with "
        f"other operators{remedy}")


@pytest.mark.parametrize("shapes, words", [
    ([(2, 2)], "[1] instead of [2, 2]"), ([(1,), (3,)], "[1] instead of [1], [3]")])
def test_outputs_of_other_sizes_than_pytorchs_are_an_error(shapes, words):
    torch = SimpleNamespace(from_numpy=lambda array: array, nn=SimpleNamespace(Module=dict))
    source = SimpleNamespace(name="net")
    lowered = SimpleNamespace(program=fixture_store.load("add_1").pte, parts={}, reference=None,
                              fake_quantized=None)
    evaluated = pipeline._Evaluated(samples.Samples([[np.ones(1, np.float32)]]),
                                    [[np.zeros(shape) for shape in shapes]], None)
    with pytest.raises(Error, match="NotSupported.*net: the program computes other sizes") as raised:
        pipeline._compared(SimpleNamespace(torch=torch), source, lowered, evaluated, iter)
    assert words in raised.value.message and "with other operators" in raised.value.message


def test_the_source_of_the_module_is_not_written_over(call, network, tmp_path):
    """Other names of the file, files that it imports and weights that it loads are protected, too."""
    before = network.read_bytes()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "weights.pt").touch()
    for output in (network, tmp_path / "link" / "net.py", tmp_path / "weights.pt"):
        assert_usage(call("export", f"{network}:model", "-o", output), "--output", "has to end in .pte")
    assert network.read_bytes() == before


def test_usage(call, network, tmp_path):
    np.savez(tmp_path / "in.npz", in0=np.ones(3))
    pte, data = fixture_store.load("add_1").path, tmp_path / "in.npz"
    function = f"{network}:model"
    assert_usage(call("export", function, "--core", "cortex-m4"), "--core goes with --quantize")
    assert_usage(call("export", function, "--core", "cortex-a5", "--quantize", data), "cortex-m0plus")
    assert_usage(call("export", function, "--shape", "4"), "the function returns its example inputs")
    assert_usage(call("export", function, "--int8-io"), "give --quantize")
    assert_usage(call("export", pte, "--quantize", data, "-o", "o.pte"), "cannot be quantized")
    assert_usage(call("export", pte), "Missing option '-o'")


def test_samples_with_other_names_are_rejected(call, network, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.ones(3))
    result = call("export", f"{network}:model", "--quantize", tmp_path / "in.npz")
    assert_error(result, "InvalidArgument", "in.npz", "has x", "name the arrays in0, in1")


def test_the_function_reports_the_cause():
    with pytest.raises(Error, match="InvalidArgument.*none of cortex-m0plus.*"):
        picotorch.export.export(None, (), core="cortex-m5")


@pytest.mark.parametrize("time, words", [
    ({"message": "no firmware"}, "time on a cortex-m4 is not estimated: no firmware"),
    ({"message": "", "ms": 5.076, "min_ms": 4.7, "max_ms": 5.4, "instructions": 338_369,
      "cycles": 507_600, "counted": True},
     "cortex-m4 at 100 MHz: about 5.08 ms (4.7 to 5.4), estimated from 338,369 instructions, "
     "507,600 cycles")])
def test_time_is_called_an_estimate(capsys, time, words):
    report._show_time(timing.Timing("cortex-m4", 100_000_000, **time))
    assert words in capsys.readouterr().out


def test_time_is_that_of_a_board_with_the_core():
    program = fixture_store.load("int8_ds_cnn").pte
    found = timing.estimated(program, "cortex-m4")
    assert found.message == "" and found.ms == pytest.approx(found.cycles / 1e5, rel=1e-3)
    assert found.min_ms < found.ms < found.max_ms


def test_time_without_a_board_is_by_the_sizes_of_the_tensors(capsys, monkeypatch, tmp_path):
    program = fixture_store.load("int8_ds_cnn").pte
    counted = timing.estimated(program, "cortex-m0plus")
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    found = timing.estimated(program, "cortex-m0plus")
    assert counted.counted and not found.counted and found.message == ""
    assert found.min_ms < counted.ms < found.max_ms
    report._show_time(found)
    assert "estimated from the sizes of the tensors: " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_resnet8", "mlp"])
def test_time_is_with_the_temp_memory_of_the_report(call, name):
    fixture = fixture_store.load(name)
    temp = pipeline._memory(fixture.pte).temp
    found = timing.estimated(fixture.pte, "cortex-m4")
    run = json.loads(call("run", fixture.path, "--board", "mps2-an386", "--temp-size", str(temp),
                          "--json")[1])
    assert found.instructions == pytest.approx(run["instructions"]["execute"], rel=1e-3)
    assert found.cycles == pytest.approx(run["cycles"], rel=1e-3)


# ---- with torch


def test_weights_of_linear_layers_stay_in_flash(call, torch, network, tmp_path):
    """Without care, each run would transpose them into 405 KB of RAM."""
    out = tmp_path / "o.pte"
    status, text, _ = call("export", f"{network}:model", "-o", out, "--json")
    entry = json.loads(text)
    assert status == 0 and entry["planned"] == [3648] and entry["checked"] == "executed"
    assert set(operators(call, out)) == {"aten::linear.out", "aten::relu.out"}
    assert [layer["layer"] for layer in entry["layers"]] == ["0", "1", "2"]
    assert all(layer["sqnr"] > 100 for layer in entry["layers"])


def test_views_of_constants_are_constants(call, torch, tmp_path):
    class Transposed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.rand(16, 64))

        def forward(self, x):
            return torch.mm(x, self.table.t()) + self.table.reshape(4, -1).sum()

    exported = picotorch.export.export(Transposed(), torch.rand(2, 64))
    exported.save(tmp_path / "o.pte")
    assert sorted(operators(call, tmp_path / "o.pte")) == ["aten::add.out", "aten::mm.out"]
    assert exported.report.outputs[0].sqnr > 100


def test_results_that_would_enlarge_the_program_are_computed_at_run_time(torch):
    class Wide(torch.nn.Module):
        def forward(self, x):
            return x + torch.arange(100_000).float().reshape(1000, 100).sum(0)

    assert len(picotorch.export.export(Wide(), torch.rand(100)).buffer) < 10_000


def test_batch_norms_become_part_of_convolutions(call, torch, network, tmp_path):
    out = tmp_path / "o.pte"
    status, text, _ = call("export", f"{network}:convolutions", "-o", out, "--json")
    assert status == 0 and not [name for name in operators(call, out) if "batch_norm" in name]
    assert json.loads(text)["outputs"][0]["sqnr"] > 100


def test_functions_that_raise_an_error_for_a_matrix(torch):
    """ExecuTorch cannot lower these functions. The program raises the error, as PyTorch does."""
    class Equations(torch.nn.Module):
        def forward(self, a, b):
            lu, pivots = torch.linalg.lu_factor(a)
            lower = torch.linalg.cholesky(a), torch.linalg.cholesky(a, upper=True).mT
            inverse = torch.linalg.inv(a), a.inverse()
            x = torch.linalg.solve(a, b), torch.linalg.solve(a, b.mT, left=False).mT
            return *inverse, *x, *lower, lu, pivots

    inputs = 2 * torch.eye(4) + 0.5, torch.rand(4, 2)
    exported = picotorch.export.export(Equations(), inputs)
    assert all(output.sqnr > 100 for output in exported.report.outputs)
    method = Runtime.get().load_program(exported.buffer).load_method("forward")
    with pytest.raises(Error, match="a matrix is singular"):
        method.execute([np.zeros((4, 4), np.float32), inputs[1].numpy()])


def test_such_a_function_in_a_branch(torch):
    class Branches(torch.nn.Module):
        def forward(self, a, b):
            return torch.cond(a.sum() > 0, lambda a, b: torch.linalg.solve(a, b).sum(0),
                              lambda a, b: b.sum(0), (a, b))

    exported = picotorch.export.export(Branches(), (torch.eye(4) + 0.5, torch.rand(4, 4)))
    assert exported.report.outputs[0].sqnr > 100


@pytest.mark.parametrize("core", picotorch.export.CORES)
def test_int8_in_one_command(call, torch, network, images, tmp_path, core):
    out = tmp_path / "o.pte"
    status, text, error = call("export", f"{network}:convolutions", "--quantize", images,
                               "--core", core, "-o", out, "--json")
    entry = json.loads(text)
    assert (status, error) == (0, "") and (entry["dtype"], entry["core"]) == ("int8", core)
    assert all(name.startswith(("cortex_m::", "aten::view_copy", "dim_order_ops::"))
               for name in operators(call, out))
    assert [layer["layer"] for layer in entry["layers"]] == ["0", "3", "4", "7"]
    assert entry["layers"][0]["value"] == "relu"  # the operator that was fused with the convolution
    assert all(layer["dtype"] == "int8" and layer["sqnr"] > 25 for layer in entry["layers"])
    assert set(entry["accuracy"]) == {"pytorch", "program"}


def test_the_difference_is_that_of_a_run(call, torch, network, images, tmp_path):
    """The test measures the difference again, through files."""
    status, text, _ = call("export", f"{network}:convolutions", "--quantize", images, "-o",
                           tmp_path / "o.pte", "--json")
    stated = json.loads(text)["outputs"][0]["largest"]
    space = {}
    exec(NETWORK, space)
    module, _ = space["convolutions"]()
    largest = 0.0
    for image in np.load(images)["in0"]:
        np.savez(tmp_path / "in.npz", in0=image[None])
        assert call("run", tmp_path / "o.pte", "--inputs", tmp_path / "in.npz", "--outputs",
                    tmp_path / "out.npz")[0] == 0
        with torch.no_grad():
            wanted = module.eval()(torch.from_numpy(image[None])).numpy()
        largest = max(largest, np.abs(np.load(tmp_path / "out.npz")["out0"] - wanted).max())
    assert largest == pytest.approx(stated, rel=1e-4)


def test_files_that_are_imported_or_replaced(call, torch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers_of_net.py").write_text("from torch import nn\nlayer = nn.Linear(4, 2)\n")
    (tmp_path / "net.py").write_text(
        "import torch, layers_of_net\n"
        "def model():\n    return layers_of_net.layer, torch.rand(1, 4)\n")
    before = (tmp_path / "layers_of_net.py").read_bytes()
    assert_usage(call("export", "net.py:model", "-o", "layers_of_net.py"), "has to end in .pte")
    assert (tmp_path / "layers_of_net.py").read_bytes() == before
    for replaced in (False, True):
        status, text, _ = call("export", "net.py:model", "--json")
        assert status == 0 and json.loads(text)["replaced"] == replaced


def test_int8_inputs_and_outputs(call, torch, network, images, tmp_path):
    out = tmp_path / "o.pte"
    assert call("export", f"{network}:convolutions", "--quantize", images, "--int8-io",
                "-o", out)[0] == 0
    method = json.loads(call("inspect", out, "--json")[1])["methods"][0]
    assert [value["dtype"] for value in method["inputs"] + method["outputs"]] == ["Char", "Char"]


def test_printed_report(call, torch, network, images, tmp_path):
    status, text, _ = call("export", f"{network}:convolutions", "--quantize", images, "-o",
                           tmp_path / "o.pte")
    assert status == 0
    for words in ("importing torch and executorch ... ",
                  "quantizing by 20 samples, lowering for cortex-m4 ... ",
                  "Difference from PyTorch by layer", "with 20 samples", "accuracy: PyTorch ",
                  "cortex-m4 at 100 MHz"):
        assert words in text


def test_float32_needs_no_tosa_tools(torch, network):
    """An int8 export needs them, and its error names the package."""
    blocked = "import sys; sys.modules['tosa_serializer'] = None; " \
        "from picotorch.cli.main import main; main(sys.argv[1:])"

    def export(*options):
        return subprocess.run([sys.executable, "-c", blocked, "export", "net.py:model", *options],
                              cwd=network.parent, capture_output=True, text=True)

    assert export().returncode == 0
    np.savez(network.parent / "in.npz", in0=np.ones((2, 784), np.float32))
    refused = export("--quantize", "in.npz")
    assert refused.returncode == 1 and refused.stderr.startswith("NotFound (0x20)")
    assert "pip install --no-deps tosa-tools" in refused.stderr


def test_recurrent_cells_and_attention_are_decomposed(torch):
    class Cells(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.attention = torch.nn.GRUCell(8, 16), torch.nn.Linear(16, 48)

        def forward(self, x, h):
            h = self.gru(x, h)
            q, k, v = self.attention(h.reshape(1, 4, 4, 16).mean(1, keepdim=True)).chunk(3, -1)
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    given = [(torch.rand(16, 8), torch.rand(16, 16)) for _ in range(8)]
    exported = picotorch.export.export(Cells(), given[0], quantize=given)
    kinds = {layer.operator for layer in exported.report.layers if layer.layer == "gru"}
    assert "cortex_m::quantized_linear.out" in kinds and "aten::linear.out" not in kinds
    assert exported.report.outputs[0].sqnr > 25


def test_an_exported_program(call, torch, network, tmp_path):
    space = {}
    exec(NETWORK, space)
    module, arguments = space["model"]()
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(module.eval(), arguments), path)
    status, text, error = call("export", path)
    assert (status, error) == (0, "") and "outputs differ from PyTorch's by up to" in text
    assert (tmp_path / "m.pte").read_bytes() == picotorch.export.export(module, arguments).buffer


@pytest.mark.parametrize("function, words", {
    "fails": ["ValueError: no such weights (line 10)"],
    "single": ["does not return (module, example inputs)"],
    "Bessel": ["is a module, not a function", "returns (Bessel(), (example,))"],
    "nn": ["is module, not a function"],
    "wrong": ["forward fails with these inputs"],
    "none": ["has no none", "name one of its functions: model, single"]}.items())
def test_functions_that_are_wrong(call, torch, network, tmp_path, function, words):
    result = call("export", f"{network}:{function}", "-o", tmp_path / "o.pte")
    assert_error(result, "NotFound" if function == "none" else "InvalidArgument", "net.py", *words)
    assert not (tmp_path / "o.pte").exists()


def test_models_that_torch_cannot_export(call, torch, network, tmp_path):
    result = call("export", f"{network}:branches", "-o", tmp_path / "o.pte")
    assert_error(result, "NotSupported", "torch.export cannot export it", "torch.where")


def test_a_program_without_a_kernel_is_written_with_an_error(call, torch, network, tmp_path):
    result = call("export", f"{network}:bessel", "-o", tmp_path / "o.pte")
    assert result[0] == 1 and (tmp_path / "o.pte").exists()
    assert "operators without a kernel: aten::special_bessel_j0.out" in result[1]
    assert "does not run on a board; write the module with other operators" in result[1]


DETECTOR = """
import sys
sys.path.insert(0, {tests!r})
import torch
from models.zoo.models import regions

class Detector(torch.nn.Module):
    def forward(self, boxes, scores):
        kept = torch.ops.torchvision.nms(boxes, scores * 2, 0.5)
        return boxes[kept], scores[kept]

def model():
    regions.define()
    corners = torch.rand(9, 2)
    return Detector(), (torch.cat([corners, corners + 0.3], 1), torch.rand(9))
"""


def test_the_boxes_that_nms_keeps_are_bounded(call, torch, tmp_path):
    """The number of boxes is known only when the program runs, so memory is planned for the maximum."""
    (tmp_path / "detector.py").write_text(DETECTOR.format(tests=str(fixture_store.FOLDER.parent)))
    status, out, _ = call("export", f"{tmp_path / 'detector.py'}:model", "-o", tmp_path / "o.pte")
    assert status == 0 and "output 1 differs from PyTorch's by up to 0, of values" in out
    assert "torchvision::nms.out" in operators(call, tmp_path / "o.pte")


def test_regions_are_of_a_contiguous_image(torch):
    """The kernel accepts only a contiguous image, and the convolution before it returns channels
    last."""
    from models.zoo.models import regions

    regions.define()

    class Regions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Conv2d(3, 8, 3)

        def forward(self, x, boxes):
            return torch.ops.torchvision.roi_align(self.layer(x), boxes, 1.0, 2, 2, 2, True)

    boxes = torch.tensor([[0.0, 1, 1, 5, 5], [0, 0, 2, 3, 5]])
    given = [(torch.rand(1, 3, 8, 8), boxes) for _ in range(4)]
    exported = picotorch.export.export(Regions(), given[0], quantize=given)
    assert exported.report.outputs[0].sqnr > 25


def test_images_channels_last_are_made_contiguous(torch):
    """The program contains a copy if the kernel needs a contiguous image, while PyTorch accepts any."""
    from models.zoo.models import regions

    regions.define()

    class Images(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.group = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.GroupNorm(2, 4)
            self.last, self.linear = torch.nn.LayerNorm([6, 6]), torch.nn.Linear(6, 5)

        def forward(self, x, boxes):
            y = self.layer(x)
            rounded = y.mul(2).round()
            return (torch.ops.torchvision.roi_align(y, boxes, 1.0, 2, 2, 2, True), self.group(y),
                    self.last(y), self.linear(y), torch.cdist(y, y + 1),
                    torch.pixel_shuffle(y, 2), *torch.unique(rounded, return_inverse=True),
                    torch.unique_consecutive(rounded), torch.masked_scatter(y, y > 0, 2 * y))

    boxes = torch.tensor([[0.0, 1, 1, 5, 5], [0, 0, 2, 3, 5]])
    given = torch.rand(1, 3, 6, 6).to(memory_format=torch.channels_last), boxes
    exported = picotorch.export.export(Images().to(memory_format=torch.channels_last), given)
    assert len(exported.report.outputs) == 10
    assert all(output.sqnr > 100 for output in exported.report.outputs)


def test_views_are_not_made_contiguous_twice(torch, call, tmp_path):
    """Outputs of programs are copies already. The results of torch.linalg may be stored by columns."""
    class Views(torch.nn.Module):
        def __init__(self, is_inverted):
            super().__init__()
            self.is_inverted = is_inverted
            self.norm, self.linear = torch.nn.LayerNorm(6), torch.nn.Linear(6, 5)

        def forward(self, x):
            if self.is_inverted:
                return self.linear(torch.linalg.inv(x))
            return self.linear(x[:, :3]), self.norm(torch.relu(x.transpose(1, 2)))

    given = torch.eye(6)[None] + torch.rand(1, 6, 6) / 9
    for is_inverted in (False, True):
        exported = picotorch.export.export(Views(is_inverted), given)
        assert all(output.sqnr > 100 for output in exported.report.outputs)
        (tmp_path / "out.pte").write_bytes(exported.buffer)
        found = operators(call, tmp_path / "out.pte")
        assert any("clone" in name for name in found) == is_inverted


@pytest.mark.parametrize("fuse_rnn", [False, True])
def test_a_layer_copies_its_new_state_to_a_buffer(torch, fuse_rnn):
    """torch.export treats such a buffer as a parameter that is trained."""
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.GRU(4, 8, batch_first=True)
            self.register_buffer("h", torch.zeros(1, 1, 8))

        def forward(self, x):
            y, h = self.layer(x, self.h)
            self.h.copy_(h)
            return y

    exported = picotorch.export.export(Recurrent(), torch.rand(1, 5, 4), fuse_rnn=fuse_rnn)
    assert exported.report.outputs[0].sqnr > 100


@pytest.mark.parametrize("function", ["max", "sort", "topk"])
def test_forward_returns_the_named_results_of_a_function(torch, function):
    class Named(torch.nn.Module):
        def forward(self, x):
            return getattr(torch, function)(x, 1)

    outputs = picotorch.export.export(Named(), torch.rand(3, 4)).report.outputs
    assert [output.largest for output in outputs] == [0, 0]


def test_functions_of_matrices_are_decomposed(torch):
    class Matrices(torch.nn.Module):
        def forward(self, a, b, tall):
            lower, upper = torch.linalg.cholesky(a), torch.linalg.cholesky(a, upper=True)
            return (torch.cholesky_solve(b, lower), torch.cholesky_solve(b, upper, True),
                    torch.cholesky_inverse(lower), torch.linalg.matrix_power(a, -3),
                    torch.linalg.matrix_power(a, 3), torch.linalg.pinv(tall),
                    torch.linalg.pinv(tall @ tall.mT, rtol=1e-3), torch.linalg.pinv(a, hermitian=True),
                    torch.pinverse(tall[0], 0.5))

    torch.manual_seed(0)
    tall = torch.randn(2, 4, 3)
    given = tall @ tall.mT + torch.eye(4), torch.randn(2, 4, 2), tall
    outputs = picotorch.export.export(Matrices(), given).report.outputs
    assert len(outputs) == 9 and all(output.sqnr > 100 for output in outputs)


@pytest.mark.parametrize("options", [{}, {"fuse_rnn": True}])
def test_attention_behind_a_recurrent_layer_is_int8(torch, options):
    """ExecuTorch's passes would treat tanh's results as floats, and softmax's as int8."""
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.GRU(4, 8, batch_first=True)
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            y, _ = self.layer(x)
            return self.attention(y, y, y, need_weights=False)[0].mean(1)

    torch.manual_seed(0)
    given = [(torch.randn(2, 3, 4),) for _ in range(4)]
    exported = picotorch.export.export(Attention(), given[0], quantize=given, **options)
    assert exported.report.outputs[0].sqnr > 25


@pytest.mark.parametrize("is_first", [False, True])
def test_values_that_softmax_uses_are_not_clamped(torch, is_first):
    """The scale of softmax is fixed, for values up to 1. ExecuTorch's quantizer would use it for all
    values that cat joins."""
    class Joint(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x):
            parts = [torch.softmax(self.one(x), -1), 9 * self.other(x)]
            return torch.cat(parts if is_first else parts[::-1], -1)

    torch.manual_seed(0)
    given = [(torch.randn(2, 8),) for _ in range(4)]
    exported = picotorch.export.export(Joint(), given[0], quantize=given)
    assert exported.report.outputs[0].sqnr > 25


def test_a_buffer_of_five_dims_stays_contiguous(torch):
    """The anchors of a detector are such a buffer, while int8 stores images channels last."""
    class Detector(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Conv2d(3, 6, 3)
            self.register_buffer("anchors", torch.rand(1, 2, 1, 1, 3) + 0.5)

        def forward(self, x):
            y = self.layer(x)
            return y.view(1, 2, 3, 4, 4).permute(0, 1, 3, 4, 2) * self.anchors

    x = torch.rand(1, 3, 6, 6)
    exported = picotorch.export.export(Detector(), x, quantize=[(x,)])
    assert exported.report.outputs[0].sqnr > 25


@pytest.mark.parametrize("is_int8", [False, True])
def test_only_quantized_layers_can_be_kept_in_float(call, torch, network, tmp_path, is_int8):
    np.savez(tmp_path / "in.npz", in0=np.eye(3, dtype=np.float32)[None])
    quantize = ["--quantize", tmp_path / "in.npz"] if is_int8 else []
    result = call("export", f"{network}:factor", "-o", tmp_path / "o.pte", *quantize)
    assert_error(result, "NotSupported", "write the module with other operators")
    assert ("--quantize" in result[2]) == is_int8


def test_samples_of_other_sizes_are_rejected(call, torch, network, images):
    result = call("export", f"{network}:model", "--quantize", images)
    assert_error(result, "InvalidArgument", "samples of [1, 784] are expected")


def test_labels_go_with_samples(torch):
    with pytest.raises(Error, match="labels: go with evaluate"):
        picotorch.export.export(torch.nn.Linear(2, 3), torch.rand(1, 2), labels=[1])


def test_function_and_command_write_the_same_program(call, torch, network, images, tmp_path):
    assert call("export", f"{network}:convolutions", "--quantize", images,
                "-o", tmp_path / "o.pte")[0] == 0
    space = {}
    exec(NETWORK, space)
    told = []
    with np.load(images) as arrays:
        given = [torch.from_numpy(image[None]) for image in arrays["in0"]]
    exported = picotorch.export.export(*space["convolutions"](), quantize=given, evaluate=images,
                                       tell=told.append)
    assert exported.buffer == (tmp_path / "o.pte").read_bytes()
    assert exported.report.accuracy is not None and told
    assert repr(exported) == f"<Exported int8, {len(exported.buffer)}B>"


def test_int8_has_fixed_sizes(torch):
    """An int8 program would accept only the sizes of the example inputs, so dynamic sizes are
    rejected."""
    given, sizes = torch.rand(3, 4), {"input": {0: torch.export.Dim("batch", min=1, max=8)}}
    with pytest.raises(Error, match="NotSupported.*fixed sizes.*without dynamic_shapes"):
        picotorch.export.export(torch.nn.Linear(4, 4), given, quantize=[given], dynamic_shapes=sizes)
    assert picotorch.export.export(torch.nn.Linear(4, 4), given, dynamic_shapes=sizes).buffer


def _modules(torch):
    class State(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("h", torch.tensor([[5.0, -1.0, 0.0, 2.0]]))

        def forward(self, x):
            self.h.add_(x)
            return self.h * 2

    conv = torch.nn.Conv2d(1, 2, 3)
    return {"float32": (torch.nn.Sequential(conv, torch.nn.ReLU()), torch.rand(1, 1, 5, 5), {}),
            "state": (State(), torch.rand(1, 4), {}),
            "int8": (torch.nn.Sequential(conv), torch.rand(1, 1, 5, 5), {"quantize": True}),
            "int8 inputs": (torch.nn.Sequential(conv), torch.rand(1, 1, 5, 5),
                            {"quantize": True, "int8_io": True})}


@pytest.mark.parametrize("name", ["float32", "state", "int8", "int8 inputs"])
def test_a_program_is_replanned_as_its_file_would_be(torch, monkeypatch, name):
    """The export does not read what it has just written."""
    found, planned = [], pipeline.replan

    def replan(emitted, data, model, int8_io):
        written = planned(emitted, data, model, int8_io)
        found.append(written[0] == export_file(data, model, int8_io)[0])
        return written

    monkeypatch.setattr(pipeline, "replan", replan)
    module, x, options = _modules(torch)[name]
    if "quantize" in options:
        options = {**options, "quantize": [x, x / 2]}
    picotorch.export.export(module.eval(), x, **options)
    assert found and all(found)
