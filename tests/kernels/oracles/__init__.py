"""Define an oracle in numpy for each operator: random arguments, and the result."""

from . import (  # noqa: F401
    affine,
    complexes,
    copies,
    cortex_m,
    drawn,
    elementwise,
    linear_algebra,
    normalizations,
    numbers,
    picked,
    products,
    recurrent,
    reductions,
    regions,
)
from .sample import ORACLES as ORACLES
from .sample import Draw as Draw
from .sample import HypothesisDraw as HypothesisDraw
