"""Test quantization and back: per tensor, per channel, per token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernel_call import KernelError, Tensor, call, channels_last
from support.quantized import QUANTIZED, code, dequantize, limits, quantize

pytestmark = [pytest.mark.check, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

TO, FROM = "quantized_decomposed::quantize_per_", "quantized_decomposed::dequantize_per_"
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5,
                    0.49999997, 0.50000006, 1e-45, 3e9, -3e9, 2**22, 2**23 - 0.5, 2**24 + 2, 1e38,
                    127.5, 126.5, -128.5, -129.5, 32767.5, 65534.5, 2**31, -(2.0**31)], "float32")


def quantize_tensor(x, scale, zero_point, low, high, dtype):
    out = np.zeros(x.shape, dtype)
    return call(TO + "tensor.out", x, scale, zero_point, low, high, code(dtype), out)


def dequantize_tensor(q, scale, zero_point):
    out = np.zeros(q.shape, "float32")
    low, high = limits(q.dtype.name)
    return call(FROM + "tensor.out", q, scale, zero_point, low, high, code(q.dtype.name), None, out)


@pytest.mark.parametrize("dtype", QUANTIZED)
def test_rounds_halves_to_even_and_saturates(dtype):
    low, high = limits(dtype)
    for zero_point in (0, 3, -20, high, low):
        result = quantize_tensor(SPECIAL, 1.0, zero_point, low, high, dtype)
        wanted = quantize(SPECIAL, 1.0, zero_point, low, high, dtype)
        np.testing.assert_array_equal(result, wanted)
    assert quantize_tensor(SPECIAL, 1.0, 5, low, high, dtype)[:4].tolist() == [0, 0, high, low]


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.data())
def test_any_value_scale_and_zero_point(data):
    dtype = data.draw(st.sampled_from(QUANTIZED))
    low, high = limits(dtype)
    if data.draw(st.booleans()):
        low, high = low + 1, high // 2
    x = np.array(data.draw(st.lists(st.floats(width=32), max_size=11)), "float32")
    scale = data.draw(st.floats(1e-6, 1e6))
    zero_point = data.draw(st.integers(-300, 300) | st.integers(-(2**31), 2**31 - 1))
    q = quantize_tensor(x, scale, zero_point, low, high, dtype)
    np.testing.assert_array_equal(q, quantize(x, scale, zero_point, low, high, dtype))
    np.testing.assert_array_equal(dequantize_tensor(q, scale, zero_point),
                                  dequantize(q, scale, zero_point))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50))
def test_any_bits(bits):
    x = np.array(bits, "uint32").view("float32")
    for dtype in ("int8", "int16"):
        low, high = limits(dtype)
        np.testing.assert_array_equal(quantize_tensor(x, 1.0, 0, low, high, dtype),
                                      quantize(x, 1.0, 0, low, high, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("count", range(10))
def test_rows_of_any_length(dtype, count):
    low, high = limits(dtype)
    x = np.random.default_rng(count).normal(size=count).astype("float32") * 60
    q = quantize_tensor(x, 0.7, 4, low, high, dtype)
    np.testing.assert_array_equal(q, quantize(x, 0.7, 4, low, high, dtype))
    np.testing.assert_array_equal(dequantize_tensor(q, 0.7, 4), dequantize(q, 0.7, 4))


def test_parameters_in_tensors():
    x = np.linspace(-3, 3, 13).astype("float32").reshape(13, 1)
    for scale_dtype, zero_point_dtype in (("float64", "int64"), ("float32", "int32")):
        scale, zero_point = np.array([0.03], scale_dtype), np.array([7], zero_point_dtype)
        q = call(TO + "tensor.Tensor_out", x, scale, zero_point, -128, 127, 1,
                 np.zeros(x.shape, "int8"))
        np.testing.assert_array_equal(q, quantize(x, scale, zero_point, -128, 127, "int8"))
        result = call(FROM + "tensor.Tensor_out", q, scale, zero_point, -128, 127, 1, 6,
                      np.zeros_like(x))
        np.testing.assert_array_equal(result, dequantize(q, scale, zero_point))


def test_zero_dim_and_channels_last():
    x = np.array(3.3, "float32")
    assert quantize_tensor(x, 0.5, 1, -128, 127, "int8") == 8
    x = np.arange(24).reshape(1, 2, 3, 4).astype("float32")
    out = channels_last(np.zeros(x.shape, "uint8"))
    q = call(TO + "tensor.out", channels_last(x), 0.5, 10, 0, 255, 0, out)
    np.testing.assert_array_equal(q, quantize(x, 0.5, 10, 0, 255, "uint8"))


def along(values, axis, rank):
    return values.reshape([-1 if d == axis else 1 for d in range(rank)])


@pytest.mark.parametrize("shape", [(5,), (3, 7), (2, 3, 4), (2, 0), (0, 3)])
def test_per_token(shape):
    rng = np.random.default_rng(len(shape))
    x = rng.normal(size=shape).astype("float32") * 30
    scales = rng.uniform(0.1, 1, (*shape[:-1], 1))
    zero_points = rng.integers(-9, 9, scales.shape)
    q = call(TO + "token.out", x, scales, zero_points, -128, 127, 1, np.zeros(shape, "int8"))
    np.testing.assert_array_equal(q, quantize(x, scales, zero_points, -128, 127, "int8"))
    result = call(FROM + "token.out", q, scales, zero_points, -128, 127, 1, 6, np.zeros_like(x))
    np.testing.assert_array_equal(result, dequantize(q, scales, zero_points))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_without_elements_large_sizes_will_do(axis):
    shape = [2**13, 2**13, 0]
    shape[axis] = min(shape[axis], 3)
    x, q = np.zeros(shape, "float32"), np.zeros(shape, "int8")
    parameters = np.ones(shape[axis]), np.ones(shape[axis], "int64")
    assert call(TO + "channel.out", x, *parameters, axis, -128, 127, 1, q).shape == x.shape
    assert call(FROM + "channel.out", q, *parameters, axis, -128, 127, 1, None, x).shape == x.shape


F, Q = np.zeros((2, 3), "float32"), np.zeros((2, 3), "int8")
ONE, NONE = np.ones(1), np.zeros(1, "int64")
TWO, ZEROS = np.ones(2), np.zeros(2, "int64")
REAL = "real values must be float32, float16 or bfloat16"
REFUSED = [
    (TO + "tensor.out", (F.astype("float64"), 1.0, 0, 0, 1, 1, Q), REAL),
    (TO + "tensor.out", (F, 1.0, 0, 0, 1, 4, Q.astype("int64")),
     "quantized values must be uint8, int8, uint16, int16 or int32"),
    (TO + "tensor.out", (F, 1.0, 0, 0, 1, 0, Q),
     "the argument dtype must be that of the quantized tensor"),
    *((TO + "tensor.out", (F, 1.0, 0, low, high, 1, Q),
       "quant_min and quant_max must be a range within the quantized dtype")
      for low, high in ((-129, 127), (-128, 128), (2, 1), (-(2**63), 2**63 - 1))),
    (TO + "tensor.out", (F, 1.0, 2**31, -128, 127, 1, Q), "zero_point does not fit in int32"),
    (TO + "tensor.out", (F, 1.0, 0, -128, 127, 1, Tensor(Q, (1, 0))),
     "the tensors must have the same dim order"),
    (TO + "tensor.Tensor_out", (F, Q, NONE, -128, 127, 1, Q), "scales must be float32 or double"),
    (TO + "tensor.Tensor_out", (F, TWO, NONE, -128, 127, 1, Q), "wrong number of scales"),
    (TO + "tensor.Tensor_out", (F, ONE, ONE, -128, 127, 1, Q), "zero points must be integers"),
    (TO + "tensor.Tensor_out", (F, ONE, ZEROS, -128, 127, 1, Q), "wrong number of zero points"),
    (FROM + "tensor.out", (Q, 1.0, 0, -128, 127, 0, None, F),
     "the argument dtype must be that of the quantized tensor"),
    (FROM + "tensor.out", (Q, 1.0, 0, -128, 127, 1, 7, F),
     "the output must have the dtype asked for"),
    (FROM + "tensor.out", (Q, 1.0, 0, -128, 127, 1, 7, F.astype("float64")),
     REAL),
    (TO + "channel.out", (F, ONE, NONE, 0, -128, 127, 1, Q), "wrong number of scales"),
    (TO + "channel.out", (F, TWO, ZEROS, 2, -128, 127, 1, Q), "dim is out of range"),
    (FROM + "channel.out", (Q, TWO, NONE, 0, -128, 127, 1, None, F), "wrong number of zero points"),
    (FROM + "channel.out", (np.zeros((), "int8"), ONE, NONE, 0, -128, 127, 1, None,
                            np.zeros((), "float32")), "the input must have a dim"),
    (TO + "token.out", (np.zeros((), "float32"), ONE, NONE, -128, 127, 1, np.zeros((), "int8")),
     "the input must have a dim"),
    (TO + "token.out", (Tensor(F, (1, 0)), TWO, ZEROS, -128, 127, 1, Tensor(Q, (1, 0))),
     "the tensors must be contiguous"),
    (FROM + "token.out", (Q, ONE, NONE, -128, 127, 1, 6, F), "wrong number of scales"),
]


@pytest.mark.parametrize(("operator", "arguments", "reason"), REFUSED)
def test_rejects(operator, arguments, reason):
    with pytest.raises(KernelError) as error:
        call(operator, *arguments)
    assert (error.value.stage, error.value.reason) == ("check", reason)


def test_rejects_other_sizes():
    with pytest.raises(KernelError):
        call(TO + "tensor.out", F, 1.0, 0, -128, 127, 1, np.zeros((3, 2), "int8"))
