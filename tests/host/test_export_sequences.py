"""Export networks over sequences to int8: their operators work on images, without copies in between.

The tests need torch and executorch (make export-check).
"""

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from support.torch_net import Net  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

MIN_SQNR = 25  # dB
LENGTH = 24


def gated(m, x):
    """Compute gated, dilated, causal convolutions with residuals and skips, as WaveNet has them."""
    x, skips = m[0](x), 0
    for i, (dilated, one) in enumerate(((m[1], m[2]), (m[3], m[4]))):
        a, b = dilated(F.pad(x, (2**i, 0))).chunk(2, 1)
        y = one(torch.tanh(a) * torch.sigmoid(b))
        x, skips = x + y, skips + y
    return m[5](F.relu(skips))


def chomped(m, x):
    """Pad on both sides, and cut the end off, as temporal convolutional networks do."""
    x = m[0](x)
    return F.relu(m[1](x)[:, :, :-2] + x)


def narrowed(m, x):
    y = m[0](x)
    return m[1](torch.cat([y.narrow(1, 0, 2), F.relu(y.narrow(-2, 2, 2))], dim=-2))


def joined_in_time(m, x):
    y = m[0](x)
    first, rest = torch.split(y, [8, LENGTH - 8], dim=2)
    return m[1](torch.cat([rest, first], -1))


def u_net(m, x):
    a = F.silu(m[0](x))
    return m[3](torch.cat([m[2](F.relu(m[1](a))), a], 1))


def padded_channels(m, x):
    return m[1](F.pad(m[0](x), (1, 2, 0, 3)))


NETWORKS = {
    "gated": (gated, nn.Conv1d(1, 4, 1), nn.Conv1d(4, 8, 2), nn.Conv1d(4, 4, 1),
              nn.Conv1d(4, 8, 2, dilation=2), nn.Conv1d(4, 4, 1), nn.Conv1d(4, 3, 1)),
    "chomped": (chomped, nn.Conv1d(1, 4, 3, padding=1), nn.Conv1d(4, 4, 3, padding=2)),
    "narrowed": (narrowed, nn.Conv1d(1, 4, 3), nn.Conv1d(4, 4, 3)),
    "joined_in_time": (joined_in_time, nn.Conv1d(1, 4, 3, padding=1), nn.Conv1d(4, 4, 3)),
    "u_net": (u_net, nn.Conv1d(1, 4, 5, padding=2), nn.Conv1d(4, 8, 3, stride=2, padding=1),
              nn.ConvTranspose1d(8, 4, 2, 2), nn.Conv1d(8, 2, 1)),
    "padded_channels": (padded_channels, nn.Conv1d(1, 4, 3), nn.Conv1d(7, 4, 3)),
    "first_kernel_of_1": (lambda m, x: m[1](F.relu(m[0](x))), nn.Conv1d(1, 4, 1), nn.Conv1d(4, 4, 3)),
    "first_kernel_of_1_in_steps": (lambda m, x: m[0](x), nn.Conv1d(1, 4, 1, stride=2, bias=False)),
    "image_of_a_view": (lambda m, x: m[0](x.reshape(1, 1, 4, 6)), nn.Conv2d(1, 4, 1, padding=1)),
    "image_of_a_view_in_steps": (lambda m, x: m[0](x.reshape(1, 1, 4, 6)), nn.Conv2d(1, 4, 1, (3, 2))),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_all_layers_are_int8_images(name):
    torch.manual_seed(1)
    module = Net(*NETWORKS[name])
    samples = [(torch.randn(1, 1, LENGTH),) for _ in range(8)]
    exported = picotorch.export.export(module, samples[0], quantize=samples, core="cortex-m4")
    report = exported.report.to_json()
    assert {layer["dtype"] for layer in report["layers"]} == {"int8"}
    assert min(layer["sqnr"] for layer in report["layers"]) > MIN_SQNR
    views = [layer["operator"] for layer in report["layers"]
             if "squeeze" in layer["operator"] or "view" in layer["operator"]]
    assert len(views) <= 2, "more than one view of the input, and one of the output"


def test_reflected_pads_between_convolutions():
    """A pass replaces them by slices, of which the flips are over sequences."""
    torch.manual_seed(1)
    module = Net(lambda m, x: m[1](F.pad(m[0](x), (2, 2), mode="reflect")), nn.Conv1d(1, 4, 3),
                 nn.Conv1d(4, 4, 3))
    samples = [(torch.randn(1, 1, LENGTH),) for _ in range(8)]
    exported = picotorch.export.export(module, samples[0], quantize=samples, core="cortex-m4")
    assert exported.verdict == "good"
