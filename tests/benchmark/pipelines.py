"""Simulate the in-order pipelines of M7, M33 and M55, for which Arm publishes no table of cycles.

An instruction issues when its registers are ready and its units are free. M7 often issues two in a
cycle, M33 and M55 in a few cases. A result is ready some cycles after the issue (latency). An
instruction reads a register some cycles after its own issue (stage; negative: before). The sources:

- LLVM's scheduling models ARMScheduleM7.td and ARMScheduleM55.td, the work of Arm;
- measurements on an STM32H743 and an RP2350: "pipeline cycle test" of github.com/jnk0le/random;
- the models of github.com/slothy-optimizer/slothy: Cortex-M33, measured on an RP2350, and Cortex-M55.

Memories have no wait states. A Choice has the minimum, the usual and the maximum of each cost that the
sources leave open, or that depends on addresses, which a trace lacks.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from benchmark.disassembly import FLAGS


@dataclass(frozen=True)
class Choice:
    """Costs that the sources leave open, in cycles unless a field states another unit."""

    refill: int  # M33, M55: behind a taken branch
    indirect: int  # M33, M55: behind a branch whose target lies in a register or in memory
    mispredicted: int  # M7
    banks: str  # M7: two loads of unlike addresses meet in a bank "never", "in turns" or "always"
    lane: int  # M55: a lane of a gather or scatter; 0: all of it takes as long as other accesses
    words: int  # M55: words that a load or store of several registers moves in a cycle
    loop_end: int  # M55: the end of a low-overhead loop
    division: int


CHOICES = (Choice(1, 1, 0, "never", 0, 2, 0, 3), Choice(2, 2, 6, "in turns", 1, 2, 0, 7),
           Choice(3, 3, 8, "always", 2, 1, 1, 12))


@dataclass(frozen=True)
class Step:
    """The use that an instruction makes of a pipeline."""

    reads: tuple = ()  # (register, stage)
    writes: tuple = ()  # (register, latency)
    units: tuple = ()  # (unit, cycles in which it is busy)
    cycles: int = 1  # cycles until another instruction may issue
    alone: bool = False  # no other instruction issues in the same cycle
    early: "Step | None" = None  # M7: the step if it issues first in a cycle, in the earlier ALU


@dataclass(frozen=True)
class State:
    """The state of a pipeline. Cycles count from the cycle of the last issue."""

    group: tuple = ()  # the instruction of that cycle, while another may join it
    ready: tuple = ()  # (register, cycle)
    free: tuple = ()  # (unit, cycle)
    meets: bool = False  # M7: the next two loads meet in a bank


class Pipeline:
    """A core with a choice. A subclass defines the steps, and the pairs that issue together."""

    EARLIEST = -1  # stage
    MOVED = 1  # latency of a base register

    def __init__(self, choice):
        self.choice = choice
        self.step_of = lru_cache(maxsize=None)(self.step)

    def run(self, state, instructions, taken, mispredicted):
        """Return (cycles, state afterwards) of a block. taken: its last instruction is a taken
        branch."""
        total = 0
        for one in instructions:
            cycles, state = self._issue(state, one)
            total += cycles
        more = self.refill(instructions[-1], state, mispredicted) if taken or mispredicted else 0
        if taken:
            state = replace(state, group=())
        return total + more, self._later(state, more)

    def _issue(self, state, one):
        step = self.step_of(one)
        ready, free = dict(state.ready), dict(state.free)
        cycle, group = 0, ()
        first = state.group[0] if state.group else None
        if not (first and _first(step, ready, free) <= 0 and self.is_pair(first, one, state)):
            cycle = max(1, _first(step, ready, free))
            group = () if step.alone or step.cycles > 1 else (one,)
            if step.early and _first(step.early, ready, free) <= cycle:
                step = step.early
        ready |= {register: cycle + latency for register, latency in step.writes}
        free |= {unit: cycle + cycles for unit, cycles in step.units}
        total = cycle + step.cycles - 1
        meets = state.meets != (first is not None and self.may_meet(first, one))
        behind = State(group, tuple(sorted(ready.items())), tuple(sorted(free.items())), meets)
        return total, self._later(behind, total)

    def _later(self, state, cycles):
        """Return the state that many cycles later, without expired entries."""
        ready = ((name, at - cycles) for name, at in state.ready)
        return replace(state, ready=tuple(one for one in ready if one[1] > self.EARLIEST),
                       free=tuple((name, at - cycles) for name, at in state.free if at > cycles))

    def may_meet(self, first, second):
        """Return True for two loads that may use the same bank."""
        return False

    def common(self, one, latency, **more):
        """Return the step of an instruction that reads at its issue and uses no unit."""
        sources = (*one.sources, *one.shifted, *one.added, *one.stored, *one.address_registers)
        writes = [(register, latency) for register in one.results] + self.side_results(one)
        return Step(tuple((register, 0) for register in sources), tuple(writes), **more)

    def side_results(self, one):
        """Return the moved base register, and the flags."""
        return [(register, self.MOVED) for register in one.updated] + [(FLAGS, 1)] * one.sets_flags

    def several(self, one, words, latency, **more):
        """Return the step of a load or store of several registers, `words` of them in a cycle."""
        count = len(one.listed or one.results or one.stored)
        step = self.common(one, 1, cycles=-(-count // words), alone=True, **more)
        loaded = [(register, i // words + latency) for i, register in enumerate(one.results)]
        return replace(step, writes=(*loaded, *self.side_results(one)))


def _first(step, ready, free):
    """Return the first cycle in which the step may issue."""
    return max([0, *(ready[register] - stage for register, stage in step.reads if register in ready),
                *(free[unit] for unit, _ in step.units if unit in free)])


class CortexM7(Pipeline):
    """A core that issues two in a cycle, with an earlier and a later ALU and predicted branches
    (cycles.Predictor)."""

    # Units that accept one instruction in a cycle
    SINGLE = {"store", "product", "shifter", "field", "branch", "float"}
    USES = {"load": {"load"}, "store": {"store"}, "product": {"product"}, "branch": {"branch"},
            "extend": {"field"}, "field": {"field"}, "packed": {"field"}, "float": {"float"},
            "float fused": {"float", "port"}, "float load": {"load", "port"},
            "float move": {"port"}, "float store": {"store", "port"}}
    MOVED = 0
    LOADED = ".loaded"  # a loaded register as a multiplier reads it, a cycle later
    SATURATING = re.compile(r"u?qd?(add|sub|asx|sax).*|[su]sat(16)?|usada?8")

    def step(self, one):
        kind = one.kind
        if kind in ("loads", "stores"):
            step = self.several(one, 2, 1)
            return replace(step, reads=self._reads(one), writes=self._with_loaded(step, one))
        latency = {"product": 2, "load": 1 if one.name == "ldr" else 2, "float": 3, "float load": 2,
                   "float fused": 5 if one.name.startswith("vf") else 6}.get(kind, 1)
        if kind == "packed" and self.SATURATING.fullmatch(one.name):
            latency = 2
        if kind == "float move":
            latency = 2 if one.results[0].startswith("r") else 3
        step = replace(self.common(one, latency), reads=self._reads(one))
        if kind == "load":
            return replace(step, writes=self._with_loaded(step, one))
        if kind in ("division", "float division"):
            return replace(step, cycles=self.choice.division if kind == "division" else 15, alone=True)
        if kind == "system":
            return replace(step, cycles=3, alone=True)
        if kind in ("float load", "float store") and ".64" in one.mnemonic or kind == "float move" and \
                len(one.parts) > 2 or re.search(r"^d\d", one.operands) and kind.startswith("float"):
            return replace(step, alone=True)
        if kind in ("add", "move", "shift") and not one.shifted and FLAGS not in one.sources:
            early = tuple((register, -1) for register in one.sources)
            return replace(step, early=Step(early, tuple((register, 1 if register == FLAGS else 0)
                                                         for register, _ in step.writes)))
        return step

    def _reads(self, one):
        sources = [(register, 0) for register in one.sources]
        if one.kind == "product":
            sources += [(register + self.LOADED, 0) for register in one.sources]
        if one.name in ("sbfx", "ubfx", "rbit", "rev", "rev16", "revsh"):
            sources = [(register, -1) for register in one.sources]
        added = 1 if one.kind == "product" else 2 if one.name.startswith("vf") else 3
        sources += [(register, -1) for register in (*one.shifted, *one.address_registers)]
        sources += [(register, added) for register in one.added]
        return (*sources, *((register, 2) for register in one.stored))

    def _with_loaded(self, step, one):
        loaded = [(register + self.LOADED, latency + 1) for register, latency in step.writes
                  if register in one.results]
        return (*step.writes, *loaded)

    def _uses(self, one):
        uses = self.USES.get(one.kind, set())
        return uses | {"shifter"} if one.shifted and one.kind != "product" else uses

    def is_pair(self, first, second, state):
        if self.step_of(second).alone or self.step_of(second).cycles > 1:
            return False
        uses, others = self._uses(first), self._uses(second)
        if uses & others & self.SINGLE or "field" in others or {"store", "product"} <= uses | others:
            return False
        if "field" in uses and "shifter" in others and first.kind != "extend" or \
                "port" in uses & others and "float" in uses | others:
            return False
        if "load" in uses & others:
            if not self.may_meet(first, second):
                return self._bank(first) != self._bank(second)
            return {"never": True, "always": False}.get(self.choice.banks, not state.meets)
        return True

    def may_meet(self, first, second):
        if first.kind != "load" or second.kind != "load":
            return False
        return self._bank(first) is None or self._bank(second) is None \
            or first.address_registers != second.address_registers

    @staticmethod
    def _bank(one):
        """Return the bank, 0 or 1, relative to other loads with the same base register. Return None for
        an address that is not a base and a constant."""
        simple = re.search(r"\[\w+(?:, #(-?\d+))?\]$", one.operands)
        return int(simple[1] or 0) >> 2 & 1 if simple else None

    def refill(self, branch, state, mispredicted):
        return self.choice.mispredicted if mispredicted else 0


class CortexM33(Pipeline):
    """A core that issues one in a cycle, or in addition a short branch or IT beside a short
    instruction."""

    def step(self, one):
        kind = one.kind
        if kind in ("loads", "stores"):
            return self._forwarding(self.several(one, 1, 2), one)
        latency = {"product": 2, "packed": 2, "load": 2, "float load": 2, "float": 2,
                   "float fused": 3}.get(kind, 1)
        if one.shifted and not one.parts[-1].startswith("lsl"):
            latency = 2
        step = self._forwarding(self.common(one, latency), one)
        if kind in ("division", "float division"):
            return replace(step, cycles=self.choice.division if kind == "division" else 14, alone=True)
        if kind.startswith("float") and kind not in ("float load", "float store"):
            return replace(step, units=(("float", 3 if kind == "float fused" else 1),))
        if kind == "product" and one.sets_flags:
            return replace(step, cycles=2)
        return replace(step, cycles=2, alone=True) if kind == "system" else step

    def _forwarding(self, step, one):
        """Delay the register that sums and stores read by a cycle."""
        late = {*one.added, *one.stored} - {*one.sources, *one.address_registers, *one.shifted}
        if one.kind == "float fused":
            return step
        return replace(step, reads=tuple((register, 1 if register in late else stage)
                                         for register, stage in step.reads))

    def is_pair(self, first, second, state):
        return first.size == second.size == 2 and second.kind in ("branch", "predicate") \
            and not first.is_branch

    def refill(self, branch, state, mispredicted):
        if branch.is_indirect:
            return self.choice.indirect
        fresh = dict(state.ready).get(FLAGS, 0) > 0  # set in the cycle of the branch
        return max(1, self.choice.refill - (not fresh))


class CortexM55(Pipeline):
    """A core that issues one in a cycle, or two short ones of some kinds. A vector instruction uses its
    unit for two beats."""

    EARLIEST = -4
    LONGER = {"product", "packed", "load", "division", "long shift", "float", "float load",
              "float fused"}
    SUMS = re.compile(r"v(r?ml|q?r?d?ml|q?r?d?mul|fm|cmla|cmul|cmp|pt|addl?v|cvt|rint|maxnm|minnm)")
    FLOATS = re.compile(r"v(abd|abs|add|sub|neg)")
    LATER = re.compile(r"v(rshl|q?r?shl(?!l)|rshr(?!n)|qrshl|adc|sbc)")
    NARROWING = re.compile(r"v(q?movu?n|q?r?shru?n|abav|(max|min)a?v)")

    def step(self, one):
        if one.is_vector:
            return self._vector(one)
        kind = one.kind
        if one.name in ("le", "letp") and not self.choice.loop_end:
            return Step(cycles=0)
        if kind in ("loads", "stores"):
            return self.several(one, self.choice.words, 2, units=(("memory", 1),))
        if one.name == "clrm":
            return replace(self.several(one, self.choice.words, 1), reads=())
        latency = 2 if kind in self.LONGER or one.shifted or one.name in ("sbfx", "ubfx") else 1
        if one.name in ("vmla", "vmls", "vnmla", "vnmls"):
            latency = 4
        step = self.common(one, latency)
        if kind in ("load", "store", "float load", "float store"):
            return replace(step, units=(("memory", 1),))
        if kind in ("division", "float division"):
            return replace(step, cycles=self.choice.division if kind == "division" else 15, alone=True)
        if kind.startswith("float"):
            return replace(step, units=(("float", 1),), alone=True)
        return replace(step, cycles=2, alone=True) if kind == "system" else step

    def _vector(self, one):
        if re.match(r"vpst|vpnot|vctp", one.name):
            return self.common(one, 1, units=(("control", 1),), alone=True)
        if one.address_registers:
            return self._access(one)
        is_sum = self.SUMS.match(one.name) or ".f" in one.mnemonic and self.FLOATS.match(one.name) \
            or one.name.startswith("vmov") and not (one.results and one.results[0].startswith("s"))
        latency = 3 if self.NARROWING.match(one.name) else 2 if self.LATER.match(one.name) or \
            is_sum and not re.match(r"vcmp|vpt|vmov", one.name) else 1
        return self.common(one, latency, units=(("float" if is_sum else "integer", 2),), alone=True)

    def _access(self, one):
        offsets = [register for register in one.address_registers if re.match(r"s\d", register)]
        structured = re.match(r"v(ld|st)[24]", one.name)
        beats = 2
        if offsets:
            beats = max(2, self.choice.lane * 128 // int(re.search(r"\d+$", one.mnemonic)[0]))
        latency = beats if offsets or structured else 1
        step = self.common(one, latency, units=(("memory", beats),), alone=True)
        stage = {register: self.EARLIEST for register in offsets} | \
            {register: -2 if structured else 1 for register in one.stored}
        reads = tuple((register, stage.get(register, at)) for register, at in step.reads)
        return replace(step, reads=reads)

    def is_pair(self, first, second, state):
        if first.size != 2 or second.size != 2 or first.is_branch or self.step_of(second).alone:
            return False
        return self._is_light(second) or self.choice.words > 1 and self._is_light(first)

    @staticmethod
    def _is_light(one):
        constant = one.kind in ("add", "move") and "#" in one.operands or one.name == "mov"
        return constant or one.kind in ("extend", "nop", "predicate", "branch")

    def refill(self, branch, state, mispredicted):
        if branch.kind == "loop":
            return self.choice.loop_end
        return self.choice.indirect if branch.is_indirect else self.choice.refill


PIPELINES = {"cortex-m7": CortexM7, "cortex-m33": CortexM33, "cortex-m55": CortexM55}


class Pipelines:
    """A core with each of the choices."""

    start = (State(),) * len(CHOICES)

    def __init__(self, core):
        self.each = [PIPELINES[core](choice) for choice in CHOICES]

    def run(self, states, instructions, taken, mispredicted):
        """Return ((minimum, usual, maximum) of cycles, states afterwards) of a block."""
        found = [pipeline.run(state, instructions, taken, mispredicted)
                 for pipeline, state in zip(self.each, states, strict=True)]
        return tuple(cycles for cycles, _ in found), tuple(state for _, state in found)
