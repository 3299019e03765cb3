"""Define fixtures of quantized tensors around float operators, by torch.ops.quantized_decomposed,
without a delegate."""

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401, defines embeddings
import executorch.kernels.quantized  # noqa: F401, registers the kernels with PyTorch
import torch
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn

_OPS = torch.ops.quantized_decomposed
_DTYPES = (torch.int8, torch.uint8, torch.int16, torch.int32)


def _quantize(x, scale, zero_point, dtype=torch.int8):
    limits = torch.iinfo(dtype)
    return _OPS.quantize_per_tensor(x, scale, zero_point, limits.min, limits.max, dtype)


def _dequantize(q, scale, zero_point):
    limits = torch.iinfo(q.dtype)
    return _OPS.dequantize_per_tensor(q, scale, zero_point, limits.min, limits.max, q.dtype)


def _quantize_and_back(x):
    quantized = [_quantize(x, 0.05, 3, dtype) for dtype in _DTYPES]
    return *quantized, *(_dequantize(q, 0.05, 3) for q in quantized)


@fixture
def quantize_per_tensor(data: Data) -> Model:
    """To int8, uint8, int16 and int32 and back: halves, values beyond the limits, a tail of one."""
    x = data.floats(3, 11, low=-10, high=10)
    x[0, :6] = torch.tensor([0.025, 0.075, -0.025, -0.075, 1e6, -1e6])
    return Model(Function(_quantize_and_back), (x,))


class _QuantizedLinear(nn.Module):
    """A linear layer with quantized input and output, and an int8 weight with a scale for each row."""

    def __init__(self, data: Data, columns: int, rows: int) -> None:
        super().__init__()
        weight = data.integers(rows, columns, low=-127, high=128).to(torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scales", data.floats(rows, low=0.01, high=0.05).double())
        self.register_buffer("zero_points", data.integers(rows, low=-3, high=4))
        self.register_buffer("bias", data.floats(rows))

    def forward(self, x):
        x = _dequantize(_quantize(x, 0.02, -7), 0.02, -7)
        weight = _OPS.dequantize_per_channel(
            self.weight, self.scales, self.zero_points, 0, -128, 127, torch.int8
        )
        y = torch.nn.functional.linear(x, weight, self.bias)
        return _quantize(y, 0.3, 5)


@fixture
def quantized_linear(data: Data) -> Model:
    """A linear layer between quantized tensors, its weight dequantized per channel."""
    return Model(_QuantizedLinear(data, 13, 6), (data.floats(2, 13),))


def _dynamic(x):
    scale, zero_point = _OPS.choose_qparams.tensor(x, -128, 127, 1.1920929e-07, torch.int8)
    q = _OPS.quantize_per_tensor.tensor(x, scale, zero_point, -128, 127, torch.int8)
    back = _OPS.dequantize_per_tensor.tensor(q, scale, zero_point, -128, 127, torch.int8)
    scales, points = _OPS.choose_qparams_per_token_asymmetric(x, torch.int8)
    tokens = _OPS.quantize_per_token(x, scales, points, -128, 127, torch.int8)
    rows = _OPS.dequantize_per_token(tokens, scales, points, -128, 127, torch.int8, torch.float32)
    return scale, zero_point, q, back, scales, points, tokens, rows


@fixture
def quantized_dynamically(data: Data) -> Model:
    """Parameters chosen while it runs, for the tensor and for each row."""
    return Model(Function(_dynamic), (data.floats(3, 9, low=-2, high=5),))


class _QuantizedEmbedding(nn.Module):
    """Tables of 8, 4 and 2 bits, with two groups of columns, each with a scale and a zero point."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        for bits in (8, 4, 2):
            self.register_buffer(f"weight{bits}", data.integers(5, bits, low=0, high=256).byte())
        self.register_buffer("scales", data.floats(5, 2, low=0.1, high=0.5))
        self.register_buffer("zero_points", data.floats(5, 2))

    def forward(self, indices):
        parameters = self.scales, self.zero_points
        return (
            _OPS.embedding_byte(self.weight8, *parameters, 0, 255, indices),
            _OPS.embedding_4bit(self.weight4, *parameters, -8, 7, indices),
            _OPS.embedding_2bit(self.weight2, *parameters, -2, 1, indices),
        )


@fixture
def quantized_embedding(data: Data) -> Model:
    """Rows of quantized tables."""
    return Model(_QuantizedEmbedding(data), (data.integers(2, 3, low=0, high=5),))


def _quantize_channels(x, scales, zero_points):
    rows = _OPS.quantize_per_channel(x, scales[:3], zero_points[:3], 0, -128, 127, torch.int8)
    columns = _OPS.quantize_per_channel(x, scales, zero_points, 1, 0, 255, torch.uint8)
    return rows, columns


@fixture
def quantize_per_channel(data: Data) -> Model:
    """A scale and zero point for each row, and for each column."""
    scales, zero_points = data.floats(7, low=0.01, high=0.1).double(), data.integers(7)
    return Model(Function(_quantize_channels), (data.floats(3, 7), scales, zero_points))


@fixture
def quantize_special_values(data: Data) -> Model:
    """NaN, infinities and what no integer holds, in blocks and alone.

    ExecuTorch makes quant_min of all of them on x86.
    """
    special = [float("nan"), float("inf"), -float("inf"), 3e9, -3e9, 1e38, -0.0, 1e-45, 127.5]
    x = torch.cat([torch.tensor(special), data.floats(5, low=-200, high=200)])
    return Model(
        Function(lambda x: tuple(_quantize(x, 1.0, 0, dtype) for dtype in _DTYPES[:3])),
        (x,),
        executorch_fails=True,
    )
