"""Test that an int8 export leaves layers in float until its outputs are exact enough.

The tests need torch and executorch (make export-check).
"""

import json

import numpy as np
import picotorch.export
import pytest
from picotorch import Error
from picotorch.export import modules
from picotorch.export.progress import Steps
from support.calling import assert_usage

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import lower_int8, mixed  # noqa: E402
from support.torch_net import Net, samples_of  # noqa: E402
from torch import nn  # noqa: E402


def outlier():
    """One unit of layer 2 is far wider than the others, and layer 4 divides it again."""
    torch.manual_seed(0)
    layers = nn.Linear(32, 64), nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 8)
    with torch.no_grad():
        layers[1].weight[5] *= 60
        layers[2].weight[:, 5] /= 60
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2], nn.ReLU(), layers[3])


def cell():
    torch.manual_seed(0)
    return Net(lambda layers, x: layers[1](layers[0](x, torch.full((1, 16), 0.1))),
               nn.GRUCell(8, 16), nn.Linear(16, 4))


def joined():
    torch.manual_seed(0)
    return Net(lambda layers, x: layers[3](torch.cat([layers[1](layers[0](x)), layers[2](x) * 40], 1)
                                           .flatten(1)),
               nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 1), nn.Linear(512, 4))


MODULES = {"outlier": (outlier, (1, 32)), "cell": (cell, (1, 8)), "joined": (joined, (1, 3, 8, 8))}

pytestmark = pytest.mark.usefixtures("no_board")


def exported(name, **options):
    make, sizes = MODULES[name]
    module = make()
    samples = samples_of(module, sizes)
    return picotorch.export.export(module, samples[0], quantize=samples, **options)


def worst(report):
    return min(output.sqnr for output in report.outputs)


def chosen(report):
    return [one.layer for one in report.mixed.layers if one.is_chosen]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("more", [3, 8])
def test_outputs_reach_the_sqnr_with_some_layers_in_float(name, more):
    in_int8 = worst(exported(name).report)
    found = exported(name, mixed=in_int8 + more)
    report, entry = found.report, found.report.mixed
    assert entry.reached and entry.int8 == in_int8
    assert entry.found == worst(report) >= in_int8 + more
    assert 0 < len(chosen(report)) <= len(entry.layers)
    again = exported(name, keep_float=chosen(report))
    assert again.buffer == found.buffer


def test_the_layers_around_an_outlier_are_chosen():
    report = exported("outlier", mixed=worst(exported("outlier").report) + 2).report
    assert "2" in chosen(report) and len(chosen(report)) < 4


def test_no_layer_is_in_float_where_int8_is_enough():
    found = exported("joined", mixed=1)
    assert found.buffer == exported("joined").buffer
    entry = found.report.mixed
    assert entry.reached and not chosen(found.report) and entry.cycles == entry.int8_cycles


def test_less_costs_less():
    in_int8 = worst(exported("outlier").report)
    few, many = (exported("outlier", mixed=in_int8 + more).report.mixed for more in (2, 60))
    assert few.cycles < many.cycles


@pytest.mark.parametrize("name", MODULES)
def test_the_search_predicts_the_rounding_of_the_export(name):
    make, sizes = MODULES[name]
    module = make()
    samples = samples_of(module, sizes)
    source = modules.source_of_module(torch, module, samples[0], name, Steps())
    search = mixed.Search(lower_int8.lower_int8(source.exported, samples, "cortex-m4"), samples,
                          "cortex-m4")
    for count in {1, len(search.layers) // 2, len(search.layers)}:
        layers = frozenset(search.layers[:count])
        again = lower_int8.lower_int8(source.exported, samples, "cortex-m4", keep_float=sorted(layers))
        other = mixed.Search(again, samples, "cortex-m4") if again.fake_quantized.graph.find_nodes(
            op="call_function", target=torch.ops.quantized_decomposed.quantize_per_tensor.default
            ) else None
        assert search.sqnr(layers) == pytest.approx(other.sqnr() if other else 300, abs=1.5), layers


def test_gains_are_of_one_layer_alone():
    entry = exported("outlier", mixed=1).report.mixed
    gains = {one.layer: one.gain for one in entry.layers}
    alone = exported("outlier", keep_float=["2"]).report
    assert entry.int8 + gains["2"] == pytest.approx(worst(alone), abs=0.5)
    assert [one.gain for one in entry.layers] == sorted(gains.values(), reverse=True)


def test_a_goal_out_of_reach_is_reported():
    found = exported("cell", mixed=280)
    entry = found.report.mixed
    assert not entry.reached and len(chosen(found.report)) == len(entry.layers)
    assert entry.found == worst(found.report) > 100


def test_all_layers_in_float_round_nothing():
    """Activations behind them, inputs and outputs rounded."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Hardtanh(),
                           nn.Flatten(), nn.Linear(128, 5), nn.ReLU(), nn.Unflatten(1, (5, 1)))
    samples = samples_of(module, (1, 3, 8, 8))
    report = picotorch.export.export(module, samples[0], quantize=samples,
                                     keep_float=["0", "2", "5"]).report
    assert worst(report) > 100
    assert not [layer for layer in report.layers if layer.dtype == "int8"]


def test_integers_have_no_sqnr():
    module = nn.Sequential(nn.Linear(8, 4))
    net = Net(lambda layers, x: layers[0](x).argmax(-1), module)
    samples = samples_of(net, (1, 8))
    with pytest.raises(Error, match="no output is of floats.*let forward return the scores"):
        picotorch.export.export(net, samples[0], quantize=samples, mixed=20)


def test_mixed_goes_with_quantize():
    with pytest.raises(Error, match="mixed: goes with quantize; give samples to quantize by"):
        picotorch.export.export(nn.Linear(3, 4), (torch.rand(1, 3),), mixed=20)


# ---- the command

NETWORK = """
import torch
from torch import nn

def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.rand(1, 8)
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "net.py").write_text(NETWORK)
    np.savez(tmp_path / "samples.npz", in0=np.random.default_rng(0).random((12, 8), np.float32))
    return f"{tmp_path}/net.py:model", tmp_path / "samples.npz", tmp_path / "model.pte"


def test_the_command_lists_gains_and_the_layers_in_float(call, files):
    model, samples, output = files
    code, text, _ = call("export", model, "--quantize", samples, "--mixed", "60", "-o", output)
    assert code == 0 and "If one layer alone is in float" in text and "SQNR " in text
    kept = next(line for line in text.splitlines() if line.startswith("to repeat it: "))
    program = output.read_bytes()
    assert call("export", model, "--quantize", samples, *kept.split()[3:], "-o", output)[0] == 0
    assert output.read_bytes() == program


def test_the_command_has_a_default(call, files):
    model, samples, output = files
    code, text, _ = call("export", model, "--quantize", samples, "-o", output, "--json", "--mixed")
    assert code == 0 and json.loads(text)["mixed"]["target"] == 25


def test_the_command_ends_with_3_where_the_sqnr_is_missed(call, files):
    model, samples, output = files
    code, text, _ = call("export", model, "--quantize", samples, "-o", output, "--mixed", "250")
    assert code == 3 and "WARNING: SQNR 250 dB is out of reach" in text and output.exists()
    assert call("export", model, "--quantize", samples, "-o", output, "--mixed", "250",
                "--accept-unusable")[0] == 0


def test_a_saved_program_is_mixed_in_the_sandbox(call, files):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    path = files[2].with_suffix(".pt2")
    torch.export.save(torch.export.export(module, (torch.rand(1, 8),)), path)
    code, text, err = call("export", path, "--quantize", files[1], "-o", files[2], "--mixed", "60",
                           "--json", "--unconfined")
    assert code == 0, err
    entry = json.loads(text)["mixed"]
    assert entry["reached"] and {one["is_chosen"] for one in entry["layers"]} <= {True, False}


def test_wrong_options_name_the_right_ones(call, files):
    model, samples, _ = files
    assert_usage(call("export", model, "--mixed", "30"), "--mixed goes with --quantize")
    assert_usage(call("export", "--quantize", samples, "--mixed", model),
                 "is no number: write --mixed=25, or --mixed behind the model")
    assert_usage(call("export", model, "--quantize", samples, "--mixed", "nan"), "no number: write")
