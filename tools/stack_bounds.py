#!/usr/bin/env python3
"""Bound the stack usage of the C code of a firmware, from its instructions.

It prints JSON, in bytes from MicroPython's interpreter to the deepest point:

    {"execute", "check": without what they call through pointers, "called_back", "verify",
     "kernels": {operator: {"check", "run"}}}

The bound of a method is that of execute plus the maximum of its calls: check and run of its kernels.
The check counts, because a call whose sizes change is checked again when it runs. The bound excludes
the functions that MicroPython calls for a delegate.

The linked code counts: the frame of a function is the sum of all bytes that its instructions take from
the stack pointer, also in inline assembler and libgcc. Calls are branches to another function. A call
through a pointer may lead to any function whose address can be reached from the kernel, but not to one
that is running. Recursion is rejected, with exit status 1, except in the functions of ROUNDS and
VERIFIER.

Example: tools/stack_bounds.py build/firmware/mps2-an386-run/firmware.elf
"""

import argparse
import json
import re
import runpy
import struct
import subprocess
import sys
import tomllib
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPERATORS = ROOT / "kernels" / "core" / "registry" / "operators.def"
READER = runpy.run_path(ROOT / "host" / "picotorch" / "host" / "operator_list.py")
SCHEMAS = [ROOT / "schema" / name for name in ("program.toml", "flat_tensor.toml")]
# Calls of MicroPython's interpreter on the way to a function of the module, and argument words.
INTERPRETER = ("mp_call_function_n_kw", "bound_meth_call", "mp_call_method_self_n_kw",
               "fun_builtin_1_call")
ARGUMENTS = 32
CALLED_BACK = ("mp_method_poll", "ticks")  # functions of the module that the executor calls
POLLS = "pt_poll_now"  # kernels call this function; through a pointer it only calls the module's poll
FRAME_POINTER = "r7"  # a move from this register restores the stack pointer
# Functions that call one another, with the maximum of nested calls of each. Nested calls do not call
# back; they depend on the dtype of the element or the kind of the argument. The verifier's functions
# nest once more for each table inside a table of the schema.
ROUNDS = {"pt_load_int": 1, "pt_load_float": 1, "pt_store_int": 1, "pt_store_float": 1,
          "pt_store_double": 1, "pt_has_kind": 2, "items_are": 1}
VERIFIER = ("verify_table", "verify_tables", "verify_field", "verify_present")
CORE = ("pt_execute", "pt_step", "pt_check_method", "pt_pack_weights", "pt_place_unplanned")

_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_INSTRUCTION = re.compile(r"^ *([0-9a-f]+):\t(\S+)(?:\t(.*))?$")
# but not of a branch future, as objdump prints the loops of MVE
_BRANCH = re.compile(r"(?!bf)b|cbn?z")
_TARGET = re.compile(r"\b([0-9a-f]+) <")
_LITERAL = re.compile(r"(\w+), \[pc, #\d+\].*\(([0-9a-f]+) <")
_PUSH = re.compile(r"v?(?:push|stmdb)")
_SUBTRACT = re.compile(r"sp, (?:sp, |r7, )?#(\d+)")
_STORE = re.compile(r"\[sp, #-(\d+)\]!")
_PROGBITS, _SYMTAB, _REL = 1, 2, 9
_ALLOC = 2
_OBJECT = 1
_ABS32 = 2
_REGISTER_BYTES = {"d": 8, "q": 16}


class BoundError(Exception):
    """There is no bound; the message names the functions."""


@dataclass
class Function:
    """A function of the firmware, with the size of its stack frame."""

    name: str
    start: int
    frame: int = 0  # bytes
    is_dynamic: bool = False  # the frame depends on values at run time
    calls_pointer: bool = False
    calls: set[int] = field(default_factory=set)  # start addresses of functions
    jumps: set[int] = field(default_factory=set)  # start addresses of functions that it ends by calling
    words: list[int] = field(default_factory=list)  # addresses among its literals
    literals: dict[str, int] = field(default_factory=dict)  # place of the last literal of a register
    below: dict[str, int] = field(default_factory=dict)  # of registers: bytes below the stack pointer
    last: str = ""


class ElfFile:
    """Symbols and bytes of an ELF file."""

    def __init__(self, path: Path):
        self.data = path.read_bytes()
        header = struct.unpack_from("<16sHHIIIIIHHHHHH", self.data)
        self.sections = [struct.unpack_from("<IIIIIIIIII", self.data, header[6] + i * header[11])
                         for i in range(header[12])]
        self.symbols = {}  # name: (address, size)
        self.objects = []  # (address, size), sorted
        table = next(s for s in self.sections if s[1] == _SYMTAB)
        names = self.sections[table[6]][4]
        for at in range(table[4], table[4] + table[5], 16):
            name, value, size, info = struct.unpack_from("<IIIB", self.data, at)
            end = self.data.index(b"\0", names + name)
            self.symbols.setdefault(self.data[names + name : end].decode(), (value, size))
            if info & 0xF == _OBJECT and size:
                self.objects.append((value, size))
        self.objects.sort()
        self.pointers = {address for section in self.sections
                         if section[1] == _REL and self.sections[section[7]][2] & _ALLOC
                         for address, info in struct.iter_unpack("<II", self._bytes(section))
                         if info & 0xFF == _ABS32}  # addresses of the words that are addresses

    def _bytes(self, section):
        return self.data[section[4] : section[4] + section[5]]

    def word(self, address: int) -> int:
        """Return the word at an address, or 0 if the file has none."""
        for _, kind, _, start, offset, size, *_ in self.sections:
            if kind == _PROGBITS and start <= address and address + 4 <= start + size:
                return struct.unpack_from("<I", self.data, offset + address - start)[0]
        return 0

    def object_at(self, address: int) -> tuple[int, int] | None:
        """Return (address, size) of the object that contains an address."""
        i = bisect_right(self.objects, (address, 1 << 32)) - 1
        if i >= 0 and address < sum(self.objects[i]):
            return self.objects[i]
        return None


class Program:
    """The functions of a firmware and their calls."""

    def __init__(self, path: Path, objdump: str):
        self.image = ElfFile(path)
        self.rounds = ROUNDS | dict.fromkeys(VERIFIER, schema_depth())
        self.functions = {}
        listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        self._read(listing)
        self.starts = sorted(self.functions)
        for function in self.functions.values():
            self._resolve(function)

    def _read(self, listing):
        function = None
        objects = {start for start, _ in self.image.objects}  # objdump lists some objects as code
        for line in listing.splitlines():
            if match := _FUNCTION.match(line):
                start = int(match[1], 16)
                function = None if start in objects else self.functions.setdefault(
                    start, Function(match[2], start))
            elif (match := _INSTRUCTION.match(line)) and function is not None:
                self._add(function, int(match[1], 16), match[2], match[3] or "")

    def _add(self, function, address, name, operands):
        """Count one instruction of a function."""
        if name == ".word":
            if address in self.image.pointers:
                function.words.append(int(operands.split()[0], 16))
            return
        if not name.startswith("nop"):
            function.last = f"{name} {operands}"
        self._add_taken(function, name, operands)
        self._follow(function, name, operands)
        register = re.split("[;@]", operands)[0].strip()
        if name == "blx" or (name == "bx" and register != "lr"):
            function.calls_pointer = True
        elif _BRANCH.match(name) and (match := _TARGET.search(operands)):
            (function.calls if name == "bl" else function.jumps).add(int(match[1], 16))

    def _add_taken(self, function, name, operands):
        """Count the bytes that an instruction subtracts from the stack pointer."""
        if name.startswith("ldr") and (match := _LITERAL.match(operands)):
            function.literals[match[1]] = int(match[2], 16)
        elif _PUSH.match(name) and ("push" in name or operands.startswith("sp!")):
            function.frame += _register_bytes(operands[operands.index("{") + 1 : operands.index("}")])
        elif match := _STORE.search(operands):
            function.frame += int(match[1])
        elif name.startswith("sub") and operands.startswith("sp,"):
            match = _SUBTRACT.match(operands)
            function.frame += int(match[1]) if match else 0
            function.is_dynamic |= not match
        elif name.startswith("mov") and operands.startswith("sp, "):
            below = 0 if operands[4:] == FRAME_POINTER else function.below.get(operands[4:])
            function.frame += below or 0
            function.is_dynamic |= below is None
        elif name == "add" and (match := re.match(r"sp, (\w+)$", operands)):
            value = self.image.word(function.literals.get(match[1], 0))
            function.frame += (1 << 32) - value if value >> 31 else 0  # in Thumb-1: add sp, -4096

    def _follow(self, function, name, operands):
        """Record which registers are copies of the stack pointer, some bytes less or rounded down."""
        to, *values = re.split(r"[;@]", operands)[0].replace(" ", "").split(",")
        offsets = {"sp": 0} | function.below
        below = offsets.get(values[0]) if values else None
        if name.startswith("mov") and len(values) == 1:
            pass
        elif name.startswith(("sub", "bic")) and len(values) == 2 and values[1].startswith("#"):
            below = None if below is None else below + int(values[1][1:])
        elif name.startswith("ldr") and operands.split(", ", 1)[-1].startswith("[sp"):
            below = 0  # the register was stored in the frame
        else:
            below = None
        function.below.pop(to, None)
        if below is not None and to != "sp":
            function.below[to] = below

    def _resolve(self, function):
        """Map addresses to functions.

        A function of libgcc without an end continues with the next function. In Thumb-1, a bl into the
        function itself is a jump whose target is too far for b.
        """
        function.calls = {self.function_at(a) for a in function.calls
                          if a == function.start or self.function_at(a) != function.start}
        function.jumps = {self.function_at(a) for a in function.jumps} - {function.start}
        ends = re.match(r"(b|b\.n|b\.w|bx|bl|blx|udf|mov) |pop.*pc|ldm.*pc|ldr\S* pc", function.last)
        following = bisect_right(self.starts, function.start)
        if function.last and not ends and following < len(self.starts):
            function.jumps.add(self.starts[following])

    def function_at(self, address):
        """Return the function that contains an address."""
        return self.starts[bisect_right(self.starts, address) - 1]

    def named(self, name):
        """Return the function with this name."""
        return self.function_at(self.image.symbols[name][0] & ~1)

    @cached_property
    def _kernels(self):
        """Return the addresses of the records of kernels, which lead to other operators' functions."""
        return {address for records in kernel_records(self.image).values() for address in records}

    @cached_property
    def _polls(self):
        """Return the module's poll, if it is linked."""
        return {f.start for f in self.functions.values() if f.name == CALLED_BACK[0] and f.last}

    def pointed_at(self, roots):
        """Return the functions whose address can be reached from these functions."""
        found, seen, waiting = set(), set(), list(roots)
        while waiting:
            at = waiting.pop()
            if at in seen or at in self._kernels:
                continue
            seen.add(at)
            function = self.functions.get(at)
            if function and function.last:
                waiting += function.calls | function.jumps
                words = function.words
            else:
                words = self._words_of(at)
            for word in words:
                start = word & ~1
                if word & 1 and start in self.functions and self.functions[start].last:
                    found.add(start)
                    waiting.append(start)
                elif thing := self.image.object_at(word):
                    waiting.append(thing[0])
        return found

    def _words_of(self, at):
        thing = self.image.object_at(at)
        return [self.image.word(a) for a in range(at, sum(thing) - 3, 4)
                if a in self.image.pointers] if thing else []

    def bound(self, root):
        """Return the bytes from the entry of a function to the deepest point of its calls."""
        pointed = self.pointed_at([root])
        results = {}

        def depth(at, running):
            """Return the bytes, and True if they do not depend on the running functions."""
            if at in results:
                return results[at], True
            function = self.functions[at]
            if function.is_dynamic:
                raise BoundError(f"{function.name}: its frame is not known before it runs")
            callees = function.calls | function.jumps
            frame = function.frame * self.rounds.get(function.name, 1)
            deepest, free = 0, True
            if function.calls_pointer:
                callees = callees | (self._polls if function.name == POLLS else pointed)
            for callee in callees:
                if callee in running:
                    free = False
                    continue
                below, is_free = depth(callee, running | {callee})
                deepest, free = max(deepest, below), free and is_free
            if free:
                results[at] = frame + deepest
            return frame + deepest, free

        return depth(root, frozenset([root]))[0]

    def cycles(self, roots):
        """Return the cycles among direct calls from these functions, a list of functions each."""
        path, done, found = [], set(), []

        def visit(at):
            path.append(at)
            for callee in self.functions[at].calls:
                if callee in path:
                    found.append(path[path.index(callee):])
                elif callee not in done:
                    visit(callee)
            done.add(path.pop())

        for root in roots:
            if root not in done:
                visit(root)
        return found


def _register_bytes(registers):
    """Return the bytes of a list of registers such as "r4, r5, lr" or "d8-d11"."""
    total = 0
    for part in registers.split(","):
        first, _, last = part.strip().partition("-")
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        total += count * _REGISTER_BYTES.get(first[0], 4)
    return total


def kernel_records(image):
    """Return {operator: (address of its kernel, of the kernel it replaces)} of linked operators."""
    operators, _ = READER["read_operators"](OPERATORS.read_text())
    found = {one.name: [image.symbols[f"pt_{symbol}"] for symbol in (*one.others.values(), one.symbol)
                        if f"pt_{symbol}" in image.symbols] for one in operators}
    return {name: [address for address, _ in records] for name, records in found.items() if records}


def kernel_functions(program):
    """Return {operator: [(check, run)]} of linked operators, then of the kernels that these call."""
    found = {}
    for name, (record, *others) in kernel_records(program.image).items():
        found[name] = [_functions_of(program, record)]
        words = program.functions[found[name][0][1]].words
        found[name] += [_functions_of(program, other) for other in others
                        if any(other <= word < other + 8 for word in words)]
    return found


def _functions_of(program, record):
    return tuple(program.function_at(program.image.word(record + i)) for i in (0, 4))


def kernel_bound(program, functions):
    """Return the bound of a kernel's function, which may end with a call of the function behind it."""
    own, *others = functions
    frame = program.functions[own].frame
    return max([program.bound(own), *(frame + program.bound(other) for other in others)])


def schema_depth():
    """Return the deepest nesting of tables in a file. Raises BoundError if it is unbounded."""
    depth = 0
    for path in SCHEMAS:
        schema = tomllib.loads(path.read_text())
        depth = max(depth, _table_depth(schema, schema["root"], ()))
    return depth


def _table_depth(schema, table, outer):
    if table in outer:
        raise BoundError(f"{table}: lies in itself")
    inner = []
    for _, kind in schema["table"][table]:
        kind = kind.strip("[]")
        members = schema["enum"][kind[6:]] if kind.startswith("union ") else [kind]
        inner += [member for member in members if member in schema["table"]]
    return 1 + max((_table_depth(schema, member, (*outer, table)) for member in inner), default=0)


def check_recursion(program, kernels):
    """Raise BoundError for recursion, in kernels and core, without a bound."""
    core = [program.named(name) for name in (*CORE, "pt_verify")]
    functions = (f for pairs in kernels.values() for pair in pairs for f in pair)
    for cycle in program.cycles([*core, *functions]):
        names = [program.functions[at].name for at in cycle]
        if not all(name in program.rounds for name in names):
            raise BoundError(f"recursion: {' calls '.join([*names, names[0]])}")


def bounds(program):
    """Return the bounds of a program in bytes, in the format of the JSON."""
    kernels = kernel_functions(program)
    check_recursion(program, kernels)

    def frames(*names):
        return sum(program.functions[program.named(name)].frame for name in names
                   if name in program.image.symbols)

    call = frames(*INTERPRETER) + ARGUMENTS
    called_back = [f.start for f in program.functions.values() if f.name in CALLED_BACK and f.last]
    return {
        "execute": call + frames("method_execute", "mp_method_run")
        + max(program.bound(program.named(name)) for name in ("pt_execute", "pt_step")),
        "called_back": max(map(program.bound, called_back)),
        "check": call + frames("method_load", "pt_load") + max(
            program.bound(program.named("pt_check_method")),
            program.bound(program.named("pt_pack_weights")),
            frames("write_records") + program.bound(program.named("pt_place_unplanned"))),
        "verify": call + frames("program_open", "pt_program_open")
        + program.bound(program.named("pt_verify")),
        "kernels": {name: dict(zip(("check", "run"), (kernel_bound(program, functions)
                                                      for functions in zip(*pairs, strict=True)),
                                   strict=True)) for name, pairs in kernels.items()},
    }


def main():
    description, example = __doc__.split("\n\nExample")
    parser = argparse.ArgumentParser(description=description, epilog="Example" + example,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firmware", type=Path)
    parser.add_argument("--objdump", default="arm-none-eabi-objdump")
    arguments = parser.parse_args()
    program = Program(arguments.firmware, arguments.objdump)
    try:
        print(json.dumps(bounds(program), indent=1))
    except BoundError as error:
        sys.exit(f"stack_bounds: {error}")


if __name__ == "__main__":
    main()
