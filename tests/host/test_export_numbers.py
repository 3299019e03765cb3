"""int8 exports compute what PyTorch computes: operators between layers, comparisons, masks of
attention, channels without weights.

They need torch and executorch (make export-check).
"""

import itertools

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

MIN_SQNR = 25  # dB


class Net(nn.Module):
    """forward(layers, *inputs), of these layers."""

    def __init__(self, forward, *layers):
        super().__init__()
        self.layers, self.compute = nn.ModuleList(layers), forward

    def forward(self, *inputs):
        return self.compute(self.layers, *inputs)


def exported(module, samples, **options):
    return picotorch.export.export(module.eval(), samples[0], quantize=samples, **options)


# ---- between convolutions over sequences

BETWEEN = {
    "pad": lambda x: F.pad(x, (2, 0)),
    "slice": lambda x: x[:, :, 1:],
    "flip": lambda x: x.flip(2),
    "cat": lambda x: torch.cat([x, x], 2),
    "transpose": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "chunk": lambda x: x.chunk(2, 2)[1],
    "repeat": lambda x: x.repeat(1, 1, 2),
}


@pytest.mark.parametrize(("has_relu", "is_residual"),
                         list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("name", BETWEEN)
def test_each_convolution_over_sequences_is_exported_once(name, has_relu, is_residual):
    def forward(m, x):
        x = F.relu(m[0](x)) if has_relu else m[0](x)
        y = m[1](BETWEEN[name](x))
        return (x.mean(2, keepdim=True) + y.mean(2, keepdim=True), x) if is_residual else y

    torch.manual_seed(0)
    module = Net(forward, nn.Conv1d(4, 8, 1), nn.Conv1d(8, 8, 3))
    report = exported(module, [(torch.randn(1, 4, 32),) for _ in range(4)]).report
    layers = [layer for layer in report["layers"] if "conv" in layer["operator"]]
    assert [layer["operator"] for layer in layers] == ["cortex_m::quantized_conv2d.out"] * 2
    assert "aten::clamp.out" not in {layer["operator"] for layer in report["layers"]}
    assert min(output["sqnr"] for output in report["outputs"]) > MIN_SQNR
