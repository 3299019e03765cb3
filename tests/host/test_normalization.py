"""Batch, layer and group norm against numpy in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_call import KernelError, Tensor, call, channels_last

BATCH = "aten::_native_batch_norm_legit_no_training.out"
OWN = "aten::_native_batch_norm_legit.no_stats_out"
LAYER = "aten::native_layer_norm.out"
GROUP = "aten::native_group_norm.out"
EPS = 1e-5
FLAGS = st.tuples(st.booleans(), st.booleans())


def ones(*shape):
    return np.ones(shape, np.float32)


def random(rng, shape, spread=1.0):
    return (rng.normal(size=shape) * spread + rng.normal()).astype(np.float32)


def optional(flags, *arrays):
    return [a if flag else None for flag, a in zip(flags, arrays, strict=True)]


def affine(x, weight, bias, shape):
    x = x if weight is None else x * weight.reshape(shape).astype(np.float64)
    return x if bias is None else x + bias.reshape(shape).astype(np.float64)


def assert_matches(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=3e-6)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 7), min_size=2, max_size=5), FLAGS, st.data(),
       st.integers(0, 2**32 - 1))
def test_batch_norm(shape, flags, data, seed):
    rng = np.random.default_rng(seed)
    x, mean, weight, bias = random(rng, shape), *(random(rng, shape[1]) for _ in range(3))
    variance = rng.uniform(0.1, 2, shape[1]).astype(np.float32)
    weight, bias = optional(flags, weight, bias)
    order = data.draw(st.none() | st.permutations(range(len(shape))).map(tuple))
    got, *rest = call(BATCH, Tensor(x, order), weight, bias, mean, variance, 0.1, EPS,
                      Tensor(x * 0 + 77, order), ones(0), ones(0))
    each = (-1, *[1] * (len(shape) - 2))
    expected = (x - mean.reshape(each).astype(float)) / np.sqrt(variance.reshape(each) + EPS)
    assert_matches(got, affine(expected, weight, bias, each))
    assert [r.size for r in rest] == [0, 0]


def test_batch_norm_of_dim_orders_that_mean_the_same():
    x, out = Tensor(ones(1, 2, 1, 3), (0, 2, 1, 3)), Tensor(ones(1, 2, 1, 3), (1, 0, 3, 2))
    got, *_ = call(BATCH, x, None, ones(2), ones(2), ones(2), 0.1, EPS, out, ones(0), ones(0))
    np.testing.assert_array_equal(got, ones(1, 2, 1, 3))


def test_batch_norm_in_place():
    rng = np.random.default_rng(3)
    x, mean, variance = random(rng, (2, 3, 5)), random(rng, 3), ones(3)
    apart, *_ = call(BATCH, x, None, None, mean, variance, 0.1, EPS, x * 0, ones(0), ones(0))
    x = Tensor(x)
    same, *_ = call(BATCH, x, None, None, mean, variance, 0.1, EPS, Tensor(x.array, alias=x),
                    ones(0), ones(0))
    np.testing.assert_array_equal(same, apart)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 7), min_size=2, max_size=5), FLAGS, st.data(),
       st.integers(0, 2**32 - 1))
def test_batch_norm_by_its_own_statistics(shape, flags, data, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = random(rng, shape), random(rng, shape[1]), random(rng, shape[1])
    weight, bias = optional(flags, weight, bias)
    order = data.draw(st.none() | st.permutations(range(len(shape))).map(tuple))
    got, mean, invstd = call(OWN, Tensor(x, order), weight, bias, True, 0.1, EPS,
                             Tensor(x * 0 + 77, order), ones(shape[1]), ones(shape[1]))
    if x.size == 0:
        assert (mean == 0).all() and np.isnan(invstd).all()
        return
    axes = (0, *range(2, len(shape)))
    wide = x.astype(float)
    assert_matches(mean, wide.mean(axes))
    np.testing.assert_allclose(invstd, 1 / np.sqrt(wide.var(axes) + EPS), rtol=1e-3)
    each = (-1, *[1] * (len(shape) - 2))
    normal = (wide - wide.mean(axes).reshape(each)) / np.sqrt(wide.var(axes).reshape(each) + EPS)
    np.testing.assert_allclose(got, affine(normal, weight, bias, each), rtol=1e-3, atol=1e-3)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data(), FLAGS,
       st.integers(0, 2**32 - 1))
def test_layer_norm(shape, data, flags, seed):
    dims = data.draw(st.integers(1, len(shape)))
    inner, axes = shape[len(shape) - dims :], tuple(range(len(shape) - dims, len(shape)))
    rng = np.random.default_rng(seed)
    x, weight, bias = random(rng, shape), random(rng, inner), random(rng, inner)
    weight, bias = optional(flags, weight, bias)
    saved = np.full([*shape[: len(shape) - dims], *[1] * dims], 77, np.float32)
    got, mean, rstd = call(LAYER, x, inner, weight, bias, EPS, x * 0 + 77, saved, saved.copy())
    wide = x.astype(float)
    expected_mean = wide.mean(axes, keepdims=True)
    expected_rstd = 1 / np.sqrt(wide.var(axes, keepdims=True) + EPS)
    assert_matches(mean, expected_mean)
    np.testing.assert_allclose(rstd, expected_rstd, rtol=1e-4 if x.size > 1 else 0.5)
    np.testing.assert_allclose(
        got, affine((wide - expected_mean) * expected_rstd, weight, bias, inner), rtol=1e-4,
        atol=1e-4)


def test_layer_norm_of_a_long_row_far_from_zero():
    x = (np.random.default_rng(4).normal(size=(2, 20000)) + 1000).astype(np.float32)
    got, mean, rstd = call(LAYER, x, [20000], None, None, EPS, x * 0, ones(2, 1), ones(2, 1))
    wide = x.astype(float)
    np.testing.assert_allclose(mean, wide.mean(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(wide.var(1, keepdims=True) + EPS), rtol=1e-6)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + EPS)
    np.testing.assert_allclose(got, expected, atol=2e-4)


@pytest.mark.parametrize("shape, inner", [((0, 3), [3]), ((2, 0), [0])])
def test_empty_layer_norm(shape, inner):
    out, mean, rstd = call(LAYER, ones(*shape), inner, None, None, EPS, ones(*shape),
                           ones(shape[0], 1), ones(shape[0], 1))
    assert out.shape == shape
    assert (mean == 0).all() and np.isnan(rstd).all()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3),
       st.lists(st.integers(0, 5), max_size=2), FLAGS, st.integers(0, 2**32 - 1))
def test_group_norm(n, groups, channels, rest, flags, seed):
    c, area = groups * channels, int(np.prod(rest, dtype=int))
    rng = np.random.default_rng(seed)
    x, weight, bias = random(rng, (n, c, *rest)), random(rng, c), random(rng, c)
    weight, bias = optional(flags, weight, bias)
    saved = np.full((n, groups), 77, np.float32)
    got, mean, rstd = call(GROUP, x, weight, bias, n, c, area, groups, EPS, x * 0 + 77, saved,
                           saved.copy())
    if x.size == 0:
        return
    slices = x.astype(float).reshape(n, groups, -1)
    assert_matches(mean, slices.mean(2))
    np.testing.assert_allclose(rstd, 1 / np.sqrt(slices.var(2) + EPS), rtol=1e-3)
    normal = (slices - slices.mean(2, keepdims=True)) / np.sqrt(slices.var(2, keepdims=True) + EPS)
    expected = affine(normal.reshape(x.shape), weight, bias, (-1, *[1] * len(rest)))
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


def test_groups_without_elements_have_mean_0():
    x = ones(3, 4, 0, 2**30)
    _, mean, rstd = call(GROUP, x, None, None, 3, 4, 0, 2, EPS, x.copy(), ones(3, 2), ones(3, 2))
    assert (mean == 0).all() and np.isnan(rstd).all()


X, C, D = ones(2, 4, 3), ones(4), ones(4).astype(np.float64)
BATCH_GOOD = {"x": X, "weight": C, "bias": C, "mean": C, "variance": C, "momentum": 0.1,
              "eps": EPS, "out": X.copy(), "save_mean": ones(0), "save_invstd": ones(0)}
OWN_GOOD = {"x": X, "weight": C, "bias": C, "training": True, "momentum": 0.1, "eps": EPS,
            "out": X.copy(), "mean": C.copy(), "invstd": C.copy()}
LAYER_GOOD = {"x": X, "shape": [4, 3], "weight": ones(4, 3), "bias": ones(4, 3), "eps": EPS,
              "out": X.copy(), "mean": ones(2, 1, 1), "rstd": ones(2, 1, 1)}
GROUP_GOOD = {"x": X, "weight": C, "bias": C, "n": 2, "c": 4, "area": 3, "groups": 2, "eps": EPS,
              "out": X.copy(), "mean": ones(2, 2), "rstd": ones(2, 2)}
BAD, UNSUPPORTED = "InvalidArgument", "NotSupported"


@pytest.mark.parametrize(
    "operator, good, changes, name, reason",
    [
        (BATCH, BATCH_GOOD, {"x": C}, BAD, "has channels"),
        (BATCH, BATCH_GOOD, {"x": channels_last(X)}, UNSUPPORTED, "dim order"),
        (BATCH, BATCH_GOOD, {"x": X.astype(np.float64)}, UNSUPPORTED, "float32"),
        (BATCH, BATCH_GOOD, {"variance": D}, UNSUPPORTED, "float32"),
        (BATCH, BATCH_GOOD, {"mean": ones(3)}, BAD, "parameter"),
        (BATCH, BATCH_GOOD, {"bias": ones(1, 4)}, BAD, "parameter"),
        (BATCH, BATCH_GOOD, {"out": ones(2, 4, 4)}, BAD, "output"),
        (BATCH, BATCH_GOOD, {"save_mean": ones(4)}, BAD, "output"),
        (BATCH, BATCH_GOOD, {"save_invstd": ones(0).astype(int)}, UNSUPPORTED, "float32"),
        (OWN, OWN_GOOD, {"training": False}, BAD, "in training"),
        (OWN, OWN_GOOD, {"weight": ones(3)}, BAD, "parameter"),
        (OWN, OWN_GOOD, {"out": channels_last(X)}, UNSUPPORTED, "dim order"),
        (OWN, OWN_GOOD, {"mean": ones(3)}, BAD, "output"),
        (OWN, OWN_GOOD, {"invstd": ones(0)}, BAD, "output"),
        (LAYER, LAYER_GOOD, {"shape": []}, BAD, "normalized shape"),
        (LAYER, LAYER_GOOD, {"shape": [4, 2]}, BAD, "normalized shape"),
        (LAYER, LAYER_GOOD, {"shape": [4, 2**32 + 3]}, BAD, "normalized shape"),
        (LAYER, LAYER_GOOD, {"shape": [1, 2, 4, 3]}, BAD, "normalized shape"),
        (LAYER, LAYER_GOOD, {"x": channels_last(X)}, UNSUPPORTED, "contiguous"),
        (LAYER, LAYER_GOOD, {"out": channels_last(X)}, UNSUPPORTED, "contiguous"),
        (LAYER, LAYER_GOOD, {"weight": ones(3)}, BAD, "parameter"),
        (LAYER, LAYER_GOOD, {"bias": ones(4, 3).astype(int)}, UNSUPPORTED, "float32"),
        (LAYER, LAYER_GOOD, {"out": ones(2, 3, 4)}, BAD, "output"),
        (LAYER, LAYER_GOOD, {"rstd": ones(2)}, BAD, "output"),
        (LAYER, LAYER_GOOD, {"weight": Tensor(ones(4, 3), (1, 0))}, UNSUPPORTED, "contiguous"),
        (LAYER, LAYER_GOOD, {"mean": channels_last(ones(2, 1, 1))}, UNSUPPORTED, "contiguous"),
        (GROUP, GROUP_GOOD, {"n": 1}, BAD, "N, C and HxW"),
        (GROUP, GROUP_GOOD, {"c": -4}, BAD, "N, C and HxW"),
        (GROUP, GROUP_GOOD, {"area": 2**32 + 3}, BAD, "N, C and HxW"),
        (GROUP, GROUP_GOOD, {"x": C}, BAD, "N, C and HxW"),
        (GROUP, GROUP_GOOD, {"groups": 3}, BAD, "divide"),
        (GROUP, GROUP_GOOD, {"groups": 0}, BAD, "divide"),
        (GROUP, GROUP_GOOD, {"groups": 2**32 + 1}, BAD, "divide"),
        (GROUP, GROUP_GOOD, {"x": channels_last(X)}, UNSUPPORTED, "contiguous"),
        (GROUP, GROUP_GOOD, {"weight": ones(2)}, BAD, "parameter"),
        (GROUP, GROUP_GOOD, {"mean": ones(2)}, BAD, "output"),
        (GROUP, GROUP_GOOD, {"rstd": Tensor(ones(2, 2), (1, 0))}, UNSUPPORTED, "contiguous"),
    ],
)
def test_refusals(operator, good, changes, name, reason):
    call(operator, *good.values())
    with pytest.raises(KernelError) as refusal:
        call(operator, *{**good, **changes}.values())
    assert (refusal.value.stage, refusal.value.name) == ("check", name)
    assert reason in refusal.value.reason


def test_dropout_in_inference_is_a_copy():
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    for p, train in ((0.5, False), (0.5, None), (0.0, True)):
        out, mask = call("aten::native_dropout.out", x, p, train, np.zeros_like(x),
                         np.zeros(x.shape, bool))
        assert (out == x).all() and mask.all()
    for p, train, reason in ((0.5, True, "no random numbers"), (1.5, False, "a probability")):
        with pytest.raises(KernelError, match=reason):
            call("aten::native_dropout.out", x, p, train, np.zeros_like(x), np.zeros(x.shape, bool))


def test_batch_norm_with_an_argument_for_training():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    four = [np.random.default_rng(i).uniform(0.5, 2, 3).astype(np.float32) for i in range(4)]
    outs = [np.zeros_like(x), np.zeros(0, np.float32), np.zeros(0, np.float32)]
    same = call("aten::_native_batch_norm_legit_no_training.out", x, *four, 0.1, 1e-5, *outs)[0]
    result = call("aten::_native_batch_norm_legit.out", x, *four, False, 0.1, 1e-5, *outs)[0]
    np.testing.assert_array_equal(result, same)
    with pytest.raises(KernelError, match="is not one in training"):
        call("aten::_native_batch_norm_legit.out", x, *four, True, 0.1, 1e-5, *outs)
