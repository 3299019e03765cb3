"""Oracles of batch, layer and group norm, in float64."""

import numpy as np
from test_normalization import EPS, affine, optional, random

from .sample import Sample, oracle

CLOSE = {"rtol": 1e-3, "atol": 1e-3}


def channelled(draw, smallest=0):
    x = random(draw.random, draw.shape(least=2, smallest=smallest))
    n = x.shape[1]
    weight, bias = optional((draw.chance(), draw.chance()), *(random(draw.random, n) for _ in "ab"))
    return x, weight, bias, (-1, *[1] * (x.ndim - 2))


@oracle("aten::_native_batch_norm_legit.out", "aten::_native_batch_norm_legit_no_training.out")
def batch_norm(draw, operator):
    x, weight, bias, each = channelled(draw)
    mean = random(draw.random, x.shape[1])
    variance = draw.random.uniform(0.1, 2, x.shape[1]).astype("float32")
    normal = (x - mean.reshape(each).astype(float)) / np.sqrt(variance.reshape(each) + EPS)
    expected = affine(normal, weight, bias, each).astype("float32")
    order, nothing = draw.order(x.ndim), np.zeros(0, "float32")
    training = [] if "no_training" in operator else [False]
    return Ordered([draw.tensor(x, order), weight, bias, mean, variance, *training, 0.1, EPS],
                   [expected, nothing, nothing], order=order, **CLOSE)


class Ordered(Sample):
    """Only the first output has the given dim order; the others are contiguous."""

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
    few = x.size // x.shape[1] < 2  # what is left of rounding is as large as the deviation
    if few:
        expected = affine(np.zeros(x.shape), weight, bias, each)
    return Ordered([draw.tensor(x, order), weight, bias, True, 0.1, EPS],
                   [v.astype("float32") for v in (expected, mean, invstd)], order=order, **CLOSE)


@oracle("aten::native_layer_norm.out")
def layer_norm(draw, operator):
    shape = draw.shape(least=1, smallest=1)
    dims = draw.int(1, len(shape))
    inner, axes = shape[len(shape) - dims :], tuple(range(len(shape) - dims, len(shape)))
    x = random(draw.random, shape)
    weight, bias = optional((draw.chance(), draw.chance()), *(random(draw.random, inner) for _ in "ab"))
    over = {"axis": axes, "keepdims": True}
    mean, rstd = x.astype(float).mean(**over), 1 / np.sqrt(x.astype(float).var(**over) + EPS)
    expected = affine((x - mean) * rstd, weight, bias, inner)
    return Sample([draw.contiguous(x), list(inner), weight, bias, EPS],
                  [v.astype("float32") for v in (expected, mean, rstd)], order="contiguous", **CLOSE)


@oracle("aten::native_group_norm.out")
def group_norm(draw, operator):
    n, groups, channels = draw.int(1, 3), draw.int(1, 3), draw.int(1, 3)
    rest = [draw.int(1, 5) for _ in range(draw.int(0, 2))]
    c, area = groups * channels, int(np.prod(rest, dtype=int))
    x = random(draw.random, (n, c, *rest))
    weight, bias = optional((draw.chance(), draw.chance()), *(random(draw.random, c) for _ in "ab"))
    rows = x.astype(float).reshape(n, groups, -1)
    mean, rstd = rows.mean(2), 1 / np.sqrt(rows.var(2) + EPS)
    normal = ((rows - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    expected = affine(normal, weight, bias, (-1, *[1] * len(rest)))
    return Sample([draw.contiguous(x), weight, bias, n, c, area, groups, EPS],
                  [v.astype("float32") for v in (expected, mean, rstd)], order="contiguous", **CLOSE)


@oracle("aten::native_dropout.out")
def dropout(draw, operator):
    x, (p, train) = random(draw.random, draw.shape()), draw.pick((0.5, False), (0.5, None), (0.0, True))
    return Sample([draw.contiguous(x), p, train], [x, np.ones(x.shape, bool)], order="contiguous")
