"""Cycles of single instructions, as the technical reference manuals of three cores document them.

Cortex-M0+ (DDI 0484C, table 3-1, single-cycle multiplier), Cortex-M3 (DDI 0337, table 3-1) and
Cortex-M4 (DDI 0439, tables 3-1 and 7-1), memories without wait states. A cost is (least, usual, most):

- a taken branch of M3 and M4 refills the pipeline in 1 to 3 cycles, usually 2;
- a single load of M3 and M4 takes 2 cycles, 1 behind another single load or store whose result is not
  its address; a single store takes 1 (with a register as offset 2): M3 TRM, "Load/store timings";
- long products of M3 end early, depending on their operands (SMULL 3 to 5, SMLAL 4 to 7), divisions
  of both (2 to 12) too: usual is the middle;
- of an instruction in an IT block it is not known whether its condition held: it counts as executed.
"""

import re
from dataclasses import dataclass

CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4")
REFILL = (1, 2, 3)  # cycles
CONDITION = "(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)"
LONG_PRODUCTS = {"smull": (3, 4, 5), "umull": (3, 4, 5), "smlal": (4, 5.5, 7), "umlal": (4, 5.5, 7)}
DIVISION = (2, 7, 12)
SINGLE = re.compile(r"(ldr|str)(b|h|sb|sh)?$")
FUSED = re.compile(r"v(fn?m[as]|n?ml[as])$")


@dataclass(frozen=True)
class Instruction:
    """One of a disassembly: "ldrb.w" "r0, [r1, #4]". Its name is without width and condition."""

    mnemonic: str
    operands: str

    @property
    def name(self):
        base = self.mnemonic.split(".")[0]
        if re.fullmatch(f"b{CONDITION}", base):
            return "bcond"
        plain = re.fullmatch(f"(\\w{{2,}}?){CONDITION}", base)
        if plain and base not in ("teq", "smlal", "umlal", "muls", "mls", "vmls", "vnmls", "vfms"):
            return plain[1]
        return base

    @property
    def registers(self):
        """How many words a list of registers has."""
        inside = re.search(r"\{(.*)\}", self.operands)
        names = inside[1].split(",") if inside else []
        return sum(2 if name.strip().startswith("d") else 1 for name in names)

    @property
    def writes_pc(self):
        if self.name in ("pop", "ldm"):
            return "pc" in self.operands
        return self.operands.startswith("pc") and self.name in ("ldr", "mov", "add")

    @property
    def is_branch(self):
        return self.name in ("b", "bcond", "bl", "bx", "blx", "cbz", "cbnz", "tbb", "tbh") \
            or self.writes_pc

    def is_address_of(self, other):
        """True when this load's result is part of the other's address."""
        return self.name.startswith("ldr") and \
            self.operands.split(",")[0] in re.split(r"[\[\], ]+", other.operands.partition("[")[2])


def cost(core, one, before, taken):
    """Cycles of an instruction behind the instruction `before`, or None: (least, usual, most)."""
    cycles = _m0plus(one, taken) if core == "cortex-m0plus" else _m3(core, one, before)
    cycles = cycles if isinstance(cycles, tuple) else (cycles,) * 3
    if taken and core != "cortex-m0plus":
        cycles = tuple(a + b for a, b in zip(cycles, REFILL, strict=True))
    return cycles


def _m0plus(one, taken):
    name = one.name
    if name in ("ldm", "ldmia", "stm", "stmia", "push", "pop"):
        return 1 + one.registers + (2 if one.writes_pc else 0)
    if SINGLE.match(name) or name == "blx":
        return 2
    if name in ("bl", "mrs", "msr", "dsb", "dmb", "isb"):
        return 3
    return 2 if taken else 1


def _m3(core, one, before):
    name = one.name
    if name in ("ldm", "ldmia", "ldmdb", "stm", "stmia", "stmdb", "push", "pop", "vldm", "vldmia",
                "vldmdb", "vstm", "vstmia", "vstmdb", "vpush", "vpop"):
        return 1 + one.registers
    if name in ("ldrd", "strd"):
        return 3
    if SINGLE.match(name):
        return _single(one, before)
    if name in ("vldr", "vstr"):
        return 3 if ".64" in one.mnemonic else 2
    if name in ("sdiv", "udiv"):
        return DIVISION
    if core == "cortex-m3":
        return LONG_PRODUCTS.get(name, 2 if name in ("mla", "mls", "mrs", "msr") else 1)
    if name in ("vdiv", "vsqrt"):
        return 14
    if FUSED.match(name):
        return 3
    return 2 if name in ("mrs", "msr", "tbb", "tbh") else 1


def _single(one, before):
    if one.name.startswith("str"):
        by_register = re.search(r"\[\w+, r\d", one.operands)
        return (2, 2, 2) if by_register else (1, 1, 2)
    pipelined = before and SINGLE.match(before.name) and not before.writes_pc \
        and not before.is_address_of(one)
    return (1, 1, 2) if pipelined else 2
