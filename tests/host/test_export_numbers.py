"""Test that int8 exports compute the same as PyTorch: operators between layers, comparisons, masks of
attention, channels without weights.

The tests need torch and executorch (make export-check).
"""

import itertools

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import lower_int8  # noqa: E402
from picotorch.host.operators import supported_operators  # noqa: E402
from support.torch_net import Net  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

MIN_SQNR = 25  # dB


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
    layers = [layer for layer in report.layers if "conv" in layer.operator]
    assert [layer.operator for layer in layers] == ["cortex_m::quantized_conv2d.out"] * 2
    assert "aten::clamp.out" not in {layer.operator for layer in report.layers}
    assert min(output.sqnr for output in report.outputs) > MIN_SQNR


# ---- operators on stored integers

SKIPPED = ("rand", "nonzero", "unique", "bincount", "repeat_interleave", "view_as", "conj", "linalg",
           "_local", "sym_", "hardtanh", "masked_select", "_to_copy", "empty", "pdist", "cdist")


def eager(operator, *args):
    """Return the result of an operator, or None if it is not a tensor of floats, booleans or
    integers."""
    try:
        result = operator(*args)
    except (RuntimeError, TypeError, IndexError):
        return None
    is_plain = isinstance(result, torch.Tensor) and not result.is_complex()
    return result if is_plain and torch.isfinite(result).any() else None


def operators_of(*kinds):
    """Return the operators with kernels that accept arguments of these types, and others with
    defaults."""
    found = {}
    for name in sorted(supported_operators()):
        packet, _, overload = name.removeprefix("aten::").partition(".")
        if not name.startswith("aten::") or any(word in packet for word in SKIPPED):
            continue
        overload = overload.removesuffix("out").removesuffix("_") or "default"
        operator = getattr(getattr(torch.ops.aten, packet, None), overload, None)
        if operator is None or operator._schema.is_mutable:
            continue
        kept = [str(one.type) for one in operator._schema.arguments if not one.has_default_value()]
        if kept == list(kinds):
            found[f"{packet}.{overload}"] = operator
    return found


def in_groups(names, size=12):
    names = sorted(names)
    return [names[i : i + size] for i in range(0, len(names), size)]


UNARY = operators_of("Tensor")
WITH_NUMBER = operators_of("Tensor", "number")
BINARY = operators_of("Tensor", "Tensor")
NUMBER = 0.5

# {name: a function of two tensors with values between 0 and 1}
FUNCTIONS = {
    "bool": lambda y, z: (y - 0.5).bool(),
    "any": lambda y, z: (y > 0.9).any(),
    "all": lambda y, z: (y > 0.02).all(1),
    "count": lambda y, z: (y > NUMBER).sum(),
    "logical_and": lambda y, z: torch.logical_and(y > NUMBER, z > NUMBER),
    "logical_not": lambda y, z: torch.logical_not(y > NUMBER),
    "logical_or": lambda y, z: torch.logical_or(y > NUMBER, z),
    "isclose": lambda y, z: y == z,
    "masked": lambda y, z: y * (y > NUMBER),
    "where": lambda y, z: torch.where(y > NUMBER, y, z),
    "where_number": lambda y, z: torch.where(y > NUMBER, y, -0.25),
    "where_numbers": lambda y, z: torch.where(y > NUMBER, 1.0, -1.0),
    "masked_fill": lambda y, z: y.masked_fill(y > NUMBER, 0.3),
    "clamp": lambda y, z: y.clamp(0.2, 0.7),
    "clamp_tensor": lambda y, z: torch.clamp(y, z.new_tensor(0.2), z.new_tensor(0.7)),
    "zeros_like": lambda y, z: torch.zeros_like(y) + y,
    "ones_like": lambda y, z: torch.ones_like(y) - y,
    "full_like": lambda y, z: torch.full_like(y, 0.4) * y,
    "threshold": lambda y, z: F.threshold(y, 0.5, 0.1),
    "maximum": lambda y, z: torch.maximum(y, torch.full((), NUMBER)),
    "floor": lambda y, z: (y * 4).floor(),
    "minimum": lambda y, z: torch.minimum(y, torch.full_like(y, NUMBER)),
    "clamped": lambda y, z: y.clamp(0.2, 0.7) == 0.7,
    "not_clamped": lambda y, z: torch.ne(y.clamp(0.2, 0.7), torch.full((4, 8), 0.7)),
    "none": lambda y, z: torch.logical_not(F.relu(y - 0.5)),
    "argmax": lambda y, z: y.argmax(1),
    "argsort": lambda y, z: y.sort(1)[0],
    "topk": lambda y, z: y.topk(2)[0],
    "cumsum": lambda y, z: y.cumsum(1),
    "pad": lambda y, z: F.pad(y, (1, 2), value=NUMBER),
    "reflect": lambda y, z: F.pad(y[None], (1, 2), mode="reflect"),
    "hardtanh": lambda y, z: F.hardtanh(y, 0.2, 0.6),
    "norm": lambda y, z: y.norm(dim=1),
    "softmax": lambda y, z: (y > NUMBER).float().softmax(1),
    "difference": lambda y, z: (y - z).abs(),
    "unbind": lambda y, z: y.unbind(1)[2],
    "one_hot": lambda y, z: (y.argmax(1, keepdim=True) == torch.arange(8)).float(),
    "scatter": lambda y, z: y.scatter(1, torch.zeros(4, 1, dtype=torch.int64), 0.25),
    "gather": lambda y, z: y.gather(1, torch.zeros(4, 1, dtype=torch.int64)),
    "roll": lambda y, z: y.roll(1, 1),
    "tril": lambda y, z: y.tril(),
    "outer": lambda y, z: y[:, None] * z[:, :, None],
    "index_fill": lambda y, z: y.index_fill(1, torch.tensor([1]), 0.25),
    "index_put": lambda y, z: y.index_put((torch.tensor([1]),), torch.tensor(0.25)),
    "large": lambda y, z: (torch.full((4, 600), 0.3) * y[:, :1]),
    "range": lambda y, z: torch.linspace(0, 1, 8) * y,
}


class Outputs(nn.Module):
    """A module with two layers, and the results of functions of their outputs."""

    def __init__(self, functions):
        super().__init__()
        self.first, self.second, self.functions = nn.Linear(6, 8), nn.Linear(6, 8), functions

    def forward(self, x):
        y, z = torch.sigmoid(self.first(x)), torch.sigmoid(self.second(x))
        return y, z, *(function(y, z) for function in self.functions)


def check_functions(functions):
    """Compare the results of int8 and PyTorch for the same two values."""
    torch.manual_seed(0)
    samples = [(torch.randn(4, 6),) for _ in range(8)]
    module = torch.export.export(Outputs(list(functions.values())).eval(), samples[0], strict=False)
    program = picotorch.Module(lower_int8.lower_int8(module, samples, "cortex-m4").program)
    differing = []
    for sample in samples[:3]:
        y, z, *results = (torch.from_numpy(one.numpy().copy()) for one in program(*sample))
        for (name, function), found in zip(functions.items(), results, strict=True):
            wanted = function(y, z)
            if wanted.is_floating_point():
                finite = torch.isfinite(wanted)
                limit = 0.02 * max(1, wanted[finite].abs().max().item())
                if not (found - wanted)[finite].abs().max() <= limit:
                    differing.append(name)
            elif not torch.equal(found, wanted):
                differing.append(name)
    assert not differing, differing


def calls(names, operators, make):
    torch.manual_seed(0)
    y, z = torch.rand(4, 8), torch.rand(4, 8)
    made = {name: make(operators[name]) for name in names}
    return {name: one for name, one in made.items() if eager(one, y, z) is not None}


@pytest.mark.parametrize("names", in_groups(UNARY), ids=lambda names: names[0])
def test_operators_of_one_tensor_see_values(names):
    check_functions(calls(names, UNARY, lambda one: lambda y, z: one(y)))


@pytest.mark.parametrize("names", in_groups(WITH_NUMBER), ids=lambda names: names[0])
def test_operators_with_a_number_see_values(names):
    check_functions(calls(names, WITH_NUMBER, lambda one: lambda y, z: one(y, NUMBER)))


@pytest.mark.parametrize("names", in_groups(BINARY), ids=lambda names: names[0])
def test_operators_of_two_tensors_see_values(names):
    check_functions(calls(names, BINARY, lambda one: lambda y, z: one(y, z)))


@pytest.mark.parametrize("names", in_groups(BINARY), ids=lambda names: names[0])
def test_operators_with_a_constant_see_values(names):
    check_functions(calls(names, BINARY, lambda one: lambda y, z: one(y, torch.full((4, 8), NUMBER))))


@pytest.mark.parametrize("names", in_groups(FUNCTIONS, 10), ids=lambda names: names[0])
def test_functions_see_values(names):
    check_functions({name: FUNCTIONS[name] for name in names})


# {name: a function of two tensors that uses nothing of the second, whose range is far wider}
CHOICES = {
    "where": lambda y, z: torch.where(y < 1, y, z),
    "elu": lambda y, z: torch.where(y > 0, y, 9 * (y + 0.01).log()),
    "minimum": lambda y, z: torch.minimum(y, z),
    "clamp": lambda y, z: torch.clamp(y, y.new_tensor(0), z),
    "constant": lambda y, z: torch.where(y < 1, y, torch.full((8,), 900.0)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_an_element_that_where_does_not_select_costs_no_precision(name):
    """With one scale for all operands, the layer before would lose the bits that this scale rounds
    away."""
    def forward(m, x):
        y = torch.sigmoid(m[0](x))
        return CHOICES[name](y, 50 + 500 * torch.sigmoid(m[1](x))), y

    torch.manual_seed(0)
    module, samples = Net(forward, nn.Linear(6, 8), nn.Linear(6, 8)), [(torch.randn(4, 6),)
                                                                      for _ in range(8)]
    outputs = exported(module, samples).report.outputs
    assert min(output.sqnr for output in outputs) > MIN_SQNR
