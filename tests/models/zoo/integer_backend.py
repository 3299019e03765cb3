"""Define a backend for int32 additions and multiplications, as a delegate's author would write one.

The data for the runtime begins with one byte, the number of steps. Each step has five bytes: the
operation (0 adds, 1 multiplies), then kind and index of both operands. An operand is an input of the
delegate, a constant (its index in CONSTANTS; its bytes are named data) or the result of an earlier
step. The last result is the output. The compile spec "elements" is one byte: the maximum number of
elements of a tensor.
"""

from typing import final

import torch
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_pattern_op_partitions,
)
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.dialects._ops import ops
from torch._export.utils import get_buffer, is_buffer
from torch.fx.passes.operator_support import OperatorSupportBase

INPUT, CONSTANT, RESULT = range(3)
OPERATIONS = {ops.edge.aten.add.Tensor: 0, ops.edge.aten.mul.Tensor: 1}
CONSTANTS = ("offset", "scale")  # names of the module's buffers


@final
class IntegerBackend(BackendDetails):
    """Write the steps. The constants become named data, once for all delegates."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        places, steps, inputs, store = {}, [], 0, NamedDataStore()
        for node in edge_program.graph.nodes:
            if node.op == "placeholder" and is_buffer(edge_program, node):
                name = edge_program.graph_signature.inputs_to_buffers[node.name]
                value = get_buffer(edge_program, node)
                store.add_named_data(name, value.numpy().tobytes(), alignment=16)
                places[node] = (CONSTANT, CONSTANTS.index(name))
            elif node.op == "placeholder":
                places[node] = (INPUT, inputs)
                inputs += 1
            elif node.op == "call_function":
                operands = [number for arg in node.args for number in places[arg]]
                places[node] = (RESULT, len(steps))
                steps.append([OPERATIONS[node.target], *operands])
        return PreprocessResult(
            processed_bytes=bytes([len(steps), *sum(steps, [])]),
            data_store_output=store.get_named_data_store_output(),
        )


class _Supported(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return (
            node.op == "call_function"
            and node.target in OPERATIONS
            and node.meta["val"].dtype == torch.int32
        )


@final
class IntegerPartitioner(Partitioner):
    """Assign every addition and multiplication of int32 to the IntegerBackend."""

    def __init__(self, elements: int) -> None:
        spec = CompileSpec("elements", bytes([elements]))
        self._delegation = DelegationSpec(IntegerBackend.__name__, [spec])

    def partition(self, exported_program):
        tags = {}
        found = generate_pattern_op_partitions(
            exported_program.graph_module, op_support=_Supported()
        )
        for partition in found:
            tag = f"tag{partition.id}"
            tags[tag] = self._delegation
            for node in partition.nodes:
                node.meta["delegation_tag"] = tag
        tag_constant_data(exported_program)
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)
