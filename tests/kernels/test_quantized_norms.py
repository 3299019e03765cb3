"""Test the int8 normalizations: they are as exact as int8 allows, and reject unsuitable arguments."""

import itertools

import numpy as np
import pytest
from picotorch.export import norm_parameters
from support import quantized as integers
from support.kernel_call import KernelError, Tensor, call, channels_last

pytestmark = pytest.mark.check

LAYER, GROUP = "picotorch::quantized_layer_norm.out", "picotorch::quantized_group_norm.out"
EPSILON = 1e-5


def quantized(values, low=None, high=None):
    """Return integers, scale and zero point for the range of the values, which has 0 in it."""
    low, high = min(values.min(initial=0), 0), max(values.max(initial=0), 0)
    scale = max(high - low, 1e-6) / 255
    zero_point = int(np.clip(np.rint(-128 - low / scale), -128, 127))
    integers = np.clip(np.rint(values / scale) + zero_point, -128, 127).astype(np.int8)
    return integers, scale, zero_point


def normalized(x, axes, subtract_mean=True):
    mean = x.mean(axes, keepdims=True) if subtract_mean else 0
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPSILON)


def assert_close(got, expected, scale, zero_point):
    """Assert that integers are the expected values, rounded."""
    difference = got - np.clip(expected / scale + zero_point, -128, 127)
    assert np.abs(difference).max(initial=0) < 0.6
    assert np.abs(np.mean(difference)) < 0.1 or got.size < 100


@pytest.mark.parametrize("subtract_mean", [True, False])
@pytest.mark.parametrize("spread", [0.01, 1, 100])
@pytest.mark.parametrize(("rows", "size"), [(50, 2), (50, 3), (9, 16), (9, 100), (3, 1024), (1, 70000)])
def test_layer_norm_rounds_the_exact_values(rows, size, spread, subtract_mean):
    random = np.random.default_rng([rows, size])
    x, scale, zero_point = quantized(random.normal(0.3 * spread, spread, (rows, size)))
    weight, bias = random.uniform(-2, 2, size), random.normal(0, 0.5, size)
    expected = normalized((x.astype(float) - zero_point) * scale, 1, subtract_mean) * weight + bias
    _, out_scale, out_zero_point = quantized(expected)
    p = norm_parameters.compute(weight, bias, size, EPSILON, scale, out_scale, out_zero_point)
    got = call(LAYER, x, p.weight, p.bias, subtract_mean, zero_point, p.epsilon, p.shift, x * 0)
    assert_close(got, expected, out_scale, out_zero_point)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize(("groups", "shape"), [
    (1, (2, 6, 5, 5)), (2, (2, 6, 5, 7)), (6, (1, 6, 8, 9)), (4, (3, 4, 1, 2)), (2, (1, 4, 150, 160))])
def test_group_norm_rounds_the_exact_values(groups, shape, is_last):
    random = np.random.default_rng(shape)
    x, scale, zero_point = quantized(random.normal(1, 3, shape))
    weight, bias = random.uniform(-2, 2, shape[1]), random.normal(0, 0.5, shape[1])
    each = ((x.astype(float) - zero_point) * scale).reshape(shape[0], groups, -1)
    expected = normalized(each, 2).reshape(shape) * weight[:, None, None] + bias[:, None, None]
    _, out_scale, out_zero_point = quantized(expected)
    p = norm_parameters.compute(weight, bias, each.shape[2], EPSILON, scale, out_scale, out_zero_point)
    x, out = (channels_last(one) if is_last else one for one in (x, x * 0))
    got = call(GROUP, x, p.weight, p.bias, groups, p.epsilon, p.shift, out)
    assert_close(got, expected, out_scale, out_zero_point)


@pytest.mark.parametrize("subtract_mean", [True, False])
@pytest.mark.parametrize("epsilon", [0, 1, (1 << 62) - 1])
def test_equal_values_become_the_bias(epsilon, subtract_mean):
    x, bias = np.full((2, 5), 3, np.int8), np.arange(5, dtype=np.int32) * 256
    got = call(LAYER, x, np.full(5, 1000, np.int16), bias, subtract_mean, 3, epsilon, 8, x * 0)
    np.testing.assert_array_equal(got, [range(5)] * 2)


def extreme_inputs(sizes):
    """Yield equal values, one outlier, the two limits in turn, and a small variance."""
    random = np.random.default_rng(1)
    yield from (np.full(sizes, value, np.int8) for value in (-128, 0, 127))
    outlier = np.full(sizes, -128, np.int8)
    outlier.flat[-1] = 127
    yield outlier
    yield random.choice(np.array([-128, 127], np.int8), sizes)
    yield random.integers(0, 2, sizes).astype(np.int8)


def extreme_calls():
    """Yield (operator, arguments without the output, result by integers of any size)."""
    weights = [(32767, 1 << 29), (-32768, -1 << 31), (1, (1 << 31) - 1), (0, 0)]
    numbers = [(-128, False, 0, 0), (127, False, 1, 31), (0, True, (1 << 62) - 1, 8),
               (-128, True, 0, 14)]
    for n in (1, 2, 3, 5, 17, 33):
        for x, (weight, bias), (zero_point, subtracts, epsilon, shift) in itertools.product(
                extreme_inputs((3, n)), weights, numbers):
            one = (x, np.full(n, weight, np.int16), np.full(n, bias, np.int32), subtracts, zero_point,
                   epsilon, shift)
            yield LAYER, one, integers.layer_norm(*one)
    for sizes, groups in (((1, 1), 1), ((1, 1, 1, 1), 1), ((2, 3, 1, 1), 3), ((1, 5, 3, 3), 1),
                          ((1, 17, 3, 5), 1), ((2, 6, 2, 3), 2), ((1, 7, 1, 9), 7), ((1, 32, 3, 1), 2)):
        for x, (weight, bias), (_, _, epsilon, shift) in itertools.product(
                extreme_inputs(sizes), weights, numbers):
            rest = (np.full(sizes[1], weight, np.int16), np.full(sizes[1], bias, np.int32), groups,
                    epsilon, shift)
            yield GROUP, (x, *rest), integers.group_norm(x, *rest)
            if len(sizes) == 4:
                yield GROUP, (channels_last(x), *rest), integers.group_norm(x, *rest)


def blank_like(x):
    return Tensor(x.array * 0, x.dim_order) if isinstance(x, Tensor) else x * 0


def test_extreme_calls_equal_integers_of_any_size():
    for operator, arguments, expected in extreme_calls():
        got = call(operator, *arguments, blank_like(arguments[0]))
        np.testing.assert_array_equal(got, expected, err_msg=repr((operator, arguments)))


@pytest.mark.parametrize("sizes", [(0, 4), (2, 0), (0,)])
def test_layer_norm_of_nothing(sizes):
    x, n = np.zeros(sizes, np.int8), sizes[-1]
    got = call(LAYER, x, np.zeros(n, np.int16), np.zeros(n, np.int32), True, 0, 0, 0, x)
    assert got.shape == sizes


@pytest.mark.parametrize("sizes", [(0, 4, 3), (2, 4, 0), (2, 0, 5), (0, 0)])
def test_group_norm_of_nothing(sizes):
    x, n = np.zeros(sizes, np.int8), sizes[1]
    got = call(GROUP, x, np.zeros(n, np.int16), np.zeros(n, np.int32), 1, 0, 0, x)
    assert got.shape == sizes


X = np.ones((2, 4, 3), np.int8)
OF_LAYER = (X, np.ones(3, np.int16), np.ones(3, np.int32), True, 0, 0, 8, X * 0)
OF_GROUP = (X, np.ones(4, np.int16), np.ones(4, np.int32), 2, 0, 8, X * 0)


@pytest.mark.parametrize(("operator", "arguments", "i", "value", "reason"), [
    (LAYER, OF_LAYER, 0, X.astype(np.uint8), "the input must be int8"),
    (LAYER, OF_LAYER, 1, np.ones(3, np.int32), "weight must be int16"),
    (LAYER, OF_LAYER, 2, np.ones(3, np.int16), "bias int32"),
    (LAYER, OF_LAYER, 2, np.ones(2, np.int32), "a value for each"),
    (LAYER, OF_LAYER, 4, 128, "out of its range"),
    (LAYER, OF_LAYER, 4, -129, "out of its range"),
    (LAYER, OF_LAYER, 5, -1, "epsilon"),
    (LAYER, OF_LAYER, 5, 1 << 62, "epsilon"),
    (LAYER, OF_LAYER, 6, -1, "out of its range"),
    (LAYER, OF_LAYER, 6, 32, "out of its range"),
    (LAYER, OF_LAYER, 7, X.astype(np.int16), "dtype"),
    (LAYER, OF_LAYER, 7, X[:1], "sizes"),
    (GROUP, OF_GROUP, 0, np.ones(4, np.int8), "no channels"),
    (GROUP, OF_GROUP, 0, Tensor(X, (2, 0, 1)), "contiguous"),
    (GROUP, OF_GROUP, 1, np.ones(3, np.int16), "a value for each"),
    (GROUP, OF_GROUP, 3, 0, "groups"),
    (GROUP, OF_GROUP, 3, -2, "groups"),
    (GROUP, OF_GROUP, 3, 3, "groups"),
    (GROUP, OF_GROUP, 3, 8, "groups"),
    (GROUP, OF_GROUP, 3, 1 << 32, "groups"),
    (GROUP, OF_GROUP, 4, -1, "epsilon"),
    (GROUP, OF_GROUP, 5, 32, "out of its range"),
])
def test_unsuitable_arguments_are_rejected(operator, arguments, i, value, reason):
    arguments = list(arguments)
    arguments[i] = value
    with pytest.raises(KernelError, match=reason):
        call(operator, *arguments)


def test_weights_that_do_not_divide_the_input_are_rejected():
    for n in (0, 5, 48):
        weight, bias = np.ones(n, np.int16), np.ones(n, np.int32)
        with pytest.raises(KernelError, match="do not divide the input"):
            call(LAYER, X, weight, bias, *OF_LAYER[3:])


def test_too_large_groups_are_rejected():
    x = np.zeros((1, 1, (1 << 19) + 1), np.int8)
    one = np.ones(1, np.int16), np.ones(1, np.int32)
    with pytest.raises(KernelError, match="2\\^19"):
        call(GROUP, x, *one, 1, 0, 8, x)
    x = x.reshape(-1)
    with pytest.raises(KernelError, match="2\\^19"):
        call(LAYER, x, x.astype(np.int16), x.astype(np.int32), True, 0, 0, 8, x)
