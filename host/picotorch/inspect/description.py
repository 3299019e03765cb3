"""Describe the methods of a program, for picotorch inspect and size."""

from typing import Any

from picotorch import MethodMeta, Program, TensorInfo
from picotorch.delegates import CompileSpecs, get_backend

from ..host.instructions import MOVE_CALL, Instruction, read_instructions
from ..host.operators import methods_of
from ..host.report import SizedTensor
from ..host.values import TENSOR, Values, kind_name
from .report import (
    Constant,
    Delegate,
    InstructionText,
    MethodContents,
    NamedData,
    NamedTensor,
    Operator,
    PlannedTensor,
    Quantization,
    TensorPlace,
    ValueType,
)


def constant_methods(program: Program) -> dict[str, Any]:
    """Return {name: value} of the methods without inputs and instructions.

    A value is a number, string or None, or a list of them; methods that return a tensor are left out.
    """
    found = {}
    for meta in methods_of(program):
        if meta.num_inputs() == meta.num_instructions() == 0 and meta.num_outputs() > 0:
            values = Values(program, meta.plan)
            outputs = [meta.output_value(i) for i in range(meta.num_outputs())]
            if all(values.is_plain(index) for index in outputs):
                plain = [values.plain(index) for index in outputs]
                found[meta.name()] = plain[0] if len(plain) == 1 else plain
    return found


def describe(meta: MethodMeta) -> MethodContents:
    """Return the contents of a method. Raises InvalidProgram."""
    values = Values(meta.program, meta.plan)
    return MethodContents(
        name=meta.name(),
        inputs=[_input(meta, values, i) for i in range(meta.num_inputs())],
        outputs=[_output(meta, i) for i in range(meta.num_outputs())],
        attributes=[NamedTensor(info.name(), tensor_type(info)) for info in _attributes(meta)],
        backends=meta.backend_names(),
        delegates=delegate_list(meta),
        operators=operator_list(meta),
        planned_buffers=planned_buffers(meta),
        constant_bytes=constant_bytes(values),
        tensors=[_tensor(values, i) for i in range(len(values)) if values.kind(i) == TENSOR],
        instructions=_instructions(meta, values))


def delegate_list(meta: MethodMeta) -> list[Delegate]:
    """Return the delegates of a method."""
    library = meta.program.library
    return [Delegate(name, len(library.processed(meta.plan, i)),
                     "inline" if library.delegate(meta.plan, i).is_inline else "segment",
                     _compile_specs(meta, i), get_backend(name) is not None)
            for i, name in enumerate(meta.backend_names())]


def partitioners(backends: list[str]) -> str:
    """Return the names of the partitioners of these backends, which an export should omit."""
    names = {"XnnpackBackend": "XnnpackPartitioner"}
    return " and ".join(names.get(name, f"the partitioner of {name}") for name in backends)


def named_data_list(program: Program) -> list[NamedData]:
    """List the keys and sizes of a program's named data."""
    named = program.get_named_data_map()
    return [NamedData(named.get_key(i), len(program.library.data(i)))
            for i in range(named.get_num_keys())]


def planned_buffers(meta: MethodMeta) -> list[int]:
    """Return the bytes of each planned buffer."""
    return [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]


def _compile_specs(meta: MethodMeta, i: int) -> list[list[str]]:
    specs = CompileSpecs(meta, i)
    return [[specs[k].key, bytes(specs[k].value).hex()] for k in range(len(specs))]


def tensor_type(info: TensorInfo) -> SizedTensor:
    """Return the type of a tensor."""
    return SizedTensor(info.dtype, list(info.sizes()), list(info.dim_order()), info.nbytes(),
                      info.is_dynamic() or None)


def _attributes(meta: MethodMeta) -> list[TensorInfo]:
    return [meta.attribute_tensor_meta(i) for i in range(meta.num_attributes())]


def _input(meta: MethodMeta, values: Values, i: int) -> ValueType:
    tag = meta.input_tag(i)
    if tag != TENSOR:
        return Constant(kind_name(tag), values.plain(meta.input_value(i)))
    return _planned(meta.input_tensor_meta(i), meta.input_quantization(i))


def _output(meta: MethodMeta, i: int) -> ValueType:
    tag = meta.output_tag(i)
    if tag != TENSOR:
        return ValueType(kind_name(tag))
    return _planned(meta.output_tensor_meta(i), meta.output_quantization(i))


def _planned(info: TensorInfo, parameters: tuple[float, int] | None) -> PlannedTensor:
    return PlannedTensor("Tensor", tensor_type(info), info.is_memory_planned(),
                         Quantization(*parameters) if parameters else None)


def operator_list(meta: MethodMeta) -> list[Operator]:
    """Return the operators in the program's order."""
    missing = set(meta.missing_operators())
    names = [meta.operator_name(i) for i in range(meta.num_operators())]
    return [Operator(name, name not in missing) for name in names]


def _tensor(values: Values, i: int) -> TensorPlace:
    info = values.tensor(i)
    memory, offset = values.location(i)
    return TensorPlace(i, tensor_type(info), memory, offset, info.name())


def constant_bytes(values: Values) -> int:
    """Return the bytes of the constant tensors of a method; data that tensors share counts once."""
    found: dict[int, int] = {}
    for i in range(len(values)):
        if values.kind(i) == TENSOR:
            memory, position = values.location(i)
            if memory == "constant":
                found[position] = max(found.get(position, 0), values.tensor(i).nbytes())
    return sum(found.values())


# ---- instructions


def _instructions(meta: MethodMeta, values: Values) -> list[InstructionText]:
    instructions = read_instructions(meta, values)
    values.written = {value for i in instructions for value in i.outputs}
    return [InstructionText(
                i.index, i.call,
                [values.text(value) for value in i.arguments] + _target(i, values),
                [] if i.kind == MOVE_CALL else [values.text(value) for value in i.outputs])
            for i in instructions]


def _target(instruction: Instruction, values: Values) -> list[str]:
    """Return the destination of a control flow instruction, as text."""
    if instruction.kind == MOVE_CALL:
        return [values.text(instruction.outputs[0])]
    return [] if instruction.destination is None else [f"to {instruction.destination}"]
