"""How long an execution takes on a chip: an estimate from instructions that an emulated board counted.

Cycles an instruction, (least, usual, most), are what tests/benchmark/cycles.py finds for the five int8
models of docs/performance.md: the mean of the models, and the least and most of any. Prepared constants
need fewer instructions, more of which multiply. All are without wait states of flash, caches and the
bus, which are the chip's.
"""

CYCLES_PER_INSTRUCTION = {
    "cortex-m0plus": (1.28, 1.34, 1.4),
    "cortex-m3": (1.40, 1.57, 1.93),
    "cortex-m4": (1.42, 1.59, 1.79),
    "cortex-m7": (0.58, 0.73, 0.87),
    "cortex-m33": (1.26, 1.42, 1.55),
    "cortex-m55": (1.13, 1.52, 1.99),
}
# usual: of all instructions of the five models together, and no fewer than without. The autoencoder
# takes more cycles an instruction (1.9 on M4F), the convolutions as many as without.
PREPARED = {
    "cortex-m0plus": (1.33, 1.36, 1.4),
    "cortex-m3": (1.40, 1.57, 1.93),
    "cortex-m4": (1.5, 1.64, 2.0),
    "cortex-m7": (0.58, 0.73, 1.2),
    "cortex-m33": (1.37, 1.46, 1.71),
    "cortex-m55": (1.13, 1.52, 1.99),
}


def estimate(core: str, clock_hz: int | None, instructions: int, prepared: int = 0) -> dict:
    """{"instructions", "cycles", "ms": None without a clock, "least_ms", "most_ms"}; prepared: bytes"""
    factors = (PREPARED if prepared else CYCLES_PER_INSTRUCTION)[core]
    cycles = [round(factor * instructions) for factor in factors]
    ms = [None if clock_hz is None else round(1000 * count / clock_hz, 3) for count in cycles]
    return {"instructions": instructions, "cycles": cycles[1], "ms": ms[1], "least_ms": ms[0],
            "most_ms": ms[2]}
