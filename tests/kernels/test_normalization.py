"""Compare batch, layer and group norm with numpy in float64."""

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call, channels_last

pytestmark = pytest.mark.check

BATCH = "aten::_native_batch_norm_legit_no_training.out"
OWN = "aten::_native_batch_norm_legit.no_stats_out"
LAYER = "aten::native_layer_norm.out"
GROUP = "aten::native_group_norm.out"
EPS = 1e-5


def ones(*shape):
    return np.ones(shape, np.float32)


def random(rng, shape, spread=1.0):
    return (rng.normal(size=shape) * spread + rng.normal()).astype(np.float32)


def optional(flags, *arrays):
    return [a if flag else None for flag, a in zip(flags, arrays, strict=True)]


def affine(x, weight, bias, shape):
    x = x if weight is None else x * weight.reshape(shape).astype(np.float64)
    return x if bias is None else x + bias.reshape(shape).astype(np.float64)


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


def test_layer_norm_of_a_long_row_far_from_zero():
    x = (np.random.default_rng(4).normal(size=(2, 20000)) + 1000).astype(np.float32)
    got, mean, rstd = call(LAYER, x, [20000], None, None, EPS, x * 0, ones(2, 1), ones(2, 1))
    wide = x.astype(float)
    np.testing.assert_allclose(mean, wide.mean(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(wide.var(1, keepdims=True) + EPS), rtol=1e-6)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + EPS)
    np.testing.assert_allclose(got, expected, atol=2e-4)


def test_layer_norm_of_float64_far_from_zero():
    x = np.random.default_rng(4).normal(size=(2, 5000)) + 1e6
    got, mean, rstd = call(LAYER, x, [5000], None, None, 0.0, x * 0, x[:, :1] * 0, x[:, :1] * 0)
    wide = x.astype(np.longdouble)
    centred = wide - wide.mean(1, keepdims=True)
    np.testing.assert_allclose(mean, wide.mean(1, keepdims=True).astype(float), rtol=3e-16)
    np.testing.assert_allclose(rstd, 1 / np.sqrt((centred**2).mean(1, keepdims=True)).astype(float),
                               rtol=1e-14)
    np.testing.assert_allclose(got, (centred * rstd).astype(float), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, inner", [((0, 3), [3]), ((2, 0), [0])])
def test_empty_layer_norm(shape, inner, dtype):
    x, one = ones(*shape).astype(dtype), ones(shape[0], 1).astype(dtype)
    out, mean, rstd = call(LAYER, x, inner, None, None, EPS, x.copy(), one, one.copy())
    assert out.shape == shape
    assert (mean == 0).all() and np.isnan(rstd).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_groups_without_elements_have_mean_0(dtype):
    x, one = ones(3, 4, 0, 2**23).astype(dtype), ones(3, 2).astype(dtype)
    _, mean, rstd = call(GROUP, x, None, None, 3, 4, 0, 2, EPS, x.copy(), one, one.copy())
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
        (BATCH, BATCH_GOOD, {"x": X.astype(np.float64)}, BAD, "one dtype"),
        (BATCH, BATCH_GOOD, {"variance": D}, BAD, "one dtype"),
        (BATCH, BATCH_GOOD, {"mean": ones(3)}, BAD, "parameter"),
        (BATCH, BATCH_GOOD, {"bias": ones(1, 4)}, BAD, "parameter"),
        (BATCH, BATCH_GOOD, {"out": ones(2, 4, 4)}, BAD, "output"),
        (BATCH, BATCH_GOOD, {"save_mean": ones(4)}, BAD, "output"),
        (BATCH, BATCH_GOOD, {"save_invstd": ones(0).astype(int)}, UNSUPPORTED, "this dtype"),
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
        (LAYER, LAYER_GOOD, {"bias": ones(4, 3).astype(int)}, UNSUPPORTED, "this dtype"),
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
def test_rejections(operator, good, changes, name, reason):
    call(operator, *good.values())
    with pytest.raises(KernelError) as refusal:
        call(operator, *{**good, **changes}.values())
    assert (refusal.value.stage, refusal.value.name) == ("check", name)
    assert reason in refusal.value.reason


def test_dropout_in_inference_is_a_copy():
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    for p, train in ((0.5, False), (0.0, None), (0.0, True)):
        out, mask = call("aten::native_dropout.out", x, p, train, np.zeros_like(x),
                         np.zeros(x.shape, bool))
        assert (out == x).all() and mask.all()
    with pytest.raises(KernelError, match="a probability"):
        call("aten::native_dropout.out", x, 1.5, False, np.zeros_like(x), np.zeros(x.shape, bool))


def test_batch_norm_with_an_argument_for_training():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    four = [np.random.default_rng(i).uniform(0.5, 2, 3).astype(np.float32) for i in range(4)]
    outs = [np.zeros_like(x), np.zeros(0, np.float32), np.zeros(0, np.float32)]
    same = call("aten::_native_batch_norm_legit_no_training.out", x, *four, 0.1, 1e-5, *outs)[0]
    result = call("aten::_native_batch_norm_legit.out", x, *four, False, 0.1, 1e-5, *outs)[0]
    np.testing.assert_array_equal(result, same)
    with pytest.raises(KernelError, match="is not one in training"):
        call("aten::_native_batch_norm_legit.out", x, *four, True, 0.1, 1e-5, *outs)
