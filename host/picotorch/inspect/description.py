"""Describe a program as plain dicts and lists: for `inspect`, for people and as JSON."""

from typing import Any

from picotorch import MethodMeta, Program, TensorInfo
from picotorch.delegates import CompileSpecs, get_backend

from ..host.instructions import MOVE_CALL, Instruction, read_instructions
from ..host.operators import methods_of
from ..host.values import TENSOR, Values, kind_name


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


def describe(meta: MethodMeta) -> dict[str, Any]:
    """Return a method. Raises InvalidProgram."""
    values = Values(meta.program, meta.plan)
    return {
        "name": meta.name(),
        "inputs": [_input(meta, values, i) for i in range(meta.num_inputs())],
        "outputs": [_output(meta, i) for i in range(meta.num_outputs())],
        "attributes": [{"name": info.name(), **tensor_entry(info)} for info in _attributes(meta)],
        "backends": meta.backend_names(),
        "delegates": delegate_list(meta),
        "operators": operator_list(meta),
        "planned_buffers": planned_buffers(meta),
        "constant_bytes": constant_bytes(values),
        "tensors": [_tensor(values, i) for i in range(len(values)) if values.kind(i) == TENSOR],
        "instructions": _instructions(meta, values),
    }


def delegate_list(meta: MethodMeta) -> list[dict[str, Any]]:
    """Return the delegates of a method.

    Each has the backend, the size and offset of the processed data, the compile specs (key, and bytes
    in hexadecimal digits), and whether the backend is registered here.
    """
    library, found = meta.program.library, []
    for i, name in enumerate(meta.backend_names()):
        found.append({
            "backend": name,
            "nbytes": len(library.processed(meta.plan, i)),
            "stored": "inline" if library.delegate(meta.plan, i).is_inline else "segment",
            "compile_specs": _compile_specs(meta, i),
            "registered": get_backend(name) is not None,
        })
    return found


def partitioners(backends: list[str]) -> str:
    """Return the names of the partitioners of these backends, which an export should omit."""
    names = {"XnnpackBackend": "XnnpackPartitioner"}
    return " and ".join(names.get(name, f"the partitioner of {name}") for name in backends)


def named_data_list(program: Program) -> list[dict[str, Any]]:
    """List the keys and sizes of a program's named data."""
    named = program.get_named_data_map()
    return [{"key": named.get_key(i), "nbytes": len(program.library.data(i))}
            for i in range(named.get_num_keys())]


def planned_buffers(meta: MethodMeta) -> list[int]:
    """Return the bytes of each planned buffer."""
    return [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]


def _compile_specs(meta: MethodMeta, i: int) -> list[list[str]]:
    specs = CompileSpecs(meta, i)
    return [[specs[k].key, bytes(specs[k].value).hex()] for k in range(len(specs))]


def tensor_entry(info: TensorInfo) -> dict[str, Any]:
    """Return the dtype, sizes, dim order and bytes of a tensor as plain data."""
    return {"dtype": info.dtype, "sizes": list(info.sizes()), "dim_order": list(info.dim_order()),
            "nbytes": info.nbytes(), **({"dynamic": True} if info.is_dynamic() else {})}


def _attributes(meta: MethodMeta) -> list[TensorInfo]:
    return [meta.attribute_tensor_meta(i) for i in range(meta.num_attributes())]


def _input(meta: MethodMeta, values: Values, i: int) -> dict[str, Any]:
    tag = meta.input_tag(i)
    if tag != TENSOR:
        return {"type": kind_name(tag), "value": values.plain(meta.input_value(i))}
    info = meta.input_tensor_meta(i)
    return {"type": "Tensor", **tensor_entry(info), "planned": info.is_memory_planned(),
            "quantization": _quantization(meta.input_quantization(i))}


def _quantization(parameters: tuple[float, int] | None) -> dict[str, float] | None:
    return dict(zip(("scale", "zero_point"), parameters, strict=True)) if parameters else None


def _output(meta: MethodMeta, i: int) -> dict[str, Any]:
    tag = meta.output_tag(i)
    if tag != TENSOR:
        return {"type": kind_name(tag)}
    info = meta.output_tensor_meta(i)
    return {"type": "Tensor", **tensor_entry(info), "planned": info.is_memory_planned(),
            "quantization": _quantization(meta.output_quantization(i))}


def operator_list(meta: MethodMeta) -> list[dict[str, Any]]:
    """Return the operators in the program's order, each with whether this build has a kernel for it."""
    missing = set(meta.missing_operators())
    names = [meta.operator_name(i) for i in range(meta.num_operators())]
    return [{"name": name, "kernel": name not in missing} for name in names]


def _tensor(values: Values, i: int) -> dict[str, Any]:
    info = values.tensor(i)
    memory, offset = values.location(i)
    return {"value": i, **tensor_entry(info), "memory": memory, "offset": offset,
            "name": info.name()}


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


def _instructions(meta: MethodMeta, values: Values) -> list[dict[str, Any]]:
    instructions = read_instructions(meta, values)
    values.written = {value for i in instructions for value in i.outputs}
    return [{"index": i.index, "call": i.call,
             "arguments": [values.text(value) for value in i.arguments] + _target(i, values),
             "outputs": [] if i.kind == MOVE_CALL else [values.text(value) for value in i.outputs]}
            for i in instructions]


def _target(instruction: Instruction, values: Values) -> list[str]:
    """Return the destination of a control flow instruction, as text."""
    if instruction.kind == MOVE_CALL:
        return [values.text(instruction.outputs[0])]
    return [] if instruction.destination is None else [f"to {instruction.destination}"]
