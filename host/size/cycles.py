"""Estimate the time of an execution on a chip from the instructions that an emulated board counted.

cycles_per_instruction.json has (least, usual, most) of each core: of the five int8 models of
docs/performance.md, the least and the most of any model, and the mean of all their instructions. It
has them without and with prepared constants. `make performance` measures and writes them. All are
without wait states of flash, caches and the bus, which are the chip's.
"""

import json
from importlib import resources

CYCLES_PER_INSTRUCTION = json.loads(
    resources.files(__package__).joinpath("cycles_per_instruction.json").read_text())


def estimate(core: str, clock_hz: int | None, instructions: int, prepared: int = 0) -> dict:
    """{"instructions", "cycles", "ms": None without a clock, "least_ms", "most_ms"}; prepared: bytes"""
    factors = CYCLES_PER_INSTRUCTION["pool" if prepared else "none"][core]
    cycles = [round(factor * instructions) for factor in factors]
    ms = [None if clock_hz is None else round(1000 * count / clock_hz, 3) for count in cycles]
    return {"instructions": instructions, "cycles": cycles[1], "ms": ms[1], "least_ms": ms[0],
            "most_ms": ms[2]}
