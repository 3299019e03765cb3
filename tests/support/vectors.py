"""List the vectors of this computer, by name."""

import platform

from _picotorch_c import lib

LOWER, UPPER = ("neon", "dot") if platform.machine() in ("aarch64", "arm64") else ("sse2", "avx2")
KINDS = {"plain": lib.PT_VECTORS_NONE, LOWER: lib.PT_VECTORS_LOWER, UPPER: lib.PT_VECTORS_UPPER}
