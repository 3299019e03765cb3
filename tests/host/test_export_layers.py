"""Export small networks of common layers to int8, and compare each with PyTorch on the twin.

The tests need torch and executorch (make export-check).
"""

import json

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import completing, lower_int8, pipeline  # noqa: E402
from support.torch_net import Net  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torchao.quantization.pt2e.observer import HistogramObserver  # noqa: E402

MIN_SQNR = 25  # dB
IMAGE = (1, 3, 16, 16)


def sequence(*layers):
    return lambda: nn.Sequential(*(layer() for layer in layers))


def conv(inputs, outputs, kernel, **options):
    return lambda: nn.Conv2d(inputs, outputs, kernel, **options)


def net(forward, *layers):
    return lambda: Net(forward, *(layer() for layer in layers))


def u_net(m, x):
    a = F.relu(m[0](x))
    return torch.sigmoid(m[3](torch.cat([a, m[2](F.relu(m[1](a)))], 1)))


def residual(m, x):
    x = F.relu(m[0](x))
    return m[2](F.relu(x + m[1](x)).mean((2, 3)))


def squeeze_and_excite(m, x):
    x = F.hardswish(m[0](x))
    weights = F.hardsigmoid(m[2](F.relu(m[1](F.adaptive_avg_pool2d(x, 1)))))
    return (x * weights).mean((2, 3))


def mobile_block(m, x):
    x = F.silu(m[2](m[1](m[0](x))))
    weights = torch.sigmoid(m[4](F.silu(m[3](F.adaptive_avg_pool2d(x, 1)))))
    return F.adaptive_avg_pool2d(m[5](x * weights), 1).flatten(1)


def split_channels(m, x):
    return m[0](x).reshape(1, 2, 2, 14, 14).transpose(1, 2).reshape(1, 4, 14, 14)


def pre_activation(m, x):
    """Apply a batch norm to a concatenation before the convolution, as DenseNet does."""
    x = m[0](x)
    x = torch.cat([x, m[2](F.relu(m[1](x)))], 1)
    return m[4](F.relu(m[3](x)))


def permuted(m, x):
    """Apply linear layers to the channels, which permute moves to the end, as ConvNeXt does."""
    x = m[0](x)
    x = x + m[2](F.gelu(m[1](x.permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)
    return m[3](x)


def norm(kind, channels):
    """Return a builder of a batch norm with the values of a trained one."""
    def layer():
        made = kind(channels)
        for values in (made.weight.data, made.running_var):
            values.uniform_(0.5, 2)
        for values in (made.bias.data, made.running_mean):
            values.uniform_(-0.5, 0.5)
        return made.eval()
    return layer


def shared(m, x):
    """Apply one layer with each of two batch norms, and without a batch norm."""
    return m[1](m[0](x)) + m[2](m[0](F.relu(x))) + m[0](torch.tanh(x))


def skipped(m, x):
    """Use the output of a layer in a batch norm and in an addition."""
    y = m[0](x)
    return m[1](y) + y


def alike_names():
    """Return two weights whose names differ only in "." and "_"."""
    module = nn.Sequential(nn.Conv1d(3, 4, 3))
    module.add_module("a_b", nn.Conv1d(4, 4, 3))
    module.add_module("a", nn.ModuleDict({"b": nn.Conv1d(4, 4, 3)}))
    return Net(lambda m, x: m[0].a["b"](m[0].a_b(m[0][0](x))), module)


SEQUENCE = (1, 3, 32)
# {name: (module, sizes of the input)}: batch norms behind layers whose outputs others use, too
SHARED = {
    "conv1d": (net(shared, lambda: nn.Conv1d(3, 4, 3), norm(nn.BatchNorm1d, 4),
                   norm(nn.BatchNorm1d, 4)), SEQUENCE),
    "conv2d": (net(shared, conv(3, 4, 3), norm(nn.BatchNorm2d, 4), norm(nn.BatchNorm2d, 4)), IMAGE),
    "linear": (net(shared, lambda: nn.Linear(16, 8), norm(nn.BatchNorm1d, 8),
                   norm(nn.BatchNorm1d, 8)), (1, 16)),
    "skipped_conv1d": (net(skipped, lambda: nn.Conv1d(3, 4, 3), norm(nn.BatchNorm1d, 4)), SEQUENCE),
    "skipped_conv2d": (net(skipped, conv(3, 4, 3), norm(nn.BatchNorm2d, 4)), IMAGE),
    "skipped_linear": (net(skipped, lambda: nn.Linear(16, 8), norm(nn.BatchNorm1d, 8)), (1, 16)),
    "two_batch_norms": (sequence(conv(3, 4, 3), norm(nn.BatchNorm2d, 4), norm(nn.BatchNorm2d, 4)),
                        IMAGE),
    "transposed_groups": (sequence(lambda: nn.ConvTranspose2d(4, 8, 3, groups=2, bias=False),
                                   norm(nn.BatchNorm2d, 8)), (1, 4, 6, 6)),
}


def changed_view(m, x):
    y = m[0](x)
    y.permute(0, 2, 3, 1).relu_()
    return m[1](y)


def changed_item(m, x):
    y = m[0](x)
    y[:, :, :4] = 0
    return m[1](y)


def changed_twice(m, x):
    y = m[0](x)
    z = y.relu()
    y.mul_(2)
    return m[1](y) + y + z


# {name: (module, sizes of the input)}: among them changes in place of a value that others read
CHANGES = {
    "view": (net(changed_view, conv(3, 4, 3), conv(4, 4, 3)), IMAGE),
    "item": (net(changed_item, lambda: nn.Conv1d(3, 4, 3), lambda: nn.Conv1d(4, 4, 3)), SEQUENCE),
    "value": (net(changed_twice, conv(3, 4, 3), conv(4, 4, 1)), IMAGE),
}


def outer_product(m, x):
    y = m[0](x)
    return y.unsqueeze(1) * y.unsqueeze(2)


RECURRENT = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}
CELLS = {"gru_cell": nn.GRUCell, "rnn_cell": nn.RNNCell}

# {name: (module, sizes of the inputs)}
NETWORKS = {
    "residual": (net(residual, conv(3, 8, 3, padding=1), conv(8, 8, 3, padding=1),
                     lambda: nn.Linear(8, 10)), IMAGE),
    "u_net": (net(u_net, conv(1, 8, 3, padding=1), conv(8, 16, 3, stride=2, padding=1),
                  lambda: nn.ConvTranspose2d(16, 8, 2, 2), conv(16, 1, 1)), (1, 1, 16, 16)),
    "squeeze_and_excite": (net(squeeze_and_excite, conv(3, 8, 3), conv(8, 2, 1), conv(2, 8, 1)), IMAGE),
    "mobile_block": (net(mobile_block, conv(3, 8, 1), conv(8, 8, 5, stride=2, padding=2, groups=8),
                         norm(nn.BatchNorm2d, 8), conv(8, 2, 1), conv(2, 8, 1), conv(8, 4, 1)), IMAGE),
    "hardswish": (sequence(conv(3, 8, 3), nn.Hardswish), IMAGE),
    "linear_hardswish": (sequence(lambda: nn.Linear(16, 8), nn.Hardswish), (1, 16)),
    "silu": (sequence(conv(3, 8, 3), nn.SiLU), IMAGE),
    "relu6": (sequence(conv(3, 8, 3), nn.ReLU6, conv(8, 4, 1)), IMAGE),
    "group_norm": (sequence(conv(3, 8, 3), lambda: nn.GroupNorm(2, 8), nn.SiLU,
                            conv(8, 8, 3, groups=8)), IMAGE),
    "pre_activation": (net(pre_activation, conv(3, 8, 3, padding=1), norm(nn.BatchNorm2d, 8),
                           conv(8, 4, 3, padding=1), norm(nn.BatchNorm2d, 12), conv(12, 4, 1)), IMAGE),
    "first_batch_norm": (sequence(norm(nn.BatchNorm2d, 3), conv(3, 4, 3)), IMAGE),
    "two_batch_norms": (sequence(conv(3, 4, 3), norm(nn.BatchNorm2d, 4), norm(nn.BatchNorm2d, 4)),
                        IMAGE),
    "linear_batch_norm": (sequence(lambda: nn.Linear(16, 8), norm(nn.BatchNorm1d, 8), nn.ReLU,
                                   lambda: nn.Linear(8, 4, bias=False), norm(nn.BatchNorm1d, 4)),
                          (1, 16)),
    "batch_norm_of_sequences": (sequence(norm(nn.BatchNorm1d, 3), nn.ReLU, lambda: nn.Conv1d(3, 8, 3)),
                                (1, 3, 16)),
    "permuted": (net(permuted, conv(3, 8, 3), lambda: nn.Linear(8, 16), lambda: nn.Linear(16, 8),
                     conv(8, 8, 3, groups=8)), IMAGE),
    "instance_norm": (sequence(conv(3, 8, 3), lambda: nn.InstanceNorm2d(8)), IMAGE),
    "pixel_shuffle_1": (sequence(conv(3, 4, 3), lambda: nn.PixelShuffle(1)), IMAGE),
    "pixel_shuffle_2": (sequence(conv(3, 4, 3), lambda: nn.PixelShuffle(2), conv(1, 2, 3)), IMAGE),
    "channel_shuffle": (sequence(conv(3, 4, 3), lambda: nn.ChannelShuffle(2), conv(4, 2, 1)), IMAGE),
    "split_channels": (net(split_channels, conv(3, 4, 3)), IMAGE),
    "flatten": (sequence(conv(3, 4, 3), nn.Flatten, lambda: nn.Linear(4 * 196, 3)), IMAGE),
    "view": (net(lambda m, x: m[1](m[0](x).view(x.size(0), -1)), conv(3, 4, 3),
                 lambda: nn.Linear(4 * 196, 3)), IMAGE),
    "image_of_other_sizes": (net(lambda m, x: m[1](m[0](x).reshape(1, 4, 7, 28)), conv(3, 4, 3),
                                 conv(4, 8, 1)), IMAGE),
    "image_of_other_channels": (net(lambda m, x: m[0](x).reshape(1, 2, 4, 98) + 1, conv(3, 4, 3)),
                                IMAGE),
    "stack": (net(lambda m, x: torch.stack([m[0](x), m[0](x) + 1], 1), conv(3, 4, 3)), IMAGE),
    "matmul": (net(lambda m, x: torch.matmul(m[0](x), m[0](x).transpose(2, 3)), conv(3, 4, 3)), IMAGE),
    "permute": (net(lambda m, x: m[1](m[0](x).permute(0, 2, 3, 1)), conv(3, 4, 3),
                    lambda: nn.Linear(4, 3)), IMAGE),
    "upsample": (sequence(conv(3, 4, 3), lambda: nn.Upsample(scale_factor=2), conv(4, 3, 3)), IMAGE),
    "conv1d_conv2d": (net(lambda m, x: m[1](m[0](x).unsqueeze(2)), lambda: nn.Conv1d(3, 8, 3),
                          conv(8, 4, (1, 3))), (1, 3, 16)),
    "conv1d_residual": (net(lambda m, x: m[2](m[1](m[0](x) + torch.relu(m[0](x))).flatten(1)),
                            lambda: nn.Conv1d(3, 8, 5, padding="same"), lambda: nn.AdaptiveAvgPool1d(2),
                            lambda: nn.Linear(16, 4)), (1, 3, 32)),
    "conv1d_mean": (net(lambda m, x: m[1](m[0](x).relu().mean(-1)), lambda: nn.Conv1d(3, 8, 4),
                        lambda: nn.Linear(8, 4)), (1, 3, 32)),
    "circular_padding": (sequence(conv(3, 4, 3, padding=1, padding_mode="circular"), nn.ReLU,
                                  conv(4, 4, 5, padding=(0, 2), padding_mode="circular")), IMAGE),
    "circular_padding_of_one_channel": (sequence(conv(1, 4, 3, padding=1, padding_mode="circular")),
                                        (1, 1, 8, 8)),
    "circular_padding_of_sequences": (sequence(
        lambda: nn.Conv1d(3, 4, 3, padding=2, padding_mode="circular"), nn.ReLU,
        lambda: nn.Conv1d(4, 4, 3)), SEQUENCE),
    "circular_crop": (net(lambda m, x: m[0](F.pad(x, (2, -1, -3, 0), "circular")), conv(3, 4, 3)),
                      IMAGE),
    "reflected_padding": (sequence(conv(3, 4, 3, padding=1, padding_mode="reflect")), IMAGE),
    "replicated_padding": (sequence(conv(3, 4, 3, padding=1, padding_mode="replicate")), IMAGE),
    "batch_norm_without_statistics": (sequence(
        conv(3, 4, 3), lambda: nn.BatchNorm2d(4, track_running_stats=False), nn.ReLU, conv(4, 4, 3)),
        IMAGE),
    "conv1d_last": (sequence(lambda: nn.Conv1d(3, 8, 3), lambda: nn.MaxPool1d(2)), (1, 3, 32)),
    "conv_transpose1d": (sequence(lambda: nn.Conv1d(3, 8, 4, stride=2), nn.ReLU,
                                  lambda: nn.ConvTranspose1d(8, 3, 4, stride=2)), (1, 3, 32)),
    **{name: (net(lambda m, x: m[0](x)[0], lambda kind=kind: kind(8, 16, batch_first=True)), (1, 4, 8))
       for name, kind in RECURRENT.items()},
    **{name: (net(lambda m, x: m[0](x), lambda kind=kind: kind(8, 16)), (1, 8))
       for name, kind in CELLS.items()},
    "lstm_cell": (net(lambda m, x: m[0](x)[0], lambda: nn.LSTMCell(8, 16)), (1, 8)),
    "gru_cell_twice": (net(lambda m, x: m[0](x[:, 1], m[0](x[:, 0])), lambda: nn.GRUCell(8, 16)),
                       (1, 2, 8)),
    "constants": (net(lambda m, x: torch.zeros(1, 8) + m[0](x) + torch.ones(1, 8) * 2,
                      lambda: nn.Linear(8, 8)), (1, 8)),
    "gru_with_state": (net(lambda m, x, h: m[0](x, h), lambda: nn.GRU(8, 16, batch_first=True)),
                       (1, 4, 8), (1, 1, 16)),
    "rnn_with_state": (net(lambda m, x, h: m[0](x, h), lambda: nn.RNN(8, 16, batch_first=True)),
                       (1, 4, 8), (1, 1, 16)),
    "lstm_with_state": (net(lambda m, x, h, c: m[0](x, (h, c))[0],
                            lambda: nn.LSTM(8, 16, batch_first=True)),
                        (1, 4, 8), (1, 1, 16), (1, 1, 16)),
    "attention": (net(lambda m, x: m[0](x, x, x, need_weights=False)[0],
                      lambda: nn.MultiheadAttention(32, 4, batch_first=True)), (1, 8, 32)),
    "extremes": (net(lambda m, x: (m[0](x).max(1)[0], m[0](x).min(-1, keepdim=True).values),
                     lambda: nn.Linear(8, 8)), (1, 4, 8)),
    "outer_sum": (net(lambda m, x: m[0](x) + m[0](x).reshape(4, 1), lambda: nn.Linear(4, 4)), (1, 4)),
    "outer_product": (net(outer_product, lambda: nn.Linear(4, 4)), (1, 4)),
}


def exported(name):
    torch.manual_seed(0)
    make, *sizes = NETWORKS[name]
    samples = [tuple(torch.rand(shape) for shape in sizes) for _ in range(6)]
    return picotorch.export.export(make(), samples[0], quantize=samples)


@pytest.mark.parametrize("name", NETWORKS)
def test_int8_is_near_pytorch(name):
    report = exported(name).report
    assert report.checked == "executed"
    assert min(output.sqnr for output in report.outputs) > MIN_SQNR


@pytest.mark.parametrize("name", [name for name in NETWORKS if name.endswith(("norm", "norms"))
                                  and name != "instance_norm" and name != "group_norm"]
                         + ["pre_activation", "batch_norm_of_sequences"])
def test_batch_norms_are_part_of_int8_layers(name):
    layers = exported(name).report.layers
    assert {layer.dtype for layer in layers} == {"int8"}
    linear = [layer for layer in layers if "linear" in layer.operator]
    assert len(layers) == len(linear) or not linear


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", SHARED)
def test_batch_norms_change_no_layer_that_others_take(name, dtype):
    torch.manual_seed(0)
    make, sizes = SHARED[name]
    samples = [(torch.randn(sizes),) for _ in range(6)]
    report = picotorch.export.export(make(), samples[0],
                                     quantize=samples if dtype == "int8" else None).report
    assert report.outputs[0].sqnr > (MIN_SQNR if dtype == "int8" else 100)


@pytest.mark.parametrize("name", CHANGES)
def test_changes_in_place_are_seen_by_all(name):
    torch.manual_seed(0)
    make, sizes = CHANGES[name]
    samples = [(torch.randn(sizes),) for _ in range(6)]
    report = picotorch.export.export(make(), samples[0], quantize=samples).report
    assert report.outputs[0].sqnr > MIN_SQNR


def test_decomposed_batch_norms_are_part_of_int8_layers():
    """torch.export.save writes batch norms in this form after run_decompositions."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv1d(3, 4, 3), norm(nn.BatchNorm1d, 4)(), nn.ReLU()).eval()
    samples = [(torch.randn(SEQUENCE),) for _ in range(6)]
    program = torch.export.export(module, samples[0], strict=False).run_decompositions()
    assert "_native_batch_norm_legit_no_training" in str(program.graph)
    lowered = lower_int8.lower_int8(program, samples, "cortex-m4").program
    assert b"batch_norm" not in lowered and b"aten::convolution" not in lowered


def test_weights_of_alike_names_stay_apart():
    torch.manual_seed(0)
    samples = [(torch.randn(SEQUENCE),) for _ in range(6)]
    report = picotorch.export.export(alike_names(), samples[0], quantize=samples).report
    assert report.outputs[0].sqnr > MIN_SQNR


def test_export_leaves_the_mode_of_the_module():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.ReLU()).train()
    module[1].eval()
    picotorch.export.export(module, torch.rand(1, 4))
    assert [one.training for one in module.modules()] == [True, True, False, True]


class Counting(nn.Module):
    """Count the calls in a buffer, and keep the last input in another one."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("last", torch.zeros(1, 4))

    def forward(self, x):
        self.count.add_(1)
        y = self.linear(x) + self.count + self.last
        self.last.copy_(x)
        return y


def test_export_leaves_buffers_and_compares_from_their_values():
    module = Counting()
    report = picotorch.export.export(module, torch.rand(1, 4)).report
    assert module.count.item() == 0 and not module.last.any()
    assert report.outputs[0].sqnr > 100


def test_torchscript_is_compared_from_the_values_of_its_buffers(call, tmp_path):
    torch.jit.script(Counting()).save(tmp_path / "m.pt")
    output = ["-o", tmp_path / "m.pte", "--json"]
    status, out, _ = call("export", tmp_path / "m.pt", "--shape", "1,4", *output)
    assert status == 0 and json.loads(out)["outputs"][0]["largest"] < 1e-5


def test_equal_batch_norms_are_no_recurrent_layer():
    """Before training, all batch norms of one size have equal weights."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), *(
        layer for _ in range(3)
        for layer in (nn.BatchNorm2d(4), nn.ReLU6(), nn.Conv2d(4, 4, 3), nn.ReLU())))
    samples = [(torch.rand(IMAGE),) for _ in range(6)]
    report = picotorch.export.export(module.eval(), samples[0], quantize=samples).report
    assert "recurrent" not in str(report.advice)


class Operands(nn.Module):
    """An operator with one constant operand, which is a parameter, a buffer or a literal tensor. A
    layer computes the other operand."""

    def __init__(self, operator, size, sides):
        super().__init__()
        self.operator, self.sides, self.first = operator, sides, nn.Linear(size[-1], size[-1])
        self.a, self.values = nn.Parameter(torch.rand(size) + 0.5), (torch.rand(size) + 0.5).tolist()
        self.register_buffer("b", torch.rand(size) + 0.5)

    def forward(self, x):
        y, constants = self.first(x), (self.a, self.b, torch.tensor(self.values))
        return [self.operator(*pair) for constant in constants
                for pair in ((constant, y), (y, constant))[self.sides]]


BOTH, RIGHT = slice(2), slice(1, 2)
MATRIX, MATRICES = (8, 8), (2, 8, 8)
OPERANDS = {  # {name: (operator, sizes, sides of the constant)}
    "matmul": (torch.matmul, MATRIX, BOTH), "matmul of three dims": (torch.matmul, MATRICES, BOTH),
    "matmul of four dims": (torch.matmul, (1, 2, 8, 8), BOTH), "bmm": (torch.bmm, MATRICES, BOTH),
    "mm": (torch.mm, MATRIX, BOTH), "mv": (lambda a, b: torch.mv(a, b[0]), MATRIX, RIGHT),
    "broadcast matmul": (lambda a, b: torch.matmul(a, b[0]), MATRICES, BOTH),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), MATRICES, BOTH),
    "linear": (F.linear, MATRIX, BOTH), "add": (torch.add, MATRIX, BOTH),
    "sub": (torch.sub, MATRIX, BOTH), "mul": (torch.mul, MATRIX, BOTH),
    "div": (torch.div, MATRIX, RIGHT), "minimum": (torch.minimum, MATRIX, BOTH),
    "maximum": (torch.maximum, MATRIX, BOTH), "outer": (torch.outer, (8,), BOTH),
    "where": (lambda a, b: torch.where(torch.eye(8).bool(), a, b), MATRIX, BOTH),
    "cat": (lambda a, b: torch.cat([a, b], -1), MATRIX, BOTH),
    "stack": (lambda a, b: torch.stack([a, b]), MATRIX, BOTH),
    "broadcast": (lambda a, b: a * b[0], MATRIX, BOTH),
    "gt": (lambda a, b: (a + 9 > b).float(), MATRIX, BOTH),
    "attention": (lambda a, b: F.scaled_dot_product_attention(a, b, b), MATRICES, BOTH),
    "addmm": (lambda a, b: torch.addmm(torch.ones(8), a, b), MATRIX, BOTH),
    "pow": (lambda a, b: (a.sigmoid() + 1).pow(b), MATRIX, RIGHT),
    "conv1d": (lambda a, b: F.conv1d(a, b[:, :, :3]), (4, 4, 8), RIGHT),
    "conv2d": (lambda a, b: F.conv2d(a, b[:, :, :3, :3]), (4, 4, 8, 8), RIGHT),
    "adaptive_avg_pool2d": (lambda a, b: F.adaptive_avg_pool2d(b, 1) * a, (1, 2, 8, 8), BOTH),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_an_operand_may_be_a_constant(name, monkeypatch):
    monkeypatch.setattr(pipeline, "_in_float", lambda *arguments: None)
    monkeypatch.setattr(completing.timing, "estimated", lambda program, core: None)
    torch.manual_seed(0)
    operator, size, sides = OPERANDS[name]
    module, samples = Operands(operator, size, sides), [(torch.randn(size),) for _ in range(8)]
    report = picotorch.export.export(module.eval(), samples[0], quantize=samples).report
    assert report.layers[0].dtype == "int8"
    assert min(output.sqnr for output in report.outputs) > MIN_SQNR, report.outputs


def audio():
    """Return a module over sequences, and the same module over images of height 1 with the same
    weights."""
    torch.manual_seed(0)
    one = nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=2, padding=4), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(16, 16, 3, padding=2, dilation=2, groups=16), nn.Conv1d(16, 32, 1), nn.ReLU(),
        nn.AvgPool1d(4), nn.Flatten(), nn.Linear(32 * 8, 4))
    two = nn.Sequential(
        nn.Conv2d(1, 16, (1, 9), stride=(1, 2), padding=(0, 4)), nn.BatchNorm2d(16), nn.ReLU(),
        nn.MaxPool2d((1, 2)), nn.Conv2d(16, 16, (1, 3), padding=(0, 2), dilation=(1, 2), groups=16),
        nn.Conv2d(16, 32, 1), nn.ReLU(), nn.AvgPool2d((1, 4)), nn.Flatten(), nn.Linear(32 * 8, 4))
    weights = one.state_dict()
    two.load_state_dict({name: weights[name].reshape(like.shape)
                         for name, like in two.state_dict().items()})
    return one.eval(), two.eval()


def test_conv1d_is_int8_and_runs_on_a_board(call, tmp_path):
    torch.manual_seed(0)
    samples = [torch.randn(1, 1, 128) for _ in range(16)]
    exported = picotorch.export.export(audio()[0], (samples[0],), quantize=[(one,) for one in samples])
    assert {layer.dtype for layer in exported.report.layers} == {"int8"}
    assert exported.report.outputs[0].sqnr > 35
    exported.save(tmp_path / "model.pte")
    assert call("parity", tmp_path / "model.pte", "--board", "mps2-an386")[0] == 0


@pytest.mark.parametrize("seed", [0, 1, 4, 6])
def test_conv1d_equals_conv2d_if_the_scales_are_equal(monkeypatch, seed):
    """The scales here follow from the minimum and the maximum. By default torch derives them from a
    histogram. It counts a value again for each view of it, and rounds when its range grows, so views
    between sequences and images change it a little."""
    monkeypatch.setattr(HistogramObserver, "_non_linear_param_search",
                        lambda self: (self.min_val, self.max_val))
    modules = audio()
    torch.manual_seed(seed)
    sequences, outputs = [torch.randn(1, 1, 128) for _ in range(16)], []
    for module, samples in zip(modules, (sequences, [one.unsqueeze(2) for one in sequences]),
                               strict=True):
        exported = torch.export.export(module, (samples[0],), strict=False)
        program = picotorch.Module(lower_int8.lower_int8(exported, [(one,) for one in samples],
                                                         "cortex-m4").program)
        outputs.append([program(one).numpy().tobytes() for one in samples])
    assert outputs[0] == outputs[1]


def test_random_values_are_no_constants():
    """As constants, random values would be drawn once, for all runs."""
    module = Net(lambda m, x: m[0](x) + torch.rand_like(torch.zeros(1, 4)), nn.Linear(4, 4))
    samples = [(torch.rand(1, 4),) for _ in range(6)]
    report = picotorch.export.export(module, samples[0], quantize=samples).report
    assert "aten::rand_like.out" in {layer.operator for layer in report.layers}


def test_int8_leaves_the_module_as_it_was():
    """If the export stored weights channels last, a view of a layer's output would fail afterwards."""
    torch.manual_seed(0)
    module, samples = nn.Conv2d(3, 4, 3).eval(), [(torch.rand(IMAGE),) for _ in range(6)]
    before = module.weight.stride()
    lower_int8.lower_int8(torch.export.export(module, samples[0], strict=False), samples, "cortex-m4")
    assert module.weight.stride() == before
    assert module(samples[0][0]).view(1, -1).shape == (1, 784)
