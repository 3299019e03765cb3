"""Test int8 attention: masked elements have no influence, to the bit, in every notation of the mask.

The tests need torch and executorch (make export-check).
"""

import math

import numpy as np
import picotorch
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import lower_int8  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

BOARD = "mps2-an386"
MIN_SQNR = 25  # dB
TOKENS, SIZE, FIRST = 6, 8, 3  # the last tokens change, the outputs of the first must not
LOWEST = torch.finfo(torch.float32).min
CAUSAL = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()


def additive(value):
    return torch.zeros(TOKENS, TOKENS).masked_fill(~CAUSAL, value)


class Attention(nn.Module):
    """Attention by a function of its scores, values and mask. The mask is an input or a constant."""

    def __init__(self, masked, mask=None):
        super().__init__()
        self.masked = masked
        self.register_buffer("mask", mask)

    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / math.sqrt(SIZE)
        return self.masked(scores, self.mask if mask is None else mask) @ v


class Fused(nn.Module):
    """scaled_dot_product_attention, with a mask as a constant or an input."""

    def __init__(self, mask=None, is_causal=False):
        super().__init__()
        self.is_causal = is_causal
        self.register_buffer("mask", mask)

    def forward(self, q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, self.mask if mask is None else mask,
                                              is_causal=self.is_causal)


class Layer(nn.Module):
    """A function of a layer and its inputs."""

    def __init__(self, layer, compute):
        super().__init__()
        self.layer, self.compute = layer, compute

    def forward(self, *inputs):
        return self.compute(self.layer, *inputs)


def heads():
    return nn.MultiheadAttention(SIZE, 2, batch_first=True)


def encoder(**options):
    return nn.TransformerEncoderLayer(SIZE, 2, 16, batch_first=True, **options)


def filled(value):
    return lambda scores, mask: scores.masked_fill(~mask, value).softmax(-1)


def biased(scores, mask):
    """Add a learned bias as Swin does, and a bias that grows with the distance as ALiBi does."""
    steps = torch.arange(TOKENS, dtype=torch.float32)
    return (scores + 0.5 * (steps[None, :] - steps[:, None]).abs().neg() + mask).softmax(-1)


def compared(scores, mask):
    steps = torch.arange(TOKENS)
    return torch.where(steps[:, None] >= steps[None, :], scores, -math.inf).softmax(-1)


def normalized(weights, eps=0):
    return weights / (weights.sum(-1, keepdim=True) + eps)


CONSTANTS = {
    "is_causal": lambda: Fused(is_causal=True),
    "bool": lambda: Fused(CAUSAL),
    "float": lambda: Fused(additive(-math.inf)),
    "float_1e9": lambda: Fused(additive(-1e9)),
    "float_lowest": lambda: Fused(additive(LOWEST)),
    "masked_fill": lambda: Attention(filled(-math.inf), CAUSAL),
    "masked_fill_1e9": lambda: Attention(filled(-1e9), CAUSAL),
    "masked_fill_lowest": lambda: Attention(filled(LOWEST), CAUSAL),
    "masked_fill_100": lambda: Attention(filled(-100.0), CAUSAL),
    "where": lambda: Attention(lambda s, m: torch.where(m, s, -math.inf).softmax(-1), CAUSAL),
    "where_tensor": lambda: Attention(
        lambda s, m: torch.where(m, s, torch.full_like(s, -math.inf)).softmax(-1), CAUSAL),
    "where_1e4": lambda: Attention(lambda s, m: torch.where(m, s, -1e4).softmax(-1), CAUSAL),
    "add": lambda: Attention(lambda s, m: (s + m).softmax(-1), additive(-math.inf)),
    "add_in_place": lambda: Attention(lambda s, m: s.add_(m).softmax(-1), additive(-1e9)),
    "add_100": lambda: Attention(lambda s, m: (s + m).softmax(-1), additive(-100.0)),
    "subtract": lambda: Attention(lambda s, m: (s - m).softmax(-1), -additive(-1e9)),
    "scaled_mask": lambda: Attention(
        lambda s, m: (s + (1.0 - m.float()) * -10000.0).softmax(-1), CAUSAL),
    "triu": lambda: Attention(lambda s, m: (s + torch.full_like(s, -math.inf).triu(1)).softmax(-1)),
    "compared": lambda: Attention(compared),
    "biased": lambda: Attention(biased, additive(-100.0)),
    "masked_probabilities": lambda: Attention(
        lambda s, m: (s.exp() * m) / (s.exp() * m).sum(-1, keepdim=True), CAUSAL),
    "masked_probabilities_float": lambda: Attention(
        lambda s, m: (s.exp() * m) / (s.exp() * m).sum(-1, keepdim=True), CAUSAL.float()),
    "zero_scores": lambda: Attention(
        lambda s, m: filled(-math.inf)(10 * s, (s * s * s).tril() != 0)),
    "no_scores": lambda: Attention(lambda s, m: torch.where((s * m).bool(), s, -1e9).softmax(-1),
                                   CAUSAL.float()),
    "normalized_again": lambda: Attention(
        lambda s, m: normalized(s.softmax(-1) * m), CAUSAL.float()),
    "filled_and_normalized": lambda: Attention(
        lambda s, m: normalized(s.softmax(-1).masked_fill(~m, 0), 1e-9), CAUSAL),
    "log_softmax": lambda: Attention(
        lambda s, m: s.masked_fill(~m, -math.inf).log_softmax(-1).exp(), CAUSAL),
    "channels_of_masks": lambda: Attention(
        lambda s, m: (s + m[None, None].expand(1, 2, -1, -1)).view(2, TOKENS, TOKENS).softmax(-1).view(
            1, 2, TOKENS, TOKENS), additive(-math.inf)),
}

# {name: (module, mask of calibration, mask of the run)}
INPUTS = {
    "bool": (lambda: Fused(), CAUSAL, CAUSAL),
    "float": (lambda: Fused(), additive(-math.inf), additive(-math.inf)),
    "float_1e9": (lambda: Fused(), additive(-1e9), additive(-1e9)),
    "masked_fill": (lambda: Attention(filled(-math.inf)), CAUSAL, CAUSAL),
    "masked_fill_100": (lambda: Attention(filled(-100.0)), CAUSAL, CAUSAL),
    "scaled": (lambda: Attention(lambda s, m: (s + (1.0 - m) * -10000.0).softmax(-1)), CAUSAL.float(),
               CAUSAL.float()),
    "bool_unseen": (lambda: Fused(), torch.ones_like(CAUSAL), CAUSAL),
    "masked_fill_unseen": (lambda: Attention(filled(-1e9)), torch.ones_like(CAUSAL), CAUSAL),
    "where_unseen": (lambda: Attention(lambda s, m: torch.where(m, s, -100.0).softmax(-1)),
                     torch.ones_like(CAUSAL), CAUSAL),
    "scaled_unseen": (lambda: Attention(lambda s, m: (s + (1.0 - m) * -10000.0).softmax(-1)),
                      torch.ones(TOKENS, TOKENS), CAUSAL.float()),
}

LAYERS = {
    "attn_mask": lambda: Layer(heads(), lambda m, x: m(x, x, x, attn_mask=~CAUSAL)[0]),
    "float_attn_mask": lambda: Layer(
        heads(), lambda m, x: m(x, x, x, attn_mask=additive(-math.inf), need_weights=False)[0]),
    "is_causal": lambda: Layer(heads(), lambda m, x: m(
        x, x, x, attn_mask=additive(-math.inf), is_causal=True, need_weights=False)[0]),
    "encoder": lambda: Layer(encoder(), lambda m, x: m(x, src_mask=additive(-math.inf))),
    "causal_encoder": lambda: Layer(encoder(norm_first=True), lambda m, x: m(
        x, src_mask=nn.Transformer.generate_square_subsequent_mask(TOKENS), is_causal=True)),
}
PADDING = {
    "key_padding_mask": lambda: Layer(heads(), lambda m, x, p: m(x, x, x, key_padding_mask=p)[0]),
    "without_weights": lambda: Layer(heads(), lambda m, x, p: m(
        x, x, x, key_padding_mask=p, need_weights=False)[0]),
    "encoder": lambda: Layer(encoder(), lambda m, x, p: m(x, src_key_padding_mask=p)),
    "both": lambda: Layer(heads(), lambda m, x, p: m(
        x, x, x, attn_mask=additive(-math.inf), key_padding_mask=torch.zeros(
            1, TOKENS).masked_fill(p, -math.inf))[0]),
}


def scores(scale, count=12):
    torch.manual_seed(0)
    return [tuple(torch.randn(1, 2, TOKENS, SIZE) * factor for factor in (scale, scale, 1))
            for _ in range(count)]


def changed(inputs):
    """Change the last tokens of inputs that have tokens."""
    found = []
    for one in inputs:
        one = one.clone()
        if one.dim() > 2 and one.is_floating_point():
            one[..., FIRST:, :] *= -2
        found.append(one)
    return tuple(found)


def lowered(module, samples):
    program = torch.export.export(module, samples[0], strict=False)
    return lower_int8.lower_int8(program, samples, "cortex-m4").program


def check(module, samples, run=None, min_sqnr=MIN_SQNR):
    """Export a module, and compare its first tokens for an input and for one with other last tokens."""
    module = module.eval()
    program = lowered(module, samples)
    run = samples[0] if run is None else run
    execute = picotorch.Module(program)
    outputs = [np.array(execute(*inputs).numpy()) for inputs in (run, changed(run))]
    first, other = (one[..., :FIRST, :] for one in outputs)
    assert np.array_equal(first, other), np.abs(first - other).max()
    with torch.no_grad():
        wanted = module(*(one.clone() for one in run)).numpy()
    noise = ((outputs[0] - wanted)[..., :FIRST, :] ** 2).sum()
    assert 10 * math.log10((wanted[..., :FIRST, :] ** 2).sum() / noise) > min_sqnr
    return program, run


@pytest.mark.parametrize("scale", [0.2, 0.5, 1.5])
@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_masks_remove_later_tokens(name, scale):
    check(CONSTANTS[name](), scores(scale))


@pytest.mark.parametrize("scale", [0.2, 1.5])
@pytest.mark.parametrize("name", INPUTS)
def test_masks_that_are_inputs_remove_later_tokens(name, scale):
    make, calibration, mask = INPUTS[name]
    samples = [(*inputs, calibration) for inputs in scores(scale)]
    # values of a single token exceed the averages, but calibration covers only the averages
    min_sqnr = 0 if name.endswith("unseen") else MIN_SQNR
    check(make(), samples, (*samples[0][:3], mask), min_sqnr)


@pytest.mark.parametrize("name", LAYERS)
def test_masks_of_layers_remove_later_tokens(name):
    torch.manual_seed(0)
    check(LAYERS[name](), [(torch.randn(1, TOKENS, SIZE),) for _ in range(12)])


@pytest.mark.parametrize("name", PADDING)
def test_padding_is_removed(name):
    torch.manual_seed(0)
    padding = (torch.arange(TOKENS) >= FIRST)[None]
    samples = [(torch.randn(1, TOKENS, SIZE), padding if i % 2 == 0 else torch.zeros_like(padding))
               for i in range(12)]
    check(PADDING[name](), samples)


def test_a_row_that_is_masked_whole_is_zero_as_in_pytorch():
    torch.manual_seed(0)
    mask = CAUSAL.clone()
    mask[1] = False
    samples = scores(0.5)
    module = Fused(mask)
    assert not picotorch.Module(lowered(module, samples))(*samples[0]).numpy()[:, :, 1].any()


@pytest.mark.parametrize("name", ["is_causal", "bool", "float", "float_1e9", "masked_fill",
                                  "masked_fill_lowest", "where", "add", "add_100", "scaled_mask",
                                  "triu"])
def test_masks_remove_later_tokens_on_a_board(call, tmp_path, name):
    program, run = check(CONSTANTS[name](), scores(0.2))
    (tmp_path / "m.pte").write_bytes(program)
    outputs = []
    for i, inputs in enumerate((run, changed(run))):
        np.savez(tmp_path / f"{i}.npz",
                 **{f"in{k}": one.numpy() for k, one in enumerate(inputs)})
        status, _, _ = call("run", tmp_path / "m.pte", "--board", BOARD, "--inputs",
                            tmp_path / f"{i}.npz", "--outputs", tmp_path / f"out{i}.npz")
        assert status == 0
        with np.load(tmp_path / f"out{i}.npz") as found:
            outputs.append(found["out0"])
    assert np.array_equal(*(one[..., :FIRST, :] for one in outputs))
