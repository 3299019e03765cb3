"""Test that int8 layers compute with their biases, for all weights.

The tests need torch and executorch (make export-check).
"""

import picotorch
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import lower_int8  # noqa: E402
from torch import nn  # noqa: E402

# {name: (layer of 4 channels, sizes of the input)}
LAYERS = {
    "conv1d": (lambda: nn.Conv1d(4, 4, 3), (1, 4, 12)),
    "conv2d": (lambda: nn.Conv2d(4, 4, 3), (1, 4, 6, 6)),
    "pointwise": (lambda: nn.Conv2d(4, 4, 1), (1, 4, 6, 6)),
    "groups": (lambda: nn.Conv2d(4, 4, 3, groups=2), (1, 4, 6, 6)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4), (1, 4, 6, 6)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 4, 2, 2), (1, 4, 6, 6)),
    "transposed_1d": (lambda: nn.ConvTranspose1d(4, 4, 2, 2), (1, 4, 12)),
    "linear": (lambda: nn.Linear(4, 4), (3, 4)),
}
WEIGHTS, BIASES = (1, 1e-8, 0), (-4, 20)


class Layers(nn.Module):
    """Layers side by side, one output each."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        return tuple(layer(x) for layer in self.layers)


def scaled(make, weight, bias, is_whole):
    layer = make()
    with torch.no_grad():
        is_transposed = isinstance(layer, nn.ConvTranspose1d | nn.ConvTranspose2d)
        if is_whole:
            layer.weight.mul_(weight)
        else:
            layer.weight.select(1 if is_transposed else 0, 1).mul_(weight)
        layer.bias[1] = bias
    return layer


def lowered(module, samples, core):
    program = torch.export.export(module, samples[0], strict=False)
    return picotorch.Module(lower_int8.lower_int8(program, samples, core).program)


@pytest.mark.parametrize(("factor", "core"), [(1, "cortex-m4"), (1e-3, "cortex-m55")])
@pytest.mark.parametrize("name", LAYERS)
def test_a_constant_channel_has_its_bias(name, factor, core):
    """factor: of the inputs, whose scale is part of the scale of the bias."""
    torch.manual_seed(0)
    make, sizes = LAYERS[name]
    layers = [scaled(make, weight, bias, is_whole) for weight in WEIGHTS for bias in BIASES
              for is_whole in (False, True)]
    module = Layers(layers).eval()
    samples = [(torch.randn(sizes) * factor,) for _ in range(6)]
    outputs = lowered(module, samples, core)(*samples[0])
    with torch.no_grad():
        wanted = module(*samples[0])
    for given, want in zip(outputs, wanted, strict=True):
        difference = (torch.from_numpy(given.numpy().copy()) - want).abs().amax()
        assert difference <= 0.02 * want.abs().max()


def test_an_input_of_zeros_alone():
    """The scale of the input is the minimum."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(4, 4, 3)).eval()
    nn.init.constant_(module[0].bias, 5)
    samples = [(torch.zeros(1, 4, 6, 6),) for _ in range(4)]
    assert lowered(module, samples, "cortex-m4")(*samples[0]).numpy() == pytest.approx(5, rel=0.02)
