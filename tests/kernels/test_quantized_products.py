"""Test operators that compute with quantized tensors: embeddings, products with int8 weights, add."""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call
from support.quantized import QUANTIZED, dequantize, limits, quantize

PREFIX = "quantized_decomposed::"
PACKED = {"byte": 1, "4bit": 2, "2bit": 4}


def unpack(weight, name):
    """Unpack weights. The first value of a byte is in the high bits of 4-bit, in the low bits of 2-bit
    weights."""
    if name == "byte":
        return weight.astype("float32")
    shifts, offset = ((4, 0), 8) if name == "4bit" else ((0, 2, 4, 6), 2)
    values = np.stack([weight >> shift & (2 * offset - 1) for shift in shifts], axis=-1)
    return values.reshape(len(weight), -1).astype("float32") - offset


@pytest.mark.parametrize("index", [-1, 5, 2**40])
def test_embedding_rejects_an_index_outside_before_it_writes(index):
    weight, scales = np.zeros((5, 4), "int8"), np.ones(5, "float32")
    with pytest.raises(KernelError) as error:
        call(PREFIX + "embedding_byte.out", weight, scales, None, -128, 127,
             np.array([0, index]), np.ones((2, 4), "float32"))
    assert (error.value.stage, error.value.reason) == ("run", "an index is out of range")


def test_mixed_mm():
    rng = np.random.default_rng(0)
    x, scales = rng.normal(size=(3, 7)).astype("float32"), rng.uniform(1, 2, 7).astype("float32")
    weight = rng.integers(-128, 128, (7, 5)).astype("int8")
    result = call(PREFIX + "mixed_mm.out", x, weight, scales, None, np.zeros((3, 5), "float32"))
    np.testing.assert_allclose(result, x @ (weight * scales[:, None]), rtol=1e-5, atol=1e-4)


def test_products_without_elements():
    x, weight = np.zeros((2**27, 0), "float32"), np.zeros((0, 0), "int8")
    out, scales = np.zeros((2**27, 0), "float32"), np.zeros(0, "float32")
    for operator, dtype in (("mixed_mm.out", ()), ("mixed_linear.out", (None,))):
        assert call(PREFIX + operator, x, weight, scales, None, *dtype, out).size == 0


@pytest.mark.parametrize("groups", [None, 1, 2, 3, 9])
def test_mixed_linear(groups):
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=(4, 9)).astype("float32"), rng.integers(-128, 128, (6, 9))
    scales = rng.uniform(1, 2, 6 if groups is None else (6, groups)).astype("float32")
    size = -(-9 // (groups or 1))  # the last group may have fewer
    scale = np.repeat(scales.reshape(6, -1), size, axis=1)[:, :9]
    for dtype in (None, 6):
        result = call(PREFIX + "mixed_linear.out", x, weight.astype("int8"), scales, None, dtype,
                      np.zeros((4, 6), "float32"))
        np.testing.assert_allclose(result, x @ (weight * scale).T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", QUANTIZED)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (16,), (3, 11)])
def test_add(dtype, shape):
    rng = np.random.default_rng(len(shape))
    low, high = limits(dtype)
    a, b = (rng.integers(low, high, shape).astype(dtype) for _ in range(2))
    of_a, of_b, of_out = (0.1, 3), (0.0712, -9), (0.15, 20)
    wanted = quantize(dequantize(a, *of_a) + dequantize(b, *of_b), *of_out, low, high, dtype)
    a = Tensor(a)
    for out in (np.zeros(shape, dtype), Tensor(a.array, alias=a)):
        result = call(PREFIX + "add.out", a, *of_a, 0, 1, b, *of_b, 0, 1, *of_out, low, high, out)
        np.testing.assert_array_equal(result, wanted)


X, W, S = np.zeros((2, 4), "float32"), np.zeros((4, 4), "int8"), np.ones(4, "float32")
INDICES, OUT = np.zeros(2, "int64"), np.zeros((2, 4), "float32")
B, BYTE, NIBBLE = W.astype("uint8"), PREFIX + "embedding_byte.out", PREFIX + "embedding_4bit.out"
MM, LINEAR, ADD = PREFIX + "mixed_mm.out", PREFIX + "mixed_linear.out", PREFIX + "add.out"
R, P = (0, 255), (1.0, 0, 0, 255)
REAL = "real values must be float32, float16 or bfloat16"
REFUSED = [
    (BYTE, (W[0], S, None, *R, INDICES, OUT), "weight must have 2 dims"),
    (NIBBLE, (W, S, None, *R, INDICES, OUT), "weight must be uint8, or int8 if it is not packed"),
    (NIBBLE, (np.zeros((0, 2**31 - 1), "uint8"), S[:0], None, *R, INDICES, OUT),
     "weight has too many columns"),
    (BYTE, (W, np.ones((4, 3), "float32"), None, *R, INDICES, OUT),
     "scales must be one a row, or as many as divide its columns"),
    (BYTE, (W, np.ones(3, "float32"), None, *R, INDICES, OUT),
     "scales must be one a row, or as many as divide its columns"),
    (BYTE, (W, np.ones((4, 0), "float32"), None, *R, INDICES, OUT),
     "scales must be one a row, or as many as divide its columns"),
    (BYTE, (W, S, S[:2], *R, INDICES, OUT), "zero points must have the sizes of scales"),
    (BYTE, (W, S.astype("float64"), None, *R, INDICES, OUT), REAL),
    (BYTE, (W, S, S.astype("int64"), *R, INDICES, OUT), "zero points must have the dtype of scales"),
    (BYTE, (W, S, None, *R, INDICES.astype("int8"), OUT), "indices must be int64 or int32"),
    (BYTE, (W, S, None, *R, np.zeros([1] * 16, "int64"), OUT), "more than 16 dims"),
    (BYTE, (W, S, None, *R, INDICES, Tensor(OUT, (1, 0))), "the tensors must be contiguous"),
    (BYTE, (W, S, None, *R, INDICES, OUT.astype("float64")), REAL),
    (MM, (X, W, S, S, OUT), "no zero points of the weight"),
    (MM, (X, B, S, None, OUT), "weight must be int8"),
    (MM, (X[0], W, S, None, OUT), "input and weight must have 2 dims"),
    (MM, (Tensor(X, (1, 0)), W, S, None, OUT), "the tensors must be contiguous"),
    (MM, (X.astype("float16"), W, S, None, OUT), "scales must have the dtype of the input"),
    (MM, (X, W, S, None, OUT.astype("float16")), "the output must have the input's dtype"),
    (MM, (X.astype("float64"), W, S, None, OUT), REAL),
    (MM, (X, W, S[:3], None, OUT),
     "input must have a column, and scales an element, for each row of weight"),
    (LINEAR, (X, W, S, None, 7, OUT), "the output must have the dtype asked for"),
    (LINEAR, (X, W, np.ones((4, 3), "float32"), None, None, OUT),
     "input must have weight's columns, scales its rows, and groups that fit"),
    (LINEAR, (X, W, np.ones((4, 0), "float32"), None, None, OUT),
     "input must have weight's columns, scales its rows, and groups that fit"),
    (ADD, (B, *P, W, *P, *P, B), "the argument dtype must be that of the quantized tensor"),
    (ADD, (W, *P, W, *P, *P, W),
     "quant_min and quant_max must be a range within the quantized dtype"),
    (ADD, (B, 1.0, 2**31, 0, 1, B, *P, *P, B), "zero_point does not fit in int32"),
    (ADD, (B, *P, B[:2], *P, *P, B), "a and b must have the same sizes"),
    (ADD, (B, *P, Tensor(B, (1, 0)), *P, *P, B), "the tensors must have the same dim order"),
]


@pytest.mark.parametrize(("operator", "arguments", "reason"), REFUSED)
def test_rejects(operator, arguments, reason):
    with pytest.raises(KernelError) as error:
        call(operator, *arguments)
    assert (error.value.stage, error.value.reason) == ("check", reason)
