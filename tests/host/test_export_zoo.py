"""Export more models in the style of users' models, each written from its paper with seeded weights.
float32 programs compute PyTorch's numbers, and int8 programs are as near as plain fake quantization is.

They need torch and executorch (make export-check).
"""

import math

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import report  # noqa: E402
from support.torch_net import Net, exported_module, samples_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

MIN_SQNR = 20  # dB, of outputs; below this, the report calls a program rough
MIN_SHARE = 0.9  # minimum part of the multiply-accumulates in int8

# ---- transformers


def vision_transformer():
    """Patches by a convolution, a class token, pre-norm layers of nn.TransformerEncoderLayer."""
    def forward(m, x):
        x = m[0](x).flatten(2).transpose(1, 2)
        x = torch.cat([m.token.expand(x.shape[0], -1, -1), x], 1) + m.positions
        return m[2](m[1](x)[:, 0])
    layer = nn.TransformerEncoderLayer(16, 2, 24, 0.1, "gelu", batch_first=True, norm_first=True)
    net = Net(forward, nn.Conv2d(3, 16, 4, 4), layer, nn.Linear(16, 4))
    net.layers.token = nn.Parameter(torch.randn(1, 1, 16))
    net.layers.positions = nn.Parameter(torch.randn(1, 10, 16) / 4)
    return net, (1, 3, 12, 12)


def attention_module():
    """nn.MultiheadAttention, with the output of its average weights."""
    def forward(m, x):
        y, weights = m[0](m[1](x), m[1](x), m[1](x))
        return m[2](x + y), weights
    return Net(forward, nn.MultiheadAttention(16, 4, batch_first=True), nn.LayerNorm(16),
               nn.Linear(16, 3)), (1, 6, 16)


def tiny_llama():
    """nn.RMSNorm, rotary positions by halves, grouped queries, a causal mask, SwiGLU, two layers."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (
                nn.Linear(16, n, bias=False) for n in (16, 8, 8, 16))
            self.gate, self.up = nn.Linear(16, 32, bias=False), nn.Linear(16, 32, bias=False)
            self.down = nn.Linear(32, 16, bias=False)
            self.norm1, self.norm2 = nn.RMSNorm(16), nn.RMSNorm(16)
            angles = torch.outer(torch.arange(8.0), 10000 ** (-torch.arange(0, 4, 2) / 4))
            angles = torch.cat([angles, angles], -1)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
            self.register_buffer("mask", torch.full((8, 8), float("-inf")).triu(1))

        def rotated(self, x):
            n, half = x.shape[2], x.shape[3] // 2
            turned = torch.cat([-x[..., half:], x[..., :half]], -1)
            return x * self.cos[:n] + turned * self.sin[:n]

        def forward(self, x):
            b, n, _ = x.shape
            y = self.norm1(x)
            q = self.rotated(self.q(y).view(b, n, 4, 4).transpose(1, 2))
            k = self.rotated(self.k(y).view(b, n, 2, 4).transpose(1, 2))
            v = self.v(y).view(b, n, 2, 4).transpose(1, 2)
            k, v = (one[:, :, None].expand(-1, -1, 2, -1, -1).reshape(b, 4, n, 4) for one in (k, v))
            scores = q @ k.transpose(2, 3) / math.sqrt(4) + self.mask[:n, :n]
            y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, n, 16)
            x = x + self.o(y)
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))
    return nn.Sequential(Block(), Block(), nn.RMSNorm(16), nn.Linear(16, 12)), (1, 6, 16)


def token_model():
    """A language model whose inputs are tokens."""
    def forward(m, x):
        h = m[0](x) + m[1](torch.arange(x.shape[1]))
        return m[3](m[2](h, is_causal=True, src_mask=nn.Transformer.generate_square_subsequent_mask(6)))
    net = Net(forward, nn.Embedding(11, 16), nn.Embedding(6, 16),
              nn.TransformerEncoderLayer(16, 2, 24, 0.0, batch_first=True), nn.Linear(16, 11))
    return net, lambda: (torch.randint(0, 11, (1, 6)),)


def swin():
    """Attention in windows of an image, with biases of positions and a cyclic shift."""
    def forward(m, x):
        x = m[0](x).permute(0, 2, 3, 1)
        y = torch.roll(m[1](x), (-2, -2), (1, 2))
        b, h, w, c = y.shape
        y = y.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = m[2](y).view(-1, 16, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        y = ((q * 0.35) @ k.transpose(-2, -1) + m.bias).softmax(-1) @ v
        y = m[3](y.transpose(1, 2).reshape(-1, 16, c))
        y = y.view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        x = x + torch.roll(y, (2, 2), (1, 2))
        return m[4](x.mean((1, 2)))
    net = Net(forward, nn.Conv2d(3, 16, 2, 2), nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16),
              nn.Linear(16, 3))
    net.layers.bias = nn.Parameter(torch.randn(2, 16, 16) / 4)
    return net, (1, 3, 16, 16)


def mobile_vit():
    """Unfolded patches through a transformer, folded back to an image."""
    def forward(m, x):
        x = F.silu(m[0](x))
        b, c, h, w = x.shape
        y = x.reshape(b * c * h // 2, 2, w // 2, 2).transpose(1, 2).reshape(b, c, h * w // 4, 4)
        y = m[1](y.transpose(1, 3).reshape(b * 4, -1, c))
        y = y.view(b, 4, -1, c).transpose(1, 3).reshape(b * c * h // 2, w // 2, 2, 2)
        y = y.transpose(1, 2).reshape(b, c, h, w)
        return m[2](torch.cat([x, y], 1))
    return Net(forward, nn.Conv2d(3, 8, 3, 2, 1),
               nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
               nn.Conv2d(16, 4, 3, padding=1)), (1, 3, 8, 8)


def mlp_mixer():
    def forward(m, x):
        x = m[0](x).flatten(2).transpose(1, 2)
        x = x + m[3](F.gelu(m[2](m[1](x).transpose(1, 2)))).transpose(1, 2)
        x = x + m[6](F.gelu(m[5](m[4](x))))
        return m[7](x.mean(1))
    return Net(forward, nn.Conv2d(3, 12, 4, 4), nn.LayerNorm(12), nn.Linear(9, 8), nn.Linear(8, 9),
               nn.LayerNorm(12), nn.Linear(12, 16), nn.Linear(16, 12), nn.Linear(12, 3)), (1, 3, 12, 12)


def patch_tst_instance():
    """Reversible instance norm, replicated end, unfold, positions, batch norm over tokens."""
    def forward(m, x):
        mean = x.mean(1, keepdim=True)
        deviation = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        y = ((x - mean) / deviation).permute(0, 2, 1)
        y = F.pad(y, (0, 4), mode="replicate").unfold(-1, 8, 4)
        b, c, n, _ = y.shape
        y = (m[0](y) + m.positions).reshape(b * c, n, 16)
        y = m[2]((y + m[1](y, y, y, need_weights=False)[0]).transpose(1, 2)).transpose(1, 2)
        y = m[3]((y + m[5](F.gelu(m[4](y)))).transpose(1, 2)).transpose(1, 2)
        return m[6](y.reshape(b, c, -1)).permute(0, 2, 1) * deviation + mean
    net = Net(forward, nn.Linear(8, 16), nn.MultiheadAttention(16, 2, batch_first=True),
              nn.BatchNorm1d(16), nn.BatchNorm1d(16), nn.Linear(16, 24), nn.Linear(24, 16),
              nn.Linear(8 * 16, 4))
    net.layers.positions = nn.Parameter(torch.randn(8, 16) / 8)
    return net, (1, 32, 2)


# ---- audio


def silero():
    """A spectrum by a convolution with Fourier kernels, an encoder, an LSTM whose state is given."""
    def forward(m, x, h, c):
        x = F.pad(x, (0, 8), mode="reflect")
        x = F.conv1d(x.unsqueeze(1), m.basis, stride=8)
        x = torch.sqrt(x[:, :9] ** 2 + x[:, 9:] ** 2)
        x = F.relu(m[1](F.relu(m[0](x))))
        y, (h, c) = m[2](x.permute(0, 2, 1), (h, c))
        y = torch.sigmoid(m[3](F.relu(y).permute(0, 2, 1)))
        return y.mean(2), h, c
    net = Net(forward, nn.Conv1d(9, 12, 3, padding=1), nn.Conv1d(12, 12, 3, 2, 1),
              nn.LSTM(12, 8, batch_first=True), nn.Conv1d(8, 1, 1))
    angles = 2 * math.pi * torch.outer(torch.arange(9.0), torch.arange(16.0)) / 16
    window = torch.hann_window(16)
    net.layers.basis = nn.Parameter(torch.cat([angles.cos() * window, -angles.sin() * window])[:, None],
                                    requires_grad=False)
    return net, lambda: (torch.randn(1, 64), torch.randn(1, 1, 8) / 4, torch.randn(1, 1, 8) / 4)


def gtcrn():
    """Bands by a matrix, unfolded neighbours, shuffled halves, grouped GRU over both dims, a complex
    mask."""
    class Grouped(nn.Module):
        def __init__(self, size, hidden, bidirectional):
            super().__init__()
            self.a, self.b = (nn.GRU(size // 2, hidden // 2, batch_first=True,
                                     bidirectional=bidirectional) for _ in range(2))

        def forward(self, x):
            a, b = torch.chunk(x, 2, -1)
            return torch.cat([self.a(a)[0], self.b(b)[0]], -1)

    class Gtcrn(nn.Module):
        def __init__(self):
            super().__init__()
            self.bands, self.back = nn.Linear(12, 8, bias=False), nn.Linear(8, 12, bias=False)
            self.conv = nn.Sequential(nn.Conv2d(9, 8, (1, 5), (1, 2), (0, 2)), nn.BatchNorm2d(8),
                                      nn.PReLU())
            self.point = nn.Conv2d(4, 4, 1)
            self.depth = nn.Conv2d(4, 4, (3, 3), groups=4)
            self.intra, self.inter = Grouped(8, 8, True), Grouped(16, 8, False)
            self.fc = nn.Linear(8, 8)
            self.norm = nn.LayerNorm((4, 8))
            self.up = nn.ConvTranspose2d(8, 2, (1, 4), (1, 2), (0, 1))

        def forward(self, x):
            magnitude = torch.sqrt(x[:, :1] ** 2 + x[:, 1:] ** 2 + 1e-12)
            y = self.bands(torch.cat([magnitude, x], 1))
            b, c, t, f = y.shape
            y = F.unfold(y, (1, 3), padding=(0, 1)).reshape(b, c * 3, t, f)
            y = self.conv(y)
            a, rest = y.chunk(2, 1)
            a = self.depth(F.pad(self.point(a), (1, 1, 2, 0)))
            y = torch.stack([a, rest], 2).flatten(1, 2)
            z = y.permute(0, 2, 3, 1)
            z = self.intra(z.reshape(-1, 4, 8)).reshape(z.shape[0], -1, 4, 16)
            z = self.inter(z.permute(0, 2, 1, 3).reshape(-1, z.shape[1], 16))
            z = self.fc(z).reshape(b, 4, -1, 8).permute(0, 2, 1, 3)
            y = y + self.norm(z).permute(0, 3, 1, 2)
            mask = torch.tanh(self.back(self.up(y)))
            real = x[:, 0] * mask[:, 0] - x[:, 1] * mask[:, 1]
            return torch.stack([real, x[:, 1] * mask[:, 0] + x[:, 0] * mask[:, 1]], 1)
    return Gtcrn(), (1, 2, 4, 12)


def gru_denoiser():
    """A mask for magnitudes, computed by two layers of GRU from logarithms."""
    def forward(m, x):
        features = torch.log10(x.abs().clamp(min=1e-3))
        y, _ = m[1](F.relu(m[0](features)))
        return torch.sigmoid(m[2](y)) * x.abs()
    return Net(forward, nn.Linear(16, 12), nn.GRU(12, 8, num_layers=2, batch_first=True),
               nn.Linear(8, 16)), (1, 3, 16)


def dtln():
    """Two stages: a mask on magnitudes, and one on a learned spectrum with instant normalization."""
    class Norm(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.gamma, self.beta = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

        def forward(self, x):
            mean = x.mean(-1, keepdim=True)
            variance = (x - mean).square().mean(-1, keepdim=True)
            return (x - mean) / torch.sqrt(variance + 1e-7) * self.gamma + self.beta

    def forward(m, x):
        y, _ = m[1](m[0](torch.log(x.abs() + 1e-3)))
        x = x * torch.sigmoid(m[2](y))
        encoded = m[3](x.transpose(1, 2)).transpose(1, 2)
        y, _ = m[5](m[4](encoded))
        return m[7]((encoded * torch.sigmoid(m[6](y))).transpose(1, 2)).transpose(1, 2)
    return Net(forward, Norm(16), nn.LSTM(16, 12, batch_first=True), nn.Linear(12, 16),
               nn.Conv1d(16, 20, 1, bias=False), Norm(20), nn.LSTM(20, 12, batch_first=True),
               nn.Linear(12, 20), nn.Conv1d(20, 16, 1, bias=False)), (1, 3, 16)


def conv_tas_net():
    """An encoder, blocks with PReLU and global layer norm, masks of two sources, overlap and add."""
    class Global(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.gain = nn.Parameter(torch.rand(1, size, 1) + 0.5)
            self.bias = nn.Parameter(torch.randn(1, size, 1) / 4)

        def forward(self, x):
            mean = x.mean(dim=(1, 2), keepdim=True)
            variance = torch.pow(x - mean, 2).mean(dim=(1, 2), keepdim=True)
            return self.gain * (x - mean) / torch.pow(variance + 1e-8, 0.5) + self.bias

    def forward(m, x):
        encoded = F.relu(m[0](x.unsqueeze(1)))
        y = m[2](m[1](encoded))
        y = y + m[4](m[3](y))
        masks = torch.sigmoid(m[5](y)).view(1, 2, 12, -1)
        sources = masks * encoded.unsqueeze(1)
        return m[6](sources.view(2, 12, -1)).view(1, 2, -1)
    block = nn.Sequential(nn.Conv1d(8, 12, 1), nn.PReLU(), Global(12),
                          nn.Conv1d(12, 12, 3, dilation=2, padding=2, groups=12), nn.PReLU(),
                          nn.GroupNorm(1, 12, eps=1e-8))
    return Net(forward, nn.Conv1d(1, 12, 8, 4, bias=False), nn.GroupNorm(1, 12), nn.Conv1d(12, 8, 1),
               block, nn.Conv1d(12, 8, 1), nn.Conv1d(8, 24, 1),
               nn.ConvTranspose1d(12, 1, 8, 4, bias=False)), (1, 64)


def wave_net():
    """Causal dilated convolutions, gates, skips; class of each step."""
    def forward(m, x):
        x, skips = m[0](x), 0
        for i, dilation in enumerate((1, 2, 4)):
            y = m[1 + 3 * i](F.pad(x, (dilation, 0)))
            a, b = y[:, :8], y[:, 8:]
            y = torch.tanh(a) * torch.sigmoid(b)
            skips = skips + m[2 + 3 * i](y)
            x = x + m[3 + 3 * i](y)
        return m[11](F.relu(m[10](F.relu(skips))))
    blocks = [one for dilation in (1, 2, 4) for one in (
        nn.Conv1d(8, 16, 2, dilation=dilation), nn.Conv1d(8, 8, 1), nn.Conv1d(8, 8, 1))]
    return Net(forward, nn.Conv1d(1, 8, 1), *blocks, nn.Conv1d(8, 8, 1), nn.Conv1d(8, 6, 1)), (1, 1, 16)


def fsmn():
    """Memory blocks: depthwise convolutions over the past, with a skip."""
    def forward(m, x):
        x = F.relu(m[0](x))
        for linear, memory in ((m[1], m[2]), (m[3], m[4])):
            p = linear(x).unsqueeze(1).permute(0, 3, 2, 1)
            y = memory(F.pad(p, (0, 0, 5, 0))) + p
            x = F.relu(y.permute(0, 3, 2, 1).squeeze(1))
        return F.softmax(m[5](x), -1)
    return Net(forward, nn.Linear(10, 12), nn.Linear(12, 8, bias=False),
               nn.Conv2d(8, 8, (6, 1), groups=8, bias=False), nn.Linear(8, 8, bias=False),
               nn.Conv2d(8, 8, (6, 1), groups=8, bias=False), nn.Linear(8, 4)), (1, 8, 10)


def quartz_net():
    def separable(inputs, outputs, width, dilation=1):
        return [nn.Conv1d(inputs, inputs, width, padding=dilation * (width // 2), dilation=dilation,
                          groups=inputs, bias=False),
                nn.Conv1d(inputs, outputs, 1, bias=False), nn.BatchNorm1d(outputs, eps=1e-3)]

    def forward(m, x):
        x = m[0](x)
        x = F.relu(m[1](x) + m[2](x))
        return F.log_softmax(m[3](x).transpose(1, 2), -1)
    return Net(forward, nn.Sequential(nn.Conv1d(8, 12, 5, 2, 2), nn.BatchNorm1d(12), nn.ReLU()),
               nn.Sequential(*separable(12, 16, 5), nn.ReLU(), *separable(16, 16, 5, 2)),
               nn.Sequential(nn.Conv1d(12, 16, 1), nn.BatchNorm1d(16)),
               nn.Conv1d(16, 6, 1)), (1, 8, 24)


def sinc_net():
    """Band-pass kernels computed from cutoff frequencies; max pools, layer norms over channels and
    time."""
    class Sinc(nn.Module):
        def __init__(self):
            super().__init__()
            self.low = nn.Parameter(torch.linspace(0.02, 0.3, 6)[:, None])
            self.band = nn.Parameter(torch.full((6, 1), 0.08))
            self.register_buffer("n", torch.arange(-8.0, 0).view(1, -1) * 2 * math.pi)
            self.register_buffer("window", torch.hamming_window(17)[:8])

        def forward(self, x):
            low = 0.01 + self.low.abs()
            high = torch.clamp(low + self.band.abs(), 0.01, 0.5)
            left = (torch.sin(high * self.n) - torch.sin(low * self.n)) / (self.n / 2) * self.window
            middle = 2 * (high - low)
            kernels = torch.cat([left, middle, torch.flip(left, dims=[1])], 1) / (2 * middle)
            return F.conv1d(x, kernels.view(6, 1, 17))
    return nn.Sequential(Sinc(), nn.MaxPool1d(2), nn.LayerNorm([6, 24]), nn.LeakyReLU(0.2),
                         nn.Conv1d(6, 8, 5), nn.MaxPool1d(2), nn.LayerNorm([8, 10]), nn.LeakyReLU(0.2),
                         nn.Flatten(), nn.Linear(80, 4)), (1, 1, 64)


def snake():
    """A vocoder's block: x + sin(a x)^2 / a, transposed and dilated convolutions with weight_norm."""
    class Snake(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.alpha = nn.Parameter(torch.rand(1, channels, 1) + 0.5)

        def forward(self, x):
            return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)

    def normed(layer):
        return torch.nn.utils.weight_norm(layer)

    def forward(m, x):
        x = m[1](m[0](x))
        x = x + m[5](m[4](m[3](m[2](x))))
        return torch.tanh(m[7](m[6](x)))
    return Net(forward, Snake(8), normed(nn.ConvTranspose1d(8, 6, 4, 2, 1)), Snake(6),
               normed(nn.Conv1d(6, 6, 3, padding=2, dilation=2)), Snake(6), normed(nn.Conv1d(6, 6, 1)),
               Snake(6), normed(nn.Conv1d(6, 1, 5, padding=2))), (1, 8, 8)


def tcn_weight_norm():
    """Bai's blocks: the old weight_norm, padding on both sides that a slice crops, dropout."""
    class Block(nn.Module):
        def __init__(self, inputs, outputs, dilation):
            super().__init__()
            self.crop = 2 * dilation
            self.a, self.b = (torch.nn.utils.weight_norm(nn.Conv1d(
                n, outputs, 3, padding=self.crop, dilation=dilation)) for n in (inputs, outputs))
            self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None
            self.dropout = nn.Dropout(0.2)

        def forward(self, x):
            y = x
            for conv in (self.a, self.b):
                y = self.dropout(F.relu(conv(y)[:, :, :-self.crop].contiguous()))
            return F.relu(y + (x if self.skip is None else self.skip(x)))

    def forward(m, x):
        return m[2](m[1](m[0](x))[:, :, -1])
    return Net(forward, Block(2, 8, 1), Block(8, 8, 2), nn.Linear(8, 3)), (1, 2, 20)


def sub_spectral():
    """BC-ResNet's normal block with sub-spectral normalization: a batch norm for each band."""
    class SubSpectral(nn.Module):
        def __init__(self, channels, bands):
            super().__init__()
            self.bands, self.norm = bands, nn.BatchNorm2d(channels * bands)

        def forward(self, x):
            n, c, h, w = x.shape
            x = x.view(n, c * self.bands, h // self.bands, w)
            return self.norm(x).view(n, c, h, w)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.f2 = nn.Sequential(nn.Conv2d(8, 8, (3, 1), padding="same", groups=8, bias=False),
                                    SubSpectral(8, 4))
            self.f1 = nn.Sequential(
                nn.Conv2d(8, 8, (1, 3), padding="same", dilation=(1, 2), groups=8, bias=False),
                nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 8, 1, bias=False), nn.Dropout2d(0.1))

        def forward(self, x):
            y = self.f2(x)
            return F.relu(self.f1(F.adaptive_avg_pool2d(y, (1, None))) + y + x)
    return nn.Sequential(nn.Conv2d(1, 8, 5, (2, 1), 2), nn.BatchNorm2d(8), nn.ReLU(), Block(), Block(),
                         nn.Conv2d(8, 8, (8, 1), groups=8), nn.Conv2d(8, 6, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten()), (1, 1, 16, 10)


def ecapa():
    """TDNN with squeeze-excite, attentive statistics and a unit vector."""
    def forward(m, x):
        x = F.relu(m[0](x))
        gate = torch.sigmoid(m[2](F.relu(m[1](x.mean(2, keepdim=True)))))
        x = x * gate + x
        weights = F.softmax(m[4](torch.tanh(m[3](x))), dim=2)
        mean = (x * weights).sum(2)
        deviation = torch.sqrt((((x ** 2) * weights).sum(2) - mean ** 2).clamp(min=1e-5))
        return F.normalize(m[6](m[5](torch.cat([mean, deviation], 1))), dim=1)
    return Net(forward, nn.Conv1d(8, 12, 5, padding=2), nn.Conv1d(12, 4, 1), nn.Conv1d(4, 12, 1),
               nn.Conv1d(12, 6, 1), nn.Conv1d(6, 12, 1), nn.BatchNorm1d(24),
               nn.Linear(24, 6)), (1, 8, 16)


def crnn():
    """Columns of an image through a bidirectional LSTM; classes of each column."""
    def forward(m, x):
        x = F.max_pool2d(F.relu(m[1](m[0](x))), (2, 1))
        x = F.relu(m[2](x)).squeeze(2).permute(2, 0, 1)
        return F.log_softmax(m[4](m[3](x)[0]), 2)
    return Net(forward, nn.Conv2d(1, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.Conv2d(6, 8, (2, 1)),
               nn.LSTM(8, 6, bidirectional=True), nn.Linear(12, 5)), (1, 1, 8, 12)


# ---- vision


def u_net_transposed():
    """Double convolutions with batch norms, transposed convolutions, cropped skips."""
    def double(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs),
                             nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, padding=1),
                             nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))

    def forward(m, x):
        a = m[0](x)
        b = m[1](F.max_pool2d(a, 2))
        y = m[2](b)
        high, wide = a.shape[2] - y.shape[2], a.shape[3] - y.shape[3]
        y = F.pad(y, [wide // 2, wide - wide // 2, high // 2, high - high // 2])
        return torch.sigmoid(m[4](m[3](torch.cat([a, y], 1))))
    return Net(forward, double(1, 4), double(4, 8),
               nn.ConvTranspose2d(8, 4, 3, 2, padding=1, output_padding=1), double(8, 4),
               nn.Conv2d(4, 1, 1)), (1, 1, 9, 10)


def u_net_bilinear():
    """Bilinear upsampling with aligned corners, to the size of the skip."""
    def forward(m, x):
        a = F.relu(m[0](x))
        b = F.relu(m[1](F.avg_pool2d(a, 2)))
        up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)(b)
        y = F.relu(m[2](torch.cat([up, a], 1)))
        return F.interpolate(m[3](y), size=(16, 16), mode="bilinear", align_corners=False)
    return Net(forward, nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1),
               nn.Conv2d(12, 4, 3, padding=1), nn.Conv2d(4, 2, 1)), (1, 3, 8, 8)


def blaze_double():
    """BlazeFace's double blocks."""
    class Double(nn.Module):
        def __init__(self, inputs, middle, outputs, stride):
            super().__init__()
            self.stride, self.more = stride, outputs - inputs
            self.a = nn.Sequential(nn.Conv2d(inputs, inputs, 5, stride, 2 if stride == 1 else 0,
                                             groups=inputs), nn.Conv2d(inputs, middle, 1),
                                   nn.BatchNorm2d(middle))
            self.b = nn.Sequential(nn.Conv2d(middle, middle, 5, 1, 2, groups=middle),
                                   nn.Conv2d(middle, outputs, 1), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = x
            if self.stride == 2:
                y, x = F.pad(x, (1, 2, 1, 2)), F.max_pool2d(x, 2)
            if self.more:
                x = F.pad(x, (0, 0, 0, 0, 0, self.more))
            return F.relu(self.b(F.relu(self.a(y))) + x)

    def forward(m, x):
        x = m[0](x)
        y = m[1](x)
        scores = torch.cat([one.permute(0, 2, 3, 1).reshape(1, -1, 1) for one in (m[2](x), m[3](y))], 1)
        boxes = torch.cat([one.permute(0, 2, 3, 1).reshape(1, -1, 16) for one in (m[4](x), m[5](y))], 1)
        return scores.clamp(-100, 100).sigmoid(), boxes
    return Net(forward, nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2), nn.ReLU(), Double(8, 4, 8, 1)),
               Double(8, 4, 12, 2), nn.Conv2d(8, 2, 1), nn.Conv2d(12, 3, 1), nn.Conv2d(8, 32, 1),
               nn.Conv2d(12, 48, 1)), (1, 3, 16, 16)


def efficient_net():
    """Inverted residuals with squeeze-excite by convolutions of pooled images, SiLU."""
    class Block(nn.Module):
        def __init__(self, size):
            super().__init__()
            wide = size * 2
            self.grow = nn.Sequential(nn.Conv2d(size, wide, 1, bias=False), nn.BatchNorm2d(wide),
                                      nn.SiLU(),
                                      nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
                                      nn.BatchNorm2d(wide), nn.SiLU(inplace=True))
            self.excite = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.SiLU(),
                                        nn.Conv2d(4, wide, 1), nn.Sigmoid())
            self.shrink = nn.Sequential(nn.Conv2d(wide, size, 1, bias=False), nn.BatchNorm2d(size))

        def forward(self, x):
            y = self.grow(x)
            return x + self.shrink(y * self.excite(y))
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), Block(8), Block(8),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)), (1, 3, 12, 12)


def mobile_net_v3():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16), nn.Hardswish(inplace=True),
                                   nn.Conv2d(16, 16, 5, 2, 2, groups=16), nn.BatchNorm2d(16),
                                   nn.Hardswish(inplace=True))
            self.fc = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 8, 1), nn.ReLU(),
                                    nn.Conv2d(8, 16, 1), nn.Hardsigmoid())
            self.b = nn.Sequential(nn.Conv2d(16, 12, 1), nn.BatchNorm2d(12))

        def forward(self, x):
            y = self.a(x)
            return self.b(self.fc(y) * y)
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), Block(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(12, 16), nn.Hardswish(), nn.Dropout(0.2),
                         nn.Linear(16, 4)), (1, 3, 16, 16)


def group_norm_net():
    def forward(m, x):
        x = F.relu(m[1](m[0](x)))
        x = F.relu(m[5](m[4](F.relu(m[3](m[2](x))))) + x)
        return m[6](x.mean((2, 3)))
    return Net(forward, nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8),
               nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(4, 8),
               nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(8, 8), nn.Linear(8, 3)), (1, 3, 8, 8)


def style_norm():
    """Instance norms, reflected borders, nearest upsampling: style transfer."""
    def forward(m, x):
        x = F.relu(m[1](m[0](F.pad(x, (2, 2, 2, 2), mode="reflect"))))
        x = F.interpolate(F.relu(m[3](m[2](x))), scale_factor=2)
        return m[4](x)
    return Net(forward, nn.Conv2d(3, 8, 5), nn.InstanceNorm2d(8, affine=True),
               nn.Conv2d(8, 8, 3, 2, 1), nn.InstanceNorm2d(8),
               nn.Conv2d(8, 3, 3, padding=1, padding_mode="reflect")), (1, 3, 8, 8)


def cbam():
    """Attention of channels by averages and maxima, and of places by a convolution of both."""
    def forward(m, x):
        x = F.relu(m[0](x))
        average, largest = F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1)
        x = x * torch.sigmoid(m[2](F.relu(m[1](average))) + m[2](F.relu(m[1](largest))))
        places = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)
        return (x * torch.sigmoid(m[3](places))).mean((2, 3))
    return Net(forward, nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1),
               nn.Conv2d(2, 1, 3, padding=1)), (1, 3, 8, 8)


def eca_net():
    """A convolution over the channels of pooled images, as in ECA-Net."""
    def forward(m, x):
        x = F.relu(m[0](x))
        y = F.adaptive_avg_pool2d(x, 1).squeeze(-1).transpose(-1, -2)
        y = m[1](y).transpose(-1, -2).unsqueeze(-1)
        return m[2]((x * y.sigmoid().expand_as(x)).flatten(1))
    return Net(forward, nn.Conv2d(3, 8, 3), nn.Conv1d(1, 1, 3, padding=1, bias=False),
               nn.Linear(8 * 36, 3)), (1, 3, 8, 8)


def coordinate_attention():
    def forward(m, x):
        x = F.relu(m[0](x))
        h, w = x.shape[2:]
        high = x.mean(3, keepdim=True)
        wide = x.mean(2, keepdim=True).permute(0, 1, 3, 2)
        y = F.hardswish(m[2](m[1](torch.cat([high, wide], 2))))
        high, wide = torch.split(y, [h, w], 2)
        return x * m[3](high).sigmoid() * m[4](wide.permute(0, 1, 3, 2)).sigmoid()
    return Net(forward, nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 8, 1),
               nn.Conv2d(4, 8, 1)), (1, 3, 8, 8)


def rep_vgg():
    """Three branches that are added; one of them is only a batch norm."""
    def forward(m, x):
        x = F.relu(m[0](x))
        return m[4](F.relu(m[1](x) + m[2](x) + m[3](x)).mean((2, 3)))
    return Net(forward, nn.Conv2d(3, 8, 3), nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False),
               nn.BatchNorm2d(8)), nn.Sequential(nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8)),
               nn.BatchNorm2d(8), nn.Linear(8, 3)), (1, 3, 8, 8)


def conv_mixer():
    class Residual(nn.Sequential):
        def forward(self, x):
            return super().forward(x) + x
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, 4), nn.GELU(), nn.BatchNorm2d(8),
        Residual(nn.Conv2d(8, 8, 3, groups=8, padding="same"), nn.GELU(), nn.BatchNorm2d(8)),
        nn.Conv2d(8, 8, 1), nn.GELU(), nn.BatchNorm2d(8), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(),
        nn.Linear(8, 3)), (1, 3, 16, 16)


def yolo():
    """Cross-stage parts, spatial pyramid pooling, upsampled features, anchors of boxes."""
    def forward(m, x):
        x = F.silu(m[0](x))
        a, b = m[1](x), m[2](x)
        x = m[3](torch.cat([a + F.silu(m[4](a)), b], 1))
        pools = [x]
        for _ in range(2):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        y = F.silu(m[5](torch.cat(pools, 1)))
        y = m[6](y).view(1, 2, 7, 8, 8).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        xy, wh, rest = y.split((2, 2, 3), 4)
        row, column = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
        xy = (xy * 2 - 0.5 + torch.stack([column, row], -1)) * 2
        wh = (wh * 2) ** 2 * torch.tensor([[3.0, 4.0], [6.0, 5.0]]).view(1, 2, 1, 1, 2)
        return torch.cat([xy, wh, rest], 4).view(1, -1, 7)
    return Net(forward, nn.Conv2d(3, 8, 6, 2, 2), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 4, 1),
               nn.Conv2d(8, 8, 1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(24, 8, 1),
               nn.Conv2d(8, 14, 1)), (1, 3, 16, 16)


def yu_net_heads():
    """Decoupled heads over two strides; products of probabilities under a root."""
    def forward(m, x):
        a = F.relu(m[0](x))
        b = F.relu(m[1](F.max_pool2d(a, 2)))
        found = []
        for one in (a + F.interpolate(b, size=a.shape[-2:], mode="nearest"), b):
            score, objectness, box = (m[i](one).permute(0, 2, 3, 1).flatten(1, 2) for i in (2, 3, 4))
            found.append((torch.sqrt(score.sigmoid() * objectness.sigmoid()), box))
        scores, boxes = zip(*found, strict=True)
        return torch.cat(scores, 1), torch.cat(boxes, 1)
    return Net(forward, nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 1, 1),
               nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)), (1, 3, 16, 16)


def heat_map():
    """Coordinates of joints: the expected position under softmax over a heat map."""
    def forward(m, x):
        y = m[1](F.relu(m[0](x)))
        weights = F.softmax(y.flatten(2), -1).view_as(y)
        columns = (weights.sum(2) * torch.linspace(0, 1, 8)).sum(-1)
        rows = (weights.sum(3) * torch.linspace(0, 1, 8)).sum(-1)
        return torch.stack([columns, rows], -1)
    return Net(forward, nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)), (1, 3, 8, 8)


def attention_gate():
    """Attention U-Net's gate: a coarser signal weights the skips."""
    def forward(m, x):
        skip = F.relu(m[0](x))
        gate = F.relu(m[1](F.max_pool2d(skip, 2)))
        weights = torch.sigmoid(m[4](F.relu(m[2](gate) + m[3](skip))))
        return m[5](skip * F.interpolate(weights, scale_factor=2, mode="bilinear"))
    return Net(forward, nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1),
               nn.Conv2d(8, 4, 1), nn.Conv2d(8, 4, 2, 2), nn.Conv2d(4, 1, 1),
               nn.Conv2d(8, 2, 1)), (1, 3, 8, 8)


# ---- series, graphs, policies


def eeg_net_constrained():
    """EEGNet with max-norms computed in forward, and separable convolutions with long kernels."""
    def forward(m, x):
        x = m[1](m[0](x.unsqueeze(1)))
        weight = m[2].weight
        weight = weight * (1 / weight.flatten(1).norm(dim=1).clamp(min=1)).view(-1, 1, 1, 1)
        x = F.avg_pool2d(F.elu(m[3](F.conv2d(x, weight, groups=4))), (1, 4))
        x = F.avg_pool2d(F.elu(m[6](m[5](m[4](x)))), (1, 8))
        return F.log_softmax(m[7](x.flatten(1)), 1)
    return Net(forward, nn.Conv2d(1, 4, (1, 16), padding=(0, 8), bias=False), nn.BatchNorm2d(4),
               nn.Conv2d(4, 8, (6, 1), groups=4, bias=False), nn.BatchNorm2d(8),
               nn.Conv2d(8, 8, (1, 8), padding=(0, 4), groups=8, bias=False),
               nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), nn.Linear(16, 3)), (1, 6, 64)


def ecg_net():
    """A residual net of sequences with squeeze-excite."""
    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.a = nn.Sequential(nn.Conv1d(inputs, outputs, 7, stride, 3, bias=False),
                                   nn.BatchNorm1d(outputs), nn.ReLU(inplace=True), nn.Dropout(0.2),
                                   nn.Conv1d(outputs, outputs, 7, 1, 3, bias=False),
                                   nn.BatchNorm1d(outputs))
            self.fc = nn.Sequential(nn.Linear(outputs, 4), nn.ReLU(), nn.Linear(4, outputs),
                                    nn.Sigmoid())
            self.skip = nn.Sequential(nn.Conv1d(inputs, outputs, 1, stride, bias=False),
                                      nn.BatchNorm1d(outputs))

        def forward(self, x):
            y = self.a(x)
            gate = self.fc(F.adaptive_avg_pool1d(y, 1).view(y.shape[0], -1))
            return F.relu(y * gate.view(y.shape[0], -1, 1).expand_as(y) + self.skip(x))

    def forward(m, x):
        x = m[2](m[1](F.max_pool1d(m[0](x), 3, 2, 1)))
        return m[3](torch.cat([F.adaptive_max_pool1d(x, 1), F.adaptive_avg_pool1d(x, 1)], 1).flatten(1))
    return Net(forward, nn.Conv1d(2, 8, 7, 2, 3), Block(8, 8, 1), Block(8, 12, 2),
               nn.Linear(24, 5)), (1, 2, 64)


def inception_time():
    def forward(m, x):
        for i in (0, 5):
            y = m[i](x)
            parts = [m[i + k](y) for k in (1, 2, 3)] + [m[i + 4](F.max_pool1d(x, 3, 1, 1))]
            x = F.relu(m[10](torch.cat(parts, 1)))
        return m[11](x.mean(-1))
    blocks = [one for inputs in (2, 16) for one in (
        nn.Conv1d(inputs, 4, 1, bias=False),
        *(nn.Conv1d(4, 4, k, padding="same", bias=False) for k in (9, 5, 3)), nn.Conv1d(inputs, 4, 1))]
    return Net(forward, *blocks, nn.BatchNorm1d(16), nn.Linear(16, 3)), (1, 2, 24)


def deep_conv_lstm():
    """Activities from sensors: convolutions over time alone, two layers of LSTM, the last step."""
    def forward(m, x):
        x = F.relu(m[1](F.relu(m[0](x.unsqueeze(1)))))
        x = x.permute(0, 2, 1, 3).flatten(2)
        return m[3](m[2](x)[0][:, -1, :])
    return Net(forward, nn.Conv2d(1, 6, (5, 1)), nn.Conv2d(6, 6, (5, 1)),
               nn.LSTM(18, 8, 2, batch_first=True), nn.Linear(8, 4)), (1, 16, 3)


def d_linear_padded():
    """A moving average behind replicated borders."""
    def forward(m, x):
        x = x.permute(0, 2, 1)
        trend = F.avg_pool1d(F.pad(x, (2, 2), mode="replicate"), 5, stride=1)
        return (m[0](trend) + m[1](x - trend)).permute(0, 2, 1)
    return Net(forward, nn.Linear(24, 6), nn.Linear(24, 6)), (1, 24, 3)


def reflected():
    """Reflected borders, a kernel of averages, residuals."""
    def forward(m, x):
        smooth = F.conv1d(F.pad(x, (2, 2), mode="reflect"), m.kernel, groups=3)
        return m[0](smooth.flatten(1)) + m[1]((x - smooth).flatten(1))
    net = Net(forward, nn.Linear(48, 4), nn.Linear(48, 4))
    net.layers.kernel = nn.Parameter(torch.full((3, 1, 5), 0.2), requires_grad=False)
    return net, (1, 3, 16)


def n_hits():
    """Blocks that pool by different rates, and interpolated forecasts."""
    def forward(m, x):
        forecast = 0
        for i, rate in ((0, 4), (2, 2)):
            y = F.max_pool1d(x.unsqueeze(1), rate).squeeze(1)
            back, front = m[i + 1](F.relu(m[i](y))).split([24, 12 // rate], -1)
            x = x - back
            forecast = forecast + F.interpolate(front.unsqueeze(1), size=12, mode="linear").squeeze(1)
        return forecast
    return Net(forward, nn.Linear(6, 16), nn.Linear(16, 27), nn.Linear(12, 16),
               nn.Linear(16, 30)), (1, 24)


def times_net():
    """A series as an image of periods, and back, as in TimesNet."""
    def forward(m, x):
        y = x.reshape(1, 4, 6, 8).permute(0, 3, 1, 2)
        y = m[1](F.gelu(m[0](y)))
        return m[2](x + y.permute(0, 2, 3, 1).reshape(1, -1, 8))
    return Net(forward, nn.Conv2d(8, 12, 3, padding=1), nn.Conv2d(12, 8, 3, padding=1),
               nn.Linear(8, 2)), (1, 24, 8)


def b_splines():
    """KAN with B-splines of the third degree, by the recursion of Cox and de Boor."""
    class Layer(nn.Module):
        def __init__(self, inputs, outputs, size=3, order=3):
            super().__init__()
            self.order = order
            step = 2 / size
            self.register_buffer("grid", (torch.arange(-order, size + order + 1) * step - 1).expand(
                inputs, -1).contiguous())
            self.base = nn.Parameter(torch.randn(outputs, inputs) / 2)
            self.spline = nn.Parameter(torch.randn(outputs, inputs, size + order) / 2)

        def forward(self, x):
            grid, given = self.grid, x.unsqueeze(-1)
            bases = ((given >= grid[:, :-1]) & (given < grid[:, 1:])).to(x.dtype)
            for k in range(1, self.order + 1):
                bases = ((given - grid[:, :-(k + 1)]) / (grid[:, k:-1] - grid[:, :-(k + 1)])
                         * bases[:, :, :-1] + (grid[:, k + 1:] - given)
                         / (grid[:, k + 1:] - grid[:, 1:-k]) * bases[:, :, 1:])
            return F.linear(F.silu(x), self.base) + F.linear(
                bases.view(x.shape[0], -1), self.spline.view(self.spline.shape[0], -1))
    return nn.Sequential(nn.Tanh(), Layer(4, 6), nn.Tanh(), Layer(6, 2)), (1, 4)


def graph_network():
    """GCN: the adjacency is an input, normalized by the degrees."""
    def forward(m, x, a):
        a = a + torch.eye(6)
        degree = a.sum(-1).pow(-0.5)
        a = degree.unsqueeze(-1) * a * degree.unsqueeze(-2)
        x = F.relu(a @ m[0](x))
        return m[2]((a @ m[1](x)).mean(1))
    return Net(forward, nn.Linear(5, 8), nn.Linear(8, 8), nn.Linear(8, 2)), lambda: (
        torch.randn(1, 6, 5), (torch.rand(1, 6, 6) > 0.5).float())


def graph_attention():
    """GAT: scores of pairs by leaky ReLU, masked by the adjacency."""
    def forward(m, x):
        h = m[0](x)
        scores = F.leaky_relu(m[1](h) + m[2](h).transpose(1, 2), 0.2)
        scores = torch.where(m.adjacency > 0, scores, torch.full_like(scores, -9e15))
        return F.elu(F.softmax(scores, -1) @ h)
    net = Net(forward, nn.Linear(5, 8, bias=False), nn.Linear(8, 1), nn.Linear(8, 1))
    net.layers.adjacency = nn.Parameter((torch.rand(6, 6) > 0.5).float() + torch.eye(6),
                                        requires_grad=False)
    return net, (1, 6, 5)


def skeleton_graph():
    """ST-GCN: joints by a product with each part of the adjacency, convolutions over time."""
    def forward(m, x):
        y = m[0](x)
        n, kc, t, v = y.shape
        y = torch.einsum("nkctv,kvw->nctw", y.view(n, 3, kc // 3, t, v), m.adjacency * m.importance)
        return m[3]((F.relu(m[2](F.relu(m[1](y.contiguous()))) + m[4](x))).mean((2, 3)))
    net = Net(forward, nn.Conv2d(3, 24, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, (5, 1), padding=(2, 0)),
              nn.Linear(8, 3), nn.Conv2d(3, 8, 1))
    net.layers.adjacency = nn.Parameter(torch.rand(3, 5, 5), requires_grad=False)
    net.layers.importance = nn.Parameter(torch.rand(3, 5, 5))
    return net, (1, 3, 8, 5)


def point_net():
    """Points that a computed matrix rotates, shared layers, the maximum over points."""
    def forward(m, x):
        y = F.relu(m[0](x)).max(2)[0]
        turn = m[1](y).view(-1, 3, 3) + torch.eye(3)
        x = torch.bmm(x.transpose(2, 1), turn).transpose(2, 1)
        x = F.relu(m[3](m[2](x)))
        return F.log_softmax(m[4](torch.max(x, 2, keepdim=True)[0].view(-1, 16)), -1)
    return Net(forward, nn.Conv1d(3, 12, 1), nn.Linear(12, 9), nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16),
               nn.Linear(16, 4)), (1, 3, 12)


def actor_critic():
    """Layer norms and tanh, a normalized and clipped observation, a value and a mean."""
    def forward(m, x):
        x = ((x - m.mean) / torch.sqrt(m.variance + 1e-8)).clamp(-5, 5)
        x = torch.tanh(m[1](m[0](x)))
        x = torch.tanh(m[3](m[2](x)))
        return torch.tanh(m[4](x)), m[5](x).squeeze(-1)
    net = Net(forward, nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 16), nn.LayerNorm(16),
              nn.Linear(16, 2), nn.Linear(16, 1))
    net.layers.mean = nn.Parameter(torch.randn(8), requires_grad=False)
    net.layers.variance = nn.Parameter(torch.rand(8) + 0.5, requires_grad=False)
    return net, (1, 8)


def dueling():
    """Atari's convolutions with two streams."""
    def forward(m, x):
        x = F.relu(m[1](F.relu(m[0](x / 255.0)))).flatten(1)
        value, advantage = m[3](F.relu(m[2](x))), m[5](F.relu(m[4](x)))
        return value + advantage - advantage.mean(1, keepdim=True)
    return Net(forward, nn.Conv2d(2, 8, 4, 2), nn.Conv2d(8, 8, 3), nn.Linear(200, 12), nn.Linear(12, 1),
               nn.Linear(200, 12), nn.Linear(12, 4)), lambda: (torch.rand(1, 2, 16, 16) * 255,)


def siren():
    def forward(m, x):
        for i in range(2):
            x = torch.sin(3.0 * m[i](x))
        return m[2](x)
    return Net(forward, nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)), (1, 2)


def real_nvp():
    """A coupling layer: halves that scale and shift each other, and the determinant."""
    def forward(m, x):
        a, b = x.chunk(2, -1)
        scale = torch.tanh(m[1](F.relu(m[0](a))))
        b = b * torch.exp(scale) + m[3](F.relu(m[2](a)))
        return torch.cat([b, a], -1), scale.sum(-1)
    return Net(forward, nn.Linear(4, 12), nn.Linear(12, 4), nn.Linear(4, 12), nn.Linear(12, 4)), (1, 8)


def conv_vae():
    """A variational autoencoder of images; in eval the latent is its mean."""
    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.LeakyReLU(),
                                         nn.Conv2d(4, 8, 3, 2, 1), nn.LeakyReLU(), nn.Flatten())
            self.mean, self.log, self.up = nn.Linear(32, 4), nn.Linear(32, 4), nn.Linear(4, 32)
            self.decoder = nn.Sequential(nn.Unflatten(1, (8, 2, 2)), nn.ConvTranspose2d(8, 4, 4, 2, 1),
                                         nn.LeakyReLU(), nn.ConvTranspose2d(4, 1, 4, 2, 1),
                                         nn.Sigmoid())

        def forward(self, x):
            x = self.encoder(x)
            mean, log = self.mean(x), self.log(x)
            z = mean + torch.randn_like(log) * (0.5 * log).exp() if self.training else mean
            return self.decoder(self.up(z)), mean, log
    return Vae(), (1, 1, 8, 8)


def siamese():
    """Two inputs through one network; their cosine and distance."""
    def forward(m, a, b):
        a, b = (F.normalize(m[1](F.relu(m[0](one)).mean((2, 3))), p=2, dim=1) for one in (a, b))
        return (a * b).sum(1), F.pairwise_distance(a, b)
    return Net(forward, nn.Conv2d(1, 8, 3), nn.Linear(8, 6)), lambda: (
        torch.randn(1, 1, 8, 8), torch.randn(1, 1, 8, 8))


def anomaly():
    """A dense autoencoder with batch norms and its mean squared error."""
    def forward(m, x):
        y = m[4](F.relu(m[3](m[2](F.relu(m[1](m[0](x)))))))
        return y, ((y - x) ** 2).mean(1)
    return Net(forward, nn.Linear(16, 12), nn.BatchNorm1d(12), nn.Linear(12, 4), nn.Linear(4, 12),
               nn.Linear(12, 16)), (1, 16)


def capsules():
    """Squashed vectors and a step of routing."""
    def forward(m, x):
        u = m[1](F.relu(m[0](x))).view(1, 8, -1).transpose(1, 2)
        squared = (u ** 2).sum(-1, keepdim=True)
        u = squared / (1 + squared) * u / torch.sqrt(squared + 1e-8)
        votes = torch.einsum("bid,dje->bije", u, m.weights)
        coefficients = votes.sum((1, 3), keepdim=True).softmax(2)
        return (coefficients * votes).sum(1).norm(dim=-1)
    net = Net(forward, nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3, 2))
    net.layers.weights = nn.Parameter(torch.randn(8, 3, 4) / 2)
    return net, (1, 1, 8, 8)


def tabular():
    """Embeddings of categories, and normalized numbers."""
    def forward(m, categories, numbers):
        x = torch.cat([m[0](categories[:, 0]), m[1](categories[:, 1]), m[2](numbers)], 1)
        return m[4](F.relu(m[3](x)))
    return Net(forward, nn.Embedding(5, 4), nn.Embedding(7, 4), nn.BatchNorm1d(6), nn.Linear(14, 16),
               nn.Linear(16, 2)), lambda: (torch.randint(0, 5, (1, 2)), torch.randn(1, 6))


def sequence_to_sequence():
    """An encoder and a decoder built of cells; the decoder attends to the encoder."""
    def forward(m, x):
        memory, h = m[0](x)
        h, y, found = h[0], x[:, -1], []
        for _ in range(2):
            h = m[1](y, h)
            weights = F.softmax((memory @ h.unsqueeze(-1)).squeeze(-1), -1)
            y = m[2](torch.cat([h, (weights.unsqueeze(1) @ memory).squeeze(1)], 1))
            found.append(y)
        return torch.stack(found, 1)
    return Net(forward, nn.GRU(3, 8, batch_first=True), nn.GRUCell(3, 8), nn.Linear(16, 3)), (1, 6, 3)


def selective_scan():
    """Mamba: a causal convolution, gates, a state that decays by a computed step."""
    def forward(m, x):
        x, z = m[0](x).chunk(2, -1)
        x = F.silu(m[1](x.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        b, c, step = m[2](x).split([4, 4, 1], -1)
        step = F.softplus(m[3](step))
        state, found = torch.zeros(x.shape[0], 8, 4), []
        for t in range(x.shape[1]):
            decay = torch.exp(step[:, t, :, None] * -torch.exp(m.log_a))
            state = decay * state + (step[:, t] * x[:, t])[..., None] * b[:, t, None]
            found.append((state * c[:, t, None]).sum(-1))
        y = torch.stack(found, 1) + x * m.d
        return m[4](y * F.silu(z))
    net = Net(forward, nn.Linear(6, 16), nn.Conv1d(8, 8, 3, padding=2, groups=8), nn.Linear(8, 9),
              nn.Linear(1, 8), nn.Linear(8, 6))
    net.layers.log_a = nn.Parameter(torch.log(torch.arange(1.0, 5)).repeat(8, 1))
    net.layers.d = nn.Parameter(torch.ones(8))
    return net, (1, 5, 6)


ZOO = (vision_transformer, attention_module, tiny_llama, token_model, swin, mobile_vit, mlp_mixer,
       patch_tst_instance, silero, gtcrn, gru_denoiser, dtln, conv_tas_net, wave_net, fsmn, quartz_net,
       sinc_net, snake, tcn_weight_norm, sub_spectral, ecapa, crnn, u_net_transposed, u_net_bilinear,
       blaze_double, efficient_net, mobile_net_v3, group_norm_net, style_norm, cbam, eca_net,
       coordinate_attention, rep_vgg, conv_mixer, yolo, yu_net_heads, heat_map, attention_gate,
       eeg_net_constrained, ecg_net, inception_time, deep_conv_lstm, d_linear_padded, reflected, n_hits,
       times_net, b_splines, graph_network, graph_attention, skeleton_graph, point_net, actor_critic,
       dueling, siren, real_nvp, conv_vae, siamese, anomaly, capsules, tabular, sequence_to_sequence,
       selective_scan)


def made(make):
    torch.manual_seed(0)
    return make()


@pytest.mark.parametrize("make", ZOO, ids=lambda make: make.__name__)
def test_float32_computes_the_numbers_of_pytorch(make):
    module, given = made(make)
    samples = samples_of(module, given)
    found = picotorch.export.export(module, samples[0], evaluate=samples).report
    assert found.checked == "executed"
    assert all(output.largest <= 1e-4 * output.magnitude for output in found.outputs)


@pytest.mark.parametrize("make", ZOO, ids=lambda make: make.__name__)
def test_int8_is_as_near_pytorch_as_fake_quantization(make):
    found = exported_module(*made(make))
    assert found.checked == "executed"
    below, _ = report.poor_layers(found.layers)
    assert not below
    assert all(output.sqnr > MIN_SQNR for output in found.outputs)
    assert found.int8.macs >= MIN_SHARE * found.int8.all_macs
