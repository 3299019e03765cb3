"""Define oracles of batch, layer and group norm, in float64."""

import numpy as np
from test_normalization import EPS, affine, optional, random

from .sample import Sample, oracle


def close(x):
    limit = 1e-3 if x.dtype == "float32" else 1e-10
    return {"rtol": limit, "atol": limit}


def channelled(draw, smallest=0):
    dtype = draw.pick("float32", "float64")
    x = random(draw.random, draw.shape(minimum=2, smallest=smallest)).astype(dtype)
    weight, bias = parameters(draw, x.shape[1], dtype)
    return x, weight, bias, (-1, *[1] * (x.ndim - 2))


def parameters(draw, shape, dtype):
    """Draw weight and bias, or None."""
    return optional((draw.chance(), draw.chance()),
                    *(random(draw.random, shape).astype(dtype) for _ in "ab"))


@oracle("aten::_native_batch_norm_legit.out", "aten::_native_batch_norm_legit_no_training.out")
def batch_norm(draw, operator):
    x, weight, bias, each = channelled(draw)
    mean = random(draw.random, x.shape[1]).astype(x.dtype)
    variance = draw.random.uniform(0.1, 2, x.shape[1]).astype(x.dtype)
    normal = (x - mean.reshape(each).astype(float)) / np.sqrt(variance.reshape(each) + EPS)
    expected = affine(normal, weight, bias, each).astype(x.dtype)
    order, nothing = draw.order(x.ndim), np.zeros(0, x.dtype)
    training = [] if "no_training" in operator else [False]
    return Ordered([draw.tensor(x, order), weight, bias, mean, variance, *training, 0.1, EPS],
                   [expected, nothing, nothing], order=order, **close(x))


class Ordered(Sample):
    """A sample whose first output has the given dim order; the others are contiguous."""

    def outputs(self, draw):
        order, outputs = self.order, []
        for wanted in self.expected:
            self.order = order if not outputs else "contiguous"
            outputs.append(self.output(wanted, draw))
        return outputs


@oracle("aten::_native_batch_norm_legit.no_stats_out")
def batch_norm_by_its_own(draw, operator):
    x, weight, bias, each = channelled(draw, smallest=1)
    axes = (0, *range(2, x.ndim))
    mean, invstd = x.astype(float).mean(axes), 1 / np.sqrt(x.astype(float).var(axes) + EPS)
    normal = (x - mean.reshape(each)) * invstd.reshape(each)
    order = draw.order(x.ndim)
    expected = affine(normal, weight, bias, each)
    few = x.size // x.shape[1] < 2  # the rounding error is as large as the deviation
    if few:
        expected = affine(np.zeros(x.shape), weight, bias, each)
    return Ordered([draw.tensor(x, order), weight, bias, True, 0.1, EPS],
                   [v.astype(x.dtype) for v in (expected, mean, invstd)], order=order, **close(x))


@oracle("aten::native_layer_norm.out")
def layer_norm(draw, operator):
    shape = draw.shape(minimum=1, smallest=1)
    dims = draw.int(1, len(shape))
    inner, axes = shape[len(shape) - dims :], tuple(range(len(shape) - dims, len(shape)))
    x = random(draw.random, shape).astype(draw.pick("float32", "float64"))
    weight, bias = parameters(draw, inner, x.dtype)
    over = {"axis": axes, "keepdims": True}
    mean, rstd = x.astype(float).mean(**over), 1 / np.sqrt(x.astype(float).var(**over) + EPS)
    expected = affine((x - mean) * rstd, weight, bias, inner)
    return Sample([draw.contiguous(x), list(inner), weight, bias, EPS],
                  [v.astype(x.dtype) for v in (expected, mean, rstd)], order="contiguous", **close(x))


@oracle("aten::native_group_norm.out")
def group_norm(draw, operator):
    n, groups, channels = draw.int(1, 3), draw.int(1, 3), draw.int(1, 3)
    rest = [draw.int(1, 5) for _ in range(draw.int(0, 2))]
    c, area = groups * channels, int(np.prod(rest, dtype=int))
    x = random(draw.random, (n, c, *rest)).astype(draw.pick("float32", "float64"))
    weight, bias = parameters(draw, c, x.dtype)
    rows = x.astype(float).reshape(n, groups, -1)
    mean, rstd = rows.mean(2), 1 / np.sqrt(rows.var(2) + EPS)
    normal = ((rows - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    expected = affine(normal, weight, bias, (-1, *[1] * len(rest)))
    return Sample([draw.contiguous(x), weight, bias, n, c, area, groups, EPS],
                  [v.astype(x.dtype) for v in (expected, mean, rstd)], order="contiguous", **close(x))


@oracle("aten::native_dropout.out")
def dropout(draw, operator):
    x, (p, train) = random(draw.random, draw.shape()), draw.pick((0.5, False), (0.0, None), (0.0, True))
    return Sample([draw.contiguous(x), p, train], [x, np.ones(x.shape, bool)], order="contiguous")
