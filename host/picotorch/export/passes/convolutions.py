"""Make convolutions int8, in the form whose kernel is fastest.

Importing it imports torch and executorch.
"""

import torch
from executorch.backends.cortex_m.passes import AtenToCortexMPass
from executorch.backends.transforms.aten_to_dialect_pass import AtenToDialectPass, DialectNodeSpec
from executorch.backends.transforms.utils import (
    create_constant_placeholder,
    get_param_tensor,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export.graph_signature import InputKind

_CONVOLUTION = exir_ops.edge.aten.convolution.default
_CONV2D = {exir_ops.edge.cortex_m.quantized_depthwise_conv2d.default:
           exir_ops.edge.cortex_m.quantized_conv2d.default,
           exir_ops.edge.cortex_m.quantized_depthwise_conv2d_nhwc.default:
           exir_ops.edge.cortex_m.quantized_conv2d_nhwc.default}
_MULTIPLIER = 6  # index of depth_multiplier, which a convolution lacks
_FEW_OUTPUTS = 3  # for one input channel; up to here the depthwise kernel is faster


class Convolutions(AtenToDialectPass):  # type: ignore[misc]
    """Make convolutions int8 before the other operators.

    Other operators check whether their input is channels last, as the result of an int8 convolution
    always is; ExecuTorch would read that from the result of PyTorch's, which is contiguous for some
    inputs of one channel.
    """


@Convolutions.register_dialect_substitution(_CONVOLUTION)  # type: ignore[untyped-decorator]
def _convolution(node: torch.fx.Node, dialect_pass: AtenToDialectPass) -> DialectNodeSpec | None:
    """Return ExecuTorch's operator, or a plain convolution where it is depthwise with one channel.

    The weights of a plain convolution have the order of its loops. The depthwise kernel transposes them
    at each run.
    """
    found = AtenToCortexMPass._DIALECT_SUBSTITUTIONS[_CONVOLUTION](node, dialect_pass)
    if found is None or found.op not in _CONV2D:
        return found
    program, weights = dialect_pass.exported_program, found.args[1]
    values = get_param_tensor(program, weights)
    outputs = values.shape[-1]
    if found.args[_MULTIPLIER] != outputs or outputs <= _FEW_OUTPUTS:
        return found
    with node.graph.inserting_after(weights):
        rows = create_constant_placeholder(program, node.graph, f"{weights.name}_rows",
                                           InputKind.PARAMETER, values.permute(3, 1, 2, 0).contiguous())
    return DialectNodeSpec(_CONV2D[found.op], (found.args[0], rows, *found.args[2:_MULTIPLIER],
                                               *found.args[_MULTIPLIER + 1:]))
