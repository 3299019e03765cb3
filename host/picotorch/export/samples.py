"""Read samples of a module's inputs: to quantize by, and to compare with PyTorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from picotorch.errors import INVALID_ARGUMENT, fail
from picotorch.memory import LIMIT

from ..host.npz import read_named_npz

LABELS = "labels"
_LARGE = 16  # beyond what inputs that are scaled have
_SIZES = "give arrays in0, in1 ... of (samples, *sizes of the input)"
_BAD = "leave this sample out, or correct it"


class Unfit(ValueError):
    """Samples that cannot be used. remedy: what to do."""

    def __init__(self, text: str, remedy: str = _SIZES) -> None:
        super().__init__(text)
        self.remedy = remedy


class Samples(NamedTuple):
    """Samples of a module's inputs.

    inputs: of each sample the arguments of forward, arrays or numbers. labels: the class of each, None
    without labels. warnings: sentences on values that are likely mistakes.
    """

    inputs: list[list[Any]]
    labels: list[int] | None = None
    warnings: tuple[str, ...] = ()


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays in0, in1 ... and perhaps labels of an .npz file.

    The first dim counts the samples. Raises AccessFailed, InvalidArgument.
    """
    arrays = read_named_npz(path, LIMIT)
    names = {f"in{i}" for i in range(len(arrays) - (LABELS in arrays))}
    if not names or set(arrays) - {LABELS} != names:
        raise fail(INVALID_ARGUMENT, f"has {', '.join(sorted(arrays)) or 'no arrays'}", str(path),
                   remedy="name the arrays in0, in1 ... without a gap, and the classes labels")
    return arrays


def samples_of(arrays: dict[str, np.ndarray], examples: Sequence[Any],
               classes: int | None = None) -> Samples:
    """Return the Samples of arrays in0, in1 ... (one for each tensor example), and perhaps labels.

    An array has the sizes of its example behind a dim that counts the samples, which may also be the
    example's first. classes: the number of classes, None if unknown. Raises Unfit.
    """
    tensors = [i for i, example in enumerate(examples) if np.ndim(example)]
    columns = [arrays[name] for name in sorted(set(arrays) - {LABELS}, key=lambda name: int(name[2:]))]
    if len(columns) != len(tensors):
        raise Unfit(f"{len(columns)} arrays given, the module takes {len(tensors)} tensors")
    parts, warnings = {}, []
    for k, (i, array) in enumerate(zip(tensors, columns, strict=True)):
        array = _checked(np.asarray(array), f"in{k}")
        parts[i] = _parts(array, np.shape(examples[i]), f"in{k}")
        warnings += _warnings(array, f"in{k}", examples[i])
        parts[i] = _converted(parts[i], f"in{k}", examples[i])
    counts = sorted({len(part) for part in parts.values()})
    if len(counts) != 1 or counts == [0]:
        raise Unfit(f"arrays of {' and '.join(map(str, counts))} samples given")
    inputs = [[parts[i][k] if i in parts else example for i, example in enumerate(examples)]
              for k in range(counts[0])]
    return Samples(inputs, _labels(arrays.get(LABELS), counts[0], classes), tuple(warnings))


def example_samples(examples: Sequence[Any]) -> Samples:
    """Return the example inputs as the only sample.

    What is not finite there is a warning: it may be meant, as in a mask, and does no harm to the
    program.
    """
    warnings = []
    for k, example in enumerate(example for example in examples if np.ndim(example)):
        bad = _not_finite(_plain(example))
        if bad is not None:
            warnings.append(f"example inputs: in{k} has {_name_of(bad)}, so that the comparison with "
                            "PyTorch means little")
    return Samples([list(examples)], warnings=tuple(warnings))


def _checked(array: np.ndarray, name: str) -> np.ndarray:
    array = _plain(array)
    if array.dtype.kind not in "fiub":
        raise Unfit(f"{name} is of {array.dtype}")
    return array


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array of bfloat16 as one of float32."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _parts(array: np.ndarray, sizes: tuple[int, ...], name: str) -> np.ndarray:
    if array.shape == sizes:
        return array[None]
    if array.shape[1:] == sizes:
        return array
    if array.ndim == len(sizes) and array.shape[1:] == sizes[1:] and array.shape[0] % sizes[0] == 0:
        return array.reshape(-1, *sizes)
    raise Unfit(f"{name} has sizes {list(array.shape)}, samples of {list(sizes)} are wanted")


def _converted(part: np.ndarray, name: str, example: Any) -> np.ndarray:
    """Convert samples to the dtype of their example.

    Raises Unfit for NaN, infinity, and values outside the dtype's range. A mask, to be added to scores,
    may have infinities.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        converted = part.astype(example.dtype)
    if _is_mask(part) and _is_float(converted):
        return converted
    for k in range(len(part)):
        bad = _not_finite(part[k])
        if bad is not None:
            raise Unfit(f"{name} has {_name_of(bad)} in sample {k}", _BAD)
        is_valid = (np.isfinite(_plain(converted[k])) if _is_float(converted)
                    else converted[k] == part[k])
        if not is_valid.all():
            value = part[k][~is_valid].flat[0]
            raise Unfit(f"{name} has {value} in sample {k}, which {converted.dtype} cannot hold",
                        f"give arrays of {converted.dtype}")
    return converted


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _is_mask(array: np.ndarray) -> bool:
    """Return True for an array of zeros and -inf alone."""
    return bool(((array == 0) | (array == -np.inf)).all()) and bool((array == 0).any())


def _not_finite(array: np.ndarray) -> float | None:
    """Return the first value that is not finite, None where all are."""
    if array.dtype.kind != "f":
        return None
    bad = array[~np.isfinite(array)]
    return float(bad.flat[0]) if bad.size else None


def _name_of(value: float) -> str:
    return "NaN" if np.isnan(value) else "an infinite value"


def _warnings(array: np.ndarray, name: str, example: Any) -> list[str]:
    if not array.size:
        return []
    found, low, high = [], array.min(), array.max()
    if array.size > 1 and low == high:
        found.append(f"samples: {name} has one value only, {low}: nothing is learned from such samples")
    largest = np.abs(_plain(example)).max(initial=0) if _is_float(example) else np.inf
    if array.dtype.kind in "iu" and 0 <= low and 1 < high <= 255 and largest <= _LARGE and (
            array.dtype == np.uint8 or high > 127):
        found.append(f"samples: {name} has integers from {low} to {high} for an input of "
                     f"{example.dtype}, and they are taken as they are; if these are raw pixels, scale "
                     f"them as for the training, {name} / 255.0 for example")
    return found


def _labels(labels: Any, count: int, classes: int | None) -> list[int] | None:
    if labels is None:
        return None
    labels = np.asarray(labels)
    if labels.size != count or labels.dtype.kind not in "iu":
        raise Unfit(f"labels has {labels.size} values of {labels.dtype} for {count} samples",
                    "give an integer, the class, for each sample")
    found = [int(label) for label in labels.ravel()]
    for k, label in enumerate(found):
        if label < 0 or classes is not None and label >= classes:
            limit = "" if classes is None else f", the module gives {classes} classes"
            raise Unfit(f"labels has {label} for sample {k}{limit}",
                        "count the classes from 0 to one less than their number")
    return found
