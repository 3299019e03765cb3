"""Compare a program with the float program of the same module, on samples, on the twin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from picotorch.errors import INVALID_ARGUMENT, fail

from ..export.differences import SILENT, Difference, Equality, Stepper
from ..export.samples import Samples, Unfit, read_arrays, samples_of
from ..host.inputs import checked_inputs, dequantize_array, exported_value
from ..host.operators import supported_operators
from ..host.report import Report
from ..host.tensors import numpy_dtype
from ..host.values import TENSOR
from .matching import Program, candidates

_LAYER_SAMPLES = 16  # that layers are compared on; outputs on all
_ZERO_POINTS = ("output_offset", "output_zero_point", "out_zero_point", "zero_point")


@dataclass(frozen=True)
class OutputDifference(Report):
    """An output beside the float program's. sqnr: in dB; equal: share of equal integers."""

    output: int
    sqnr: float | None
    equal: float | None


@dataclass(frozen=True)
class Accuracy(Report):
    """The share of samples whose class is right. reference: of the reference, None without one."""

    program: float
    reference: float | None


@dataclass(frozen=True)
class Beside(Report):
    """A program beside a reference. layers: SQNR in dB by instruction, None where unknown."""

    reference: str
    samples: int
    layer_samples: int
    outputs: list[OutputDifference]
    accuracy: Accuracy | None
    layers: dict[int, float | None] = field(default_factory=dict)


def compare(program: bytes, float_program: bytes | None, method: str, path: Path,
            data: Sequence[bytes] = ()) -> Beside:
    """Compare on the samples of a file. Raises Error.

    float_program: None to find the accuracy alone, which needs labels.
    """
    runner = Stepper(program, method, data)
    reference = None if float_program is None else Stepper(float_program, method, data)
    samples = _samples(path, reference or runner)
    if reference is None and samples.labels is None:
        raise fail(INVALID_ARGUMENT, "has no labels", str(path),
                   remedy="add an array labels, or give --float with the program in float32")
    outputs: dict[int, Difference] = {}
    right = [0, 0]
    for k, sample in enumerate(samples.inputs):
        found = _run(runner, sample)
        expected = [] if reference is None else _run(reference, sample)
        for i, (target, have) in enumerate(zip(expected, found, strict=False)):
            if np.shape(target) == np.shape(have):
                kind = Difference if np.asarray(target).dtype.kind == "f" else Equality
                outputs.setdefault(i, kind()).add(np.asarray(target), np.asarray(have))
        if samples.labels is not None:
            for side, values in enumerate((found, expected)):
                right[side] += bool(values) and int(np.argmax(values[0])) == samples.labels[k]
    count = len(samples.inputs)
    layer_samples = samples.inputs[:_LAYER_SAMPLES]
    return Beside(
        "the float program", count, min(count, _LAYER_SAMPLES) if reference else 0,
        [_output_difference(i, one) for i, one in sorted(outputs.items())],
        None if samples.labels is None else Accuracy(
            right[0] / count, None if reference is None else right[1] / count),
        {} if reference is None else _layers(runner, reference, layer_samples))


def _output_difference(i: int, difference: Difference) -> OutputDifference:
    return OutputDifference(i, difference.sqnr, difference.equal)


def _samples(path: Path, stepper: Stepper) -> Samples:
    meta = stepper.meta
    examples = [
        np.zeros(meta.input_tensor_meta(i).sizes(), numpy_dtype(meta.input_tensor_meta(i)))
        if meta.input_tag(i) == TENSOR else exported_value(meta, i) for i in range(meta.num_inputs())]
    try:
        found = samples_of(read_arrays(path), examples, None)
    except Unfit as error:
        raise fail(INVALID_ARGUMENT, str(error), str(path), remedy=error.remedy) from None
    return found


def _inputs(stepper: Stepper, sample: list[Any]) -> list[Any]:
    """Return a sample for the program: integers for an input that takes them."""
    return checked_inputs(stepper.meta, sample, quantize=True)


def _run(stepper: Stepper, sample: list[Any]) -> list[np.ndarray]:
    """Return the outputs, integers of a scale as floats."""
    found = []
    for i, array in enumerate(stepper.run(_inputs(stepper, sample))):
        parameters = stepper.meta.output_quantization(i)
        if parameters is not None and array.dtype.kind in "iu":
            array = dequantize_array(array, *parameters)
        found.append(array)
    return found


# ---- layers


class _Fit:
    """The difference of integers from floats, with the scale of the integers that fits best.

    A program has no scale for a tensor between two int8 layers. zero_point: None if it is unknown; then
    the one that fits best.
    """

    def __init__(self, zero_point: int | None) -> None:
        self.zero_point = zero_point
        self.count = 0
        self.sums = np.zeros(5)  # of x, y, xx, xy, yy

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        """Add the difference of two arrays of the same size."""
        y = expected.astype(np.float64).ravel()
        x = found.astype(np.float64).ravel() - (self.zero_point or 0)
        self.sums += (x.sum(), y.sum(), (x * x).sum(), (x * y).sum(), (y * y).sum())
        self.count += x.size

    def sqnr(self) -> float | None:
        x, y, xx, xy, yy = self.sums
        if not np.isfinite(self.sums).all() or not yy:
            return None
        signal = yy
        if self.zero_point is None:
            xx, xy, yy = xx - x * x / self.count, xy - x * y / self.count, yy - y * y / self.count
        noise = yy - (xy * xy / xx if xx and xy > 0 else 0)
        if noise <= signal * 10 ** (-SILENT / 10):
            return SILENT
        return 10 * math.log10(signal / noise)


class _Same(_Fit):
    """The difference of floats from floats."""

    def __init__(self) -> None:
        super().__init__(0)
        self.difference = Difference()

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        self.difference.add(expected, found)

    def sqnr(self) -> float | None:
        return self.difference.sqnr


def _layers(runner: Stepper, reference: Stepper, samples: Sequence[list[Any]]
            ) -> dict[int, float | None]:
    """Return the SQNR of matched layers, beside the value of the float program that is nearest."""
    if runner.has_jumps or reference.has_jumps:
        return {}
    own, other = (Program(one.instructions, one.values) for one in (runner, reference))
    near = candidates(own, other)
    zero_points = _zero_points(own)
    fits = {(i, k): _fit(runner, i, zero_points) for i, indexes in near.items() for k in indexes}
    wanted = {k for indexes in near.values() for k in indexes}
    for sample in samples:
        expected: dict[int, np.ndarray] = {}

        def keep(i: int, k: int, array: np.ndarray,
                 expected: dict[int, np.ndarray] = expected) -> None:
            expected.setdefault(i, array)

        reference.step(_inputs(reference, sample), wanted, keep)

        def compare(i: int, k: int, array: np.ndarray,
                    expected: dict[int, np.ndarray] = expected) -> None:
            for index in near[i] if k == 0 else ():
                target = expected.get(index)
                if target is not None and target.dtype.kind == "f":
                    fits[i, index].add(target, _in_order(array, target.shape))

        runner.step(_inputs(runner, sample), set(near), compare)
    found: dict[int, float | None] = {}
    for i, indexes in near.items():
        known = [sqnr for index in indexes if (sqnr := fits[i, index].sqnr()) is not None]
        if known:
            found[i] = max(known)
    return found


def _fit(runner: Stepper, index: int, zero_points: dict[int, int | None]) -> _Fit:
    tensor = Program(runner.instructions, runner.values).outputs(runner.instructions[index])[0]
    if numpy_dtype(runner.values.tensor(tensor)).kind == "f":
        return _Same()
    return _Fit(zero_points.get(tensor))


def _in_order(array: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return an array in the order of the float program: an image may have its channels last."""
    if array.shape != sizes and array.ndim == len(sizes) > 2:
        channels_first = np.moveaxis(array, -1, 1)
        if channels_first.shape == sizes:
            return channels_first
    return array


def _zero_points(program: Program) -> dict[int, int | None]:
    """Return the zero point of each tensor of integers, None if it is unknown.

    An operator without an argument for it keeps the zero point of its first input.
    """
    found: dict[int, int | None] = {}
    known = supported_operators()
    for one in program.instructions:
        operator = known.get(one.call)
        names = operator.arguments_in(len(one.arguments + one.outputs)) if operator else ()
        position = next((names.index(name) for name in _ZERO_POINTS if name in names), None)
        zero_point = None
        if position is not None and position < len(one.arguments):
            number = program.values.number(one.arguments[position])
            zero_point = None if number is None else int(number)
        elif "lut" not in names and one.arguments:
            tensors = program.values.tensors(one.arguments[0])
            zero_point = found.get(tensors[0]) if tensors else None
        found |= dict.fromkeys(program.outputs(one), zero_point)
    return found
