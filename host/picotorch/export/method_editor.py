"""Rewrite a program: less memory, and integer inputs and outputs if it is quantized.

Unused values are dropped, and the memory is planned again. If the operators that quantize inputs and
dequantize outputs are removed, the float tensors need no memory. Scale and zero point are stored as
constant methods, under the names of ExecuTorch's own quantize_io_pass ("input0_scale", "output0_zp"
..., behind the name of a method that is not called forward).

It edits the classes of executorch.exir.schema in place.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import _picotorch

from picotorch.errors import INVALID_ARGUMENT, NOT_SUPPORTED, OPERATOR_MISSING, fail

from ..host.operators import OUTPUTS, operator_form, supported_operators
from ..host.report import Report
from . import planning

if TYPE_CHECKING:
    from executorch.exir import schema

_QUANTIZE = ("cortex_m::quantize_per_tensor.out", "quantized_decomposed::quantize_per_tensor.out")
_DEQUANTIZE = ("cortex_m::dequantize_per_tensor.out",
               "quantized_decomposed::dequantize_per_tensor.out")
_PARAMETERS = ("scale", "zp", "quant_min", "quant_max", "dtype")  # arguments 1 to 5 of all four
_BYTE, _FLOAT = 0, 6
_LISTS = ("TensorList", "OptionalTensorList")
_ALIGNMENT = 16  # ExecuTorch's default


@dataclass
class Quantization:
    """The values of _PARAMETERS of an input or output: `kind` and `index`."""

    kind: str
    index: int
    parameters: dict[str, int | float]

    def methods(self, prefix: str) -> dict[str, int | float]:
        """Return the numbers that the constant methods return, by name."""
        return {f"{prefix}{self.kind}{self.index}_{key}": value
                for key, value in self.parameters.items()}


@dataclass(frozen=True)
class Rewritten(Report):
    """A method that was rewritten.

    planned_before, planned: bytes of its planned buffers; min_planned: of any plan. quantized: inputs
    and outputs that are integers now, "input 0" for instance.
    """

    method: str
    planned_before: list[int]
    planned: list[int]
    min_planned: list[int]
    quantized: list[str]


class MethodEditor:
    """One execution plan."""

    def __init__(self, plan: "schema.ExecutionPlan") -> None:
        self.plan = plan
        self.supported = supported_operators()
        self.instructions = [one for chain in plan.chains for one in chain.instructions]
        # Calls to remove, by the index of the input and of the output
        self.quantizes: dict[int, schema.KernelCall] = {}
        self.dequantizes: dict[int, schema.KernelCall] = {}
        for one in self.instructions:
            self._check(one.instr_args)

    # ---- reading

    def _check(self, call: "schema.InstructionArguments") -> None:
        kind = type(call).__name__
        if kind == "JumpFalseCall":
            raise fail(NOT_SUPPORTED, "control flow", self.plan.name,
                       remedy="use the program as it is")
        if kind == "DelegateCall":
            raise fail(NOT_SUPPORTED, "delegates", self.plan.name,
                       remedy="export without a delegate")
        if kind == "KernelCall" and self._operator(call) not in self.supported:
            raise fail(OPERATOR_MISSING, f"no kernel for {self._operator(call)}", self.plan.name,
                       remedy="change the model; picotorch inspect shows all that are missing")

    def _operator(self, call: "schema.InstructionArguments") -> str:
        """Return the name of the operator; "" for a call of no kernel."""
        if type(call).__name__ != "KernelCall":
            return ""
        operator = self.plan.operators[call.op_index]
        return f"{operator.name}.{operator.overload}" if operator.overload else operator.name

    def _value(self, index: int) -> Any:
        return self.plan.values[index].val

    def _is_tensor(self, index: int) -> bool:
        return index >= 0 and type(self._value(index)).__name__ == "Tensor"

    def _is_float(self, index: int) -> bool:
        return self._is_tensor(index) and self._value(index).scalar_type == _FLOAT

    def _tensors(self, index: int) -> list[int]:
        """Return the tensors that an argument is or lists."""
        if index >= 0 and type(self._value(index)).__name__ in _LISTS:
            return [item for item in self._value(index).items if self._is_tensor(item)]
        return [index] if self._is_tensor(index) else []

    def _arguments(self, call: "schema.InstructionArguments") -> tuple[list[int], list[int]]:
        """Return (tensors that it reads, tensors that it writes).

        A program may name the outputs twice.
        """
        kind = type(call).__name__
        if kind == "MoveCall":
            return self._tensors(call.move_from), self._tensors(call.move_to)
        if kind != "KernelCall":
            return [], []
        signature = operator_form(self.supported[self._operator(call)].number, len(call.args))
        first_output = len(signature.rstrip(OUTPUTS))
        reads, writes = [], []
        for i, (letter, index) in enumerate(zip(signature, call.args, strict=False)):
            if i < first_output:
                reads += self._tensors(index)
            if letter in OUTPUTS:
                writes += self._tensors(index)
        return reads, writes

    def _uses(self, value: int) -> "list[schema.InstructionArguments]":
        """Return the calls that read or write a value, once for each argument that names it."""
        found = []
        for one in self.instructions:
            reads, writes = self._arguments(one.instr_args)
            found += [one.instr_args] * (reads + writes).count(value)
        return found

    # ---- inputs and outputs

    def find_io(self) -> list[Quantization]:
        """Find the operators that only quantize inputs and dequantize outputs."""
        for i, value in enumerate(self.plan.inputs):
            call = self._only_use(value, _QUANTIZE)
            if call and value not in self.plan.outputs:
                self.quantizes[i] = call
        for i, value in enumerate(self.plan.outputs):
            call = self._only_use(value, _DEQUANTIZE)
            if call and value not in self.plan.inputs:
                self.dequantizes[i] = call
        return ([self._quantization("input", i, call) for i, call in self.quantizes.items()]
                + [self._quantization("output", i, call) for i, call in self.dequantizes.items()])

    def _only_use(self, value: int, operators: tuple[str, ...]) -> "schema.KernelCall | None":
        """Return the call that alone uses a float tensor, if it is of one of the operators."""
        uses = self._uses(value)
        alone = self._is_float(value) and len(uses) == 1
        return uses[0] if alone and self._operator(uses[0]) in operators else None

    def _quantization(self, kind: str, index: int, call: "schema.KernelCall") -> Quantization:
        numbers = [next(iter(vars(self._value(argument)).values())) for argument in call.args[1:6]]
        return Quantization(kind, index, dict(zip(_PARAMETERS, numbers, strict=True)))

    def remove_float_io(self) -> None:
        """Remove the quantizers; their integers become the inputs and outputs."""
        for i, call in self.quantizes.items():
            self.plan.inputs[i] = call.args[6]
        for i, call in self.dequantizes.items():
            self.plan.outputs[i] = call.args[0]
        gone = {id(call) for call in self._io_calls()}
        for chain in self.plan.chains:
            chain.instructions = [one for one in chain.instructions if id(one.instr_args) not in gone]
        self.instructions = [one for one in self.instructions if id(one.instr_args) not in gone]

    def _io_calls(self) -> "list[schema.KernelCall]":
        return [*self.quantizes.values(), *self.dequantizes.values()]

    # ---- memory, before float inputs and outputs are removed

    def _nbytes(self, index: int) -> int:
        tensor = self._value(index)
        return int(math.prod(tensor.sizes) * _picotorch.element_size(int(tensor.scalar_type)))

    def _keeps_contents(self, index: int) -> bool:
        """Return True for a mutable buffer of the model: its contents outlive an execution."""
        tensor = self._value(index)
        return tensor.extra_tensor_info is not None or tensor.data_buffer_idx > 0

    def _steps(self) -> list[planning.Step]:
        """Return the instructions as the planner sees them, with all tensors."""
        arguments = [(one.instr_args, *self._arguments(one.instr_args)) for one in self.instructions]
        written = {value for _, _, writes in arguments for value in writes}
        steps = []
        for call, reads, writes in arguments:
            scratch = [value for value in reads if value not in written
                       and value not in self.plan.inputs and not self._keeps_contents(value)
                       and self._operator(call).startswith("cortex_m::")
                       and self._value(value).allocation_info
                       and self._value(value).scalar_type == _BYTE]
            reads = [value for value in reads if value not in scratch]
            steps.append(planning.Step(reads, writes, scratch))
        return steps

    def _allocations(self) -> "dict[int, dict[int, schema.AllocationDetails]]":
        """Return {memory: {value: allocation}} of the values that stay."""
        gone = {call.args[0] for call in self.quantizes.values()}
        gone |= {self._arguments(call)[1][0] for call in self.dequantizes.values()}
        found: dict[int, dict[int, schema.AllocationDetails]] = {}
        for index in range(len(self.plan.values)):
            allocation = self._is_tensor(index) and self._value(index).allocation_info
            if allocation and index not in gone:
                found.setdefault(allocation.memory_id, {})[index] = allocation
        return found

    def plan_memory(self) -> list[int]:
        """Plan each planned buffer again; return the minimum bytes of any plan for each."""
        steps, bounds = self._steps(), []
        for memory, allocations in sorted(self._allocations().items()):
            extents = {value: (allocation.memory_offset, self._nbytes(value))
                       for value, allocation in allocations.items()}
            try:
                blocks = self._blocks(extents, steps)
            except ValueError:
                raise fail(NOT_SUPPORTED, "an input or output shares memory with other values",
                           self.plan.name, remedy="use the program as it is") from None
            offsets, size = planning.plan(extents, blocks, _ALIGNMENT)
            bounds.append(planning.minimum(blocks, _ALIGNMENT))
            for value, offset in offsets.items():
                allocations[value].memory_offset_low = offset & 0xFFFFFFFF
                allocations[value].memory_offset_high = offset >> 32
            self.plan.non_const_buffer_sizes[memory] = size
        return bounds

    def _blocks(self, extents: dict[int, planning.Extent],
                steps: list[planning.Step]) -> list[planning.Block]:
        """Make the blocks of one memory's values.

        Integer inputs live from the start, outputs to the end.
        """
        def here(values: Iterable[int]) -> list[int]:
            return [value for value in values if value in extents]

        return planning.find_blocks(
            extents, here(self.plan.inputs),
            [planning.Step(here(step.reads), here(step.writes), here(step.scratch)) for step in steps],
            here(value for index in self.plan.outputs for value in self._tensors(index)),
            always=[value for value in extents if self._keeps_contents(value)],
            early=here(call.args[6] for call in self.quantizes.values()),
            late=here(call.args[0] for call in self.dequantizes.values()))

    # ---- what is left over

    def drop_unused(self) -> None:
        """Drop operators and values that nothing names any more, and renumber the others."""
        calls = [one.instr_args for one in self.instructions]
        kernels = [call for call in calls if type(call).__name__ == "KernelCall"]
        numbers = {old: new for new, old in enumerate(sorted({call.op_index for call in kernels}))}
        self.plan.operators = [self.plan.operators[old] for old in numbers]
        for call in kernels:
            call.op_index = numbers[call.op_index]
        kept = self._named_values(calls)
        new_index = {old: new for new, old in enumerate(sorted(kept))} | {-1: -1}
        self.plan.values = [self.plan.values[old] for old in sorted(kept)]
        for value in self.plan.values:
            if type(value.val).__name__ in (*_LISTS, "IntList"):
                value.val.items = [new_index[item] for item in value.val.items]
        self.plan.inputs = [new_index[value] for value in self.plan.inputs]
        self.plan.outputs = [new_index[value] for value in self.plan.outputs]
        for call in calls:
            _renumber(call, new_index)

    def _named_values(self, calls: "list[schema.InstructionArguments]") -> set[int]:
        """Return the inputs, outputs, arguments, items of lists, and tensors that have a name."""
        kept = {*self.plan.inputs, *self.plan.outputs}
        for call in calls:
            kept.update(_named(call))
        kept |= {index for index in range(len(self.plan.values))
                 if self._is_tensor(index) and self._value(index).extra_tensor_info}
        for index in list(kept - {-1}):
            if type(self._value(index)).__name__ in (*_LISTS, "IntList"):
                kept.update(self._value(index).items)
        return kept - {-1}


_FIELDS = {"MoveCall": ("move_from", "move_to"), "FreeCall": ("value_index",)}


def _named(call: "schema.InstructionArguments") -> list[int]:
    fields = _FIELDS.get(type(call).__name__)
    return call.args if fields is None else [getattr(call, name) for name in fields]


def _renumber(call: "schema.InstructionArguments", new_index: dict[int, int]) -> None:
    fields = _FIELDS.get(type(call).__name__)
    if fields is None:
        call.args = [new_index[value] for value in call.args]
    else:
        for name in fields:
            setattr(call, name, new_index[getattr(call, name)])


def _is_external(tensor: "schema.Tensor") -> bool:
    extra = tensor.extra_tensor_info
    return extra is not None and extra.location.name == "EXTERNAL"


def drop_unused_constants(program: "schema.Program") -> None:
    """Drop the constants that no value refers to; number 0 is reserved."""
    tensors = [value.val for plan in program.execution_plan for value in plan.values
               if type(value.val).__name__ == "Tensor" and not value.val.allocation_info
               and not _is_external(value.val)]
    used = sorted({0, *(tensor.data_buffer_idx for tensor in tensors)})
    new_index = {old: new for new, old in enumerate(used)}
    if program.constant_buffer:
        program.constant_buffer = [program.constant_buffer[old] for old in used]
        for tensor in tensors:
            tensor.data_buffer_idx = new_index[tensor.data_buffer_idx]


def rewrite(program: "schema.Program",
            constant_plan: "Callable[[str, int | float], schema.ExecutionPlan]",
            quantized_io: bool) -> list[Rewritten]:
    """Drop unused values from all methods of an executorch Program, and plan their memory again.

    quantized_io: remove the float inputs and outputs first.

    constant_plan(name, number) makes the execution plan of a constant method. Raises InvalidArgument
    without float inputs and outputs to remove, NotSupported for control flow, delegates, and inputs or
    outputs that share memory with other values.
    """
    done: list[Rewritten] = []
    added: dict[str, int | float] = {}
    for plan in program.execution_plan:
        editor = MethodEditor(plan)
        quantized = editor.find_io() if quantized_io else []
        if not (quantized or (editor.instructions and not quantized_io)):
            continue
        before = plan.non_const_buffer_sizes[1:]
        bounds = editor.plan_memory()
        editor.remove_float_io()
        editor.drop_unused()
        for one in quantized:
            added |= one.methods("" if plan.name == "forward" else f"{plan.name}_")
        done.append(Rewritten(plan.name, before, plan.non_const_buffer_sizes[1:], bounds,
                              [f"{one.kind} {one.index}" for one in quantized]))
    if quantized_io and not done:
        raise fail(INVALID_ARGUMENT, "no input goes into a quantize operator alone, and no output "
                   "comes from a dequantize operator", "program",
                   remedy="export it quantized, with float inputs and outputs")
    drop_unused_constants(program)
    program.execution_plan += [constant_plan(name, number) for name, number in added.items()]
    return done
