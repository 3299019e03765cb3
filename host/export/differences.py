"""Measure the difference of a program from PyTorch, layer by layer, as the twin runs it.

The program is stepped through; after each instruction its output is read where it lies and compared
with the value of the float graph that it stands for.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
from picotorch.module import load_with_exact_memories

from ..inputs import checked_inputs, dequantize_array
from ..instructions import read_instructions
from ..tensors import as_numbers, from_stored, torch_name
from ..twin import open_program, outputs, set_inputs
from ..values import TENSOR, Values

_SILENT = 300.0  # dB: what stands for no difference at all, which JSON cannot say


class Difference:
    """The difference of values from the expected ones, over any number of arrays.

    sqnr: signal to quantization noise in dB, 10 log10(sum expected^2 / sum difference^2); None where
    a value is not finite, unless both are the same then.
    """

    def __init__(self):
        self.signal = self.noise = self.largest = self.magnitude = 0.0

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        expected, found = expected.astype(np.float64), found.astype(np.float64)
        counted = np.isfinite(expected) | ~np.isclose(expected, found, equal_nan=True)
        expected = expected[counted]
        difference = np.abs(found[counted] - expected)
        difference[np.isnan(difference)] = np.inf
        self.signal += float((expected**2).sum())
        self.noise += float((difference**2).sum())
        self.largest = max(self.largest, float(difference.max(initial=0)))
        self.magnitude = max(self.magnitude, float(np.abs(expected).max(initial=0)))

    def entry(self) -> dict:
        return {"sqnr": self._sqnr(), "largest": self.largest, "magnitude": self.magnitude}

    def _sqnr(self):
        if not math.isfinite(self.signal) or not math.isfinite(self.noise):
            return None
        if self.noise == 0:
            return _SILENT
        return 10 * math.log10(self.signal / self.noise) if self.signal else -_SILENT


class Stepper:
    """The method "forward" of a program, one instruction at a time."""

    def __init__(self, program: bytes):
        self.method = load_with_exact_memories(open_program(program), "forward")
        self.meta = self.method.method_meta()
        self.values = Values(self.meta.program, self.meta.plan)
        self.instructions = read_instructions(self.meta, self.values)
        self.has_jumps = any(one.destination is not None for one in self.instructions)

    def run(self, inputs: list) -> list[np.ndarray]:
        """The outputs for these inputs, as numbers that can be compared."""
        set_inputs(self.method, self.meta, checked_inputs(self.meta, inputs))
        self.method.execute()
        return [as_numbers(array, self._scalar_type(i))
                for i, array in enumerate(outputs(self.method, self.meta))]

    def _scalar_type(self, output):
        is_tensor = self.meta.output_tag(output) == TENSOR
        return self.meta.output_tensor_meta(output).scalar_type() if is_tensor else None

    def step(self, inputs: list, wanted: set[int], found: Callable) -> None:
        """found(instruction, array) gets what each wanted instruction, by index, computes; of one
        with several outputs, the first that has elements. The method must have no jumps."""
        set_inputs(self.method, self.meta, checked_inputs(self.meta, inputs))
        for instruction in self.instructions:
            self.method.step()
            array = self._output(instruction) if instruction.index in wanted else None
            if array is not None:
                found(instruction, array)
        self.method.reset_execution()

    def dtype(self, index: int) -> str:
        """The name of the dtype that an instruction computes."""
        return torch_name(self.values.tensor(self.instructions[index].outputs[0]).scalar_type())

    def _output(self, instruction):
        value = next((one for one in instruction.outputs if self.values.kind(one) != TENSOR
                      or self.values.tensor(one).nbytes()), -1)
        if value < 0 or self.values.kind(value) != TENSOR:
            return None
        info, (buffer, offset) = self.values.tensor(value), self.values.planned(value)
        if buffer < 0 or info.is_dynamic():
            return None
        memory = self.method.manager.planned_memory.buffers[buffer]
        array = from_stored(memoryview(memory)[offset : offset + info.nbytes()], info)
        return as_numbers(array, info.scalar_type())


def layers(program: bytes, parts: dict, samples: Iterable[list], reference: Callable) -> list[dict]:
    """The difference of each layer, in the order of the program. Of several instructions that compute
    one value, the last is taken.

    parts: lowering.Part by index of instruction. reference(sample, names) gives {name: array}.
    """
    stepper = Stepper(program)
    if not parts or stepper.has_jumps:
        return []
    last = {part.value: i for i, part in parts.items() if part.value
            and not _is_conversion(stepper.instructions[i].call)}
    found = {i: Difference() for i in last.values()}
    for sample in samples:
        expected = reference(sample, set(last))

        def compare(instruction, array, expected=expected):
            part = parts[instruction.index]
            if part.scale is not None and array.dtype.kind == "i":
                array = dequantize_array(array, part.scale, part.zero_point)
            want = expected.get(part.value)
            if want is not None and want.size == array.size and array.dtype.kind == "f":
                found[instruction.index].add(want, array.reshape(want.shape))

        stepper.step(sample, set(found), compare)
    return [{"layer": parts[i].module or parts[i].value, "value": parts[i].value,
             "operator": stepper.instructions[i].call,
             "dtype": "int8" if parts[i].scale is not None else stepper.dtype(i), **difference.entry()}
            for i, difference in sorted(found.items()) if difference.signal or difference.noise]


def _is_conversion(operator):
    return "quantize_per_tensor" in operator
