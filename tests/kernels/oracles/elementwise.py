"""Define oracles of the operators of one, two and three operands, which work element by element."""

import math

import numpy as np
from support.pytorch_dtypes import DTYPES, INTEGERS, INTEGRAL, floating, result_dtype
from test_elementwise_binary import PREDICATES, SAME, add, trunc_divide
from test_elementwise_unary import OPERATORS, clamp, rounded

from .sample import Sample, oracle

NUMBERS = [d for d in DTYPES if d != "bool"]
UNARY_FLOAT = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh,
    "erf": np.vectorize(math.erf, otypes=["float64"]), "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sin": np.sin,
    "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh}
ULPS = {"rtol": 6e-7, "atol": 2e-44}  # 5 ulps
DOUBLE_ULPS = {"rtol": 1.2e-15, "atol": 3e-323}
FLOATS = ["float32", "float32", "float64"]


def ulps(dtype):
    return DOUBLE_ULPS if dtype == "float64" else ULPS


def name_of(operator):
    return operator.removeprefix("aten::")


def operand(draw, dtypes, shape=None):
    return draw.values(draw.shape() if shape is None else shape, draw.pick(*dtypes))


@oracle(*(f"aten::{name}.out" for name in OPERATORS))
def exact(draw, operator):
    function, dtypes, result = OPERATORS[name_of(operator).removesuffix(".out")]
    x = operand(draw, dtypes)
    result = {None: x.dtype, "floating": floating(str(x.dtype))}.get(result, result)
    return Sample([draw.tensor(x)], np.asarray(function(x), result))


@oracle(*(f"aten::{name}.out" for name in UNARY_FLOAT))
def of_floats(draw, operator):
    """Convert integers to float32 first. Angles are of a few turns."""
    name = name_of(operator).removesuffix(".out")
    x = operand(draw, [*INTEGRAL, *FLOATS * 2])
    if name in ("sin", "cos", "tan") and x.dtype.kind != "b":
        x = np.clip(x, *((0, 99) if x.dtype.kind == "u" else (-99, 99)))
    dtype = floating(str(x.dtype))
    expected = UNARY_FLOAT[name](x.astype(dtype).astype("float64"))
    return Sample([draw.tensor(x)], np.asarray(expected, dtype), **ulps(dtype))


@oracle("aten::gelu.out")
def gelu(draw, operator):
    x, way = operand(draw, FLOATS), draw.pick("none", "tanh")
    wide = x.astype("float64")
    if way == "none":
        y = wide * 0.5 * (1 + UNARY_FLOAT["erf"](wide / math.sqrt(2)))
    else:
        y = wide * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    return Sample([draw.tensor(x), way], np.asarray(y, x.dtype),
                  **({"rtol": 1e-13, "atol": 1e-14} if x.dtype == "float64" else
                     {"rtol": 1e-5, "atol": 1e-6}))


@oracle("aten::elu.out")
def elu(draw, operator):
    x = operand(draw, FLOATS)
    alpha, scale, input_scale = (draw.pick(1.0, 0.7, 1.5, 2) for _ in range(3))
    wide = x.astype("float64")
    y = np.where(wide < 0, np.expm1(wide * input_scale) * alpha, wide) * scale
    return Sample([draw.tensor(x), alpha, scale, input_scale], np.asarray(y, x.dtype),
                  **ulps(x.dtype))


@oracle("aten::leaky_relu.out")
def leaky_relu(draw, operator):
    x, slope = operand(draw, ["float32", "float64"]), draw.pick(0.1, 0.0, -2.5, 3)
    return Sample([draw.tensor(x), slope], np.where(x > 0, x, x * x.dtype.type(slope)))


@oracle("aten::round.decimals_out")
def round_decimals(draw, operator):
    x, decimals = operand(draw, FLOATS), draw.pick(0, 1, 2, 3, -1, -2, 12, -40, 400)
    return Sample([draw.tensor(x), decimals], rounded(x, decimals))


@oracle("aten::logit.out")
def logit(draw, operator):
    x, eps = draw.random.uniform(-0.2, 1.2, draw.shape()), draw.pick(None, 0.0, 0.01, 0.3, -1.0)
    x = np.asarray(x, draw.pick(*FLOATS))
    bound = x.dtype.type(eps or 0)
    inside = x if eps is None or eps < 0 else np.clip(x, bound, 1 - bound)
    tolerances = (1e-14, 1e-15) if x.dtype == "float64" else (1e-5, 1e-6)
    return Sample([draw.tensor(x), eps], np.asarray(np.log(inside / (1 - inside))), *tolerances)


@oracle("aten::glu.out")
def glu(draw, operator):
    shape = list(draw.shape(minimum=1))
    dim = draw.dim(len(shape))
    shape[dim] *= 2
    x = draw.normal(shape, draw.pick(*FLOATS))
    a, b = np.split(x, 2, dim)
    return Sample([draw.tensor(x), dim], a / (1 + np.exp(-b)), 1e-14 if x.dtype == "float64" else 1e-6)


BOUNDS = (None, 0, 1, 6, -3, -1.5, 0.5, 2.5, float("nan"), float("inf"))


def bounded(x, low, high):
    result = str(x.dtype)
    for bound in (low, high):
        result = result_dtype(np.zeros(1, result), bound) if bound is not None else result
    return clamp(x.astype(result), low, high).astype(result)


@oracle("aten::clamp.out", "aten::hardtanh.out")
def clamped(draw, operator):
    x, bounds = operand(draw, NUMBERS), [draw.pick(*BOUNDS) for _ in range(2)]
    if bounds == [None, None] or "hardtanh" in operator:
        bounds = [draw.pick(-1, 0), draw.pick(1, 6)]
    if x.dtype == "uint8":
        bounds = [0 if b is not None and b < 0 else b for b in bounds]
    return Sample([draw.tensor(x), *bounds], bounded(x, *bounds))


# ---- two operands


def operands(draw, dtypes, n=2):
    """Draw arrays that broadcast to one shape."""
    shape = draw.shape()
    return [operand(draw, dtypes, draw.narrowed(shape)) for _ in range(n)]


def promoted(draw, dtypes=DTYPES, refused=()):
    """Draw two operands and the dtype of the computation."""
    x, y = operands(draw, [dtype for dtype in dtypes if dtype not in refused])
    return x, y, result_dtype(x, y)


def both(draw, x, y, *more):
    return [draw.tensor(x), draw.tensor(y), *more]


@oracle(*(f"aten::{name}" for name in SAME))
def same(draw, operator):
    function, refused = SAME[name_of(operator)]
    x, y, dtype = promoted(draw, refused=refused)
    return Sample(both(draw, x, y), np.asarray(function(x.astype(dtype), y.astype(dtype))))


@oracle(*(f"aten::{name}" for name in PREDICATES))
def predicate(draw, operator):
    x, y, dtype = promoted(draw)
    expected = PREDICATES[name_of(operator)](x.astype(dtype), y.astype(dtype))
    return Sample(both(draw, x, y), np.asarray(expected))


def alpha_of(draw, dtype):
    return draw.pick(1, 1, 3, True) if dtype in INTEGRAL else draw.pick(1, 1, 3, 0.5, -2)


@oracle("aten::add.out", "aten::sub.out")
def sums(draw, operator):
    adds = "add" in operator
    x, y, dtype = promoted(draw, refused=() if adds else ("bool",))
    alpha = alpha_of(draw, dtype)
    a, b = x.astype(dtype), y.astype(dtype)
    scaled = b * np.array(alpha, dtype)
    return Sample(both(draw, x, y, alpha), np.asarray(add(a, scaled) if adds else a - scaled))


@oracle("aten::div.out")
def division(draw, operator):
    x, y, dtype = promoted(draw)
    dtype = floating(dtype)
    return Sample(both(draw, x, y), np.asarray(x.astype(dtype) / y.astype(dtype)))


RESTS = {"fmod": np.fmod, "remainder": np.remainder, "floor_divide": np.floor_divide}
NO_REST = ("bool",)


def moderate(x):
    """Draw integers, or floats whose quotients are finite and exact enough to round in one
    direction."""
    if x.dtype.kind != "f":
        return x
    return np.asarray(np.round(np.nan_to_num(np.clip(x, -999, 999)) * 8) / 8, x.dtype)


def divided(draw):
    """Draw operands in the dtype of the computation, without division of an integer by zero."""
    x, y, dtype = promoted(draw, refused=NO_REST)
    y = np.where(y.astype(dtype) == 0, y.dtype.type(3), y) if dtype in INTEGERS else y
    return moderate(x), moderate(y), dtype


@oracle("aten::fmod.Tensor_out", "aten::remainder.Tensor_out", "aten::floor_divide.out")
def rests(draw, operator):
    x, y, dtype = divided(draw)
    function = RESTS[name_of(operator).split(".")[0]]
    return Sample(both(draw, x, y), np.asarray(function(x.astype(dtype), y.astype(dtype))))


@oracle("aten::div.out_mode")
def rounded_division(draw, operator):
    mode = draw.pick(None, "floor", "trunc")
    if mode is None:
        sample = division(draw, operator)
        return Sample([*sample.arguments, None], sample.expected)
    x, y, dtype = divided(draw)
    a, b = x.astype(dtype), y.astype(dtype)
    function = np.floor_divide if mode == "floor" else trunc_divide
    if dtype in INTEGERS:
        a, b = a.astype(object), b.astype(object)
        function = (lambda p, q: p // q) if mode == "floor" else (
            lambda p, q: (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1))
        wide = np.vectorize(function, otypes=[object])(a, b)
        bits = np.iinfo(dtype).bits
        low = np.iinfo(dtype).min
        return Sample(both(draw, x, y, mode),
                      np.asarray((wide - low) % (1 << bits) + low if wide.size else wide).astype(dtype))
    return Sample(both(draw, x, y, mode), np.asarray(function(a, b), dtype))


@oracle("aten::pow.Tensor_Tensor_out")
def powers(draw, operator):
    shape = draw.shape()
    dtype = draw.pick(*FLOATS, *INTEGERS)
    x, y = (draw.values(draw.narrowed(shape), dtype) for _ in range(2))
    if dtype in FLOATS:
        expected = np.power(x.astype("float64"), y.astype("float64"))
        return Sample(both(draw, x, y), np.asarray(expected, dtype), **ulps(dtype))
    y = np.asarray(np.abs(y.astype("int64")) % 70, dtype)
    return Sample(both(draw, x, y), np.asarray(np.power(x, y), dtype))


@oracle("aten::atan2.out")
def atan2(draw, operator):
    x, y, dtype = promoted(draw, [*INTEGRAL, *FLOATS * 2])
    dtype = floating(dtype)
    a, b = (v.astype(dtype).astype("float64") for v in (x, y))
    return Sample(both(draw, x, y), np.asarray(np.arctan2(a, b), dtype), **ulps(dtype))


def shifted(left, x, bits):
    """Shift Python integers. A shift by less than 0, or by all bits, equals shifts one by one."""
    width, low = np.iinfo(x.dtype).bits, int(np.iinfo(x.dtype).min)
    x, bits = np.broadcast_arrays(x, bits)
    out = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(x.shape):
        value, n = int(x[at]), int(bits[at])
        n = n if 0 <= n < width else width
        value = value << n if left else value >> n
        out[at] = (value - low) % (1 << width) + low
    return out


@oracle(*(f"aten::bitwise_{side}_shift.Tensor_out" for side in ("left", "right")))
def shifts(draw, operator):
    x, y, dtype = promoted(draw, INTEGERS)
    y = np.asarray(y.astype("int64") % 80 - (8 if y.dtype.kind == "i" else 0)).astype(y.dtype)
    return Sample(both(draw, x, y), shifted("left" in operator, x.astype(dtype), y.astype(dtype)))


# ---- an operand and a number


def with_number(draw, numbers=(2, -3, 0, 0.5, True, 2.5), dtypes=DTYPES, refused=()):
    """Draw x and a number, both in the dtype of the computation."""
    x, number = operand(draw, [dtype for dtype in dtypes if dtype not in refused]), draw.pick(*numbers)
    if x.dtype == "uint8" and not isinstance(number, bool):
        number = abs(number)
    dtype = result_dtype(x, number)
    return x, number, x.astype(dtype), np.array(number).astype(dtype)


SCALAR_NUMERIC = {"mul": lambda a, b: a * b}


@oracle("aten::mul.Scalar_out", *(f"aten::{name.split('.')[0]}.Scalar_out" for name in PREDICATES
                                  if "logical" not in name))
def of_number(draw, operator):
    x, number, a, b = with_number(draw)
    name = name_of(operator).split(".")[0]
    function = PREDICATES.get(f"{name}.Tensor_out") or SCALAR_NUMERIC[name]
    return Sample([draw.tensor(x), number], np.asarray(function(a, b)))


@oracle(*(f"aten::bitwise_{name}.Scalar_out" for name in ("and", "or", "xor")))
def bits_of_number(draw, operator):
    x, number, a, b = with_number(draw, (2, -3, 0, True, 255), INTEGRAL)
    function = SAME[name_of(operator).replace("Scalar", "Tensor")][0]
    return Sample([draw.tensor(x), number], np.asarray(function(a, b)))


@oracle("aten::add.Scalar_out", "aten::sub.Scalar_out", "aten::rsub.Scalar_out")
def sums_of_number(draw, operator):
    x, number, a, b = with_number(draw, refused=("bool",))
    alpha = alpha_of(draw, str(a.dtype))
    factor = np.array(alpha, a.dtype)
    name = name_of(operator).split(".")[0]
    expected = {"add": a + b * factor, "sub": a - b * factor, "rsub": b - a * factor}[name]
    return Sample([draw.tensor(x), number, alpha], np.asarray(expected))


@oracle("aten::div.Scalar_out")
def division_by_number(draw, operator):
    x, number, a, b = with_number(draw)
    dtype = floating(str(a.dtype))
    expected = x.astype(dtype) / np.array(number, dtype)
    return Sample([draw.tensor(x), number], np.asarray(expected))


@oracle("aten::fmod.Scalar_out", "aten::remainder.Scalar_out", "aten::div.Scalar_mode_out")
def rests_by_number(draw, operator):
    x, number, _, _ = with_number(draw, (3, -4, 0.5, 2.5, -8), refused=NO_REST)
    x = moderate(x)
    dtype = result_dtype(x, number)
    a, b = x.astype(dtype), np.array(number).astype(dtype)
    if "div" in operator:
        mode = draw.pick("floor", "trunc")
        wide = a.astype("int64") if dtype in INTEGERS else a
        function = np.floor_divide if mode == "floor" else trunc_divide
        expected = np.asarray(function(wide, b.astype(wide.dtype))).astype(dtype)
        if dtype == "int64" and mode == "trunc":
            expected = (a - np.fmod(a, b)) // b
        return Sample([draw.tensor(x), number, mode], np.asarray(expected))
    function = RESTS[name_of(operator).split(".")[0]]
    return Sample([draw.tensor(x), number], np.asarray(function(a, b)))


@oracle("aten::pow.Tensor_Scalar_out")
def power_by_number(draw, operator):
    dtype = draw.pick(*FLOATS, *INTEGERS)
    x = draw.values(draw.shape(), dtype)
    exponent = draw.pick(*((2, 3, 0.5, -1, 0, 2.5, -0.75) if dtype in FLOATS else (0, 1, 2, 3, 9)))
    if dtype in FLOATS:
        expected = np.power(x.astype("float64"), exponent)
        return Sample([draw.tensor(x), exponent], np.asarray(expected, dtype), **ulps(dtype))
    return Sample([draw.tensor(x), exponent], np.asarray(np.power(x, np.array(exponent, dtype)), dtype))


@oracle("aten::pow.Scalar_out")
def power_of_number(draw, operator):
    x, base = operand(draw, FLOATS), draw.pick(1.5, 2.0, 0.5, 1.0, 3)
    expected = np.power(float(base), x.astype("float64"))
    return Sample([base, draw.tensor(x)], np.asarray(expected, x.dtype), **ulps(x.dtype))


@oracle(*(f"aten::bitwise_{side}_shift.Tensor_Scalar_out" for side in ("left", "right")))
def shifts_by_number(draw, operator):
    x, n = operand(draw, INTEGERS), draw.pick(0, 1, 3, 7, 8, 31, 63, 64)
    return Sample([draw.tensor(x), n], shifted("left" in operator, x, np.array(n)))


# ---- three


@oracle("aten::where.self_out")
def where(draw, operator):
    shape = draw.shape()
    mask = operand(draw, ["bool"], draw.narrowed(shape))
    x, y = (operand(draw, DTYPES, draw.narrowed(shape)) for _ in range(2))
    dtype = result_dtype(x, y)
    expected = np.where(mask, x.astype(dtype), y.astype(dtype))
    mask = mask.astype(draw.pick("bool", "uint8"))
    return Sample([draw.tensor(mask), *both(draw, x, y)], np.asarray(expected))


@oracle("aten::masked_fill.Scalar_out")
def masked_fill(draw, operator):
    x, mask = operand(draw, DTYPES), None
    mask = operand(draw, ["bool"], draw.narrowed(x.shape))
    value = {"b": draw.chance(), "f": draw.pick(-1.5, 3, float("inf"), float("nan"))}.get(
        x.dtype.kind, draw.pick(0, 7, 100))
    expected = np.where(mask, np.array(value).astype(x.dtype), x)
    return Sample([draw.tensor(x), draw.tensor(mask), value], np.asarray(expected))


@oracle("aten::clamp.Tensor_out")
def clamp_by_tensors(draw, operator):
    x, low, high = operands(draw, [draw.pick(*NUMBERS)], 3)
    with_low, with_high = draw.pick((True, True), (True, False), (False, True))
    expected = np.maximum(x, low) if with_low else x
    expected = np.minimum(expected, high) if with_high else expected
    return Sample([draw.tensor(x), draw.tensor(low) if with_low else None,
                   draw.tensor(high) if with_high else None], np.asarray(expected))
