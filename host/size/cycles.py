"""How long an execution takes on a chip: an estimate from instructions that an emulated board counted.

Cycles an instruction, (least, usual, most): of Cortex-M0+, M3 and M4 what tools/cycles.py found for the
int8 models of docs/performance.md, from the timings in Arm's manuals. For M7, M33 and M55 there are no
such tables: theirs are of measured runs of these models' kinds of layers, and rougher. All are without
wait states of flash, caches and the bus, which are the chip's.
"""

CYCLES_PER_INSTRUCTION = {
    "cortex-m0plus": (1.28, 1.33, 1.41),
    "cortex-m3": (1.95, 2.9, 3.26),
    "cortex-m4": (1.38, 1.5, 1.59),
    "cortex-m7": (0.84, 1.0, 1.04),
    "cortex-m33": (1.36, 1.4, 1.43),
    "cortex-m55": (1.14, 1.6, 1.66),
}


def estimate(core: str, clock_hz: int | None, instructions: int) -> dict:
    """{"instructions", "cycles", "ms": None without a clock, "least_ms", "most_ms"}"""
    cycles = [round(factor * instructions) for factor in CYCLES_PER_INSTRUCTION[core]]
    ms = [None if clock_hz is None else round(1000 * count / clock_hz, 3) for count in cycles]
    return {"instructions": instructions, "cycles": cycles[1], "ms": ms[1], "least_ms": ms[0],
            "most_ms": ms[2]}
