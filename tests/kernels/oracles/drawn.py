"""Define oracles of random numbers: the numbers of seed 0, in the order of the output in memory."""

import numpy as np
from support.random_numbers import normal, random_bits, uniform

from .sample import Sample, oracle

BITS = {"float16": 11, "float32": 24, "float64": 24}


def sizes_of(draw, operator, shape):
    """Return the arguments before the output: sizes, or a tensor with these sizes."""
    return [draw.tensor(np.zeros(shape, "float32")), None] if "like" in operator else [list(shape)]


@oracle("aten::rand.out", "aten::rand_like.out")
def rand(draw, operator):
    shape, dtype = draw.shape(), draw.pick(*BITS)
    numbers = uniform(int(np.prod(shape)), kept_bits=BITS[dtype]).astype(dtype)
    return Sample(sizes_of(draw, operator, shape), numbers.reshape(shape), order="contiguous")


@oracle("aten::randn.out", "aten::randn_like.out")
def randn(draw, operator):
    shape, dtype = draw.shape(), draw.pick(*BITS)
    numbers = normal(int(np.prod(shape))).astype(dtype)
    precision = 2**-10 if dtype == "float16" else 1e-4
    return Sample(sizes_of(draw, operator, shape), numbers.reshape(shape), precision, 1e-5,
                  "contiguous")


def below(bits, range):
    """Map bits to numbers from 0 to below the range, by the upper half of a product of 64 bits."""
    return np.array([int(one) * range >> 32 for one in bits], "int64")


@oracle("aten::randint.out", "aten::randint.low_out")
def randint(draw, operator):
    shape, dtype = draw.shape(), draw.pick("uint8", "int8", "int32", "int64", "float32")
    low = 0 if operator.endswith("randint.out") else draw.int(0 if dtype == "uint8" else -99, 99)
    high = low + draw.pick(1, draw.int(1, 28), *([2**20, 2**31] if dtype == "int64" else []))
    numbers = low + below(random_bits(int(np.prod(shape))), high - low)
    before = [high] if operator.endswith("randint.out") else [low, high]
    return Sample([*before, list(shape)], numbers.astype(dtype).reshape(shape), order="contiguous")


@oracle("aten::randperm.out")
def randperm(draw, operator):
    """Permute by the method of Fisher and Yates."""
    n, dtype, numbers = draw.int(0, 40), draw.pick("uint8", "int8", "int16", "int32", "int64"), []
    for i, bits in enumerate(random_bits(n)):
        other = int(bits) * (i + 1) >> 32
        numbers.append(i)
        numbers[i], numbers[other] = numbers[other], i
    return Sample([n], np.array(numbers, dtype))
