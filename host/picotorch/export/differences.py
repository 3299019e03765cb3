"""Measure the difference of a program from PyTorch, layer by layer, as the twin runs it.

The program is stepped through; after each instruction its output is read in place and compared with the
corresponding value of the float graph.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from picotorch.module import load_with_exact_memories

from ..host.inputs import checked_inputs, dequantize_array
from ..host.instructions import Instruction, read_instructions
from ..host.tensors import as_numbers, from_stored, torch_name
from ..host.twin import open_data, open_program, outputs, set_inputs
from ..host.values import TENSOR, Values
from .result import LayerDifference

if TYPE_CHECKING:
    from .lower_float import Part

# The arrays of these names that a graph computes of the arguments of forward
ValuesOf: TypeAlias = Callable[[list[Any], set[str]], dict[str, np.ndarray]]

SILENT = 300.0  # dB: stands for no difference, since JSON has no infinity


def decibels(sqnr: float | None) -> str:
    """Return an SQNR as text: "same" without a difference, "-" for None."""
    return "-" if sqnr is None else "same" if sqnr >= SILENT else f"{sqnr:.1f} dB"


class Difference:
    """The difference of values from the expected ones, over any number of arrays.

    sqnr: signal to quantization noise in dB, 10 log10(sum expected^2 / sum difference^2); None where
    a value is not finite, unless both are the same then.
    """

    equal: float | None = None  # share of equal elements

    def __init__(self) -> None:
        self.signal = self.noise = self.largest = self.magnitude = 0.0

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        """Add the difference of two arrays of the same size."""
        expected, found = expected.astype(np.float64), found.astype(np.float64)
        counted = np.isfinite(expected) | ~np.isclose(expected, found, equal_nan=True)
        expected = expected[counted]
        difference = np.abs(found[counted] - expected)
        difference[np.isnan(difference)] = np.inf
        self.signal += float((expected**2).sum())
        self.noise += float((difference**2).sum())
        self.largest = max(self.largest, float(difference.max(initial=0)))
        self.magnitude = max(self.magnitude, float(np.abs(expected).max(initial=0)))

    @property
    def sqnr(self) -> float | None:
        """Return the ratio in dB."""
        if not math.isfinite(self.signal) or not math.isfinite(self.noise):
            return None
        if self.noise == 0:
            return SILENT
        return 10 * math.log10(self.signal / self.noise) if self.signal else -SILENT


class Equality(Difference):
    """The difference of integers or booleans, with the share of equal elements.

    An index or a class that is another one may differ by any number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.equal, self._same, self._count = 1.0, 0, 0

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        """Add the difference of two arrays of the same size."""
        super().add(expected, found)
        self._same += int((expected == found).sum())
        self._count += expected.size
        self.equal = self._same / self._count if self._count else 1.0


class Stepper:
    """A method of a program, one instruction at a time. data: bytes of its .ptd files."""

    def __init__(self, program: bytes, method: str = "forward", data: Sequence[bytes] = ()) -> None:
        self.method = load_with_exact_memories(open_program(program), method,
                                               data_map=open_data(list(data)))
        self.meta = self.method.method_meta()
        self.values = Values(self.meta.program, self.meta.plan)
        self.instructions = read_instructions(self.meta, self.values)
        self.has_jumps = any(one.destination is not None for one in self.instructions)

    def run(self, inputs: list[Any]) -> list[np.ndarray]:
        """Return the outputs for these inputs, as numbers that can be compared."""
        set_inputs(self.method, self.meta, checked_inputs(self.meta, inputs))
        self.method.execute()
        return [as_numbers(array, self._scalar_type(i))
                for i, array in enumerate(outputs(self.method, self.meta))]

    def _scalar_type(self, output: int) -> int | None:
        is_tensor = self.meta.output_tag(output) == TENSOR
        return self.meta.output_tensor_meta(output).scalar_type() if is_tensor else None

    def step(self, inputs: list[Any], selected: set[int],
             found: Callable[[int, int, np.ndarray], None]) -> None:
        """Call found(index, k, array) with output k of each selected instruction.

        The tensors of a list are passed one by one. The method must have no jumps.
        """
        set_inputs(self.method, self.meta, checked_inputs(self.meta, inputs))
        for instruction in self.instructions:
            self.method.step()
            if instruction.index not in selected:
                continue
            for k, tensor in enumerate(self._outputs(instruction)):
                array = self._read(tensor)
                if array is not None:
                    found(instruction.index, k, array)
        self.method.reset_execution()

    def dtype(self, index: int, k: int) -> str:
        """Return the name of the dtype of output k of an instruction."""
        tensor = self._outputs(self.instructions[index])[k]
        return torch_name(self.values.tensor(tensor).scalar_type())

    def _outputs(self, instruction: Instruction) -> list[int]:
        """Return the tensors that an instruction computes, the items of a list one by one."""
        return self.values.all_tensors(instruction.outputs)

    def _read(self, tensor: int) -> np.ndarray | None:
        info, (buffer, offset) = self.values.tensor(tensor), self.values.planned(tensor)
        if buffer < 0 or info.is_dynamic():
            return None
        memory = self.method.manager.planned_memory.buffers[buffer]
        array = from_stored(memoryview(memory)[offset : offset + info.nbytes()], info)
        return as_numbers(array, info.scalar_type())


def layers(program: bytes, parts: "Mapping[int, Part]", samples: Iterable[list[Any]],
           reference: ValuesOf, fake_quantized: ValuesOf | None = None) -> list[LayerDifference]:
    """Return the difference of each layer, in the order of the program.

    If several instructions compute one value, the last one counts.

    parts: lower_float.Part by index of instruction. reference(sample, names) returns {name: array}, and
    fake_quantized(sample, names) the same of the graph whose values are rounded to integers.
    """
    stepper = Stepper(program)
    if not parts or stepper.has_jumps:
        return []
    last = {value: (i, k) for i, part in parts.items()
            if not _is_copy(stepper.instructions[i].call)
            for k, value in enumerate(part.values) if value}
    names = {output: value for value, output in last.items()}
    found = {output: (Difference(), Difference()) for output in names}
    for sample in samples:
        expected = reference(sample, set(last))
        rounded = fake_quantized(sample, set(last)) if fake_quantized else {}

        def compare(i: int, k: int, array: np.ndarray, expected: dict[str, np.ndarray] = expected,
                    rounded: dict[str, np.ndarray] = rounded) -> None:
            part, name = parts[i], names.get((i, k), "")
            target = expected.get(name)
            if part.scale is not None and array.dtype.kind == "i":
                array = dequantize_array(array, part.scale, part.zero_point)
            if target is None or target.size != array.size or array.dtype.kind != "f":
                return
            program, fake = found[i, k]
            program.add(target, array.reshape(target.shape))
            if name in rounded:
                fake.add(target, _rounded(rounded[name], part))

        stepper.step(sample, {i for i, _ in names}, compare)
    return [LayerDifference(
                parts[i].module or names[i, k], names[i, k], stepper.instructions[i].call,
                "int8" if parts[i].scale is not None else stepper.dtype(i, k),
                difference.sqnr, difference.largest, difference.magnitude,
                fake.sqnr if fake_quantized else None)
            for (i, k), (difference, fake) in sorted(found.items())
            if difference.signal or difference.noise]


def _rounded(array: np.ndarray, part: "Part") -> np.ndarray:
    """Return floats after rounding to 8-bit integers with the part's scale."""
    if part.scale is None:
        return array
    integers = np.clip(np.round(array / part.scale) + part.zero_point, -128, 127)
    return ((integers - part.zero_point) * part.scale).astype(array.dtype)


def _is_copy(operator: str) -> bool:
    """Return True for an operator whose result is its input in another type or order."""
    return "quantize_per_tensor" in operator or "_clone_dim_order" in operator
