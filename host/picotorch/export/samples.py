"""Read samples of a module's inputs: to quantize by, and to compare with PyTorch.

They come in rows: a row has one sample or a batch of them, as a tensor, a tuple of the arguments of
forward and perhaps labels, or a dict of either by name. A DataLoader yields such rows, an .npz file is
one row, and a folder has one in each file.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from picotorch.errors import INVALID_ARGUMENT, fail
from picotorch.memory import LIMIT

from ..host.npz import read_named_npz
from .arrays import argument
from .progress import Each

LABELS = "labels"
_LABELS = (LABELS, "label")  # names of a dict
_MAX_BYTES = 8 * LIMIT  # of all samples: a loader may have no end
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
    without labels. warnings: sentences on values that are likely mistakes. targets: the labels as they
    were given, classes or not, None without labels.
    """

    inputs: list[list[Any]]
    labels: list[int] | None = None
    warnings: tuple[str, ...] = ()
    targets: np.ndarray | None = None


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


def read_rows(path: Path) -> list[dict[str, np.ndarray]]:
    """Return the arrays of an .npz file, or of each .npz file in a folder, by name.

    Raises AccessFailed, InvalidArgument.
    """
    if not path.is_dir():
        return [read_arrays(path)]
    files = sorted(path.glob("*.npz"))
    if not files:
        raise fail(INVALID_ARGUMENT, "has no .npz file", str(path),
                   remedy="write one for each sample, or for each batch: numpy.savez(name, in0=...)")
    return [read_arrays(file) for file in files]


def samples_of(rows: Iterable[Any], examples: Sequence[Any], classes: int | None = None,
               names: Sequence[str] = (), each: Each = iter,
               are_classes: bool = True) -> Samples:
    """Return the Samples of rows, or of one row that is a dict.

    An array has the sizes of its example, perhaps behind a dim that counts the samples, which may also
    be the example's first. classes: the number of classes, None if unknown. names: of the arguments of
    forward; in0, in1 ... are names of its tensors. each(rows) yields the rows, and reports progress.
    are_classes: labels that a row names are classes. Raises Unfit.
    """
    tensors = [i for i, example in enumerate(examples) if np.ndim(example)]
    columns: dict[int, list[np.ndarray]] = {i: [] for i in tensors}
    targets, nbytes, is_named = [], 0, False
    for number, row in enumerate(each([rows] if isinstance(rows, Mapping) else rows)):
        try:
            found, target = _read_row(row, tensors, len(examples), names)
            parts = [_parts(_checked(found[i], f"in{k}"), np.shape(examples[i]), f"in{k}")
                     for k, i in enumerate(tensors)]
            counts = sorted({len(part) for part in parts})
            if len(counts) != 1:
                raise Unfit(f"arrays of {' and '.join(map(str, counts))} samples given")
        except Unfit as error:
            raise Unfit(f"batch {number}: {error}" if number else str(error), error.remedy) from None
        for column, part in zip(columns.values(), parts, strict=True):
            column.append(part)
            nbytes += part.nbytes
        if nbytes > _MAX_BYTES:
            raise Unfit(f"the samples are more than {_MAX_BYTES} bytes",
                        "ten to a hundred are enough: itertools.islice(loader, 100)")
        if target is not None:
            targets += _targets(target, counts[0])
            is_named = isinstance(row, Mapping)
    if not any(len(part) for column in columns.values() for part in column):
        raise Unfit("no samples given", "give ten to a hundred; a generator can be read only once")
    values, warnings, count = {}, [], 0
    for k, (i, column) in enumerate(columns.items()):
        array = np.concatenate(column)
        warnings += _warnings(array, f"in{k}", examples[i])
        values[i] = _converted(array, f"in{k}", examples[i])
        count = len(array)
    inputs = [[values[i][k] if i in values else example for i, example in enumerate(examples)]
              for k in range(count)]
    read = Samples(inputs, warnings=tuple(warnings))
    return with_labels(read, targets, classes, is_named and are_classes) if targets else read


def with_labels(samples: Samples, labels: Any, classes: int | None, are_classes: bool) -> Samples:
    """Return samples with these labels, one for each.

    Raises Unfit for labels that are not classes, if are_classes is true; the targets of a regression
    need not be.
    """
    targets, count = stacked(labels), len(samples.inputs)
    try:
        return samples._replace(labels=_labels(targets, count, classes), targets=targets)
    except Unfit:
        if are_classes:
            raise
    if len(targets) != count:
        raise Unfit(f"{len(targets)} labels for {count} samples given", "give one for each sample")
    return samples._replace(targets=targets)


def stacked(values: Sequence[Any]) -> np.ndarray:
    """Return an array of these values, of objects where their sizes differ."""
    arrays = [np.asarray(value) for value in values]
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    found = np.empty(len(arrays), object)
    found[:] = arrays
    return found


def _targets(target: np.ndarray, count: int) -> list[np.ndarray]:
    """Return the label of each sample of a row. A row of one sample may have the label itself."""
    is_list = target.ndim > 0 and (count > 1 or len(target) == 1)
    return list(target) if is_list else [target]


def _read_row(row: Any, tensors: list[int], count: int,
              names: Sequence[str]) -> tuple[dict[int, np.ndarray], np.ndarray | None]:
    """Return the arrays of a row by the argument of forward, and its labels, None without them.

    tensors: the arguments that are tensors, of `count` arguments.
    """
    if isinstance(row, Mapping):
        return _read_named(row, tensors, names)
    values = list(row) if isinstance(row, tuple | list) else [row]
    if len(values) == 2 and isinstance(values[0], tuple | list):  # (arguments, labels)
        values = [*values[0], values[1]]
    label = None
    if len(values) not in (count, len(tensors)) and len(values) - 1 in (count, len(tensors)):
        label = np.asarray(argument(values.pop()))
    if len(values) not in (count, len(tensors)):
        raise Unfit(f"{len(values)} arrays given, the module takes {len(tensors)} tensors",
                    "give these, and perhaps labels behind them")
    places = range(count) if len(values) == count else tensors
    return {i: np.asarray(argument(value))
            for i, value in zip(places, values, strict=True) if i in tensors}, label


def _read_named(row: Mapping[str, Any], tensors: list[int],
                names: Sequence[str]) -> tuple[dict[int, np.ndarray], np.ndarray | None]:
    """Return as _read_row: an array has the name of its argument, or in0, in1 ..."""
    places = {name: i for i, name in enumerate(names)} | {f"in{k}": i for k, i in enumerate(tensors)}
    found = {places[name]: np.asarray(argument(value)) for name, value in row.items() if name in places}
    if set(found) != set(tensors) or set(row) - set(places) - set(_LABELS):
        taken = [name for name, i in places.items() if i in tensors]
        given = [str(name) for name in row if name not in _LABELS]
        raise Unfit(f"{len(given)} arrays given, the module takes {len(tensors)} tensors: "
                    f"{', '.join(given) or 'none'} for {', '.join(taken)}",
                    "use these names, and labels for the classes")
    label = next((np.asarray(argument(row[name])) for name in _LABELS if name in row), None)
    return found, label


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
    if array.shape == sizes[1:] and sizes[0] == 1:
        return array.reshape(1, *sizes)
    raise Unfit(f"{name} has sizes {list(array.shape)}, samples of {list(sizes)} are expected")


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


def _labels(labels: np.ndarray, count: int, classes: int | None) -> list[int]:
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
