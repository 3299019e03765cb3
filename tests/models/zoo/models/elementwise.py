"""Pointwise arithmetic, comparison and logic."""

import torch
from models.zoo.registry import Data, Function, Model, fixture


@fixture
def add_broadcast(data: Data) -> Model:
    """aten::add with each side broadcast, and with alpha."""
    return Model(
        Function(
            lambda x, row, column: (x + row, column + x, row + column, torch.add(x, row, alpha=2.5))
        ),
        (data.floats(2, 3, 4), data.floats(4), data.floats(3, 1)),
    )


@fixture
def sub_broadcast(data: Data) -> Model:
    """aten::sub with broadcast, alpha and a 0-d tensor."""
    return Model(
        Function(lambda x, row, point: (x - row, point - x, torch.sub(row, x, alpha=3))),
        (data.floats(2, 3), data.floats(1, 3), data.floats()),
    )


@fixture
def mul_broadcast(data: Data) -> Model:
    """aten::mul of the same shape, broadcast and by a 0-d tensor."""
    return Model(
        Function(lambda x, row, point: (x * x, x * row, x * point)),
        (data.floats(2, 3), data.floats(3), data.floats()),
    )


@fixture
def div_broadcast(data: Data) -> Model:
    """aten::div, broadcast, by zero and of integers (a float result)."""
    return Model(
        Function(lambda x, row, n: (x / row, n / (n * n + 1), x / (row * 0))),
        (data.floats(2, 3), data.floats(3, low=1, high=2), data.integers(2, 3)),
    )


@fixture
def div_rounding(data: Data) -> Model:
    """aten::div with rounding modes floor and trunc, of floats and of integers."""

    def divide(x, y, n, m):
        modes = ("floor", "trunc")
        floats = [torch.div(x, y, rounding_mode=mode) for mode in modes]
        return (*floats, *[torch.div(n, m, rounding_mode=mode) for mode in modes])

    inputs = (data.floats(6, low=-9, high=9), data.floats(6, low=1, high=3))
    return Model(Function(divide), (*inputs, data.integers(6), data.integers(6, low=-5, high=-1)))


@fixture
def scalar_arithmetic(data: Data) -> Model:
    """Arithmetic of a float tensor with Python numbers on either side."""
    return Model(
        Function(lambda x: (x + 1.5, x - 2, 3 - x, x * -0.5, x / 4, 1.0 / x)),
        (data.floats(5, low=0.5, high=2),),
    )


@fixture
def integer_arithmetic(data: Data) -> Model:
    """add, sub and mul of int32 and of int64."""
    return Model(
        Function(lambda n, m, k: (n + m, n - m, n * m, k + k, k - 7, k * 3)),
        (data.integers(5, dtype="int32"), data.integers(5, dtype="int32"), data.integers(5)),
    )


@fixture
def type_promotion(data: Data) -> Model:
    """Mixed operands: int with float, bool with int, uint8 with int8, int with a float scalar."""
    return Model(
        Function(lambda x, n, b, u, c: (x + n, b + n, u * c, n * 1.5, b * x, u + 300)),
        (
            data.floats(4),
            data.integers(4, dtype="int32"),
            data.booleans(4),
            data.integers(4, low=0, high=16, dtype="uint8"),
            data.integers(4, low=-8, high=8, dtype="int8"),
        ),
    )


@fixture
def exp_log(data: Data) -> Model:
    """aten::exp and aten::log."""
    return Model(
        Function(lambda x: (torch.exp(x), torch.log(x))),
        (data.floats(8, low=0.01, high=20),),
        further=(
            (
                torch.tensor(
                    [0.0, -0.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e-42, 90.0]
                ),
            ),
        ),
    )


@fixture
def square_roots(data: Data) -> Model:
    """aten::sqrt, aten::rsqrt and aten::reciprocal."""
    return Model(
        Function(lambda x: (torch.sqrt(x), torch.rsqrt(x), torch.reciprocal(x))),
        (data.floats(8, low=0.01, high=20),),
        further=(
            (
                torch.tensor(
                    [0.0, -0.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e-42, 4.0]
                ),
            ),
        ),
    )


@fixture
def signs(data: Data) -> Model:
    """aten::abs, aten::neg and aten::sign, of floats and of integers."""
    return Model(
        Function(lambda x, n: (x.abs(), -x, torch.sign(x), n.abs(), -n)),
        (data.floats(6), data.integers(6, dtype="int32")),
    )


@fixture
def rounding(data: Data) -> Model:
    """aten::floor, ceil, round (half to even) and trunc."""
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 2.4999998])
    return Model(
        Function(lambda x: (x.floor(), x.ceil(), x.round(), x.trunc())),
        (data.floats(6, low=-9, high=9),),
        further=((values,),),
    )


@fixture
def trigonometry(data: Data) -> Model:
    """aten::sin, aten::cos and aten::erf."""
    return Model(
        Function(lambda x: (torch.sin(x), torch.cos(x), torch.erf(x))),
        (data.floats(8, low=-7, high=7),),
    )


@fixture
def powers(data: Data) -> Model:
    """aten::pow with the exponents 2, 0.5, 3 and -1, and with a tensor."""
    return Model(
        Function(lambda x, y: (x**2, x**0.5, x**3, x**-1, x**y)),
        (data.floats(5, low=0.1, high=3), data.floats(5, low=-2, high=2)),
    )


@fixture
def extrema(data: Data) -> Model:
    """aten::maximum and aten::minimum, broadcast, with NaN, and of integers."""
    nan = torch.tensor([float("nan"), 1.0, 2.0])
    return Model(
        Function(
            lambda x, y, n: (torch.maximum(x, y), torch.minimum(x, y), torch.maximum(n, n.flip(0)))
        ),
        (data.floats(2, 3), data.floats(3), data.integers(3)),
        further=((data.floats(2, 3), nan, data.integers(3)),),
    )


@fixture
def comparisons(data: Data) -> Model:
    """eq, ne, lt, le, gt and ge between tensors and with a number."""
    return Model(
        Function(
            lambda n, m: (
                n == m,
                n != m,
                n < m,
                n <= m,
                n > m,
                n >= m,
                n == 1,
                n != 1,
                n < 1,
                n <= 1,
                n > 1,
                n >= 1,
            )
        ),
        (data.integers(6, low=0, high=3).float(), data.integers(6, low=0, high=3).float()),
    )


@fixture
def logic(data: Data) -> Model:
    """logical_and, or, xor, not of booleans, and the bitwise operators of int32."""
    return Model(
        Function(
            lambda a, b, n, m: (
                torch.logical_and(a, b),
                torch.logical_or(a, b),
                torch.logical_xor(a, b),
                torch.logical_not(a),
                n & m,
                n | m,
                n ^ m,
                ~n,
            )
        ),
        (
            data.booleans(6),
            data.booleans(6),
            data.integers(6, dtype="int32"),
            data.integers(6, dtype="int32"),
        ),
    )


@fixture
def where(data: Data) -> Model:
    """aten::where, same shape, broadcast and with a number."""
    return Model(
        Function(
            lambda c, x, y: (torch.where(c, x, x * 2), torch.where(c, x, y), torch.where(c, x, 0.0))
        ),
        (data.booleans(2, 3), data.floats(2, 3), data.floats(3)),
    )
