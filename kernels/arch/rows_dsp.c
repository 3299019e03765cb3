// Products of a row with rows of weights on cores with the DSP extension, two rows at a time.
#include "rows.h"

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)

#include "finish_dsp.h"
#include "patches.h"

// What the loop over outputs keeps in memory: nearly all registers are taken inside.
typedef struct loop {
    const uint32_t *start;
    uint32_t half, skip; // bytes of code of the steps that are left out
    struct {
        const int32_t *next;
        uint32_t step;
    } addends;
    struct {
        int32_t multiplier, right;
    } scale;
    int32_t rounding;
    int8_t *y, *y_end;
    int32_t depth; // from a row of weights to the next
} loop;

static bool is_fast(const pt_product *p) {
    uint32_t limits = 0; // bits that stay clear while all addends are small
    for (int32_t j = 0; p->addends && j < p->outputs; j++) {
        limits |= (uint32_t)p->addends[j] + PT_BIAS_LIMIT;
    }
    return limits < 2 * PT_BIAS_LIMIT && p->w_offset == 0 && p->depth % 4 == 0 &&
           p->depth <= PT_MAX_ROW && pt_scales_fast(p->multiplier, p->shift);
}

// clang-format off

// Eight products of each of two rows with r0 to r3.
#define STEP                                \
    "ldmia.w %[a]!, {r0-r3}\n\t"            \
    EIGHT("%[s0]", "%[w]")                  \
    EIGHT("%[s1]", "%[v]")

#define EIGHT(sum, row)                     \
    "ldrd %[x], %[y], [" row "], #8\n\t"    \
    "sxtb16 %[even], %[x]\n\t"              \
    "sxtb16 %[x], %[x], ror #8\n\t"         \
    "smlad " sum ", r0, %[even], " sum "\n\t" \
    "smlad " sum ", r1, %[x], " sum "\n\t"  \
    "sxtb16 %[even], %[y]\n\t"              \
    "sxtb16 %[y], %[y], ror #8\n\t"         \
    "smlad " sum ", r2, %[even], " sum "\n\t" \
    "smlad " sum ", r3, %[y], " sum "\n\t"

// Four products of each.
#define HALF_STEP                           \
    "ldrd r0, r1, [%[a]], #8\n\t"           \
    FOUR("%[s0]", "%[w]")                   \
    FOUR("%[s1]", "%[v]")

#define FOUR(sum, row)                      \
    "ldr.w %[x], [" row "], #4\n\t"         \
    "sxtb16 %[even], %[x]\n\t"              \
    "sxtb16 %[x], %[x], ror #8\n\t"         \
    "smlad " sum ", r0, %[even], " sum "\n\t" \
    "smlad " sum ", r1, %[x], " sum "\n\t"

enum { STEPS = 8, STEP_BYTES = 76, HALF_STEP_BYTES = 44 };

// An even number of outputs.
static void multiply_pairs(loop *given, const int8_t *w, const uint32_t *end) {
    loop g = *given;
    const int8_t *v;
    const uint32_t *a;
    int32_t s0, s1, x, y, even;
    __asm__ volatile(
        "1:\n\t"
        "ldrd r0, r1, %[addends]\n\t"
        "ldr r2, %[depth]\n\t"
        "ldr %[a], %[start]\n\t"
        "ldr %[s0], [r0]\n\t"
        "add r0, r1\n\t"
        "ldr %[s1], [r0]\n\t"
        "add r0, r1\n\t"
        "str r0, %[addends]\n\t"
        "add %[v], %[w], r2\n\t"
        "ldr r0, %[half]\n\t"
        "add pc, r0\n\t"
        "nop\n\t"
        HALF_STEP
        "ldr r0, %[skip]\n\t"
        "add pc, r0\n\t"
        "nop\n"
        "2:\n\t"
        ".rept 8\n\t" STEP ".endr\n\t"
        "cmp %[a], %[end]\n\t"
        "bne 2b\n\t"
        "mov %[w], %[v]\n\t"
        "ldrd r0, r1, %[scale]\n\t"
        "ldr r2, %[rounding]\n\t"
        FINISH("%[s0]", "r0", "r1", "r2", "r3")
        FINISH("%[s1]", "r0", "r1", "r2", "r3")
        "ldr r0, %[out]\n\t"
        "ldr r1, %[out_end]\n\t"
        "strb %[s0], [r0], #1\n\t"
        "strb %[s1], [r0], #1\n\t"
        "str r0, %[out]\n\t"
        "cmp r0, r1\n\t"
        "bne 1b"
        : [w] "+r"(w), [v] "=&r"(v), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [x] "=&r"(x),
          [y] "=&r"(y), [even] "=&r"(even), [addends] "+m"(g.addends), [out] "+m"(g.y)
        : [end] "r"(end), [start] "m"(g.start), [half] "m"(g.half), [skip] "m"(g.skip),
          [scale] "m"(g.scale), [rounding] "m"(g.rounding), [out_end] "m"(g.y_end),
          [depth] "m"(g.depth)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

// clang-format on

bool pt_multiply_row(const pt_product *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch) {
    (void)row_sum;
    if (!is_fast(p)) {
        return false;
    }
    static const int32_t none = 0;
    pt_layer row = {.offset = p->x_offset, .block = scratch, .width = 1, .capacity = 1};
    int32_t even = p->outputs & ~1, steps = p->depth / 8;
    const uint32_t *end = (const uint32_t *)scratch + p->depth / 2;
    loop g = {.start = scratch,
              .half = p->depth & 4 ? 0 : HALF_STEP_BYTES,
              .skip = ((uint32_t)-steps & (STEPS - 1)) * STEP_BYTES,
              .addends = {p->addends ? p->addends : &none, p->addends ? 4 : 0},
              .scale = {p->multiplier, -p->shift},
              .rounding = pt_rounding(p->shift, p->range.offset),
              .y = y,
              .y_end = y + even,
              .depth = p->depth};
    g.skip = steps == 0 ? STEPS * STEP_BYTES : g.skip;
    pt_pack(&row, 0, 0, x, p->depth);
    if (even > 0) {
        multiply_pairs(&g, w, end);
    }
    if (even < p->outputs) {
        int8_t twice[2];
        g.addends.next += p->addends ? even : 0;
        g.addends.step = g.depth = 0;
        g.y = twice;
        g.y_end = twice + 2;
        multiply_pairs(&g, w + even * p->depth, end);
        y[even] = twice[0];
    }
    for (int32_t j = 0; j < p->outputs && pt_narrows(&p->range); j++) {
        y[j] = (int8_t)pt_clamp(y[j], p->range.min, p->range.max);
    }
    return true;
}

#endif
