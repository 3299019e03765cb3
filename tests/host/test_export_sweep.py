"""Export common layers to int8, each between two layers with weights: no operator computes in float.

Each is as exact as plain fake quantization. The tests need torch and executorch (make export-check).
"""

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.host.instructions import KERNEL_CALL, read_instructions  # noqa: E402
from picotorch.host.twin import open_program  # noqa: E402
from picotorch.host.values import Values  # noqa: E402
from support.torch_net import Net  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

BELOW_FAKE = 1.5  # dB

FUNCTIONS = {layer.__name__: layer for layer in (
    nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.LeakyReLU,
    nn.LogSigmoid, nn.Mish, nn.PReLU, nn.RReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Sigmoid, nn.Softplus,
    nn.Softshrink, nn.Softsign, nn.Tanh, nn.Tanhshrink)} | {
    "Threshold": lambda: nn.Threshold(0.1, -0.5), "GELU by tanh": lambda: nn.GELU("tanh")}
CALLS = {
    "square": torch.square, "power": lambda x: x**3,
    "square root": lambda x: (x.abs() + 0.1)**0.5,
    "atan": torch.atan, "asinh": torch.asinh, "sign": torch.sign, "floor": torch.floor,
    "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "frac": torch.frac,
    "erfc": torch.erfc, "exp2": torch.exp2, "sinc": torch.sinc,
    "logit": lambda x: torch.logit(torch.sigmoid(x) * 0.9 + 0.05),
    "remainder": lambda x: torch.remainder(x, 0.5), "fmod": lambda x: torch.fmod(x, 0.5),
    "clamp_min": lambda x: x.clamp_min(0.1), "nan_to_num": torch.nan_to_num}

# Functions whose small values int8 does not keep, with the operator that computes them
WIDE = {
    "exp": (torch.exp, "exp"), "expm1": (torch.expm1, "expm1"),
    "power of a number": (lambda x: 2**x, "pow"),
    "sinh": (torch.sinh, "sinh"), "cosh": (torch.cosh, "cosh"),
    "reciprocal": (lambda x: 1 / (x.abs() + 0.5), "reciprocal"),
    "negative power": (lambda x: (x.abs() + 0.5)**-1.5, "pow"),
    "tan": (lambda x: torch.tan(x.sin()), "tan")}


class Own(nn.Module):
    """A function of an input and of parameters."""

    def __init__(self, function, *shapes):
        super().__init__()
        self.function = function
        self.values = nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in shapes)

    def forward(self, x):
        return self.function(x, *self.values)


def rms_norm(x, weight):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def llama_norm(x, weight):
    """Normalize with the casts of LLaMA, of which float32 needs none."""
    wide = x.to(torch.float32)
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x)


def layer_norm(x, weight, bias):
    centered = x - x.mean(-1, keepdim=True)
    return centered / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * weight + bias


def channel_norm(x, weight, bias):
    """Normalize the channels of images as ConvNeXt does."""
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).pow(2).mean(1, keepdim=True)
    x = (x - mean) / torch.sqrt(variance + 1e-6)
    return weight[:, None, None] * x + bias[:, None, None]


class Block(nn.Module):
    """A layer between two others."""

    def __init__(self, before, layer, after):
        super().__init__()
        self.before, self.layer, self.after = before, layer, after

    def forward(self, x):
        return self.after(self.layer(self.before(x)))


def images(layer, channels=8):
    return Block(nn.Conv2d(3, channels, 3, padding=1), layer, nn.Conv2d(channels, 4, 1)), (1, 3, 8, 8)


def rows(layer, *shape):
    return Block(nn.Linear(12, 16), layer, nn.Linear(16, 16)), (1, *shape, 12)


def with_weights(layer):
    """Give parameters values that matter."""
    for values in layer.parameters():
        values.data.uniform_(-0.5, 2)
    return layer


def call(function):
    return Net(lambda _, x: function(x))


def transformer(**options):
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation=F.gelu, **options)


CASES = {
    **{f"{name} of images": lambda layer=layer: images(layer()) for name, layer in FUNCTIONS.items()},
    **{f"{name} of rows": lambda layer=layer: rows(layer()) for name, layer in FUNCTIONS.items()},
    **{f"{name} of rows": lambda one=one: rows(call(one), 5) for name, one in CALLS.items()},
    "LayerNorm": lambda: rows(with_weights(nn.LayerNorm(16)), 10),
    "LayerNorm of one row": lambda: rows(with_weights(nn.LayerNorm(16))),
    "LayerNorm without weights": lambda: rows(nn.LayerNorm(16, elementwise_affine=False), 10),
    "LayerNorm without bias": lambda: rows(with_weights(nn.LayerNorm(16, bias=False)), 10),
    "LayerNorm of two dims": lambda: rows(with_weights(nn.LayerNorm((10, 16))), 10),
    "RMSNorm": lambda: rows(with_weights(nn.RMSNorm(16)), 10),
    "RMSNorm with epsilon": lambda: rows(with_weights(nn.RMSNorm(16, eps=0.1)), 10),
    "GroupNorm": lambda: images(with_weights(nn.GroupNorm(4, 8))),
    "GroupNorm of one group": lambda: images(with_weights(nn.GroupNorm(1, 8))),
    "GroupNorm without weights": lambda: images(nn.GroupNorm(2, 8, affine=False)),
    "InstanceNorm": lambda: images(with_weights(nn.InstanceNorm2d(8, affine=True))),
    "InstanceNorm without weights": lambda: images(nn.InstanceNorm2d(8)),
    "GroupNorm of sequences": lambda: (Block(nn.Conv1d(3, 8, 3), with_weights(nn.GroupNorm(2, 8)),
                                             nn.Conv1d(8, 4, 1)), (1, 3, 16)),
    "RMS norm by hand": lambda: rows(with_weights(Own(rms_norm, 16)), 10),
    "RMS norm of LLaMA": lambda: rows(with_weights(Own(llama_norm, 16)), 10),
    "layer norm by hand": lambda: rows(with_weights(Own(layer_norm, 16, 16)), 10),
    "channel norm by hand": lambda: images(with_weights(Own(channel_norm, 8, 8))),
    "layer scale of rows": lambda: rows(with_weights(Own(torch.mul, 16)), 10),
    "layer scale of images": lambda: images(with_weights(Own(torch.mul, (8, 1, 1)))),
    "bias of images": lambda: images(with_weights(Own(torch.add, (8, 1, 1)))),
    "layer scale behind a function": lambda: images(nn.Sequential(
        nn.GELU(), with_weights(Own(torch.mul, (8, 1, 1))))),
    **{f"softmax of dim {dim} of images": lambda dim=dim: images(nn.Softmax(dim)) for dim in (1, 2, 3)},
    **{f"softmax of dim {dim} of rows": lambda dim=dim: rows(nn.Softmax(dim), 10) for dim in (1, 2)},
    "transformer": lambda: (transformer(), (1, 10, 16)),
    "transformer with norms first": lambda: (transformer(norm_first=True), (1, 10, 16)),
}
QUICK = ("ELU of images", "Mish of rows", "LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm",
         "RMS norm of LLaMA", "channel norm by hand", "layer scale of images",
         "softmax of dim 1 of rows", "transformer")


def exported(module, shape, **options):
    generator = torch.Generator().manual_seed(3)
    samples = [torch.randn(shape, generator=generator) for _ in range(8)]
    return picotorch.export.export(module.eval(), (samples[0],), quantize=samples, **options)


def float_operators(program):
    """Return the operators whose results are floats, except for conversions of integers."""
    meta = open_program(program.buffer).method_meta("forward")
    values = Values(meta.program, meta.plan)
    return [one.call for one in read_instructions(meta, values)
            if one.kind == KERNEL_CALL and "quantize_per_tensor" not in one.call
            and values.tensor(one.outputs[0]).dtype == "Float"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else (
    pytest.mark.thorough,)) for name in CASES])
def test_a_common_layer_computes_with_integers(name):
    torch.manual_seed(1)
    program = exported(*CASES[name]())
    assert float_operators(program) == []
    for layer in program.report.layers:
        assert layer.sqnr > layer.fake_sqnr - BELOW_FAKE, layer
    assert program.verdict in ("good", "rough")


def test_normalizations_kept_in_float_have_pytorchs_values():
    torch.manual_seed(1)
    module, shape = images(nn.Sequential(with_weights(nn.GroupNorm(2, 8)), nn.ReLU()))
    program = exported(module, shape, keep_float=["layer.0"])
    assert "aten::native_group_norm.out" in float_operators(program)
    assert program.verdict == "good"


def test_a_function_between_operators_in_float_stays_in_float():
    """A variance of rounded squares would be far off."""
    torch.manual_seed(1)
    program = exported(*rows(call(lambda x: x.square().cumsum(-1)), 10))
    assert "aten::cumsum.out" in float_operators(program)
    assert "aten::pow.Tensor_Scalar_out" in float_operators(program)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "exp" else (
    pytest.mark.thorough,)) for name in WIDE])
def test_exponentials_and_reciprocals_stay_in_float(name):
    torch.manual_seed(1)
    function, operator = WIDE[name]
    program = exported(*rows(call(function), 10))
    assert any(one.startswith(f"aten::{operator}.") for one in float_operators(program))
    assert program.verdict in ("good", "rough")


def test_the_squares_of_a_divisor_stay_in_float():
    torch.manual_seed(1)
    program = exported(*rows(call(lambda x: x.square() / (x.square() + 0.1).sum(-1, keepdim=True)), 10))
    assert "aten::pow.Tensor_Scalar_out" in float_operators(program)
    assert program.verdict == "good"


def test_a_normalization_with_computed_weights_stays_in_float():
    torch.manual_seed(1)
    module = Net(lambda m, x: m[1](F.layer_norm(m[0](x), [16], m[0](x)[0, 0])), nn.Linear(12, 16),
                 nn.Linear(16, 16))
    program = exported(module, (1, 10, 12))
    assert "aten::native_layer_norm.out" in float_operators(program)
    assert program.verdict == "good"


def test_a_quotient_that_is_no_normalization_stays_as_it_is():
    """The root is of the squares of x, with its mean."""
    torch.manual_seed(1)

    def divide(x):
        return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-5)

    program = exported(*rows(call(divide), 10))
    assert "aten::div.out" in float_operators(program)
    assert program.verdict == "good"
