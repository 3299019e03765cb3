"""Samples of a module's inputs: to quantize by, and to compare with PyTorch on."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from picotorch.errors import INVALID_ARGUMENT, fail
from picotorch.memory import LIMIT

from ..npz import read_named_npz

LABELS = "labels"


class Samples(NamedTuple):
    """inputs: of each sample the arguments of forward, arrays or numbers. labels: the class that each
    is of, None where nobody said."""

    inputs: list[list]
    labels: list[int] | None = None


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays in0, in1 ... of an .npz file, whose first dim counts the samples, and perhaps labels.
    Raises AccessFailed, InvalidArgument."""
    arrays = read_named_npz(path, LIMIT)
    names = {f"in{i}" for i in range(len(arrays) - (LABELS in arrays))}
    if not names or set(arrays) - {LABELS} != names:
        raise fail(INVALID_ARGUMENT, f"has {', '.join(sorted(arrays)) or 'no arrays'}", str(path),
                   remedy="name the arrays in0, in1 ... without a gap, and the classes labels")
    return arrays


def samples_of(arrays: dict[str, np.ndarray], examples: Sequence) -> Samples:
    """The samples of arrays in0, in1 ..., one for each example that is a tensor, and perhaps labels. An
    array has the sizes of its example behind a dim that counts the samples, which may also be the
    example's first. ValueError says what does not fit."""
    tensors = [i for i, example in enumerate(examples) if np.ndim(example)]
    given = [arrays[name] for name in sorted(set(arrays) - {LABELS}, key=lambda name: int(name[2:]))]
    if len(given) != len(tensors):
        raise ValueError(f"{len(given)} arrays given, the module takes {len(tensors)} tensors")
    parts = {i: _parts(array, np.shape(examples[i]), f"in{k}", examples[i])
             for k, (i, array) in enumerate(zip(tensors, given, strict=True))}
    counts = sorted({len(part) for part in parts.values()})
    if len(counts) != 1 or counts == [0]:
        raise ValueError(f"arrays of {' and '.join(map(str, counts))} samples given")
    inputs = [[parts[i][k] if i in parts else example for i, example in enumerate(examples)]
              for k in range(counts[0])]
    return Samples(inputs, _labels(arrays.get(LABELS), counts[0]))


def _parts(array, sizes, name, example):
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} is of {array.dtype}")
    array = array.astype(np.asarray(example).dtype)
    if array.shape == sizes:
        return array[None]
    if array.shape[1:] == sizes:
        return array
    if array.ndim == len(sizes) and array.shape[1:] == sizes[1:] and array.shape[0] % sizes[0] == 0:
        return array.reshape(-1, *sizes)
    raise ValueError(f"{name} has sizes {list(array.shape)}, samples of {list(sizes)} are wanted")


def _labels(labels, count):
    if labels is None:
        return None
    labels = np.asarray(labels)
    if labels.size != count or labels.dtype.kind not in "iu":
        raise ValueError(f"labels has {labels.size} values of {labels.dtype} for {count} samples")
    return [int(label) for label in labels.ravel()]
