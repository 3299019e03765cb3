"""Convert between tensors of torch and the arrays of an export.

Arguments and samples are arrays of the same dtype, of ml_dtypes if numpy has none. Results are compared
as real numbers: bfloat16 as float32, complex numbers with real and imaginary part in a last dim.
"""

from types import ModuleType
from typing import Any

import numpy as np

from ..host.tensors import as_bits, as_numbers, is_torch


def argument(value: Any) -> Any:
    """Return an argument of forward as an array; anything but a tensor as it is."""
    if not is_torch(value):
        return value
    value = value.detach()
    if str(value.dtype) != "torch.bfloat16":
        return value.numpy()
    import ml_dtypes

    return as_bits(value, "uint16").view(ml_dtypes.bfloat16)


def tensor(torch: ModuleType, value: Any) -> Any:
    """Return an array as a tensor with its own memory and the default strides of torch.

    Anything but an array is returned as it is. numpy's strides may be negative, and 0 in dims of one
    element.
    """
    if not isinstance(value, np.ndarray):
        return value
    flat = np.array(value, order="C").reshape(-1)
    found = (torch.from_numpy(flat.view(np.uint16)).view(torch.bfloat16)
             if flat.dtype.name == "bfloat16" else torch.from_numpy(flat))
    return found.reshape(value.shape)


def numbers(value: Any) -> Any:
    """Return a result of PyTorch as an array of real numbers; anything but a tensor as it is."""
    if not is_torch(value):
        return value
    value = value.detach().resolve_conj().resolve_neg()
    is_bfloat16 = str(value.dtype) == "torch.bfloat16"
    return as_numbers((value.float() if is_bfloat16 else value).numpy(), None)
