"""Convert between numpy arrays in logical order and tensors in a program's dim order.

A type that numpy lacks is an array of its bits: bfloat16 and bits16 of uint16, complex32 of uint32, the
float8s of uint8, quantized types of their integers. to_bfloat16 and from_bfloat16 convert.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from picotorch import schema
from picotorch.errors import INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, fail
from picotorch.tensor import Tensor, from_blob

from .aligned import aligned_copy

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

HALF, COMPLEX_HALF, BFLOAT16 = 5, 8, 15  # ScalarTypes
# numpy dtypes by ScalarType; types that are not here are seen as bytes
DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
          7: "float64", 8: "uint32", 9: "complex64", 10: "complex128", 11: "bool", 12: "int8",
          14: "int32", 15: "uint16", 22: "uint16", 27: "uint16", 28: "uint32", 29: "uint64"}
# ScalarTypes by the names of torch and ml_dtypes, where numpy has none
_NAMES = {"complex32": COMPLEX_HALF, "bfloat16": BFLOAT16, "bits16": 22, "float8_e5m2": 23,
          "float8_e4m3fn": 24, "float8_e5m2fnuz": 25, "float8_e4m3fnuz": 26}


class Described(Protocol):
    """A Tensor, or its description."""

    def scalar_type(self) -> int: ...
    def sizes(self) -> tuple[int, ...]: ...
    def dim_order(self) -> tuple[int, ...]: ...


def numpy_dtype(info: Described) -> np.dtype:
    """Return the numpy dtype of a TensorInfo's elements."""
    return np.dtype(DTYPES.get(info.scalar_type(), "uint8"))


def to_bfloat16(array: Any) -> np.ndarray:
    """Return the bits (uint16) of numbers rounded to bfloat16: to nearest, halves to even."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + (bits >> 16 & 1))) >> 16
    return np.asarray(np.where(np.isnan(array), 0x7FC0, rounded)).astype(np.uint16)


def from_bfloat16(bits: Any) -> np.ndarray:
    """Return the float32 array of an array of bfloat16's bits."""
    return (np.asarray(bits, np.uint32) << 16).astype(np.uint32).view(np.float32)


def as_numbers(array: np.ndarray, scalar_type: int | None) -> np.ndarray:
    """Return an output as real numbers that can be compared.

    bfloat16 becomes float32; complex numbers get a last dim of real and imaginary part. scalar_type:
    None for anything but a tensor.
    """
    if scalar_type == COMPLEX_HALF or array.dtype.kind == "c":
        part = np.dtype("float16") if scalar_type == COMPLEX_HALF else np.real(array).dtype
        return np.ascontiguousarray(array).reshape(array.shape).view(part).reshape(*array.shape, 2)
    return from_bfloat16(array) if scalar_type == BFLOAT16 else array


def output_array(value: Any, index: int) -> np.ndarray:
    """Return an output as an array.

    Raises NotSupported for a list of tensors of different sizes, or where some are left out.
    """
    try:
        return np.asarray(value)
    except ValueError:
        raise fail(NOT_SUPPORTED, "is a list of tensors of different sizes", "output", index) from None


def as_array(value: Any, scalar_type: int) -> np.ndarray:
    """Return an input as an array; of bits for a type of torch or ml_dtypes that numpy lacks.

    Raises InvalidArgument if the program's type is another, ValueError for a tensor without data.
    """
    if hasattr(value, "cpu"):  # a tensor of torch, on any device
        if getattr(value, "is_meta", False):
            raise ValueError("it is on device meta, and only CPU and CUDA tensors have data")
        value = value.detach().cpu()
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if name not in _NAMES:
        return np.asarray(value)
    if _NAMES[name] != scalar_type:
        to = f".to(torch.{torch_name(scalar_type)})" if is_torch(value) else ".astype"
        raise fail(INVALID_ARGUMENT, f"{schema.SCALAR_TYPE_NAMES[scalar_type]} expected, {name} given",
                   "dtype", remedy=f"convert it with {to}")
    bits = DTYPES.get(scalar_type, "uint8")
    if isinstance(value, np.ndarray):
        return value.view(bits)
    return as_bits(value, bits)


def as_bits(tensor: Any, dtype: str) -> np.ndarray:
    """Return a tensor of torch on the CPU as an array of numpy's dtype, with the same bits."""
    bits: np.ndarray = tensor.view(getattr(sys.modules["torch"], dtype)).numpy()
    return bits


def is_torch(value: object) -> bool:
    """Return True for a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def torch_name(scalar_type: int) -> str:
    """Return the name of torch's dtype; of the integers for a quantized type."""
    names = {number: name for name, number in _NAMES.items()}
    return names.get(scalar_type) or DTYPES.get(scalar_type, "uint8")


def as_torch(array: np.ndarray, scalar_type: int) -> Any:
    """Return an output as a tensor of torch, which has its own bytes. Quantized types stay integers."""
    try:
        import torch
    except ImportError:
        raise fail(NOT_FOUND, "is not installed", "torch", remedy="install it or use arrays") from None
    flat = torch.from_numpy(np.array(array, order="C").reshape(-1).view("uint8"))
    return flat.view(getattr(torch, torch_name(scalar_type))).reshape(array.shape)


def as_tensor(array: np.ndarray, info: Described) -> Tensor:
    """Return a Tensor of an array's sizes and of its bytes in the dim order of a TensorInfo."""
    data = aligned_copy(to_stored(array, info.dim_order()))
    return from_blob(data, array.shape, info.scalar_type(), info.dim_order())


def to_stored(array: Any, dim_order: Sequence[int]) -> bytes:
    """Return the bytes of an array in a dim order."""
    array = np.asarray(array)
    return np.ascontiguousarray(array.transpose(dim_order)).tobytes()


def from_stored(data: "ReadableBuffer", info: Described,
                sizes: Sequence[int] | None = None) -> np.ndarray:
    """Return a copy of a tensor's bytes as an array; a TensorInfo describes them.

    sizes: of a dynamic tensor below its maximum.
    """
    sizes = info.sizes() if sizes is None else sizes
    sizes = [sizes[dim] for dim in info.dim_order()]
    stored = np.frombuffer(bytes(data), numpy_dtype(info)).reshape(sizes)
    return stored.transpose(np.argsort(info.dim_order())).copy() if sizes else stored.copy()
