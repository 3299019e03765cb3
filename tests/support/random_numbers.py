"""Compute the random numbers of a seed in numpy, as pt_random in picotorch.h documents them."""

import numpy as np


def scatter(x):
    """Scatter bits as pt_scatter_bits does, by the function of MurmurHash3."""
    x = x.astype(np.uint64)
    x = (x ^ x >> np.uint64(16)) * np.uint64(0x85EBCA6B) & np.uint64(0xFFFFFFFF)
    x = (x ^ x >> np.uint64(13)) * np.uint64(0xC2B2AE35) & np.uint64(0xFFFFFFFF)
    return x ^ x >> np.uint64(16)


def random_bits(n, seed=0, first=0):
    """Return the numbers `first` to `first + n - 1` of a seed."""
    counts = np.arange(first + 1, first + n + 1, dtype=np.uint64) * np.uint64(0x9E3779B9)
    return scatter((scatter(np.array(seed)) + counts) & np.uint64(0xFFFFFFFF))


def uniform(n, seed=0, first=0, kept_bits=24):
    """Convert the first bits of each number to float32s from 0 to below 1."""
    kept = random_bits(n, seed, first) >> np.uint64(32 - kept_bits)
    return (kept / 2**kept_bits).astype(np.float32)


def normal(n):
    """Return normally distributed float64s: the first half of Box and Muller's results for pairs of
    uniform numbers."""
    u = uniform(2 * n).astype(float).reshape(-1, 2)
    return np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * np.pi * u[:, 1])
