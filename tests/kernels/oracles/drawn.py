"""Oracles of random numbers: those of seed 0, as the output lies in memory."""

import numpy as np
from support.random_numbers import normal, uniform

from .sample import Sample, oracle

BITS = {"float16": 11, "float32": 24, "float64": 24}


@oracle("aten::rand.out")
def rand(draw, operator):
    shape, dtype = draw.shape(), draw.pick(*BITS)
    numbers = uniform(int(np.prod(shape)), kept_bits=BITS[dtype]).astype(dtype)
    return Sample([list(shape)], numbers.reshape(shape), order="contiguous")


@oracle("aten::randn.out")
def randn(draw, operator):
    shape, dtype = draw.shape(), draw.pick(*BITS)
    numbers = normal(int(np.prod(shape))).astype(dtype)
    precision = 2**-10 if dtype == "float16" else 1e-4
    return Sample([list(shape)], numbers.reshape(shape), precision, 1e-5, "contiguous")
