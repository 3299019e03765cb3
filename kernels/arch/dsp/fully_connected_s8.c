// int8 fully connected layer on cores with the DSP extension: pt_multiply_row, called by
// cortex_m/linear.c where pt_rows_are_fast (depth a multiple of 4, at most PT_MAX_ROW). Tile: 1 row
// x 4 outputs x 4 values by SMLAD, of plain weights, or of weights that pt_pack_rows_dsp packed
// (two bytes a weight, 8 values a step). Packing: the input row as int16 with the offset. Scratch:
// 2 bytes a value.
#include "arch/fully_connected_s8.h"

#if defined(PT_LOOPS_DSP) && !defined(__ARM_FEATURE_MVE)

#include "arch/conv_variants.h"
#include "arch/dsp/channel_loop.h"
#include "arch/gemm_s8.h"
#include "arch/offsets.h"

// State of the loops over outputs, in memory because the loops use all registers.
typedef struct loop {
    const uint32_t *start, *end; // of the packed row
    const int32_t *addends;      // the next
    pt_pair scale;               // multiplier, right shift
    int32_t rounding;
    pt_pair out; // the next output; the end
} loop;

// clang-format off

// ---- weights as they are

#ifdef __OPTIMIZE_SIZE__
enum { STEPS = 4 }; // that are unrolled
#define ALL_BUT_THE_LAST "1, 2, 3"
#define LAST_STEP STEP("16", "32", "4", "!")
#else
enum { STEPS = 8 };
#define ALL_BUT_THE_LAST "1, 2, 3, 4, 5, 6, 7"
#define LAST_STEP STEP("32", "64", "4", "!")
#endif

enum { STEP_BYTES = 78 }; // all but the last

// Four products of each of four rows with r7 and r12. `at`: bytes from the weights' pointers; `even`
// and `odd`: the same from the packed row's, `odd` behind the load of `even`, which may move it.
#ifdef PT_LOADS_BESIDE

// Loads and SXTB16 stand before the instructions that they issue with.
#define STEP(at, even, odd, moves)                  \
    "ldr r5, [r0, #" at "]" moves "\n\t"            \
    "ldr r7, [r4, #" even "]" moves "\n\t"          \
    "sxtb16 lr, r5\n\t"                            \
    "ldr r6, [r1, #" at "]" moves "\n\t"            \
    "sxtb16 r5, r5, ror #8\n\t"                    \
    "smlad r8, r7, lr, r8\n\t"                     \
    "sxtb16 lr, r6\n\t"                            \
    "ldr.w r12, [r4, #" odd "]\n\t"                \
    "sxtb16 r6, r6, ror #8\n\t"                    \
    "smlad r9, r7, lr, r9\n\t"                     \
    "smlad r8, r12, r5, r8\n\t"                    \
    "ldr r5, [r2, #" at "]" moves "\n\t"            \
    "sxtb16 lr, r5\n\t"                            \
    "smlad r9, r12, r6, r9\n\t"                    \
    "sxtb16 r5, r5, ror #8\n\t"                    \
    "smlad r10, r7, lr, r10\n\t"                   \
    "ldr r6, [r3, #" at "]" moves "\n\t"            \
    "smlad r10, r12, r5, r10\n\t"                  \
    "sxtb16 lr, r6\n\t"                            \
    "sxtb16 r6, r6, ror #8\n\t"                    \
    "smlad r11, r7, lr, r11\n\t"                   \
    "smlad r11, r12, r6, r11\n\t"

#else

#define FOUR(sum, weights)                          \
    "sxtb16 lr, " weights "\n\t"                    \
    "sxtb16 " weights ", " weights ", ror #8\n\t"   \
    "smlad " sum ", r7, lr, " sum "\n\t"            \
    "smlad " sum ", r12, " weights ", " sum "\n\t"

// On M4 a load behind a load takes one cycle, so loads are grouped as far as registers allow.
#define STEP(at, even, odd, moves)                  \
    "ldr r7, [r4, #" even "]" moves "\n\t"          \
    "ldr.w r12, [r4, #" odd "]\n\t"                \
    "ldr r5, [r0, #" at "]" moves "\n\t"            \
    "ldr r6, [r1, #" at "]" moves "\n\t"            \
    FOUR("r8", "r5")                                \
    FOUR("r9", "r6")                                \
    "ldr r5, [r2, #" at "]" moves "\n\t"            \
    "ldr r6, [r3, #" at "]" moves "\n\t"            \
    FOUR("r10", "r5")                               \
    FOUR("r11", "r6")

#endif

// Rows of weights lie `near` bytes apart, the third `far` bytes behind the second. Pointers start
// one step, and the steps that the first round skips, before the data.
static __attribute__((noinline)) void multiply_fours(const loop *state, int32_t depth, uint32_t near,
                                                     uint32_t far, const int8_t *w) {
    const uint32_t left_out = (uint32_t)-(depth / 4) & (STEPS - 1), back = 4 * left_out;
    const uintptr_t start = (uintptr_t)state->start - 8 - 2 * back;
    const uintptr_t end = (uintptr_t)state->end - 8;
    uintptr_t enter = STEP_BYTES * left_out;
    loop g = *state;
    register uintptr_t r0 __asm__("r0") = (uintptr_t)w - 4 - back;
    __asm__ volatile(
        ".balign 4\n\t"                            // ADR counts from a multiple of 4
        "ldr r1, %[enter]\n\t"
        "adr.w r2, 2f + 1\n\t"
        "add r1, r2\n\t"
        "str r1, %[enter]\n"
        "1:\n\t"
        "ldr.w lr, %[addends]\n\t"
        "ldr r5, %[near]\n\t"
        "ldr r6, %[far]\n\t"
        "ldr r4, %[start]\n\t"
        "add r1, r0, r5\n\t"
        "add r2, r1, r6\n\t"
        "add r3, r2, r5\n\t"
        "ldm lr!, {r8-r11}\n\t"
        "str lr, %[addends]\n\t"
        "ldr pc, %[enter]\n\t"
        ".balign 4\n"
        "2:\n\t"
        ".irp k, " ALL_BUT_THE_LAST "\n\t"
        STEP("(4 * \\k)", "(8 * \\k)", "(8 * \\k + 4)", "")
        ".endr\n\t"
        LAST_STEP
        "ldr r7, %[end]\n\t"
        "cmp r4, r7\n\t"
        "bne.w 2b\n\t"
        "ldr r5, %[multiplier]\n\t"
        "ldr r6, %[right]\n\t"
        "ldr r7, %[rounding]\n\t"
        "ldr r1, %[out]\n\t"
        "ldr r2, %[out_end]\n\t"
        "ldr r4, %[back]\n\t"
        DOUBLE("r8")
        DOUBLE("r9")
        DOUBLE("r10")
        DOUBLE("r11")
        FINISH_FOUR("r8", "r9", "r10", "r11", "r5", "r6", "r7", "r12")
        "strb r8, [r1], #1\n\t"
        "strb r9, [r1], #1\n\t"
        "strb r10, [r1], #1\n\t"
        "strb r11, [r1], #1\n\t"
        "sub r0, r3, r4\n\t"
        "str r1, %[out]\n\t"
        "cmp r1, r2\n\t"
        "bne.w 1b"
        : "+r"(r0), [addends] "+m"(g.addends), [out] "+m"(g.out.first), [enter] "+m"(enter)
        : [end] "m"(end), [start] "m"(start), [multiplier] "m"(g.scale.first),
          [right] "m"(g.scale.second), [rounding] "m"(g.rounding), [out_end] "m"(g.out.second),
          [near] "m"(near), [far] "m"(far), [back] "m"(back)
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "cc",
          "memory");
}

// ---- packed weights: groups of four values from each of four rows

// Eight products of each row with r0 to r3.
#define PACKED_STEP                        \
    "ldmia.w %[a]!, {r0-r3}\n\t"             \
    PACKED_FOUR("r0", "r1")                \
    PACKED_FOUR("r2", "r3")

#define PACKED_HALF_STEP                   \
    "ldrd r0, r1, [%[a]], #8\n\t"            \
    PACKED_FOUR("r0", "r1")

#ifdef PT_LOADS_BESIDE

enum { PACKED_STEP_BYTES = 132 };

// The first words of all weights: four products load those of the next. Behind the last these are
// PT_ROWS_BEHIND bytes, which nothing uses.
#define FIRST_WEIGHTS                        \
    "ldr.w r4, [%[w]]\n\t"                   \
    "ldr.w r5, [%[w], #4]\n\t"               \
    "ldr.w r6, [%[w], #8]\n\t"

#define PACKED_FOUR(even, odd)             \
    "smlad r9, " even ", r4, r9\n\t"         \
    "ldr.w r8, [%[w], #12]\n\t"              \
    "smlad r9, " odd ", r5, r9\n\t"          \
    "ldr.w r4, [%[w], #16]\n\t"              \
    "smlad r10, " even ", r6, r10\n\t"       \
    "ldr.w r5, [%[w], #20]\n\t"              \
    "smlad r10, " odd ", r8, r10\n\t"        \
    "ldr.w r6, [%[w], #24]\n\t"              \
    "smlad r11, " even ", r4, r11\n\t"       \
    "ldr.w r8, [%[w], #28]\n\t"              \
    "smlad r11, " odd ", r5, r11\n\t"        \
    "ldr.w r4, [%[w], #32]!\n\t"             \
    "smlad r12, " even ", r6, r12\n\t"       \
    "ldr.w r5, [%[w], #4]\n\t"               \
    "smlad r12, " odd ", r8, r12\n\t"        \
    "ldr.w r6, [%[w], #8]\n\t"

#else

enum { PACKED_STEP_BYTES = 84 };

#define FIRST_WEIGHTS

#define PACKED_FOUR(even, odd)             \
    "ldmia.w %[w]!, {r4-r6, r8}\n\t"         \
    "smlad r9, " even ", r4, r9\n\t"         \
    "smlad r9, " odd ", r5, r9\n\t"          \
    "smlad r10, " even ", r6, r10\n\t"       \
    "smlad r10, " odd ", r8, r10\n\t"        \
    "ldmia.w %[w]!, {r4-r6, r8}\n\t"         \
    "smlad r11, " even ", r4, r11\n\t"       \
    "smlad r11, " odd ", r5, r11\n\t"        \
    "smlad r12, " even ", r6, r12\n\t"       \
    "smlad r12, " odd ", r8, r12\n\t"

#endif

enum { PACKED_STEPS = 4 }; // that are unrolled

// `enter`: bytes of code of the steps that the first round skips; `first`: 1 for half a step before
// the steps. Both become addresses.
static __attribute__((noinline)) void fc_multiply_packed(const loop *state, int32_t depth,
                                                        const int16_t *w) {
    const int32_t steps = depth / 8;
    uint32_t enter = PACKED_STEP_BYTES *
                     (steps ? (uint32_t)-steps & (PACKED_STEPS - 1) : PACKED_STEPS);
    uint32_t first = (uint32_t)depth >> 2 & 1;
    loop g = *state;
    const uint32_t *a;
    __asm__ volatile(
        ".balign 4\n\t"                            // ADR counts from a multiple of 4
        "ldr r1, %[enter]\n\t"
        "adr.w r0, 2f + 1\n\t"
        "add r0, r1\n\t"
        "ldr r1, %[first]\n\t"
        "str r0, %[enter]\n\t"
        "cmp r1, #0\n\t"
        "beq 3f\n\t"
        "adr.w r0, 4f + 1\n"
        "3:\n\t"
        "str r0, %[first]\n\t"
        FIRST_WEIGHTS
        "1:\n\t"
        "ldr r0, %[addends]\n\t"
        "ldr %[a], %[start]\n\t"
        "ldm r0!, {r9-r12}\n\t"
        "str r0, %[addends]\n\t"
        "ldr pc, %[first]\n\t"
        ".balign 4\n"
        "4:\n\t"
        PACKED_HALF_STEP
        "ldr pc, %[enter]\n\t"
        ".balign 4\n"
        "2:\n\t"
        ".rept 4\n\t"
        PACKED_STEP
        ".endr\n\t"
        "ldr r0, %[end]\n\t"
        "cmp %[a], r0\n\t"
        "bne 2b\n\t"
        "ldrd r0, r1, %[scale]\n\t"
        "ldr r2, %[rounding]\n\t"
        DOUBLE("r9")
        DOUBLE("r10")
        DOUBLE("r11")
        DOUBLE("r12")
        FINISH_FOUR("r9", "r10", "r11", "r12", "r0", "r1", "r2", "r3")
        "ldrd r0, r1, %[out]\n\t"
        "strb r9, [r0], #1\n\t"
        "strb r10, [r0], #1\n\t"
        "strb r11, [r0], #1\n\t"
        "strb r12, [r0], #1\n\t"
        "str r0, %[out]\n\t"
        "cmp r0, r1\n\t"
        "bne 1b"
        : [w] "+r"(w), [a] "=&r"(a), [addends] "+m"(g.addends), [out] "+m"(g.out),
          [enter] "+m"(enter), [first] "+m"(first)
        : [end] "m"(g.end), [start] "m"(g.start), [scale] "m"(g.scale), [rounding] "m"(g.rounding)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
}

// clang-format on

static __attribute__((noinline)) void fc_pack_row(const pt_linear *p, const int8_t *x,
                                                  void *scratch) {
    pt_gemm_s8 row;
    row.offset = p->x_offset;
    row.block = scratch;
    row.width = row.capacity_bytes = 1;
    pt_pack(&row, 0, 0, x, p->depth);
}

static void set_outputs(loop *g, const int32_t *addends, int32_t n, int8_t *y) {
    g->addends = addends;
    g->out = (pt_pair){(uintptr_t)y, (uintptr_t)(y + n)};
}

// Computes one to three outputs as four: of 3 the second twice, of 2 each twice.
static __attribute__((noinline, cold)) void multiply_few(loop *g, int32_t depth,
                                                         const int32_t *addends, uint32_t n,
                                                         const int8_t *w, int8_t *y) {
    int32_t four[4];
    int8_t outputs[4];
    for (uint32_t i = 0; i < 4; i++) {
        four[i] = addends[(i * n + n / 2) / 4];
    }
    set_outputs(g, four, 4, outputs);
    multiply_fours(g, depth, n == 3 ? (uint32_t)depth : 0, n == 2 ? (uint32_t)depth : 0, w);
    for (uint32_t i = 0; i < 4; i++) {
        y[(i * n + n / 2) / 4] = outputs[i];
    }
}

// Computes n outputs from the packed row at g->start.
static void multiply_outputs(loop *g, const pt_linear *p, const int32_t *addends, int32_t n,
                             const int8_t *w, const int16_t *packed, int8_t *y) {
    const int32_t depth = p->depth, whole = n & ~3;
    if (n < 4) {
        multiply_few(g, depth, addends, (uint32_t)n, w, y);
        return;
    }
    set_outputs(g, addends, whole, y);
    if (packed) {
        fc_multiply_packed(g, depth, packed);
    } else {
        multiply_fours(g, depth, (uint32_t)depth, (uint32_t)depth, w);
    }
    if (whole < n) { // the last four overlap outputs that are done
        set_outputs(g, addends + n - 4, 4, y + n - 4);
        multiply_fours(g, depth, (uint32_t)depth, (uint32_t)depth, w + (n - 4) * depth);
    }
}

// Makes addends for a part of the outputs at a time.
static __attribute__((noinline, cold)) void
multiply_with_sum(const pt_linear *p, loop *g, int32_t row_sum, const int8_t *w, int8_t *y) {
    enum { MAX_OUTPUTS = 24 };
    int32_t addends[MAX_OUTPUTS];
    for (int32_t first = 0, n; first < p->outputs; first += n) {
        n = p->outputs - first < MAX_OUTPUTS ? p->outputs - first : MAX_OUTPUTS;
        for (int32_t i = 0; i < n; i++) {
            addends[i] = row_sum + (p->addends ? p->addends[first + i] : 0);
        }
        multiply_outputs(g, p, addends, n, w + first * p->depth,
                         p->packed ? (const int16_t *)p->packed + first * p->depth : NULL,
                         y + first);
    }
}

bool pt_multiply_row(const pt_linear *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch) {
    if (!pt_rows_are_fast(p) || row_sum >= PT_BIAS_LIMIT / 2 || row_sum <= -PT_BIAS_LIMIT / 2) {
        return false;
    }
    loop g = {.start = scratch,
              .end = (const uint32_t *)scratch + p->depth / 2,
              .scale = {(uintptr_t)p->multiplier, (uintptr_t)-p->shift},
              .rounding = pt_rounding(p->shift, p->range.offset)};
    fc_pack_row(p, x, scratch);
    if (row_sum || !p->addends) {
        multiply_with_sum(p, &g, (int32_t)row_sum, w, y);
    } else {
        multiply_outputs(&g, p, p->addends, p->outputs, w, p->packed, y);
    }
    for (int32_t j = 0; j < p->outputs && pt_narrows(&p->range); j++) {
        y[j] = (int8_t)pt_clamp(y[j], p->range.min, p->range.max);
    }
    return true;
}

#endif
