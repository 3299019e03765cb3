"""Score outputs by the user's own function: metric(outputs, labels) returns a number, higher is better.

outputs is an array of (samples, *sizes), or a list of such arrays if the program has several outputs.
labels is an array of the labels of the samples. If they have none, it is the samples themselves, as an
array or a list like outputs. The elements of an array are arrays if their sizes differ.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from picotorch.errors import INVALID_ARGUMENT, fail

from .samples import Samples, stacked
from .torch_errors import line_of

Metric: TypeAlias = Callable[[Any, Any], Any]


def score(metric: Metric, outputs: Sequence[Sequence[Any]], samples: Samples) -> float:
    """Return the metric of the outputs of each sample.

    Raises InvalidArgument for a metric that raises, or returns no number.
    """
    name = getattr(metric, "__name__", "metric")
    found = _columns(outputs)  # copies, as the user's code may change them
    labels = _columns(samples.inputs) if samples.targets is None else samples.targets.copy()
    try:
        value = metric(found, labels)
    except Exception as error:  # whatever the user's code does
        file = getattr(getattr(metric, "__code__", None), "co_filename", None)
        raise fail(INVALID_ARGUMENT, f"raises {type(error).__name__}: {error}"
                   f"{line_of(error, file) if file else ''}", name,
                   remedy=f"it receives outputs, {_sizes(found)}, and "
                   f"{'samples' if samples.targets is None else 'labels'}, {_sizes(labels)}") from None
    try:
        if isinstance(value, str | bytes) or np.ndim(value):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise fail(INVALID_ARGUMENT, f"returns {type(value).__name__}, not a number", name,
                   remedy="end it with: return float(...)") from None
    if not math.isfinite(number):
        raise fail(INVALID_ARGUMENT, f"returns {number}", name,
                   remedy="return a finite number, and check the labels and the division in it")
    return number


def _columns(rows: Sequence[Sequence[Any]]) -> Any:
    """Return an array of all rows for each item of a row; the array itself for rows of one item."""
    columns = []
    for column in zip(*rows, strict=True):
        arrays = [np.asarray(value) for value in column]
        is_batch = all(array.ndim > 1 and len(array) == 1 for array in arrays)
        columns.append(stacked([array[0] for array in arrays] if is_batch else arrays))
    return columns[0] if len(columns) == 1 else columns


def _sizes(value: Any) -> str:
    arrays = value if isinstance(value, list) else [value]
    return " and ".join(f"an array of {list(array.shape)}" for array in arrays)
