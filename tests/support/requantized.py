"""Compute the int8 arithmetic of ExecuTorch's Cortex-M dialect in numpy: slow, plain, and independent
of ours."""

import numpy as np


def requantize(sums, multipliers, shifts):
    """Return sums * multipliers * 2^(shifts - 31), rounded twice; multipliers and shifts broadcast."""
    sums, multipliers, shifts = np.broadcast_arrays(sums, multipliers, shifts)
    out = np.empty(sums.shape, object)
    for at in np.ndindex(sums.shape):
        out[at] = _requantize(*(int(a[at]) for a in (sums, multipliers, shifts)))
    return out


def _requantize(value, multiplier, shift):
    high = ((value << max(shift, 0)) * multiplier + (1 << 30)) >> 31
    right = max(-shift, 0)
    if right == 0:
        return high
    magnitude = (abs(high) + (1 << (right - 1))) >> right
    return magnitude if high >= 0 else -magnitude


def to_int8(requantized, offset, low, high):
    return np.clip(wrap_int32(wrap_int32(requantized) + offset), low, high).astype(np.int8)


def wrap_int32(values):
    return ((values + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int64)
