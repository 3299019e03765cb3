"""The signatures of operators, from their `.out` schemas."""

import executorch.exir.passes.dim_order_ops_registry  # noqa: F401  registers dim_order_ops
import executorch.exir.passes.executorch_prim_ops_registry  # noqa: F401  registers executorch_prim
import torch


def operator_schema(operator: str) -> str:
    """Return the schema of "namespace::name.overload" with argument types, names and defaults."""
    namespace, _, rest = operator.partition("::")
    name, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    function = getattr(packet, overload or "default", None)
    return str(function._schema) if function is not None else f"{operator}(no schema)"
