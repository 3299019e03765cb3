"""From a model of the zoo to the bytes of a .pte, and a summary of what is in them."""

import math

import numpy as np
import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.schema import ExecutionPlan, Program, SubsegmentOffsets, Tensor
from picotorch.host.exporting import export_file

from zoo import cortex_m
from zoo.registry import Model

_DTYPES = {
    "BYTE": "uint8",
    "CHAR": "int8",
    "SHORT": "int16",
    "INT": "int32",
    "LONG": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BOOL": "bool",
}


def export(model: Model) -> bytes:
    """Export with portable operators, and with a delegate only if the model has a partitioner."""
    backend = ExecutorchBackendConfig(**model.backend())
    if model.cortex_m:
        pte = bytes(cortex_m.lower(model).to_executorch(backend).buffer)
        return export_file(pte, "model", int8_io=True)[0] if model.calibration else pte
    exported = {
        name: torch.export.export(module, inputs)
        for name, (module, inputs) in model.methods().items()
    }
    edge = to_edge(exported, compile_config=EdgeCompileConfig())
    for partitioner in model.partitioners():
        edge = edge.to_backend(partitioner)
    return bytes(edge.to_executorch(backend).buffer)


def inline_constants(pte: bytes) -> bytes:
    """The same program as older exporters wrote it: constants in tables, no segment, no header.

    ExecuTorch 1.5 still writes but no longer runs this form.
    """
    program = read_program(pte)
    program.segments = []
    program.constant_segment = SubsegmentOffsets(segment_index=0, offsets=[])
    return bytes(_program_to_flatbuffer(program, constant_tensor_alignment=16).data)


def read_program(pte: bytes) -> Program:
    """The program's tables, read with ExecuTorch's own code."""
    return deserialize_pte_binary(pte).program


def describe_methods(program: Program) -> list[dict]:
    """Per method: signature, sizes of the planned buffers (counted from 0), operators, counts.

    Without the methods that only return a number.
    """
    return [
        {
            "name": plan.name,
            "inputs": [_describe_value(plan.values[index].val) for index in plan.inputs],
            "outputs": [_describe_value(plan.values[index].val) for index in plan.outputs],
            "planned_buffers": plan.non_const_buffer_sizes[1:],
            "backends": sorted(delegate.id for delegate in plan.delegates),
            "operators": sorted(
                f"{operator.name}.{operator.overload}".rstrip(".") for operator in plan.operators
            ),
            "values": len(plan.values),
            "instructions": sum(len(chain.instructions) for chain in plan.chains),
        }
        for plan in program.execution_plan
        if not _returns_a_number(plan)
    ]


def _returns_a_number(plan: ExecutionPlan) -> bool:
    return (
        not plan.inputs
        and len(plan.outputs) == 1
        and not any(chain.instructions for chain in plan.chains)
        and not isinstance(plan.values[plan.outputs[0]].val, Tensor)
    )


def _describe_value(value) -> dict:
    if isinstance(value, Tensor):
        dtype = _DTYPES[value.scalar_type.name]
        return {
            "type": "Tensor",
            "dtype": dtype,
            "sizes": list(value.sizes),
            "dim_order": list(value.dim_order),
            "nbytes": math.prod(value.sizes) * np.dtype(dtype).itemsize,
            "planned": value.allocation_info is not None,
        }
    return {"type": type(value).__name__, "value": next(iter(vars(value).values()))}
