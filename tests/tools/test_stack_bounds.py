"""Test the bounds of tools/stack_bounds.py: of small programs, and of the firmware of each board."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from picotorch.boards.boards import load_board
from picotorch.host.operators import supported_operators
from picotorch.measure import stack
from picotorch.measure.stack import execute_bound, read_bounds
from picotorch.run import emulator
from support.targets import BOARDS, ROOT
from support.tool import load_tool

stack_bounds = load_tool("stack_bounds")

OBJDUMP = "arm-none-eabi-objdump"
CORES = ("cortex-m0plus", "cortex-m4", "cortex-m55")
every_core = pytest.mark.parametrize("core", CORES)
every_board = pytest.mark.parametrize("board", BOARDS)

CALLS = """
void use(void *);
__attribute__((noipa)) void use(void *p) { *(volatile char *)p = 0; }
__attribute__((noipa)) static int small(int x) { char a[40]; use(a); return a[3] + x; }
__attribute__((noipa)) static int large(int x) { char a[4000]; use(a); return a[3] + x; }
"""
DIRECT = CALLS + "int root(int x) { char a[200]; use(a); return small(a[1] + x) + large(x) + 1; }"
POINTER = CALLS + """
__attribute__((noipa)) static int walk(int (*f)(int)) { char a[300]; use(a); return f(a[1]) + 1; }
static int (*const table[])(int) = {small, large};
int root(int x) { return walk(table[x & 1]) + 1; }
"""
ASSEMBLER = """
int root(int x) { __asm volatile("sub sp, #96\\n add sp, #96" ::: "memory"); return x + 1; }
"""
ALIGNED = """
int root(int x) {
    __asm volatile("mov r3, sp\\n sub r1, r3, #128\\n bic r1, r1, #63\\n mov sp, r1\\n"
                   "str r3, [sp, #120]\\n ldr r0, [sp, #120]\\n mov sp, r0\\n"
                   ::: "r0", "r1", "r3", "memory");
    return x + 1;
}
"""
RECURSION = CALLS + """
int other(int x);
__attribute__((noipa)) int root(int x) { char a[8]; use(a); return x ? other(x - 1) + a[0] : 1; }
__attribute__((noipa)) int other(int x) { char a[8]; use(a); return root(x) + a[0]; }
"""
FAR = "int root(int x) { volatile int a; while (x) { x--;" + 1500 * " a = x;" + " } return a; }"
DYNAMIC = CALLS + "int root(int x) { char a[x]; use(a); return a[x / 2]; }"


def program_of(folder, source, core):
    """Link a program. Return it, and {function: bytes} from the compiler."""
    (folder / "one.c").write_text(source + "\nint main(void) { return root(3); }\n")
    subprocess.run(["arm-none-eabi-gcc", f"-mcpu={core}", "-mthumb", "-O2", "-ffunction-sections",
                    "-fstack-usage", "-nostdlib", "-Wl,-e,main", "-Wl,--emit-relocs", "one.c", "-o",
                    "one.elf"], cwd=folder, check=True)
    (usage,) = folder.glob("*.su")
    rows = [line.split("\t") for line in usage.read_text().splitlines()]
    return (stack_bounds.Program(folder / "one.elf", OBJDUMP),
            {place.rsplit(":", 1)[1]: int(size) for place, size, _ in rows})


def bound(program):
    return program.bound(program.named("root"))


@every_core
def test_calls_add_up_along_the_deepest_path(tmp_path, core):
    program, frames = program_of(tmp_path, DIRECT, core)
    assert bound(program) == frames["root"] + frames["large"] + frames["use"]
    assert bound(program) > 4200


@every_core
def test_a_call_through_a_pointer_may_lead_to_all_that_are_pointed_at(tmp_path, core):
    program, frames = program_of(tmp_path, POINTER, core)
    assert bound(program) == frames["root"] + frames["walk"] + frames["large"] + frames["use"]


@every_core
def test_inline_assembler_counts(tmp_path, core):
    program, frames = program_of(tmp_path, ASSEMBLER, core)
    assert bound(program) == frames["root"] + 96


def test_a_stack_pointer_that_is_rounded_down_counts(tmp_path):
    program, frames = program_of(tmp_path, ALIGNED, "cortex-m55")
    assert bound(program) == frames["root"] + 128 + 63


@every_core
def test_recursion_is_found(tmp_path, core):
    program, _ = program_of(tmp_path, RECURSION, core)
    (cycle,) = program.cycles([program.named("root")])
    assert [program.functions[at].name for at in cycle] == ["root", "other"]


def test_a_far_jump_is_no_recursion(tmp_path):
    """On Armv6-M a far jump is a bl into the function."""
    program, frames = program_of(tmp_path, FAR, "cortex-m0plus")
    listing = subprocess.run([OBJDUMP, "-d", tmp_path / "one.elf"], text=True,
                             stdout=subprocess.PIPE).stdout
    assert re.search(r"\tbl\t.*<root\+", listing)
    assert not program.cycles([program.named("root")])
    assert bound(program) == frames["root"]


@every_core
def test_a_frame_of_variable_size_is_rejected(tmp_path, core):
    program, _ = program_of(tmp_path, DYNAMIC, core)
    with pytest.raises(stack_bounds.BoundError, match="root: its frame is not known"):
        bound(program)


# ---- the firmware: these faults also end its build


def stack_json(board):
    return read_bounds(emulator.firmware_path(load_board(board)))


def module_constant(name):
    """Return a number of port/module/modpicotorch.h."""
    text = (ROOT / "port" / "module" / "modpicotorch.h").read_text()
    return int(re.search(rf"#define {name} (\d+)", text)[1])


@every_board
def test_no_kernel_uses_more_stack_than_execute_requires(board):
    bounds = stack_json(board)
    assert sorted(bounds["kernels"]) == sorted(supported_operators())
    worst = execute_bound(bounds, list(bounds["kernels"]))
    assert module_constant("PT_STACK_BYTES") / 2 < worst <= module_constant("PT_STACK_BYTES")


def test_host_and_module_require_the_same_stack():
    assert stack.FREE == module_constant("PT_STACK_BYTES")


@every_board
def test_load_uses_no_more_stack_than_it_requires(board):
    bounds = stack_json(board)
    worst = bounds["check"] + max(kernel["check"] for kernel in bounds["kernels"].values())
    assert max(worst, bounds["verify"]) <= module_constant("PT_STACK_BYTES")


@every_board
def test_frames_equal_the_compiler_report(board):
    """A frame is larger only if the compiler does not count all of it, or if a function has two
    frames."""
    firmware = emulator.firmware_path(load_board(board))
    functions = [f for f in stack_bounds.Program(firmware, OBJDUMP).functions.values() if f.last]
    unique = {name for name, count in Counter(f.name for f in functions).items() if count == 1}
    frames = {f.name: f.frame for f in functions if f.name in unique}
    stated = compiler_frames(firmware.parent)
    differences = [frames[name] - stated[name] for name in frames.keys() & stated.keys()]
    assert len(differences) > 1000 and min(differences) == 0
    assert sum(difference > 0 for difference in differences) < len(differences) / 50


def compiler_frames(folder: Path):
    """Return {function: bytes} of the functions whose names are in one file only."""
    rows = [line.rsplit("\t", 2) for path in folder.rglob("*.su") for line in open(path)]
    names = Counter(place.split(":", 3)[3] for place, _, _ in rows)
    return {name: int(size) for place, size, kind in rows
            if names[name := place.split(":", 3)[3]] == 1 and kind.strip() == "static"}
