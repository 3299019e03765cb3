// Products of a row with rows of weights on cores with the DSP extension, two rows at a time.
#include "../rows.h"

#if defined(PT_LOOPS_DSP) && !defined(__ARM_FEATURE_MVE)

#include "../offsets.h"
#include "../patches.h"
#include "finish.h"

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

PT_STATIC_ASSERT(offsetof(loop, addends.step) == offsetof(loop, addends.next) + 4 &&
                     offsetof(loop, scale.right) == offsetof(loop, scale.multiplier) + 4,
                 "assembler has these as pairs");

// clang-format off

// The row from its start, and two sums that begin with the addends at r0, r1 bytes apart.
#define BEGIN_OUTPUTS                       \
    "ldr %[a], %[start]\n\t"                 \
    "ldr %[s0], [r0]\n\t"                    \
    "add r0, r1\n\t"                         \
    "ldr %[s1], [r0]\n\t"                    \
    "add r0, r1\n\t"                         \
    "str r0, %[addends]\n\t"

// Two outputs, and back for more.
#define END_OUTPUTS                         \
    "ldrd r0, r1, %[scale]\n\t"              \
    "ldr r2, %[rounding]\n\t"                \
    FINISH("%[s0]", "r0", "r1", "r2", "r3")  \
    FINISH("%[s1]", "r0", "r1", "r2", "r3")  \
    "ldr r0, %[out]\n\t"                     \
    "ldr r1, %[out_end]\n\t"                 \
    "strb %[s0], [r0], #1\n\t"               \
    "strb %[s1], [r0], #1\n\t"               \
    "str r0, %[out]\n\t"                     \
    "cmp r0, r1\n\t"                         \
    "bne 1b"

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

// The same with prepared weights: of each four values those of two rows, in the order of the
// activations.
#define PREPARED_STEP                       \
    "ldmia.w %[a]!, {r0-r3}\n\t"            \
    PREPARED_FOUR("r0", "r1")               \
    PREPARED_FOUR("r2", "r3")

#define PREPARED_HALF_STEP                  \
    "ldrd r0, r1, [%[a]], #8\n\t"           \
    PREPARED_FOUR("r0", "r1")

#define PREPARED_FOUR(even, odd)            \
    "ldmia.w %[w]!, {r4-r6, r8}\n\t"        \
    "smlad %[s0], " even ", r4, %[s0]\n\t"  \
    "smlad %[s0], " odd ", r5, %[s0]\n\t"   \
    "smlad %[s1], " even ", r6, %[s1]\n\t"  \
    "smlad %[s1], " odd ", r8, %[s1]\n\t"

enum {
    STEPS = 8,
    STEP_BYTES = 76,
    HALF_STEP_BYTES = 44,
    PREPARED_STEP_BYTES = 44,
    PREPARED_HALF_STEP_BYTES = 24,
};

// An even number of outputs.
static void multiply_pairs(const loop *given, const int8_t *w, const uint32_t *end) {
    loop g = *given;
    const int8_t *v;
    const uint32_t *a;
    int32_t s0, s1, x, y, even;
    __asm__ volatile(
        "1:\n\t"
        "ldrd r0, r1, %[addends]\n\t"
        "ldr r2, %[depth]\n\t"
        BEGIN_OUTPUTS
        "add %[v], %[w], r2\n\t"
        "ldr r0, %[half]\n\t"
        "add pc, r0\n\t"
        "nop\n\t"
        HALF_STEP
        "ldr r0, %[skip]\n\t"
        "add pc, r0\n\t"
        "nop\n"
        "2:\n\t"
        ".rept 8\n\t"
        STEP
        ".endr\n\t"
        "cmp %[a], %[end]\n\t"
        "bne 2b\n\t"
        "mov %[w], %[v]\n\t"
        END_OUTPUTS
        : [w] "+r"(w), [v] "=&r"(v), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [x] "=&r"(x),
          [y] "=&r"(y), [even] "=&r"(even), [addends] "+m"(g.addends), [out] "+m"(g.y)
        : [end] "r"(end), [start] "m"(g.start), [half] "m"(g.half), [skip] "m"(g.skip),
          [scale] "m"(g.scale), [rounding] "m"(g.rounding), [out_end] "m"(g.y_end),
          [depth] "m"(g.depth)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

static void multiply_prepared(const loop *given, const int16_t *w, const uint32_t *end) {
    loop g = *given;
    const uint32_t *a;
    int32_t s0, s1;
    __asm__ volatile(
        "1:\n\t"
        "ldrd r0, r1, %[addends]\n\t"
        BEGIN_OUTPUTS
        "ldr r0, %[half]\n\t"
        "add pc, r0\n\t"
        "nop\n\t"
        PREPARED_HALF_STEP
        "ldr r0, %[skip]\n\t"
        "add pc, r0\n\t"
        "nop\n"
        "2:\n\t"
        ".rept 8\n\t"
        PREPARED_STEP
        ".endr\n\t"
        "cmp %[a], %[end]\n\t"
        "bne 2b\n\t"
        END_OUTPUTS
        : [w] "+r"(w), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [addends] "+m"(g.addends),
          [out] "+m"(g.y)
        : [end] "r"(end), [start] "m"(g.start), [half] "m"(g.half), [skip] "m"(g.skip),
          [scale] "m"(g.scale), [rounding] "m"(g.rounding), [out_end] "m"(g.y_end)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "cc", "memory");
}

// clang-format on

static __attribute__((noinline)) void pack_row(const pt_linear *p, const int8_t *x, void *scratch) {
    pt_layer row = {.offset = p->x_offset, .block = scratch, .width = 1, .capacity = 1};
    pt_pack(&row, 0, 0, x, p->depth);
}

// n outputs from the packed row at g->start, n even where the weights are prepared.
static void multiply_outputs(loop *g, const int32_t *addends, int32_t n, const int8_t *w,
                             const int16_t *prepared, int8_t *y) {
    static const int32_t none = 0;
    const uint32_t *end = g->start + g->depth / 2;
    int32_t even = n & ~1;
    g->addends.next = addends ? addends : &none;
    g->addends.step = addends ? 4 : 0;
    g->y = y;
    g->y_end = y + even;
    if (even > 0 && prepared) {
        multiply_prepared(g, prepared, end);
    } else if (even > 0) {
        multiply_pairs(g, w, end);
    }
    if (even < n) {
        int32_t depth = g->depth;
        int8_t twice[2];
        g->addends.next += addends ? even : 0;
        g->addends.step = 0;
        g->depth = 0;
        g->y = twice;
        g->y_end = twice + 2;
        multiply_pairs(g, w + even * depth, end);
        g->depth = depth;
        y[even] = twice[0];
    }
}

// With weights whose offset is not 0, some outputs at a time.
static __attribute__((noinline)) void
multiply_with_sum(const pt_linear *p, loop *g, int32_t row_sum, const int8_t *w, int8_t *y) {
    enum { MOST = 32 };
    int32_t addends[MOST];
    for (int32_t first = 0, n; first < p->outputs; first += n) {
        n = p->outputs - first < MOST ? p->outputs - first : MOST;
        for (int32_t i = 0; i < n; i++) {
            addends[i] = row_sum + (p->addends ? p->addends[first + i] : 0);
        }
        multiply_outputs(g, addends, n, w + first * p->depth,
                         p->prepared ? (const int16_t *)p->prepared + first * p->depth : NULL,
                         y + first);
    }
}

bool pt_multiply_row(const pt_linear *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch) {
    if (!pt_rows_are_fast(p) || row_sum >= PT_BIAS_LIMIT / 2 || row_sum <= -PT_BIAS_LIMIT / 2) {
        return false;
    }
    int32_t steps = p->depth / 8;
    uint32_t skip = steps ? (uint32_t)-steps & (STEPS - 1) : STEPS;
    loop g = {.start = scratch,
              .half = p->depth & 4  ? 0
                      : p->prepared ? PREPARED_HALF_STEP_BYTES
                                    : HALF_STEP_BYTES,
              .skip = skip * (p->prepared ? PREPARED_STEP_BYTES : STEP_BYTES),
              .scale = {p->multiplier, -p->shift},
              .rounding = pt_rounding(p->shift, p->range.offset),
              .depth = p->depth};
    pack_row(p, x, scratch);
    if (row_sum) {
        multiply_with_sum(p, &g, (int32_t)row_sum, w, y);
    } else {
        multiply_outputs(&g, p->addends, p->outputs, w, p->prepared, y);
    }
    for (int32_t j = 0; j < p->outputs && pt_narrows(&p->range); j++) {
        y[j] = (int8_t)pt_clamp(y[j], p->range.min, p->range.max);
    }
    return true;
}

#endif
