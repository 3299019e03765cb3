"""Test that an export scores outputs by the user's own metric, and reaches a value of it.

The tests of exports need torch and executorch (make export-check).
"""

import json
import zipfile

import numpy as np
import picotorch.export
import pytest
from picotorch import Error
from picotorch.export import metric, samples
from support import fixture_store
from support.calling import assert_error, assert_usage

INPUTS = [[np.float32([[i, 0]])] for i in range(3)]
OUTPUTS = [[np.float32([[i, 1, 2]])] for i in range(3)]


def given(targets=None):
    return samples.Samples(INPUTS, targets=None if targets is None else np.asarray(targets))


def test_a_metric_receives_arrays_of_all_samples():
    def sums(outputs, labels):
        assert outputs.shape == (3, 3) and labels.tolist() == [5, 6, 7]
        return np.float32(outputs.sum())

    assert metric.score(sums, OUTPUTS, given([5, 6, 7])) == 12


def test_without_labels_it_receives_the_samples():
    def sums(outputs, inputs):
        return outputs[:, 0].sum() - inputs[:, 0].sum() + len(inputs)

    assert metric.score(sums, OUTPUTS, given()) == 3


def test_several_outputs_are_a_list_and_outputs_without_a_batch_are_stacked():
    def shapes(outputs, _):
        assert [one.shape for one in outputs] == [(3, 2, 2), (3,)]
        return 1

    assert metric.score(shapes, [[np.zeros((2, 2)), 1.0]] * 3, given()) == 1


def test_outputs_of_unlike_sizes_are_an_array_of_arrays():
    def sizes(outputs, _):
        assert [one.shape for one in outputs] == [(0, 4), (2, 4)]
        return len(outputs)

    assert metric.score(sizes, [[np.zeros((0, 4))], [np.zeros((2, 4))]], given()) == 2


def test_a_metric_cannot_change_the_labels():
    def first(outputs, labels):
        labels[:] = outputs[:] = labels[0] + 1
        return labels[0]

    labelled = given([5, 6, 7])
    assert metric.score(first, OUTPUTS, labelled) == metric.score(first, OUTPUTS, labelled) == 6
    assert OUTPUTS[1][0].tolist() == [[1, 1, 2]]


def raises(outputs, labels):
    return outputs[:, 9]


WRONG = {
    "raises": (raises, r"raises IndexError: .*\(line \d+\)",
               r"it receives outputs, an array of \[3, 3\], and samples"),
    "nothing": (lambda outputs, labels: None, "returns NoneType, not a number", r"return float\(...\)"),
    "an array": (lambda outputs, labels: outputs, "returns ndarray, not a number", ""),
    "an array of one": (lambda outputs, labels: np.ones(1), "returns ndarray, not a number", ""),
    "text": (lambda outputs, labels: "0.5", "returns str, not a number", ""),
    "a complex number": (lambda outputs, labels: 1j, "returns complex, not a number", ""),
    "NaN": (lambda outputs, labels: np.nan, "returns nan", "return a finite number"),
    "arguments": (lambda outputs: 1, "raises TypeError", "it receives outputs"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_metric_that_returns_no_number_is_rejected(name):
    function, words, remedy = WRONG[name]
    with pytest.raises(Error, match=f"(?s){words}.*{remedy}"):
        metric.score(function, OUTPUTS, given())


NETWORK = """
import torch
from torch import nn

def model():
    torch.manual_seed(0)
    layers = nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 1)
    with torch.no_grad():
        layers[1].weight[3] *= 50
        layers[2].weight[:, 3] /= 50
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2]), torch.rand(1, 8)

def exact(outputs, labels):
    return 1 / (1 + float(abs(outputs - labels).max()))

number = 3
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "net.py").write_text(NETWORK)
    np.savez(tmp_path / "samples.npz", in0=np.random.default_rng(0).random((12, 8), np.float32))
    return f"{tmp_path}/net.py", tmp_path / "samples.npz", tmp_path / "model.pte"


def test_wrong_options_of_the_command(call, files, tmp_path):
    net, data, _ = files
    model, exact = f"{net}:model", f"{net}:exact"
    assert_usage(call("export", model, "--evaluate", data, "--evaluate", data),
                 "takes samples once, and a metric once")
    assert_usage(call("export", model, "--evaluate", exact, "--evaluate", exact), "a metric once")
    assert_usage(call("export", model, "--quantize", data, "--evaluate", exact, "--mixed"),
                 "give the value of the metric to reach: --mixed=0.95")
    assert_usage(call("export", model, "--evaluate", exact, "--mixed=0.9"), "goes with --quantize")
    assert_usage(call("export", fixture_store.FOLDER / "add_1" / "model.pte", "-o",
                      tmp_path / "out.pte", "--evaluate", exact), "cannot be quantized")
    with zipfile.ZipFile(tmp_path / "module.pt2", "w") as archive:
        archive.writestr("module/archive_format", "pt2")
    assert_usage(call("export", tmp_path / "module.pt2", "--evaluate", exact),
                 "a metric is for a model file.py:function")


# ---- with torch


@pytest.fixture
def labelled(torch, files):
    """Samples whose labels are the module's own outputs."""
    namespace = {}
    exec(NETWORK, namespace)
    module, _ = namespace["model"]()
    inputs = np.load(files[1])["in0"]
    with torch.no_grad():
        labels = module(torch.from_numpy(inputs)).numpy()
    np.savez(files[1], in0=inputs, labels=labels)
    return files


def test_the_command_reports_a_metric_and_reaches_its_value(call, no_board, labelled):
    net, data, output = labelled
    options = "export", f"{net}:model", "--quantize", data, "--evaluate", data, "--evaluate", (
        f"{net}:exact"), "-o", output, "--json"
    code, text, err = call(*options)
    assert code == 0, err
    in_int8 = json.loads(text)["metric"]
    assert in_int8["pytorch"] > 0.999999 and in_int8["program"] < 0.999
    goal = 1 - (1 - in_int8["program"]) / 4
    code, text, err = call(*options, f"--mixed={goal}")
    assert code == 0, text + err
    entry = json.loads(text)
    assert entry["mixed"]["reached"] and not entry["mixed"]["is_sqnr"]
    assert entry["mixed"]["found"] == entry["metric"]["program"] >= goal
    assert entry["mixed"]["int8"] == in_int8["program"]


def test_names_that_are_no_metrics_are_rejected(torch, call, files):
    net, _, _ = files
    assert_error(call("export", f"{net}:model", "--evaluate", f"{net}:accuracy"), "NotFound",
                 "has no accuracy; name one of its functions: exact")
    assert_error(call("export", f"{net}:model", "--evaluate", f"{net}:number"), "InvalidArgument",
                 "is int, not a function; name a function that returns a number")
    assert_error(call("export", f"{net}:model", "--evaluate", f"{net}/f.py:exact"), "AccessFailed",
                 "f.py: No such file")


def test_the_file_of_module_and_metric_runs_once(torch, call, no_board, files):
    net, _, output = files
    log = output.with_name("log")
    with open(net, "a") as file:
        file.write(f"open({str(log)!r}, 'a').write('x')\n"
                   "def count(outputs, samples):\n    return -len(samples)\n")
    code, text, err = call("export", f"{net}:model", "--evaluate", f"{net}:count", "-o", output)
    assert (code, err) == (0, "") and "metric: PyTorch -1, program -1\n" in text
    assert log.read_text() == "x"


def test_a_value_that_pytorch_misses_is_rejected(call, no_board, labelled):
    net, data, output = labelled
    assert_error(call("export", f"{net}:model", "--quantize", data, "--evaluate", f"{net}:exact", "-o",
                      output, "--mixed", "1.5"), "InvalidArgument",
                 "PyTorch itself has a metric of", "less than 1.5")


def test_targets_of_a_loader_go_to_the_metric(torch, no_board):
    torch.manual_seed(0)
    module = torch.nn.Linear(8, 2)
    data = torch.utils.data.TensorDataset(torch.randn(12, 8), torch.randn(12, 2))

    def error(outputs, targets):
        return -((outputs - targets) ** 2).mean()

    entry = picotorch.export.export(
        module, torch.rand(1, 8), metric=error,
        evaluate=torch.utils.data.DataLoader(data, batch_size=5)).report
    expected = float(-((module(data.tensors[0]) - data.tensors[1]) ** 2).mean())
    assert entry.metric.program == pytest.approx(expected, rel=1e-5)
    assert entry.accuracy is None


def test_states_begin_anew_in_each_comparison(torch, no_board):
    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("state", torch.zeros(1, 4))

        def forward(self, x):
            self.state.copy_(self.state * 0.5 + self.linear(x))
            return self.state * 1.0

    torch.manual_seed(0)
    rows = [(torch.randn(1, 4),) for _ in range(6)]
    report = picotorch.export.export(Sum(), rows[0], quantize=rows, mixed=60).report
    assert report.mixed.reached and report.outputs[0].sqnr >= 60
