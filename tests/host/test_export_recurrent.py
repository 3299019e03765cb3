"""Test picotorch export --fuse-rnn: GRU and LSTM become one instruction for each layer and direction.
The outputs have the bytes of the program with an instruction for each operation of each step.

The tests need torch and executorch (make export-check).
"""

import numpy as np
import picotorch.export
import pytest
from picotorch.host.instructions import read_instructions
from picotorch.host.twin import open_program
from picotorch.host.values import Values
from picotorch.runtime import Runtime
from support.calling import assert_usage

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from torch import nn  # noqa: E402


class Net(nn.Module):
    """A module with forward(layer, *inputs)."""

    def __init__(self, forward, layer):
        super().__init__()
        self.layer, self.compute = layer, forward

    def forward(self, *inputs):
        return self.compute(self.layer, *inputs)


def all_outputs(layer, x, *states):
    given = () if not states else (states if len(states) == 1 else (states,))
    output, last = layer(x, *given)
    return output, *(last if isinstance(last, tuple) else (last,))


def last_output(layer, x):
    return layer(x)[0][:, -1]


def last_state(layer, x):
    last = layer(x)[1]
    return last[0] if isinstance(last, tuple) else last


def both_cells(layer, x, h):
    return layer(x[:, 1], layer(x[:, 0], h))


X, STATE = (1, 5, 8), (1, 1, 16)
# {name: (forward, layer, sizes of the inputs, instructions of picotorch)}
NETWORKS = {
    "gru": (all_outputs, lambda: nn.GRU(8, 16, batch_first=True), [X], 1),
    "gru_last_output": (last_output, lambda: nn.GRU(8, 16, batch_first=True), [X], 1),
    "gru_last_state": (last_state, lambda: nn.GRU(8, 16), [(5, 1, 8)], 1),
    "gru_state_given": (all_outputs, lambda: nn.GRU(8, 16, batch_first=True), [X, STATE], 1),
    "gru_no_bias": (all_outputs, lambda: nn.GRU(8, 16, bias=False), [(5, 3, 8)], 1),
    "gru_one_step": (all_outputs, lambda: nn.GRU(8, 16, batch_first=True), [(3, 1, 8)], 1),
    "gru_no_batch": (all_outputs, lambda: nn.GRU(8, 16), [(5, 8)], 1),
    "gru_both_directions": (
        all_outputs, lambda: nn.GRU(8, 16, 2, bidirectional=True, batch_first=True, dropout=0.5),
        [(2, 5, 8), (4, 2, 16)], 4),
    "gru_cell": (lambda m, x, h: m(x, h), lambda: nn.GRUCell(8, 16), [(2, 8), (2, 16)], 1),
    "gru_cell_twice": (both_cells, lambda: nn.GRUCell(8, 16), [(2, 2, 8), (2, 16)], 2),
    "lstm": (all_outputs, lambda: nn.LSTM(8, 16, batch_first=True), [X], 1),
    "lstm_last_output": (last_output, lambda: nn.LSTM(8, 16, batch_first=True), [X], 1),
    "lstm_last_state": (last_state, lambda: nn.LSTM(8, 16), [(5, 1, 8)], 1),
    "lstm_state_given": (all_outputs, lambda: nn.LSTM(8, 16, bias=False, batch_first=True),
                         [X, STATE, STATE], 1),
    "lstm_both_directions": (all_outputs, lambda: nn.LSTM(8, 16, 2, bidirectional=True),
                             [(5, 2, 8), (4, 2, 16), (4, 2, 16)], 4),
    "lstm_cell": (lambda m, x: m(x), lambda: nn.LSTMCell(8, 16), [(2, 8)], 1),
    "lstm_projected": (all_outputs, lambda: nn.LSTM(8, 16, proj_size=4, batch_first=True), [X], 0),
}


def made(name):
    torch.manual_seed(0)
    forward, layer, sizes, _ = NETWORKS[name]
    return Net(forward, layer()).eval(), tuple(torch.randn(size) for size in sizes)


def calls(program):
    meta = open_program(program).method_meta("forward")
    return [one.call for one in read_instructions(meta, Values(meta.program, meta.plan))]


def fused_calls(program):
    return [call for call in calls(program) if call.startswith("picotorch::")]


def run(program, inputs):
    return Runtime.get().load_program(program).load_method("forward").execute(
        [one.numpy() for one in inputs])


@pytest.mark.parametrize("name", NETWORKS)
def test_a_layer_is_an_instruction_with_the_bytes_of_its_steps(name):
    module, inputs = made(name)
    exported = picotorch.export.export(module, inputs, fuse_rnn=True)
    assert len(fused_calls(exported.buffer)) == NETWORKS[name][-1]
    steps = picotorch.export.export(module, inputs).buffer
    assert not fused_calls(steps)
    given = tuple(torch.randn(one.shape) for one in inputs)
    found, expected = run(exported.buffer, given), run(steps, given)
    assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]
    with torch.no_grad():
        wanted = module(*given)
    for one, want in zip(found, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_allclose(one, want.numpy(), rtol=0, atol=1e-6)


def test_all_steps_need_one_instruction_and_little_memory():
    torch.manual_seed(0)
    module = Net(last_output, nn.GRU(16, 32, batch_first=True))
    fused, steps = (picotorch.export.export(module, torch.randn(1, 49, 16), fuse_rnn=fuse)
                    for fuse in (True, False))
    assert calls(fused.buffer) == ["picotorch::gru.out"]
    assert len(calls(steps.buffer)) > 600
    assert len(fused.buffer) < 22_000 and len(steps.buffer) > 150_000
    assert fused.report.planned[0] < 3500 and fused.report.temp == 2 * 3 * 32 * 4
    assert fused.report.advice == []
    assert "--fuse-rnn" in steps.report.advice[0].remedy


def test_the_report_names_the_layer():
    module, inputs = made("lstm")
    layer = picotorch.export.export(module, inputs, fuse_rnn=True).report.layers[0]
    assert layer.layer == "layer" and layer.operator == "picotorch::lstm.out"
    assert layer.sqnr > 100


@pytest.mark.parametrize("name", [name for name in NETWORKS if NETWORKS[name][-1]])
def test_int8_weights_are_near_pytorch(name):
    module, inputs = made(name)
    samples = [tuple(torch.randn(one.shape) for one in inputs) for _ in range(6)]
    exported = picotorch.export.export(module, inputs, quantize=samples, fuse_rnn=True)
    assert len(fused_calls(exported.buffer)) == NETWORKS[name][-1]
    assert min(output.sqnr for output in exported.report.outputs) > 25
    layers = [one for one in exported.report.layers if one.operator.startswith("picotorch::")]
    assert layers and all(25 < one.sqnr < 70 for one in layers)


def test_int8_weights_need_a_quarter_of_the_bytes():
    torch.manual_seed(0)
    module = Net(last_output, nn.GRU(64, 64, batch_first=True))
    samples = [(torch.randn(1, 9, 64),) for _ in range(6)]
    sizes = [len(picotorch.export.export(module, samples[0], quantize=quantize, fuse_rnn=True).buffer)
             for quantize in (None, samples)]
    weights = 2 * 3 * 64 * 64
    assert sizes[0] - sizes[1] > 2.8 * weights and sizes[1] < weights + 8000


def test_weights_that_forward_computes_stay_float32():
    torch.manual_seed(0)
    layer = nn.utils.parametrizations.weight_norm(nn.GRU(8, 16, batch_first=True), "weight_hh_l0")
    inputs = [(torch.randn(X),) for _ in range(6)]
    module = Net(all_outputs, layer)
    exported = picotorch.export.export(module, inputs[0], quantize=inputs, fuse_rnn=True)
    assert fused_calls(exported.buffer) == ["picotorch::gru.out"]
    assert min(output.sqnr for output in exported.report.outputs) > 25


def test_batch_norms_before_a_fused_layer_are_part_of_convolutions():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4))
    module = Net(lambda m, x: m[1](m[0](x).mT)[1], nn.ModuleList([layers, nn.GRU(4, 6)]))
    samples = [(torch.randn(1, 3, 12),) for _ in range(6)]
    exported = picotorch.export.export(module, samples[0], quantize=samples, fuse_rnn=True)
    found = calls(exported.buffer)
    assert "picotorch::gru.out" in found
    assert sum("conv2d" in call for call in found) == 1


def test_a_network_without_recurrent_layers_stays_the_same():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3))
    samples = [(torch.randn(1, 3, 8, 8),) for _ in range(3)]
    for quantize in (None, samples):
        program, fused = (picotorch.export.export(module, samples[0], quantize=quantize, fuse_rnn=fuse)
                          for fuse in (False, True))
        assert program.buffer == fused.buffer


def test_float64_stays_step_by_step():
    module = Net(all_outputs, nn.GRU(8, 16, batch_first=True).double())
    exported = picotorch.export.export(module, torch.randn(X, dtype=torch.float64), fuse_rnn=True)
    assert not fused_calls(exported.buffer)


def test_from_the_command_line(call, tmp_path):
    module, inputs = made("gru_last_output")
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(module, inputs), path)
    assert call("export", path, "--fuse-rnn")[0] == 0
    expected = picotorch.export.export(module, inputs, fuse_rnn=True).buffer
    assert (tmp_path / "m.pte").read_bytes() == expected
    again = call("export", tmp_path / "m.pte", "--fuse-rnn", "-o", tmp_path / "o.pte")
    assert_usage(again, "--fuse-rnn")
