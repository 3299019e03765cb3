"""Run single operators on an emulated board and on the twin, many cases in one boot.

Arguments of a case are those of kernel_call.call.

    cases = [Case("cortex_m::quantized_add.out", x, 0, 1 << 30, 0, ..., out), ...]
    for case, result in zip(cases, call_on_board("mps2-an386", cases)):
        result.outputs, result.instructions, result.stack, result.scratch            # numpy, ints
        assert not result.difference(case.on_twin("mps2-an386"))

`assert_same(board, cases)` asserts this for all of them. A Tensor's `shift` makes its data unaligned,
`last` puts it at the end of readable memory; Case(..., pack_weights=True) lets checks pack weights. An
error is a result, too: `error` (name), `reason`, `stage` (check or run). Both targets check guard bytes
around tensors and behind the scratch memory. A fault on the board raises an error with the case. The
program is tests/on_board/operators, which is built when it is out of date (a few seconds per board), or
in a shell by: make operators BOARD=mps2-an386. Instructions are those of pt_execute, exact, from one
run.
"""

import dataclasses
import functools
import struct
import subprocess
from pathlib import Path

import numpy as np
from _picotorch import CORES
from picotorch import schema
from picotorch.boards.boards import load_board
from picotorch.firmware import ports, selective
from picotorch.host.operators import OUTPUTS, built_operators, operator_signature
from picotorch.run import emulator
from support import records
from support.kernel_call import AT_END, GUARD, Call, make_outputs_dynamic

ROOT = Path(__file__).resolve().parents[2]
PROGRAM_DIR = ROOT / "tests" / "on_board" / "operators"
BOARDS = ("mps2-an385-m0plus", "mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547")
ALIGNMENT = 128
FILL = 0xA5
JOB_OVERHEAD = 1024
TIMEOUT = 300.0
PACKED_REF = 24  # offset of pt_method_record.packed
STAGES = ("check", "run")
MAX_SCRATCH = 32768  # bytes with which all kernels are fastest
EXACTLY = 1 << 31  # a flag of the bytes of scratch, as in tests/on_board/operators/main.c
LAST = 128  # in place of a shift: at the end of accessible memory

# The numbers of tests/on_board/operators/main.c.
CASE = struct.Struct("<IIIII")
IMAGE = struct.Struct("<IIII")
RESULT = struct.Struct("<IIIIIIQII216s")


@dataclasses.dataclass
class Result:
    """The result of a case. `memories`: all bytes that a kernel may write, by number. `weights`: packed
    weights, or None on the twin without a board."""

    error: str | None
    stage: str
    reason: str
    scratch: int
    packed: int
    memories: dict
    outputs: list
    weights: bytes | None = None
    instructions: int | None = None
    stack: int | None = None

    def same(self, other):
        return not self.difference(other)

    def difference(self, other):
        """Describe the first difference, or return ""."""
        for name in ("error", "stage", "reason", "scratch", "packed"):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                return f"{name}: {mine!r}, on the other {its!r}"
        if None not in (self.weights, other.weights) and self.weights != other.weights:
            return "packed weights"
        for number, mine in self.memories.items():
            differ = np.flatnonzero(mine != other.memories[number])
            if len(differ):
                at = differ[0]
                return (f"{len(differ)} bytes of memory {number} differ, the first at {at}: "
                        f"{mine[at]}, on the other {other.memories[number][at]}")
        return ""


class Case:
    """One call of an operator, for any number of targets. `pack_weights`: as Method.load's. `given`:
    bytes of scratch on a board, at least the bytes that the check requests; by default all bytes of
    use. `exactly`: bytes of scratch on board and twin, whatever the check requests. `spare`: the
    outputs are dynamic, with stale sizes and bounds that exceed their need by this number of
    elements."""

    def __init__(self, operator, *arguments, pack_weights=False, spare=None, given=None, exactly=None):
        self.operator, self.arguments, self.pack_weights = operator, arguments, pack_weights
        self.given, self.exactly = given, exactly
        assert operator in built_operators(), f"{operator} is not in operators.def"
        signature = operator_signature(built_operators()[operator])
        assert len(signature) == len(arguments), (signature, len(arguments))
        self.call = Call(operator, arguments)
        outputs = [a for a, letter in zip(arguments, signature, strict=True)
                   if letter in OUTPUTS and a is not None]
        self.outputs = [t for a in outputs for t in (a if isinstance(a, list) else [a])]
        if spare is not None:
            make_outputs_dynamic(self.call, signature, arguments, spare)
        self.initial = {number: memory.copy() for number, memory in self.call.memories.items()}
        self.blob, self.twins = self._blob(), {}

    def dynamic(self, spare):
        """Return the same call with dynamic outputs."""
        return Case(self.operator, *self.arguments, spare=spare)

    def __repr__(self):
        return f"{self.operator}({', '.join(map(_shown, self.arguments))})"

    def _blob(self):
        """Return the case in the format that tests/on_board/operators reads."""
        call = self.call
        images = [(records.PROGRAM, call.program, 0)]
        images += [(number, memory.tobytes(), LAST if number == AT_END else call.shift(number))
                   for number, memory in call.memories.items()]
        call.used = call.used + 7 & ~7
        images.append((records.POOL, call.pool[: call.used], 0))
        rows, body = b"", b""
        start = _aligned(CASE.size + IMAGE.size * len(images))
        for number, data, shift in images:
            rows += IMAGE.pack(number, start + len(body), len(data), shift)
            body += bytes(data).ljust(_aligned(len(data)), b"\0")
        given = MAX_SCRATCH if self.given is None else self.given
        given = given if self.exactly is None else EXACTLY | self.exactly
        head = CASE.pack(start + len(body), call.record, self.pack_weights, given, len(images)) + rows
        return head.ljust(start, b"\0") + body

    def on_twin(self, board=None):
        """Return the Result of the twin, which runs once. If the call packs, it runs once for each
        core, and the result is that for the board's core."""
        core = CORES.get(load_board(board).core, 0) if board and self.pack_weights else None
        if core not in self.twins:
            self.twins[core] = self._run_on_twin(core)
        return self.twins[core]

    def _run_on_twin(self, core):
        call, context = self.call, self.call.context
        for number, memory in call.memories.items():
            memory[:] = self.initial[number]
        context.set_memory(records.POOL, call.pool)
        code, stage, pool = context.check(self.pack_weights, core or 0), "check", call.pool
        scratch = context.scratch_needed()
        call.packed = packed = context.packed_bytes()
        weights = None
        if not code:
            stage = "run"
            pool = call.pool[: call.used] + bytearray([FILL]) * packed
            context.set_memory(records.POOL, pool)
            if packed:
                context.pack(call.used)
            weights = None if core is None else bytes(pool[call.used :])
            used = scratch if self.exactly is None else self.exactly
            memory = bytearray([FILL ^ 0xFF]) * (used + GUARD)
            context.set_scratch(memory, used)
            context.start()
            with call.guarded(memory, pool):
                code = context.execute()
            assert memory[used:] == bytes([FILL ^ 0xFF]) * GUARD, f"{self}: wrote behind scratch"
        self._check_sizes(code, pool)
        reason = context.reason() if code else None
        return self._result(code, stage, reason or "", scratch, packed, call.memories,
                            weights=weights)

    def _result(self, code, stage, reason, scratch, packed, memories, **others):
        """Return the Result, after asserting that only outputs and scratch tensors were written, the
        latter with any bytes."""
        outputs = [self.call.result(t, memories) for t in self.outputs]
        memories = {number: memory.copy() for number, memory in memories.items()}
        for number, start, end in self._scratch():
            memories[number][start:end] = self.initial[number][start:end]
        self._check_unwritten(memories)
        return Result(schema.ERROR_NAMES[code] if code else None, stage, reason, scratch, packed,
                      memories, outputs, **others)

    def _place(self, tensor):
        number, start = self.call.places[id(tensor)]
        return number, start, start + tensor.array.nbytes

    def _scratch(self):
        return [self._place(tensor) for tensor in self.call.order if tensor.scratch]

    def _check_unwritten(self, memories):
        differs = {number: memory != self.initial[number] for number, memory in memories.items()}
        for output in self.outputs:
            number, start, end = self._place(self.call.tensors[id(output)][1])
            differs[number][start:end] = False
        for number, differ in differs.items():
            assert not differ.any(), \
                f"{self}: wrote beside its outputs, at {np.flatnonzero(differ)[0]} of memory {number}"

    def _check_sizes(self, code, pool):
        """Assert that dynamic outputs have the right sizes."""
        for tensor in self.outputs:
            if id(tensor) in self.call.dynamic and not code:
                wanted = self.call.tensors[id(tensor)][1].array.shape
                assert self.call.sizes(tensor, pool) == wanted, f"{self}: other sizes"

    def _written_once(self, pool):
        """Return the pool without its reference to packed weights, and without the sizes that
        change."""
        pool = self.call.without_sizes(pool)
        pool[PACKED_REF : PACKED_REF + 4] = bytes(4)
        pool[self.call.record + 3] = 0  # the kind of the instruction, which the check sets
        return pool

    def from_board(self, data):
        """Return the result in a file that the board wrote."""
        code, stage, _, scratch, stack, used, instructions, packed, given, reason = \
            RESULT.unpack_from(data)
        at, memories = RESULT.size, {}
        for number, memory in self.call.memories.items():
            if number == AT_END:
                memories[number] = self.initial[number]  # an input
                continue
            at = _aligned(at) + self.call.shift(number)
            memories[number] = np.frombuffer(data, np.uint8, len(memory), at)
            at += len(memory)
        at = _aligned(at)
        pool, weights = data[at:][: self.call.used], data[at + self.call.used :][:packed]
        self._check_sizes(code, pool)
        assert self._written_once(pool) == self._written_once(self.call.pool[: self.call.used]), \
            f"{self}: wrote into the pool"
        if STAGES[stage] == "run":
            assert data[used + given :] == bytes([FILL]) * GUARD, f"{self}: wrote behind scratch"
        return self._result(code, STAGES[stage], reason.rstrip(b"\0").decode(), scratch, packed,
                            memories, weights=weights if STAGES[stage] == "run" else None,
                            instructions=instructions, stack=stack)


def _aligned(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def _shown(argument):
    array = getattr(argument, "array", argument)
    if not isinstance(array, np.ndarray):
        return repr(argument)
    text = f"{array.dtype}{list(array.shape)}"
    text += f"+{argument.shift}" if getattr(argument, "shift", 0) else ""
    return text + (" at the end" if getattr(argument, "last", False) else "")


@functools.cache
def build(board):
    """Return the path of the board's program, after bringing it up to date."""
    folder = ROOT / "build" / "operators" / board
    with selective.locked(folder):
        done = subprocess.run(["make", "-s", "-j2", "-C", PROGRAM_DIR, f"BOARD={board}"], text=True,
                              capture_output=True, env=ports.environment())
    assert done.returncode == 0, f"the operators of {board} do not build:\n{done.stderr}"
    return folder / "firmware.elf"


def call_on_board(name, cases):
    """Return the Results of the cases, in their order."""
    results, board = [], load_board(name)
    while len(results) < len(cases):
        some, size = [], 0
        for case in cases[len(results) :]:
            size += len(case.blob)
            if some and size + JOB_OVERHEAD > board.job.size:
                break
            some.append(case)
        results += _boot(board, some)
    return results


def _boot(board, cases):
    job = {"cases": b"".join(case.blob for case in cases)}
    ended = emulator.run(board, build(board.name), job, timeout=TIMEOUT)
    if ended.status:
        stopped = len(ended.files)
        case = cases[stopped] if stopped < len(cases) else "no case"
        raise AssertionError("\n".join([f"{board.name} stopped in case {stopped}: {case}",
                                        *ended.lines]))
    return [case.from_board(ended.files[f"{i:04}"]) for i, case in enumerate(cases)]


def assert_same(board, cases):
    """Assert that every case has the same result on the board and on the twin."""
    differences = []
    for i, (case, result) in enumerate(zip(cases, call_on_board(board, cases), strict=True)):
        difference = result.difference(case.on_twin(board))
        if difference:
            differences.append(f"case {i} on {board}, {case}: {difference}")
    assert not differences, f"{len(differences)} of {len(cases)} differ\n" + "\n".join(differences[:10])
