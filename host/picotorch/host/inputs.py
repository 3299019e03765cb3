"""Read and check the inputs of a run, from .npz files or random.

An input of a tensor is an array of the program's sizes, or of others within the bound of a dynamic one,
in logical order whatever the dim order; one of bfloat16 is an array of its bits, see `tensors`. An
input of a number, bool or string is the Python value with which the program was exported.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from picotorch.errors import (
    INVALID_ARGUMENT,
    INVALID_PROGRAM,
    INVALID_TYPE,
    NOT_SUPPORTED,
    fail,
)
from picotorch.method_meta import MethodMeta
from picotorch.tensor import TensorInfo

from . import program_schema as schema
from .npz import read_npz
from .tensors import BFLOAT16, as_array, is_torch, numpy_dtype, to_bfloat16, torch_name
from .values import TENSOR, Values, kind_name

SEED = 0

# ---- files


def read_inputs(path: Path, meta: MethodMeta, quantize: bool = False) -> list[Any]:
    """Return the checked inputs of a method from an .npz file.

    Raises AccessFailed, and the errors of checked_inputs; InvalidArgument for a file that unpacks to
    more than the inputs of the method.
    """
    limits = [_largest(meta, i, quantize) for i in range(meta.num_inputs())]
    return checked_inputs(meta, read_npz(path, limits), quantize)


def _largest(meta: MethodMeta, i: int, quantize: bool) -> int:
    """Return the maximum bytes of an array for input `i`."""
    if meta.input_tag(i) != TENSOR:
        return 0
    info = meta.input_tensor_meta(i)
    return math.prod(info.sizes()) * np.float64().itemsize if quantize else info.nbytes()


# ---- checks


def checked_inputs(meta: MethodMeta, values: Sequence[Any], quantize: bool = False) -> list[Any]:
    """Return the inputs for a run: arrays, and the exported values of numbers.

    quantize: floats for an input of integers become those integers, by the program's scale and zero
    point. Raises InvalidArgument for another number of inputs, another dtype or value, NotSupported for
    other sizes.
    """
    check_count(meta, values)
    if quantize:
        values = [_quantized(meta, i, value) for i, value in enumerate(values)]
    return [checked_input(meta, i, value) for i, value in enumerate(values)]


def check_count(meta: MethodMeta, values: Sequence[Any]) -> None:
    """Raise InvalidArgument unless the number of inputs is that of the method."""
    if len(values) != meta.num_inputs():
        raise fail(INVALID_ARGUMENT, f"{meta.num_inputs()} expected, {len(values)} given", "inputs",
                   remedy=_signature(meta))


def _quantized(meta: MethodMeta, i: int, value: Any) -> Any:
    if meta.input_tag(i) != TENSOR:
        return value
    info = meta.input_tensor_meta(i)
    array = _as_array(value, i, info.scalar_type())
    parameters = meta.input_quantization(i)
    if parameters is None or array.dtype.kind != "f":
        return value
    dtype = numpy_dtype(info)
    if dtype.kind not in "iu":
        return value
    if not 0 < np.float32(parameters[0]) < np.inf:
        raise fail(INVALID_PROGRAM, f"quantized values cannot have scale {parameters[0]}", "input", i,
                   remedy="export the program again, or give integers")
    return quantize_array(array, *parameters, dtype)


def quantize_array(array: np.ndarray, scale: float, zero_point: int, dtype: np.dtype) -> np.ndarray:
    """Return round(array / scale) + zero_point, clamped to dtype and rounded as ExecuTorch rounds."""
    inverse = np.float32(1) / np.float32(scale)
    rounded = np.nan_to_num(np.rint(array.astype(np.float32) * inverse) + np.float32(zero_point))
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(rounded, limits.min, limits.max), dtype)


def dequantize_array(array: np.ndarray, scale: float, zero_point: int) -> np.ndarray:
    """Return (array - zero_point) * scale as float32."""
    return (array.astype(np.int64) - zero_point).astype(np.float32) * np.float32(scale)


def _signature(meta: MethodMeta) -> str:
    expected = []
    for i in range(meta.num_inputs()):
        if meta.input_tag(i) == TENSOR:
            info = meta.input_tensor_meta(i)
            bound = "up to " if info.is_dynamic() else ""
            expected.append(f"in{i}: {info.dtype} {bound}{list(info.sizes())}")
        else:
            expected.append(f"in{i}: {kind_name(meta.input_tag(i))}")
    return "the method takes " + (", ".join(expected) or "none")


def checked_input(meta: MethodMeta, i: int, value: Any) -> Any:
    """Return input `i` as checked_inputs returns it."""
    if meta.input_tag(i) != TENSOR:
        return _checked_number(meta, i, value)
    info = meta.input_tensor_meta(i)
    expected = numpy_dtype(info)
    array = _as_array(value, i, info.scalar_type())
    if array.dtype != expected:
        raise fail(INVALID_ARGUMENT, f"dtype {expected} expected, {array.dtype} given", "input", i,
                   remedy=_conversion(meta, i, expected, is_torch(value)))
    _check_sizes(info, array.shape, i)
    return array


def _check_sizes(info: TensorInfo, sizes: tuple[int, ...], i: int) -> None:
    """Check the sizes of an input, as ExecuTorch's resize_tensor does.

    Raises NotSupported unless the sizes are those of a static input, or within the bounds of a dynamic
    one.
    """
    if not info.is_dynamic():
        if sizes != info.sizes():
            raise fail(NOT_SUPPORTED,
                       f"sizes {list(info.sizes())} expected, {list(sizes)} given", "input", i,
                       remedy="the input is static: give these sizes, or export it as dynamic")
    elif len(sizes) != len(info.sizes()) or math.prod(sizes) > math.prod(info.sizes()):
        raise fail(NOT_SUPPORTED, f"sizes {list(sizes)} given", "input", i,
                   remedy=f"give {len(info.sizes())} sizes, of as many elements as "
                          f"{list(info.sizes())} at most")


def _conversion(meta: MethodMeta, i: int, dtype: np.dtype, from_torch: bool) -> str:
    parameters = meta.input_quantization(i)
    scalar_type = meta.input_tensor_meta(i).scalar_type()
    if from_torch and parameters is None:
        return f"convert it with .to(torch.{torch_name(scalar_type)})"
    if scalar_type == BFLOAT16:
        return "give bfloat16 as its bits: picotorch.runtime.to_bfloat16(array)"
    if parameters is None:
        return f"convert it with .astype({str(dtype)!r})"
    return (f"quantize it with scale {parameters[0]:.9g} and zero point {parameters[1]} "
            "(--quantize does)")


def _as_array(value: Any, i: int, scalar_type: int) -> np.ndarray:
    try:
        return as_array(value, scalar_type)
    except (TypeError, ValueError, RuntimeError) as error:
        raise fail(INVALID_TYPE, f"cannot become an array: {error}", "input", i,
                   remedy="give an array of numpy or a tensor of torch") from None


def _checked_number(meta: MethodMeta, i: int, value: Any) -> float | str | None:
    exported = exported_value(meta, i)
    if isinstance(value, np.ndarray | np.generic):
        value = value.item() if value.ndim == 0 else value
    if not _same(value, exported):
        raise fail(INVALID_ARGUMENT, f"the program was exported with {exported}, {value} given",
                   "input", i, remedy="a number is part of the program")
    return exported


def _same(value: Any, exported: Any) -> bool:
    """Return True if a value is the exported one; a float may differ as far as ExecuTorch allows."""
    if isinstance(exported, float) and isinstance(value, int | float):
        return math.isclose(value, exported, rel_tol=1e-5, abs_tol=1e-4)
    return isinstance(value, int | float | str | None) and value == exported


def exported_value(meta: MethodMeta, index: int) -> float | str | None:
    """Return the value of input `index` at export: int, float, bool, string or None."""
    kind = meta.input_tag(index)
    if kind == schema.KERNEL_TYPES_NULL:
        return None
    values = Values(meta.program, meta.plan)
    if kind == schema.KERNEL_TYPES_STRING:
        return values.string(meta.input_value(index))
    number = values.number(meta.input_value(index))
    if number is None:
        raise fail(INVALID_ARGUMENT, "an input of type " + kind_name(kind), "input",
                   index)
    return number


# ---- random inputs


def random_inputs(meta: MethodMeta, seed: int = SEED,
                  shapes: dict[int, tuple[int, ...]] | None = None) -> list[Any]:
    """Return random inputs for a method, the same for the same seed.

    Floats are from -1 to 1, bytes over their range, bools either value, and wider integers, which are
    mostly indexes, 0 or 1. Numbers are as exported.

    shapes: sizes by input, of dynamic ones; the maximum for others. Raises InvalidArgument,
    NotSupported.
    """
    generator = np.random.default_rng(seed)
    shapes = shapes or {}
    for i in shapes:
        if i >= meta.num_inputs():
            raise fail(INVALID_ARGUMENT, f"the method has {meta.num_inputs()} inputs, counted from 0",
                       "sizes of input", i, remedy=_signature(meta))
        _check_sizes(meta.input_tensor_meta(i), shapes[i], i)
    return [_random_tensor(generator, meta.input_tensor_meta(i), shapes.get(i))
            if meta.input_tag(i) == TENSOR else exported_value(meta, i)
            for i in range(meta.num_inputs())]


def _random_tensor(generator: np.random.Generator, info: TensorInfo,
                   sizes: tuple[int, ...] | None) -> np.ndarray:
    dtype = numpy_dtype(info)
    sizes = info.sizes() if sizes is None else sizes
    values: np.ndarray
    if dtype.kind == "f":
        values = generator.uniform(-1, 1, sizes)
    elif info.scalar_type() == BFLOAT16:
        values = to_bfloat16(generator.uniform(-1, 1, sizes))
    elif dtype.itemsize == 1 and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = generator.integers(limits.min, limits.max, sizes, endpoint=True)
    else:
        values = generator.integers(0, 2, sizes)
    return np.asarray(values).astype(dtype)


def request_inputs(meta: MethodMeta, path: Path | None, seed: int, quantize: bool,
                   sizes: dict[int, tuple[int, ...]]) -> list[Any]:
    """Return the inputs that a file has for a method, or random ones without a file."""
    return random_inputs(meta, seed, sizes) if path is None else read_inputs(path, meta, quantize)
