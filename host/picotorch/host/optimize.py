"""Size or speed of a build: a level on the command line, its single effects in Python."""

from dataclasses import dataclass
from typing import Literal

from .operators import CONV_VARIANTS


@dataclass(frozen=True)
class Optimize:
    """Select the parts of a build that trade size for speed.

    pack_weights: of a compiled method, the calls whose weights are stored packed for the core: "none",
    "all", or "paying" for those that save cycles, as many as flash has room for.
    scratch: bytes of scratch memory: "min" for what kernels need, "preferred" for those with which they
    are fastest, or "fitting" for the preferred ones where the target has room, and if no target is
    named, where they save cycles.
    variants: the variants of int8 convolutions that a firmware may include, of operators.CONV_VARIANTS.
    It includes those that speed up one of its models.
    small_module: True for a native module with plain C loops and without texts of errors, False for the
    loops of each core, None for what the models need.
    """

    pack_weights: Literal["none", "paying", "all"] = "paying"
    scratch: Literal["min", "fitting", "preferred"] = "fitting"
    variants: frozenset[str] = frozenset(CONV_VARIANTS)
    small_module: bool | None = None

    @property
    def left_out(self) -> frozenset[str]:
        """The variants that a firmware does not include."""
        return frozenset(CONV_VARIANTS) - self.variants


BALANCED = Optimize()
LEVELS = {"size": Optimize("none", "min", frozenset(), True), "balanced": BALANCED,
          "speed": Optimize("all", "preferred", small_module=False)}
