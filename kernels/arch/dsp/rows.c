// Products of a row with rows of weights on cores with the DSP extension: three rows at a time,
// four where they are prepared.
#include "../rows.h"

#if defined(PT_LOOPS_DSP) && !defined(__ARM_FEATURE_MVE)

#include "../offsets.h"
#include "../patches.h"
#include "../wide.h"
#include "loop.h"

// State of the loops over outputs in memory: all registers are taken inside.
typedef struct loop {
    const uint32_t *start, *end; // of the packed row
    uint32_t enter;              // bytes of code of the steps that are left out, then an address
    uint32_t first;              // 1 for half a step before the steps, then an address
    pt_pair addends;             // the next; bytes to those of the next outputs
    pt_pair scale;               // multiplier, right shift
    int32_t rounding;
    pt_pair out;  // the next output, the end
    pt_pair rows; // bytes from a row of weights to the second, and on to the third
} loop;

// clang-format off

enum { UNROLLED = 4 };

// Before all: to addresses of code. ADR counts from a multiple of 4.
#define FIND_ENTRANCES                       \
    ".balign 4\n\t"                          \
    "ldr r1, %[enter]\n\t"                   \
    "adr.w r0, 2f + 1\n\t"                   \
    "add r0, r1\n\t"                         \
    "ldr r1, %[first]\n\t"                   \
    "str r0, %[enter]\n\t"                   \
    "cmp r1, #0\n\t"                         \
    "beq 3f\n\t"                             \
    "adr.w r0, 4f + 1\n"                     \
    "3:\n\t"                                 \
    "str r0, %[first]\n\t"

// The steps of the sums, after half a step if `first` is set.
#define STEPS(half_step, step)               \
    "ldr pc, %[first]\n\t"                   \
    ".balign 4\n"                            \
    "4:\n\t"                                 \
    half_step                                \
    "ldr pc, %[enter]\n\t"                   \
    ".balign 4\n"                            \
    "2:\n\t"                                 \
    ".rept 4\n\t"                            \
    step                                     \
    ".endr\n\t"                              \
    "ldr r0, %[end]\n\t"                     \
    "cmp %[a], r0\n\t"                       \
    "bne 2b\n\t"

// The scale in r0 to r2.
#define SCALE                                \
    "ldrd r0, r1, %[scale]\n\t"              \
    "ldr r2, %[rounding]\n\t"

// ---- three outputs of weights as they are

// Eight products of each of three rows with r0 to r3.
#define STEP                                 \
    "ldmia.w %[a]!, {r0-r3}\n\t"             \
    EIGHT("r9", "%[w]")                      \
    EIGHT("r10", "%[v]")                     \
    EIGHT("r11", "%[u]")

#ifdef PT_LOADS_BESIDE

enum { STEP_BYTES = 124 };

// Loads and SXTB16 in front of what they issue with.
#define EIGHT(sum, row)                      \
    "ldr.w r4, [" row "], #4\n\t"            \
    "sxtb16 r6, r4\n\t"                      \
    "ldr.w r5, [" row "], #4\n\t"            \
    EIGHT_PRODUCTS(sum)

#else

enum { STEP_BYTES = 112 };

#define EIGHT(sum, row)                      \
    "ldrd r4, r5, [" row "], #8\n\t"         \
    "sxtb16 r6, r4\n\t"                      \
    EIGHT_PRODUCTS(sum)

#endif

#define EIGHT_PRODUCTS(sum)                  \
    "sxtb16 r4, r4, ror #8\n\t"              \
    "smlad " sum ", r0, r6, " sum "\n\t"     \
    "sxtb16 r6, r5\n\t"                      \
    "smlad " sum ", r1, r4, " sum "\n\t"     \
    "sxtb16 r5, r5, ror #8\n\t"              \
    "smlad " sum ", r2, r6, " sum "\n\t"     \
    "smlad " sum ", r3, r5, " sum "\n\t"

// Four products of each.
#define HALF_STEP                            \
    "ldrd r0, r1, [%[a]], #8\n\t"            \
    FOUR("r9", "%[w]")                       \
    FOUR("r10", "%[v]")                      \
    FOUR("r11", "%[u]")

#define FOUR(sum, row)                       \
    "ldr.w r4, [" row "], #4\n\t"            \
    "sxtb16 r6, r4\n\t"                      \
    "sxtb16 r4, r4, ror #8\n\t"              \
    "smlad " sum ", r0, r6, " sum "\n\t"     \
    "smlad " sum ", r1, r4, " sum "\n\t"

static void multiply_threes(const loop *given, const int8_t *w) {
    loop g = *given;
    const int8_t *v, *u;
    const uint32_t *a;
    __asm__ volatile(
        FIND_ENTRANCES
        "1:\n\t"
        "ldrd r0, r1, %[addends]\n\t"
        "ldrd r2, r3, %[rows]\n\t"
        "ldr %[a], %[start]\n\t"
        "ldm r0, {r9-r11}\n\t"
        "add r0, r1\n\t"
        "str r0, %[addends]\n\t"
        "add %[v], %[w], r2\n\t"
        "add %[u], %[v], r3\n\t"
        STEPS(HALF_STEP, STEP)
        "mov %[w], %[u]\n\t"
        SCALE
        DOUBLE("r9")
        DOUBLE("r10")
        DOUBLE("r11")
        FINISH_BEGIN("r9", "r0", "r2", "r3")
        FINISH_BEGIN("r10", "r0", "r2", "r3")
        FINISH_NEXT("r9", "r1", "r11", "r0", "r2", "r3")
        FINISH_END("r10", "r1")
        FINISH_END("r11", "r1")
        "ldrd r0, r1, %[out]\n\t"
        "strb r9, [r0], #1\n\t"
        "strb r10, [r0], #1\n\t"
        "strb r11, [r0], #1\n\t"
        "str r0, %[out]\n\t"
        "cmp r0, r1\n\t"
        "bne 1b"
        : [w] "+r"(w), [v] "=&r"(v), [u] "=&r"(u), [a] "=&r"(a), [addends] "+m"(g.addends),
          [out] "+m"(g.out), [enter] "+m"(g.enter), [first] "+m"(g.first)
        : [end] "m"(g.end), [start] "m"(g.start), [scale] "m"(g.scale),
          [rounding] "m"(g.rounding), [rows] "m"(g.rows)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r9", "r10", "r11", "cc", "memory");
}

// ---- four outputs of prepared weights: of each four values those of four rows

// Eight products of each row with r0 to r3.
#define PREPARED_STEP                        \
    "ldmia.w %[a]!, {r0-r3}\n\t"             \
    PREPARED_FOUR("r0", "r1")                \
    PREPARED_FOUR("r2", "r3")

#define PREPARED_HALF_STEP                   \
    "ldrd r0, r1, [%[a]], #8\n\t"            \
    PREPARED_FOUR("r0", "r1")

#ifdef PT_LOADS_BESIDE

enum { PREPARED_STEP_BYTES = 132 };

// The first words of all weights: four products load those of the next. Behind the last these are
// PT_ROWS_BEHIND bytes, which nothing uses.
#define FIRST_WEIGHTS                        \
    "ldr.w r4, [%[w]]\n\t"                   \
    "ldr.w r5, [%[w], #4]\n\t"               \
    "ldr.w r6, [%[w], #8]\n\t"

#define PREPARED_FOUR(even, odd)             \
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

enum { PREPARED_STEP_BYTES = 84 };

#define FIRST_WEIGHTS

#define PREPARED_FOUR(even, odd)             \
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

static void multiply_prepared(const loop *given, const int16_t *w) {
    loop g = *given;
    const uint32_t *a;
    __asm__ volatile(
        FIND_ENTRANCES
        FIRST_WEIGHTS
        "1:\n\t"
        "ldrd r0, r1, %[addends]\n\t"
        "ldr %[a], %[start]\n\t"
        "ldm r0, {r9-r12}\n\t"
        "add r0, r1\n\t"
        "str r0, %[addends]\n\t"
        STEPS(PREPARED_HALF_STEP, PREPARED_STEP)
        SCALE
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
          [enter] "+m"(g.enter), [first] "+m"(g.first)
        : [end] "m"(g.end), [start] "m"(g.start), [scale] "m"(g.scale), [rounding] "m"(g.rounding)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
}

// clang-format on

static __attribute__((noinline)) void pack_row(const pt_linear *p, const int8_t *x, void *scratch) {
    pt_layer row = {.offset = p->x_offset, .block = scratch, .width = 1, .capacity = 1};
    pt_pack(&row, 0, 0, x, p->depth);
}

// Bytes of code of the unrolled steps that the first round leaves out.
static uint32_t spare_code(int32_t depth, uint32_t bytes) {
    const int32_t steps = depth / 8;
    return (steps ? (uint32_t)-steps & (UNROLLED - 1) : UNROLLED) * bytes;
}

static void set_outputs(loop *g, const int32_t *addends, int32_t n, uint32_t at_a_time, int8_t *y) {
    static const int32_t none[4] = {0, 0, 0, 0};
    g->addends.first = (uintptr_t)(addends ? addends : none);
    g->addends.second = addends ? 4 * at_a_time : 0;
    g->out = (pt_pair){(uintptr_t)y, (uintptr_t)(y + n)};
}

// One output or two, as three.
static void multiply_few(loop *g, const int32_t *addends, int32_t n, const int8_t *w, int8_t *y) {
    const int32_t last = n - 1;
    const int32_t three[3] = {addends ? addends[0] : 0, addends ? addends[last] : 0, 0};
    int8_t outputs[3];
    loop few = *g;
    few.rows = (pt_pair){n > 1 ? g->rows.first : 0, 0};
    set_outputs(&few, three, 3, 3, outputs);
    multiply_threes(&few, w);
    y[0] = outputs[0];
    y[last] = outputs[last];
}

// n outputs from the packed row at g->start.
static void multiply_outputs(loop *g, const pt_linear *p, const int32_t *addends, int32_t n,
                             const int8_t *w, const int16_t *prepared, int8_t *y) {
    int32_t done = prepared ? n & ~3 : 0;
    if (done > 0) {
        g->enter = spare_code(p->depth, PREPARED_STEP_BYTES);
        set_outputs(g, addends, done, 4, y);
        multiply_prepared(g, prepared);
    }
    g->enter = spare_code(p->depth, STEP_BYTES);
    if (n < 3) {
        multiply_few(g, addends, n, w, y);
        return;
    }
    // The last one or two are computed together with some that are done already.
    for (int32_t some; done < n; done += some) {
        some = (n - done) / 3 * 3;
        if (some == 0) {
            done = n - 3;
            some = 3;
        }
        set_outputs(g, addends ? addends + done : NULL, some, 3, y + done);
        multiply_threes(g, w + done * p->depth);
    }
}

// With weights whose offset is not 0, some outputs at a time.
static __attribute__((noinline)) void
multiply_with_sum(const pt_linear *p, loop *g, int32_t row_sum, const int8_t *w, int8_t *y) {
    enum { MOST = 24 };
    int32_t addends[MOST];
    for (int32_t first = 0, n; first < p->outputs; first += n) {
        n = p->outputs - first < MOST ? p->outputs - first : MOST;
        for (int32_t i = 0; i < n; i++) {
            addends[i] = row_sum + (p->addends ? p->addends[first + i] : 0);
        }
        multiply_outputs(g, p, addends, n, w + first * p->depth,
                         p->prepared ? (const int16_t *)p->prepared + first * p->depth : NULL,
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
              .first = p->depth >> 2 & 1,
              .scale = {(uintptr_t)p->multiplier, (uintptr_t)-p->shift},
              .rounding = pt_rounding(p->shift, p->range.offset),
              .rows = {(uintptr_t)p->depth, (uintptr_t)p->depth}};
    pack_row(p, x, scratch);
    if (row_sum) {
        multiply_with_sum(p, &g, (int32_t)row_sum, w, y);
    } else {
        multiply_outputs(&g, p, p->addends, p->outputs, w, p->prepared, y);
    }
    for (int32_t j = 0; j < p->outputs && pt_narrows(&p->range); j++) {
        y[j] = (int8_t)pt_clamp(y[j], p->range.min, p->range.max);
    }
    return true;
}

#endif
