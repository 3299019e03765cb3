"""Make small programs for the tests with flatbuffer_builder, among them programs that no exporter would
write."""

import copy
import struct

from support.flatbuffer_builder import build

FLOAT = 6
HEADER = 32  # bytes of the extended header


def tensor(sizes, offset=None, memory_id=1, dtype=FLOAT, **fields):
    """Return a tensor value, planned if it has an offset, with the dim order of the sizes."""
    found = {"scalar_type": dtype, "sizes": list(sizes), "dim_order": list(range(len(sizes)))}
    if offset is not None:
        found["allocation_info"] = {"memory_id": memory_id, "memory_offset_low": offset}
    return {"val": ("Tensor", found | fields)}


def names_result(signature):
    """Return True for an operator whose calls name the result behind the arguments: for all but the
    operators of the runtime itself."""
    return signature[-1] not in "NAI"


def call(op_index, *args):
    return {"instr_args": ("KernelCall", {"op_index": op_index, "args": list(args)})}


def jump(condition, destination):
    return {"instr_args": ("JumpFalseCall", {"cond_value_index": condition,
                                             "destination_instruction": destination})}


def move(source, target):
    return {"instr_args": ("MoveCall", {"move_from": source, "move_to": target})}


def delegate_call(index, *args):
    return {"instr_args": ("DelegateCall", {"delegate_index": index, "args": list(args)})}


def operator(name):
    """Return the operator of a name such as "aten::add.out"."""
    base, _, overload = name.partition(".")
    return {"name": base, "overload": overload}


def plan(values, instructions, operators, inputs, outputs, planned, **fields):
    """Return an execution plan named forward. `planned`: sizes of the planned buffers."""
    return {"name": "forward", "values": values, "inputs": inputs, "outputs": outputs,
            "chains": [{"inputs": inputs, "outputs": outputs, "instructions": instructions}],
            "operators": [operator(name) for name in operators],
            "non_const_buffer_sizes": [0, *planned]} | fields


def relu_plan():
    """Return out = relu(x) of four floats, with x at 0 and out at 16 of a planned buffer of 32
    bytes."""
    return plan([tensor([4], 0), tensor([4], 16)], [call(0, 0, 1, 1)], ["aten::relu.out"], [0], [1],
                [32])


def program(*plans, **fields):
    return build({"version": 0, "execution_plan": copy.deepcopy(list(plans))} | fields)


def with_segments(flat, data, base=None):
    """Return a program with an extended header, and with the bytes of its segments behind its
    tables."""
    root = int.from_bytes(flat[:4], "little") + HEADER
    end = len(flat) + HEADER
    base = -(-end // 16) * 16 if base is None else base
    head = struct.pack("<4sIQQQ", b"eh00", HEADER, end, base, len(data))
    tables = root.to_bytes(4, "little") + flat[4:8] + head + flat[8:]
    return tables.ljust(base, b"\0") + data


def external_tensor(sizes, name="w", offset=None, **fields):
    """Return a tensor whose data, or initial value if it is planned, is in a .ptd file under a name."""
    return tensor(sizes, offset, extra_tensor_info={"fully_qualified_name": name, "location": 1},
                  **fields)


def external_relu(**fields):
    """Return out = relu(w), of four external floats; value 0 is w."""
    changed = relu_plan() | {"inputs": []}
    changed["values"] = [external_tensor([4], **fields), tensor([4], 16)]
    return program(changed)


def two_buffers():
    """Return relu_plan with x in planned buffer 0 and out in planned buffer 1."""
    changed = relu_plan() | {"non_const_buffer_sizes": [0, 16, 48]}
    changed["values"] = [tensor([4], 0), tensor([4], 32, memory_id=2)]
    return program(changed)
