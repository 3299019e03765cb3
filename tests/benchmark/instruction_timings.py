"""Define the cycles of single instructions, as the technical reference manuals of three cores state
them.

The sources are Cortex-M0+ (DDI 0484C, table 3-1, single-cycle multiplier), Cortex-M3 (DDI 0337, table
3-1) and Cortex-M4 (DDI 0439, tables 3-1 and 7-1), for memories without wait states. A cost is (minimum,
usual, maximum):

- A taken branch of M3 and M4 refills the pipeline in 1 to 3 cycles, usually 2.
- A single load of M3 and M4 takes 2 cycles. It takes 1 cycle behind another single load or store,
  unless that one loads its address. A single store takes 1 cycle, or 2 with a register as offset (M3
  TRM, "Load/store timings").
- A long product of M3 ends early for small operands: UMULL takes 3 to 4 cycles, UMLAL 4 to 6, and a
  signed product one more. Operands of kernels are not small: they have 31 bits in requantization, and
  24 or more elsewhere.
- A division of M3 and M4 takes 2 to 12 cycles; the usual cost is the middle.
- Float instructions of M4 (table 7-1): a sum or product takes 1 cycle, a product with accumulation 3, a
  division or square root 14, a move between a general and a float register 2. Arithmetic and
  conversions take one more if the next instruction reads the result.
- The condition of an instruction in an IT block is unknown, so the instruction counts as executed.
"""


CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4")
REFILL = (1, 2, 3)  # cycles
LONG_PRODUCTS = {"umull": (3, 4, 4), "smull": (4, 5, 5), "umlal": (4, 6, 6), "smlal": (5, 7, 7)}
DIVISION = (2, 7, 12)
FLOAT_ARITHMETIC = ("float", "float fused", "float division")


class Timings:
    """A core whose instructions have cycles that depend on little else."""

    start = None  # there is no instruction before

    def __init__(self, core):
        self.core = core

    def run(self, before, instructions, taken, mispredicted):
        """Return ((minimum, usual, maximum) cycles, last instruction). taken: it is a taken branch."""
        sums = (0, 0, 0)
        for i, one in enumerate(instructions):
            cycles = cost(self.core, one, before, taken and i == len(instructions) - 1)
            sums = tuple(a + b for a, b in zip(sums, cycles, strict=True))
            before = one
        return sums, before


def cost(core, one, before, taken):
    """Return the (minimum, usual, maximum) cycles of an instruction behind `before`, an instruction or
    None."""
    cycles = _m0plus(one, taken) if core == "cortex-m0plus" else _m3(core, one, before)
    cycles = cycles if isinstance(cycles, tuple) else (cycles,) * 3
    if core == "cortex-m4" and before and before.kind in FLOAT_ARITHMETIC \
            and _reads(one, before.results):
        cycles = tuple(a + 1 for a in cycles)
    if taken and core != "cortex-m0plus":
        cycles = tuple(a + b for a, b in zip(cycles, REFILL, strict=True))
    return cycles


def _m0plus(one, taken):
    if one.kind in ("loads", "stores"):
        return 1 + len(one.listed) + (2 if one.writes_pc else 0)
    if one.kind in ("load", "store") or one.name == "blx":
        return 2
    if one.name == "bl" or one.kind == "system":
        return 3
    return 2 if taken else 1


def _m3(core, one, before):
    if one.kind in ("loads", "stores"):
        return 1 + len(one.listed or (*one.results, *one.stored))
    if one.kind in ("load", "store"):
        return _single(one, before)
    if one.kind in ("float load", "float store"):
        return 1 + len((*one.results, *one.stored))
    if one.kind == "division":
        return DIVISION
    if one.kind == "system":
        return 2
    if core == "cortex-m3":
        return LONG_PRODUCTS.get(one.name, 2 if one.name in ("mla", "mls") else 1)
    if one.kind == "float division":
        return 14
    if one.kind == "float move":
        return 2 if any(register.startswith("r") for register in (*one.results, *one.sources)) else 1
    return 3 if one.kind == "float fused" else 2 if one.name in ("tbb", "tbh") else 1


def _reads(one, results):
    return set(results) & {*one.sources, *one.added, *one.shifted, *one.stored, *one.address_registers}


def _single(one, before):
    if one.kind == "store":
        return (2, 2, 2) if len(one.address_registers) > 1 else (1, 1, 2)
    pipelined = before and before.kind in ("load", "store") and not before.writes_pc \
        and not set(before.results) & set(one.address_registers)
    return (1, 1, 2) if pipelined else 2
