"""Define size or speed of a build: a level on the command line, its single effects in Python."""

from dataclasses import dataclass
from typing import Literal

from .operators import CONV_VARIANTS


@dataclass(frozen=True)
class Optimize:
    """Select the parts of a build that trade size for speed.

    pack_weights: the calls of a compiled method whose weights are stored packed for the core: "none",
    "all", or "paying" for the calls that save cycles, as many as fit in flash. scratch: bytes of
    scratch memory: "min" for the minimum of the kernels, "preferred" for the fastest size, or "fitting"
    for the preferred size if the target has room, and without a target if it saves cycles. variants:
    the variants of int8 convolutions that a firmware may include, of operators.CONV_VARIANTS. It
    includes the variants that speed up one of its models. small_module: True for a native module with
    plain C loops and without texts of errors, False for the loops of each core, None for the needs of
    the models.
    """

    pack_weights: Literal["none", "paying", "all"] = "paying"
    scratch: Literal["min", "fitting", "preferred"] = "fitting"
    variants: frozenset[str] = frozenset(CONV_VARIANTS)
    small_module: bool | None = None

    @property
    def left_out(self) -> frozenset[str]:
        """Return the variants that a firmware does not include."""
        return frozenset(CONV_VARIANTS) - self.variants


BALANCED = Optimize()
LEVELS = {"size": Optimize("none", "min", frozenset(), True), "balanced": BALANCED,
          "speed": Optimize("all", "preferred", small_module=False)}
