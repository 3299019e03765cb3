"""Export operators that move or select elements to int8: they and the layers behind them stay int8.

The tests need torch and executorch (make export-check).
"""

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from support.torch_net import Net  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

IMAGE = (1, 2, 8, 8)
CHANNELS = 4

# {name: (function of an image, its channels afterwards)}
MOVES = {
    "narrow": (lambda x: x.narrow(1, 1, 2), 2),
    "tensor_split": (lambda x: x.tensor_split(2, 1)[1], 2),
    "tensor_split_at": (lambda x: x.tensor_split((1, 3), 1)[1], 2),
    "hsplit": (lambda x: torch.hsplit(x, 2)[1], 2),
    "broadcast_to": (lambda x: torch.broadcast_to(x[:, :1], (1, 3, 8, 8)), 3),
    "movedim": (lambda x: x.movedim(3, 2), CHANNELS),
    "swapaxes": (lambda x: x.swapaxes(2, 3), CHANNELS),
    "mT": (lambda x: x.mT, CHANNELS),
    "view_as": (lambda x: x.view_as(x), CHANNELS),
    "reshape_as": (lambda x: x.reshape_as(x), CHANNELS),
    "detach": (lambda x: x.detach(), CHANNELS),
    "positive": (lambda x: +x, CHANNELS),
    "minimum": (lambda x: torch.minimum(x, x * 2), CHANNELS),
    "maximum": (lambda x: torch.maximum(x, x.flip(3)), CHANNELS),
    "glu": (lambda x: F.glu(x, 1), CHANNELS // 2),
    "view_of_parts": (lambda x: x[:, :, :, ::2].reshape(1, 2, 8, 8), 2),
    "joined_pixel": (lambda x: torch.cat([x, x[:, :, -1:, :]], 2), CHANNELS),
}


@pytest.mark.parametrize("name", MOVES)
def test_layers_around_it_are_int8(name):
    torch.manual_seed(0)
    function, channels = MOVES[name]
    module = Net(lambda m, x: m[1](function(m[0](x))), nn.Conv2d(2, CHANNELS, 3, padding=1),
                 nn.Conv2d(channels, 2, 1))
    samples = [(torch.randn(IMAGE),) for _ in range(6)]
    exported = picotorch.export.export(module, samples[0], quantize=samples, core="cortex-m4")
    assert exported.verdict == "good"
    assert {layer["dtype"] for layer in exported.report.to_json()["layers"]} == {"int8"}
