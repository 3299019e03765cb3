"""The fixtures: importing this registers all of them."""

from zoo.models import (  # noqa: F401
    activations,
    channels_last,
    convolutions,
    cortex_m,
    dtypes,
    elementwise,
    external_data,
    matrices,
    memory,
    mlperf_tiny,
    networks,
    normalization,
    pooling,
    programs,
    quantized,
    rearranged,
    reductions,
    refused,
    reported,
    shapes,
    state,
    torchscript,
)
from zoo.registry import FIXTURES

__all__ = ["FIXTURES"]
