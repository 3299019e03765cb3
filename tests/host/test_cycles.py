"""Cycle estimates: timings of single instructions, and reading the emulator's log."""

import sys
from pathlib import Path

import pytest
from picotorch.host.boards.boards import load_board

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from cycles import Blocks, estimate, weigh  # noqa: E402
from instruction_timings import Instruction, cost  # noqa: E402

LOAD = Instruction("ldr", "r0, [r1, #4]")
TIMINGS = [
    ("cortex-m0plus", "adds", "r0, r0, r1", None, False, 1),
    ("cortex-m0plus", "ldrb", "r0, [r1, r2]", LOAD, False, 2),
    ("cortex-m0plus", "ldm", "r0!, {r1, r2, r3}", None, False, 4),
    ("cortex-m0plus", "pop", "{r4, pc}", None, True, 5),
    ("cortex-m0plus", "bne", "#0x10", None, True, 2),
    ("cortex-m0plus", "bne", "#0x10", None, False, 1),
    ("cortex-m0plus", "bl", "#0x10", None, True, 3),
    ("cortex-m3", "mla", "r0, r1, r2, r0", None, False, 2),
    ("cortex-m4", "mla", "r0, r1, r2, r0", None, False, 1),
    ("cortex-m3", "smlal", "r0, r1, r2, r3", None, False, 5.5),
    ("cortex-m4", "smlal", "r0, r1, r2, r3", None, False, 1),
    ("cortex-m4", "smlad", "r0, r1, r2, r0", None, False, 1),
    ("cortex-m4", "ldm.w", "r0!, {r1, r2, r3, ip}", None, False, 5),
    ("cortex-m4", "ldr.w", "r2, [r3], #4", None, False, 2),
    ("cortex-m4", "ldr.w", "r2, [r3], #4", LOAD, False, 1),
    ("cortex-m4", "ldr.w", "r2, [r0], #4", LOAD, False, 2),
    ("cortex-m4", "strb", "r2, [r0]", None, False, 1),
    ("cortex-m4", "strb", "r2, [r0, r1]", None, False, 2),
    ("cortex-m4", "udiv", "r2, r0, r1", None, False, 7),
    ("cortex-m4", "vfma.f32", "s0, s1, s2", None, False, 3),
    ("cortex-m4", "vldmia", "r0!, {d0, d1}", None, False, 5),
    ("cortex-m4", "bgt", "#0x10", None, True, 3),
    ("cortex-m4", "bgt", "#0x10", None, False, 1),
    ("cortex-m4", "pop", "{r4, r5, pc}", None, True, 6),
]
LOG = """\
IN: pt_counter_start
0x00000100:  4770       bx       lr
Trace 0: 0x7f01 [0/00000100/00000110/ff020200] pt_counter_start
Trace 0: 0x7f01 [0/00000100/00000110/ff020200] pt_counter_start
Trace 0: 0x7f01 [0/00000100/00000110/ff020200] pt_counter_start
Trace 0: 0x7f01 [0/00000100/00000110/ff020200] pt_counter_start
Trace 0: 0x7f01 [0/00000100/00000110/ff020200] pt_counter_start
Trace 0: 0x7f01 [0/00000100/00000110/ff020200] pt_counter_start
IN: loop
0x00000200:  6808       ldr      r0, [r1]
0x00000202:  f8d2 3004  ldr.w    r3, [r2, #4]
0x00000206:  d1fb       bne      #0x200
Trace 0: 0x7f02 [0/00000200/00000110/ff020200] loop
Trace 0: 0x7f02 [0/00000200/00000110/ff020200] loop
Trace 0: 0x7f02 [0/00000200/00000110/ff020200] loop
Stopped execution of TB chain before 0x7f02 [00000200] loop
Trace 0: 0x7f02 [0/00000200/00000110/ff020200] loop
IN: pt_counter_stop
0x00000208:  4770       bx       lr
Trace 0: 0x7f03 [0/00000208/00000110/ff020200] pt_counter_stop
Trace 0: 0x7f02 [0/00000200/00000110/ff020200] loop
"""


@pytest.mark.parametrize(("core", "mnemonic", "operands", "before", "taken", "usual"), TIMINGS)
def test_usual_cycles(core, mnemonic, operands, before, taken, usual):
    least, found, most = cost(core, Instruction(mnemonic, operands), before, taken)
    assert least <= found <= most
    assert found == usual


def test_blocks_are_counted_from_the_fifth_start_to_the_stop():
    blocks = Blocks()
    blocks.read(LOG.splitlines(True))
    functions = weigh("cortex-m4", blocks)
    assert functions["pt_counter_start"][0] == 1
    # three times: two branches taken, one not; the block that the log says was not run is left out
    assert functions["loop"][0] == 9
    assert functions["loop"][2] == 3 * (2 + 1 + 1) + 2 * 2
    assert "pt_counter_stop" not in functions


def test_what_is_traced_is_what_the_board_counts():
    entry = estimate("add_1", load_board("mps2-an386"), "none")  # raises where the two differ
    assert 0 < entry["instructions"] <= entry["least"] <= entry["cycles"] <= entry["most"]
