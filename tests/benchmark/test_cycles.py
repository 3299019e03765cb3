"""Test the cycle estimates: tables and pipelines with sequences computed by hand, and the emulator's
log."""

import pytest
from benchmark import bench_forms
from benchmark.bench import DENSE, request
from benchmark.cycles import (
    BOARDS,
    SPARSE,
    Blocks,
    Predictor,
    estimate,
    request_in,
    total,
    trace,
    weigh,
    weigh_counts,
)
from benchmark.disassembly import Instruction, UnknownInstruction, read_listing
from benchmark.instruction_timings import Timings
from benchmark.performance import FLOAT_MODELS
from benchmark.pipelines import Pipelines
from picotorch.boards.boards import load_board
from picotorch.measure import cycles as cycles_of_size
from picotorch.run import running
from support import benchmark_store

pytestmark = pytest.mark.thorough


def code(text):
    """Return the instructions of a text such as "adds.n r0, r0, r1; ldr r2, [r0]". An instruction with
    .n has two bytes, any other has four."""
    lines = [one.strip().partition(" ") for one in text.split(";")]
    return tuple(Instruction(mnemonic, operands, size=2 if mnemonic.endswith(".n") else 4)
                 for mnemonic, _, operands in lines)


def cycles(core, text, taken=False, mispredicted=False):
    """Return the (minimum, usual, maximum) cycles of a block."""
    model = (Timings if core in ("m0plus", "m3", "m4") else Pipelines)("cortex-" + core)
    return model.run(model.start, code(text), taken, mispredicted)[0]


# ---- tables: the additional cycles of an instruction behind another

LOAD = "ldr r0, [r1, #4]"
TABLES = [
    ("m0plus", "adds r0, r0, r1", "", False, 1),
    ("m0plus", "ldrb r0, [r1, r2]", LOAD, False, 2),
    ("m0plus", "ldmia r0!, {r1, r2, r3}", "", False, 4),
    ("m0plus", "pop {r4, pc}", "", True, 5),
    ("m0plus", "bne.n 10", "", True, 2),
    ("m0plus", "bne.n 10", "", False, 1),
    ("m0plus", "bl 10", "", True, 3),
    ("m3", "mla r0, r1, r2, r0", "", False, 2),
    ("m4", "mla r0, r1, r2, r0", "", False, 1),
    ("m3", "smlal r0, r1, r2, r3", "", False, 7),
    ("m3", "umlal r0, r1, r2, r3", "", False, 6),
    ("m4", "smlal r0, r1, r2, r3", "", False, 1),
    ("m4", "smlad r0, r1, r2, r0", "", False, 1),
    ("m4", "ldmia.w r0!, {r1, r2, r3, ip}", "", False, 5),
    ("m4", "ldrd r0, r1, [r2]", "", False, 3),
    ("m4", "ldr.w r2, [r3], #4", "", False, 2),
    ("m4", "ldr.w r2, [r3], #4", LOAD, False, 1),
    ("m4", "ldr.w r2, [r0], #4", LOAD, False, 2),
    ("m4", "strb r2, [r0]", "", False, 1),
    ("m4", "strb r2, [r0, r1]", "", False, 2),
    ("m4", "udiv r2, r0, r1", "", False, 7),
    ("m4", "vfma.f32 s0, s1, s2", "", False, 3),
    ("m4", "vldmia r0!, {d0, d1}", "", False, 5),
    ("m4", "vldr s0, [r1]", "", False, 2),
    ("m4", "vadd.f32 s0, s1, s2", "vmul.f32 s3, s4, s5", False, 1),
    ("m4", "vadd.f32 s0, s1, s2", "vmul.f32 s1, s4, s5", False, 2),
    ("m4", "vmla.f32 s0, s1, s2", "vmla.f32 s0, s4, s5", False, 4),
    ("m4", "vstr s0, [r1]", "vadd.f32 s0, s1, s2", False, 3),
    ("m4", "vsqrt.f32 s0, s1", "", False, 14),
    ("m4", "vmov r4, s1", "", False, 2),
    ("m4", "vmov s1, r4", "", False, 2),
    ("m4", "vmov.f32 s1, s2", "", False, 1),
    ("m4", "bgt.n 10", "", True, 3),
    ("m4", "bgt.n 10", "", False, 1),
    ("m4", "pop {r4, r5, pc}", "", True, 6),
]


@pytest.mark.parametrize(("core", "one", "before", "taken", "usual"), TABLES)
def test_an_instruction_of_a_table(core, one, before, taken, usual):
    model = Timings("cortex-" + core)
    state = code(before)[0] if before else model.start
    minimum, found, maximum = model.run(state, code(one), taken, False)[0]
    assert minimum <= found <= maximum
    assert found == usual


# ---- pipelines: core, block, taken, usual cycles to its last issue, and behind that if taken

PIPELINES = [
    # M7: two in a cycle
    ("m7", "ldr r5, [r1, #4]; smlad r2, r3, r4, r2", False, 1),
    ("m7", "smlad r2, r3, r4, r2; smlad r6, r3, r5, r6", False, 2),  # there is one multiplier
    ("m7", "smlad r2, r3, r4, r2; nop; smlad r2, r3, r5, r2", False, 2),  # the next sum follows at once
    ("m7", "mul r2, r3, r4; nop; add r5, r2, r6", False, 3),  # other operations wait for a product
    ("m7", "ldr r0, [r2, #0]; ldr r1, [r2, #4]", False, 1),  # an even and an odd word
    ("m7", "ldr r0, [r2, #0]; ldr r1, [r2, #8]", False, 2),  # both words lie in one bank
    ("m7", "ldr r3, [r1]; nop; add r0, r3, r2", False, 2),  # a loaded word is ready in the next cycle
    ("m7", "ldr r3, [r1]; nop; mul r0, r3, r2", False, 3),  # but later for a product
    ("m7", "ldrb r3, [r1]; nop; add r0, r3, r2", False, 3),  # a loaded byte is ready later, too
    ("m7", "ldr r3, [r1]; nop; ldr r0, [r3]", False, 3),  # an address is needed a cycle earlier
    ("m7", "ldr r3, [r1], #4; ldr r0, [r1], #4", False, 2),  # a moved base register is ready at once
    ("m7", "ldr r3, [r1]; str r3, [r2]", False, 1),  # a store accepts its value late
    ("m7", "add r0, r1, r2; eor r3, r0, r4", False, 1),  # the earlier ALU feeds the later
    ("m7", "eor r0, r1, r2; add r3, r0, r4", False, 2),  # the later ALU does not
    ("m7", "str r0, [r1]; str r2, [r3]", False, 2),
    ("m7", "str r0, [r1]; smlad r2, r3, r4, r2", False, 2),
    ("m7", "add r0, r1, r2; sxtb16 r3, r4", False, 2),  # a DSP operation issues only first of two
    ("m7", "sxtb16 r3, r4; add r0, r1, r2", False, 1),
    ("m7", "add r0, r1, r2, lsl #3; add r3, r4, r5, lsl #3", False, 2),  # there is one shifter
    ("m7", "ldmia r0!, {r4, r5, r6, r7}; nop", False, 3),
    ("m7", "ldrd r4, r5, [r0]; smlad r2, r3, r6, r2", False, 2),
    ("m7", "subs r0, r0, #1; bne.n 10", True, 1),  # predicted
    # M33: one instruction in a cycle
    ("m33", "ldr r5, [r1, #4]; smlad r2, r3, r4, r2", False, 2),
    ("m33", "ldr r0, [r1]; add r2, r0, r3", False, 3),  # a loaded value is ready after two cycles
    ("m33", "ldr r0, [r1]; add r4, r5, r6; add r2, r0, r3", False, 3),
    ("m33", "ldr r0, [r1]; str r0, [r2]", False, 2),  # but after one for a store or a sum
    ("m33", "ldr r0, [r1]; mla r2, r3, r4, r0", False, 2),
    ("m33", "mul r0, r1, r2; add r3, r0, r4", False, 3),
    ("m33", "mla r0, r1, r2, r0; mla r0, r3, r4, r0", False, 2),
    ("m33", "add r0, r1, r2, asr #3; add r3, r0, r4", False, 3),
    ("m33", "add r0, r1, r2, lsl #3; add r3, r0, r4", False, 2),
    ("m33", "ldmia r0!, {r4, r5, r6, r7}; add r1, r2, r3", False, 5),
    ("m33", "subs.n r0, #1; bne.n 10", True, 3),  # a pair; the branch waits two cycles for fresh flags
    ("m33", "subs.n r0, #1; bne.n 10", False, 1),
    ("m33", "subs.n r0, #1; add.n r1, r2; bne.n 10", True, 3),  # the branch waits one cycle
    ("m33", "subs.w r0, r0, #1; bne.n 10", True, 3),  # no pair; the flags are a cycle old
    ("m33", "vfma.f32 s0, s1, s2; vadd.f32 s3, s4, s5", False, 4),
    # M55: vector instructions of different units overlap
    ("m55", "vldrw.u32 q0, [r5]; vmlava.s8 r0, q1, q2", False, 2),
    ("m55", "vldrw.u32 q0, [r5]; vldrw.u32 q1, [r5, #16]", False, 3),
    ("m55", "vldrw.u32 q0, [r5]; vmlava.s8 r0, q1, q2; vldrw.u32 q3, [r5]; vmlava.s8 r2, q1, q2",
     False, 4),
    ("m55", "vldrw.u32 q0, [r5]; vldrw.u32 q1, [r6]; vmlava.s8 r0, q2, q3; vmlava.s8 r2, q2, q3",
     False, 6),
    ("m55", "vldrw.u32 q0, [r5]; vmlava.s8 r0, q0, q2", False, 2),  # both overlap beat by beat
    ("m55", "vmul.i32 q0, q1, q2; vadd.i32 q3, q0, q4", False, 3),  # a product is ready a cycle later
    ("m55", "vmul.i32 q0, q1, q2; vstrw.32 q0, [r0]", False, 2),  # but not for a store
    ("m55", "vldrb.u8 q0, [r1, q2]; vldrw.u32 q1, [r5]", False, 17),  # a gather takes a cycle per lane
    ("m55", "vldrw.u32 q0, [r1, q2]; vldrw.u32 q1, [r5]", False, 5),
    ("m55", "ldr r0, [r1]; add r2, r0, r3", False, 3),
    ("m55", "adds.n r0, #1; ldr.n r1, [r2]", False, 1),  # short instructions, one of them light
    ("m55", "adds.n r0, r0, r3; ldr.n r1, [r2]", False, 2),
    ("m55", "vmlava.s8 r0, q1, q2; le lr, 10", True, 1),  # the end of a low-overhead loop is free
]


@pytest.mark.parametrize(("core", "block", "taken", "usual"), PIPELINES)
def test_a_block_in_a_pipeline(core, block, taken, usual):
    minimum, found, maximum = cycles(core, block, taken)
    assert found == usual
    assert minimum <= found <= maximum


def test_an_unmeasured_operator_has_a_range():
    assert cycles("m7", "cmp r0, r1; bne.n 10", True, True) == (1, 7, 9)  # mispredicted
    assert cycles("m7", "ldr r0, [r1]; ldr r2, [r3]")[::2] == (1, 2)  # in one bank, or not
    assert cycles("m33", "bx lr", True) == (2, 3, 4)
    assert cycles("m55", "vldrb.u8 q0, [r1, q2]; vldrw.u32 q1, [r5]") == (3, 17, 33)
    assert cycles("m55", "ldmia r0!, {r4, r5, r6, r7}; nop") == (3, 3, 5)
    assert cycles("m7", "udiv r0, r1, r2; nop") == (4, 8, 13)


def test_loads_that_may_meet_in_a_bank_do_every_second_time():
    pairs = "; ".join(["ldr r0, [r1]; ldr r2, [r3]; strd r4, r5, [r6]"] * 8)
    assert cycles("m7", pairs) == (16, 20, 24)


def test_a_state_goes_from_block_to_block():
    for core, first, second, apart in [("m7", "ldr r0, [r1]", "smlad r2, r3, r4, r2", 2),
                                       ("m33", "ldr r0, [r1]", "add r2, r0, r3", 2),
                                       ("m55", "vldrw.u32 q0, [r5]", "vldrw.u32 q1, [r6]", 2)]:
        model = Pipelines("cortex-" + core)
        one, state = model.run(model.start, code(first), False, False)
        two, _ = model.run(state, code(second), False, False)
        assert one[1] + two[1] == cycles(core, f"{first}; {second}")[1] != apart


def test_a_branch_is_predicted_by_its_history():
    predictor, loop = Predictor(), code("bne.n 10")[0]
    ten = [predictor.is_wrong(loop, taken, 0x10) for taken in [True] * 9 + [False]]
    again = [predictor.is_wrong(loop, taken, 0x10) for taken in [True] * 9 + [False]]
    assert ten == again == [False] * 9 + [True]
    back = code("bx lr")[0]
    assert [predictor.is_wrong(back, True, to) for to in (8, 8, 16, 16)] == [False, False, True, False]


# ---- parsing of a firmware's listing

LISTING = """
00000200 <loop>:
 200:\t6808      \tldr\tr0, [r1, #0]
 202:\tf8d2 3004 \tldr.w\tr3, [r2, #4]
 206:\td1fb      \tbne.n\t200 <loop>
 208:\t4770      \tbx\tlr
 20a:\tbd10      \tpop\t{r4, pc}
 20c:\tf06f 0701 \tmvn.w\tr7, #1\t@ 0x1
 210:\t00000100 \t.word\t0x00000100
00000100 <pt_counter_start>:
 100:\t4770      \tbx\tlr
""".splitlines()
NAMES = [  # text, kind, name, sets flags
    ("movseq.w r0, #0", "move", "mov", True),
    ("muls r0, r1", "product", "mul", True),
    ("mls r0, r1, r2, r3", "product", "mls", False),
    ("movcs r0, #1", "move", "mov", False),
    ("bls.n 10", "branch", "bcond", False),
    ("bl 10", "branch", "bl", False),
    ("bics r0, r1", "logic", "bic", True),
    ("adcs r0, r1", "logic", "adc", True),
    ("lsls r0, r1, #2", "shift", "lsl", True),
    ("ldrbls r0, [r1]", "load", "ldrb", False),
    ("vmovnt.i32 q0, q1", "vector", "vmovnt", False),
    ("vmovlt.f32 s0, s1", "float move", "vmov", False),
]
ACCESSES = [  # text, results, all registers that the instruction reads
    ("add r0, r7", {"r0"}, {"r0", "r7"}),
    ("add.w r0, r4, r5, lsl #2", {"r0"}, {"r4", "r5"}),
    ("smlal fp, r3, ip, r2", {"r11", "r3"}, {"r11", "r3", "r12", "r2"}),
    ("smlad r2, r6, fp, r5", {"r2"}, {"r6", "r11", "r5"}),
    ("ldr r0, [r1, r2, lsl #2]", {"r0"}, {"r1", "r2"}),
    ("strd r8, sl, [sp, #8]", set(), {"r8", "r10", "sp"}),
    ("push {r4, lr}", set(), {"r4", "lr", "sp"}),
    ("vldr d8, [r0, #48]", {"s16", "s17"}, {"r0"}),
    ("vmlava.s8 r0, q0, q1", {"r0"}, {"r0", *(f"s{i}" for i in range(8))}),
    ("vmov r4, r5, d0", {"r4", "r5"}, {"s0", "s1"}),
    ("vmov d0, r4, r5", {"s0", "s1"}, {"r4", "r5"}),
    ("movt r0, #1", {"r0"}, {"r0"}),
    ("adc r0, r1, r2", {"r0"}, {"r1", "r2", "flags"}),
    ("vcmp.f32 s0, s1", set(), {"s0", "s1"}),
    ("vctp.8 r9", set(), {"r9"}),
]


def test_a_listing_is_read():
    found = read_listing(LISTING)
    assert found[0x202] == Instruction("ldr.w", "r3, [r2, #4]", 0x202, 4)
    assert found[0x206] == Instruction("bne.n", "200", 0x206, 2)
    assert found[0x20C].operands == "r7, #1"
    assert found[0x20A].is_branch and found[0x20A].is_indirect and not found[0x200].is_branch


@pytest.mark.parametrize(("text", "kind", "name", "sets_flags"), NAMES)
def test_kind_and_name(text, kind, name, sets_flags):
    one = code(text)[0]
    assert (one.kind, one.name, one.sets_flags) == (kind, name, sets_flags)


@pytest.mark.parametrize(("text", "results", "reads"), ACCESSES)
def test_registers(text, results, reads):
    one = code(text)[0]
    assert set(one.results) == results
    assert {*one.sources, *one.added, *one.shifted, *one.stored, *one.address_registers} == reads


def test_an_instruction_without_timing_is_rejected():
    with pytest.raises(UnknownInstruction, match="frob"):
        cycles("m7", "frob r0, r1")


# ---- the emulator's log

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
0x00000202:  f8d2       .byte    0xd2, 0xf8
0x00000204:  3004       adds     r0, #4
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
""".splitlines(True)


def test_blocks_are_executed_from_the_fifth_start_to_the_stop():
    blocks = Blocks(read_listing(LISTING))
    # The loop runs three times: two branches are taken, one is not. The parser omits the block that the
    # log marks as not run.
    assert list(blocks.executed(LOG)) == [("0x7f01", 0x200), ("0x7f02", 0x200), ("0x7f02", 0x200),
                                          ("0x7f02", 0x208)]
    assert [one.mnemonic for one in blocks.code["0x7f02"]] == ["ldr", "ldr.w", "bne.n"]


def test_cycles_are_summed_by_function():
    functions = total(weigh("cortex-m4", read_listing(LISTING), LOG), 1)
    assert functions["pt_counter_start"][0] == 1
    assert functions["loop"][0] == 9
    assert functions["loop"][2] == 3 * (2 + 1 + 1) + 2 * 2
    assert "pt_counter_stop" not in functions
    # Two loads meet in a bank every second time; BNE issues beside the second load.
    assert total(weigh("cortex-m7", read_listing(LISTING), LOG), 1)["loop"][:2] == [9, 6]


COUNTS = """\
block 0 100 100 pt_counter_start
block 1 200 206 loop
block 2 208 208 pt_counter_stop
count 0 0 0 1 1
count 1 0 1 1 1
count 1 1 1 1 1
count 1 1 1 2 1
""".splitlines()


def test_counted_blocks_have_the_cycles_of_logged_ones():
    counted = weigh_counts("cortex-m4", read_listing(LISTING), COUNTS)
    assert counted[1, "loop"][0] == 9 and counted[0, "pt_counter_start"][0] == 1
    assert total(counted, 1) == total(weigh("cortex-m4", read_listing(LISTING), LOG), 1)


@pytest.mark.parametrize("name", ["add_1", "int8_ds_cnn"])
def test_the_emulator_counts_the_blocks_that_it_logs(name):
    board = load_board("mps2-an386")
    counted, logged = (trace(board, request(name, board, "none"), is_logged)[0]
                       for is_logged in (False, True))
    # The log has a block twice if an access to the counter's registers interrupted it.
    assert logged.pop((0, "pt_counter_start"))[0] > counted.pop((0, "pt_counter_start"))[0]
    assert counted == logged


@pytest.mark.parametrize("board", BOARDS)
def test_traced_instructions_equal_counted_ones(board):
    first, second = (estimate("add_1", load_board(board), "none") for _ in range(2))
    assert first == second  # to the cycle; estimate() raises an error if it and the board differ
    assert 0 < first["least"] <= first["cycles"] <= first["most"]
    assert first["operators"] == {"aten::add.out": [first["instructions"], first["cycles"]]}


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_calls_are_those_of_operators_as_the_tracer_of_the_method_counts_them(board):
    board = load_board(board)
    traced = estimate("int8_ds_cnn", board, "none")["operators"]
    measured = cycles_of_size.measured_operators(request("int8_ds_cnn", board, "none"), board.name)
    assert measured.keys() == traced.keys()
    for operator, (instructions, _) in traced.items():
        assert abs(instructions - measured[operator]) < 500  # including the instructions around calls


def test_conv1x1_costs_flash_and_instructions_and_saves_cycles(tmp_path):
    whole, without = [bench_forms.entry("int8_ds_cnn", forms, tmp_path)
                      for forms in ((), ("pointwise",))]
    assert 1000 < whole["flash"] - without["flash"] < 1500
    assert without["instructions"] < 0.92 * whole["instructions"]
    assert without["cycles"] > 1.1 * whole["cycles"]


def test_linear_layers_skip_zeros_on_some_cores_only():
    for board, skips in (("mps2-an385-m0plus", True), ("mps2-an385", True), ("mps2-an386", False)):
        stored, dense = (estimate(name, load_board(board), "none")
                         for name in (SPARSE, SPARSE + DENSE))
        assert (stored["cycles"] < 0.8 * dense["cycles"]) == skips
        assert skips or stored["functions"] == dense["functions"]


# ---- the estimate of picotorch size: with factors of the operators instead of a trace

NEAR = [*((name, "mps2-an386") for name in [*benchmark_store.NAMES, *FLOAT_MODELS]),
        *((name, board) for board in BOARDS if board != "mps2-an386"
          for name in ("int8_deep_autoencoder", "deep_autoencoder"))]


def error_of_estimate(name, board, weights, has_less_temp=False, of_ptm=False):
    """Return the relative error of an estimate from the run, compared with the simulation."""
    one = request_in(name, board, weights, has_less_temp, of_ptm)
    simulated = estimate(name, board, weights, has_less_temp, of_ptm)
    conditions = cycles_of_size.conditions_of(one, running.run(one, board.name), board.core)
    assert conditions.mode() == simulated["mode"]
    found = cycles_of_size.estimate(board.core, None, simulated["execute"],
                                    cycles_of_size.measured_operators(one, board.name), conditions)
    return found.cycles / simulated["cycles"] - 1


@pytest.mark.parametrize(("name", "board"), NEAR)
def test_the_estimate_of_size_is_near_the_simulation(name, board):
    for weights in ("none", "pool") if name in benchmark_store.NAMES else ("none",):
        assert abs(error_of_estimate(name, load_board(board), weights)) <= 0.08


@pytest.mark.parametrize("weights", ["none", "pool"])
def test_the_estimate_of_each_kind_of_convolution_is_near_in_each_model(weights):
    """The estimate of each call decides whether a .ptm file has packed weights for it."""
    for name in ("int8_ds_cnn", "int8_resnet8", "int8_mobilenet_v1_025"):
        simulated = estimate(name, load_board("mps2-an386"), weights)
        for operator, (instructions, usual) in simulated["operators"].items():
            if "conv2d" in operator:
                conditions = cycles_of_size.RunConditions(is_packed=simulated["packed"] > 0)
                factor = cycles_of_size.factors("cortex-m4", operator, conditions)[1]
                assert abs(factor * instructions / usual - 1) <= 0.06, (name, operator)


def test_the_estimate_is_near_with_less_than_the_preferred_temp_memory():
    board = load_board("mps2-an386")
    for name in ("int8_ds_cnn", "int8_resnet8"):
        preferred, less = (estimate(name, board, "none", is_less) for is_less in (False, True))
        assert less["temp"] < preferred["temp"] and less["cycles"] > preferred["cycles"]
        assert abs(error_of_estimate(name, board, "none", True)) <= 0.08


@pytest.mark.parametrize("weights", ["none", "pool"])
def test_the_estimate_is_near_for_a_ptm_file_with_less_temp_memory(weights):
    """Calls of the compiled method use other loops than calls of the program, whose scratch tensors are
    large enough for bands."""
    board = load_board("mps2-an386")
    for name in ("int8_ds_cnn", "int8_resnet8"):
        assert abs(error_of_estimate(name, board, weights, True, True)) <= 0.08


@pytest.mark.parametrize("name", ["keyword_spotting", "attention", "gru", "int8_convolutions"])
def test_the_estimate_is_near_for_models_that_the_factors_do_not_come_from(name):
    assert abs(error_of_estimate(name, load_board("mps2-an386"), "none")) <= 0.11
