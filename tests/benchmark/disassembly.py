"""Read a firmware's instructions, and the registers they read and write, from objdump's listing."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property

OBJDUMP = "arm-none-eabi-objdump"
# objdump decodes vector instructions only if it gets the name of their architecture
ARCHITECTURES = {"cortex-m55": ["-marmv8.1-m.main"]}
LISTED = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f]{4}(?: [0-9a-f]{4})?) *\t(\S+)(?:\t([^@;<]*))?")
CONDITION = r"(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)"
REGISTER = re.compile(r"\b(?:([sdq])(\d+)(?:-[sdq](\d+))?|(r\d+|sl|fp|ip|sp|lr|pc))\b")
ALIASES = {"sl": "r10", "fp": "r11", "ip": "r12"}
WORDS = {"s": 1, "d": 2, "q": 4}
SHIFT = re.compile(r"(lsl|lsr|asr|ror|rrx)\b")
FLAGS = "flags"

# The kind of an instruction is the first whose pattern matches its name without width, condition and S.
KINDS = [(kind, re.compile(pattern)) for kind, pattern in [
    ("compare", r"cmp|cmn|tst|teq"),
    ("move", r"mov|movw|mvn|neg|adr"),
    ("add", r"addw?|subw?"),
    ("shift", r"lsl|lsr|asr|ror|rrx"),
    ("logic", r"rsb|adc|sbc|and|orr|orn|eor|bic|movt|csel|csinc|csinv|csneg|csetm?|cinc|cinv|cneg"),
    ("extend", r"[su]xt[bh]"),
    ("field", r"bfi|bfc|sbfx|ubfx|clz|rbit|rev|rev16|revsh|sel|[su]xtb16"),
    ("packed", r"[su]xta(b|h|b16)|pkh(bt|tb)|([su]|[su]h|q|uq)(add|sub)(8|16)|qd?(add|sub)"
               r"|([su]|[su]h|q|uq)(asx|sax)|[su]sat(16)?|usada?8"),
    ("product", r"mul|mla|mls|umaal|[su]mull|[su]mlal|sm(ul|la|ls|mul|mla|mls|ua|us)\w*"),
    ("long shift", r"asrl|lsll|lsrl|sqrshrl?|uqrshll?|srshrl?|urshrl?|sqshll?|uqshll?"),
    ("division", r"[su]div"),
    ("load", r"ldr(ex)?(b|h|sb|sh)?|lda[bh]?|pld"),
    ("store", r"str(ex)?[bh]?|stl[bh]?"),
    ("loads", r"ldrd|v?ldm(ia|db|fd)?|v?pop"),
    ("stores", r"strd|v?stm(ia|db|fd)?|v?push"),
    ("branch", r"b|bl|bx|blx|cbn?z|tb[bh]"),
    ("loop", r"dls|dlstp|wls|wlstp|le|letp|lctp"),
    ("predicate", r"i[te]{1,4}"),
    ("nop", r"nop"),
    ("system", r"dmb|dsb|isb|mrs|msr|cps\w+|bkpt|svc|udf|wf[ie]|clrm|vmsr|vmrs"),
    ("float fused", r"vn?ml[as]|vfn?m[as]"),
    ("float division", r"vdiv|vsqrt"),
    ("float move", r"vmov|vins|vmovx"),
    ("float load", r"vldr"),
    ("float store", r"vstr"),
    ("float", r"v(add|sub|n?mul|abs|neg|cmpe?|cvt\w?|rint\w|sel(eq|vs|ge|gt)|maxnm|minnm)"),
]]
VECTOR = re.compile(r"vpst|vpt|vpnot|vctp")  # in addition to instructions with a vector register
WITHOUT_RESULT = {"compare", "store", "stores", "branch", "predicate", "nop", "system", "float store"}
STORING = {"store", "stores", "float store"}
LOADING = {"load", "loads", "float load"}
STACK = {"push", "pop", "vpush", "vpop"}
LONG = re.compile(r"[su]mull|[su]mlal\w*|umaal|smlsld\w*|ldrd|strd|lsll|lsrl|asrl")
READS_FLAGS = re.compile(r"adc|sbc|rrx|cs\w+|cin[cv]|cneg")
ADDING = re.compile(r"mla|mls|sm(la|ls|mla|mls)(?!l)\w*")  # the last operand is an addend
# Instructions whose result depends on the previous value of its register, or adds to it.
INTO = re.compile(r"bfi|bfc|movt|[su]mlal\w*|umaal|smlsld\w*|lsll|lsrl|asrl|vn?ml[as]|vfn?m[as]"
                  r"|vq?r?shru?n\w+|vq?movu?n[bt]\w?|vsli\w?|vsri\w?|vr?q?r?d?ml[as]\w*?av?h?a?x?|vmlal?va|v\w+lah"
                  r"|vaddl?va|vabav|v(max|min)(nm)?a?v\w?|v(ld|st)[24]\d")
LONG_SUM = re.compile(r"v(addlva?|r?ml[as]ld?a?va?x?|r?ml[as]ldavh?a?x?)")


class UnknownInstruction(ValueError):
    """KINDS has no pattern for the instruction."""


@cache
def _kind(mnemonic):
    """Parse a mnemonic: "addseq.w" gives ("add", "add", sets flags, is conditional)."""
    base = mnemonic.split(".")[0]
    if re.fullmatch(f"b{CONDITION}", base):
        return "branch", "bcond", False, True
    plain = re.sub(f"{CONDITION}$", "", base)
    for name in (base, base.removesuffix("s"), plain, plain.removesuffix("s")):
        for kind, pattern in KINDS:
            if pattern.fullmatch(name):
                rest = base.removeprefix(name)
                return kind, name, rest.startswith("s") and rest not in ("cs", "vs"), len(rest) > 1
    raise UnknownInstruction(mnemonic)


def registers(text):
    """Return the names of the registers in a text, in order. A float or vector register gives the names
    of its words, a list gives all of its registers."""
    found = []
    for bank, first, last, general in REGISTER.findall(text):
        if general:
            found.append(ALIASES.get(general, general))
        else:
            words = WORDS[bank]
            found += [f"s{i}" for i in range(int(first) * words, (int(last or first) + 1) * words)]
    return tuple(found)


@dataclass(frozen=True)
class Instruction:
    """An instruction of a listing, for example "ldrb.w" with the operands "r0, [r1, #4]"."""

    mnemonic: str
    operands: str = ""
    address: int = 0
    size: int = 2  # bytes

    @cached_property
    def parts(self):
        """Return the operands. A list of registers is one operand, and an address is one."""
        return [part.strip() for part in re.split(r",(?![^\[{]*[\]}])", self.operands) if part.strip()]

    @cached_property
    def is_vector(self):
        base = self.mnemonic.split(".")[0]
        has_register = base.startswith("v") and re.search(r"\bq\d", self.operands)
        return bool(has_register or VECTOR.match(base))

    @cached_property
    def kind(self):
        return "vector" if self.is_vector else _kind(self.mnemonic)[0]

    @cached_property
    def name(self):
        """Return the mnemonic without width, condition and S."""
        return self.mnemonic.split(".")[0] if self.is_vector else _kind(self.mnemonic)[1]

    @property
    def sets_flags(self):
        return self.kind == "compare" or not self.is_vector and _kind(self.mnemonic)[2]

    @property
    def is_conditional(self):
        return not self.is_vector and _kind(self.mnemonic)[3]

    @cached_property
    def listed(self):
        """Return the registers of a list, in words: {r0, d1} has three."""
        inside = re.search(r"\{(.*)\}", self.operands)
        return registers(inside[1]) if inside else ()

    @property
    def writes_pc(self):
        return self.kind == "loads" and "pc" in self.listed \
            or self.kind in ("load", "move", "add") and self.parts[0] == "pc"

    @property
    def is_branch(self):
        return self.kind in ("branch", "loop") or self.writes_pc

    @property
    def is_indirect(self):
        """Return True for a branch whose target lies in a register or in memory."""
        return self.writes_pc or self.name in ("bx", "blx", "tbb", "tbh")

    @cached_property
    def address_registers(self):
        inside = re.search(r"\[(.*)\]", self.operands)
        if inside and self.name not in ("vmov", "vdup"):
            return registers(inside[1])
        if self.name in STACK:
            return ("sp",)
        return registers(self.parts[0]) if self.listed else ()

    @cached_property
    def updated(self):
        """Return the base register if the access moves it, or ()."""
        moves = re.search(r"\]!|\], ?#|\w!", self.operands) or self.name in STACK
        return self.address_registers[:1] if moves else ()

    @cached_property
    def results(self):
        if self.name == "bl" or self.kind == "loop":
            return ("lr",)
        if self.kind in WITHOUT_RESULT or re.match(r"vcmp|vp[st]|vctp", self.name) \
                or self.is_vector and re.match(r"vstr|vst[24]", self.name):
            return ()
        if self.listed:
            return self.listed
        return registers(", ".join(self.parts[:self._width]))

    @property
    def _width(self):
        """Return the number of operands that are results, for an instruction with results."""
        if self.name == "vmov" and len(self.parts) > 2:
            return 1 if self.parts[0].startswith("d") else 2
        return 2 if LONG.fullmatch(self.name) or self.is_vector and LONG_SUM.fullmatch(self.name) else 1

    @cached_property
    def is_into(self):
        """Return True if the result depends on the previous value of its register."""
        two = len(self.parts) == 2 and self.kind in ("add", "logic", "shift", "product")
        lane = self.is_vector and re.match(r"q\d\[", self.operands)
        return bool(two or lane or INTO.fullmatch(self.name))

    @cached_property
    def stored(self):
        if self.kind in STORING or self.is_vector and re.match(r"vstr|vst[24]", self.name):
            if self.listed:
                return self.listed
            return registers(", ".join(part for part in self.parts if "[" not in part))
        return ()

    @cached_property
    def shifted(self):
        """Return the operand of a combined shift or of an extraction."""
        if len(self.parts) > 2 and SHIFT.match(self.parts[-1]) and self.kind not in ("load", "store"):
            return registers(self.parts[-2])
        if self.kind == "packed" and re.match(r"[su]xta|pkh", self.name):
            return registers(self.parts[-1])
        return ()

    @cached_property
    def added(self):
        """Return the register that a product is added to."""
        if ADDING.fullmatch(self.name):
            return registers(self.parts[-1])
        adds = self.kind in ("product", "float fused", "vector") and self.name != "mul"
        return self.results if self.is_into and adds else ()

    @cached_property
    def sources(self):
        """Return the other registers that the instruction reads."""
        if self.stored or self.kind in LOADING or self.is_vector and self.address_registers:
            return ()
        if self.kind == "loop" or self.name == "bl":
            return ()
        parts = self.parts[self._width if self.results else 0:]
        if ADDING.fullmatch(self.name):
            parts.pop()
        found = [one for one in registers(", ".join(parts)) if one not in self.shifted]
        if self.is_into and not self.added:
            found += self.results
        if self.is_conditional and self.kind != "branch" or READS_FLAGS.fullmatch(self.name):
            found.append(FLAGS)
        return tuple(found)


def disassemble(firmware, core):
    """Return {address: Instruction} of a firmware."""
    command = [OBJDUMP, "-d", *ARCHITECTURES.get(core, []), firmware]
    listing = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return read_listing(listing.splitlines())


def read_listing(lines):
    found = {}
    for line in lines:
        match = LISTED.match(line)
        if match:
            address, code, mnemonic, operands = match.groups()
            found[int(address, 16)] = Instruction(mnemonic, (operands or "").strip(), int(address, 16),
                                                  2 * len(code.split()))
    return found
