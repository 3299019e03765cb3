"""Export operators that move elements, or have a constant operand, to int8: no layer stays in float.

The tests need torch and executorch (make export-check).
"""

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export.passes import slices  # noqa: E402
from support.torch_net import Net  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

IMAGE = (1, 2, 8, 8)
CHANNELS = 4


def gated(x):
    return x * F.hardsigmoid(x.mean((2, 3), keepdim=True))


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
    "roll": (lambda x: x.roll((1, -3), (3, 2)), CHANNELS),
    "roll_by_the_size": (lambda x: x.roll(8, 3), CHANNELS),
    "circular_pad": (lambda x: F.pad(x, (1, 2, 3, 0), mode="circular"), CHANNELS),
    "reflected_pad": (lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"), CHANNELS),
    "replicated_pad": (lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"), CHANNELS),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), CHANNELS),
    "nearest_of_a_size": (lambda x: F.interpolate(x, size=(5, 11)), CHANNELS),
    "gate_behind_a_shuffle": (lambda x: gated(F.channel_shuffle(x, 2)), CHANNELS),
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


# {name: (function of a constant and activations, sizes of the constant)}
CONSTANTS = {
    "difference": (lambda p, x: x - p, (8,)),
    "difference_from_it": (lambda p, x: p - x, (8,)),
    "quotient": (lambda p, x: x / (p + 9), (8,)),
    "of_rows": (lambda p, x: x + p, (4, 1)),
    "of_rows_and_columns": (lambda p, x: F.relu(x) * p, (4, 8)),
    "first_factor": (lambda p, x: p @ F.relu(x), (5, 4)),
    "first_factor_of_a_matrix": (lambda p, x: (p @ x[0])[None], (5, 4)),
    "behind_relu": (lambda p, x: F.relu(x) * p, (8,)),
}


class WithConstant(nn.Module):
    def __init__(self, function, sizes):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.constant = nn.Parameter(torch.randn(sizes))

    def forward(self, x):
        return self.layers[1](self.function(self.constant, self.layers[0](x)))


@pytest.mark.parametrize("name", CONSTANTS)
def test_operators_with_a_constant_are_int8(name):
    torch.manual_seed(0)
    samples = [(torch.randn(1, 4, 8),) for _ in range(6)]
    exported = picotorch.export.export(WithConstant(*CONSTANTS[name]), samples[0], quantize=samples,
                                       core="cortex-m4")
    assert exported.verdict == "good"
    assert {layer["dtype"] for layer in exported.report.to_json()["layers"]} == {"int8"}


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("pads", [(0, 0), (0, 1), (1, 0), (2, 3), (7, 7), (1, -2), (-1, 0)])
def test_pads_by_slices_equal_pytorch(mode, pads):
    """Replaced or not, with numbers of 0, of 1, and that crop."""
    class Pad(nn.Module):
        def forward(self, x):
            return F.pad(x, pads, mode=mode)

    x = torch.randn(1, 2, 8)
    graph = torch.export.export(Pad(), (x,), strict=False).module(check_guards=False)
    slices.replace(graph)
    assert torch.equal(graph(x), Pad()(x))


@pytest.mark.parametrize("shifts, dims", [
    ((0,), (0,)), ((1,), (2,)), ((-3, 9), (1, -1)), ((2, 1), (2, 2)), ((8,), (2,)), ((5,), ())])
def test_rolls_by_slices_equal_pytorch(shifts, dims):
    class Roll(nn.Module):
        def forward(self, x):
            return x.roll(shifts, dims)

    x = torch.randn(1, 2, 8)
    graph = torch.export.export(Roll(), (x,), strict=False).module(check_guards=False)
    slices.replace(graph)
    assert torch.equal(graph(x), Roll()(x))
