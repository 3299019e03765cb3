"""What a program holds, as plain dicts and lists: for `inspect`, for people and as JSON."""

import _picotorch
from picotorch import MethodMeta, Program, TensorInfo, schema
from picotorch.backend import get_backend
from picotorch.delegate_contexts import CompileSpecs
from picotorch.errors import bad_program
from picotorch.method_meta import TAG_NAMES

from .values import TENSOR, Values

_KERNEL_CALL = schema.INSTRUCTION_ARGUMENTS_KERNEL_CALL
_DELEGATE_CALL = schema.INSTRUCTION_ARGUMENTS_DELEGATE_CALL


def describe(program: Program, names: list[str]) -> list[dict]:
    """The methods of these names. Raises NotFound, InvalidProgram."""
    try:
        return [_method(program, name) for name in names]
    except ValueError:
        raise bad_program("something lies outside the file") from None


def constant_methods(program: Program) -> dict:
    """The numbers that methods without inputs and instructions return, by the method's name."""
    found = {}
    for name in program.method_names:
        meta = program.method_meta(name)
        if meta.num_inputs() == meta.num_instructions() == 0 and meta.num_outputs() == 1:
            number = Values(program, meta.plan).number(meta.output_value(0))
            if number is not None:
                found[name] = number
    return found


def _method(program, name):
    meta = program.method_meta(name)
    values = Values(program, meta.plan)
    operators = operator_list(meta)
    return {
        "name": name,
        "inputs": [_input(meta, values, i) for i in range(meta.num_inputs())],
        "outputs": [_output(meta, i) for i in range(meta.num_outputs())],
        "attributes": [{"name": info.name(), **tensor_entry(info)} for info in _attributes(meta)],
        "backends": meta.backend_names(),
        "delegates": delegate_list(meta),
        "operators": operators,
        "planned_buffers": planned_buffers(meta),
        "constant_bytes": constant_bytes(values),
        "tensors": [_tensor(values, i) for i in range(len(values)) if values.kind(i) == TENSOR],
        "instructions": _instructions(meta, values, operators),
    }


def delegate_list(meta: MethodMeta) -> list[dict]:
    """The delegates of a method: backend, bytes of processed data and where they lie, compile specs
    (key, and bytes in hexadecimal digits), and whether the backend is registered here."""
    program, reader = meta.program, meta.program.reader
    table = reader.table(meta.plan, schema.EXECUTION_PLAN_DELEGATES)
    found = []
    for i, name in enumerate(meta.backend_names()):
        delegate = reader.item(table, i)
        processed = reader.table(delegate, schema.BACKEND_DELEGATE_PROCESSED)
        specs = CompileSpecs()
        specs.hold(program, reader.table(delegate, schema.BACKEND_DELEGATE_COMPILE_SPECS))
        location = reader.u8(processed, schema.BACKEND_DELEGATE_DATA_REFERENCE_LOCATION)
        found.append({
            "backend": name,
            "nbytes": len(program.delegate_data(processed)),
            "place": "segment" if location == schema.DATA_LOCATION_SEGMENT else "inline",
            "compile_specs": [[spec.key, bytes(spec.value).hex()] for spec in specs],
            "registered": get_backend(name) is not None,
        })
    return found


def named_data_list(program: Program) -> list[dict]:
    """Keys and sizes of a program's named data."""
    named = program.get_named_data_map()
    keys = [named.get_key(i) for i in range(len(named))]
    return [{"key": key, "nbytes": len(named.get_data(key))} for key in keys]


def planned_buffers(meta: MethodMeta) -> list[int]:
    """Bytes of each planned buffer."""
    return [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]


def tensor_entry(info: TensorInfo) -> dict:
    return {"dtype": info.dtype, "sizes": list(info.sizes()), "dim_order": list(info.dim_order()),
            "nbytes": info.nbytes()}


def _attributes(meta):
    return [meta.attribute_tensor_meta(i) for i in range(meta.num_attributes())]


def _input(meta, values, i):
    tag = meta.input_tag(i)
    if tag != TENSOR:
        return {"type": TAG_NAMES.get(tag, "unknown"), "value": values.number(meta.input_value(i))}
    info = meta.input_tensor_meta(i)
    return {"type": "Tensor", **tensor_entry(info), "planned": info.is_memory_planned(),
            "quantization": _quantization(meta.input_quantization(i))}


def _quantization(parameters):
    return dict(zip(("scale", "zero_point"), parameters, strict=True)) if parameters else None


def _output(meta, i):
    tag = meta.output_tag(i)
    if tag != TENSOR:
        return {"type": TAG_NAMES.get(tag, "unknown")}
    info = meta.output_tensor_meta(i)
    return {"type": "Tensor", **tensor_entry(info), "planned": info.is_memory_planned(),
            "quantization": _quantization(meta.output_quantization(i))}


def operator_list(meta: MethodMeta) -> list[dict]:
    """The operators in the program's order, each with whether this build has a kernel for it."""
    missing = meta.missing_operators()
    names = [meta.operator_name(i) for i in range(meta.num_operators())]
    return [{"name": name, "kernel": name not in missing} for name in names]


def _tensor(values, i):
    info = values.tensor(i)
    place, offset = values.place(i)
    return {"value": i, **tensor_entry(info), "place": place, "offset": offset,
            "name": info.name()}


def constant_bytes(values: Values) -> int:
    """Bytes of the constant tensors of a method; data that tensors share counts once."""
    found = {}
    for i in range(len(values)):
        if values.kind(i) == TENSOR:
            place, position = values.place(i)
            if place == "constant":
                found[position] = max(found.get(position, 0), values.tensor(i).nbytes())
    return sum(found.values())


# ---- instructions


def _instructions(meta, values, operators):
    reader = values.reader
    outputs = {name: _count_outputs(name) for name in {entry["name"] for entry in operators}}
    chains = reader.table(meta.plan, schema.EXECUTION_PLAN_CHAINS)
    listing = []
    for chain in range(reader.length(chains)):
        vector = reader.table(reader.item(chains, chain), schema.CHAIN_INSTRUCTIONS)
        for i in range(reader.length(vector)):
            entry = _instruction(meta, values, reader.item(vector, i), operators, outputs)
            listing.append({"index": i, **entry})
    return listing


def _count_outputs(name):
    """(arguments, outputs) of an operator that this build knows, else None."""
    for number in range(_picotorch.operator_count()):
        if _picotorch.operator_name(number) == name:
            signature = _picotorch.operator_signature(number)
            return len(signature), sum(letter in "OW" for letter in signature)
    return None


def _instruction(meta, values, position, operators, outputs):
    reader = values.reader
    kind = reader.u8(position, schema.INSTRUCTION_INSTR_ARGS_TYPE)
    call = reader.table(position, schema.INSTRUCTION_INSTR_ARGS)
    if kind == _KERNEL_CALL:
        index = reader.i32(call, schema.KERNEL_CALL_OP_INDEX)
        if not 0 <= index < len(operators):
            raise bad_program("there is no such operator", "operator", index)
        name = operators[index]["name"]
        arguments = _arguments(values, reader.table(call, schema.KERNEL_CALL_ARGS))
        taken, given = _split(arguments, outputs[name])
        return {"call": name, "arguments": taken, "outputs": given}
    if kind == _DELEGATE_CALL:
        arguments = _arguments(values, reader.table(call, schema.DELEGATE_CALL_ARGS))
        index = reader.i32(call, schema.DELEGATE_CALL_DELEGATE_INDEX)
        return {"call": f"delegate {meta.get_backend_name(index)}", "arguments": arguments,
                "outputs": []}
    return {"call": _CONTROL[kind][0] if kind in _CONTROL else "none", "outputs": [],
            "arguments": [_control_argument(values, call, kind, slot) for slot in range(2)
                          if kind in _CONTROL and slot < _CONTROL[kind][1]]}


_CONTROL = {schema.INSTRUCTION_ARGUMENTS_MOVE_CALL: ("move", 2),
            schema.INSTRUCTION_ARGUMENTS_JUMP_FALSE_CALL: ("jump if false", 2),
            schema.INSTRUCTION_ARGUMENTS_FREE_CALL: ("free", 1)}


def _control_argument(values, call, kind, slot):
    number = values.reader.i32(call, slot)
    is_destination = kind == schema.INSTRUCTION_ARGUMENTS_JUMP_FALSE_CALL and slot == 1
    return f"to {number}" if is_destination else values.text(number)


def _arguments(values, vector):
    reader = values.reader
    return [values.text(reader.i32_item(vector, i)) for i in range(reader.length(vector))]


def _split(arguments, known):
    """(arguments, outputs). A program names the outputs once more behind the arguments."""
    if known is None:
        count = len(arguments) - 1 if arguments[-1:] == arguments[-2:-1] else len(arguments)
        return arguments[: count - 1], arguments[count - 1 : count]
    count, n_outputs = known
    return arguments[: count - n_outputs], arguments[count - n_outputs : count]
