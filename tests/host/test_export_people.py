"""Export small models in the style of users' models to int8. Each becomes a program, and on the twin
every layer is as near PyTorch as plain fake quantization is.

The tests need torch and executorch (make export-check).
"""

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import lower_int8, report  # noqa: E402
from support.torch_net import SAMPLES, Net, exported_module  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

MIN_SQNR = 15  # dB, of outputs; below this, the report calls a program unusable


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)), (1, 1, 16, 16)


class Clamped(nn.Conv2d):
    """A convolution with a max-norm, computed in forward."""

    def forward(self, x):
        weight = torch.renorm(self.weight, p=2, dim=0, maxnorm=1.0)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def eegnet():
    net = nn.Sequential(
        nn.Unflatten(0, (1, 1)), nn.Conv2d(1, 4, (1, 16), padding="same", bias=False),
        nn.BatchNorm2d(4), Clamped(4, 8, (8, 1), groups=4, bias=False), nn.BatchNorm2d(8), nn.ELU(),
        nn.AvgPool2d((1, 4)), nn.Dropout(0.25), nn.ZeroPad2d((3, 4, 0, 0)),
        nn.Conv2d(8, 8, (1, 8), groups=8, bias=False), nn.Conv2d(8, 8, 1, bias=False),
        nn.BatchNorm2d(8), nn.ELU(), nn.AvgPool2d((1, 4)), nn.Flatten(), nn.Linear(8 * 8, 3))
    return net, (1, 8, 128)


def vad():
    """Convolutions over frames, a GRU, a probability for each frame."""
    class Vad(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Sequential(nn.Conv1d(1, 16, 32, 16), nn.ReLU(),
                                       nn.Conv1d(16, 16, 3, padding="same"), nn.ReLU())
            self.gru, self.head = nn.GRU(16, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x):
            found, _ = self.gru(self.front(x.unsqueeze(1)).transpose(1, 2))
            return torch.sigmoid(self.head(found)).squeeze(-1)
    return Vad(), (1, 64)


def gcn():
    """A graph convolution: a constant adjacency from either side."""
    adjacency = torch.rand(8, 8)
    adjacency = (adjacency + adjacency.t()) / 8

    class Gcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", adjacency)
            self.w1 = nn.Parameter(torch.randn(6, 12) / 3)
            self.w2 = nn.Parameter(torch.randn(12, 4) / 3)

        def forward(self, x):
            x = F.relu(torch.mm(self.a, torch.mm(x, self.w1)))
            return F.log_softmax(torch.mm(self.a, torch.mm(x, self.w2)), dim=1)
    return Gcn(), (8, 6)


def kan():
    """Splines by their degree-1 basis, with a scale for each edge."""
    class Layer(nn.Module):
        def __init__(self, inputs, outputs, knots=5):
            super().__init__()
            self.register_buffer("grid", torch.linspace(-2, 2, knots))
            self.base = nn.Linear(inputs, outputs)
            self.spline = nn.Parameter(torch.randn(outputs, inputs, knots) / 4)
            self.scaler = nn.Parameter(torch.rand(outputs, inputs))

        def forward(self, x):
            basis = F.relu(1 - (x.unsqueeze(-1) - self.grid).abs())
            weight = (self.spline * self.scaler.unsqueeze(-1)).view(self.spline.shape[0], -1)
            return self.base(F.silu(x)) + F.linear(basis.view(x.shape[0], -1), weight)
    return nn.Sequential(Layer(4, 6), Layer(6, 2)), (1, 4)


def tcn():
    class Block(nn.Module):
        def __init__(self, inputs, outputs, dilation):
            super().__init__()
            self.conv = nn.utils.parametrizations.weight_norm(
                nn.Conv1d(inputs, outputs, 3, dilation=dilation))
            self.pad, self.skip = 2 * dilation, nn.Conv1d(inputs, outputs, 1)

        def forward(self, x):
            return F.relu(F.relu(self.conv(F.pad(x, (self.pad, 0)))) + self.skip(x))
    return nn.Sequential(Block(3, 8, 1), Block(8, 8, 2), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                         nn.Linear(8, 3)), (1, 3, 24)


def espcn():
    return nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 8, 3, padding="same"),
                         nn.Tanh(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2)), (1, 1, 8, 8)


def fomo():
    def block(inputs, outputs, stride):
        return [nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
                nn.BatchNorm2d(inputs), nn.ReLU6(), nn.Conv2d(inputs, outputs, 1), nn.ReLU6()]
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU6(), *block(8, 12, 2), *block(12, 12, 1),
                         nn.Conv2d(12, 3, 1), nn.Softmax(dim=1)), (1, 3, 16, 16)


def u_net():
    def forward(m, x):
        a = F.leaky_relu(m[0](x), 0.1)
        b = F.leaky_relu(m[1](F.max_pool2d(a, 2)), 0.1)
        up = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return m[4](torch.cat([a, F.relu(m[2](up)), m[3](b)], 1))
    return Net(forward, nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1),
               nn.Conv2d(8, 4, 3, padding=1), nn.ConvTranspose2d(8, 4, 2, 2),
               nn.Conv2d(12, 1, 1)), (1, 1, 8, 8)


def denoiser():
    """DTLN: a mask from recurrent layers, on a learned spectrum."""
    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.norm = nn.Conv1d(32, 24, 1, bias=False), nn.LayerNorm(24)
            self.lstm, self.mask = nn.LSTM(24, 16, batch_first=True), nn.Linear(16, 24)
            self.decode = nn.Conv1d(24, 32, 1, bias=False)

        def forward(self, x):
            encoded = self.encode(x).transpose(1, 2)
            found, _ = self.lstm(self.norm(encoded))
            return self.decode((encoded * torch.sigmoid(self.mask(found))).transpose(1, 2))
    return Denoiser(), (1, 32, 2)


class Attention(nn.Module):
    """Attention as people write it, with einsum or @."""

    def __init__(self, size, heads, uses_einsum):
        super().__init__()
        self.heads, self.uses_einsum = heads, uses_einsum
        self.qkv, self.out = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.reshape(b, n, self.heads, d // self.heads).transpose(1, 2)
                   for t in self.qkv(x).chunk(3, -1))
        scale = (d // self.heads) ** -0.5
        if self.uses_einsum:
            weights = (torch.einsum("bhid,bhjd->bhij", q, k) * scale).softmax(-1)
            found = torch.einsum("bhij,bhjd->bhid", weights, v)
        else:
            found = (q @ k.transpose(-2, -1) * scale).softmax(-1) @ v
        return self.out(found.transpose(1, 2).reshape(b, n, d))


def kwt():
    class Kwt(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.cls = nn.Linear(10, 16), nn.Parameter(torch.randn(1, 1, 16))
            self.positions = nn.Parameter(torch.randn(1, 9, 16) / 4)
            self.attention, self.norm1, self.norm2 = Attention(16, 2, True), *(
                nn.LayerNorm(16) for _ in range(2))
            self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            self.head = nn.Linear(16, 4)

        def forward(self, x):
            x = self.embed(x.transpose(1, 2))
            x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
            x = self.norm1(self.attention(x) + x)
            return self.head(self.norm2(self.mlp(x) + x)[:, 0])
    return Kwt(), (1, 10, 8)


def llama():
    """RMSNorm, rotary positions, grouped queries, a causal mask, SwiGLU; embeddings given."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.kv = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
            self.o = nn.Linear(16, 16, bias=False)
            self.gate, self.up, self.down = (nn.Linear(*sizes, bias=False) for sizes in (
                (16, 24), (16, 24), (24, 16)))
            self.g1, self.g2 = nn.Parameter(torch.ones(16)), nn.Parameter(torch.ones(16))

        def forward(self, x):
            b, n, _ = x.shape
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.g1
            q = self.rotated(self.q(y).view(b, n, 4, 4).transpose(1, 2))
            k, v = self.kv(y).view(b, n, 2, 2, 4).unbind(2)
            k, v = self.rotated(k.transpose(1, 2)), v.transpose(1, 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, n, 16))
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.g2
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

        def rotated(self, x):
            angles = torch.arange(x.shape[2]).float()[:, None] / 10 ** torch.arange(2)
            cos, sin = angles.cos(), angles.sin()
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    return Block(), (1, 6, 16)


def patch_tst():
    class PatchTst(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.attention = nn.Linear(8, 16), Attention(16, 2, False)
            self.norm, self.head = nn.BatchNorm1d(16), nn.Linear(7 * 16, 4)

        def forward(self, x):
            mean, deviation = x.mean(-1, keepdim=True), x.std(-1, keepdim=True) + 1e-5
            patches = ((x - mean) / deviation).unfold(-1, 8, 4)
            b, c, n, _ = patches.shape
            y = self.embed(patches).reshape(b * c, n, 16)
            y = self.norm((self.attention(y) + y).transpose(1, 2)).transpose(1, 2)
            return self.head(y.reshape(b, c, -1)) * deviation + mean
    return PatchTst(), (1, 2, 32)


def blaze_face():
    """Strided blocks whose skip is pooled and padded with channels; two heads."""
    def forward(m, x):
        x = F.relu(m[0](F.pad(x, (1, 2, 1, 2))))
        skip = F.pad(F.max_pool2d(x, 2, 2), (0, 0, 0, 0, 0, 4))
        x = F.relu(m[2](m[1](F.pad(x, (0, 2, 0, 2)))) + skip)
        scores = m[3](x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 1)
        boxes = m[4](x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
        return scores.sigmoid(), boxes
    return Net(forward, nn.Conv2d(3, 8, 5, 2), nn.Conv2d(8, 8, 3, 2, groups=8), nn.Conv2d(8, 12, 1),
               nn.Conv2d(12, 2, 1), nn.Conv2d(12, 8, 1)), (1, 3, 16, 16)


def yu_net():
    """A feature pyramid by nearest upsampling; heads over several scales, joined."""
    def forward(m, x):
        a = F.relu(m[0](x))
        b = F.relu(m[1](F.max_pool2d(a, 2)))
        a = a + F.interpolate(b, scale_factor=2, mode="nearest")
        return torch.cat([m[2](one).permute(0, 2, 3, 1).flatten(1, 2) for one in (a, b)], 1)
    return Net(forward, nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, padding=1),
               nn.Conv2d(8, 5, 1)), (1, 3, 16, 16)


def bc_res_net():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.f2 = nn.Sequential(nn.Conv2d(8, 8, (3, 1), padding=(1, 0), groups=8),
                                    nn.BatchNorm2d(8))
            self.f1 = nn.Sequential(nn.Conv2d(8, 8, (1, 3), padding=(0, 1), groups=8),
                                    nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 8, 1))

        def forward(self, x):
            found = self.f2(x)
            return F.relu(x + found + self.f1(found.mean(2, keepdim=True)))
    return nn.Sequential(nn.Conv2d(1, 8, 5, (2, 1), 2), nn.ReLU(), Block(),
                         nn.AdaptiveAvgPool2d((1, None)), nn.Conv2d(8, 4, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten()), (1, 1, 16, 10)


def vae():
    def forward(m, x):
        mean, log_variance = m[1](F.relu(m[0](x))).chunk(2, -1)
        z = mean + torch.exp(0.5 * log_variance)
        return torch.sigmoid(m[3](F.relu(m[2](z)))), mean, log_variance
    return Net(forward, nn.Linear(16, 12), nn.Linear(12, 8), nn.Linear(4, 12),
               nn.Linear(12, 16)), (1, 16)


def rnnoise():
    class Noise(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense, self.vad = nn.Linear(10, 8), nn.Linear(6, 1)
            self.gru1, self.gru2 = nn.GRU(8, 6, batch_first=True), nn.GRU(24, 8, batch_first=True)
            self.gains = nn.Linear(8, 5)

        def forward(self, x):
            dense = torch.tanh(self.dense(x))
            vad, _ = self.gru1(dense)
            found, _ = self.gru2(torch.cat([dense, vad, x], -1))
            return self.gains(found).sigmoid(), self.vad(vad).sigmoid()
    return Noise(), (1, 2, 10)


def n_beats():
    class Beats(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 6)) for _ in range(2))
            t = torch.arange(12) / 12
            self.register_buffer("back", torch.stack([t**i for i in range(3)]))

        def forward(self, x):
            forecast = 0
            for block in self.blocks:
                theta = block(x)
                x = x - theta[:, :3] @ self.back
                forecast = forecast + theta[:, 3:] @ self.back[:, :4]
            return forecast
    return Beats(), (1, 12)


def d_linear():
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.trend, self.rest = nn.Linear(24, 6), nn.Linear(24, 6)

        def forward(self, x):
            ends = x[:, :1].repeat(1, 2, 1), x[:, -1:].repeat(1, 2, 1)
            trend = F.avg_pool1d(torch.cat([ends[0], x, ends[1]], 1).permute(0, 2, 1), 5, 1)
            rest = x.permute(0, 2, 1) - trend
            return (self.trend(trend) + self.rest(rest)).permute(0, 2, 1)
    return Linear(), (1, 24, 3)


def policy():
    """An actor with a squashed mean and a clamped deviation."""
    def forward(m, x):
        x = F.elu(m[1](F.elu(m[0](x))))
        return torch.tanh(m[2](x)) * 2.0 + 0.5, m[3](x).clamp(-5, 2).exp()
    return Net(forward, nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3), nn.Linear(16, 3)), (1, 8)


def vector_quantizer():
    class Quantizer(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Linear(8, 4), nn.Linear(4, 8)
            self.codes = nn.Parameter(torch.randn(6, 4))

        def forward(self, x):
            z = self.encode(x)
            distances = (z.pow(2).sum(1, keepdim=True) + self.codes.pow(2).sum(1)
                         - 2 * z @ self.codes.t())
            return distances, self.decode(F.softmax(-distances, 1) @ self.codes)
    return Quantizer(), (1, 8)


def mixture():
    def forward(m, x):
        x = torch.tanh(m[0](x))
        return F.softmax(m[1](x), -1), m[2](x).view(-1, 3, 2), F.softplus(m[3](x)) + 1e-3
    return Net(forward, nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 6), nn.Linear(16, 3)), (1, 4)


def attention_pooling():
    def forward(m, x):
        x = F.relu(m[0](x))
        weights = F.softmax(m[1](x), dim=1)
        mean = (weights * x).sum(1)
        return m[2](torch.cat([mean, (weights * x.pow(2)).sum(1) - mean.pow(2)], 1))
    return Net(forward, nn.Linear(6, 12), nn.Linear(12, 1), nn.Linear(24, 3)), (1, 8, 6)


def squeeze_and_excite():
    def forward(m, x):
        x = F.relu(m[0](x))
        weights = torch.sigmoid(m[2](F.relu(m[1](x.mean((2, 3))))))
        return m[3]((x * weights.view(x.shape[0], -1, 1, 1)).mean((2, 3)))
    return Net(forward, nn.Conv2d(3, 8, 3), nn.Linear(8, 4), nn.Linear(4, 8), nn.Linear(8, 3)), (
        1, 3, 8, 8)


def gated():
    """WaveNet and GLU: halves of channels that gate each other, in images and sequences."""
    def forward(m, x):
        a, b = m[0](x).chunk(2, 1)
        x = torch.tanh(a) * torch.sigmoid(b)
        return F.glu(m[1](x), 1).mean(2), F.glu(m[2](x.transpose(1, 2)), -1)
    return Net(forward, nn.Conv1d(3, 16, 3, padding="same"), nn.Conv1d(8, 8, 2, padding="same"),
               nn.Linear(8, 8)), (1, 3, 16)


def conv_next():
    def forward(m, x):
        x = m[0](x)
        y = F.layer_norm(m[1](x).permute(0, 2, 3, 1), (8,))
        y = m[3](F.gelu(m[2](y))) * torch.full((8,), 0.5)
        return (x + y.permute(0, 3, 1, 2)).mean([-2, -1])
    return Net(forward, nn.Conv2d(3, 8, 2, 2), nn.Conv2d(8, 8, 7, padding=3, groups=8),
               nn.Linear(8, 16), nn.Linear(16, 8)), (1, 3, 12, 12)


def ghost_net():
    def forward(m, x):
        first = F.relu(m[0](x))
        x = torch.cat([first, F.relu(m[1](first))], 1)[:, :7]
        return m[2](x).flatten(1)
    return Net(forward, nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 3, padding=1, groups=4),
               nn.Conv2d(7, 2, 3)), (1, 3, 8, 8)


def shuffle_net():
    def forward(m, x):
        x = F.relu(m[0](x))
        a, b = x.chunk(2, dim=1)
        x = torch.cat((a, F.relu(m[2](m[1](b)))), 1)
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)
        return m[3](F.prelu(x, m.slope).mean([2, 3]))
    net = Net(forward, nn.Conv2d(3, 8, 3), nn.Conv2d(4, 4, 3, padding=1, groups=4),
              nn.Conv2d(4, 4, 1), nn.Linear(8, 3))
    net.layers.slope = nn.Parameter(torch.full((8,), 0.25))
    return net, (1, 3, 8, 8)


def res2_net():
    def forward(m, x):
        parts, found = torch.split(m[0](x), 3, 1), []
        for i, part in enumerate(parts):
            found.append(part if i == 0 else F.relu(m[i](part if i == 1 else part + found[-1])))
        return m[3](torch.cat(found, 1)) + x
    return Net(forward, nn.Conv2d(6, 9, 1), nn.Conv2d(3, 3, 3, padding=1),
               nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(9, 6, 1)), (1, 6, 8, 8)


def detection_head():
    """Boxes from a distribution over distances, and the class with the largest score."""
    def forward(m, x):
        x = F.silu(m[0](x))
        boxes, scores = m[1](x), m[2](x)
        n, _, h, w = boxes.shape
        boxes = boxes.view(n, 4, 4, h * w).transpose(1, 2).softmax(1)
        distances = (boxes * torch.arange(4.0).view(1, 4, 1, 1)).sum(1)
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centres = torch.stack((x.reshape(-1), y.reshape(-1))) + 0.5
        near, far = centres - distances[:, :2], centres + distances[:, 2:]
        return torch.cat([near, far, scores.view(n, 3, -1).sigmoid()], 1)
    return Net(forward, nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 16, 1), nn.Conv2d(8, 3, 1)), (1, 3, 8, 8)


PEOPLE = (lenet, eegnet, vad, gcn, kan, tcn, espcn, fomo, u_net, denoiser, kwt, llama, patch_tst,
          blaze_face, yu_net, bc_res_net, vae, rnnoise, n_beats, d_linear, policy, vector_quantizer,
          mixture, attention_pooling, squeeze_and_excite, gated, conv_next, ghost_net, shuffle_net,
          res2_net, detection_head)


def exported(make):
    torch.manual_seed(0)
    return exported_module(*make())


@pytest.mark.parametrize("make", PEOPLE, ids=lambda make: make.__name__)
def test_int8_is_as_near_pytorch_as_fake_quantization(make):
    found = exported(make)
    assert found.checked == "executed"
    below, _ = report.poor_layers(found.layers)
    assert not below
    assert all(output.sqnr > MIN_SQNR for output in found.outputs)


def flow_refuses(node, dialect_pass):
    if node.meta.get("input_qparams"):
        raise RuntimeError(f"cannot lower {node}")


def test_layers_that_the_quantizer_rejects_compute_in_float(monkeypatch):
    """The other layers of the module stay in int8."""
    known = lower_int8.AtenToCortexMPass._DIALECT_SUBSTITUTIONS
    monkeypatch.setitem(known, lower_int8.exir_ops.edge.aten.mul.Tensor, flow_refuses)
    torch.manual_seed(0)
    found = exported_module(Net(lambda m, x: m[1](m[0](x) * m[0](x)) * x, nn.Linear(8, 8),
                                nn.Linear(8, 8)), (1, 8))
    assert {layer.dtype for layer in found.layers if "mul" in layer.operator} == {"float32"}
    assert {layer.dtype for layer in found.layers if "linear" in layer.operator} == {"int8"}
    assert found.outputs[0].sqnr > MIN_SQNR


def sum_of_pools(m, x):
    x = m[0](x)
    return F.adaptive_avg_pool2d(x, (2, None)) + F.adaptive_max_pool2d(x, (2, 6))


def numbers(m, x):
    a = (0.5 - m[0](x) * 3.0) * -0.25 + 2
    return m[1](a + torch.add(m[0](x), 0.5, alpha=3) + torch.sub(m[0](x), 0.5, alpha=2) / 4)


def multiples_from_a_number(m, x):
    return m[1](torch.rsub(m[0](x), 0.5, alpha=1.5))


def functions(m, x):
    x = m[0](x)
    return m[1](torch.cat([-x, x.sin(), x.cos(), x.erf(), 1 - x.sigmoid()], 1))


# {name: (module, sizes of the input)}: one of the layers was rejected or left in float
LAYERS = {
    "numbers": lambda: (Net(numbers, nn.Linear(8, 8), nn.Linear(8, 8)), (1, 8)),
    "numbers_of_an_image": lambda: (Net(lambda m, x: m[1](m[0](x) * 2.0 - 1), nn.Conv2d(3, 4, 3),
                                        nn.Conv2d(4, 4, 3)), (1, 3, 8, 8)),
    "functions": lambda: (Net(functions, nn.Linear(8, 8), nn.Linear(40, 8)), (1, 8)),
    "same": lambda: (nn.Conv2d(3, 4, 3, padding="same"), (1, 3, 8, 8)),
    "same_even": lambda: (nn.Conv2d(3, 4, (2, 4), padding="same", dilation=(1, 2)), (1, 3, 8, 8)),
    "valid": lambda: (nn.Conv1d(3, 4, 3, padding="valid"), (1, 3, 8)),
    "without_batch": lambda: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)), (3, 8, 8)),
    "sequence_without_batch": lambda: (nn.Conv1d(3, 4, 3), (3, 8)),
    "adaptive_pools": lambda: (Net(sum_of_pools, nn.Conv2d(3, 4, 3)), (1, 3, 8, 8)),
    "one_channel": lambda: (Net(lambda m, x: m[0](x[:, 1:2]), nn.Conv2d(1, 4, 3)), (1, 3, 8, 8)),
    "cat_with_one_channel": lambda: (Net(lambda m, x: torch.cat([m[0](x), x[:, :1]], 1),
                                         nn.Conv2d(3, 4, 3, padding=1)), (1, 3, 8, 8)),
    "height_of_1": lambda: (nn.Sequential(nn.Conv2d(3, 4, (1, 3)), nn.Flatten(), nn.Linear(24, 3)),
                            (1, 3, 1, 8)),
    "constant_matrix": lambda: (Net(lambda m, x: torch.addmm(m[0].bias, x, m[0].weight.t().clone()),
                                    nn.Linear(8, 4)), (2, 8)),
    "clamped_weight": lambda: (Net(lambda m, x: F.linear(x, m[0].weight.clamp(-0.2, 0.2), m[0].bias),
                                   nn.Linear(8, 4)), (1, 8)),
    "chunks_of_a_weight": lambda: (Net(lambda m, x: torch.add(*(
        F.linear(x, one) for one in m[0].weight.chunk(2))), nn.Linear(8, 8)), (1, 8)),
    "parts_of_a_weight": lambda: (Net(lambda m, x: torch.cat([F.linear(x, one) for one in (
        *m[0].weight.split([2, 6]), *m[1].weight.view(2, 4, 8).unbind())], 1),
        nn.Linear(8, 8), nn.Linear(8, 8)), (1, 8)),
    "cross_attention": lambda: (Net(lambda m, x: m[2](m[0](x), x, m[1](x), need_weights=False)[0],
                                    nn.Linear(8, 8), nn.Linear(8, 8),
                                    nn.MultiheadAttention(8, 2, batch_first=True)), (1, 4, 8)),
    "spectral_norm": lambda: (nn.utils.parametrizations.spectral_norm(nn.Linear(8, 4)), (1, 8)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_int8(name):
    torch.manual_seed(0)
    found = exported_module(*LAYERS[name]())
    assert {layer.dtype for layer in found.layers} == {"int8"}
    assert found.outputs[0].sqnr > 25


def residual(m, x):
    x = F.relu(m[0](x))
    return m[2](F.max_pool2d(F.relu6(m[1](x) + x), 2))


# {name: (module, sizes of a sample without a batch)}
BATCHLESS = {
    "pools": lambda: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(3), nn.Hardswish(),
                                    nn.AdaptiveAvgPool2d(1)), (3, 8, 8)),
    "sequence": lambda: (nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.MaxPool1d(2), nn.AvgPool1d(3)),
                         (3, 8)),
    "residual": lambda: (Net(residual, nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 2, 1)),
                         (3, 8, 8)),
    "squeeze_of_nothing": lambda: (Net(lambda m, x: m[1](F.relu(m[0](x).squeeze(0))),
                                       nn.Conv1d(3, 4, 3), nn.Conv1d(4, 2, 1)), (3, 3, 8)),
}


@pytest.mark.parametrize("name", BATCHLESS)
def test_layers_without_a_batch_follow_one_another(name):
    """The batch is added once before the layers and removed once behind them, and activations between
    two layers are fused."""
    torch.manual_seed(0)
    module, sizes = BATCHLESS[name]()
    found = exported_module(module, sizes)
    operators = [layer.operator for layer in found.layers]
    assert name == "squeeze_of_nothing" or "aten::squeeze_copy.dims_out" not in operators[:-2]
    assert found.outputs[0].sqnr > 30


# Arguments of max pools with ceil_mode over 9 elements: windows that end with the picture, that extend
# beyond it or beyond its padding, and that overlap; and a length that gives no further window
CEILING = [(2, (1,), arguments) for arguments in (
    (3,), (2,), (4, 3), (3, 2, 1), ((5, 3), (4, 2), (2, 0)), (3, 4))]


@pytest.mark.parametrize(("rank", "batch", "arguments"), [
    *CEILING, (1, (), (2,)), (1, (1,), (5, 4, 2)), (2, (), (2,))], ids=str)
def test_max_pools_with_ceil_mode_have_an_int8_kernel(rank, batch, arguments):
    """The portable operator would be slower, and would write indices of eight bytes."""
    torch.manual_seed(0)
    convolution, pool = ((nn.Conv1d, nn.MaxPool1d), (nn.Conv2d, nn.MaxPool2d))[rank - 1]
    found = exported_module(nn.Sequential(convolution(3, 4, 1), pool(*arguments, ceil_mode=True)),
                            (*batch, 3, *rank * [9]))
    operators = {layer.operator for layer in found.layers}
    assert "cortex_m::quantized_max_pool2d.out" in operators
    assert "aten::max_pool2d_with_indices.out" not in operators
    assert found.outputs[0].sqnr > 30


def test_advice_on_a_max_pool_that_computes_indices_for_nothing():
    """A max pool with dilation has no int8 operator."""
    torch.manual_seed(0)
    for module, is_advised in ((nn.MaxPool2d(2), False), (nn.MaxPool2d(2, dilation=2), True)):
        found = exported_module(nn.Sequential(nn.Conv2d(16, 64, 3), nn.Conv2d(64, 32, 3), module),
                                (1, 16, 16, 16))
        assert any("indices" in one.what for one in found.advice) == is_advised
        assert found.outputs[0].sqnr > 30


# Operators between two convolutions, whose results an edge program marks as contiguous
CONTIGUOUS = {
    "divisor": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    "divisor_relu": lambda x: F.relu(F.avg_pool2d(x, 2, divisor_override=3)),
    "divisor_twice": lambda x: F.avg_pool2d(x, 2, divisor_override=3).mean() + F.avg_pool2d(x, 2),
    "uneven": lambda x: F.adaptive_avg_pool2d(x, 5),
    "rolled": lambda x: x.roll(1, 3),
}


@pytest.mark.parametrize("name", CONTIGUOUS)
def test_a_convolution_behind_an_operator_in_float_is_int8(name):
    """The convolution is int8 although its input is not channels last."""
    torch.manual_seed(0)
    found = exported_module(Net(lambda m, x: m[1](CONTIGUOUS[name](m[0](x))), nn.Conv2d(3, 4, 1),
                                nn.Conv2d(4, 3, 1)), (1, 3, 8, 8))
    assert found.int8.macs == found.int8.all_macs
    assert found.outputs[0].sqnr > 30


def test_a_convolution_behind_an_average_that_is_kept_in_float_is_int8():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AvgPool2d(2), nn.Conv2d(4, 3, 1)).eval()
    samples = [(torch.randn(1, 3, 8, 8),) for _ in range(SAMPLES)]
    found = picotorch.export.export(module, samples[0], quantize=samples, keep_float="1").report
    assert {layer.operator: layer.dtype for layer in found.layers} == {
        "cortex_m::quantized_conv2d.out": "int8", "aten::avg_pool2d.out": "float32"}


# {name: (module, sizes of the input)}: one layer of these computes in float, or is decomposed
FLOAT_LAYERS = {
    "far_and_back": lambda: (Net(lambda m, x: m[1](m[0](x) + 300 - 299.5), nn.Linear(8, 8),
                                 nn.Linear(8, 8)), (1, 8)),
    "far_from_a_constant": lambda: (Net(lambda m, x: m[1](0.5 - (40 - m[0](x)) / 40), nn.Linear(8, 8),
                                        nn.Linear(8, 8)), (1, 8)),
    "pad_by_less_than_0": lambda: (Net(lambda m, x: m[1](F.pad(m[0](x), (-1, 0, 2, -1))),
                                       nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)), (1, 3, 8, 8)),
    "multiples_from_a_number": lambda: (Net(multiples_from_a_number, nn.Linear(8, 8), nn.Linear(8, 8)),
                                        (1, 8)),
    "indices": lambda: (Net(lambda m, x: F.max_pool2d(m[0](x), 2, return_indices=True)[0],
                            nn.Conv2d(3, 4, 3)), (1, 3, 8, 8)),
    "upsampled": lambda: (Net(lambda m, x: m[1](F.interpolate(m[0](x), scale_factor=2)),
                              nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)), (1, 3, 8, 8)),
    "magnitudes": lambda: (Net(lambda m, x: m[0](torch.fft.rfft(x).abs()), nn.Linear(5, 3)), (1, 8)),
    "magnitudes_of_a_part": lambda: (Net(lambda m, x: m[1](torch.fft.rfft(m[0](x))[:, 1:].abs()),
                                         nn.Linear(8, 8), nn.Linear(4, 3)), (1, 8)),
    "spectrogram": lambda: (Net(lambda m, x: m[0](torch.stft(
        x, 16, 8, window=torch.hann_window(16), return_complex=True).abs()), nn.Conv1d(9, 3, 1)),
        (1, 64)),
    "softmax_of_columns": lambda: (Net(lambda m, x: m[0](x).softmax(1), nn.Linear(8, 4)), (1, 4, 8)),
    "mean_of_channels": lambda: (Net(lambda m, x: m[0](x).mean(1, keepdim=True) * 2 + 1,
                                     nn.Conv2d(3, 4, 3)), (1, 3, 8, 8)),
}


@pytest.mark.parametrize("name", FLOAT_LAYERS)
def test_a_layer_without_an_int8_kernel_rejects_no_module(name):
    torch.manual_seed(0)
    found = exported_module(*FLOAT_LAYERS[name]())
    assert found.checked == "executed" and found.int8.layers > 0
    assert found.outputs[0].sqnr > 25


# {name: function of integers}
ON_INTEGERS = {
    "from_a_number": lambda i: (1 - i, torch.rsub(i, 5, alpha=2)),
    "from_a_large_number": lambda i: 1_000_000_001 - i,
    "from_a_fraction": lambda i: 1.5 - i,
    "whole_part_of_a_quotient": lambda i: (i * 41 / 41).long(),
    "functions": lambda i: (i.sin(), i.cos(), i.erf(), i.tanh(), i.sigmoid(), -i, i.abs()),
}


@pytest.mark.parametrize("name", ON_INTEGERS)
def test_operators_on_integers_compute_as_pytorch_beside_int8_layers(name):
    """Integers stay integers: the program neither returns floats nor dequantizes them."""
    torch.manual_seed(0)
    net = Net(lambda m, x, i: (m[0](x), ON_INTEGERS[name](i)), nn.Linear(8, 8))
    found = exported_module(net, lambda: (torch.randn(1, 8), torch.arange(24).view(1, 24)))
    assert found.int8.macs == found.int8.all_macs > 0
    assert found.verdict == "good"
    assert all(one.sqnr is None or one.sqnr > 25 for one in found.outputs)


# Functions of a tensor that change a part of it in place
CHANGED_PARTS = {
    "split": lambda y: y.split(4, 1)[0].add_(1),
    "chunk": lambda y: y.chunk(2, 1)[1].clamp_(0, 0.1),
    "unbind": lambda y: y.unbind(1)[3].neg_(),
    "slice": lambda y: y[:, 2:].mul_(-1),
}


@pytest.mark.parametrize("name", CHANGED_PARTS)
def test_a_change_of_a_part_is_in_the_whole(name):
    """The parts that split returns are views, so a change is not lost."""
    def forward(m, x):
        y, constant = x * 1.5, torch.arange(1.0, 9).view(1, 8)
        CHANGED_PARTS[name](y)
        CHANGED_PARTS[name](constant)
        return m[0](y), y, x + constant

    torch.manual_seed(0)
    found = exported_module(Net(forward, nn.Linear(8, 3)), (1, 8))
    assert all(one.sqnr > 25 for one in found.outputs)


def test_a_layer_that_the_twin_refuses_in_float_too_is_named_with_a_remedy():
    pool = nn.MaxPool2d(2, 1, 1, dilation=(1, 2))  # with a width of 1: padding alone
    with pytest.raises(picotorch.Error, match=r"padding alone, layer layers.1; write the layer with"):
        exported_module(Net(lambda m, x: m[1](m[0](x)), nn.Conv2d(3, 4, 1), pool), (1, 3, 7, 1))


def nested_modes(m, x):
    with torch.no_grad():
        x = F.relu(m[0](x) * m.gain)
        with torch.enable_grad():
            x = m[1](x)
    return m[2](x)


def changed_without_grad(m, x):
    with torch.no_grad():
        a, b = m[1](m[0](x)).chunk(2, 1)
        F.relu_(a)
    return m[2](torch.cat([a * b, b], 1))


@pytest.mark.parametrize("forward", [nested_modes, changed_without_grad])
def test_layers_under_no_grad_are_int8(forward):
    """The report of layers has these layers, too."""
    torch.manual_seed(0)
    net = Net(forward, nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3))
    net.layers.gain = nn.Parameter(torch.rand(8) + 1)
    found = exported_module(net, (1, 8))
    assert found.int8.macs == found.int8.all_macs > 0
    assert found.outputs[0].sqnr > 30


@pytest.mark.parametrize("forward", [
    lambda m, x: torch.cond(x.sum() > 0, lambda y: m[0](y), lambda y: m[1](y), (x,)),
    lambda m, x: m[1](torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (m[0](x),)))])
def test_branches_are_rejected_in_words(forward):
    """ExecuTorch's error is: 'ProxyValue' object has no attribute 'graph'."""
    with pytest.raises(picotorch.Error, match="int8 programs have no branches and loops"):
        exported_module(Net(forward, nn.Linear(8, 8), nn.Linear(8, 8)), (1, 8))


class Constants(nn.Module):
    """Two constants whose operators have the same name, one before and one after a second export."""

    def __init__(self, forward):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.pos, self.gain = nn.Parameter(torch.randn(8)), nn.Parameter(torch.rand(8) + 1)
        self._forward = forward

    def forward(self, x):
        return self._forward(self, x)


def positions_and_attention(m, x):
    x = m.linear(x + m.pos.reshape(1, 1, 8))
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


# {name: (forward, sizes of the input)}
CONSTANTS = {
    "one_name_twice": (lambda m, x: F.relu(m.linear(x + m.pos.reshape(1, 8))) * m.gain, (1, 8)),
    "positions_and_a_mask": (positions_and_attention, (1, 4, 8)),
    "changed_in_place": (lambda m, x: F.linear(x, m.linear.weight.clamp(-0.2, 0.2))
                         + torch.full((8,), 0.5).mul_(2), (1, 8)),
    "a_view_is_changed": (lambda m, x: m.linear(x) + _filled(m.pos), (1, 8)),
    "mean_of_all": (lambda m, x: m.linear(x).mean((0, 1)) + m.pos, (1, 8)),
    "mean_without_dims": (lambda m, x: m.linear(x).mean(dim=None) + m.pos, (1, 8)),
}


def _filled(pos):
    copy = pos.clone()
    copy[:4].fill_(1.0)
    return copy


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_keep_their_values(name):
    forward, sizes = CONSTANTS[name]
    torch.manual_seed(0)
    found = exported_module(Constants(forward), sizes)
    assert found.outputs[0].sqnr > 25


def test_a_constant_that_is_changed_leaves_the_others_folded():
    torch.manual_seed(0)
    found = exported_module(Constants(CONSTANTS["changed_in_place"][0]), (1, 8))
    assert {layer.dtype for layer in found.layers if "linear" in layer.operator} == {"int8"}
