"""Export a model of the zoo to a .pte and its .ptd files, with a summary of their contents."""

import io
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir._serialize._program import (
    PTEFile,
    deserialize_pte_binary,
    serialize_pte_binary,
)
from executorch.exir._serialize.data_serializer import DataPayload
from executorch.exir.schema import (
    Buffer,
    ExecutionPlan,
    KernelCall,
    MoveCall,
    Program,
    SubsegmentOffsets,
    Tensor,
)
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from models.zoo import cortex_m
from models.zoo.registry import Function, Model
from picotorch.export import pipeline, torchscript
from picotorch.export.pipeline import ExportOptions
from picotorch.export.progress import Steps
from picotorch.export.replan import export_file
from torch.export.experimental import _export_forward_backward

_DTYPES = {
    "BYTE": "uint8",
    "CHAR": "int8",
    "SHORT": "int16",
    "INT": "int32",
    "LONG": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BOOL": "bool",
    "HALF": "float16",
    "BFLOAT16": "bfloat16",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "FLOAT8E5M2": "float8_e5m2",
    "FLOAT8E4M3FN": "float8_e4m3fn",
    "BITS16": "bits16",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
}
_SIZES = {"bfloat16": 2, "bits16": 2, "float8_e5m2": 1, "float8_e4m3fn": 1}  # dtypes that numpy lacks


def export(model: Model) -> tuple[bytes, dict[str, bytes]]:
    """Export with portable operators, and with a delegate only if the model has a partitioner.

    Return the .pte, and the .ptd files by name.
    """
    backend = ExecutorchBackendConfig(**model.backend())
    if model.cortex_m:
        pte = bytes(cortex_m.lower(model).to_executorch(backend).buffer)
        return (export_file(pte, "model", int8_io=True)[0] if model.calibration else pte), {}
    if model.torchscript:
        return _from_torchscript(model), {}
    exported = {
        name: torch.export.export(module, inputs, dynamic_shapes=_dynamic_shapes(model, module))
        for name, (module, inputs) in model.methods().items()
    }
    if model.gradients:
        exported = {name: _export_forward_backward(one) for name, one in exported.items()}
    edge = to_edge(exported, constant_methods=model.constant_methods or None,
                   compile_config=EdgeCompileConfig(**model.edge))
    for partitioner in model.partitioners():
        edge = edge.to_backend(partitioner)
    program = edge.to_executorch(backend)
    with tempfile.TemporaryDirectory() as folder:
        program.write_tensor_data_to_file(folder)
        data = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    if model.rewrite:
        return _rewritten(bytes(program.buffer), model.rewrite), data
    return bytes(program.buffer), data


def merge_data(data: dict[str, bytes]) -> bytes:
    """Return one .ptd file with the contents of several. ExecuTorch's Python runtime accepts only
    one."""
    store = NamedDataStore()
    serializer = FlatTensorSerializer()
    for name, file in data.items():
        store.merge_named_data_store(serializer.deserialize_to_named_data_store_output(file, name))
    stored = store.get_named_data_store_output()
    entries = {key: entry for file in stored.external_data.values() for key, entry in file.items()}
    return bytes(serializer.serialize(DataPayload(buffers=stored.buffers, named_data=entries)))


def _rewritten(pte: bytes, rewrite: Callable) -> bytes:
    program = read_program(pte)
    assert len(program.constant_buffer) <= 1, "constants"
    rewrite(program)
    program = _without_segments(program)
    program.constant_buffer = [Buffer(b"")]
    return bytes(serialize_pte_binary(PTEFile(program)))


def _without_segments(program: Program) -> Program:
    program.segments = []
    program.constant_segment = SubsegmentOffsets(segment_index=0, offsets=[])
    return program


def _dynamic_shapes(model: Model, module: torch.nn.Module) -> tuple | None:
    """Return the dynamic shapes for torch.export, in which those of `*arguments` are in a tuple of
    their own."""
    shapes = model.dynamic_shapes
    return (shapes,) if shapes and isinstance(module, Function) else shapes


def _from_torchscript(model: Model) -> bytes:
    """Script the module, save it to TorchScript, and export the file as picotorch export does."""
    saved = io.BytesIO()
    torch.jit.save(torch.jit.script(model.module), saved)
    examples = [value.numpy() for value in model.inputs]
    source = torchscript.source(torch, saved.getvalue(), "model.pt", examples, Steps())
    return pipeline.build(source, ExportOptions(), Steps())[0]


def inline_constants(pte: bytes) -> bytes:
    """Return the program in the format of older exporters: constants in tables, no segment, no header.

    ExecuTorch 1.5 still writes but no longer runs this format.
    """
    program = _without_segments(read_program(pte))
    return bytes(_program_to_flatbuffer(program, constant_tensor_alignment=16).data)


def read_program(pte: bytes) -> Program:
    """Return the program's tables, read with ExecuTorch's own code."""
    return deserialize_pte_binary(pte).program


def describe_methods(program: Program, constant: list[str]) -> list[dict]:
    """Describe each method: signature, sizes of the planned buffers (counted from 0), operators,
    counts.

    Of the methods that only return a number, only the named ones are included.
    """
    return [
        {
            "name": plan.name,
            "inputs": [_describe_value(plan.values[index].val) for index in plan.inputs],
            "outputs": [
                _describe_value(plan.values[index].val)
                | ({"dynamic": True} if index in _written_numbers(plan) else {})
                for index in plan.outputs
            ],
            "planned_buffers": plan.non_const_buffer_sizes[1:],
            "backends": sorted(delegate.id for delegate in plan.delegates),
            "operators": sorted(
                f"{operator.name}.{operator.overload}".rstrip(".") for operator in plan.operators
            ),
            "values": len(plan.values),
            "instructions": sum(len(chain.instructions) for chain in plan.chains),
        }
        for plan in program.execution_plan
        if plan.name in constant or not _returns_a_number(plan)
    ]


def _written_numbers(plan: ExecutionPlan) -> set[int]:
    """Return the indexes of the values that instructions write and that are no tensors."""
    calls = [one.instr_args for chain in plan.chains for one in chain.instructions]
    written = {call.args[-1] for call in calls if isinstance(call, KernelCall)}
    written |= {call.move_to for call in calls if isinstance(call, MoveCall)}
    return {index for index in written if not isinstance(plan.values[index].val, Tensor)}


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
            "nbytes": math.prod(value.sizes) * (_SIZES.get(dtype) or np.dtype(dtype).itemsize),
            "planned": value.allocation_info is not None,
            **({"dynamic": True} if value.shape_dynamism else {}),
        }
    return {"type": type(value).__name__, "value": next(iter(vars(value).values()), None)}
