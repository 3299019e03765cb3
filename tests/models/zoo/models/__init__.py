"""The fixtures: importing this registers all of them."""

from models.zoo.models import (  # noqa: F401
    activations,
    channels_last,
    control_flow,
    convolutions,
    cortex_m,
    delegates,
    dtypes,
    dynamic_shapes,
    elementwise,
    external_data,
    halves,
    keywords,
    matrices,
    memory,
    mlperf_tiny,
    moved,
    networks,
    normalization,
    pooling,
    prim_operators,
    programs,
    quantized,
    rearranged,
    reductions,
    refused,
    reported,
    shapes,
    spectra,
    state,
    torchscript,
    training,
    volumes,
)
from models.zoo.registry import FIXTURES

__all__ = ["FIXTURES"]
